//! An idle machine of an Auto Scaling group is ended there, and its group made smaller by one, once two people have said so and its node, asked once more, says that nothing runs; if nothing speaks against it
//! at the last moment. Never without the decrement, nor twice, nor where nobody has switched that on.

use crate::{
    addresses::FOR_GOOD,
    site::{REGION, SWITCHED_ON, Says, Site, TIMEOUT, WORKERS},
    two::TwoPeople,
};
use lab::{
    aws::{ACCOUNT, Fault, Instance},
    wait,
};
use serde_json::{Value, json};

lab::on_both_databases! {
    an_idle_member_is_ended_by_two_people_and_its_group_made_smaller,
    what_has_changed_in_the_group_since_the_approval_voids_it,
    work_that_has_begun_since_the_approval_voids_it,
    where_it_is_not_switched_on_no_member_is_ended,
    killed_after_the_call_has_left_it_looks_and_calls_nothing,
    killed_before_the_call_it_begins_anew,
    an_error_after_having_acted_is_looked_into,
}

/// Nothing undoes it: it has a switch of its own.
pub(crate) const ENDS: &str = "end_members = true\n";
const CALL: &str = "TerminateInstanceInAutoScalingGroup";
/// Of Auto Scaling's, which has no dry run, the same is asked in its place.
const OPENS: &str = "DescribeTerminationPolicyTypes";

async fn start(url: &str) -> TwoPeople {
    start_with(url, &format!("{SWITCHED_ON}{ENDS}")).await
}

async fn start_with(url: &str, act: &str) -> TwoPeople {
    TwoPeople::of(Site::start_grouped(url, FOR_GOOD, act).await, "(align-7)").await
}

impl TwoPeople {
    /// Changes or reads a group.
    async fn scaling(&self, action: &str, more: &[(&str, &str)]) -> String {
        let call = [[("Action", action), ("Version", "2011-01-01")].as_slice(), more].concat();
        self.site.moto.query("autoscaling", REGION, &call).await
    }

    /// So many machines its group keeps up, and whether it lists this one.
    async fn group(&self) -> (String, bool) {
        let told = self.scaling("DescribeAutoScalingGroups", &[("AutoScalingGroupNames.member.1", WORKERS)]).await;
        let desired = told.split_once("<DesiredCapacity>").unwrap().1.split_once('<').unwrap().0.to_owned();
        (desired, told.contains(&self.site.machine))
    }
}

/// A call goes wrong once, behind so many of the same name.
fn late(action: &str, after: u32) -> Fault {
    Fault {
        service: Some("autoscaling".into()),
        action: Some(action.into()),
        times: Some(1),
        after: Some(after),
        ..Fault::default()
    }
}

