//! History: what each resource was and when, and when each listing spoke.
//!
//! A version of a resource lasts from the sweep that first saw it so to the first complete listing that shows it otherwise, or no more.
//! What is not listed because a listing failed goes on lasting; the listing's own spans tell that nobody looked. A sweep that sees nothing
//! new writes one row per listing and none per resource.

mod before;
mod billed;
mod lasting;
mod newcomers;
mod rows;
mod tags;

use super::{Doing as _, Store, StoreError, from_unix_ms, place::place, to_unix_ms};
use crate::inventory::{Inventory, Kind, Listing, Outcome, Record, Scope};
pub(crate) use before::tags_before;
pub use billed::{ListedPlace, MachineVersion};
use jiff::Timestamp;
use rows::{span, version};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, ExprTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, sea_query::Expr, sea_query::OnConflict,
};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
pub(crate) use tags::tags_last;

/// Rows of one statement. SQLite takes 32,766 values in one, and a row has ten.
const ROWS: usize = 1_000;

/// Two complete listings that are further apart are no span without a gap, three hours: no sweep was made in between, whatever the reason.
const APART_MS: i64 = 3 * 3_600_000;

/// What a resource was for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// What it is.
    pub kind: String,
    /// Its key.
    pub resource: String,
    /// When it was first seen so.
    pub from: Timestamp,
    /// When it was first seen otherwise, or no more; none if it lasts as far as is known.
    pub until: Option<Timestamp>,
    /// The facts, as the inventory had them.
    pub record: serde_json::Value,
}

/// How one kind of resource in one place could be listed for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// `aws`.
    pub provider: String,
    /// Account.
    pub account: String,
    /// Region.
    pub region: String,
    /// What was listed.
    pub kind: String,
    /// The first sweep that went so.
    pub from: Timestamp,
    /// The last one.
    pub until: Timestamp,
    /// Why it could not be listed; none if it could.
    pub failed: Option<String>,
}

/// One place and kind.
#[derive(Clone, Copy)]
struct Of<'a> {
    provider: &'a str,
    account: &'a str,
    region: &'a str,
    kind: Kind,
}

impl<'a> Of<'a> {
    fn words(&self) -> (&'a str, &'a str, &'a str) {
        (self.provider, self.account, self.region)
    }
}

/// Takes what was read of one scope into the history; of no scope there is nothing to keep.
pub(crate) async fn record(
    transaction: &impl ConnectionTrait,
    scope: Option<&Scope>,
    inventory: &Inventory,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(Scope { provider, account, region }) = scope else { return Ok(()) };
    let words = provider.to_string();
    let mut records: HashMap<Kind, Vec<Record>> = HashMap::new();
    for record in inventory.records().map_err(|error| super::corrupt("an inventory record", error))? {
        records.entry(record.id.kind.into()).or_default().push(record);
    }
    for listing in &inventory.listings {
        let failed = match &listing.outcome {
            Outcome::Complete { .. } => None,
            Outcome::Failed { what, why } => Some(format!("{what}: {why}")),
        };
        // What failed before anything was listed says the same of every kind.
        let kinds = listing.kind.as_ref().map_or(Kind::ALL, std::slice::from_ref);
        let kinds = kinds.iter().filter(|kind| kind.resource().is_some() && kind.is_read_of(*provider));
        for kind in kinds.filter(|kind| listing.may_speak_of(*provider, account, region, **kind)) {
            let of = Of { provider: &words, account, region, kind: *kind };
            lengthen(transaction, of, failed.as_deref(), now).await?;
            if failed.is_none() {
                let parts = parts(transaction, of, inventory, now).await?;
                renew(transaction, of, records.remove(kind).unwrap_or_default(), &parts, now).await?;
            }
        }
    }
    Ok(())
}

/// The regions and zones of a scope that holds all of them whose own listing of a kind failed, and writes down how these went: a
/// part that failed before and is named no more is known again.
async fn parts(
    transaction: &impl ConnectionTrait,
    of: Of<'_>,
    inventory: &Inventory,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    if of.region != Scope::EVERYWHERE {
        return Ok(Vec::new());
    }
    let is_part = |listing: &&Listing| {
        listing.is_of_a_part() && listing.kind == Some(of.kind) && listing.account.as_deref() == Some(of.account)
    };
    let mut failed = Vec::new();
    for listing in inventory.listings.iter().filter(is_part) {
        let (Some(region), Outcome::Failed { what, why }) = (&listing.region, &listing.outcome) else { continue };
        lengthen(transaction, Of { region, ..of }, Some(&format!("{what}: {why}")), now).await?;
        failed.push(region.clone());
    }
    let before: Vec<String> = span::Entity::find()
        .select_only()
        .column(span::Column::Region)
        .distinct()
        .filter(span::Column::Provider.eq(of.provider))
        .filter(span::Column::Account.eq(of.account))
        .filter(span::Column::Region.ne(of.region))
        .filter(span::Column::Kind.eq(of.kind.as_str()))
        .into_tuple()
        .all(transaction)
        .await
        .doing("read how listings went")?;
    for region in before.iter().filter(|region| !failed.contains(region)) {
        lengthen(transaction, Of { region, ..of }, None, now).await?;
    }
    Ok(failed)
}

