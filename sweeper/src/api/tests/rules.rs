//! The rules file, as agents are served it.

use super::*;

#[tokio::test]
async fn the_rules_file_is_served_to_nodes_alone_and_only_when_it_is_news() {
    let without = TestApp::new().await;
    let node = without.join(NODE).await.node_token;
    let ack = without.send(&node, &envelope(NODE, &[1])).await;
    assert_eq!(ack.rules, Some(RulesOffer::BuiltIn));
    assert_eq!(without.refused(get_rules(&node, None)).await.kind, "not_found");

    let text = "version = \"2026-11-21\"\nbase = \"built-in\"\n";
    let app = TestApp::with_rules(text).await;
    let node = app.join(NODE).await.node_token;
    let Some(RulesOffer::File { version, sha256 }) = app.send(&node, &envelope(NODE, &[1])).await.rules else {
        panic!("no rules are offered");
    };
    assert_eq!(version, "2026-11-21");
    let (status, kind, body) = app.call(get_rules(&node, None)).await;
    assert_eq!((status, kind.as_str(), body.as_slice()), (StatusCode::OK, "application/toml", text.as_bytes()));
    for (known, expected) in [
        (format!("\"{sha256}\""), StatusCode::NOT_MODIFIED),
        (format!("\"other\", W/\"{sha256}\""), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let (status, _, body) = app.call(get_rules(&node, Some(&known))).await;
        assert_eq!((status, body.is_empty()), (expected, expected == StatusCode::NOT_MODIFIED), "{known}");
    }
    for stranger in ["", "csn_0000000000000000000000000000000000000000000000000000000000000000", &app.join_token()] {
        assert_eq!(app.refused(get_rules(stranger, None)).await.kind, "unauthenticated");
    }
}

fn get_rules(token: &str, known: Option<&str>) -> Request<Body> {
    let request = Request::get(RULES_PATH).header(header::AUTHORIZATION, format!("Bearer {token}"));
    let request = known.into_iter().fold(request, |request, tag| request.header(header::IF_NONE_MATCH, tag));
    request.body(Body::empty()).unwrap()
}
