//! The tables of the history.

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
pub(super) mod version {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "resource_versions")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub resource: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub from_unix_ms: i64,
        pub provider: String,
        pub account: String,
        pub region: String,
        pub until_unix_ms: Option<i64>,
        pub lasting_key: Option<String>,
        pub sha256: String,
        pub record: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
pub(super) mod span {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "listing_spans")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub provider: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub account: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub region: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub kind: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub from_unix_ms: i64,
        pub until_unix_ms: i64,
        pub failed: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
