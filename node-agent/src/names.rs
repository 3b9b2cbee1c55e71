//! Every text of a heartbeat, made visible and short, before anything leaves the agent: wire, spool, terminal, log and metrics
//! all show the same harmless names. Pure.
//!
//! A name that is longer than the contract allows keeps its beginning and gets a mark of its whole, so that two long names
//! stay two.

use heartbeat::{
    envelope::MAX_NAME_BYTES,
    text::{cut, visible},
    wire,
};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// Room for the mark of a name that was cut: an ellipsis and 8 hexadecimal digits.
const MARK_BYTES: usize = '…'.len_utf8() + 8;

/// Makes all texts of a heartbeat harmless and short.
pub fn make_harmless(heartbeat: &mut wire::Heartbeat) {
    for_each_text(heartbeat, &mut |text| {
        if let Some(better) = harmless(text) {
            *text = better;
        }
    });
}

fn harmless(text: &str) -> Option<String> {
    harmless_within(text, MAX_NAME_BYTES)
}

/// The text without anything hidden, in at most `max_bytes` of UTF-8; `None` if it may stay as it is.
#[must_use]
pub fn harmless_within(text: &str, max_bytes: usize) -> Option<String> {
    match visible(text) {
        Cow::Borrowed(same) if same.len() <= max_bytes => None,
        shown if shown.len() <= max_bytes => Some(shown.into_owned()),
        shown => {
            let mark = hex::encode(&Sha256::digest(text.as_bytes())[..4]);
            Some(format!("{}…{mark}", cut(&shown, max_bytes.saturating_sub(MARK_BYTES))))
        }
    }
}

fn for_each_text(heartbeat: &mut wire::Heartbeat, with: &mut impl FnMut(&mut String)) {
    if let Some(host) = &mut heartbeat.host {
        for text in [
            &mut host.hostname,
            &mut host.kernel_release,
            &mut host.architecture,
            &mut host.agent_version,
            &mut host.rules_version,
            &mut host.rules_digest,
        ] {
            with(text);
        }
    }
    heartbeat.workloads.iter_mut().for_each(|row| of_row(row, with));
    for run in &mut heartbeat.runs {
        for text in [&mut run.id, &mut run.engine, &mut run.pipeline, &mut run.workload] {
            with(text);
        }
        run.activity.iter_mut().for_each(|row| of_row(row, with));
        for task in &mut run.tasks {
            with(&mut task.name);
            task.activity.iter_mut().chain(&mut task.tools).for_each(|row| of_row(row, with));
        }
    }
    for gpu in &mut heartbeat.gpus {
        with(&mut gpu.uuid);
        with(&mut gpu.model);
        gpu.workloads.iter_mut().for_each(&mut *with);
    }
    for listener in heartbeat.inbound_peers.iter_mut().flat_map(|inbound_peers| &mut inbound_peers.listeners) {
        with(&mut listener.command);
    }
    for group in heartbeat.peers.iter_mut().flat_map(|peers| &mut peers.groups) {
        with(&mut group.command);
    }
    if let Some(coverage) = &mut heartbeat.coverage {
        for capability in &mut coverage.capabilities {
            with(&mut capability.name);
            with(&mut capability.reason);
        }
        coverage.drops.iter_mut().for_each(|drop| with(&mut drop.name));
    }
}

