//! A sample becomes a heartbeat. Pure: no file, no clock.
//!
//! It invents nothing. A column that was not measured is absent in every row, and what only the exporter knows (sequence, spool, the
//! agent's own traffic) is left to it.

use crate::{
    collect::Sample,
    host::{runtime::report::Container, shipped::Existing},
    model::{Moment, States},
    workload::{Activity, Class, Name, OVERFLOW, Row, activity::to_wire},
};
use heartbeat::wire;

/// What the agent's own process cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCosts {
    /// CPU time, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Resident memory now, in bytes.
    pub resident_bytes: Option<u64>,
    /// Highest resident memory so far, in bytes.
    pub peak_resident_bytes: Option<u64>,
}

/// Turns a sample into a heartbeat with sequence 0.
///
/// `previous` is the moment of the sample before, and for the first one the moment at which the counters were zero.
#[must_use]
pub fn heartbeat(previous: &Moment, sample: &Sample, own: &OwnCosts) -> wire::Heartbeat {
    let mut heartbeat = wire::Heartbeat {
        sequence: 0,
        interval: Some(interval(previous, sample)),
        host: Some(host(sample)),
        counters: Some(sample.host.to_wire()),
        workloads: sample.rows.iter().map(|(class, key, row)| workload(class, key, row, sample)).collect(),
        runs: sample.runs.to_wire(sample.measured),
        coverage: Some(wire::Coverage {
            source: sample.source.into(),
            capabilities: sample.capabilities.to_wire(),
            drops: sample
                .drops
                .iter()
                .map(|(name, count)| wire::Drop { name: (*name).to_owned(), count: *count })
                .collect(),
        }),
        agent: Some(wire::AgentCost {
            cpu_ns: own.cpu_ns,
            resident_bytes: own.resident_bytes,
            peak_resident_bytes: own.peak_resident_bytes,
            bpf_ns: sample.programs.map(|(ns, _)| ns),
            bpf_runs: sample.programs.map(|(_, runs)| runs),
            ..wire::AgentCost::default()
        }),
        ..wire::Heartbeat::default()
    };
    heartbeat.schedules = Some(schedules(&sample.schedules));
    sample.signals.add_to(&mut heartbeat);
    heartbeat
}

fn interval(previous: &Moment, sample: &Sample) -> wire::Interval {
    // The wall clock may have been set in between. The boot clock has not: the begin follows from the end.
    let length_ns = sample.taken.boottime_ns.saturating_sub(previous.boottime_ns);
    let length_ms = i64::try_from(length_ns / 1_000_000).unwrap_or(i64::MAX);
    let observed_ns = sample.taken.boottime_ns.saturating_sub(sample.counters_since.boottime_ns);
    let observed_ms = i64::try_from(observed_ns / 1_000_000).unwrap_or(i64::MAX);
    wire::Interval {
        start_unix_ms: sample.taken.unix_ms.saturating_sub(length_ms),
        end_unix_ms: sample.taken.unix_ms,
        start_boottime_ns: previous.boottime_ns,
        end_boottime_ns: sample.taken.boottime_ns,
        observed_since_unix_ms: sample.taken.unix_ms.saturating_sub(observed_ms),
        counters_since_boottime_ns: sample.counters_since.boottime_ns,
    }
}

