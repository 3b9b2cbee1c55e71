//! What a sweep does to findings and messages, on SQLite and on a real PostgreSQL server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod evidence;
mod site;
mod verdicts;

use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use lab::sweeper::Sweeper;
use model::Provider;
use notifier::Receipt;
use sea_orm::ConnectionTrait as _;
use site::{BUSY, Site, kinds};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use sweeper::{
    findings::Status,
    inventory::{self, Kind, Scope, Silent},
    reconcile::{Change, EventKind},
    store::{Schema, Store},
    sweep::{self, Context, Progress, Report},
    work_unit::WorkUnit,
};

lab::on_both_databases! {
    an_idle_node_is_found_priced_and_told_once,
    a_plan_needs_more_than_one_sweep_and_none_is_made_for_a_machine_on_premises,
    silence_closes_nothing_and_work_does,
    work_in_between_ends_one_finding_and_begins_another,
    an_agent_that_is_restarted_ten_times_in_a_night_is_told_once,
    a_schedule_that_is_slower_than_the_look_back_confirms_the_same_finding,
    a_finding_of_the_version_before_is_carried_over_and_told_no_second_time,
    two_sweepers_at_once_open_one_finding_and_one_message_a_channel,
    a_sweep_that_was_paused_past_its_lease_writes_nothing_and_is_done_again,
    a_node_passes_from_the_uncovered_ones_to_its_scope_with_one_open_finding,
    a_claimed_message_is_left_alone_until_its_claim_ends,
    a_message_of_a_sweeper_whose_clock_is_ahead_is_due_at_once,
    a_message_waits_for_its_next_attempt_and_may_be_discarded,
}

async fn an_idle_node_is_found_priced_and_told_once(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(5, BUSY).await;
    assert_eq!(site.sweep().await.counts.active, 1);
    let quiet_since = site.now();
    site.pass(10, 0).await;
    let report = site.sweep().await;
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert_eq!((finding.since, finding.cost_micro_usd_per_hour), (quiet_since, Some(250_000)));
    assert_eq!((report.opened.as_slice(), report.counts.idle), ([finding.id.clone()].as_slice(), 1));
    assert_eq!(site.pending().await, 2, "one message a channel");

    site.pass(3, 0).await;
    let again = site.sweep().await;
    assert!(again.opened.is_empty());
    assert_eq!(again.findings[0].id, finding.id);
    assert_eq!(site.pending().await, 2, "a repeated sweep tells nothing new");
}

async fn a_plan_needs_more_than_one_sweep_and_none_is_made_for_a_machine_on_premises(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    site.sweep().await;
    let open = site.context.store.open_findings().await.unwrap();
    assert_eq!(open[0].no_plan_because.as_deref(), Some("confirmed by 1 of 2 sweeps in a row"));
    site.pass(1, 0).await;
    site.sweep().await;
    let open = site.context.store.open_findings().await.unwrap();
    assert_eq!((open[0].confirmed_sweeps, open[0].plan.is_none()), (2, true));
    assert!(open[0].no_plan_because.as_deref().unwrap().contains("on premises"));
}

async fn silence_closes_nothing_and_work_does(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let id = site.sweep().await.opened[0].clone();
    let later = site.now() + SignedDuration::from_hours(2);
    let silent = sweep::run(&site.context, later, &Silent).await.unwrap();
    assert_eq!((silent.findings.len(), silent.blind_spots.len()), (1, 1));
    assert_eq!(site.context.store.open_findings().await.unwrap()[0].confirmed_sweeps, 0, "no longer in a row");

    site.pass(1, BUSY).await;
    let report = site.sweep().await;
    assert_eq!((report.closed.as_slice(), report.findings.len()), ([id].as_slice(), 0));
    let closed = site.context.store.closed_findings(10).await.unwrap();
    let Status::Closed { because, .. } = &closed[0].status else { panic!("{closed:?}") };
    assert!(because.contains("CPU time of workloads"), "{because}");
    let decisions = site.decisions().await;
    let [records] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(kinds(records), [EventKind::Opened, EventKind::Changed, EventKind::Resolved]);
    assert_eq!(records[1].change, Change::Unconfirmed);
    assert!(matches!(&records[2].change, Change::Resolve { because: kept } if kept == because));
}

