//! Joins: by the key alone where it is bound, by the join secret where it is not, and never by another key in its place.

use super::*;

#[tokio::test]
async fn a_node_that_was_away_comes_back_by_its_key_alone() {
    let mut lab = Lab::new().await;
    lab.sweeper.lock().unwrap().lifetime_s = Some(0);
    assert_eq!(lab.exporter.step().await, Step::Progress);
    assert_eq!(lab.sweeper.lock().unwrap().secrets, 1, "the first join binds the key");
    // Its token has expired long ago, and nobody left a join secret on the machine.
    let mut lab = lab.restarted("removed by now");
    lab.sweeper.lock().unwrap().token = "none".to_owned();
    lab.push(2);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    assert_eq!(lab.sweeper.lock().unwrap().secrets, 1, "the key speaks for itself, and the secret stays on the host");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_heartbeats_go_on() {
    let mut lab = Lab::new().await;
    lab.sweeper.lock().unwrap().lifetime_s = Some(0);
    assert_eq!(lab.exporter.step().await, Step::Progress);
    lab.sweeper.lock().unwrap().lifetime_s = Some(3_600);
    lab.push(1);
    lab.drain().await;
    lab.push(1);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=2));
    let sweeper = lab.sweeper.lock().unwrap();
    assert_eq!((sweeper.joins, sweeper.secrets), (2, 1), "renewed once, by the key");
    drop(sweeper);
    let kept = lab.exporter.state.token(&node_id()).unwrap();
    let left_ms = kept.expires_unix_ms.unwrap() - jiff::Timestamp::now().as_millisecond();
    assert!((3_500_000..=3_600_000).contains(&left_ms), "{left_ms}");
}

#[tokio::test]
async fn a_renewal_that_is_refused_costs_no_heartbeat() {
    let mut lab = Lab::new().await;
    lab.sweeper.lock().unwrap().lifetime_s = Some(0);
    assert_eq!(lab.exporter.step().await, Step::Progress);
    lab.sweeper.lock().unwrap().is_old = true;
    lab.push(3);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=3));
}

#[tokio::test]
async fn a_node_that_was_revoked_joins_anew_by_its_join_secret() {
    let mut lab = Lab::joined().await;
    {
        let mut sweeper = lab.sweeper.lock().unwrap();
        (sweeper.bound, sweeper.token) = (None, "revoked".to_owned());
    }
    lab.push(1);
    assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each([1]));
    let sweeper = lab.sweeper.lock().unwrap();
    assert!(sweeper.bound.is_some() && sweeper.secrets == 2);
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_never_replaced() {
    let lab = Lab::joined().await;
    let file = lab.directory.path().join("node-key");
    std::fs::write(&file, "damaged").unwrap();
    let mut lab = lab.restarted("let-me-in");
    lab.sweeper.lock().unwrap().token = "expired".to_owned();
    lab.push(1);
    for _refused in ["token", "join"] {
        assert!(matches!(lab.exporter.step().await, Step::Wait(_)));
    }
    let told = lab.exporter.troubles.join("; ");
    assert!(told.contains("cannot be read") && told.contains("sweeper nodes revoke host:"), "{told}");
    assert_eq!(lab.sweeper.lock().unwrap().joins, 1, "another key would make the node disputed");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "damaged");
}

#[tokio::test]
async fn a_sweeper_from_before_there_were_keys_is_joined_as_before_and_a_later_one_binds_the_key() {
    let mut lab = Lab::new().await;
    lab.sweeper.lock().unwrap().is_old = true;
    assert_eq!(lab.exporter.step().await, Step::Progress);
    lab.push(1);
    lab.drain().await;
    let mut lab = lab.restarted("let-me-in");
    lab.push(1);
    lab.drain().await;
    assert_eq!((lab.arrived(), lab.sweeper.lock().unwrap().joins), (once_each(1..=2), 1));
    lab.sweeper.lock().unwrap().is_old = false;
    let mut lab = lab.restarted("let-me-in");
    lab.push(1);
    lab.drain().await;
    assert_eq!(lab.arrived(), once_each(1..=3));
    let sweeper = lab.sweeper.lock().unwrap();
    assert!(sweeper.joins == 2 && sweeper.bound.is_some());
}
