//! What comes back from Slack: a button that somebody pressed, or a form that somebody filled in. Pure.
//!
//! A request is Slack's if it is signed with the app's signing secret and at most five minutes old; what it says of who pressed is then Slack's word. Who that is, and
//! whether they may, is the caller's to find out: a button carries no right.

use secrecy::{ExposeSecret as _, SecretString};
use slack_morphism::prelude::{
    SlackBasicTeamInfo, SlackBasicUserInfo, SlackInteractionActionContainer, SlackInteractionActionInfo,
    SlackInteractionBlockActionsEvent, SlackInteractionEvent, SlackInteractionViewSubmissionEvent, SlackSigningSecret,
};
use slack_morphism::signature_verifier::SlackEventSignatureVerifier;
use url::form_urlencoded;

use super::{
    ConfigError,
    delay::Delay,
    forms::{self, About},
    said::{Form, Said, Trigger},
};

/// The button that says yes to a plan.
pub(super) const APPROVE: &str = "approve";
/// The button that says no to it, in messages of a version before.
pub(super) const DENY: &str = "deny";
/// The list of when it may be asked about again.
pub(super) const NOT_NOW: &str = "not_now";
/// Of that list, what asks for another time. Each stands before the plan's content hash, and a colon.
pub(super) const OTHER: &str = "other";
/// The button that says never.
pub(super) const NEVER: &str = "never";
/// Slack's own secrets have 32 characters.
const LEAST: usize = 16;

/// Header with the signature of a request.
pub const SIGNATURE_HEADER: &str = SlackEventSignatureVerifier::SLACK_SIGNED_HASH_HEADER;
/// Header with the second in which it was signed.
pub const TIMESTAMP_HEADER: &str = SlackEventSignatureVerifier::SLACK_SIGNED_TIMESTAMP;

/// What somebody said by a button or a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressed {
    /// The account, `TEAM/USER` by ids: that of the person's own workspace.
    pub account: String,
    /// The person in it.
    pub user: String,
    /// Whether they belong to another workspace than the app, as people of Slack Connect do.
    pub is_guest_from_elsewhere: bool,
    /// The channel of the message.
    pub channel: String,
    /// What they said.
    pub said: Said,
    /// The plan's content hash, as the button or the form has it.
    pub plan: String,
}

/// Why a request is not taken for Slack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSlacks {
    /// It has no signature, another one, or is too old.
    #[error("the request is not signed by Slack with the app's signing secret, or was more than five minutes ago")]
    Signature,
    /// It is not what Slack sends.
    #[error("the request is signed, and is not what Slack sends for a button")]
    Malformed,
}

/// Tells Slack's requests from others'.
#[derive(Clone)]
pub struct Signing(SlackEventSignatureVerifier);

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signing")
    }
}

impl Signing {
    /// By the app's signing secret (Slack app, Basic Information).
    ///
    /// # Errors
    /// If that cannot be one.
    pub fn new(secret: &SecretString) -> Result<Self, ConfigError> {
        let secret = secret.expose_secret().trim();
        let is_one = secret.len() >= LEAST && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_one {
            return Err(ConfigError::SigningSecret);
        }
        Ok(Self(SlackEventSignatureVerifier::new(&SlackSigningSecret(secret.to_owned()))))
    }

    /// What a request tells that somebody said; none if it tells of something else that needs no answer.
    ///
    /// # Errors
    /// If it is not Slack's.
    pub fn pressed(&self, signature: &str, timestamp: &str, body: &[u8]) -> Result<Option<Pressed>, NotSlacks> {
        let body = std::str::from_utf8(body).map_err(|_| NotSlacks::Signature)?;
        self.0.verify(signature, body, timestamp).map_err(|_| NotSlacks::Signature)?;
        let mut fields = form_urlencoded::parse(body.as_bytes());
        let payload = fields.find(|(name, _)| name == "payload").ok_or(NotSlacks::Malformed)?.1;
        Ok(pressed(serde_json::from_str(&payload).map_err(|_| NotSlacks::Malformed)?))
    }
}

/// What somebody said; none if it is something else.
pub(super) fn pressed(event: SlackInteractionEvent) -> Option<Pressed> {
    match event {
        SlackInteractionEvent::BlockActions(event) => by_a_button(event),
        SlackInteractionEvent::ViewSubmission(event) => by_a_form(event),
        _ => None,
    }
}

fn by_a_button(event: SlackInteractionBlockActionsEvent) -> Option<Pressed> {
    let SlackInteractionActionContainer::Message(message) = event.container else { return None };
    // More than one is never sent for buttons; which of two was meant nobody could tell.
    let [action] = <[_; 1]>::try_from(event.actions?).ok()?;
    let (said, plan) = said(action, Trigger(event.trigger_id))?;
    let channel = message.channel_id.or(event.channel.map(|channel| channel.id))?.0;
    Some(by(event.user?, &event.team, channel, said, plan))
}

fn said(action: SlackInteractionActionInfo, trigger: Trigger) -> Option<(Said, String)> {
    let said = match action.action_id.0.as_str() {
        APPROVE => Said::Approve,
        DENY => Said::Deny,
        NEVER => Said::Asks(Form::Never, trigger),
        NOT_NOW => {
            let chosen = action.selected_option?.value;
            let (word, plan) = chosen.split_once(':')?;
            let said = match word {
                OTHER => Said::Asks(Form::Until, trigger),
                word => Said::NotNow(Delay::from_word(word)?),
            };
            return Some((said, plan.to_owned()));
        }
        _ => return None,
    };
    Some((said, action.value?))
}

fn by_a_form(event: SlackInteractionViewSubmissionEvent) -> Option<Pressed> {
    let (About { plan, channel }, said) = forms::filled_in(&event.view.view, event.view.state_params.state.as_ref())?;
    Some(by(event.user, &event.team, channel, said, plan))
}

fn by(user: SlackBasicUserInfo, app: &SlackBasicTeamInfo, channel: String, said: Said, plan: String) -> Pressed {
    let SlackBasicUserInfo { id: user, team_id, .. } = user;
    let team = team_id.unwrap_or_else(|| app.id.clone());
    Pressed {
        account: format!("{}/{}", team.0, user.0),
        is_guest_from_elsewhere: team != app.id,
        user: user.0,
        channel,
        said,
        plan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of <https://docs.slack.dev/authentication/verifying-requests-from-slack>, which is of 2018: its signature is right, and it is too old.
    #[test]
    fn a_request_of_before_is_refused() {
        let signing = Signing::new(&SecretString::from("8f742231b10e8888abcd99yyyzzz85a5"));
        assert!(signing.is_err(), "the documentation's secret is not of Slack's form");
        for bad in ["", "8f742231b10e", "xoxb-1-2-abcdefghijklmnop"] {
            assert!(Signing::new(&SecretString::from(bad)).is_err(), "{bad}");
        }
        let signing = Signing::new(&SecretString::from("8f742231b10e8888abcd99aaabbb85a5"));
        assert!(signing.is_ok_and(
            |signing| signing.pressed("v0=00", "1531420618", b"payload=%7B%7D") == Err(NotSlacks::Signature)
        ));
    }
}
