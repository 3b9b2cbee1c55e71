//! What a person approved is carried out once, if nothing speaks against it at the last moment, and never otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod alone;
mod bundles;
mod commands;
mod commits;
mod crashes;
mod iam;
mod jobs;
mod members;
mod policies;
mod proof;
mod restored;
mod site;
mod slack;
mod socket;
mod told;
mod two;
mod volumes;

use lab::{
    aws::{ACCOUNT, Fault, Instance},
    wait,
};
use serde_json::{Value, json};
use site::{ANYBODY, REGION, SWITCHED_ON, Says, Site, TIMEOUT};
use std::{fs, path::Path, time::Duration};

lab::on_both_databases! {
    an_approved_plan_is_carried_out_and_undone,
    what_was_set_up_to_hibernate_hibernates,
    a_dry_run_is_all_where_acting_is_not_switched_on,
    a_dry_run_is_all_where_no_role_acts,
    what_has_changed_since_the_approval_voids_it,
    what_others_rest_on_and_what_the_sweeper_needs_is_left_alone,
    a_node_that_does_not_answer_is_left_alone,
    a_plan_waits_while_its_finding_is_not_confirmed,
    a_restored_backup_voids_what_was_approved,
}

async fn an_approved_plan_is_carried_out_and_undone(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let token = ada.to_str().unwrap();
    let approved = site.run(&["approve", &plan, "--token-file", token, "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(approved.said.ends_with("done: the machine is stopped\n"), "{approved:?}");
    assert_eq!(site.state().await, "stopped");
    // By the role that acts, once, and after a dry run by the same role.
    let stopped = site.called("StopInstances").await;
    let [stop] = stopped.as_slice() else { panic!("{stopped:#?}") };
    assert_eq!([&stop.parameters["InstanceId.1"], &stop.parameters["Force"]], [&json!(site.machine), &Value::Null]);
    assert_eq!([&stop.parameters["SkipOsShutdown"], &stop.parameters["Hibernate"]], [&Value::Null, &Value::Null]);
    assert_ne!(stop.access_key, "AKIAIOSFODNN7EXAMPLE", "what reads does not act");
    let calls = site.moto.calls().await;
    let assumed = calls.iter().find(|call| call.action == "AssumeRole").unwrap();
    assert_eq!(assumed.parameters["SourceIdentity"], "ada");
    let before = calls.iter().position(|call| call.action == "StopInstances").unwrap();
    assert_eq!(calls[before].parameters["DryRun"], "true", "{calls:#?}");
    for call in calls.iter().filter(|call| call.access_key != "AKIAIOSFODNN7EXAMPLE") {
        let may_act = ["StopInstances", "CreateTags"].contains(&call.action.as_str());
        assert!(may_act, "what acts reads nothing: {call:?}");
    }
    // It is written on the machine, and in the log.
    let tags = calls.iter().find(|call| call.action == "CreateTags").unwrap().parameters.to_string();
    assert!(tags.contains("cloud-sweeper:stopped-by") && tags.contains("ada") && tags.contains(&plan), "{tags}");
    let log = site.sweeper.json(&["audit"]).await;
    let of = |did: &str| log.as_array().unwrap().iter().find(|entry| entry["did"] == did).cloned();
    let called = of("called").unwrap_or_else(|| panic!("{log:#}"));
    assert_eq!([&called["on"], &called["detail"]["asked_by"]], [&json!(plan), &json!("ada")]);
    assert_eq!(called["detail"]["rests_on_sha256"].as_str().unwrap().len(), 64);
    assert!(of("accepted").is_some() && of("done").is_some(), "{log:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    site.sweeper.sweep().await;
    assert_eq!(site.sweeper.json(&["plans"]).await, json!([]), "what it found is over");

    let undone = site.run(&["undo", &plan, "--token-file", token, "--wait"]).await;
    assert!(undone.code == 0 && undone.said.contains("done: the machine is running"), "{undone:?}");
    assert_eq!((site.state().await.as_str(), site.called("StartInstances").await.len()), ("running", 1));
    let again = site.run(&["undo", &plan, "--token-file", token]).await;
    assert!(again.code == 1 && again.error.contains("it is being undone, or was"), "{again:?}");
    // Somebody was wrong: nothing more is done there until a person looks.
    let listed = site.run(&["actions"]).await.said;
    assert!(listed.contains("undone by ada: nothing more is done in 123456789012 until"), "{listed}");
    let reviewed = site.run(&["actions", "review", ACCOUNT]).await;
    assert_eq!(reviewed.code, 0, "{reviewed:?}");
    assert_eq!(site.run(&["actions", "review", ACCOUNT]).await.code, 1, "once is enough");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
}

async fn what_was_set_up_to_hibernate_hibernates(url: String) {
    let site = Site::start(&url).await;
    let (before, ada) = (site.plan().await, site.enrol("ada").await);
    let set_up = Instance { hibernates: Some(true), tags: [].into(), ..Instance::default() };
    site.moto.change(REGION, &site.machine, &set_up).await;
    site.sweeper.sweep().await;
    let plan = site.plan().await;
    assert_ne!(plan, before, "a yes to a stop is none to this");
    let finding = site.sweeper.json(&["plans"]).await[0]["finding"].as_str().unwrap().to_owned();
    let shown = site.run(&["explain", &finding]).await.said;
    let calls = format!("aws ec2 stop-instances --region {REGION} --instance-ids {} --hibernate", site.machine);
    assert!(shown.contains("Hibernate the idle") && shown.contains(&calls), "{shown}");
    assert!(shown.contains("if hibernating fails: EC2 shuts it down then"), "{shown}");
    site.approve(&plan, &ada).await;
    assert_eq!(site.ended(&plan).await["state"], "done");
    let calls = site.moto.calls().await;
    let stops: Vec<_> = calls.iter().filter(|call| call.action == "StopInstances").collect();
    assert!(stops.len() > 1 && stops.iter().all(|call| call.parameters["Hibernate"] == "true"), "{stops:#?}");
    assert!(stops.iter().all(|call| call.parameters["Force"] == Value::Null), "{stops:#?}");
    assert_eq!((site.state().await.as_str(), site.called("StopInstances").await.len()), ("stopped", 1));
}

async fn a_dry_run_is_all_where_acting_is_not_switched_on(url: String) {
    let site = Site::start_with(&url, ANYBODY, "").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    let approved = site.run(&["approve", &plan, "--token-file", ada.to_str().unwrap(), "--wait"]).await;
    assert!(approved.code == 1 && approved.said.contains("A dry run is all that is done"), "{approved:?}");
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.starts_with("a dry run: nothing stands in the way"), "{ended:#}");
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
    // With another plan somebody may approve again.
    site.sweeper.sweep().await;
    let anew = site.plan().await;
    assert_ne!(anew, plan);
    site.node_says(Says::Works);
    site.approve(&anew, &ada).await;
    let ended = site.ended(&anew).await;
    assert!(ended["outcome"].as_str().unwrap().starts_with("it is not idle any more"), "{ended:#}");
}

async fn a_dry_run_is_all_where_no_role_acts(url: String) {
    let mut site = Site::start_with(&url, ANYBODY, "").await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.sweeper.stop().await;
    let file = site.sweeper.folder().join("sweeper.toml");
    let config = fs::read_to_string(&file).unwrap();
    let is_kept = |line: &&str| !line.starts_with("roles = ");
    let without: Vec<&str> = config.lines().filter(is_kept).collect();
    assert_eq!(without.len() + 1, config.lines().count(), "{config}");
    fs::write(&file, without.join("\n")).unwrap();
    site.sweeper.start_again().await;
    site.approve(&plan, &ada).await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.starts_with("a dry run: no role acts in account"), "{ended:#}");
    assert_eq!((site.dry_runs().await, site.called("StopInstances").await.len()), (0, 0));
}

async fn what_has_changed_since_the_approval_voids_it(url: String) {
    let site = Site::start(&url).await;
    let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
    let change = async |change: Instance| site.moto.change(REGION, &site.machine, &change).await;
    let machine = || Instance { tags: [].into(), ..Instance::default() };
    for what in ["exempt", "owner", "protected", "kill switch", "denied", "removed", "policy", "attested", "spot"] {
        let plan = site.plan().await;
        // It cannot be decided until the node has spoken.
        site.node_says(Says::Nothing);
        site.approve(&plan, &ada).await;
        site.action(&plan, "do", &["asking"]).await;
        let words = match what {
            "exempt" => {
                site.tag("CreateTags", "cloud-sweeper:exempt", "Monday's benchmark").await;
                "it is exempt by the tag"
            }
            "owner" => {
                site.tag("CreateTags", "owner", "grace").await;
                "its owner was ada when it was found, and is grace now"
            }
            "protected" => {
                change(Instance { disable_api_stop: Some(true), ..machine() }).await;
                "it is under stop protection"
            }
            "kill switch" => {
                assert_eq!(site.run(&["kill-switch", "on", "--because", "a test"]).await.code, 0);
                "the kill switch is on"
            }
            "denied" => {
                let denied = site.run(&["deny", &plan, "--token-file", grace.to_str().unwrap()]).await;
                assert_eq!(denied.code, 0, "{denied:?}");
                "grace has said no to it"
            }
            "removed" => {
                assert_eq!(site.run(&["approvers", "remove", "ada"]).await.code, 0);
                "0 of 1 people have approved it"
            }
            "policy" => {
                fs::write(site.folder.path().join("policy.toml"), "").unwrap();
                "no rule of the policy is about this plan"
            }
            "attested" => {
                site.change("UPDATE nodes SET attestation = 'none'").await;
                "its node has not proved which machine it is"
            }
            _ => {
                change(Instance { lifecycle: Some("spot".to_owned()), ..machine() }).await;
                "it is a Spot instance"
            }
        };
        site.node_says(Says::Quiet);
        let ended = site.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "{what}: `{words}` is not in {ended:#}");
        match what {
            "exempt" => site.tag("DeleteTags", "cloud-sweeper:exempt", "Monday's benchmark").await,
            "owner" => site.tag("CreateTags", "owner", "ada").await,
            "protected" => change(Instance { disable_api_stop: Some(false), ..machine() }).await,
            "kill switch" => assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0),
            "removed" => drop(site.enrol("ada").await),
            "policy" => fs::write(site.folder.path().join("policy.toml"), ANYBODY).unwrap(),
            "attested" => site.change("UPDATE nodes SET attestation = 'aws_iid'").await,
            "denied" => {}
            _ => break,
        }
        site.sweeper.sweep().await;
        assert_ne!(site.plan().await, plan, "{what}: another plan takes its place");
    }
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
}

