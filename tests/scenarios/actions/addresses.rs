//! An address that nobody uses is released once two people have said so, if nothing speaks against it at the last moment; and never by one of them, nor twice.

use crate::site::{ANYBODY, REGION, SWITCHED_ON, Site, TIMEOUT};
use lab::{
    aws::{Address, Fault},
    wait,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

lab::on_both_databases! {
    an_unused_address_is_released_by_two_people_and_never_by_one,
    what_is_used_or_marked_since_the_approval_is_not_released,
    what_lists_do_not_tell_is_asked_before_the_call,
    nobody_may_approve_it_where_no_rule_is_about_what_ends_for_good,
    killed_after_the_call_has_left_it_looks_and_calls_nothing,
    an_error_after_having_acted_is_looked_into,
    a_call_that_never_arrived_is_not_repeated,
    killed_before_the_call_it_begins_anew,
}

/// Whoever is enrolled may approve what ends something for good, too.
pub(crate) const FOR_GOOD: &str =
    "[[rule]]\nname = \"for good\"\napprovers = [\"*\"]\nclasses = [\"reversible\", \"destructive\"]\n";

pub(crate) fn unused(name: &str) -> Address {
    let tags = [("Name", name), ("owner", "ada")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Address { tags, ..Address::default() }
}

/// A site with one unused address, and two people.
struct Left {
    site: Site,
    ada: PathBuf,
    grace: PathBuf,
}

impl Left {
    async fn start(url: &str) -> Self {
        Self::start_with(url, &[unused("gateway")]).await
    }

    async fn start_with(url: &str, addresses: &[Address]) -> Self {
        let site = Site::start_leaving(url, FOR_GOOD, SWITCHED_ON, addresses, &[]).await;
        let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
        Self { site, ada, grace }
    }

    async fn plan(&self) -> String {
        self.site.plan_to("gateway").await
    }

    async fn both_approve(&self, plan: &str) {
        self.site.approve(plan, &self.ada).await;
        self.site.approve(plan, &self.grace).await;
    }

    /// Whether the account still has it.
    async fn is_allocated(&self, address: &str) -> bool {
        let answer = self.site.moto.query("ec2", REGION, &[("Action", "DescribeAddresses")]).await;
        answer.contains(address)
    }

    async fn tag(&self, action: &str, key: &str, value: &str) {
        let on = self.site.addresses[0].as_str();
        let call = [("Action", action), ("ResourceId.1", on), ("Tag.1.Key", key), ("Tag.1.Value", value)];
        self.site.moto.query("ec2", REGION, &call).await;
    }

    /// So many releases were asked for, and what became of the action.
    async fn outcome(&self, plan: &str) -> (usize, Value) {
        let ended = self.site.ended(plan).await;
        (self.site.called("ReleaseAddress").await.len(), ended)
    }
}

/// A call that releases, dry or not, goes wrong once.
fn release(is_dry: bool) -> Fault {
    let mut fault = Fault {
        service: Some("ec2".into()),
        action: Some("ReleaseAddress".into()),
        times: Some(1),
        ..Fault::default()
    };
    if is_dry {
        fault.parameters.insert("DryRun".to_owned(), "true".to_owned());
    } else {
        // Both dry runs pass first.
        fault.after = Some(2);
    }
    fault
}

async fn an_unused_address_is_released_by_two_people_and_never_by_one(url: String) {
    let left = Left::start(&url).await;
    let (site, address) = (&left.site, left.site.addresses[0].as_str());
    let plan = left.plan().await;
    let finding = site.sweeper.json(&["plans"]).await;
    let finding =
        finding.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str()).unwrap()["finding"].clone();
    let shown = site.run(&["explain", finding.as_str().unwrap()]).await.said;
    for part in [
        "for good",
        &format!("aws ec2 release-address --region {REGION} --allocation-id {address} --dry-run"),
        "no name is set that leads back from it",
        "that AllocateAddress gives it back is luck",
        "nothing: it is for good, so that two different people must approve it",
        "$0.005/h",
    ] {
        assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
    }
    let tested = site.run(&["policy", "test", "--as", "ada", "--plan", &plan]).await.said;
    assert!(tested.contains("2 different people must"), "{tested}");

    // One of them is nobody.
    site.approve(&plan, &left.ada).await;
    let again = site.run(&["approve", &plan, "--token-file", left.ada.to_str().unwrap()]).await;
    assert_ne!(again.code, 0, "{again:?}");
    site.searched_twice().await;
    let actions = site.sweeper.json(&["actions"]).await;
    assert!(!actions.as_array().unwrap().iter().any(|action| action["plan"] == plan.as_str()), "{actions:#}");
    assert!(left.is_allocated(address).await);

    let approved = site.run(&["approve", &plan, "--token-file", left.grace.to_str().unwrap(), "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(approved.said.ends_with("done: the address is released\n"), "{approved:?}");
    assert!(!left.is_allocated(address).await);
    let released = site.called("ReleaseAddress").await;
    let [release] = released.as_slice() else { panic!("{released:#?}") };
    assert_eq!(release.parameters["AllocationId"], json!(address));
    let calls = site.moto.calls().await;
    let assumed = calls.iter().find(|call| call.action == "AssumeRole").unwrap();
    assert_eq!(assumed.parameters["SourceIdentity"], "ada,grace");
    let first = calls.iter().find(|call| call.action == "ReleaseAddress").unwrap();
    assert_eq!(first.parameters["DryRun"], "true", "{calls:#?}");
    for call in calls.iter().filter(|call| call.access_key != "AKIAIOSFODNN7EXAMPLE") {
        assert_eq!(call.action, "ReleaseAddress", "what acts reads nothing: {call:?}");
    }
    let told = site.hears("was released, as ada and grace approved").await.to_string();
    assert!(!told.contains("sweeper undo"), "nothing undoes it: {told}");
    let undone = site.run(&["undo", &plan, "--token-file", left.ada.to_str().unwrap()]).await;
    assert!(undone.code == 1 && undone.error.contains("nothing undoes this plan"), "{undone:?}");

    // What it saved is read back from the lists that lack it.
    let (_, report) = site.sweeper.sweep().await;
    let resource = format!("aws:{}:{REGION}:{address}", lab::aws::ACCOUNT);
    assert!(!report["findings"].to_string().contains(&resource), "what it found is over: {report:#}");
    let savings = site.sweeper.json(&["savings"]).await;
    let [saved] = savings["actions"].as_array().unwrap().as_slice() else { panic!("{savings:#}") };
    assert_eq!([&saved["resource"], &saved["ending"]], [&json!(resource), &json!("lasts")], "{savings:#}");
    assert_eq!(saved["approved_by"], json!(["ada", "grace"]));
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    let (_, plans) = site.sweeper.replays().await;
    assert!(plans >= 2, "the plans of the machine and of the address are made again: {plans}");
}

async fn what_is_used_or_marked_since_the_approval_is_not_released(url: String) {
    let left = Left::start(&url).await;
    let (site, address) = (&left.site, left.site.addresses[0].as_str());
    for what in ["exempt", "owner", "stack", "kill switch", "removed", "policy", "tied"] {
        let plan = left.plan().await;
        site.approve(&plan, &left.ada).await;
        let words = match what {
            "exempt" => {
                left.tag("CreateTags", "cloud-sweeper:exempt", "the partner's list has it").await;
                "it is exempt by the tag"
            }
            "owner" => {
                left.tag("CreateTags", "owner", "grace").await;
                "its owner was ada when it was found, and is grace now"
            }
            "stack" => {
                left.tag("CreateTags", "ManagedBy", "terraform").await;
                "something else manages it, as its tag `ManagedBy` says"
            }
            "kill switch" => {
                assert_eq!(site.run(&["kill-switch", "on"]).await.code, 0);
                "the kill switch is on"
            }
            // By the time that the guards are asked.
            "removed" => "1 of 2 people have approved it",
            "policy" => "no rule of the policy is about this plan",
            _ => {
                let call = [("Action", "AssociateAddress"), ("AllocationId", address), ("InstanceId", &site.machine)];
                site.moto.query("ec2", REGION, &call).await;
                "it is tied to"
            }
        };
        let is_late = ["removed", "policy"].contains(&what);
        if is_late {
            site.moto.fail(&[Fault { delay_s: Some(6), ..release(true) }]).await;
        }
        site.approve(&plan, &left.grace).await;
        if is_late {
            site.action(&plan, "do", &["claimed"]).await;
        }
        match what {
            "removed" => assert_eq!(site.run(&["approvers", "remove", "grace"]).await.code, 0),
            "policy" => fs::write(site.folder.path().join("policy.toml"), ANYBODY).unwrap(),
            _ => {}
        }
        let (calls, ended) = left.outcome(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "{what}: `{words}` is not in {ended:#}");
        assert_eq!(calls, 0, "{what}");
        match what {
            "exempt" => left.tag("DeleteTags", "cloud-sweeper:exempt", "the partner's list has it").await,
            "owner" => left.tag("CreateTags", "owner", "ada").await,
            "stack" => left.tag("DeleteTags", "ManagedBy", "terraform").await,
            "kill switch" => assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0),
            "removed" => drop(site.enrol("grace").await),
            "policy" => fs::write(site.folder.path().join("policy.toml"), FOR_GOOD).unwrap(),
            _ => break,
        }
        site.moto.fail(&[]).await;
        site.sweeper.sweep().await;
        assert_ne!(left.plan().await, plan, "{what}: another plan takes its place");
    }
    assert!(left.is_allocated(address).await);
}

async fn what_lists_do_not_tell_is_asked_before_the_call(url: String) {
    let named = Address { reverse_name: Some("mx.example.com.".into()), ..unused("gateway of mail") };
    let offered = Address { offered_to: Some("999988887777".into()), ..unused("gateway that moves") };
    let own = Address { pool: Some("ipv4pool-ec2-0123456789abcdef0".into()), ..unused("own range") };
    let left = Left::start_with(&url, &[named, offered, own, unused("gateway that is plain")]).await;
    let site = &left.site;
    let plans = site.sweeper.json(&["plans"]).await;
    assert!(!plans.to_string().contains("own range"), "{plans:#}");
    let denied = |action: &str| Fault {
        action: Some(action.into()),
        code: Some("UnauthorizedOperation".into()),
        status: Some(403),
        ..Fault::default()
    };
    for (fault, what, words) in [
        (None, "gateway of mail", "the name mx.example.com. leads back from it"),
        (None, "gateway that moves", "it has been offered to the account 999988887777"),
        (Some("DescribeAddressesAttribute"), "gateway that is plain", "whether a name leads back from it is not known"),
        (
            Some("DescribeAddressTransfers"),
            "gateway that is plain",
            "whether it has been offered to another account is not known",
        ),
    ] {
        site.moto.fail(&fault.map(denied).into_iter().collect::<Vec<_>>()).await;
        let plan = site.plan_to(what).await;
        left.both_approve(&plan).await;
        let (calls, ended) = left.outcome(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        assert_eq!(calls, 0, "{what}");
        site.moto.fail(&[]).await;
        site.sweeper.sweep().await;
    }
    for address in &site.addresses {
        assert!(left.is_allocated(address).await, "{address}");
    }
}

async fn nobody_may_approve_it_where_no_rule_is_about_what_ends_for_good(url: String) {
    let site = Site::start_leaving(&url, ANYBODY, SWITCHED_ON, &[unused("gateway")], &[]).await;
    let (ada, plan) = (site.enrol("ada").await, site.plan_to("gateway").await);
    let refused = site.run(&["approve", &plan, "--token-file", ada.to_str().unwrap()]).await;
    assert!(refused.code == 1 && refused.error.contains("no rule of the policy is about this plan"), "{refused:?}");
    assert_eq!(site.called("ReleaseAddress").await.len(), 0);
}

async fn killed_after_the_call_has_left_it_looks_and_calls_nothing(url: String) {
    let mut left = Left::start(&url).await;
    let plan = left.plan().await;
    // EC2 takes its time, and does it.
    left.site.moto.fail(&[Fault { delay_s: Some(15), ..release(false) }]).await;
    left.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async {
        (!left.site.called("ReleaseAddress").await.is_empty()).then_some(())
    })
    .await;
    left.site.sweeper.kill();
    assert_eq!(left.site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    left.site.sweeper.start_again().await;
    let (calls, ended) = left.outcome(&plan).await;
    assert_eq!((calls, ended["state"].as_str()), (1, Some("done")), "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
}

async fn an_error_after_having_acted_is_looked_into(url: String) {
    let left = Left::start(&url).await;
    let plan = left.plan().await;
    let error = Fault { acts: true, status: Some(500), code: Some("InternalError".into()), ..release(false) };
    left.site.moto.fail(&[error]).await;
    left.both_approve(&plan).await;
    let (calls, ended) = left.outcome(&plan).await;
    assert_eq!((calls, ended["state"].as_str()), (1, Some("done")), "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
}

async fn a_call_that_never_arrived_is_not_repeated(url: String) {
    let left = Left::start(&url).await;
    let plan = left.plan().await;
    let error = Fault { status: Some(500), code: Some("InternalError".into()), ..release(false) };
    left.site.moto.fail(&[error]).await;
    left.both_approve(&plan).await;
    // For two minutes it may arrive late.
    let ended = wait::until("its end", TIMEOUT * 3, || async {
        let all = left.site.sweeper.json(&["actions"]).await;
        let action = all.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str())?.clone();
        ["done", "voided", "failed"].contains(&action["state"].as_str().unwrap()).then_some(action)
    })
    .await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("the address is allocated"), "{ended:#}");
    assert_eq!(left.site.called("ReleaseAddress").await.len(), 1, "and none after it");
    assert!(left.is_allocated(&left.site.addresses[0]).await);
}

async fn killed_before_the_call_it_begins_anew(url: String) {
    let mut left = Left::start(&url).await;
    let plan = left.plan().await;
    left.site.moto.fail(&[Fault { delay_s: Some(20), ..release(true) }]).await;
    left.both_approve(&plan).await;
    left.site.action(&plan, "do", &["claimed"]).await;
    left.site.sweeper.kill();
    left.site.sweeper.start_again().await;
    let (calls, ended) = left.outcome(&plan).await;
    assert_eq!((calls, ended["state"].as_str(), &ended["epoch"]), (1, Some("done"), &json!(2)), "{ended:#}");
}
