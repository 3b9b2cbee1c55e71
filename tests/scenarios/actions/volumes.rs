//! A volume that is attached to nothing is deleted once two people have said so and a snapshot of it is whole, if nothing speaks against it at the last moment; and never without that
//! snapshot, nor twice.

use crate::{
    addresses::FOR_GOOD,
    site::{ANYBODY, REGION, SWITCHED_ON, Site, TIMEOUT},
};
use lab::{
    aws::{ACCOUNT, Fault, Volume},
    wait,
};
use serde_json::{Value, json};
use std::path::PathBuf;

lab::on_both_databases! {
    an_unattached_volume_is_deleted_once_its_snapshot_is_whole,
    what_is_attached_or_marked_since_the_approval_is_not_deleted,
    without_a_whole_snapshot_nothing_is_deleted,
    what_is_attached_while_no_list_confirms_it_is_not_deleted,
    where_acting_is_not_switched_on_no_snapshot_is_made,
    killed_between_snapshot_and_deletion_it_makes_no_second_snapshot,
    killed_after_the_call_has_left_it_looks_and_calls_nothing,
    an_error_after_a_snapshot_was_made_makes_no_second_one,
    a_day_has_no_more_snapshots_than_deletions,
    where_no_rule_lets_anybody_approve_it_there_is_no_button,
}

