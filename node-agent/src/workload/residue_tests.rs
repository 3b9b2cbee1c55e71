use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn samples(of: &[(&str, u64)]) -> Samples {
    let has_children = |path: &str| of.iter().any(|(other, _)| parent(other) == Some(path));
    let ids = of.iter().map(|(path, usage_ms)| {
        // As in a kernel's tree: the same path has the same id, and what comes later a higher one.
        let id = if *path == ROOT { 1 } else { 10 + path.bytes().map(u64::from).sum::<u64>() };
        ((*path).to_owned(), Sample { id, usage_ns: usage_ms * MS, has_children: has_children(path) })
    });
    ids.collect()
}

fn missing(residue: &mut Residue, samples: &Samples) -> u64 {
    residue.sampled(samples);
    residue.missing_ns()
}

fn taken(class: Class, path: &str, ms: u64) -> TakenUp {
    TakenUp { class, path: path.to_owned(), cpu_ns: ms * MS }
}

/// A host of version 1 with two cgroups, of which one is housekeeping's alone.
fn begun() -> Residue {
    let mut residue = Residue::new(Total::Root);
    residue.account(Some("/a"), Class::Workload, 0);
    residue.account(Some("/b"), Class::Housekeeping, 0);
    residue.begin(&samples(&[("/", 100), ("/a", 50), ("/b", 10)]));
    residue
}

#[test]
fn what_a_lost_process_used_goes_to_its_cgroup_once() {
    let mut residue = begun();
    residue.account(Some("/a"), Class::Workload, 20 * MS);
    let now = samples(&[("/", 620), ("/a", 570), ("/b", 10)]);
    assert_eq!(missing(&mut residue, &now), 500 * MS);
    assert_eq!(residue.take_up(0), [taken(Class::Workload, "/a", 500)]);
    assert_eq!(missing(&mut residue, &now), 0);
    assert_eq!(residue.take_up(0), []);
}

#[test]
fn what_is_accounted_for_late_is_not_taken_up_for_another_one() {
    let mut residue = begun();
    let now = samples(&[("/", 600), ("/a", 550), ("/b", 10)]);
    assert_eq!(missing(&mut residue, &now), 500 * MS);
    assert_eq!(residue.take_up(0).len(), 1);
    // It was not lost, but late: the next loss pays for it first.
    residue.account(Some("/a"), Class::Workload, 500 * MS);
    let now = samples(&[("/", 900), ("/a", 850), ("/b", 10)]);
    assert_eq!(missing(&mut residue, &now), 0);
    let now = samples(&[("/", 1_200), ("/a", 1_150), ("/b", 10)]);
    assert_eq!(missing(&mut residue, &now), 100 * MS);
}

#[test]
fn a_task_that_moves_is_no_loss_and_its_old_cgroup_gets_nothing() {
    let mut residue = begun();
    // 300 ms in /b, and after the move 100 in /a, to which all is attributed.
    residue.account(Some("/a"), Class::Workload, 400 * MS);
    let now = samples(&[("/", 500), ("/a", 150), ("/b", 310)]);
    assert_eq!(missing(&mut residue, &now), 0);
    assert_eq!(residue.take_up(0), []);
    // A real loss in the interval after that is told where it is.
    let now = samples(&[("/", 700), ("/a", 150), ("/b", 510)]);
    assert_eq!(missing(&mut residue, &now), 200 * MS);
    assert_eq!(residue.take_up(0), [taken(Class::Housekeeping, "/b", 200)]);
}

#[test]
fn where_a_task_moved_in_the_same_interval_the_loss_is_workload_of_the_cgroup_above() {
    let mut residue = begun();
    residue.account(Some("/c"), Class::Workload, 300 * MS);
    let now = samples(&[("/", 700), ("/a", 350), ("/b", 310), ("/c", 0)]);
    assert_eq!(missing(&mut residue, &now), 300 * MS, "600 were used and 300 accounted for");
    assert_eq!(residue.take_up(0), [taken(Class::Workload, "/", 300)]);
}

#[test]
fn a_loss_elsewhere_is_not_told_where_a_task_moved_away() {
    let mut residue = begun();
    // It used 3 s in one cgroup, moved, and ended in the other one, where all of it is accounted for; 64 ms were lost in the root itself.
    residue.account(Some("/b"), Class::Workload, 4_500 * MS);
    let now = samples(&[("/", 100 + 4_564), ("/a", 50 + 3_000), ("/b", 10 + 1_500)]);
    assert_eq!(missing(&mut residue, &now), 64 * MS);
    assert_eq!(residue.take_up(0), [taken(Class::Workload, "/", 64)]);
}

#[test]
fn a_cgroup_that_is_gone_leaves_its_loss_to_the_one_above() {
    let mut residue = Residue::new(Total::Root);
    residue.account(Some("/job/one"), Class::Workload, 0);
    residue.begin(&samples(&[("/", 0), ("/job", 0), ("/job/one", 0)]));
    residue.account(Some("/job/one"), Class::Workload, 100 * MS);
    assert_eq!(missing(&mut residue, &samples(&[("/", 400), ("/job", 400)])), 300 * MS);
    assert_eq!(residue.take_up(0), [taken(Class::Workload, "/job", 300)]);
}

