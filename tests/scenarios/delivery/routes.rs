//! Whose a finding is decides in which channel it is told, and what answers it goes where it was told.

use super::{
    REGION, Stage,
    fleet::{Fleet, heading},
};
use guards::policy::{Day, Hours};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};
use lab::{
    aws::{ACCOUNT, Instance, Moto},
    quiet,
    slack::Slack,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use sweeper::{
    config::{Config, SlackTeam},
    store::{Message, MessageState},
};

lab::on_both_databases! {
    each_team_is_told_in_its_channel_and_no_message_is_two_teams,
    on_saturday_whoever_may_decide_then_is_told_and_the_thread_stays_there,
    what_opens_again_outside_hours_is_told_to_whoever_may_decide_then,
    a_channel_that_is_archived_loses_nothing_and_says_where_it_was_meant_for,
    what_answers_in_a_channel_that_was_archived_since_goes_to_the_one_for_all,
    what_waits_for_a_team_that_is_configured_no_more_goes_there,
    what_the_version_before_wrote_goes_to_the_channel_for_all,
}

/// The id in Slack of one of its channels.
fn id_of(channel: &str) -> &'static str {
    Slack::OTHERS.iter().find(|(name, _)| *name == channel).expect("a channel").1
}

fn team(name: &str) -> SlackTeam {
    let tags = [("team".to_owned(), name.to_owned())].into();
    SlackTeam { name: name.to_owned(), channel: format!("#{name}"), tags, ..SlackTeam::default() }
}

/// Genomics and physics, by a tag.
pub(super) fn teams(config: &mut Config) {
    config.slack.teams = vec![team("genomics"), team("physics")];
}

/// Genomics alone, whose channel is read on weekdays.
fn on_weekdays(config: &mut Config) {
    let time = |hour| civil::time(hour, 0, 0, 0);
    let days = vec![Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri];
    let hours = Hours { days, from: time(8), to: time(18), zone: TimeZone::UTC };
    let outside = Some("#on-call".to_owned());
    config.slack.teams = vec![SlackTeam { hours: Some(hours), channel_outside_hours: outside, ..team("genomics") }];
}

/// That hour of the last day of this name.
fn last(day: civil::Weekday, hour: i8) -> Timestamp {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let last = today.nth_weekday(-1, day).expect("a day").at(hour, 0, 0, 0);
    last.to_zoned(TimeZone::UTC).expect("a moment").timestamp()
}

/// A machine of EC2.
fn machine(number: u32) -> NodeId {
    format!("aws:123456789012:eu-central-1:i-{number:017x}").parse().expect("a node id")
}

impl Fleet {
    /// One more machine of EC2 that has been idle, as it was listed with these tags; never listed if there are none.
    pub(super) async fn join_tagged(&self, number: u32, tags: Option<Value>) {
        let node = machine(number);
        self.join_as(&node, number, &format!("machine-{number}")).await;
        let Some(tags) = tags else { return };
        let record = json!({ "tags": tags }).to_string().replace('\'', "''");
        self.execute(&format!(
            "INSERT INTO resource_versions (kind, resource, from_unix_ms, provider, account, region, lasting_key, sha256, record) \
             VALUES ('instance', '{node}', 0, 'aws', '123456789012', 'eu-central-1', 'instance|{node}', 'x', '{record}')"
        ))
        .await;
    }

    /// What was posted so far, by its channel as it was sent.
    fn posted(&self) -> BTreeMap<String, Vec<Value>> {
        let mut posted: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for post in self.slack.messages() {
            posted.entry(post["channel"].as_str().expect("a channel").to_owned()).or_default().push(post);
        }
        posted
    }

    /// The one message of Slack's in this state.
    async fn only(&self, state: MessageState) -> Message {
        let mut messages = self.messages("slack", Some(state)).await;
        assert_eq!(messages.len(), 1, "{messages:#?}");
        messages.remove(0)
    }
}

/// Which machines a message names.
fn named(message: &Value) -> BTreeSet<u32> {
    let said = message.to_string();
    (0..10).filter(|number| said.contains(&format!("machine-{number}"))).collect()
}