pub(crate) fn scratch(name: &str) -> Volume {
    let tags = [("Name", name), ("owner", "ada")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Volume { size_gib: Some(100), iops: Some(3_000), throughput: Some(125), tags, ..Volume::default() }
}

/// A site with unattached volumes, and two people.
struct Left {
    site: Site,
    ada: PathBuf,
    grace: PathBuf,
}

impl Left {
    async fn start(url: &str) -> Self {
        Self::start_with(url, SWITCHED_ON, &[scratch("scratch")]).await
    }

    async fn start_with(url: &str, act: &str, volumes: &[Volume]) -> Self {
        let site = Site::start_leaving(url, FOR_GOOD, act, &[], volumes).await;
        let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
        Self { site, ada, grace }
    }

    async fn plan(&self) -> String {
        self.site.plan_to("(scratch)").await
    }

    async fn both_approve(&self, plan: &str) {
        self.site.approve(plan, &self.ada).await;
        self.site.approve(plan, &self.grace).await;
    }

    async fn is_there(&self, volume: &str) -> bool {
        self.site.moto.query("ec2", REGION, &[("Action", "DescribeVolumes")]).await.contains(volume)
    }

    async fn tag(&self, action: &str, key: &str, value: &str) {
        let on = self.site.volumes[0].as_str();
        let call = [("Action", action), ("ResourceId.1", on), ("Tag.1.Key", key), ("Tag.1.Value", value)];
        self.site.moto.query("ec2", REGION, &call).await;
    }

    /// To the machine.
    async fn attach(&self) {
        let (volume, machine) = (self.site.volumes[0].as_str(), self.site.machine.as_str());
        let call = [("Action", "AttachVolume"), ("VolumeId", volume), ("InstanceId", machine), ("Device", "/dev/sdf")];
        self.site.moto.query("ec2", REGION, &call).await;
    }

    /// What an action on that plan waits for.
    async fn waits(&self, plan: &str, whether: fn(&str) -> bool) {
        wait::until("the action to wait", TIMEOUT, || async {
            let all = self.site.sweeper.json(&["actions"]).await;
            let action = all.as_array().unwrap().iter().find(|one| one["plan"] == plan)?.clone();
            (action["outcome"].as_str().is_some_and(whether) && action["state"] == "dry_run").then_some(())
        })
        .await;
    }

    /// So many snapshots and deletions were asked for.
    async fn calls(&self) -> (usize, usize) {
        (self.site.called("CreateSnapshot").await.len(), self.site.called("DeleteVolume").await.len())
    }
}

/// A call goes wrong once; both dry runs of a deletion, and the one of a snapshot, pass before.
fn late(action: &str) -> Fault {
    let after = if action == "DeleteVolume" { 2 } else { 1 };
    Fault {
        service: Some("ec2".into()),
        action: Some(action.into()),
        times: Some(1),
        after: Some(after),
        ..Fault::default()
    }
}

async fn an_unattached_volume_is_deleted_once_its_snapshot_is_whole(url: String) {
    let left = Left::start(&url).await;
    let (site, volume) = (&left.site, left.site.volumes[0].as_str());
    let plan = left.plan().await;
    let plans = site.sweeper.json(&["plans"]).await;
    let line = plans.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str()).unwrap();
    let shown = site.run(&["explain", line["finding"].as_str().unwrap()]).await.said;
    for part in [
        "for good",
        &format!("aws ec2 create-snapshot --region {REGION} --volume-id {volume}"),
        &format!("aws ec2 delete-volume --region {REGION} --volume-id {volume} --dry-run"),
        "one that is made of its snapshot has another id",
        "nothing: it is for good, so that two different people must approve it",
        "at the least: the list price of the volume",
        &format!("the snapshot of {volume}, at most: $5.00 a month"),
    ] {
        assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
    }
    site.approve(&plan, &left.ada).await;
    site.searched_twice().await;
    assert_eq!(left.calls().await, (0, 0), "one of them is nobody");
    let approved = site.run(&["approve", &plan, "--token-file", left.grace.to_str().unwrap(), "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(approved.said.contains("done: the volume is deleted; its snapshot stays"), "{approved:?}");
    assert!(!left.is_there(volume).await);
    assert_eq!(left.calls().await, (1, 1));
    let snapshot = &site.called("CreateSnapshot").await[0].parameters;
    assert_eq!(snapshot["VolumeId"], json!(volume));
    assert!(snapshot.to_string().contains("cloud-sweeper:plan") && snapshot.to_string().contains(&plan), "{snapshot}");
    // Nothing is deleted before it is copied, and each is asked dry before.
    let calls = site.moto.calls().await;
    let acted: Vec<_> = calls.iter().filter(|call| call.access_key != "AKIAIOSFODNN7EXAMPLE").collect();
    let told = |call: &&lab::aws::Call| (call.action.clone(), call.parameters["DryRun"] == "true");
    let told: Vec<_> = acted.iter().map(told).collect();
    let expected = [
        ("DeleteVolume", true),
        ("CreateSnapshot", true),
        ("CreateSnapshot", false),
        ("DeleteVolume", true),
        ("DeleteVolume", false),
    ];
    assert_eq!(told, expected.map(|(call, is_dry)| (call.to_owned(), is_dry)));
    site.hears("was deleted, as ada and grace approved").await;
    let undone = site.run(&["undo", &plan, "--token-file", left.ada.to_str().unwrap()]).await;
    assert!(undone.code == 1 && undone.error.contains("nothing undoes this plan"), "{undone:?}");

    site.sweeper.sweep().await;
    let resource = format!("aws:{ACCOUNT}:{REGION}:{volume}");
    let savings = site.sweeper.json(&["savings"]).await;
    let [saved] = savings["actions"].as_array().unwrap().as_slice() else { panic!("{savings:#}") };
    assert_eq!([&saved["resource"], &saved["ending"]], [&json!(resource), &json!("lasts")], "{savings:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    let (_, plans) = site.sweeper.replays().await;
    assert!(plans >= 2, "the plans of the machine and of the volume are made again: {plans}");
}

async fn what_is_attached_or_marked_since_the_approval_is_not_deleted(url: String) {
    let left = Left::start(&url).await;
    let (site, volume) = (&left.site, left.site.volumes[0].as_str());
    for what in ["exempt", "owner", "claim", "attached"] {
        let plan = left.plan().await;
        site.approve(&plan, &left.ada).await;
        let words = match what {
            "exempt" => {
                left.tag("CreateTags", "cloud-sweeper:exempt", "the thesis").await;
                "it is exempt by the tag"
            }
            "owner" => {
                left.tag("CreateTags", "owner", "grace").await;
                "its owner was ada when it was found, and is grace now"
            }
            "claim" => {
                left.tag("CreateTags", "CSIVolumeName", "pvc-1").await;
                "something else manages it, as its tag `CSIVolumeName` says"
            }
            _ => {
                left.attach().await;
                "it is tied to"
            }
        };
        site.approve(&plan, &left.grace).await;
        let ended = site.ended(&plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "{what}: `{words}` is not in {ended:#}");
        assert_eq!(left.calls().await, (0, 0), "{what}");
        match what {
            "exempt" => left.tag("DeleteTags", "cloud-sweeper:exempt", "the thesis").await,
            "owner" => left.tag("CreateTags", "owner", "ada").await,
            "claim" => left.tag("DeleteTags", "CSIVolumeName", "pvc-1").await,
            _ => break,
        }
        site.sweeper.sweep().await;
        assert_ne!(left.plan().await, plan, "{what}: another plan takes its place");
    }
    assert!(left.is_there(volume).await);
}

async fn without_a_whole_snapshot_nothing_is_deleted(url: String) {
    let of = |name: &str, copies: &str| Volume { copies_are: Some(copies.to_owned()), ..scratch(name) };
    let volumes = [of("slow", "pending"), of("broken", "error"), scratch("denied")];
    let left = Left::start_with(&url, SWITCHED_ON, &volumes).await;
    let site = &left.site;
    // It takes hours, and somebody says never meanwhile.
    let slow = site.plan_to("(slow)").await;
    left.both_approve(&slow).await;
    left.waits(&slow, |outcome| outcome.ends_with("is pending")).await;
    let broken = site.plan_to("(broken)").await;
    left.both_approve(&broken).await;
    let ended = site.ended(&broken).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "voided" && told.contains("its snapshot is `error`, not `completed`"), "{ended:#}");
    assert!(told.contains("was made for it, and stays"), "{ended:#}");
    assert_eq!(site.run(&["kill-switch", "on"]).await.code, 0);
    let ended = site.ended(&slow).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "voided" && told.contains("the kill switch is on"), "{ended:#}");
    assert_eq!(site.run(&["kill-switch", "off"]).await.code, 0);
    // EC2 makes none: the key that the volume is encrypted by cannot be used, or the role may not.
    let denied = site.plan_to("(denied)").await;
    let fault = Fault { code: Some("UnauthorizedOperation".into()), status: Some(403), ..late("CreateSnapshot") };
    let fault = Fault { after: None, times: None, ..fault };
    site.moto.fail(&[fault]).await;
    left.both_approve(&denied).await;
    let ended = site.ended(&denied).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "voided" && told.contains("EC2 made no snapshot of it"), "{ended:#}");
    assert_eq!(left.site.called("DeleteVolume").await.len(), 0);
    for volume in &site.volumes {
        assert!(left.is_there(volume).await, "{volume}");
    }
}

