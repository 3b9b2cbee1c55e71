//! Whose a finding is, and where it is told at which hour.

use super::*;
use guards::policy::{Day, Hours};
use jiff::{civil, tz::TimeZone};
use proptest::prelude::*;

type Tags = BTreeMap<String, String>;

fn tags(all: &[(&str, &str)]) -> Tags {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn teams(text: &str) -> Vec<SlackTeam> {
    #[derive(serde::Deserialize)]
    struct Teams {
        teams: Vec<SlackTeam>,
    }
    toml::from_str::<Teams>(text).expect("teams").teams
}

const MAP: &str = r##"
    [[teams]]
    name = "genomics"
    channel = "#genomics"
    tags = { team = "genomics" }
    [[teams]]
    name = "genomics by hand"
    channel = "#genomics"
    launchers = ["ada", "assumed-role/Genomics*/*"]
    [[teams]]
    name = "physics"
    channel = "#physics"
    owners = ["Marie"]
    accounts = ["123456789012"]
"##;

fn by(principal: &str) -> LaunchedBy {
    LaunchedBy { principal: Some(principal.to_owned()), ..LaunchedBy::default() }
}

fn key() -> ResourceKey {
    "aws:123456789012:eu-central-1:i-1".parse().expect("a key")
}

fn told(map: &str, tags: Option<&Tags>, by: Option<&LaunchedBy>) -> (Option<String>, String) {
    let key = key();
    let facts = Facts { resource: &key, tags, owner: None, launched_by: by };
    let Route { channel, because, .. } = route(&teams(map), &facts, Timestamp::UNIX_EPOCH);
    (channel, because)
}

fn channel(map: &str, tags: Option<&Tags>, by: Option<&LaunchedBy>) -> Option<String> {
    told(map, tags, by).0
}

#[test]
fn the_first_team_whose_a_finding_is_is_told() {
    let (none, ours) = (tags(&[]), tags(&[("team", "genomics"), ("owner", "marie")]));
    let ada = by("arn:aws:iam::123456789012:user/ada");
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(channel(MAP, Some(&ours), None), is("#genomics"), "though it is Marie's, too");
    assert_eq!(channel(MAP, Some(&tags(&[("owner", " MARIE ")])), None), is("#physics"));
    assert_eq!(channel(MAP, Some(&none), Some(&ada)), is("#genomics"));
    for other in
        [tags(&[]), tags(&[("team", "Genomics")]), tags(&[("Team", "genomics")]), tags(&[("team", "genomics ")])]
    {
        assert_eq!(channel(MAP, Some(&other), Some(&by("arn:aws:iam::1:user/eve"))), None, "{other:?}");
    }
    let elsewhere = "[[teams]]\nname = \"p\"\nchannel = \"#p\"\nowners = [\"marie\"]\naccounts = [\"999999999999\"]";
    assert_eq!(channel(elsewhere, Some(&ours), None), None, "all that a team asks for must hold");
    let (_, because) = told(MAP, Some(&ours), None);
    assert_eq!(because, "it is a finding of `genomics`: its tag team is genomics");
    assert_eq!(told("teams = []", Some(&ours), None), (None, "there are no teams (slack.teams)".to_owned()));
}

#[test]
fn where_tags_are_not_known_no_later_team_is_asked() {
    let (map, ada) = (format!("{MAP}\n[[teams]]\nname = \"rest\"\nchannel = \"#rest\""), by("arn:aws:iam::1:user/ada"));
    let (to, because) = told(&map, None, Some(&ada));
    assert_eq!((to, because.as_str()), (None, "which tags it carries is not known, and `genomics` asks for them"));
    let owners = "[[teams]]\nname = \"o\"\nchannel = \"#o\"\nowners = [\"ada\"]\n[[teams]]\nname = \"rest\"\nchannel = \"#rest\"";
    assert_eq!(channel(owners, None, None), None, "an owner is told by tags");
    // What speaks against a team counts, whatever its tags are.
    let accounts = "[[teams]]\nname = \"g\"\nchannel = \"#g\"\ntags = { team = \"genomics\" }\naccounts = [\"999999999999\"]\n[[teams]]\nname = \"rest\"\nchannel = \"#rest\"";
    assert_eq!(channel(accounts, None, None).as_deref(), Some("#rest"));
}

#[test]
fn a_launcher_that_is_not_known_passes_a_team_over_and_says_so() {
    let marie = tags(&[("owner", "marie")]);
    assert_eq!(channel(MAP, Some(&marie), None).as_deref(), Some("#physics"));
    for nobody in [None, Some(&LaunchedBy::default())] {
        let (to, because) = told(MAP, Some(&tags(&[])), nobody);
        let wanted = "who started it is not known, which `genomics by hand` asks for, and it is no other team's";
        assert_eq!((to, because.as_str()), (None, wanted));
    }
}

#[test]
fn a_launcher_is_named_by_the_principal_or_its_end() {
    let ada = "arn:aws:sts::123456789012:assumed-role/GenomicsDev/ada";
    for (pattern, is_theirs) in [
        (ada, true),
        ("ada", true),
        ("GenomicsDev/ada", true),
        ("assumed-role/GenomicsDev/*", true),
        ("arn:aws:sts::*:assumed-role/Genomics*/*", true),
        ("*", true),
        ("GenomicsDev", false),
        ("da", false),
        ("Ada", false),
        ("role/GenomicsDev/ada", false),
        ("assumed-role/Genomics", false),
        ("user/*", false),
        ("ada*ada", false),
    ] {
        assert_eq!(launched(&[pattern.to_owned()], Some(&by(ada))), Some(is_theirs), "{pattern}");
    }
    // Whoever assumes a role chooses the session's name, and no `/` may be in it.
    let eve = by("arn:aws:sts::123456789012:assumed-role/Other/GenomicsDev");
    assert_eq!(launched(&["assumed-role/GenomicsDev/*".to_owned()], Some(&eve)), Some(false));
}

#[test]
fn tags_of_strangers_are_text_that_nobody_repeats() {
    for value in ["<!channel>", "genomics\u{202e}", "genomics\n", "*", "", &"x".repeat(100_000), "#genomics"] {
        let hostile = tags(&[("team", value), ("owner", value), ("", value)]);
        let (to, because) = told(MAP, Some(&hostile), Some(&by(value)));
        assert_eq!((to, because.as_str()), (None, "it is no team's"), "{value:.20}");
    }
}

/// On weekdays, by the clock of a place.
fn at(from: &str, to: &str, zone: &str, days: &[Day]) -> Hours {
    let time = |text: &str| text.parse::<civil::Time>().expect("a time");
    Hours { days: days.to_vec(), from: time(from), to: time(to), zone: TimeZone::get(zone).expect("a zone") }
}

const WEEKDAYS: [Day; 5] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri];

