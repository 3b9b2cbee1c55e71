//! What leaves a doubt of a stuck job, of whether anybody wants it ended, or of who ended it.

use super::*;
use crate::slack::{ADA, GRACE};

lab::on_both_databases! {
    what_works_beside_the_job_on_its_machine_voids_it,
    what_was_approved_is_void_behind_a_time_that_no_sweep_saw,
    who_wants_what_the_job_is_in_left_alone_wants_it_of_the_job,
    many_jobs_that_got_stuck_in_a_day_void_it,
    a_job_that_waits_for_it_since_its_agent_was_asked_voids_it,
    whoever_says_yes_by_a_button_hears_that_its_switch_is_off,
    what_somebody_else_gives_as_the_reason_is_not_taken_for_the_plans_word,
}

async fn what_works_beside_the_job_on_its_machine_voids_it(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.node_says(Says::WorksBeside);
    busy.both_approve(&plan).await;
    let words = "other work ran on its machine meanwhile, for which it may wait: CPU time";
    busy.is_voided(CALL, &plan, words).await;
    // The sweep that comes next does not plan it either, and finds it all the same.
    busy.site.sweeper.sweep().await;
    assert_eq!(busy.site.sweeper.json(&["plans"]).await, json!([]));
    let findings = busy.site.run(&["findings"]).await.said;
    assert!(findings.contains("align-stuck"), "{findings}");
}

async fn what_was_approved_is_void_behind_a_time_that_no_sweep_saw(url: String) {
    let busy = start(&url).await;
    let site = &busy.site;
    // It has been stuck for two hours more, which sweeps saw without a gap.
    site.change("UPDATE findings SET since_unix_ms = since_unix_ms - 7200000 WHERE class = 'stuck_job'").await;
    site.sweeper.sweep().await;
    let plan = busy.plan().await;
    site.approve(&plan, &busy.ada).await;
    // And now as if the last of these sweeps had been an hour ago: the same window as before is a new standstill.
    site.change("UPDATE findings SET confirmed_until_unix_ms = since_unix_ms + 3600000 WHERE class = 'stuck_job'")
        .await;
    site.sweeper.sweep().await;
    let anew = busy.plan().await;
    assert_ne!(anew, plan, "whether it ran in between nobody saw");
    let late = site.run(&["approve", &plan, "--token-file", busy.grace.to_str().unwrap()]).await;
    assert_ne!(late.code, 0, "{late:?}");
    site.approve(&anew, &busy.grace).await;
    site.searched_twice().await;
    assert_eq!(busy.site.called(CALL).await.len(), 0, "one has approved this plan, and one another");
}

async fn who_wants_what_the_job_is_in_left_alone_wants_it_of_the_job(url: String) {
    let busy = start(&url).await;
    let site = &busy.site;
    let keys = [site.machine.clone(), "queue/busy".to_owned(), "environment/busy".to_owned()];
    for key in keys.map(|id| format!("aws:{ACCOUNT}:{REGION}:{id}")) {
        let plan = busy.plan().await;
        // It cannot be decided until the agent has spoken.
        site.node_says(Says::Nothing);
        busy.both_approve(&plan).await;
        site.action(&plan, "do", &["asking"]).await;
        let exempt = ["exempt", &key, "--because", "a demo", "--token-file", busy.ada.to_str().unwrap()];
        let said = site.run(&exempt).await;
        assert_eq!(said.code, 0, "{said:?}");
        site.node_says(Says::Quiet);
        busy.is_voided(CALL, &plan, "ada wants it left alone").await;
        // Nor is another one planned, until that is lifted.
        site.sweeper.sweep().await;
        let plans = site.sweeper.json(&["plans"]).await;
        let titles: Vec<&str> = plans.as_array().unwrap().iter().map(|plan| plan["title"].as_str().unwrap()).collect();
        assert!(!titles.iter().any(|title| title.contains("Terminate")), "{key}: {titles:?}");
        let all = site.sweeper.json(&["exemptions"]).await;
        let [exemption] = all.as_array().unwrap().as_slice() else { panic!("{all:#}") };
        let id = exemption["id"].as_str().unwrap();
        let lifted = site.run(&["exemptions", "lift", id, "--token-file", busy.ada.to_str().unwrap()]).await;
        assert_eq!(lifted.code, 0, "{lifted:?}");
        site.sweeper.sweep().await;
    }
}

