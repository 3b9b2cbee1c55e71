mod fleet;

use super::*;
use crate::{
    attribution::{
        Answer, NotAnswered, Question, Settings, answered,
        bounds::{BOUNDS, Bounds},
    },
    store::Store,
};
use costs::{By, Dimension};
use fleet::Fleet;
use jiff::Timestamp;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sea_orm::ConnectionTrait as _;
use std::time::Duration;

#[test]
fn days_are_whole_and_over_for_two_hours() {
    let hour = 3_600;
    assert_eq!(days_within(0, 3 * DAY_S, 100 * DAY_S), 0..3);
    assert_eq!(days_within(hour, 3 * DAY_S - hour, 100 * DAY_S), 1..2);
    assert_eq!(days_within(hour, DAY_S, 100 * DAY_S), 1..1);
    assert_eq!(days_within(0, 3 * DAY_S, 3 * DAY_S + 2 * hour - 1), 0..2);
    assert_eq!(days_within(0, 3 * DAY_S, 3 * DAY_S + 2 * hour), 0..3);
    assert_eq!(days_within(5 * DAY_S, 6 * DAY_S, DAY_S), 5..5);
}

#[test]
fn parts_are_the_same_for_every_version() {
    assert_eq!(["aws:1:r:i-1", "aws:1:r:i-2", "host:0"].map(part_of), [14, 13, 21]);
}

const RETENTION: Duration = Duration::from_secs(90 * 86_400);

fn pair(random: &mut StdRng) -> By {
    loop {
        let mut one = || Dimension::ALL[random.random_range(0..Dimension::ALL.len())].as_str();
        if let Ok(by) = format!("{},{}", one(), one()).parse() {
            return by;
        }
    }
}

/// Rows that are kept are lost at random: whichever are left, the answer is the same.
async fn lose_some(store: &Store, random: &mut StdRng) {
    let part = format!("DELETE FROM cost_days WHERE (day * 7 + part) % 4 = {}", random.random_range(0..4));
    store.connection().execute_unprepared(&part).await.expect("lost");
}

/// Answers of random questions, and how many days of machines were taken up.
async fn answers(store: &Store, settings: &Settings, questions: &[Question]) -> (Vec<Answer>, usize) {
    let (mut answers, mut kept_days) = (Vec::new(), 0);
    for question in questions {
        let (answer, taken) = answered(store, settings, question, BOUNDS).await.expect("an answer");
        answers.push(answer);
        kept_days += taken;
    }
    (answers, kept_days)
}

fn questions(fleet: &Fleet, random: &mut StdRng, now: Timestamp) -> Vec<Question> {
    let question = |by: By, random: &mut StdRng| loop {
        let (one, other) = (fleet::hour(fleet, random, now), fleet::hour(fleet, random, now));
        if let Ok(question) = Question::new(by.clone(), Some(one.min(other)), Some(one.max(other)), now) {
            return question;
        }
    };
    let mut questions = Vec::new();
    for _ in 0..6 {
        let by = pair(random);
        questions.push(question(by, random));
    }
    // And all of it.
    let from = Timestamp::from_second(fleet.today_s - fleet::DAYS * DAY_S).ok();
    let to = Timestamp::from_second(fleet.today_s).ok();
    for _ in 0..2 {
        questions.extend(Question::new(pair(random), from, to, now).ok());
    }
    questions
}

async fn check(store: &Store, settings: &Settings, fleet: &Fleet, random: &mut StdRng, what: &str) -> usize {
    let now = store.now().await.expect("a time");
    let questions = questions(fleet, random, now);
    let (with, taken) = answers(store, settings, &questions).await;
    let transaction = store.begin_write().await.expect("a transaction");
    for change in ["CREATE TEMPORARY TABLE aside AS SELECT * FROM cost_days", "DELETE FROM cost_days"] {
        transaction.execute_unprepared(change).await.expect("put aside");
    }
    transaction.commit().await.expect("a commit");
    let (without, none) = answers(store, settings, &questions).await;
    assert_eq!(none, 0);
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(with, without, "{what}");
    }
    for change in ["INSERT INTO cost_days SELECT * FROM aside", "DROP TABLE aside"] {
        store.connection().execute_unprepared(change).await.expect("put back");
    }
    taken
}