fn told_at(hours: Hours, moment: &str) -> String {
    let team = SlackTeam {
        name: "everybody".to_owned(),
        channel: "#day".to_owned(),
        hours: Some(hours),
        channel_outside_hours: Some("#on-call".to_owned()),
        ..SlackTeam::default()
    };
    let key = key();
    let facts = Facts { resource: &key, tags: None, owner: None, launched_by: None };
    let route = route(&[team], &facts, moment.parse().expect("a time"));
    let channel = route.channel.expect("a channel");
    assert_eq!(channel == "#on-call", route.because.contains("outside their hours"), "{}", route.because);
    channel
}

#[test]
fn on_saturday_morning_whoever_may_decide_then_is_told() {
    for (moment, wanted) in [
        ("2026-11-27T16:59:59Z", "#day"),
        ("2026-11-27T17:00:00Z", "#on-call"),
        ("2026-11-28T08:00:00Z", "#on-call"),
        ("2026-11-29T23:30:00Z", "#on-call"),
        ("2026-11-30T06:59:59Z", "#on-call"),
        ("2026-11-30T07:00:00Z", "#day"),
        // Summer: Berlin is two hours ahead.
        ("2026-07-24T15:59:59Z", "#day"),
        ("2026-07-24T16:00:00Z", "#on-call"),
        ("2026-07-27T06:00:00Z", "#day"),
    ] {
        assert_eq!(told_at(at("08:00", "18:00", "Europe/Berlin", &WEEKDAYS), moment), wanted, "{moment}");
    }
}

