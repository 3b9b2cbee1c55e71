//! What an answer of the sweeper means for the heartbeats that were sent.
//!
//! A heartbeat is discarded, and a token doubted, only if the sweeper itself, in its own words, says that this very heartbeat can never be
//! accepted, or the token not. Everything that may pass is tried again: a clock that is off, a sweeper that is older than the agent, a
//! wrong address, and whatever a proxy in between makes up.

use heartbeat::api::{Ack, PROBLEM_TYPE, Problem};
use std::time::Duration;

/// An answer, as far as it was received.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`, if there is one.
    pub content_type: String,
    /// What the sweeper asks to wait.
    pub retry_after: Option<Duration>,
    /// At most 64 KiB of the body.
    pub body: Vec<u8>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Stored, all of it; forget what the sweeper has.
    Stored(Ack),
    /// The node token is not taken: join again.
    JoinAgain(String),
    /// Send fewer heartbeats at once; a single one that is too large is discarded.
    TooLarge(String),
    /// The same, but nobody knows whose word it is: a single one is tried again later.
    TooLargeOnTheWay(String),
    /// One of these heartbeats will never be accepted.
    Refused(String),
    /// The sweeper does not believe a clock: that of the sending, or that of an interval.
    ClockSkew(String),
    /// Try again later.
    Later {
        /// For the log.
        why: String,
        /// No sooner than that.
        after: Option<Duration>,
    },
}

/// Judges the answer to an envelope.
#[must_use]
pub fn judge(received: &Received) -> Answer {
    let problem = problem(received);
    let why = describe(received, problem.as_ref());
    match (received.status, problem.as_ref().map(|problem| problem.kind.as_str())) {
        (200..=299, _) => match serde_json::from_slice::<Ack>(&received.body) {
            Ok(ack) => Answer::Stored(ack),
            Err(error) => {
                Answer::Later { why: format!("{} is not an acknowledgement ({error})", received.status), after: None }
            }
        },
        (401, Some("unauthenticated")) | (403, Some("forbidden_node")) => Answer::JoinAgain(why),
        (413, Some("too_large")) => Answer::TooLarge(why),
        (413, _) => Answer::TooLargeOnTheWay(why),
        (400..=499, Some("malformed" | "invalid")) => Answer::Refused(why),
        (400..=499, Some("clock_skew")) => Answer::ClockSkew(why),
        _ => Answer::Later { why, after: received.retry_after },
    }
}

fn problem(received: &Received) -> Option<Problem> {
    let is_problem = received.content_type.split(';').next().is_some_and(|kind| kind.trim() == PROBLEM_TYPE);
    is_problem.then(|| serde_json::from_slice(&received.body).ok()).flatten()
}

/// Whether the sweeper itself, in its own words, refuses for this reason.
#[must_use]
pub fn is_refused_for(received: &Received, kind: &str) -> bool {
    (400..=499).contains(&received.status) && problem(received).is_some_and(|problem| problem.kind == kind)
}

/// One line for the log: the problem's words, or the bare status.
#[must_use]
pub fn explain(received: &Received) -> String {
    describe(received, problem(received).as_ref())
}

fn describe(received: &Received, problem: Option<&Problem>) -> String {
    let text = match problem {
        Some(problem) => format!("{} {}: {}", received.status, problem.kind, problem.detail),
        None => format!("{}", received.status),
    };
    let short = text.chars().take(400);
    short.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(status: u16, kind: Option<&str>) -> Received {
        let body = kind.map(|kind| {
            format!(r#"{{"type":"{kind}","status":{status},"title":"t","detail":"d\u001b[2J"}}"#).into_bytes()
        });
        let content_type = kind.map_or("text/html", |_| "application/problem+json; charset=utf-8").to_owned();
        Received { status, content_type, retry_after: Some(Duration::from_secs(7)), body: body.unwrap_or_default() }
    }

    #[test]
    fn only_the_sweepers_own_word_makes_the_agent_discard_a_heartbeat() {
        for kind in ["malformed", "invalid"] {
            assert!(matches!(judge(&received(422, Some(kind))), Answer::Refused(_)), "{kind}");
        }
        for (status, kind) in [
            (400, None),
            (401, None),
            (401, Some("about:blank")),
            (403, None),
            (404, None),
            (408, None),
            (400, Some("unsupported_version")),
            (415, Some("unsupported_media_type")),
            (429, None),
            (500, Some("invalid")),
            (503, None),
            (302, None),
        ] {
            let after = Some(Duration::from_secs(7));
            assert!(
                matches!(judge(&received(status, kind)), Answer::Later { after: found, .. } if found == after),
                "{status} {kind:?}"
            );
        }
    }

    #[test]
    fn what_needs_an_answer_of_its_own_is_told_apart() {
        assert!(matches!(judge(&received(401, Some("unauthenticated"))), Answer::JoinAgain(_)));
        assert!(matches!(judge(&received(403, Some("forbidden_node"))), Answer::JoinAgain(_)));
        assert!(matches!(judge(&received(413, Some("too_large"))), Answer::TooLarge(_)));
        assert!(matches!(judge(&received(413, None)), Answer::TooLargeOnTheWay(_)));
        assert!(matches!(judge(&received(422, Some("clock_skew"))), Answer::ClockSkew(_)));
    }

    #[test]
    fn a_stranger_who_answers_200_acknowledges_nothing() {
        assert!(matches!(judge(&received(200, None)), Answer::Later { .. }));
    }

    #[test]
    fn what_is_logged_has_no_control_characters() {
        assert!(!explain(&received(422, Some("invalid"))).chars().any(char::is_control));
    }
}
