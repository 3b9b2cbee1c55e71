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
        pub public_key: Option<String>,
        pub key_bound_unix_ms: Option<i64>,
        pub attestation: String,
        pub attested_unix_ms: Option<i64>,
        pub disputed_unix_ms: Option<i64>,
        pub disputed_because: Option<String>,
        pub revoked_unix_ms: Option<i64>,
        pub refused_unix_ms: Option<i64>,
        pub refused_because: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One token of a node with a key, good until it expires.
pub(super) mod node_token {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "node_tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub token_sha256: String,
        pub node_id: String,
        pub expires_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One join token, which admits one node once.
pub(super) mod join_token {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "join_tokens")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub token_sha256: String,
        pub node_id: Option<String>,
        pub created_unix_ms: i64,
        pub expires_unix_ms: i64,
        pub used_by: Option<String>,
        pub used_unix_ms: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One challenge that a join has answered.
pub(super) mod used_challenge {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "used_challenges")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub challenge_sha256: String,
        pub expires_unix_ms: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One boot of a node's kernel and what arrived of it.
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
        #[sea_orm(column_name = "collector")]
        pub source: String,
        pub received_at_unix_ms: i64,
        pub message: Vec<u8>,
        pub cpu_busy_ns: Option<i64>,
        pub workload_cpu_ns: Option<i64>,
        pub workload_execs: Option<i64>,
        pub disk_bytes: Option<i64>,
        pub network_bytes: Option<i64>,
        pub gpu_busy_ns: Option<i64>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