async fn work_in_between_ends_one_finding_and_begins_another(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let first = site.sweep().await.opened[0].clone();
    site.pass(1, BUSY).await;
    site.pass(20, 0).await;
    let report = site.sweep().await;
    assert_eq!(report.closed, std::slice::from_ref(&first));
    assert_eq!(report.opened.len(), 1);
    assert_ne!(report.opened[0], first);
    assert_eq!(site.pending().await, 2, "of two findings the one that is left, on two channels");
    assert_eq!(site.context.store.outbox_counts().await.unwrap().withdrawn, 2, "nobody needs to learn of the other");
    let messages = site.context.store.messages(None, 10).await.unwrap();
    let answers: Vec<_> = messages.into_iter().map(|message| message.answers.map(|event| event.0)).collect();
    assert_eq!(answers, [Some(first.clone()), Some(first.clone()), None, None], "in the thread of the one before");
    let decisions = site.decisions().await;
    let [ended, opened] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(
        (kinds(ended), kinds(opened)),
        (vec![EventKind::Opened, EventKind::Interrupted], vec![EventKind::Opened])
    );
    assert!(matches!(ended[1].change, Change::Interrupt { .. }), "what ended it is kept: {:?}", ended[1].change);
}

async fn an_agent_that_is_restarted_ten_times_in_a_night_is_told_once(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let id = site.sweep().await.opened[0].clone();
    for _ in 0..10 {
        // More than the host's own counters can vouch for.
        site.restart(20);
        let quiet_since = site.now();
        site.pass(2, 0).await;
        let report = site.sweep().await;
        assert_eq!((report.findings.len(), report.counts.unknown), (1, 1), "{report:?}");
        site.pass(12, 0).await;
        let report = site.sweep().await;
        let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
        assert_eq!((&finding.id, report.opened.len(), report.closed.len()), (&id, 0, 0));
        assert!(finding.since >= quiet_since, "nothing is said of a time that nobody saw: {finding:?}");
    }
    assert_eq!(site.pending().await, 2, "one message a channel");
    site.restart(20);
    site.pass(1, BUSY).await;
    site.pass(1, BUSY).await;
    assert_eq!(site.sweep().await.closed, [id], "work ends it");
    let decisions = site.decisions().await;
    let [records] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(records.len(), 22, "opened, unconfirmed and confirmed ten times, closed");
}

async fn a_schedule_that_is_slower_than_the_look_back_confirms_the_same_finding(url: String) {
    let mut site = Site::new(&url).await;
    site.context.config.verdict.lookback = Duration::from_secs(600);
    site.pass(20, 0).await;
    let id = site.sweep().await.opened[0].clone();
    for confirmed in 2..5 {
        site.pass(40, 0).await;
        let report = site.sweep().await;
        assert_eq!((report.findings[0].id.as_str(), report.closed.len()), (id.as_str(), 0));
        let open = site.context.store.open_findings().await.unwrap();
        assert_eq!(open[0].confirmed_sweeps, confirmed);
    }
    assert_eq!(site.pending().await, 2, "one message a channel");
}

async fn a_finding_of_the_version_before_is_carried_over_and_told_no_second_time(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let id = site.sweep().await.opened[0].clone();
    let database = site.context.store.connection();
    for statement in [
        "UPDATE findings SET class = 'idle_instance', open_key = 'idle_instance|' || resource",
        "DELETE FROM seaql_migrations WHERE version = 'm0010_idle_class'",
    ] {
        let done = database.execute_unprepared(statement).await.unwrap();
        assert_eq!(done.rows_affected(), 1, "{statement}");
    }
    site.context.store.migrate().await.unwrap();
    site.pass(2, 0).await;
    let report = site.sweep().await;
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert_eq!((&finding.id, finding.class.as_str(), report.opened.len()), (&id, "idle_node", 0));
    assert_eq!(site.pending().await, 2);
}