/// Whoever is attached to it writes what is in no copy, whatever else the action waits for.
async fn what_is_attached_while_no_list_confirms_it_is_not_deleted(url: String) {
    let left =
        Left::start_with(&url, SWITCHED_ON, &[Volume { copies_are: Some("pending".into()), ..scratch("slow") }]).await;
    let site = &left.site;
    let plan = site.plan_to("(slow)").await;
    left.both_approve(&plan).await;
    left.waits(&plan, |outcome| outcome.ends_with("is pending")).await;
    // Lists of all are refused, and what is read of this one is not.
    let lists = Fault {
        service: Some("ec2".into()),
        action: Some("DescribeVolumes".into()),
        parameters: [("MaxResults".to_owned(), "1000".to_owned())].into(),
        status: Some(403),
        code: Some("UnauthorizedOperation".into()),
        ..Fault::default()
    };
    site.moto.fail(&[lists]).await;
    assert_eq!(site.run(&["sweep"]).await.code, 3);
    left.waits(&plan, |outcome| outcome == "the last sweep could not confirm the finding").await;
    left.attach().await;
    let ended = site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "voided" && told.contains("it is tied to"), "{ended:#}");
    assert!(told.contains("was made for it, and stays"), "{ended:#}");
    assert_eq!(left.calls().await, (1, 0));
}