async fn many_jobs_that_got_stuck_in_a_day_void_it(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    for n in 1..=3 {
        let found = format!(
            "INSERT INTO findings (id, class, resource, since_unix_ms, opened_unix_ms, confirmed_unix_ms, confirmed_sweeps, closed_unix_ms, evidence) \
             SELECT 'f-00000000000{n}', class, 'aws:{ACCOUNT}:{REGION}:job/other-{n}', since_unix_ms, opened_unix_ms, confirmed_unix_ms, 1, \
             confirmed_unix_ms, evidence FROM findings WHERE class = 'stuck_job' AND resource LIKE '%job/{JOB}'"
        );
        busy.site.change(&found).await;
    }
    busy.both_approve(&plan).await;
    busy.is_voided(CALL, &plan, "4 jobs were found stuck there within 24 hours, and 1 run").await;
}

async fn a_job_that_waits_for_it_since_its_agent_was_asked_voids_it(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.node_says(Says::Nothing);
    busy.both_approve(&plan).await;
    busy.site.action(&plan, "do", &["asking"]).await;
    // Everything was read before the agent is asked, and it answers only now.
    let waits = job("late", "busy", "SUBMITTED", json!({"dependsOn": [{"jobId": JOB}]}));
    busy.site.moto.batch(REGION, json!({"jobs": [waits]})).await;
    busy.site.node_says(Says::Quiet);
    busy.is_voided(CALL, &plan, "the job late waits for its end, and would fail with it").await;
    // What is read for longer than the answer stays fresh is too late.
    let over = job("late", "busy", "FAILED", json!({"stoppedAt": Timestamp::now().as_millisecond()}));
    busy.site.moto.batch(REGION, json!({"jobs": [over]})).await;
    busy.site.sweeper.sweep().await;
    let plan = busy.plan().await;
    busy.site.node_says(Says::Nothing);
    busy.both_approve(&plan).await;
    busy.site.action(&plan, "do", &["asking"]).await;
    busy.site.moto.fail(&[Fault { delay_s: Some(7), ..late("ListJobs") }]).await;
    busy.site.node_says(Says::Quiet);
    busy.is_voided(CALL, &plan, "could not be read within 5 s of its agent's answer").await;
}

async fn whoever_says_yes_by_a_button_hears_that_its_switch_is_off(url: String) {
    let mut busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.links("alan", ADA).await;
    busy.site.links("barbara", GRACE).await;
    let asked = busy.site.hears("Terminate it").await;
    // Acting stays switched on there, and this goes off behind the plan.
    let file = busy.site.sweeper.folder().join("sweeper.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    assert!(config.contains(TERMINATES), "{config}");
    std::fs::write(&file, config.replace(TERMINATES, "")).unwrap();
    busy.site.sweeper.stop().await;
    busy.site.sweeper.start_again().await;
    for (user, said) in
        [(ADA, "You said yes. More people must"), (GRACE, "You said yes. A dry run is all that is done")]
    {
        let before = busy.site.slack.whispers().len();
        assert_eq!(busy.site.press(&asked, "approve", user, json!({})).await, 200);
        let told = busy.site.whispered(before + 1).await;
        assert!(told["text"].as_str().unwrap().starts_with(said), "{told:#}");
    }
    busy.is_voided(CALL, &plan, "a dry run: nothing stands in the way").await;
}

async fn what_somebody_else_gives_as_the_reason_is_not_taken_for_the_plans_word(url: String) {
    let busy = start(&url).await;
    let plan = busy.plan().await;
    busy.site.moto.fail(&[Fault { delay_s: Some(4), ..late(CALL) }]).await;
    busy.both_approve(&plan).await;
    wait::until("the call to leave", TIMEOUT, || async { (!busy.site.called(CALL).await.is_empty()).then_some(()) })
        .await;
    let reason = format!("I read of the plan {plan}\n{}", "and ended it by hand ".repeat(20));
    let failed = json!({"stoppedAt": Timestamp::now().as_millisecond(), "statusReason": reason});
    busy.job_is("FAILED", failed).await;
    let ended = busy.site.ended(&plan).await;
    let told = ended["outcome"].as_str().unwrap_or_default();
    assert!(ended["state"] == "failed" && told.contains("not by this plan's word (I read of the plan "), "{ended:#}");
    assert!(told.contains("\\u{a}") && !told.contains('\n') && told.chars().count() < 400, "{ended:#}");
}
