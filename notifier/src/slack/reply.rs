//! Answers to one person, where Slack says that they are awaited: for half an hour, five times at most.
//! <https://docs.slack.dev/interactivity/handling-user-interaction#message_responses>
//!
//! Never in the answer to the request itself: who has recorded a request may send it again for five minutes, and would be told what only Slack is to tell.

use std::fmt;

use serde::{Deserialize, Serialize};
use slack_morphism::{
    SlackClientApiCallContext, SlackClientHttpConnector as _,
    errors::SlackClientError,
    prelude::{SlackApiPostWebhookMessageResponse, SlackMessageContent},
};
use url::Url;

use super::{
    Slack,
    answers::{self, Answer},
    service::judge,
};
use crate::SendError;

/// Longest address; Slack's have about 100 bytes.
const LONGEST_BYTES: usize = 500;
/// Slack's own, and its own for the authorities of the United States.
const HOSTS: [&str; 2] = ["hooks.slack.com", "hooks.slack-gov.com"];

/// Where one person is answered. Whoever has it may say something there, so it is never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply(Url);

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

impl Reply {
    /// None of an address that is too long to be one of Slack's.
    pub(super) fn at(url: Url) -> Option<Self> {
        (url.as_str().len() <= LONGEST_BYTES).then_some(Self(url))
    }

    /// Whether it is Slack's: nothing is sent elsewhere, whatever a request says. A gateway, or a stand-in, has it where its Web API is.
    fn is_slacks(&self, api: &Url) -> bool {
        let is_known = self.0.host_str().is_some_and(|host| HOSTS.contains(&host));
        (self.0.scheme() == "https" && is_known && self.0.port().is_none()) || self.0.origin() == api.origin()
    }
}

/// A message to whoever asked, below whatever is there.
#[derive(Serialize)]
struct ToOne {
    response_type: &'static str,
    replace_original: bool,
    #[serde(flatten)]
    content: SlackMessageContent,
}

impl Slack {
    /// Answers one person; nobody else sees it. Exactly one attempt.
    ///
    /// # Errors
    /// As [`Self::send`]; of an address that is not Slack's, too.
    pub async fn reply(&self, reply: &Reply, answer: &Answer) -> Result<(), SendError> {
        if !reply.is_slacks(&self.api) {
            return Err(SendError::Permanent { why: "the address to answer to is not one of Slack's".to_owned() });
        }
        let message = ToOne {
            response_type: "ephemeral",
            replace_original: false,
            content: answers::render(answer, self.buttons),
        };
        let context = SlackClientApiCallContext {
            rate_control_params: None,
            token: None,
            tracing_span: &tracing::Span::none(),
            is_sensitive_url: true,
        };
        let connector = &self.client.http_api.connector;
        let sent = connector.http_post_uri::<_, SlackApiPostWebhookMessageResponse>(reply.0.clone(), &message, context);
        match tokio::time::timeout(self.timeout, sent).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(SlackClientError::HttpError(refused))) if refused.status_code.is_client_error() => {
                let why = format!("Slack takes no answer there any more (HTTP {})", refused.status_code);
                Err(SendError::Permanent { why })
            }
            Ok(Err(error)) => Err(judge(&error, "whoever asked")),
            Err(_) => Err(SendError::retry(format!("Slack did not answer within {:?}", self.timeout))),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn answers_go_to_slack_alone() {
        let url = |text: &str| Url::parse(text).unwrap();
        let is_slacks = |reply: &str, api: &str| Reply(url(reply)).is_slacks(&url(api));
        let (slack, lab) = ("https://slack.com/api", "http://127.0.0.1:8080/api");
        assert!(is_slacks("https://hooks.slack.com/commands/T0/1/x", slack));
        assert!(is_slacks("https://hooks.slack-gov.com/commands/T0/1/x", slack));
        assert!(is_slacks("http://127.0.0.1:8080/commands/T0/1/x", lab));
        for other in [
            "http://hooks.slack.com/commands/T0/1/x",
            "https://hooks.slack.com:8443/commands/T0/1/x",
            "https://hooks.slack.com.example.org/commands/T0/1/x",
            "https://example.org/hooks.slack.com",
            "http://169.254.169.254/latest/meta-data",
            "http://127.0.0.1:8081/commands/T0/1/x",
            "file:///etc/passwd",
        ] {
            assert!(!is_slacks(other, slack) && !is_slacks(other, lab), "{other}");
        }
    }
}