async fn where_acting_is_not_switched_on_no_snapshot_is_made(url: String) {
    let left = Left::start_with(&url, "", &[scratch("scratch")]).await;
    let plan = left.plan().await;
    left.both_approve(&plan).await;
    let ended = left.site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "voided" && told.starts_with("a dry run: nothing stands in the way"), "{ended:#}");
    assert_eq!(left.calls().await, (0, 0));
}

async fn killed_between_snapshot_and_deletion_it_makes_no_second_snapshot(url: String) {
    let mut left = Left::start(&url).await;
    let plan = left.plan().await;
    // The answer to the request for a snapshot comes late: it is made, and nobody has heard of it.
    left.site.moto.fail(&[Fault { delay_s: Some(15), acts: true, ..late("CreateSnapshot") }]).await;
    left.both_approve(&plan).await;
    wait::until("the snapshot to be asked for", TIMEOUT, || async {
        (!left.site.called("CreateSnapshot").await.is_empty()).then_some(())
    })
    .await;
    left.site.sweeper.kill();
    left.site.sweeper.start_again().await;
    let ended = wait::until("its end", TIMEOUT * 2, || async {
        let all = left.site.sweeper.json(&["actions"]).await;
        let action = all.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str())?.clone();
        ["done", "voided", "failed"].contains(&action["state"].as_str().unwrap()).then_some(action)
    })
    .await;
    assert_eq!((ended["state"].as_str(), left.calls().await), (Some("done"), (1, 1)), "{ended:#}");
}

async fn killed_after_the_call_has_left_it_looks_and_calls_nothing(url: String) {
    let mut left = Left::start(&url).await;
    let plan = left.plan().await;
    left.site.moto.fail(&[Fault { delay_s: Some(15), ..late("DeleteVolume") }]).await;
    left.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async {
        (!left.site.called("DeleteVolume").await.is_empty()).then_some(())
    })
    .await;
    left.site.sweeper.kill();
    assert_eq!(left.site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    left.site.sweeper.start_again().await;
    let ended = left.site.ended(&plan).await;
    assert_eq!((ended["state"].as_str(), left.calls().await), (Some("done"), (1, 1)), "{ended:#}");
    assert!(ended["outcome"].as_str().unwrap().contains("whether by this call, nobody knows"), "{ended:#}");
}

async fn an_error_after_a_snapshot_was_made_makes_no_second_one(url: String) {
    let left = Left::start(&url).await;
    let plan = left.plan().await;
    let error = Fault { acts: true, status: Some(500), code: Some("InternalError".into()), ..late("CreateSnapshot") };
    left.site.moto.fail(&[error]).await;
    left.both_approve(&plan).await;
    let ended: Value = wait::until("its end", TIMEOUT * 2, || async {
        let all = left.site.sweeper.json(&["actions"]).await;
        let action = all.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str())?.clone();
        ["done", "voided", "failed"].contains(&action["state"].as_str().unwrap()).then_some(action)
    })
    .await;
    assert_eq!((ended["state"].as_str(), left.calls().await), (Some("done"), (1, 1)), "{ended:#}");
}