fn host(sample: &Sample) -> wire::Host {
    let facts = &sample.facts;
    wire::Host {
        hostname: facts.hostname.clone(),
        kernel_release: facts.kernel_release.clone(),
        architecture: facts.architecture.clone(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        interval_ms: u32::try_from(sample.interval.as_millis()).unwrap_or(u32::MAX),
        gpu_present: facts.gpu_present,
        rules_version: sample.rules_version.clone(),
        rules_digest: sample.rules_digest.clone(),
    }
}

fn workload(class: Class, key: &str, row: &Row, sample: &Sample) -> wire::WorkloadActivity {
    let meaning = sample.names.of(key);
    let usage = sample.cgroups.get(&(class, key.to_owned())).copied().unwrap_or_default();
    wire::WorkloadActivity {
        class: class.to_wire().into(),
        key: key.to_owned(),
        top_command: row.top_command.clone(),
        name: meaning
            .and_then(|meaning| meaning.name.as_ref())
            .map(|one| wire::WorkloadName { container: sample.containers.get(key).map(container), ..name(one) }),
        // Said only where the name is that of something inside the job.
        batch_job: meaning.filter(|meaning| meaning.job != meaning.name).and_then(|m| m.job.as_ref()).map(name),
        cpu_throttled_ns: usage.cpu_throttled_ns,
        cpu_throttled_periods: usage.cpu_throttled_periods,
        memory_working_set_bytes: usage.memory_working_set_bytes,
        memory_peak_bytes: usage.memory_peak_bytes,
        states: sample.measured.states.then(|| states(&row.activity)),
        not_run_ns: (sample.measured.states && row.activity.live_threads > 0 && row.activity.last_ran_boottime_ns > 0)
            .then(|| sample.taken.boottime_ns.saturating_sub(row.activity.last_ran_boottime_ns)),
        timed_wait_ns: row
            .activity
            .timed_since_boottime_ns
            .filter(|_| sample.measured.timed_waits)
            .map(|since_ns| sample.taken.boottime_ns.saturating_sub(since_ns)),
        peers: peers(key, sample),
        ..to_wire(&row.activity, sample.measured)
    }
}

/// Connections that whoever runs in a row's cgroup holds.
fn peers(key: &str, sample: &Sample) -> Option<u32> {
    let holding = sample.signals.connected.as_ref()?.holding.as_ref()?;
    // The row of all that fit no row of their own has no cgroup.
    if key == OVERFLOW { None } else { holding.peers_of(key) }
}

fn schedules(existing: &Existing) -> wire::Schedules {
    wire::Schedules {
        shipped_timers: existing.timers.map(|count| count.shipped),
        other_timers: existing.timers.map(|count| count.others),
        shipped_crontabs: existing.crontabs.map(|count| count.shipped),
        other_crontabs: existing.crontabs.map(|count| count.others),
        next_shipped_timer_unix_ms: existing.next.shipped_unix_ms,
        next_other_timer_unix_ms: existing.next.others_unix_ms,
    }
}

fn states(activity: &Activity) -> wire::TaskStates {
    let States { running, sleeping, uninterruptible, stopped, frozen } = activity.states;
    wire::TaskStates { running, sleeping, uninterruptible, stopped, frozen }
}

fn name(name: &Name) -> wire::WorkloadName {
    wire::WorkloadName { kind: name.kind.clone(), id: name.id.clone(), container: None }
}

fn container(told: &Container) -> wire::Container {
    wire::Container {
        name: told.name.clone(),
        pod: told.pod.clone(),
        namespace: told.namespace.clone(),
        owner: told.owner.clone(),
        image: told.image.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coverage::{Capabilities, Status},
        host::{
            cgroup_usage::Usage,
            counters::{Cpu, HostCounters, Traffic},
            facts::Facts,
            shipped::{Count, Next},
        },
        model::{Delta, Measured},
        workload::{Names, Rows, runs::Runs},
    };
    use node_agent_ebpf::Totals;
    use std::{collections::BTreeMap, time::Duration};

    fn sample(measured: Measured) -> Sample {
        let mut rows = Rows::default();
        rows.begin();
        let mut totals = Totals { peak_resident_bytes: 4096, forks: 2, execs: 1, exits: 1, ..Totals::default() };
        for (index, value) in (7..).zip(&mut totals.counters) {
            *value = index;
        }
        let delta = Delta {
            totals,
            resident_bytes: 2048,
            live_processes: 1,
            live_threads: 4,
            states: States { sleeping: 3, uninterruptible: 1, ..States::default() },
            last_ran_boottime_ns: 80_000_000_000,
            timed_since_boottime_ns: Some(30_000_000_000),
        };
        let path = "/slurm/uid_1/job_7/step_0/docker/0123456789ab";
        rows.add(Class::Workload, Some(path), "bwa", &delta);
        rows.add_failures(Class::Workload, Some(path), 9, 1);
        rows.add(Class::Kernel, Some("/"), "kworker/0:1", &Delta { live_processes: 1, ..Delta::default() });
        rows.end();
        let alignment = Container {
            name: "align".into(),
            pod: "align-7".into(),
            namespace: "omics".into(),
            owner: "Job/align".into(),
            image: "quay.io/biocontainers/bwa:0.7.18".into(),
            ..Container::default()
        };
        let mut names = Names::default();
        names.refresh(&workload_rules::built_in(), rows.iter().map(|(_, key, _)| key));
        let mut capabilities = Capabilities::default();
        capabilities.ok("tasks");
        capabilities.set("gpu", Status::NotApplicable, "no NVIDIA or AMD GPU is on the PCI bus");
        Sample {
            containers: [(path.to_owned(), alignment)].into(),
            runs: Runs::default(),
            taken: Moment { unix_ms: 1_800_000_030_000, boottime_ns: 90_000_000_000 },
            counters_since: Moment { unix_ms: 1_800_000_000_000, boottime_ns: 50_000_000_000 },
            interval: Duration::from_secs(30),
            facts: Facts {
                hostname: "node-1".into(),
                kernel_release: "6.1.0-cloud-amd64".into(),
                architecture: "x86_64".into(),
                cpus: 2,
                memory_bytes: 1 << 30,
                gpu_present: false,
            },
            host: HostCounters {
                cpu: Some(Cpu { user_ns: 3, system_ns: 2, iowait_ns: 4, steal_ns: 1 }),
                network: Some(Traffic { in_bytes: 10, out_bytes: 20 }),
                tasks_created: Some(99),
                ..HostCounters::default()
            },
            signals: crate::host::signals::Seen::default(),
            rows,
            cgroups: BTreeMap::from([(
                (Class::Workload, path.to_owned()),
                Usage { cpu_throttled_ns: Some(5_000), memory_working_set_bytes: Some(1 << 20), ..Usage::default() },
            )]),
            schedules: Existing {
                timers: Some(Count { shipped: 7, others: 1 }),
                crontabs: None,
                next: Next { shipped_unix_ms: Some(1_700_000_060_000), others_unix_ms: None },
            },
            names,
            rules_version: "2026-11-21".to_owned(),
            rules_digest: "0123456789abcdef".to_owned(),
            measured,
            source: wire::Source::Ebpf,
            capabilities,
            drops: vec![("detail_map_overflow", 0)],
            programs: Some((1_000, 3)),
        }
    }

    const ALL: Measured = Measured {
        tasks: true,
        cpu_split: true,
        run_queue: true,
        switches: true,
        faults: true,
        calls: true,
        disk: true,
        blocked_io: true,
        network: true,
        memory: true,
        direct_reclaim: true,
        process_events: true,
        execs: true,
        failures: true,
        oom_kills: true,
        syscalls: true,
        cgroups: true,
        states: true,
        timed_waits: true,
    };
    const PREVIOUS: Moment = Moment { unix_ms: 0, boottime_ns: 60_000_000_000 };

    #[test]
    fn a_sample_becomes_a_heartbeat_that_the_contract_accepts() {
        let mut heartbeat = heartbeat(&PREVIOUS, &sample(ALL), &OwnCosts { cpu_ns: Some(5), ..OwnCosts::default() });
        insta::assert_json_snapshot!(heartbeat);
        heartbeat.sequence = 1;
        let envelope = wire::Envelope {
            version: heartbeat::envelope::VERSION,
            node_id: "host:0123456789abcdef0123456789abcdef".into(),
            boot_id: "8e2b7a3c-52a3-4a2f-9b52-6d1f0a7d9c11".into(),
            oldest_retained_sequence: 1,
            sent_unix_ms: 1_800_000_030_001,
            heartbeats: vec![heartbeat],
        };
        let body = heartbeat::encode(&envelope).unwrap_or_default();
        assert!(heartbeat::decode(&body).is_ok());
    }

    #[test]
    fn what_was_not_measured_is_absent_and_not_zero() {
        let sample = Sample { cgroups: BTreeMap::new(), ..sample(Measured::default()) };
        let heartbeat = heartbeat(&PREVIOUS, &sample, &OwnCosts::default());
        for row in &heartbeat.workloads {
            let bare = wire::WorkloadActivity {
                class: row.class,
                key: row.key.clone(),
                top_command: row.top_command.clone(),
                live_processes: row.live_processes,
                live_threads: row.live_threads,
                name: row.name.clone(),
                batch_job: row.batch_job.clone(),
                ..wire::WorkloadActivity::default()
            };
            assert_eq!(*row, bare);
        }
    }

    #[test]
    fn a_wall_clock_that_was_set_does_not_change_the_length() {
        let heartbeat = heartbeat(&Moment { unix_ms: i64::MAX, ..PREVIOUS }, &sample(ALL), &OwnCosts::default());
        let interval = heartbeat.interval.unwrap_or_default();
        assert_eq!(interval.end_unix_ms - interval.start_unix_ms, 30_000);
        assert_eq!(interval.end_unix_ms - interval.observed_since_unix_ms, 40_000);
    }
}