/// Whatever was learnt after days were kept (prices, versions of machines, listings, tags, agents, hours, another configuration), and whichever days are, the answer is line by line the
/// one without any.
#[tokio::test]
async fn an_answer_is_the_same_whatever_is_kept() {
    let (mut stale, mut fresh) = (0, 0);
    for seed in 0..fleets() {
        let random = &mut StdRng::seed_from_u64(seed);
        let store = Store::connect("sqlite::memory:").await.expect("a database");
        store.migrate().await.expect("a schema");
        let now = store.now().await.expect("a time");
        let mut fleet = Fleet::new(random, now);
        let config = fleet::config(random);
        let until_s = fleet.today_s + random.random_range(-3 * DAY_S..3_600);
        fleet.go_on(&store, random, until_s).await;
        fleet.learn(&store, random).await;
        let settings = Settings::of(&config);
        add_up_days(&store, &settings, RETENTION).await.expect("added up");
        lose_some(&store, random).await;
        stale += check(&store, &settings, &fleet, random, &format!("fleet {seed}, at first")).await;

        // Later more is known than when these were added up.
        fleet.go_on(&store, random, now.as_second()).await;
        fleet.learn(&store, random).await;
        let settings = Settings::of(&if random.random_bool(0.5) { config } else { fleet::config(random) });
        stale += check(&store, &settings, &fleet, random, &format!("fleet {seed}, later")).await;
        if random.random_bool(0.5) {
            lose_some(&store, random).await;
        }
        add_up_days(&store, &settings, RETENTION).await.expect("added up");
        fresh += check(&store, &settings, &fleet, random, &format!("fleet {seed}, made anew")).await;
        assert_eq!(add_up_days(&store, &settings, RETENTION).await.expect("added up"), 0, "all is right");
        // And all of it is taken up: no rollup is read.
        let now_s = store.now().await.expect("a time").as_second();
        let days = days_within(fleet.today_s - fleet::DAYS * DAY_S, fleet.today_s, now_s);
        let time = |day: i64| Timestamp::from_second(day * DAY_S).ok();
        let question = Question::new(pair(random), time(days.start), time(days.end), now).expect("a question");
        answered(&store, &settings, &question, Bounds { rollups: 0, ..BOUNDS }).await.expect("an answer of kept days");
    }
    assert!(stale > 100 && fresh > stale, "{stale} and {fresh} days of machines were taken up");
}

/// What a question may take is counted after what is kept was taken up.
#[tokio::test]
async fn a_question_that_takes_too_much_is_told_what_to_narrow() {
    let random = &mut StdRng::seed_from_u64(1);
    let store = Store::connect("sqlite::memory:").await.expect("a database");
    store.migrate().await.expect("a schema");
    let now = store.now().await.expect("a time");
    let mut fleet = Fleet::new(random, now);
    fleet.go_on(&store, random, now.as_second()).await;
    for _ in 0..3 {
        fleet.learn(&store, random).await;
    }
    let mut config = fleet::config(random);
    config.onprem.hourly_usd.insert("default".into(), "0.25".into());
    let settings = Settings::of(&config);
    let time = |second| Timestamp::from_second(second).ok();
    let (from, to) = (time(fleet.today_s - fleet::DAYS * DAY_S), time(fleet.today_s));
    let question = Question::new("instance,day".parse().expect("two"), from, to, now).expect("a question");
    let ask = async |bounds: Bounds| answered(&store, &settings, &question, bounds).await;
    let (answer, _) = ask(BOUNDS).await.expect("an answer");
    let lines = answer.lines.len();
    let too_long = ask(Bounds { lines: lines - 1, ..BOUNDS }).await.expect_err("too long");
    assert!(matches!(too_long, NotAnswered::TooManyLines(_)), "{too_long}");
    let few = Bounds { rollups: 1, lines };
    let too_much = ask(few).await.expect_err("too many rollups");
    assert!(too_much.to_string().contains("of more than 1 machine hours"), "{too_much}");
    // Of days that are added up none is read; unless the first of today's two hours hide yesterday.
    add_up_days(&store, &settings, RETENTION).await.expect("added up");
    if now.as_second() >= fleet.today_s + OVER_FOR_S {
        assert_eq!(ask(Bounds { rollups: 0, lines }).await.expect("an answer").0, answer);
    }
    assert!(ask(Bounds { lines: lines - 1, ..BOUNDS }).await.is_err());
}

/// `COST_FLEETS=1000` tells more of them.
fn fleets() -> u64 {
    std::env::var("COST_FLEETS").map_or(50, |fleets| fleets.parse().expect("COST_FLEETS is a number"))
}
