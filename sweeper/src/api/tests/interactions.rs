//! What strangers may do in Slack's name.

use super::*;
use axum::body::Bytes;
use std::convert::Infallible;
use tokio::task::JoinSet;

const PATH: &str = "/v1/slack/interactions";

fn press(body: Body) -> Request<Body> {
    let request = Request::post(PATH).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    request.header("x-slack-signature", "v0=00").header("x-slack-request-timestamp", "1").body(body).unwrap()
}

#[tokio::test]
async fn what_slack_has_not_signed_is_refused_whatever_it_is() {
    let app = TestApp::new().await;
    for body in ["", "payload=", "payload=%7B%7D", "{}", &"a".repeat(200_000)] {
        let problem = app.refused(press(Body::from(body.to_owned()))).await;
        assert_eq!((problem.status, problem.kind.as_str()), (401, "unauthenticated"), "{problem:?}");
    }
    let problem = app.refused(press(Body::from(vec![0xff; 300_000]))).await;
    assert_eq!(problem.status, 413, "{problem:?}");
    let json = Request::post(PATH).header(header::CONTENT_TYPE, "application/json").body(Body::from("{}")).unwrap();
    assert_eq!(app.refused(json).await.status, 415);
    let unsigned = Request::post(PATH).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    assert_eq!(app.refused(unsigned.body(Body::empty()).unwrap()).await.status, 401);
}

#[tokio::test]
async fn strangers_who_dribble_in_slacks_name_keep_no_heartbeat_waiting() {
    let app = TestApp::new().await;
    let joined = app.join(NODE).await;
    let mut dribbling = JoinSet::new();
    for _ in 0..300 {
        let (router, never) = (app.router.clone(), futures::stream::pending::<Result<Bytes, Infallible>>());
        dribbling.spawn(async move { router.oneshot(press(Body::from_stream(never))).await });
    }
    // Each has been begun once those that found no place are answered; the others end with the set.
    for _ in 0..284 {
        let refused = dribbling.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(app.refused(press(Body::empty())).await.kind, "overloaded");
    app.send(&joined.node_token, &envelope(NODE, &[1])).await;
    assert_eq!(app.stored(NODE).await, 1);
    assert_eq!(dribbling.len(), 16);
}
