//! What is asked of Slack about a person, and said to them alone.

use slack_morphism::errors::SlackClientError;
use slack_morphism::prelude::{
    SlackApiChatPostEphemeralRequest, SlackApiUsersInfoRequest, SlackApiViewsOpenRequest, SlackMessageContent,
    SlackUser,
};

use super::{
    Slack,
    check::NO_PEOPLE,
    forms::{self, About},
    pressed::Pressed,
    said::{Form, Trigger},
    service::judge,
};
use crate::{SendError, text::mrkdwn};
use jiff::tz::TimeZone;
use std::{fmt, time::Duration};

/// Slack waits three seconds for the answer to a button; this leaves two for everything else.
const ASKED_WITHIN: Duration = Duration::from_secs(1);
/// Longest text to one person.
const TEXT_LIMIT: usize = 1_000;

/// An account of a workspace, as people link it: `TEAM/USER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The id of the person's own workspace.
    pub team: String,
    /// The id of the person in it.
    pub user: String,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.team, self.user)
    }
}

/// A full member of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// By whose clock they live, as they told Slack; UTC where they did not, or nobody here knows that zone.
    pub zone: TimeZone,
}

/// Why nobody may decide by an account, whoever it was linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAPerson {
    /// It is deactivated.
    #[error("the account is deactivated")]
    Deleted,
    /// It is a program's.
    #[error("the account is a program's")]
    Bot,
    /// It is a guest's.
    #[error("guests decide about nothing")]
    Guest,
    /// It is of another workspace.
    #[error("people of another workspace decide about nothing here")]
    Stranger,
    /// Slack names another one, or does not say of all of this whether it is so.
    #[error("Slack does not say who that is")]
    Unknown,
}

impl Slack {
    /// The full member of the workspace whose account it is; asks Slack now, and at each time again.
    ///
    /// # Errors
    /// If Slack does not answer within a second.
    pub async fn membership(&self, account: &Account) -> Result<Result<Member, NotAPerson>, SendError> {
        let user = account.user.as_str();
        let request = SlackApiUsersInfoRequest::new(user.into());
        let session = self.client.open_session(&self.token);
        match tokio::time::timeout(ASKED_WITHIN, session.users_info(&request)).await {
            Ok(Ok(answer)) => Ok(of(&answer.user, account).map(|()| Member { zone: zone(&answer.user) })),
            Ok(Err(SlackClientError::ApiError(api))) if api.code == "missing_scope" => {
                Err(SendError::Permanent { why: NO_PEOPLE.to_owned() })
            }
            Ok(Err(error)) => Err(judge(&error, user)),
            Err(_) => Err(SendError::retry(format!("Slack did not answer within {ASKED_WITHIN:?}"))),
        }
    }

    /// The id of the workspace that the app is installed in. Slack is asked once.
    ///
    /// # Errors
    /// If Slack does not answer within a second.
    pub async fn workspace(&self) -> Result<&str, SendError> {
        let asked = async {
            let session = self.client.open_session(&self.token);
            match tokio::time::timeout(ASKED_WITHIN, session.auth_test()).await {
                Ok(Ok(answer)) => Ok(answer.team_id.0),
                Ok(Err(error)) => Err(judge(&error, "its own workspace")),
                Err(_) => Err(SendError::retry(format!("Slack did not answer within {ASKED_WITHIN:?}"))),
            }
        };
        self.workspace.get_or_try_init(|| asked).await.map(String::as_str)
    }

    /// Opens a form for whoever pressed, about the plan that they pressed for.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn ask(&self, form: Form, trigger: Trigger, pressed: &Pressed) -> Result<(), SendError> {
        let Pressed { plan, channel, reply, .. } = pressed;
        let about = About { plan: plan.clone(), channel: channel.clone(), reply: reply.clone() };
        let request = SlackApiViewsOpenRequest::new(trigger.0, forms::render(form, &about));
        let session = self.client.open_session(&self.token);
        match tokio::time::timeout(self.timeout, session.views_open(&request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(judge(&error, channel)),
            Err(_) => Err(SendError::retry(format!("Slack did not answer within {:?}", self.timeout))),
        }
    }

    /// Says something to one person of a channel, below a message; nobody else sees it.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn whisper(&self, channel: &str, user: &str, text: &str) -> Result<(), SendError> {
        let content = SlackMessageContent::new().with_text(mrkdwn(text, TEXT_LIMIT));
        let request = SlackApiChatPostEphemeralRequest::new(channel.into(), user.into(), content);
        let session = self.client.open_session(&self.token);
        match tokio::time::timeout(self.timeout, session.chat_post_ephemeral(&request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(judge(&error, channel)),
            Err(_) => Err(SendError::retry(format!("Slack did not answer within {:?}", self.timeout))),
        }
    }
}

fn zone(user: &SlackUser) -> TimeZone {
    user.tz.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
}

/// Only who is known to be none of these is a member: <https://docs.slack.dev/reference/objects/user-object>.
fn of(user: &SlackUser, asked: &Account) -> Result<(), NotAPerson> {
    if user.id.0 != asked.user {
        return Err(NotAPerson::Unknown);
    }
    // Of whoever shares a channel with the workspace Slack says so by this alone.
    if user.team_id.as_ref().is_some_and(|team| team.0 != asked.team) {
        return Err(NotAPerson::Stranger);
    }
    // Of a deactivated account Slack leaves the others out.
    if user.deleted == Some(true) {
        return Err(NotAPerson::Deleted);
    }
    let flags = &user.flags;
    for (flag, why) in [
        (user.deleted, NotAPerson::Deleted),
        (flags.is_bot, NotAPerson::Bot),
        (flags.is_restricted, NotAPerson::Guest),
        (flags.is_ultra_restricted, NotAPerson::Guest),
    ] {
        match flag {
            Some(false) => {}
            Some(true) => return Err(why),
            None => return Err(NotAPerson::Unknown),
        }
    }
    // Said of those alone who are.
    if flags.is_stranger == Some(true) {
        return Err(NotAPerson::Stranger);
    }
    if flags.is_invited_user == Some(true) {
        return Err(NotAPerson::Guest);
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_a_full_member_decides() {
        let member = json!({ "id": "U0ADA", "team_id": "T0LAB", "deleted": false, "is_bot": false, "is_restricted": false, "is_ultra_restricted": false });
        let account = Account { team: "T0LAB".to_owned(), user: "U0ADA".to_owned() };
        let of = |change: Value| {
            let mut user = member.clone();
            user.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            of(&serde_json::from_value(user).unwrap(), &account)
        };
        assert_eq!(of(json!({})), Ok(()));
        for (change, why) in [
            (json!({ "deleted": true }), NotAPerson::Deleted),
            (json!({ "is_bot": true }), NotAPerson::Bot),
            (json!({ "is_restricted": true }), NotAPerson::Guest),
            (json!({ "is_ultra_restricted": true }), NotAPerson::Guest),
            (json!({ "is_stranger": true }), NotAPerson::Stranger),
            (json!({ "team_id": "T0OTHER" }), NotAPerson::Stranger),
            (json!({ "is_invited_user": true }), NotAPerson::Guest),
            (json!({ "is_bot": null }), NotAPerson::Unknown),
            (json!({ "is_restricted": null }), NotAPerson::Unknown),
            (json!({ "deleted": null }), NotAPerson::Unknown),
            (json!({ "id": "U0EVE" }), NotAPerson::Unknown),
        ] {
            assert_eq!(of(change.clone()), Err(why), "{change}");
        }
    }
}
