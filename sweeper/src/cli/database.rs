//! The database, as each command needs it.

use crate::{
    config::Config,
    store::{Schema, Store},
};
use anyhow::Context as _;
use secrecy::ExposeSecret as _;
use std::path::Path;

/// Opens the database that the configuration names.
pub(super) async fn open(config: &Config) -> anyhow::Result<Store> {
    Ok(Store::connect(config.store_url().expose_secret()).await?)
}

/// Opens the database for commands: one that does not exist yet is not made in passing, and one of an older version not brought up to date. That is a decision of whoever
/// runs the service; replicas of the version before may go on beside it.
pub(super) async fn open_existing(config: &Config) -> anyhow::Result<Store> {
    let store = open_if_there(config).await?;
    if let Schema::Older(missing) = store.schema().await? {
        anyhow::bail!(
            "the database is of an older version ({missing} steps of its schema are missing), and this command changes no schema; \
             `sweeper serve` or `sweeper sweep` of this version brings it up to date"
        );
    }
    Ok(store)
}

/// Opens the database whatever version it is of: for the kill switch, which must not fail because somebody upgrades.
pub(super) async fn open_of_any_version(config: &Config) -> anyhow::Result<Store> {
    open_if_there(config).await
}

async fn open_if_there(config: &Config) -> anyhow::Result<Store> {
    let file = config.data_dir.join("sweeper.db");
    if config.store.url.is_none() && !file.is_file() {
        anyhow::bail!(
            "there is no database at {} yet; run `sweeper serve` or `sweeper sweep`, or set SWEEPER_DATA_DIR to where one runs",
            file.display()
        );
    }
    open(config).await
}

/// Brings the schema up to date, for the two commands that do; says so where it is left as a newer version made it.
pub(super) async fn migrate(store: &Store) -> anyhow::Result<()> {
    if let Schema::Newer(steps) = store.migrate().await? {
        tracing::warn!(
            steps,
            "the database's schema is newer than this version of the sweeper, which may use it; what the newer one keeps there besides is neither read nor written"
        );
    }
    Ok(())
}

/// Makes the data directory, readable by its owner alone.
pub(super) fn make_data_dir(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| {
        format!("the data directory {} cannot be made; set SWEEPER_DATA_DIR to one that can", path.display())
    })
}