/// Writes down how a listing went.
async fn lengthen(
    transaction: &impl ConnectionTrait,
    of: Of<'_>,
    failed: Option<&str>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let doing = "write how a listing went";
    let place = place([span::Column::Provider, span::Column::Account, span::Column::Region], of.words());
    let mine = place.add(span::Column::Kind.eq(of.kind.as_str()));
    let last = span::Entity::find().filter(mine.clone()).order_by_desc(span::Column::FromUnixMs).one(transaction);
    let now = to_unix_ms(now);
    // Where nobody has looked for so long, nobody knows what was there in between.
    let is_apart = |last: &span::Model| failed.is_none() && now.saturating_sub(last.until_unix_ms) > APART_MS;
    match last.await.doing(doing)? {
        // A clock that was set back lengthens nothing.
        Some(last) if (last.failed.as_deref() == failed && !is_apart(&last)) || last.from_unix_ms >= now => {
            let until = Ord::max(now, last.until_unix_ms);
            span::Entity::update_many()
                .col_expr(span::Column::UntilUnixMs, Expr::value(until))
                .filter(mine.add(span::Column::FromUnixMs.eq(last.from_unix_ms)))
                .exec(transaction)
                .await
                .doing(doing)?;
        }
        _ => {
            let row = span::ActiveModel {
                provider: Set(of.provider.to_owned()),
                account: Set(of.account.to_owned()),
                region: Set(of.region.to_owned()),
                kind: Set(of.kind.as_str().to_owned()),
                from_unix_ms: Set(now),
                until_unix_ms: Set(now),
                failed: Set(failed.map(str::to_owned)),
            };
            span::Entity::insert(row).exec_without_returning(transaction).await.doing(doing)?;
        }
    }
    Ok(())
}

/// Ends the versions that last no more, and begins the new ones. Of the parts that could not be listed nothing ends.
async fn renew(
    transaction: &impl ConnectionTrait,
    of: Of<'_>,
    records: Vec<Record>,
    not_listed: &[String],
    now: Timestamp,
) -> Result<(), StoreError> {
    let doing = "write the inventory's history";
    let lasting: Vec<(String, String)> = version::Entity::find()
        .select_only()
        .column(version::Column::Resource)
        .column(version::Column::Sha256)
        .filter(place([version::Column::Provider, version::Column::Account, version::Column::Region], of.words()))
        .filter(version::Column::Kind.eq(of.kind.as_str()))
        .filter(version::Column::UntilUnixMs.is_null())
        .into_tuple()
        .all(transaction)
        .await
        .doing(doing)?;
    let mut lasting: HashMap<String, String> = lasting.into_iter().collect();
    let mut new = Vec::new();
    let mut over = Vec::new();
    for record in records {
        let sha256 = hex::encode(Sha256::digest(record.json.as_bytes()));
        match lasting.remove(&record.id.to_string()) {
            Some(before) if before == sha256 => {}
            Some(_) => {
                over.push(record.id.to_string());
                new.push((record, sha256));
            }
            None => new.push((record, sha256)),
        }
    }
    let not_listed: Vec<String> =
        not_listed.iter().map(|region| format!("{}:{}:{region}:", of.provider, of.account)).collect();
    over.extend(lasting.into_keys().filter(|key| !not_listed.iter().any(|prefix| key.starts_with(prefix))));
    let now = to_unix_ms(now);
    for keys in over.chunks(ROWS) {
        version::Entity::update_many()
            .col_expr(version::Column::UntilUnixMs, Expr::value(now))
            .col_expr(version::Column::LastingKey, Expr::value(Option::<String>::None))
            .filter(version::Column::LastingKey.is_in(keys.iter().map(|key| lasting_key(of.kind, key))))
            .exec(transaction)
            .await
            .doing(doing)?;
    }
    for rows in new.chunks(ROWS) {
        let rows = rows.iter().map(|(record, sha256)| version::ActiveModel {
            kind: Set(of.kind.as_str().to_owned()),
            resource: Set(record.id.to_string()),
            from_unix_ms: Set(now),
            provider: Set(of.provider.to_owned()),
            account: Set(of.account.to_owned()),
            region: Set(of.region.to_owned()),
            until_unix_ms: Set(None),
            lasting_key: Set(Some(lasting_key(of.kind, &record.id.to_string()))),
            sha256: Set(sha256.clone()),
            record: Set(record.json.clone()),
        });
        // Another sweeper that saw the same a moment ago was right.
        version::Entity::insert_many(rows)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .exec_without_returning(transaction)
            .await
            .doing(doing)?;
    }
    Ok(())
}