async fn two_sweepers_at_once_open_one_finding_and_one_message_a_channel(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    let other = Site { context: site.context.clone(), node: site.node.clone(), ..site };
    let reports = tokio::join!(site_sweep(&other.context, other.now(), 1), site_sweep(&other.context, other.now(), 2));
    assert_eq!(reports.0.opened.len() + reports.1.opened.len(), 1);
    assert_eq!(other.context.store.open_findings().await.unwrap().len(), 1);
    assert_eq!(other.pending().await, 2);
}

async fn site_sweep(context: &Context, now: Timestamp, seconds: i64) -> Report {
    sweep::run(context, now + SignedDuration::from_secs(seconds), &Silent).await.unwrap()
}

async fn a_claimed_message_is_left_alone_until_its_claim_ends(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    site.sweep().await;
    let store = &site.context.store;
    let now = store.now().await.unwrap();
    let until = now + SignedDuration::from_mins(10);
    let claim = async |at: Timestamp| store.claim_message("slack", at, until).await.unwrap();
    let (one, two) = tokio::join!(claim(now), claim(now));
    assert!(one.is_some() != two.is_some(), "of two sweepers one has it");
    assert_eq!(claim(until - SignedDuration::from_secs(1)).await, None);
    assert!(claim(until).await.is_some(), "who died with a claim leaves it to others");
}

async fn a_message_of_a_sweeper_whose_clock_is_ahead_is_due_at_once(url: String) {
    let mut site = Site::new(&url).await;
    site.began = Timestamp::now() + SignedDuration::from_hours(5);
    site.pass(20, 0).await;
    site.sweep().await;
    assert_eq!(site.pending().await, 2);
    let store = &site.context.store;
    let now = store.now().await.unwrap();
    assert!(store.next_message_due(&["email"]).await.unwrap().is_some_and(|due| due <= now));
    assert!(store.claim_message("email", now, now).await.unwrap().is_some());
}

async fn a_message_waits_for_its_next_attempt_and_may_be_discarded(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    site.sweep().await;
    let store = &site.context.store;
    let now = store.now().await.unwrap();
    let claim = async |channel: &str, at: Timestamp| store.claim_message(channel, at, at).await.unwrap();
    let (email, slack) = (claim("email", now).await.unwrap(), claim("slack", now).await.unwrap());
    let next = now + SignedDuration::from_mins(5);
    store.message_failed(&email, "451 try again later", Some(next)).await.unwrap();
    store.message_failed(&slack, "channel_not_found", None).await.unwrap();
    assert_eq!(claim("email", next - SignedDuration::from_secs(1)).await, None);
    assert_eq!(store.next_message_due(&["email"]).await.unwrap(), Some(next));
    let again = claim("email", next).await.unwrap();
    assert_eq!(again.attempts(), 1);
    let receipt = Receipt { reference: Some("<1@example.org>".into()), in_thread: false, said: "250 OK".into() };
    store.message_sent(&again, &receipt, next).await.unwrap();
    let counts = store.outbox_counts().await.unwrap();
    assert_eq!((counts.pending, counts.sent, counts.failed), (0, 1, 1));
}

/// Stops the sweep in the midst of its reading, once, for longer than its lease lasts; meanwhile somebody else claims the
/// work unit, and releases it again.
#[derive(Debug)]
struct Pause {
    url: String,
    done: AtomicBool,
}

impl inventory::Progress for Pause {
    fn scopes(&self, _total: usize) {}
    fn page(&self, _scope: &Scope, _kind: Kind, _listed: usize) {}
    fn scope_done(&self, _scope: &Scope) {}
}

impl Progress for Pause {
    fn machines(&self, _total: usize) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        // On a thread and in a runtime of its own: those of the sweep stand still, as they would in a stopped process.
        let steal = async {
            let store = Store::connect(&self.url).await.unwrap();
            let taken = lab::wait::until("the end of the lease", Duration::from_secs(60), || async {
                store.claim(&WorkUnit::Uncovered, "thief", Duration::from_secs(600)).await.unwrap()
            })
            .await;
            assert_eq!((taken.epoch, taken.taken_from.as_deref()), (2, Some("paused")));
            store.release_leases("thief").await.unwrap();
        };
        let in_own_runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(steal);
        std::thread::scope(|scope| scope.spawn(in_own_runtime).join().unwrap());
    }

    fn waits_for(&self, _unit: &WorkUnit, _owner: &str) {}
}

