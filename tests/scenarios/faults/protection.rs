//! What protects machines is asked of EC2 in turn, kept, and asked again when it is an hour old.

use super::{LISTING_TIMEOUT_S, OTHER, REGION, Site, fault, rest};
use jiff::Timestamp;
use lab::aws::{Fault, Instance};
use model::Provider;
use sea_orm::ConnectionTrait as _;
use std::collections::BTreeSet;
use sweeper::inventory::Scope;

impl Site {
    /// Time passes for what is kept of protection.
    async fn protection_ages(&self, minutes: i64) {
        let ms = minutes * 60_000;
        let update = format!(
            "UPDATE protection_answers SET read_unix_ms = read_unix_ms - {ms}, queued_unix_ms = queued_unix_ms - {ms}"
        );
        self.store.connection().execute_unprepared(&update).await.unwrap();
    }

    /// Which machines EC2 was asked about, once for each call.
    async fn asked_about(&self) -> Vec<String> {
        let calls = self.moto.calls().await.into_iter().filter(|call| call.action == "DescribeInstanceAttribute");
        calls.map(|call| call.parameters["InstanceId"].as_str().unwrap().to_owned()).collect()
    }

    async fn kept(&self) -> BTreeSet<String> {
        let kept = self.store.protection(&scope()).await.unwrap().into_iter();
        kept.filter(|(_, kept)| kept.answer.is_some()).map(|(id, _)| id).collect()
    }
}

fn scope() -> Scope {
    Scope { provider: Provider::Aws, account: OTHER.into(), region: REGION.into() }
}

fn attribute(code: &str) -> Fault {
    Fault { action: Some("DescribeInstanceAttribute".into()), ..fault(code, None) }
}

#[tokio::test]
async fn a_protected_machine_is_found_and_no_stop_of_it_is_proposed() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let protect = async |stop, termination| {
        let change = Instance {
            disable_api_stop: Some(stop),
            disable_api_termination: Some(termination),
            ..Instance::default()
        };
        site.moto.change_in(OTHER, REGION, &site.instance, &change).await;
    };
    let proposed = async || {
        let (code, report) = site.sweeper.sweep().await;
        let finding = site.store.open_findings().await.unwrap().remove(0);
        assert_eq!(report["findings"][0]["id"], site.finding, "{report:#}");
        (code, finding.plan.is_some(), finding.no_plan_because.unwrap_or_default())
    };
    // Of machines at work nobody asks it, nor of one that was just found; of one finding two attributes.
    assert_eq!(site.asked_about().await, Vec::<String>::new());
    assert_eq!(proposed().await, (0, true, String::new()));
    assert_eq!(site.asked_about().await, vec![site.instance.clone(); 2]);
    // An answer that is fresh is not asked for again.
    protect(true, false).await;
    site.protection_ages(55).await;
    assert_eq!(proposed().await, (0, true, String::new()));
    assert_eq!(site.asked_about().await, vec![site.instance.clone(); 2]);

    site.protection_ages(6).await;
    let why = "it is under stop protection, which is never switched off to get there";
    assert_eq!(proposed().await, (0, false, why.to_owned()));
    protect(false, true).await;
    site.protection_ages(61).await;
    assert_eq!(proposed().await, (0, false, why.replace("stop", "termination")));
    protect(false, false).await;
    site.protection_ages(61).await;
    assert_eq!(proposed().await, (0, true, String::new()));
    assert_eq!(site.asked_about().await.len(), 2 * 4);

    // Where it cannot be read again the report says so, and no stop is proposed, whatever was answered before: it may be protected by now.
    site.protection_ages(2 * 60).await;
    let why = "whether it is protected could not be read (ec2:DescribeInstanceAttribute)";
    let silent = Fault { delay_s: Some(LISTING_TIMEOUT_S + 2), ..attribute("") };
    // One that is gone by now spoils no sweep.
    let cases = [(attribute("UnauthorizedOperation"), 3), (silent, 3), (attribute("InvalidInstanceID.NotFound"), 0)];
    for (fault, code) in cases {
        site.moto.fail(std::slice::from_ref(&fault)).await;
        assert_eq!(proposed().await, (code, false, why.to_owned()), "{fault:?}");
    }
    let (_, plans) = site.sweeper.replays().await;
    assert_eq!(plans, 2, "made twice, and withdrawn");
}

#[tokio::test]
async fn more_idle_machines_than_a_sweep_may_ask_about_are_known_after_a_few_and_none_is_an_error() {
    /// Eight at once with two calls each of a third of the time: 16 of them at most are asked about in a sweep.
    const IDLE: u32 = 40;
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let count = Some(IDLE);
    let idle = site.moto.run_in(OTHER, REGION, &[Instance { count, ..Instance::default() }]).await;
    for id in &idle {
        rest(&site.store, &format!("aws:{OTHER}:{REGION}:{id}").parse().unwrap()).await;
    }
    let all: BTreeSet<String> = idle.into_iter().chain([site.instance.clone()]).collect();
    site.moto.fail(&[Fault { delay_s: Some(LISTING_TIMEOUT_S / 3), ..attribute("") }]).await;
    // Nobody is asked about what is found for the first time: no plan is made of it yet.
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, report["counts"]["idle"].as_u64()), (0, Some(u64::from(IDLE) + 1)), "{report:#}");
    let mut known = site.kept().await;
    assert_eq!(known, [site.instance.clone()].into(), "the one that was found before");
    for _ in 0..2 {
        let (code, report) = site.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "{report:#}");
        let before = known.len();
        known = site.kept().await;
        assert!(known.len() > before && known.len() < all.len(), "{} after {before}", known.len());
    }
    for finding in site.store.open_findings().await.unwrap() {
        let why = finding.no_plan_because.unwrap_or_default();
        let is_known = known.contains(&finding.resource.id);
        assert_eq!((finding.plan.is_some(), why.contains("is not known yet")), (is_known, !is_known), "{why}");
    }

    // What is gone is forgotten with the next list that lacks it.
    let gone = ["i-gone".to_owned()].into();
    site.store.queue_protection(&scope(), &gone, &BTreeSet::new(), Timestamp::now()).await.unwrap();
    site.moto.fail(&[]).await;
    let (code, _) = site.sweeper.sweep().await;
    assert_eq!((code, site.kept().await), (0, all.clone()));
    assert_eq!(site.store.protection(&scope()).await.unwrap().len(), all.len());
    assert_eq!(site.asked_about().await.len(), 2 * all.len(), "each once, over all sweeps");
    assert!(site.store.open_findings().await.unwrap().iter().all(|finding| finding.plan.is_some()));
}