async fn what_others_rest_on_and_what_the_sweeper_needs_is_left_alone(url: String) {
    let mut site = Site::start(&url).await;
    let ada = site.enrol("ada").await;
    // A load balancer has it as a target.
    let arn = site.target_group("web").await;
    let target = [("TargetGroupArn", arn.as_str()), ("Targets.member.1.Id", site.machine.as_str())];
    site.balancing(&[[("Action", "RegisterTargets")].as_slice(), target.as_slice()].concat()).await;
    site.is_refused("others rest on it: the target group web", &ada).await;
    site.balancing(&[[("Action", "DeregisterTargets")].as_slice(), target.as_slice()].concat()).await;
    // What rests on it cannot be read.
    let fault = Fault {
        action: Some("DescribeTargetGroups".into()),
        code: Some("AccessDenied".into()),
        status: Some(403),
        ..Fault::default()
    };
    site.moto.fail(&[fault]).await;
    site.is_refused("what rests on it could not be read", &ada).await;
    site.moto.fail(&[]).await;
    // It is the sweeper's own.
    site.sweeper.stop().await;
    let file = site.sweeper.folder().join("sweeper.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}own_instances = [\"{}\"]\n", site.machine)).unwrap();
    site.sweeper.start_again().await;
    site.is_refused("the sweeper itself needs this machine", &ada).await;
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
}