async fn an_idle_member_is_ended_by_two_people_and_its_group_made_smaller(url: String) {
    let grouped = start(&url).await;
    let site = &grouped.site;
    let plan = grouped.plan().await;
    let plans = site.sweeper.json(&["plans"]).await;
    let line = plans.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str()).unwrap();
    let shown = site.run(&["explain", line["finding"].as_str().unwrap()]).await.said;
    let command = format!(
        "aws autoscaling terminate-instance-in-auto-scaling-group --region {REGION} --instance-id {} --should-decrement-desired-capacity",
        site.machine
    );
    for part in [
        "for good, and have the group keep up one machine fewer",
        "it is a member of the Auto Scaling group workers and of nothing else",
        &command,
        "wait up to 7200 s for it to be terminated",
        "what its group starts later is another one",
        "nothing: it is for good, so that two different people must approve it",
    ] {
        assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
    }
    assert!(!shown.contains("--dry-run"), "Auto Scaling has none:\n{shown}");
    site.approve(&plan, &grouped.ada).await;
    site.searched_twice().await;
    assert_eq!(
        (grouped.site.called(CALL).await.len(), site.state().await.as_str()),
        (0, "running"),
        "one of them is nobody"
    );
    let approved = site.run(&["approve", &plan, "--token-file", grouped.grace.to_str().unwrap(), "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(approved.said.ends_with("done: the machine is terminated\n"), "{approved:?}");
    assert_eq!((site.state().await.as_str(), grouped.group().await), ("terminated", ("2".to_owned(), false)));
    let ends = grouped.site.called(CALL).await;
    let [end] = ends.as_slice() else { panic!("{ends:#?}") };
    assert_eq!(end.parameters["InstanceId"], json!(site.machine));
    assert_eq!(end.parameters["ShouldDecrementDesiredCapacity"], "true");
    // By the role that acts, which asks what is the same for everybody, and nothing else.
    let calls = site.moto.calls().await;
    let acted = calls.iter().filter(|call| call.access_key != "AKIAIOSFODNN7EXAMPLE");
    let acted: Vec<&str> = acted.map(|call| call.action.as_str()).collect();
    assert_eq!(acted, [OPENS, OPENS, CALL]);
    site.hears("was ended, as ada and grace approved").await;
    let undone = site.run(&["undo", &plan, "--token-file", grouped.ada.to_str().unwrap()]).await;
    assert!(undone.code == 1 && undone.error.contains("nothing undoes this plan"), "{undone:?}");

    site.sweeper.sweep().await;
    let savings = site.sweeper.json(&["savings"]).await;
    let [saved] = savings["actions"].as_array().unwrap().as_slice() else { panic!("{savings:#}") };
    let resource = format!("aws:{ACCOUNT}:{REGION}:{}", site.machine);
    assert_eq!([&saved["resource"], &saved["ending"]], [&json!(resource), &json!("lasts")], "{savings:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    let (_, plans) = site.sweeper.replays().await;
    assert!(plans >= 3, "the plans of three machines are made again: {plans}");

    // The group starts another: somebody missed the machine.
    let mut another = Instance::named("m5.large", "align-10");
    another.tags.insert("aws:autoscaling:groupName".to_owned(), WORKERS.to_owned());
    let [another] = site.moto.run(REGION, &[another]).await.try_into().unwrap();
    site.sweeper.sweep().await;
    let told = site.hears("was replaced").await.to_string();
    assert!(told.contains("after it was ended, as ada and grace approved") && told.contains(&another), "{told}");
    assert!(told.contains("nothing more of that class is done in 123456789012"), "{told}");
}

async fn what_has_changed_in_the_group_since_the_approval_voids_it(url: String) {
    let grouped = start(&url).await;
    let site = &grouped.site;
    let name = ("AutoScalingGroupName", WORKERS);
    let member = ("InstanceIds.member.1", site.machine.as_str());
    let protect =
        async |on: &str| grouped.scaling("SetInstanceProtection", &[name, member, ("ProtectedFromScaleIn", on)]).await;
    let least = async |min: &str| {
        grouped.scaling("UpdateAutoScalingGroup", &[name, ("MinSize", min), ("DesiredCapacity", "3")]).await
    };
    let process = ("ScalingProcesses.member.1", "Terminate");
    let exempt = [
        ("Tags.member.1.ResourceId", WORKERS),
        ("Tags.member.1.ResourceType", "auto-scaling-group"),
        ("Tags.member.1.Key", "cloud-sweeper:exempt"),
        ("Tags.member.1.Value", "the deadline"),
        ("Tags.member.1.PropagateAtLaunch", "false"),
    ];
    for what in ["protected", "minimum", "suspended", "refreshed", "exempt", "moved"] {
        let plan = grouped.plan().await;
        // It cannot be decided until the node has spoken.
        site.node_says(Says::Nothing);
        grouped.both_approve(&plan).await;
        site.action(&plan, "do", &["asking"]).await;
        let words = match what {
            "protected" => {
                protect("true").await;
                "it is protected from scale-in"
            }
            "minimum" => {
                least("3").await;
                "its Auto Scaling group keeps up 3, and its minimum is 3"
            }
            "suspended" => {
                grouped.scaling("SuspendProcesses", &[name, process]).await;
                "is kept from ending machines (`Terminate` is suspended)"
            }
            "refreshed" => {
                site.moto.refreshes(REGION, WORKERS, &["InProgress", "Successful"]).await;
                "the machines of its Auto Scaling group are being replaced: r-0 (InProgress)"
            }
            "exempt" => {
                grouped.scaling("CreateOrUpdateTags", &exempt).await;
                "its Auto Scaling group is exempt by the tag"
            }
            _ => {
                grouped.scaling("DetachInstances", &[name, member, ("ShouldDecrementDesiredCapacity", "true")]).await;
                "workers does not list it as a member any more"
            }
        };
        site.node_says(Says::Quiet);
        grouped.is_voided(CALL, &plan, words).await;
        match what {
            "protected" => drop(protect("false").await),
            "minimum" => drop(least("1").await),
            "suspended" => drop(grouped.scaling("ResumeProcesses", &[name, process]).await),
            "refreshed" => site.moto.refreshes(REGION, WORKERS, &["Successful"]).await,
            "exempt" => drop(grouped.scaling("DeleteTags", &exempt).await),
            _ => break,
        }
        site.sweeper.sweep().await;
        assert_ne!(grouped.plan().await, plan, "{what}: another plan takes its place");
    }
}

async fn work_that_has_begun_since_the_approval_voids_it(url: String) {
    let grouped = start(&url).await;
    let plan = grouped.plan().await;
    grouped.site.node_says(Says::Works);
    grouped.both_approve(&plan).await;
    grouped.is_voided(CALL, &plan, "it is not idle any more").await;
    assert_eq!(grouped.group().await, ("3".to_owned(), true));
}

async fn where_it_is_not_switched_on_no_member_is_ended(url: String) {
    // The rest of it is switched on: no plan is made.
    let grouped = start_with(&url, SWITCHED_ON).await;
    assert_eq!(grouped.site.sweeper.json(&["plans"]).await, json!([]));
    let findings = grouped.site.run(&["findings"]).await.said;
    assert!(findings.contains("align-7"), "it is found all the same: {findings}");
    drop(grouped);
    // Nothing else is, so that a dry run is all that is done.
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("sweeper.db").display());
    let grouped = start_with(&url, ENDS).await;
    let plan = grouped.plan().await;
    grouped.both_approve(&plan).await;
    grouped.is_voided(CALL, &plan, "a dry run: nothing stands in the way").await;
}

async fn killed_after_the_call_has_left_it_looks_and_calls_nothing(url: String) {
    let mut grouped = start(&url).await;
    let plan = grouped.plan().await;
    grouped.site.moto.fail(&[Fault { delay_s: Some(15), ..late(CALL, 0) }]).await;
    grouped.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async { (!grouped.site.called(CALL).await.is_empty()).then_some(()) })
        .await;
    grouped.site.sweeper.kill();
    assert_eq!(grouped.site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    grouped.site.sweeper.start_again().await;
    let ended = grouped.site.ended(&plan).await;
    assert_eq!((ended["state"].as_str(), grouped.site.called(CALL).await.len()), (Some("done"), 1), "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
    assert_eq!(grouped.group().await, ("2".to_owned(), false));
}

async fn killed_before_the_call_it_begins_anew(url: String) {
    let mut grouped = start(&url).await;
    let plan = grouped.plan().await;
    grouped.site.moto.fail(&[Fault { delay_s: Some(20), ..late(OPENS, 0) }]).await;
    grouped.both_approve(&plan).await;
    grouped.site.action(&plan, "do", &["claimed"]).await;
    grouped.site.sweeper.kill();
    grouped.site.sweeper.start_again().await;
    let ended = grouped.site.ended(&plan).await;
    let [state, epoch] = [&ended["state"], &ended["epoch"]];
    assert_eq!(([state, epoch], grouped.site.called(CALL).await.len()), ([&json!("done"), &json!(2)], 1), "{ended:#}");
}

async fn an_error_after_having_acted_is_looked_into(url: String) {
    let grouped = start(&url).await;
    let plan = grouped.plan().await;
    let error = Fault { acts: true, status: Some(500), code: Some("InternalFailure".into()), ..late(CALL, 0) };
    grouped.site.moto.fail(&[error]).await;
    grouped.both_approve(&plan).await;
    let ended: Value = grouped.site.ended(&plan).await;
    assert_eq!((ended["state"].as_str(), grouped.site.called(CALL).await.len()), (Some("done"), 1), "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
}
