//! What a bundle says first, and what is said of an end.

use crate::{
    bundle::{Bundle, Member, News, view_of},
    message::{Ending, end_headline},
    samples,
};

fn headline(change: impl Fn(&mut Bundle)) -> String {
    let mut bundle = samples::bundle();
    change(&mut bundle);
    view_of(&bundle).headline
}

fn each(change: impl Fn(&mut Member)) -> String {
    headline(|bundle| bundle.members.iter_mut().for_each(&change))
}

#[test]
fn a_headline_says_how_many_whose_and_at_what_price() {
    assert_eq!(each(|_| {}), "3 idle machines of ada: $0.03/h, and 1 without a known price");
    assert_eq!(each(|one| one.notice.rate = None), "3 idle machines of ada: no price is known");
    let account =
        "3 idle machines without an owner tag (AWS account 123456789012): $0.03/h, and 1 without a known price";
    assert_eq!(each(|one| one.notice.owner = Some(" \u{200B}".into())), account);
    let quiet = "3 seemingly unused machines of ada: $0.03/h, and 1 without a known price";
    assert_eq!(each(|one| one.notice.state = Some("quiet".into())), quiet);
    for (state, what) in [
        ("unattached", "unattached volumes"),
        ("unused", "unused addresses"),
        ("stopped", "stopped machines"),
        ("silent", "silent machines"),
        ("unregistered", "unregistered workers"),
        ("abandoned", "abandoned workers"),
        ("relaunching", "relaunching groups"),
        ("relaunching template", "relaunching launch templates"),
        ("wholly idle", "idle groups"),
        ("blocked", "blocked queues"),
        ("held", "unused compute environments"),
        ("lost", "lost jobs"),
        ("starting", "slowly starting jobs"),
        ("straggling", "straggling jobs"),
        ("headless", "orphaned jobs"),
        ("stuck", "stuck jobs"),
        ("spinning", "suspicious jobs"),
        ("failing", "failing runs"),
        ("left behind", "orphaned tasks"),
    ] {
        let told = format!("3 {what} of ada: $0.03/h, and 1 without a known price");
        assert_eq!(each(|one| one.notice.state = Some(state.into())), told);
    }
    assert_eq!(headline(|bundle| drop(bundle.members.pop())), "2 idle machines of ada: $0.03/h");
}

#[test]
fn what_is_left_is_counted() {
    let end = |bundle: &mut Bundle, members: &[usize]| {
        for member in members {
            bundle.members[*member].end = Some(samples::ended());
        }
    };
    let two = "2 of 3 idle machines of ada are left: $0.02/h, and 1 without a known price";
    assert_eq!(headline(|bundle| end(bundle, &[0])), two);
    assert_eq!(headline(|bundle| end(bundle, &[0, 2])), "1 of 3 idle machines of ada is left: $0.02/h");
    assert_eq!(headline(|bundle| end(bundle, &[0, 1, 2])), "None of 3 idle machines of ada is left");
}

#[test]
fn a_saving_that_is_not_known_is_not_counted() {
    let plans = |known: usize| {
        headline(|bundle| {
            bundle.news = News::Planned;
            bundle.members.iter_mut().skip(known).for_each(|one| one.notice.saving = None);
        })
    };
    let lead = "Plans would end the waste on 3 machines of ada: ";
    assert_eq!(plans(0), format!("{lead}what they would save is not known"));
    assert_eq!(plans(1), format!("{lead}they would save $0.45/h, and 2 an unknown amount"));
}

#[test]
fn each_end_has_words_of_its_own() {
    let ended = |state: &str, how: Ending, spent: Option<&str>| {
        let idle = samples::idle();
        end_headline("web\n1", state, how, idle.since, idle.as_of, spent)
    };
    let gone = "web 1 is there no more: it was idle for 2 h 40 min, at a cost that is not known";
    assert_eq!(ended("idle", Ending::Gone, None), gone);
    let worked = "web 1 has worked in between: it was idle for 2 h 40 min, which cost $1.23";
    assert_eq!(ended("idle", Ending::Interrupted, Some("$1.23")), worked);
    let used = "web 1 is no longer seemingly unused: it was seemingly unused for 2 h 40 min, which cost $1.23";
    assert_eq!(ended("quiet", Ending::Resolved, Some("$1.23")), used);
    let attached =
        "web 1 is no longer attached to nothing: it was attached to nothing for 2 h 40 min, which cost $1.23";
    assert_eq!(ended("unattached", Ending::Resolved, Some("$1.23")), attached);
    for (state, words) in [
        ("silent", "running with a silent agent"),
        ("unregistered", "outside its cluster"),
        ("abandoned", "without its compute environment"),
        ("relaunching", "starting machines that nobody uses"),
        ("relaunching template", "used for machines that nobody uses"),
        ("blocked", "blocked"),
        ("held", "ready for no job"),
        ("lost", "without its containers"),
        ("starting", "starting"),
        ("straggling", "behind all others of its array"),
        ("headless", "without its head"),
        ("stuck", "stuck"),
        ("spinning", "computing alone"),
        ("failing", "failing"),
    ] {
        let told = format!("web 1 is no longer {words}: it was {words} for 2 h 40 min, which cost $1.23");
        assert_eq!(ended(state, Ending::Resolved, Some("$1.23")), told);
    }
}
