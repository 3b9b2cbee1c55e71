//! Evidence as rows: appended, never changed.

use super::{Doing as _, Store, StoreError, corrupt, from_unix_ms, to_unix_ms};
use crate::{
    detectors::Class,
    findings::FindingId,
    pricing::Cost,
    reconcile::{Before, Change, EventKind, Record},
    snapshot::{BatchInputs, GroupInputs, Inputs, LeftoverInputs, MachineInputs, WorkInputs},
};
use model::plan::ContentHash;
use recommender::rules::{
    Input, delete::DeleteInput, end::EndInput, release::ReleaseInput, stop::StopInput, terminate::TerminateInput,
};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
};
use serde::{Deserialize, Serialize};

#[expect(unreachable_pub, reason = "the derives of sea-orm demand public types")]
mod row {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "evidence")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub finding_id: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i32,
        pub at_unix_ms: i64,
        pub event: String,
        pub detector: String,
        pub detector_version: i32,
        pub inputs: Vec<u8>,
        pub conclusion: String,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// zstd's default.
const COMPRESSION_LEVEL: i32 = 3;

/// What a decision rested on. A later form gets a tag of its own beside this one.
#[derive(Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
enum Form {
    MachineV1 {
        #[serde(flatten)]
        inputs: Box<MachineInputs>,
        before: Option<Before>,
        #[serde(flatten)]
        cost: Cost,
        plan: Option<Box<StopInput>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<Box<EndInput>>,
    },
    LeftoverV1 {
        inputs: LeftoverInputs,
        before: Option<Before>,
        cost: Cost,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<ReleaseInput>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delete: Option<Box<DeleteInput>>,
    },
    GroupV1 {
        inputs: GroupInputs,
        before: Option<Before>,
        cost: Cost,
    },
    BatchV1 {
        inputs: Box<BatchInputs>,
        before: Option<Before>,
        cost: Cost,
    },
    WorkV1 {
        inputs: Box<WorkInputs>,
        before: Option<Before>,
        cost: Cost,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<TerminateInput>>,
    },
}

#[derive(Serialize, Deserialize)]
struct Conclusion {
    #[serde(flatten)]
    change: Change,
    /// Of versions before, which sealed other content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposal: Option<ContentHash>,
    #[serde(default)]
    plan: Option<ContentHash>,
}

/// Appends what one decision rested on.
pub(crate) async fn append(transaction: &impl ConnectionTrait, record: &Record) -> Result<(), StoreError> {
    let unwritable = |reason: String| corrupt(format!("evidence of {}", record.finding), reason);
    let (before, cost) = (record.before, record.cost.clone());
    let (mut stop, mut end, mut release, mut delete, mut terminate) = (None, None, None, None, None);
    match record.asked.clone() {
        Some(Input::Stop(input)) => stop = Some(input),
        Some(Input::End(input)) => end = Some(input),
        Some(Input::Release(input)) => release = Some(input),
        Some(Input::Delete(input)) => delete = Some(input),
        Some(Input::Terminate(input)) => terminate = Some(input),
        None => {}
    }
    let form = match record.inputs.clone() {
        Inputs::Machine(inputs) => Form::MachineV1 { inputs, before, cost, plan: stop, end },
        Inputs::Leftover(inputs) => Form::LeftoverV1 { inputs, before, cost, plan: release, delete },
        Inputs::Group(inputs) => Form::GroupV1 { inputs, before, cost },
        Inputs::Batch(inputs) => Form::BatchV1 { inputs, before, cost },
        Inputs::Work(inputs) => Form::WorkV1 { inputs, before, cost, plan: terminate },
    };
    let inputs = serde_json::to_vec(&form).map_err(|error| unwritable(error.to_string()))?;
    let inputs = zstd::bulk::compress(&inputs, COMPRESSION_LEVEL).map_err(|error| unwritable(error.to_string()))?;
    let conclusion = Conclusion { change: record.change.clone(), proposal: None, plan: record.plan.clone() };
    let row = row::ActiveModel {
        finding_id: Set(record.finding.0.clone()),
        number: Set(i32::try_from(record.number).unwrap_or(i32::MAX)),
        at_unix_ms: Set(to_unix_ms(record.at)),
        event: Set(record.event.as_str().to_owned()),
        detector: Set(record.class.as_str().to_owned()),
        detector_version: Set(record.version),
        inputs: Set(inputs),
        conclusion: Set(serde_json::to_string(&conclusion).map_err(|error| unwritable(error.to_string()))?),
    };
    row::Entity::insert(row).exec_without_returning(transaction).await.doing("keep the evidence of a finding")?;
    Ok(())
}

fn from_row(row: row::Model) -> Result<Record, StoreError> {
    let unreadable = |reason: String| corrupt(format!("evidence {} of {}", row.number, row.finding_id), reason);
    // What this database holds a sweeper wrote, as long as its look-back made it.
    let inputs = zstd::decode_all(row.inputs.as_slice()).map_err(|error| unreadable(error.to_string()))?;
    let form = serde_json::from_slice(&inputs).map_err(|error| unreadable(error.to_string()))?;
    let (inputs, before, cost, asked) = match form {
        Form::MachineV1 { inputs, before, cost, plan, end } => {
            let asked = plan.map(Input::Stop).or(end.map(Input::End));
            (Inputs::Machine(inputs), before, cost, asked)
        }
        Form::LeftoverV1 { inputs, before, cost, plan, delete } => {
            let asked = plan.map(Input::Release).or(delete.map(Input::Delete));
            (Inputs::Leftover(inputs), before, cost, asked)
        }
        Form::GroupV1 { inputs, before, cost } => (Inputs::Group(inputs), before, cost, None),
        Form::BatchV1 { inputs, before, cost } => (Inputs::Batch(inputs), before, cost, None),
        Form::WorkV1 { inputs, before, cost, plan } => (Inputs::Work(inputs), before, cost, plan.map(Input::Terminate)),
    };
    let conclusion = serde_json::from_str(&row.conclusion).map_err(|error| unreadable(error.to_string()))?;
    let Conclusion { change, proposal, plan } = conclusion;
    Ok(Record {
        number: row.number.unsigned_abs(),
        at: from_unix_ms(row.at_unix_ms)?,
        event: EventKind::from_word(&row.event).ok_or_else(|| unreadable(format!("event `{}`", row.event)))?,
        class: Class::from_word(&row.detector).ok_or_else(|| unreadable(format!("detector `{}`", row.detector)))?,
        version: row.detector_version,
        inputs,
        before,
        cost,
        asked,
        change,
        is_of_before: proposal.is_some(),
        plan: plan.or(proposal),
        finding: FindingId(row.finding_id),
    })
}

impl Store {
    /// What the decisions about a finding rested on, oldest first. Empty for one that a version before this opened and closed.
    ///
    /// # Errors
    /// If the database does not answer or holds evidence of another version.
    pub async fn evidence(&self, finding: &FindingId) -> Result<Vec<Record>, StoreError> {
        let rows = row::Entity::find()
            .filter(row::Column::FindingId.eq(&finding.0))
            .order_by_asc(row::Column::Number)
            .all(self.connection())
            .await
            .doing("read the evidence of a finding")?;
        rows.into_iter().map(from_row).collect()
    }

    /// The ids of all findings, oldest first.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn finding_ids(&self) -> Result<Vec<FindingId>, StoreError> {
        super::findings::ids(self.connection()).await
    }
}