#[test]
fn a_class_is_told_only_by_a_cgroup_of_one_class_without_children() {
    for (class, has_children, expected) in [
        (Class::Housekeeping, false, Class::Housekeeping),
        (Class::Housekeeping, true, Class::Workload),
        (Class::Own, false, Class::Own),
        (Class::Workload, false, Class::Workload),
    ] {
        let node = Node { classes: 1 << class as u8, has_children, ..Node::default() };
        assert_eq!(class_of(&node), expected);
    }
    let mixed = 1 << Class::Housekeeping as u8 | 1 << Class::Workload as u8;
    assert_eq!(class_of(&Node { classes: mixed, ..Node::default() }), Class::Workload);
    assert_eq!(class_of(&Node::default()), Class::Workload, "nobody was ever seen there");
}

#[test]
fn what_found_no_place_is_not_missing() {
    let mut residue = begun();
    residue.account(None, Class::Workload, 300 * MS);
    assert_eq!(missing(&mut residue, &samples(&[("/", 400), ("/a", 350), ("/b", 10)])), 0);
}

/// A host of version 2: the root's own counter says nothing.
fn begun_v2() -> Residue {
    let mut residue = Residue::new(Total::TopLevel);
    residue.account(Some("/system.slice/x.service"), Class::Workload, 0);
    residue.begin(&samples(&[("/", 9), ("/init.scope", 5), ("/system.slice", 50), ("/system.slice/x.service", 50)]));
    residue
}

#[test]
fn in_version_2_those_below_the_root_are_added_up() {
    let mut residue = begun_v2();
    residue.account(Some("/"), Class::Kernel, 700 * MS);
    // A service starts: one millisecond in process 1's cgroup, before the move.
    residue.account(Some("/system.slice/x.service"), Class::Workload, 101 * MS);
    let now = samples(&[("/", 7), ("/init.scope", 6), ("/system.slice", 350), ("/system.slice/x.service", 350)]);
    assert_eq!(missing(&mut residue, &now), 200 * MS);
    // The root gets what process 1's cgroup had and nobody accounted for there.
    let root = taken(Class::Workload, "/", 1);
    assert_eq!(residue.take_up(0), [taken(Class::Workload, "/system.slice/x.service", 199), root]);
}

#[test]
fn in_version_2_a_task_that_moves_to_the_root_is_not_counted_twice() {
    let mut residue = begun_v2();
    residue.account(Some("/"), Class::Workload, 300 * MS);
    let now = samples(&[("/", 0), ("/init.scope", 5), ("/system.slice", 350), ("/system.slice/x.service", 350)]);
    assert_eq!(missing(&mut residue, &now), 0);
}

#[test]
fn in_version_2_an_interval_in_which_a_part_of_the_sum_went_is_not_judged() {
    let mut residue = begun_v2();
    residue.account(Some("/user.slice"), Class::Workload, 0);
    assert_eq!(
        missing(&mut residue, &samples(&[("/", 0), ("/init.scope", 5), ("/system.slice", 50), ("/user.slice", 0)])),
        0
    );
    assert_eq!(residue.take_up(0), []);
    // Its task moved, and it is gone with the counter of what that had used there.
    residue.account(Some("/user.slice"), Class::Workload, 900 * MS);
    let now = samples(&[("/", 0), ("/init.scope", 5), ("/system.slice", 450)]);
    assert_eq!(missing(&mut residue, &now), 0);
    assert_eq!(residue.take_up(20 * MS), []);
    let now = samples(&[("/", 0), ("/init.scope", 5), ("/system.slice", 480)]);
    assert_eq!(missing(&mut residue, &now), 10 * MS, "30, less what may have been used between samples then");
}

#[test]
fn a_cgroup_that_came_again_under_its_name_begins_anew() {
    let mut residue = begun();
    let now = samples(&[("/", 100), ("/a", 3), ("/b", 10)]);
    assert_eq!(missing(&mut residue, &now), 0);
    assert_eq!(residue.take_up(0), []);
    assert_eq!(residue.nodes.get("/a").map(Node::missing_ns), Some(0));
}

proptest! {
    /// Whatever runs, moves, is lost or late: the rows never hold more than the kernel says, but for what is late at that moment.
    #[test]
    fn the_sum_is_never_above_the_kernels_and_all_that_was_lost_is_in_it_at_last(
        intervals in prop::collection::vec(
            prop::collection::vec((0_usize..3, 0_usize..3, 0_u64..500, prop::bool::weighted(0.3)), 0..8),
            1..12,
        )
    ) {
        const PLACES: [&str; 3] = ["/a", "/b", "/b/c"];
        let mut residue = Residue::new(Total::Root);
        let mut usage = [0_u64; 3];
        let now = |usage: &[u64; 3]| {
            let sum: u64 = usage.iter().sum();
            samples(&[("/", sum), ("/a", usage[0]), ("/b", usage[1] + usage[2]), ("/b/c", usage[2])])
        };
        PLACES.into_iter().for_each(|place| residue.account(Some(place), Class::Workload, 0));
        residue.begin(&now(&usage));
        let (mut accounted, mut taken_up) = (0, 0);
        for interval in intervals {
            for (from, to, ms, is_lost) in interval {
                usage[from] += ms;
                if !is_lost {
                    residue.account(Some(PLACES[to]), Class::Workload, ms * MS);
                    accounted += ms * MS;
                }
            }
            let all: u64 = usage.iter().sum();
            let left = missing(&mut residue, &now(&usage));
            taken_up += residue.take_up(0).iter().map(|taken| taken.cpu_ns).sum::<u64>();
            prop_assert!(accounted + taken_up <= all * MS);
            prop_assert!(all * MS - accounted - taken_up < 4 * THRESHOLD_NS, "{left} were missing");
        }
    }
}
