//! A stuck job of AWS Batch is terminated once two people have said so and the agent on its machine, asked once more, says that nothing of it has run since it was found; if nothing speaks against it at the last
//! moment. Never twice, nor where nobody has switched that on.

mod doubts;

use crate::{
    addresses::FOR_GOOD,
    site::{REGION, SWITCHED_ON, Says, Site, TIMEOUT},
    two::TwoPeople,
};
use jiff::Timestamp;
use lab::{
    aws::{
        ACCOUNT, Fault,
        estate::{job, queue},
    },
    stuck_job::{self, JOB, STARTED},
    wait,
};
use serde_json::{Value, json};

lab::on_both_databases! {
    a_stuck_job_is_terminated_by_two_people_and_its_reason_says_so,
    what_has_changed_of_the_job_since_the_approval_voids_it,
    work_of_the_job_that_has_begun_since_the_approval_voids_it,
    what_another_job_waits_for_is_not_planned_and_not_terminated,
    where_it_is_not_switched_on_no_job_is_terminated,
    killed_after_the_call_has_left_it_looks_at_the_job_and_calls_nothing,
    killed_before_the_call_the_termination_begins_anew,
    an_error_after_having_terminated_is_looked_into,
    a_job_that_ends_by_itself_as_the_call_leaves_is_not_said_to_be_terminated,
}

/// Nothing undoes it: it has a switch of its own.
pub(crate) const TERMINATES: &str = "terminate_jobs = true\n";
const CALL: &str = "TerminateJob";
/// Batch has no dry run, and is asked this in its place.
const OPENS: &str = "ListTagsForResource";

async fn start(url: &str) -> TwoPeople {
    start_with(url, &format!("{SWITCHED_ON}{TERMINATES}")).await
}

async fn start_with(url: &str, act: &str) -> TwoPeople {
    TwoPeople::of(Site::start_with_job(url, FOR_GOOD, act).await, "Terminate the stuck AWS Batch job").await
}

impl TwoPeople {
    /// Tells the job anew.
    async fn job_is(&self, status: &str, more: Value) {
        let mut told = json!({"startedAt": STARTED.as_millisecond()});
        told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.site.moto.batch(REGION, json!({"jobs": [stuck_job::told(status, &told)]})).await;
    }
}

/// A call goes wrong once.
fn late(action: &str) -> Fault {
    Fault { service: Some("batch".into()), action: Some(action.into()), times: Some(1), ..Fault::default() }
}

async fn a_stuck_job_is_terminated_by_two_people_and_its_reason_says_so(url: String) {
    let busy = start(&url).await;
    let site = &busy.site;
    let plan = busy.plan().await;
    let plans = site.sweeper.json(&["plans"]).await;
    let line = plans.as_array().unwrap().iter().find(|one| one["plan"] == plan.as_str()).unwrap();
    let shown = site.run(&["explain", line["finding"].as_str().unwrap()]).await.said;
    let command = format!("aws batch terminate-job --region {REGION} --job-id {JOB} --reason REASON");
    for part in [
        "for good; Batch does not try it again",
        "no other job waits for its end",
        "nothing of it has run since 20",
        "without a time in between that nobody saw",
        &command,
        "wait up to 900 s for it to be terminated",
        "what is left of the 3 attempts",
        "nothing: it is for good, so that two different people must approve it",
    ] {
        assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
    }
    assert!(!shown.contains("--dry-run"), "Batch has none:\n{shown}");
    site.hears("Terminate it").await;
    site.approve(&plan, &busy.ada).await;
    site.searched_twice().await;
    assert_eq!(busy.site.called(CALL).await.len(), 0, "one of them is nobody");
    let approved = site.run(&["approve", &plan, "--token-file", busy.grace.to_str().unwrap(), "--wait"]).await;
    assert_eq!(approved.code, 0, "{approved:?}\n{}", site.sweeper.log());
    assert!(
        approved.said.ends_with("done: the job is terminated, and AWS Batch does not try it again\n"),
        "{approved:?}"
    );
    let ends = busy.site.called(CALL).await;
    let [end] = ends.as_slice() else { panic!("{ends:#?}") };
    let reason = format!("cloud-sweeper plan {plan}: stuck, and approved by ada, grace");
    assert_eq!((&end.parameters["jobId"], &end.parameters["reason"]), (&json!(JOB), &json!(reason)));
    // By the role that acts, in the names of both, which reads the tags of the job that it is to terminate and nothing else.
    let calls = site.moto.calls().await;
    let acted = calls.iter().filter(|call| call.access_key != "AKIAIOSFODNN7EXAMPLE");
    let acted: Vec<&str> = acted.map(|call| call.action.as_str()).collect();
    assert_eq!(acted, [OPENS, OPENS, CALL]);
    let assumed = calls.iter().find(|call| call.action == "AssumeRole").unwrap();
    assert_eq!(assumed.parameters["SourceIdentity"], "ada,grace");
    site.hears("was terminated, as ada and grace approved").await;
    let undone = site.run(&["undo", &plan, "--token-file", busy.ada.to_str().unwrap()]).await;
    assert!(undone.code == 1 && undone.error.contains("nothing undoes this plan"), "{undone:?}");

    site.sweeper.sweep().await;
    assert_eq!(site.sweeper.json(&["plans"]).await, json!([]), "what it found is over");
    let savings = site.sweeper.json(&["savings"]).await;
    let [saved] = savings["actions"].as_array().unwrap().as_slice() else { panic!("{savings:#}") };
    assert_eq!(saved["resource"], format!("aws:{ACCOUNT}:{REGION}:job/{JOB}"), "{savings:#}");
    assert_eq!(site.run(&["audit", "verify"]).await.code, 0);
    let (_, plans) = site.sweeper.replays().await;
    assert!(plans >= 1, "its plan is made again: {plans}");
}