async fn each_team_is_told_in_its_channel_and_no_message_is_two_teams(url: String) {
    let mut fleet = Fleet::of(&url, 0, Timestamp::now(), teams).await;
    let (genomics, physics) = (json!({ "team": "genomics" }), json!({ "team": "physics" }));
    for (number, tags) in (0..).zip([
        Some(genomics.clone()),
        Some(physics.clone()),
        Some(genomics),
        Some(physics),
        Some(json!({})),
        Some(json!({ "team": "<!channel> #genomics'; DROP TABLE outbox" })),
        None,
        Some(json!("no tags at all")),
    ]) {
        fleet.join_tagged(number, tags).await;
    }
    assert_eq!(fleet.sweep().await.opened.len(), 8);
    fleet.deliver().await;
    // All are of one account, and nobody's by an owner tag as a finding has it: but for their teams they would be one message.
    let posted = fleet.posted();
    let told = |channel: &str| posted[channel].iter().map(named).collect::<Vec<_>>();
    assert_eq!(told("#genomics"), [BTreeSet::from([0, 2])]);
    assert_eq!(told("#physics"), [BTreeSet::from([1, 3])]);
    assert_eq!(told("#waste"), [BTreeSet::from([4, 5, 6, 7])]);
    assert_eq!((posted.len(), fleet.smtp.delivered().len()), (3, 1), "mail has one list of readers");

    let messages = fleet.messages("slack", Some(MessageState::Sent)).await;
    let of = |number: u32| {
        let node = machine(number).to_string();
        let is_of = |message: &&Message| message.headline.contains(&format!("machine-{number} "));
        messages.iter().find(is_of).unwrap_or_else(|| panic!("{node}: {messages:#?}"))
    };
    for (number, destination, because) in [
        (0, Some("#genomics"), "it is a finding of `genomics`: its tag team is genomics"),
        (3, Some("#physics"), "it is a finding of `physics`: its tag team is physics"),
        (4, None, "it is no team's"),
        (5, None, "it is no team's"),
        (6, None, "which tags it carries is not known, and `genomics` asks for them"),
        (7, None, "which tags it carries is not known, and `genomics` asks for them"),
    ] {
        let message = of(number);
        assert_eq!((message.destination.as_deref(), message.routed_because.as_deref()), (destination, Some(because)));
    }
    let mails = fleet.messages("email", Some(MessageState::Sent)).await;
    assert!(mails.iter().all(|mail| mail.destination.is_none() && mail.routed_because.is_none()), "{mails:#?}");
}

async fn on_saturday_whoever_may_decide_then_is_told_and_the_thread_stays_there(url: String) {
    let mut fleet = Fleet::of(&url, 0, last(civil::Weekday::Saturday, 9), on_weekdays).await;
    fleet.join_tagged(1, Some(json!({ "team": "genomics" }))).await;
    assert_eq!(fleet.sweep().await.opened.len(), 1);
    assert_eq!(fleet.deliver().await.sent, 2, "nothing is kept until Monday");
    let opening = fleet.slack.messages().remove(0);
    assert_eq!(opening["channel"], "#on-call");
    let because = fleet.only(MessageState::Sent).await.routed_because.unwrap();
    assert!(because.contains("of `genomics`, outside their hours"), "{because}");

    // Nobody's machine any more, of a team that is there no more.
    fleet.execute("UPDATE resource_versions SET record = '{\"tags\":{}}'").await;
    fleet.reconfigure(|config| config.slack.teams = vec![team("physics")]);
    fleet.work_as(&machine(1), 1, "machine-1").await;
    assert_eq!(fleet.sweep().await.closed.len(), 1);
    fleet.deliver().await;
    let update = fleet.slack.updates().remove(0);
    assert_eq!((&update["channel"], &update["ts"]), (&json!(id_of("#on-call")), &opening["ts"]));
    assert!(heading(&update).contains("is no longer idle"), "{update}");
    assert_eq!(fleet.slack.messages().len(), 1);
}