fn of_row(row: &mut wire::WorkloadActivity, with: &mut impl FnMut(&mut String)) {
    with(&mut row.key);
    with(&mut row.top_command);
    for name in row.name.iter_mut().chain(&mut row.batch_job) {
        with(&mut name.kind);
        with(&mut name.id);
        if let Some(told) = &mut name.container {
            for text in [&mut told.name, &mut told.pod, &mut told.namespace, &mut told.owner, &mut told.image] {
                with(text);
            }
        }
    }
    row.syscalls.iter_mut().for_each(|class| with(&mut class.class));
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartbeat::text::is_hidden;

    const HOSTILE: &str = "a\u{1b}[2J\u{202e}\n\u{9b}\u{200b}";

    fn row() -> wire::WorkloadActivity {
        wire::WorkloadActivity {
            key: HOSTILE.repeat(400),
            top_command: HOSTILE.into(),
            name: Some(wire::WorkloadName {
                kind: HOSTILE.into(),
                id: HOSTILE.into(),
                container: Some(wire::Container {
                    name: HOSTILE.into(),
                    pod: HOSTILE.into(),
                    namespace: HOSTILE.into(),
                    owner: HOSTILE.into(),
                    image: HOSTILE.repeat(400),
                }),
            }),
            syscalls: vec![wire::SyscallClass { class: HOSTILE.into(), count: 1 }],
            ..wire::WorkloadActivity::default()
        }
    }

    fn hostile() -> wire::Heartbeat {
        let task =
            wire::Task { name: HOSTILE.into(), activity: Some(row()), tools: vec![row()], ..wire::Task::default() };
        wire::Heartbeat {
            sequence: 1,
            interval: Some(wire::Interval {
                start_unix_ms: 1,
                end_unix_ms: 2,
                end_boottime_ns: 1,
                ..wire::Interval::default()
            }),
            host: Some(wire::Host {
                hostname: HOSTILE.into(),
                kernel_release: HOSTILE.into(),
                architecture: HOSTILE.into(),
                agent_version: HOSTILE.into(),
                rules_version: HOSTILE.into(),
                rules_digest: HOSTILE.into(),
                ..wire::Host::default()
            }),
            counters: Some(wire::HostCounters::default()),
            workloads: vec![row()],
            runs: vec![wire::Run {
                id: HOSTILE.into(),
                engine: HOSTILE.into(),
                pipeline: HOSTILE.into(),
                workload: HOSTILE.into(),
                activity: Some(row()),
                tasks: vec![task],
                ..wire::Run::default()
            }],
            gpus: vec![wire::Gpu {
                uuid: HOSTILE.into(),
                model: HOSTILE.into(),
                workloads: vec![HOSTILE.into()],
                ..wire::Gpu::default()
            }],
            inbound_peers: Some(wire::InboundPeers {
                listeners: vec![wire::Listener { command: HOSTILE.into(), ..wire::Listener::default() }],
                ..wire::InboundPeers::default()
            }),
            peers: Some(wire::Peers {
                groups: vec![wire::PeerGroup { command: HOSTILE.into(), ..wire::PeerGroup::default() }],
                ..wire::Peers::default()
            }),
            coverage: Some(wire::Coverage {
                capabilities: vec![wire::Capability {
                    name: HOSTILE.into(),
                    reason: HOSTILE.into(),
                    ..wire::Capability::default()
                }],
                drops: vec![wire::Drop { name: HOSTILE.into(), count: 1 }],
                ..wire::Coverage::default()
            }),
            ..wire::Heartbeat::default()
        }
    }

    /// Looks at the debug output, so that a text which is added to the contract later cannot be forgotten here.
    #[test]
    fn no_text_of_a_heartbeat_keeps_anything_hidden() {
        let mut heartbeat = hostile();
        make_harmless(&mut heartbeat);
        let json = serde_json::to_value(&heartbeat).unwrap_or_default();
        let mut texts = Vec::new();
        let mut open = vec![&json];
        while let Some(value) = open.pop() {
            match value {
                serde_json::Value::String(text) => texts.push(text.as_str()),
                serde_json::Value::Array(values) => open.extend(values),
                serde_json::Value::Object(fields) => open.extend(fields.values()),
                _ => {}
            }
        }
        assert!(texts.len() > 30, "{}", texts.len());
        for text in texts {
            assert!(!text.contains(is_hidden) && text.len() <= MAX_NAME_BYTES, "{text:?}");
        }
    }

    #[test]
    fn the_contract_takes_it() {
        let mut heartbeat = hostile();
        make_harmless(&mut heartbeat);
        let envelope = wire::Envelope {
            version: heartbeat::envelope::VERSION,
            node_id: "host:0123456789abcdef0123456789abcdef".into(),
            boot_id: "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11".into(),
            oldest_retained_sequence: 1,
            sent_unix_ms: 2,
            heartbeats: vec![heartbeat],
        };
        let decoded = heartbeat::decode(&heartbeat::encode(&envelope).unwrap_or_default());
        assert!(decoded.is_ok(), "{decoded:?}");
    }

    #[test]
    fn two_long_names_that_differ_at_their_end_stay_two() {
        let name = |end: &str| harmless(&format!("{}{end}", "x".repeat(2_000))).unwrap_or_default();
        assert_ne!(name("a"), name("b"));
        assert_eq!(name("a").len(), MAX_NAME_BYTES);
        assert_eq!(harmless("/docker/1"), None);
    }
}