async fn what_has_changed_of_the_job_since_the_approval_voids_it(url: String) {
    let busy = start(&url).await;
    let site = &busy.site;
    let exempt = json!({"owner": "ada", "cloud-sweeper:exempt": "the deadline"});
    for what in [
        "exempt",
        "untold",
        "owner",
        "restarted",
        "queue exempt",
        "queue untold",
        "moved",
        "ending",
        "attested",
        "over",
    ] {
        let plan = busy.plan().await;
        // It cannot be decided until the agent has spoken.
        site.node_says(Says::Nothing);
        busy.both_approve(&plan).await;
        site.action(&plan, "do", &["asking"]).await;
        let queue_tagged = |tags: Value| {
            let mut told = queue("busy", "busy");
            told["tags"] = tags;
            json!({"queues": [told]})
        };
        let words = match what {
            "exempt" => {
                busy.job_is("RUNNING", json!({"tags": exempt})).await;
                "it is exempt by the tag"
            }
            "untold" => {
                let mut told = stuck_job::told("RUNNING", &json!({"startedAt": STARTED.as_millisecond()}));
                drop(told.as_object_mut().unwrap().remove("tags"));
                site.moto.batch(REGION, json!({"jobs": [told]})).await;
                "its tags could not be read"
            }
            "owner" => {
                busy.job_is("RUNNING", json!({"tags": {"owner": "grace"}})).await;
                "its owner was ada when it was found, and is grace now"
            }
            "restarted" => {
                let at = STARTED.as_millisecond() + 1;
                busy.job_is("RUNNING", json!({"startedAt": at})).await;
                "its start was"
            }
            "queue exempt" => {
                site.moto.batch(REGION, queue_tagged(json!({"cloud-sweeper:exempt": ""}))).await;
                "its job queue is exempt by the tag"
            }
            "queue untold" => {
                site.moto.batch(REGION, json!({"queues": [queue("busy", "busy")]})).await;
                "the tags of its job queue could not be read"
            }
            "moved" => {
                let definition = format!("arn:aws:batch:{REGION}:{ACCOUNT}:job-definition/align:4");
                busy.job_is("RUNNING", json!({"jobDefinition": definition})).await;
                "its definition was"
            }
            "ending" => {
                busy.job_is("RUNNING", json!({"isTerminated": true})).await;
                "somebody has cancelled or terminated it already"
            }
            "attested" => {
                site.change("UPDATE nodes SET attestation = 'none'").await;
                "its node has not proved which machine it is"
            }
            _ => {
                busy.job_is("SUCCEEDED", json!({"stoppedAt": Timestamp::now().as_millisecond()})).await;
                "its status is `SUCCEEDED`, not `RUNNING`"
            }
        };
        site.node_says(Says::Quiet);
        busy.is_voided(CALL, &plan, words).await;
        match what {
            "queue exempt" | "queue untold" => site.moto.batch(REGION, queue_tagged(json!({}))).await,
            "attested" => site.change("UPDATE nodes SET attestation = 'aws_iid'").await,
            "over" => break,
            _ => busy.job_is("RUNNING", json!({})).await,
        }
        site.sweeper.sweep().await;
        assert_ne!(busy.plan().await, plan, "{what}: another plan takes its place");
    }
}