async fn a_node_that_does_not_answer_is_left_alone(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.node_says(Says::Nothing);
    site.approve(&plan, &ada).await;
    site.action(&plan, "do", &["asking"]).await;
    // A question is offered for a minute and a half.
    let ended = wait::until("its end", Duration::from_secs(150), || async {
        let all = site.sweeper.json(&["actions"]).await;
        (all[0]["state"] != "asking").then(|| all[0].clone())
    })
    .await;
    assert_eq!([&ended["state"], &ended["outcome"]], ["voided", "its node has not answered"], "{ended:#}");
    assert_eq!(site.called("StopInstances").await.len(), 0);
}

async fn a_plan_waits_while_its_finding_is_not_confirmed(url: String) {
    let site = Site::start(&url).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.change("UPDATE findings SET confirmed_sweeps = 0").await;
    site.approve(&plan, &ada).await;
    site.searched_twice().await;
    let actions = site.sweeper.json(&["actions"]).await;
    let is_begun = |action: &Value| action["plan"] == plan.as_str();
    assert!(!actions.as_array().unwrap().iter().any(is_begun), "{actions:#}");
    site.sweeper.sweep().await;
    assert_eq!(site.ended(&plan).await["state"], "done", "who approved it need not do so again");
}

async fn a_restored_backup_voids_what_was_approved(url: String) {
    let two = format!("{ANYBODY}needs = 2\n");
    let mut site = Site::start_with(&url, &two, SWITCHED_ON).await;
    let (plan, ada) = (site.plan().await, site.enrol("ada").await);
    site.approve(&plan, &ada).await;
    let backup = site.count("SELECT COUNT(*) AS told FROM audit").await;
    // The backup does not know that somebody was enrolled behind it, and the sweeper saw it.
    site.enrol("grace").await;
    site.sweeper.stop().await;
    site.sweeper.start_again().await;
    let seen = site.sweeper.folder().join("data/audit-head");
    let is_before = format!("\"sequence\":{backup},");
    wait::until("the log to be seen", TIMEOUT, || async {
        let seen = fs::read_to_string(&seen).ok()?;
        (!seen.contains(&is_before)).then_some(())
    })
    .await;
    site.sweeper.stop().await;
    site.change(&format!("DELETE FROM audit WHERE sequence > {backup}")).await;
    let hash = format!("(SELECT hash FROM audit WHERE sequence = {backup})");
    site.change(&format!("UPDATE audit_head SET sequence = {backup}, hash = {hash}")).await;
    site.change("DELETE FROM approvers WHERE name = 'grace'").await;
    site.sweeper.start_again().await;
    let switch = wait::until("the kill switch", TIMEOUT, || async {
        let switch = site.sweeper.json(&["kill-switch"]).await;
        (switch["is_on"] == true).then_some(switch)
    })
    .await;
    assert!(switch["because"].as_str().unwrap().contains("restored from a backup"), "{switch:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0, "what was found is in the log");
    assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0);
    fs::write(site.folder.path().join("policy.toml"), ANYBODY).unwrap();
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap();
    assert!(ended["state"] == "voided" && told.contains("restored from a backup"), "{ended:#}");
    assert_eq!((site.called("StopInstances").await.len(), site.state().await.as_str()), (0, "running"));
}

impl Site {
    /// A plan that is approved now comes to nothing, for this reason; another one takes its place.
    async fn is_refused(&self, words: &str, token: &Path) {
        let plan = self.plan().await;
        self.approve(&plan, token).await;
        let ended = self.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        self.sweeper.sweep().await;
    }
}