fn lasting_key(kind: Kind, resource: &str) -> String {
    format!("{}|{resource}", kind.as_str())
}

fn version_of(row: version::Model) -> Result<Version, StoreError> {
    Ok(Version {
        from: from_unix_ms(row.from_unix_ms)?,
        until: row.until_unix_ms.map(from_unix_ms).transpose()?,
        record: serde_json::from_str(&row.record)
            .map_err(|error| super::corrupt(format!("the record of {}", row.resource), error))?,
        kind: row.kind,
        resource: row.resource,
    })
}

impl Store {
    /// Takes what was read of a scope at a moment into the history, in a transaction of its own.
    ///
    /// # Errors
    /// If the database does not answer; nothing of it is kept then.
    pub async fn record_inventory(
        &self,
        scope: &Scope,
        inventory: &Inventory,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        record(&transaction, Some(scope), inventory, at).await?;
        transaction.commit().await.doing("commit the inventory's history")
    }

    /// What there was at a moment, by kind and key; of one kind, or of all.
    ///
    /// # Errors
    /// If the database does not answer or holds a record that is none.
    pub async fn resources_at(&self, at: Timestamp, kind: Option<Kind>) -> Result<Vec<Version>, StoreError> {
        let at = to_unix_ms(at);
        let mut query = version::Entity::find()
            .filter(version::Column::FromUnixMs.lte(at))
            .filter(version::Column::UntilUnixMs.is_null().or(version::Column::UntilUnixMs.gt(at)));
        if let Some(kind) = kind {
            query = query.filter(version::Column::Kind.eq(kind.as_str()));
        }
        let rows = query
            .order_by_asc(version::Column::Kind)
            .order_by_asc(version::Column::Resource)
            .all(self.connection())
            .await
            .doing("read the inventory's history")?;
        rows.into_iter().map(version_of).collect()
    }

    /// Everything that a resource has been, oldest first. `resource` is its key, or the end of it behind a colon.
    ///
    /// # Errors
    /// If the database does not answer or holds a record that is none.
    pub async fn resource_history(&self, resource: &str) -> Result<Vec<Version>, StoreError> {
        let ends = version::Column::Resource.ends_with(format!(":{resource}"));
        let rows = version::Entity::find()
            .filter(version::Column::Resource.eq(resource).or(ends))
            .order_by_asc(version::Column::Resource)
            .order_by_asc(version::Column::FromUnixMs)
            .all(self.connection())
            .await
            .doing("read a resource's history")?;
        rows.into_iter().map(version_of).collect()
    }

    /// What a resource last was; none if it was never listed.
    ///
    /// # Errors
    /// If the database does not answer or holds a record that is none.
    pub async fn last_version(&self, resource: &str) -> Result<Option<Version>, StoreError> {
        let last = version::Entity::find()
            .filter(version::Column::Resource.eq(resource))
            .order_by_desc(version::Column::FromUnixMs)
            .one(self.connection())
            .await
            .doing("read what a resource last was")?;
        last.map(version_of).transpose()
    }

    /// For each place and kind the span of sweeps that had begun by then, the latest one.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn listings_at(&self, at: Timestamp) -> Result<Vec<Span>, StoreError> {
        let rows = span::Entity::find()
            .filter(span::Column::FromUnixMs.lte(to_unix_ms(at)))
            .order_by_asc(span::Column::FromUnixMs)
            .all(self.connection())
            .await
            .doing("read how listings went")?;
        let mut latest = BTreeMap::new();
        for row in rows {
            let key = [row.provider.clone(), row.account.clone(), row.region.clone(), row.kind.clone()];
            latest.insert(key, row);
        }
        latest
            .into_values()
            .map(|row| {
                Ok(Span {
                    from: from_unix_ms(row.from_unix_ms)?,
                    until: from_unix_ms(row.until_unix_ms)?,
                    provider: row.provider,
                    account: row.account,
                    region: row.region,
                    kind: row.kind,
                    failed: row.failed,
                })
            })
            .collect()
    }

    /// Deletes what ended before a moment; what lasts stays, however old.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delete_history_before(&self, moment: Timestamp) -> Result<u64, StoreError> {
        let moment = to_unix_ms(moment);
        let versions = version::Entity::delete_many()
            .filter(version::Column::UntilUnixMs.lt(moment))
            .exec(self.connection())
            .await
            .doing("delete old history")?;
        let spans = span::Entity::delete_many()
            .filter(span::Column::UntilUnixMs.lt(moment))
            .exec(self.connection())
            .await
            .doing("delete old history")?;
        Ok(versions.rows_affected + spans.rows_affected)
    }
}

#[cfg(test)]
mod tests;