#[test]
fn hours_over_midnight_and_a_change_of_clocks_lose_no_minute() {
    let night = || at("22:00", "06:00", "Europe/Berlin", &[Day::Sat]);
    for (moment, wanted) in [
        // The clocks go forward on Sunday, 29 March 2026, at two, and back on 25 October at three: the night ends at six by the clock.
        ("2026-03-28T20:59:59Z", "#on-call"),
        ("2026-03-28T21:00:00Z", "#day"),
        ("2026-03-29T01:00:00Z", "#day"),
        ("2026-03-29T03:59:59Z", "#day"),
        ("2026-03-29T04:00:00Z", "#on-call"),
        ("2026-10-24T20:00:00Z", "#day"),
        ("2026-10-25T00:30:00Z", "#day"),
        ("2026-10-25T01:30:00Z", "#day"),
        ("2026-10-25T04:59:59Z", "#day"),
        ("2026-10-25T05:00:00Z", "#on-call"),
    ] {
        assert_eq!(told_at(night(), moment), wanted, "{moment}");
    }
}

#[test]
fn work_that_nobody_lists_is_told_by_the_tags_of_its_machine() {
    let of = |text: &str| tagged(&text.parse().expect("a key")).to_string();
    assert_eq!(of("aws:1:eu-central-1:workload/i-1/7"), "aws:1:eu-central-1:i-1");
    assert_eq!(of("aws:1:eu-central-1:i-1"), "aws:1:eu-central-1:i-1");
    assert_eq!(of("aws:1:eu-central-1:vol-1"), "aws:1:eu-central-1:vol-1");
}

fn some_team() -> impl Strategy<Value = SlackTeam> {
    let few =
        |of: &'static [&'static str]| prop::collection::vec(prop::sample::select(of).prop_map(str::to_owned), 0..2);
    let asked = prop::option::of(prop::sample::select(&["genomics", "physics"][..]));
    (asked, few(&["ada", "Marie"]), few(&["ada", "user/*"]), few(&["123456789012", "9"])).prop_map(
        |(tag, owners, launchers, accounts)| SlackTeam {
            tags: tag.map(|value| ("team".to_owned(), value.to_owned())).into_iter().collect(),
            owners,
            launchers,
            accounts,
            ..SlackTeam::default()
        },
    )
}

proptest! {
    /// Whatever teams there are: whoever is told asked for nothing that does not hold, and no earlier team may have asked for it.
    #[test]
    fn nobody_is_told_before_whoever_it_may_be(
        mut map in prop::collection::vec(some_team(), 0..5),
        carried in prop::option::of(prop::collection::btree_map(prop::sample::select(&["team", "owner"][..]).prop_map(str::to_owned),
            prop::sample::select(&["genomics", "marie", "ada"][..]).prop_map(str::to_owned), 0..2)),
        launcher in prop::option::of(prop::sample::select(&["arn:aws:iam::1:user/ada", "arn:aws:iam::1:role/x"][..])),
    ) {
        for (n, team) in map.iter_mut().enumerate() {
            (team.name, team.channel) = (n.to_string(), format!("#{n}"));
        }
        let (key, by) = (key(), launcher.map(by));
        let facts = Facts { resource: &key, tags: carried.as_ref(), owner: None, launched_by: by.as_ref() };
        let told = route(&map, &facts, Timestamp::UNIX_EPOCH);
        let first = map.iter().map(|team| theirs(team, &facts)).enumerate()
            .find(|(_, theirs)| matches!(theirs, Theirs::Yes(_) | Theirs::TagsNotKnown));
        match (first, &told.channel) {
            (Some((n, Theirs::Yes(_))), Some(channel)) => prop_assert_eq!(channel, &format!("#{n}")),
            (Some((_, Theirs::TagsNotKnown)) | None, None) => {}
            other => panic!("{other:?}"),
        }
        if let Some(team) = told.team.as_ref().and_then(|name| map.iter().find(|team| team.name == *name)) {
            prop_assert!(team.accounts.is_empty() || team.accounts.contains(&key.account));
            prop_assert!(team.tags.is_empty() || carried.as_ref().is_some_and(|tags| team.tags.iter().all(|(key, value)| tags.get(key) == Some(value))));
            prop_assert!(team.launchers.is_empty() || by.is_some());
            prop_assert!(!team.is_everybodys() || told.because.contains("it asks for nothing"));
        }
    }
}