async fn what_opens_again_outside_hours_is_told_to_whoever_may_decide_then(url: String) {
    let mut fleet = Fleet::of(&url, 0, last(civil::Weekday::Friday, 16), on_weekdays).await;
    fleet.join_tagged(1, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet.deliver().await;
    // It works, and rests again: within the hours still, after them, and once more after them.
    for (boot, hours) in [(11, 1), (12, 3), (13, 1)] {
        fleet.work_as(&machine(1), boot - if boot == 11 { 10 } else { 1 }, "machine-1").await;
        assert_eq!(fleet.sweep().await.closed.len(), 1, "{boot}");
        fleet.rest_again(&machine(1), boot, "machine-1", SignedDuration::from_hours(hours)).await;
        assert_eq!(fleet.sweep().await.opened.len(), 1, "{boot}");
        fleet.deliver().await;
    }
    let posts = fleet.slack.messages();
    let (day, night) = (id_of("#genomics"), id_of("#on-call"));
    let places: Vec<_> = posts.iter().map(|post| (post["channel"].as_str().unwrap(), &post["thread_ts"])).collect();
    let (first, third) = (&posts[0]["ts"], &posts[2]["ts"]);
    assert_eq!(places, [("#genomics", &Value::Null), (day, first), ("#on-call", &Value::Null), (night, third)]);
}

async fn a_channel_that_is_archived_loses_nothing_and_says_where_it_was_meant_for(url: String) {
    let mut fleet = Fleet::of(&url, 0, Timestamp::now(), teams).await;
    for number in 1..3 {
        fleet.join_tagged(number, Some(json!({ "team": "genomics" }))).await;
    }
    fleet.slack.archive(&["#genomics"]);
    fleet.sweep().await;
    let delivered = fleet.deliver().await;
    assert_eq!((delivered.sent, delivered.retried, delivered.failed), (4, 2, 0));
    let posts = fleet.slack.messages();
    let [post] = posts.as_slice() else { panic!("one bundle: {posts:?}") };
    assert_eq!((&post["channel"], named(post)), (&json!("#waste"), BTreeSet::from([1, 2])));
    let says = "Meant for #genomics, which did not take it";
    assert!(post.to_string().contains(says), "{post}");
    for message in fleet.messages("slack", Some(MessageState::Sent)).await {
        assert_eq!((message.destination.as_deref(), message.diverted_from.as_deref()), (None, Some("#genomics")));
        assert!(message.routed_because.as_deref().unwrap().contains("is_archived"), "{message:?}");
    }

    // It stays where it is, though the channel is there again, and goes on to say so; what is new goes where it is meant for.
    fleet.slack.archive(&[]);
    fleet.work_as(&machine(1), 1, "machine-1").await;
    fleet.join_tagged(3, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet.deliver().await;
    let update = fleet.slack.updates().remove(0);
    assert_eq!((&update["ts"], &update["channel"]), (&post["ts"], &json!("C0LABWASTE")));
    assert!(update.to_string().contains(says), "{update}");
    let posts = fleet.slack.messages();
    assert_eq!((posts.len(), &posts[1]["channel"], named(&posts[1])), (2, &json!("#genomics"), BTreeSet::from([3])));

    // Where neither takes it, it is kept until somebody mends that.
    fleet.slack.archive(&["#genomics", "#waste"]);
    fleet.join_tagged(4, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet.deliver().await;
    let failed = fleet.only(MessageState::Failed).await;
    assert!(failed.last_error.as_deref().unwrap().contains("#waste: is_archived"), "{failed:?}");
    assert_eq!((failed.attempts, failed.diverted_from.as_deref()), (2, Some("#genomics")));
    fleet.slack.archive(&["#genomics"]);
    let now = fleet.store().now().await.unwrap();
    assert_eq!(fleet.store().retry_messages(&[], now).await.unwrap(), (1, 0));
    assert_eq!(fleet.deliver().await.sent, 1);
    let last = fleet.slack.messages().pop().unwrap();
    assert!(last["channel"] == "#waste" && last.to_string().contains(says), "{last}");
}

async fn what_answers_in_a_channel_that_was_archived_since_goes_to_the_one_for_all(url: String) {
    let mut fleet = Fleet::of(&url, 0, Timestamp::now(), teams).await;
    fleet.join_tagged(1, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    fleet.deliver().await;
    fleet.slack.archive(&["#genomics"]);
    fleet.work_as(&machine(1), 1, "machine-1").await;
    fleet.sweep().await;
    fleet.rest_again(&machine(1), 11, "machine-1", SignedDuration::from_hours(1)).await;
    assert_eq!(fleet.sweep().await.opened.len(), 1);
    assert_eq!(fleet.deliver().await.failed, 1, "the old message cannot be changed there");
    let posts = fleet.slack.messages();
    assert_eq!((posts.len(), &posts[1]["channel"], &posts[1]["thread_ts"]), (2, &json!("#waste"), &Value::Null));
    assert!(posts[1].to_string().contains("Meant for #genomics"), "{}", posts[1]);
    let failed = fleet.only(MessageState::Failed).await;
    assert!(failed.updates.is_some() && failed.last_error.as_deref().unwrap().contains("is_archived"), "{failed:?}");
    // Once somebody has mended it, it shows what has become of its finding.
    fleet.slack.archive(&[]);
    let now = fleet.store().now().await.unwrap();
    assert_eq!(fleet.store().retry_messages(&[], now).await.unwrap(), (1, 0));
    fleet.deliver().await;
    assert_eq!(fleet.slack.updates()[0]["ts"], posts[0]["ts"]);
}

async fn what_waits_for_a_team_that_is_configured_no_more_goes_there(url: String) {
    let mut fleet = Fleet::of(&url, 0, Timestamp::now(), |config| {
        teams(config);
        config.slack.teams.push(team("gone"));
    })
    .await;
    for (number, of) in [(1, "genomics"), (2, "gone")] {
        fleet.join_tagged(number, Some(json!({ "team": of }))).await;
    }
    fleet.sweep().await;
    fleet.reconfigure(|config| config.slack.teams.clear());
    fleet.execute("UPDATE resource_versions SET record = '{\"tags\":{\"team\":\"physics\"}}'").await;
    assert_eq!(fleet.deliver().await.failed, 0);
    let posted = fleet.posted();
    assert_eq!(posted["#genomics"].iter().map(named).collect::<Vec<_>>(), [BTreeSet::from([1])]);
    assert_eq!(posted["#waste"].iter().map(named).collect::<Vec<_>>(), [BTreeSet::from([2])]);
    assert!(posted["#waste"][0].to_string().contains("Meant for #gone"), "{posted:?}");
    assert_eq!(posted.len(), 2);
}

async fn what_the_version_before_wrote_goes_to_the_channel_for_all(url: String) {
    let mut fleet = Fleet::of(&url, 0, Timestamp::now(), teams).await;
    fleet.join_tagged(1, Some(json!({ "team": "genomics" }))).await;
    fleet.sweep().await;
    // It knows none of these columns.
    fleet.execute("UPDATE outbox SET destination = NULL, routed_because = NULL, diverted_from = NULL").await;
    fleet.deliver().await;
    let post = fleet.slack.messages().remove(0);
    assert_eq!(post["channel"], "#waste");
    // What answers it goes where it is.
    fleet.work_as(&machine(1), 1, "machine-1").await;
    fleet.sweep().await;
    fleet.deliver().await;
    assert_eq!(fleet.slack.updates()[0]["ts"], post["ts"]);
}

#[tokio::test]
async fn a_plan_is_told_where_its_finding_was_and_the_shell_says_where_that_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let moto = Moto::start(folder.path()).await;
    let tagged = |team: &str| [("team".to_owned(), team.to_owned())].into();
    let machine = Instance { tags: tagged("genomics"), ..Instance::named("m5.large", "quiet-1") };
    let instance = moto.run(REGION, &[machine]).await.remove(0);
    let map = "[{ name = \"genomics\", channel = \"#genomics\", tags = { team = \"genomics\" }, channel_outside_hours = \"#on-call\", \
               hours = { days = [\"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\", \"sun\"], from = \"00:00\", to = \"00:00\", zone = \"UTC\" } }]";
    let environment = moto.environment();
    let mut environment: Vec<(&str, &str)> =
        environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    environment.push(("SWEEPER_SLACK__TEAMS", map));
    let stage = Stage::with(&format!("enabled = \"yes\"\nregions = [\"{REGION}\"]"), 2, &environment).await;
    stage.sweep().await;
    let key = format!("aws:{ACCOUNT}:{REGION}:{instance}");
    quiet::report_as(&stage.sweeper, &key, "quiet-1", |_| {}).await;
    let finding = stage.sweep().await["opened"][0].as_str().expect("a finding").to_owned();
    stage.delivered(1).await;
    assert_eq!(stage.slack.messages()[0]["channel"], "#genomics");

    let because = "it is a finding of `genomics`, within their hours: its tag team is genomics";
    for what in [instance.as_str(), &key, &finding, &finding[..8]] {
        let told = stage.sweeper.json(&["routes", what]).await;
        let of = (&told["told_in"], &told["team"], &told["because"], &told["resource"]);
        assert_eq!(of, (&json!("#genomics"), &json!("genomics"), &json!(because), &json!(key)), "{what}");
    }
    let said = async |arguments: &[&str]| {
        let output = stage.sweeper.run(&[&["routes"], arguments].concat()).await;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text)
    };
    let (_, teams) = said(&[]).await;
    for part in [
        "genomics",
        "tag team=genomics",
        "mon tue wed thu fri sat sun 00:00 to 00:00 UTC",
        "else in #on-call",
        "What is no team's is told in #waste.",
    ] {
        assert!(teams.contains(part), "`{part}` is not in:\n{teams}");
    }
    let (code, nothing) = said(&["i-nowhere"]).await;
    assert!(code == Some(1) && nothing.contains("neither a finding nor a resource"), "{nothing}");
    let (code, unknown) = said(&["aws:123456789012:eu-central-1:i-0f"]).await;
    assert!(
        code == Some(0)
            && unknown.contains("which tags it carries is not known")
            && unknown.contains("no sweep has ever seen"),
        "{unknown}"
    );

    // Somebody else's now; the plan is told where the finding was.
    let change = Instance { tags: tagged("physics"), ..Instance::default() };
    moto.change_in(ACCOUNT, REGION, &instance, &change).await;
    stage.sweep().await;
    stage.delivered(2).await;
    let posts = stage.slack.messages();
    assert_eq!((&posts[1]["channel"], &posts[1]["thread_ts"]), (&json!(id_of("#genomics")), &posts[0]["ts"]));
    let (_, told) = said(&[&finding]).await;
    for part in
        ["is told in #waste, the channel for all: it is no team's.", "goes to #genomics, where that one was told."]
    {
        assert!(told.contains(part), "`{part}` is not in:\n{told}");
    }
    let table = stage.sweeper.run(&["messages"]).await;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert_eq!(table.matches("slack #genomics").count(), 2, "{table}");
}
