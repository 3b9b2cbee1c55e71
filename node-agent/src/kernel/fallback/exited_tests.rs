#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::{kernel::fallback::proc::Io, model::comm_bytes};
use node_agent_ebpf::counter;

fn record(process: u32, parent: u32, cpu_ns: u64) -> Record {
    Record {
        process,
        parent,
        uid: 1000,
        comm: comm_bytes(b"true"),
        is_last: true,
        wait_status: 0,
        scheduled_ns: cpu_ns,
        sums: Sums { cpu_ns, io: Some(Io { read_bytes: 10, written_bytes: 20, ..Io::default() }), ..Sums::default() },
        peak_resident_bytes: 4096,
    }
}

fn process(comm: &str, path: &str, cpu_ns: u64) -> Process {
    Process {
        start_ticks: 7,
        whose: Whose {
            path: Some(path.into()),
            uid: 1000,
            comm: comm_bytes(comm.as_bytes()),
            executable: Executable { inode: 7, ..Executable::default() },
            is_kernel_thread: false,
            is_own: false,
        },
        sums: Sums { cpu_ns, io: Some(Io { read_bytes: 1, written_bytes: 2, ..Io::default() }), ..Sums::default() },
        peak_resident_bytes: 0,
        resident_bytes: 0,
        threads: 1,
        has_exited: false,
    }
}

fn nobody(_: u32) -> Option<Place> {
    None
}

fn only(exited: &mut Exited) -> (Option<String>, Totals) {
    let (by_key, overflow, _) = exited.take();
    assert_eq!(overflow, <[Totals; 2]>::default());
    assert_eq!(by_key.len(), 1);
    let (whose, totals) = by_key.into_iter().next().unwrap();
    (whose.path.map(|path| path.to_string()), totals)
}

#[test]
fn who_was_seen_alive_adds_what_came_since_and_is_no_fork() {
    let mut exited = Exited::default();
    exited.now_living(HashMap::from([(5, process("a", "/x", 30_000_000))]));
    exited.add(&record(5, 1, 42_000_000), None, nobody);
    let (path, totals) = only(&mut exited);
    assert_eq!(path.as_deref(), Some("/x"));
    assert_eq!((totals.counters[counter::CPU_NS], totals.forks, totals.exits), (12_000_000, 0, 1));
    assert_eq!((totals.counters[counter::DISK_READ_BYTES], totals.counters[counter::DISK_WRITTEN_BYTES]), (9, 18));
}

#[test]
fn who_was_never_seen_is_a_fork_where_its_parent_lives() {
    let mut exited = Exited::default();
    exited.now_living(HashMap::from([(5, process("sh", "/x", 0))]));
    exited.add(&record(6, 5, 4_000_000), None, nobody);
    // Its own child ends after it.
    exited.add(&record(7, 6, 0), None, nobody);
    let (by_key, ..) = exited.take();
    assert!(by_key.keys().all(|whose| whose.path.as_deref() == Some("/x")));
    assert_eq!(by_key.values().map(|totals| (totals.forks, totals.exits)).collect::<Vec<_>>(), [(2, 2)]);
    assert!(by_key.keys().all(|whose| whose.executable == Executable::default()), "what they executed nobody has seen");
}

#[test]
fn an_orphan_is_work_of_which_nobody_knows_where_it_belonged() {
    for (parent, lookup) in [(1, "/init.scope"), (99, "")] {
        let mut exited = Exited::default();
        let place = |_| (!lookup.is_empty()).then(|| Place { path: Some(lookup.into()), ..Place::default() });
        exited.add(&record(6, parent, 0), None, place);
        assert_eq!(only(&mut exited).0, None, "{parent}");
    }
}

#[test]
fn threads_that_end_before_their_process_are_part_of_it() {
    let mut exited = Exited::default();
    exited.now_living(HashMap::from([(5, process("a", "/x", 0))]));
    exited.add(&Record { is_last: false, ..record(5, 1, 1_000) }, None, nobody);
    assert_eq!(exited.take().0.len(), 0);
    exited.add(&record(5, 1, 2_000), Some(3_500), nobody);
    let (_, totals) = only(&mut exited);
    assert_eq!(
        (totals.counters[counter::CPU_NS], totals.exits, totals.counters[counter::DISK_READ_BYTES]),
        (3_500, 1, 19)
    );
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let mut exited = Exited::default();
    exited.now_living(HashMap::from([(5, process("a", "/x", 30_000_000))]));
    // The old one exited, and the new one lives before the record of the old one is read.
    exited.now_living(HashMap::from([(5, Process { start_ticks: 9, ..process("b", "/y", 0) })]));
    exited.add(&record(5, 1, 42_000_000), None, nobody);
    let (path, totals) = only(&mut exited);
    assert_eq!((path.as_deref(), totals.counters[counter::CPU_NS]), (Some("/x"), 12_000_000));
    exited.add(&record(5, 1, 50_000_000), None, nobody);
    assert_eq!(only(&mut exited).0.as_deref(), Some("/y"));
    assert_eq!(exited.lost, 0);
}

#[test]
fn an_exit_without_a_record_is_a_loss() {
    let mut exited = Exited::default();
    exited.now_living(HashMap::from([(5, process("a", "/x", 0))]));
    exited.now_living(HashMap::new());
    assert_eq!(exited.lost, 0);
    exited.now_living(HashMap::new());
    assert_eq!(exited.lost, 1);
}

#[test]
fn a_flood_of_names_loses_attribution_and_never_the_sums() {
    let mut exited = Exited::default();
    let count = u64::try_from(MAX_KEYS).unwrap() + 10;
    for index in 0..count {
        let pid = u32::try_from(index).unwrap() + 10;
        let comm = comm_bytes(index.to_string().as_bytes());
        exited.add(&Record { comm, ..record(pid, 1, 0) }, None, nobody);
    }
    let (by_key, overflow, _) = exited.take();
    assert_eq!((by_key.len(), overflow[0].exits, exited.without_key), (MAX_KEYS, 10, 10));
    assert_eq!(by_key.values().map(|totals| totals.exits).sum::<u64>() + overflow[0].exits, count);
}

#[test]
fn how_a_process_ended_is_counted_unless_it_ended_well() {
    let mut exited = Exited::default();
    for wait_status in [256, 9, 256, 0] {
        exited.add(&Record { wait_status, ..record(6, 1, 0) }, None, nobody);
    }
    let mut failures: Vec<_> = exited.take().2.into_iter().map(|((_, status), count)| (status, count)).collect();
    failures.sort_unstable();
    assert_eq!(failures, [(9, 1), (256, 2)]);
}