async fn work_of_the_job_that_has_begun_since_the_approval_voids_it(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.node_says(Says::Works);
    busy.both_approve(&plan).await;
    busy.is_voided(CALL, &plan, "it is not stuck any more: it made progress: context switches").await;
}

async fn what_another_job_waits_for_is_not_planned_and_not_terminated(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    // It comes after the last sweep.
    let waits = job("next", "busy", "PENDING", json!({"dependsOn": [{"jobId": JOB}]}));
    busy.site.moto.batch(REGION, json!({"jobs": [waits]})).await;
    busy.both_approve(&plan).await;
    busy.is_voided(CALL, &plan, "the job next waits for its end, and would fail with it").await;
    busy.site.sweeper.sweep().await;
    assert_eq!(busy.site.sweeper.json(&["plans"]).await, json!([]));
    let findings = busy.site.run(&["findings"]).await.said;
    assert!(findings.contains("align-stuck"), "it is found all the same: {findings}");
}

async fn where_it_is_not_switched_on_no_job_is_terminated(url: String) {
    // The rest of it is switched on: no plan is made.
    let busy = start_with(&url, SWITCHED_ON).await;
    assert_eq!(busy.site.sweeper.json(&["plans"]).await, json!([]));
    let findings = busy.site.run(&["findings"]).await.said;
    assert!(findings.contains("align-stuck"), "it is found all the same: {findings}");
    drop(busy);
    // Nothing else is, so that a dry run is all that is done.
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("sweeper.db").display());
    let busy = start_with(&url, TERMINATES).await;
    let plan = busy.plan().await;
    busy.both_approve(&plan).await;
    busy.is_voided(CALL, &plan, "a dry run: nothing stands in the way").await;
}

async fn killed_after_the_call_has_left_it_looks_at_the_job_and_calls_nothing(url: String) {
    let mut busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.moto.fail(&[Fault { acts: true, delay_s: Some(15), ..late(CALL) }]).await;
    busy.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async { (!busy.site.called(CALL).await.is_empty()).then_some(()) })
        .await;
    busy.site.sweeper.kill();
    assert_eq!(busy.site.action(&plan, "do", &["calling"]).await["epoch"], 1);
    busy.site.sweeper.start_again().await;
    let ended = busy.site.ended(&plan).await;
    assert_eq!((ended["state"].as_str(), busy.site.called(CALL).await.len()), (Some("done"), 1), "{ended:#}");
}

async fn killed_before_the_call_the_termination_begins_anew(url: String) {
    let mut busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.moto.fail(&[Fault { delay_s: Some(20), ..late(OPENS) }]).await;
    busy.both_approve(&plan).await;
    busy.site.action(&plan, "do", &["claimed"]).await;
    busy.site.sweeper.kill();
    busy.site.sweeper.start_again().await;
    let ended = busy.site.ended(&plan).await;
    let [state, epoch] = [&ended["state"], &ended["epoch"]];
    assert_eq!(([state, epoch], busy.site.called(CALL).await.len()), ([&json!("done"), &json!(2)], 1), "{ended:#}");
}

async fn an_error_after_having_terminated_is_looked_into(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    let error = Fault { acts: true, status: Some(500), code: Some("ServerException".into()), ..late(CALL) };
    busy.site.moto.fail(&[error]).await;
    busy.both_approve(&plan).await;
    let ended: Value = busy.site.ended(&plan).await;
    assert_eq!((ended["state"].as_str(), busy.site.called(CALL).await.len()), (Some("done"), 1), "{ended:#}");
}

async fn a_job_that_ends_by_itself_as_the_call_leaves_is_not_said_to_be_terminated(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.moto.fail(&[Fault { delay_s: Some(4), ..late(CALL) }]).await;
    busy.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async { (!busy.site.called(CALL).await.is_empty()).then_some(()) })
        .await;
    busy.job_is("SUCCEEDED", json!({"stoppedAt": Timestamp::now().as_millisecond()})).await;
    let ended = busy.site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "failed" && told.contains("the job has ended otherwise: it is SUCCEEDED"), "{ended:#}");
    busy.site.hears("Terminating align-stuck failed, which ada and grace approved").await;
}
