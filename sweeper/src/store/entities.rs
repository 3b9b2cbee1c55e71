//! The rows of this domain as sea-orm sees them. Other domains keep theirs beside their queries.

#![expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]

/// One setting that the sweeper made up itself.
pub(super) mod setting {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "settings")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: String,
        pub value: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One node that joined.
pub(super) mod node {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "nodes")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub node_id: String,
        pub hostname: String,
        pub agent_version: String,
        pub token_sha256: String,
        pub joined_at_unix_ms: i64,
        pub last_seen_at_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One life of a node's kernel and what arrived of it.
pub(super) mod boot {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "boots")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub node_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub boot_id: String,
        pub contiguous_sequence: i64,
        pub highest_sequence: i64,
        pub lost_heartbeats: i64,
        pub last_seen_at_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One heartbeat.
pub(super) mod heartbeat {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "heartbeats")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub node_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub boot_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub sequence: i64,
        pub start_unix_ms: i64,
        pub end_unix_ms: i64,
        pub start_boottime_ns: i64,
        pub end_boottime_ns: i64,
        pub counters_since_boottime_ns: i64,
        pub collector: String,
        pub received_at_unix_ms: i64,
        pub message: Vec<u8>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
