//! What a machine was at an earlier moment is known later, through the real program, on both databases; and what could not be listed is
//! said, not forgotten.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    aws::{ACCOUNT, Fault, Instance, Moto},
    sweeper::Sweeper,
};
use serde_json::Value;

const REGION: &str = "us-east-1";

lab::on_both_databases! {
    what_a_machine_was_is_known_later,
}

async fn sweep(sweeper: &Sweeper) -> String {
    let (_, report) = sweeper.sweep().await;
    report["finished_at"].as_str().unwrap().to_owned()
}

async fn states(sweeper: &Sweeper, at: &str) -> Vec<String> {
    let answer = sweeper.json(&["inventory", "--kind", "instance", "--at", at]).await;
    let resources = answer["resources"].as_array().unwrap().iter();
    resources.map(|resource| resource["facts"]["state"].as_str().unwrap().to_owned()).collect()
}

async fn what_a_machine_was_is_known_later(url: String) {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    let ids = moto.run(REGION, &[Instance::named("m5.large", "align-7"), Instance::named("m5.large", "align-8")]).await;
    let config = format!(
        "[store]\nurl = \"{url}\"\n[aws]\nenabled = \"yes\"\nregions = [\"{REGION}\"]\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n"
    );
    let environment = moto.environment();
    let environment: Vec<_> = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sweeper = Sweeper::start(&folder.path().join("sweeper"), &config, &environment).await;

    let first = sweep(&sweeper).await;
    moto.change(REGION, &ids[0], &Instance { state: Some("stopped".into()), ..Instance::default() }).await;
    let second = sweep(&sweeper).await;
    moto.fail(&[Fault {
        action: Some("DescribeInstances".into()),
        code: Some("UnauthorizedOperation".into()),
        ..Fault::default()
    }])
    .await;
    let third = sweep(&sweeper).await;

    assert_eq!(states(&sweeper, &first).await, ["running"; 2]);
    for moment in [&second, &third] {
        let mut then = states(&sweeper, moment).await;
        then.sort();
        assert_eq!(then, ["running", "stopped"], "{moment}");
    }
    let not_known = |answer: &Value| answer["not_known"].as_array().unwrap().len();
    assert_eq!(not_known(&sweeper.json(&["inventory", "--at", &second]).await), 0);
    let now = sweeper.json(&["inventory"]).await;
    assert_eq!(not_known(&now), 1, "{now:#}");
    assert!(now["not_known"][0]["why"].as_str().unwrap().contains("UnauthorizedOperation"), "{now:#}");

    let past = sweeper.run(&["inventory", &ids[0]]).await;
    let past = String::from_utf8_lossy(&past.stdout);
    assert!(past.contains(&format!("aws:{ACCOUNT}:{REGION}:{}", ids[0])), "{past}");
    assert!(past.contains("state: \"running\"") && past.contains("state: \"running\" -> \"stopped\""), "{past}");
    assert!(past.contains("not read since"), "{past}");

    let unknown = sweeper.run(&["inventory", "i-nobody"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no complete listing has shown `i-nobody`"));
}