async fn a_sweep_that_was_paused_past_its_lease_writes_nothing_and_is_done_again(url: String) {
    let mut site = Site::new(&url).await;
    site.pass(20, 0).await;
    site.context.config.sweep.lease = Duration::from_secs(1);
    let pause = Pause { url, done: AtomicBool::new(false) };
    let now = site.now() + SignedDuration::from_secs(1);
    let report = sweep::run_as(&site.context, "paused", now, &pause).await.unwrap();
    assert_eq!((report.opened.len(), report.complete), (1, true));
    let state = site.context.store.work_units().await.unwrap().states.remove(0);
    assert_eq!((state.epoch, state.held), (3, None));
    assert_eq!(site.context.store.last_sweeps(10).await.unwrap().len(), 1, "of the first sample nothing is written");
    assert_eq!(site.pending().await, 2);
}

fn instance() -> NodeId {
    "aws:123456789012:eu-central-1:i-0123456789abcdef0".parse().unwrap()
}

/// Makes the node's scope known, as a replica does that finds it.
async fn find_scope(site: &Site) {
    let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
    site.context.store.register_scopes(&[scope].into(), Duration::from_secs(120)).await.unwrap();
}

async fn a_node_passes_from_the_uncovered_ones_to_its_scope_with_one_open_finding(url: String) {
    let mut site = Site::with_node(&url, instance()).await;
    site.pass(20, 0).await;
    let first = site.sweep().await;
    assert_eq!((first.opened.len(), first.findings[0].class.as_str()), (1, "idle_node"));
    find_scope(&site).await;
    site.pass(1, 0).await;
    let second = site.sweep().await;
    assert_eq!((second.findings.len(), second.counts.idle), (1, 1), "it is judged in one work unit: {second:?}");
    assert_eq!(site.context.store.work_units().await.unwrap().states.len(), 2);
    assert_eq!(site.pending().await, 2, "nothing is told twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_but_those_that_sweep_changes_the_schema_and_the_kill_switch_needs_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweeper = Sweeper::start(folder.path(), "[aws]\nenabled = \"no\"\n", &[]).await;
    sweeper.stop().await;
    let url = format!("sqlite://{}/data/sweeper.db?mode=rw", folder.path().display());
    let store = Store::connect(&url).await.unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    let older = "DELETE FROM seaql_migrations WHERE version = 'm0010_idle_class'";
    store.connection().execute_unprepared(older).await.unwrap();
    let readers = ["findings", "replay", "scopes", "inventory", "jobs", "nodes"];
    let changing =
        ["approvers add ada", "nodes token --node host:00000000000000000000000000000000", "messages retry 1"];
    for command in readers.into_iter().chain(changing) {
        let words: Vec<&str> = command.split(' ').collect();
        let done = sweeper.run(&words).await;
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains("of an older version (1 steps"), "{command}: {said}");
        assert_eq!(store.schema().await.unwrap(), Schema::Older(1), "{command}");
    }
    let switch = async |to: &str| {
        let done = sweeper.run(&["kill-switch", to]).await;
        assert!(done.status.success(), "{done:?}");
        assert_eq!(store.kill_switch().await.unwrap().is_on, to == "on");
    };
    switch("on").await;
    assert_eq!(store.schema().await.unwrap(), Schema::Older(1));
    let (code, _) = sweeper.sweep().await;
    assert_eq!((code, store.schema().await.unwrap()), (0, Schema::Current));
    let newer = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 0)";
    store.connection().execute_unprepared(newer).await.unwrap();
    let done = sweeper.run(&["findings"]).await;
    assert!(done.status.success(), "a newer schema that says that this version may use it: {done:?}");
    let (code, _) = sweeper.sweep().await;
    assert_eq!((code, store.schema().await.unwrap()), (0, Schema::Newer(1)));
    store.connection().execute_unprepared("UPDATE needed_step SET step = 'm9999_later'").await.unwrap();
    for command in ["findings", "sweep", "serve"] {
        let done = sweeper.run(&[command]).await;
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains("and must know (m9999_later) to use it"), "{command}: {said}");
    }
    switch("off").await;
    switch("on").await;
}
