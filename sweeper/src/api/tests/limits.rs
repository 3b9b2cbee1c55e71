//! Who is kept out, and who is not, when others send what is refused.

use super::*;

#[tokio::test]
async fn whoever_shares_a_group_with_what_the_database_refuses_is_stored_all_the_same() {
    use sea_orm::ConnectionTrait as _;
    let app = TestApp::new().await;
    let (good, bad) = (app.join(NODE).await.node_token, app.join(OTHER).await.node_token);
    let refuse = format!(
        "CREATE TRIGGER refuse BEFORE INSERT ON heartbeats WHEN NEW.node_id = '{OTHER}' BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    app.store.connection().execute_unprepared(&refuse).await.unwrap();
    let of = |node: &str, sequence: u64| {
        let envelope = wire::Envelope { oldest_retained_sequence: 1, ..envelope(node, &[sequence]) };
        heartbeat::encode(&envelope).unwrap()
    };
    let calls = (1..=20_u64).flat_map(|sequence| {
        [app.call(post_envelope(&good, of(NODE, sequence))), app.call(post_envelope(&bad, of(OTHER, sequence)))]
    });
    let answers = futures::future::join_all(calls).await;
    let statuses: Vec<_> = answers.iter().map(|(status, ..)| *status).collect();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].repeat(20));
    assert_eq!((app.stored(NODE).await, app.stored(OTHER).await), (20, 0));
}

#[tokio::test]
async fn a_flood_of_unknown_tokens_keeps_no_node_out_that_is_known() {
    let app = TestApp::new().await;
    let token = app.join(NODE).await.node_token;
    app.send(&token, &envelope(NODE, &[1])).await;
    let strange = |number: usize| post_envelope(&format!("csn_{number:064x}"), Vec::new());
    let mut kinds = Vec::new();
    for number in 0..3_000 {
        kinds.push(app.refused(strange(number)).await.kind);
        if kinds.last().is_some_and(|kind| kind == "too_many_unknown_tokens") {
            break;
        }
    }
    assert!(kinds.len() > 500, "the first ones are looked up: {}", kinds.len());
    assert_eq!(kinds.last().map(String::as_str), Some("too_many_unknown_tokens"));
    app.send(&token, &envelope(NODE, &[2])).await;
    // Whoever shows a token of another kind is not kept out either.
    app.join(OTHER).await;
    let metrics = Request::get("/metrics").header(header::AUTHORIZATION, format!("Bearer {}", app.operator_token()));
    assert_eq!(app.call(metrics.body(Body::empty()).unwrap()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_flood_of_unknown_tokens_keeps_neither_the_operator_nor_the_fleet_token_out() {
    let app = TestApp::new().await;
    let metrics = |token: &str| {
        let request = Request::get("/metrics").header(header::AUTHORIZATION, format!("Bearer {token}"));
        request.body(Body::empty()).unwrap()
    };
    let join = |token: &str| join_request(token, join_body(OTHER));
    let strangers = app.state.strangers();
    // As strangers' look-ups leave it behind: what they asked the database for is remembered, and no look-up is left.
    let strange = format!("csx_{:064x}", 1);
    assert_eq!(app.refused(metrics(&strange)).await.kind, "unauthenticated");
    (0..1_000).for_each(|_| strangers.operators.note());
    assert_eq!(app.call(metrics(&app.operator_token())).await.0, StatusCode::OK);
    assert_eq!(app.refused(join(&strange)).await.kind, "unauthenticated");
    (0..1_000).for_each(|_| strangers.joining.note());
    assert_eq!(app.call(join(&app.join_token())).await.0, StatusCode::OK);
}

#[tokio::test]
async fn what_is_small_and_becomes_large_is_decoded_elsewhere_and_answered_all_the_same() {
    let app = TestApp::new().await;
    let token = app.join(NODE).await.node_token;
    let mut many = envelope(NODE, &[1]);
    let row = many.heartbeats[0].workloads.first().cloned().unwrap_or_default();
    let named = |number: usize| wire::WorkloadActivity { key: format!("/{number}"), ..row.clone() };
    many.heartbeats[0].workloads = (0..heartbeat::envelope::MAX_WORKLOADS).map(named).collect();
    let body = heartbeat::encode(&many).unwrap();
    let decoded = heartbeat::envelope::unpack(&body).unwrap().decoded_bytes();
    assert!(heartbeat::envelope::is_small(&body) && decoded > 128 << 10, "{} {decoded}", body.len());
    assert_eq!(app.send(&token, &many).await.stored, 1);
}
