//! Whether this can work at all: asked before anybody waits for a message. Nothing is posted here but what [`Slack::post_test`] says.

use slack_morphism::{
    errors::SlackClientError,
    prelude::{SlackApiUsersInfoRequest, SlackMessageContent, SlackMessageMetadata},
};

use super::{Slack, answers::section, service::judge};
use crate::{
    Receipt, SendError,
    text::{clean, fit},
};
use std::collections::HashMap;

/// Longest name that is shown of a workspace or an app.
const NAME_LIMIT: usize = 100;

/// Who the token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeaksFor {
    /// The workspace's name.
    pub workspace: String,
    /// Its id.
    pub team: String,
    /// The app's own user.
    pub user: String,
}

impl Slack {
    /// Who the token speaks for, and whether Slack tells this app who people are, which buttons and `/sweeper` rest on.
    ///
    /// # Errors
    /// What is wrong with the token, the app's scopes or the way to Slack, and what to change.
    pub async fn check(&self) -> Result<SpeaksFor, SendError> {
        let session = self.client.open_session(&self.token);
        let asked = async {
            let who = session.auth_test().await.map_err(|error| judge(&error, "its own workspace"))?;
            if self.buttons {
                let request = SlackApiUsersInfoRequest::new(who.user_id.clone());
                session.users_info(&request).await.map_err(|error| people(&error))?;
            }
            Ok(who)
        };
        let who = tokio::time::timeout(self.timeout, asked)
            .await
            .map_err(|_| SendError::retry(format!("Slack did not answer within {:?}", self.timeout)))??;
        let plain = |text: &str| fit(&clean(text), NAME_LIMIT);
        Ok(SpeaksFor {
            workspace: plain(&who.team),
            team: plain(&who.team_id.0),
            user: plain(who.user.as_deref().unwrap_or(&who.user_id.0)),
        })
    }

    /// Says in a channel, or in the one for all, that this is a test; exactly one attempt. Nothing else tells whether the app may post there.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn post_test(&self, channel: Option<&str>) -> Result<Receipt, SendError> {
        let text = "This is a test of Cloud Sweeper (`sweeper doctor --send-test`): alerts will come here. Nothing needs doing.";
        let channel = channel.unwrap_or(&self.channel);
        let blocks = vec![section(text.to_owned()).into()];
        let test = SlackMessageMetadata::new("cloud_sweeper_test".to_owned()).with_event_payload(HashMap::new());
        let content = SlackMessageContent::new().with_text(text.to_owned()).with_blocks(blocks).with_metadata(test);
        let posted = self.post(content, channel, None).await;
        posted.map_err(|error| error.of_a_message(channel))
    }
}

/// Why Slack says nothing of people.
fn people(error: &SlackClientError) -> SendError {
    match error {
        SlackClientError::ApiError(api) if api.code == "missing_scope" => {
            SendError::Permanent { why: NO_PEOPLE.to_owned() }
        }
        _ => judge(error, "the app's own user"),
    }
}

/// Without it nobody's button counts.
pub(super) const NO_PEOPLE: &str =
    "Slack does not tell this app who people are. Give it the bot scope `users:read`, then reinstall it";