async fn a_day_has_no_more_snapshots_than_deletions(url: String) {
    let names: Vec<String> = (1..=7).map(|number| format!("scratch-{number}")).collect();
    let volumes: Vec<_> =
        names.iter().map(|name| Volume { copies_are: Some("pending".to_owned()), ..scratch(name) }).collect();
    let mut left = Left::start_with(&url, SWITCHED_ON, &volumes).await;
    let mut plans = Vec::new();
    for name in &names {
        let plan = left.site.plan_to(&format!("({name})")).await;
        left.both_approve(&plan).await;
        plans.push(plan);
    }
    // So many wait for their snapshots, by whoever holds them since that epoch at the earliest; the others are told of.
    let wait = async |left: &Left, epoch: i64| {
        wait::until("five snapshots to be waited for", TIMEOUT * 2, || async {
            let all = left.site.sweeper.json(&["actions"]).await;
            let of = |is_it: &dyn Fn(&&Value) -> bool| all.as_array().unwrap().iter().filter(is_it).count();
            let waits = |action: &&Value| {
                let told = action["outcome"].as_str().is_some_and(|told| told.ends_with("is pending"));
                action["state"] == "dry_run" && told && action["epoch"].as_i64().unwrap() >= epoch
            };
            let capped = |action: &&Value| {
                let told = action["outcome"].as_str().unwrap_or_default();
                action["state"] == "voided" && told.contains("5 actions were carried out in this account")
            };
            (of(&waits) == 5 && of(&capped) == 2).then_some(())
        })
        .await;
    };
    wait(&left, 1).await;
    assert_eq!(left.calls().await, (5, 0));
    left.site.sweeper.kill();
    left.site.sweeper.start_again().await;
    wait(&left, 2).await;
    assert_eq!(left.calls().await, (5, 0), "whoever takes them over makes none, and takes no other's place");
    // Once they are whole they are deleted: what was done after they began has not taken their place.
    let now = jiff::Timestamp::now().as_millisecond();
    for number in 1..=5 {
        let plan = number.to_string().repeat(64);
        let insert = format!(
            "INSERT INTO actions (plan_hash, direction, attempt, finding_id, resource, account, class, asked_by, state, epoch, holder, \
             held_until_unix_ms, claimed_unix_ms, changed_unix_ms, called_unix_ms) VALUES \
             ('{plan}', 'do', 1, 'f-1', 'aws:{ACCOUNT}:{REGION}:i-1', '{ACCOUNT}', 'reversible', '', 'failed', 1, '', 0, {now}, {now}, {now})"
        );
        left.site.change(&insert).await;
    }
    let whole: Vec<_> =
        left.site.volumes.iter().map(|id| Volume { id: Some(id.clone()), ..Volume::default() }).collect();
    left.site.moto.volumes(REGION, &whole).await;
    let mut done = 0;
    for plan in &plans {
        done += usize::from(left.site.ended(plan).await["state"] == "done");
    }
    assert_eq!((done, left.calls().await), (5, (5, 5)));
}

async fn where_no_rule_lets_anybody_approve_it_there_is_no_button(url: String) {
    let site = Site::start_leaving(&url, ANYBODY, SWITCHED_ON, &[], &[scratch("scratch")]).await;
    let ada = site.enrol("ada").await;
    let why = "no rule of the policy is about it; add one with `classes = [\"destructive\"]` to the file that `approvals.policy_file` names";
    let message = site.hears(&format!("Nobody may approve that: {}", why.replace('"', "\\\""))).await;
    let offers = |message: &Value, what: &str| message.to_string().contains(&format!("\"action_id\":\"{what}\""));
    assert!(!offers(&message, "approve") && offers(&message, "not_now") && offers(&message, "never"), "{message:#}");
    let plan = site.plan_to("(scratch)").await;
    let plans = site.sweeper.json(&["plans"]).await;
    for one in plans.as_array().unwrap() {
        let expected = if one["plan"] == plan.as_str() { json!(why) } else { Value::Null };
        assert_eq!(one["nobody_may"], expected, "{one:#}");
    }
    let shown = site.run(&["plans"]).await.said;
    assert!(shown.contains(&format!("Nobody may approve {}: {why}.", &plan[..12])), "{shown}");
    let refused = site.run(&["approve", &plan, "--token-file", ada.to_str().unwrap()]).await;
    assert!(refused.code == 1 && refused.error.contains("no rule of the policy is about this plan"), "{refused:?}");
}
