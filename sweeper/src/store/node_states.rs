//! What nodes' heartbeats come to so far: written in the transaction that stores them, read by each sweep in one query.

use super::{
    Doing as _, Store, StoreError,
    commit::{execute, get, query},
    corrupt,
    entities::heartbeat as row,
    given::{Column, MAX_ROWS},
};
use crate::verdict::{Added, NodeSample, NodeState, StatePolicy};
use heartbeat::NodeId;
use sea_orm::{
    ColumnTrait as _, DatabaseTransaction, EntityTrait as _, QueryFilter as _, QueryOrder as _, QueryResult,
    QuerySelect as _,
};
use std::collections::{BTreeMap, HashMap};

/// Most heartbeats that a state is made anew from: an hour of them in steps of two seconds. Of more, which only somebody sends who makes them up, the newest
/// tell, and the state begins with them.
const MAX_READ_AGAIN: u64 = 2_048;
/// No time, where none is known.
const NEVER: i64 = i64::MIN;

impl Store {
    /// The states of the nodes whose ids begin like this, or of all. One that this version cannot read is left out: the node's heartbeats
    /// are asked instead.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn node_states(&self, prefix: Option<&str>) -> Result<HashMap<NodeId, NodeState>, StoreError> {
        let mut states = HashMap::new();
        let take = |id, row: &QueryResult| {
            if let Ok(state) = serde_json::from_str(&get::<String>(row, "state")?) {
                states.insert(id, state);
            }
            Ok(())
        };
        self.each_node(("node_state", "state"), prefix, "read the states of nodes", take).await?;
        Ok(states)
    }
}

/// Takes new heartbeats up in the states of their nodes, whose rows are locked.
pub(super) async fn update(
    transaction: &DatabaseTransaction,
    new: BTreeMap<&str, Vec<NodeSample>>,
    state_policy: &StatePolicy,
) -> Result<(), StoreError> {
    let new: Vec<_> = new.into_iter().collect();
    for nodes in new.chunks(MAX_ROWS) {
        let mut states = read(transaction, nodes.iter().map(|(node, _)| (*node).to_owned()).collect()).await?;
        let mut written = Vec::with_capacity(nodes.len());
        for (node, samples) in nodes {
            let state = match states.remove(*node).filter(|state| state.is_of(state_policy)) {
                Some(state) => carry_on(transaction, node, state, samples, state_policy).await?,
                None => NodeState::of(sorted(samples.clone()), state_policy),
            };
            written.extend(state.map(|state| ((*node).to_owned(), state)));
        }
        write(transaction, written).await?;
    }
    Ok(())
}

fn sorted(mut samples: Vec<NodeSample>) -> Vec<NodeSample> {
    samples.sort_by_key(NodeSample::order);
    samples
}

async fn carry_on(
    transaction: &DatabaseTransaction,
    node: &str,
    mut state: NodeState,
    samples: &[NodeSample],
    state_policy: &StatePolicy,
) -> Result<Option<NodeState>, StoreError> {
    let mut is_late = false;
    for sample in sorted(samples.to_vec()) {
        is_late |= state.add(sample, state_policy) == Added::Late;
    }
    if !is_late {
        return Ok(Some(state));
    }
    let from_unix_ms = state.newest_unix_ms().saturating_sub(state_policy.reach_ms());
    let messages: Vec<(String, Vec<u8>)> = row::Entity::find()
        .select_only()
        .columns([row::Column::BootId, row::Column::Message])
        .filter(row::Column::NodeId.eq(node))
        .filter(row::Column::EndUnixMs.gt(from_unix_ms))
        .order_by_desc(row::Column::EndUnixMs)
        .limit(MAX_READ_AGAIN)
        .into_tuple()
        .all(transaction)
        .await
        .doing("read a node's latest heartbeats")?;
    let samples = messages.iter().filter_map(|(boot_id, message)| {
        // What cannot be read is no reason to refuse what can: the sweep says so of it.
        NodeSample::of(boot_id.parse().ok()?, &heartbeat::unpack_one(message).ok()?)
    });
    Ok(NodeState::of(sorted(samples.collect()), state_policy))
}

async fn read(transaction: &DatabaseTransaction, nodes: Vec<String>) -> Result<HashMap<String, NodeState>, StoreError> {
    let body =
        "SELECT node_state.node_id AS node_id, state FROM given JOIN node_state ON node_state.node_id = given.node_id";
    let rows = query(transaction, vec![("node_id", Column::Text(nodes))], body, "read the states of nodes").await?;
    let mut states = HashMap::with_capacity(rows.len());
    for row in rows {
        let state: String = get(&row, "state")?;
        if let Ok(state) = serde_json::from_str(&state) {
            states.insert(get(&row, "node_id")?, state);
        }
    }
    Ok(states)
}

async fn write(transaction: &DatabaseTransaction, states: Vec<(String, NodeState)>) -> Result<(), StoreError> {
    if states.is_empty() {
        return Ok(());
    }
    let body = format!(
        "INSERT INTO node_state (node_id, newest_unix_ms, quiet_since_unix_ms, last_work_unix_ms, state) \
         SELECT node_id, newest, NULLIF(quiet_since, {NEVER}), NULLIF(last_work, {NEVER}), state FROM given WHERE true \
         ON CONFLICT (node_id) DO UPDATE SET newest_unix_ms = excluded.newest_unix_ms, \
         quiet_since_unix_ms = excluded.quiet_since_unix_ms, last_work_unix_ms = excluded.last_work_unix_ms, state = excluded.state"
    );
    let told = states.iter().map(|(node, state)| {
        serde_json::to_string(state)
            .map_err(|error| corrupt(format!("the state of {node} that was to be stored"), error))
    });
    let told = told.collect::<Result<_, _>>()?;
    let integers = |value: fn(&NodeState) -> Option<i64>| {
        Column::Integer(states.iter().map(|(_, state)| value(state).unwrap_or(NEVER)).collect())
    };
    let columns = vec![
        ("node_id", Column::Text(states.iter().map(|(node, _)| node.clone()).collect())),
        ("newest", integers(|state| Some(state.newest_unix_ms()))),
        ("quiet_since", integers(NodeState::quiet_since_unix_ms)),
        ("last_work", integers(NodeState::last_work_unix_ms)),
        ("state", Column::Text(told)),
    ];
    execute(transaction, columns, &body, "write the states of nodes").await
}
