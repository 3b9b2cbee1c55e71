//! What comes back from Slack of a button that somebody pressed, or a form that somebody filled in. Pure.
//!
//! Who that is, and whether they may, is the caller's to find out: a button carries no right.

use slack_morphism::prelude::{
    SlackBasicTeamInfo, SlackBasicUserInfo, SlackInteractionActionContainer, SlackInteractionActionInfo,
    SlackInteractionBlockActionsEvent, SlackInteractionEvent, SlackInteractionViewSubmissionEvent,
};

use super::{
    delay::Delay,
    forms::{self, About},
    people::Account,
    reply::Reply,
    said::{Form, Said, Trigger},
    signing::Heard,
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
/// The button that shows the evidence of a finding.
pub(super) const PROOF: &str = "proof";
/// Longest id of a finding.
const FINDING_LIMIT: usize = 32;

/// That somebody wants to see the evidence of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Whose account it was.
    pub account: Account,
    /// Whether they belong to another workspace than the app, as people of Slack Connect do.
    pub is_guest_from_elsewhere: bool,
    /// The finding's id, as the button has it: letters, digits and hyphens alone.
    pub finding: String,
    /// Where they are answered, and nobody else.
    pub reply: Reply,
}

/// What somebody said by a button or a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressed {
    /// Whose account it was.
    pub account: Account,
    /// Whether they belong to another workspace than the app, as people of Slack Connect do.
    pub is_guest_from_elsewhere: bool,
    /// The channel of the message.
    pub channel: String,
    /// Where they are answered if the message is one that they alone see: the app may not be in its channel.
    pub reply: Option<Reply>,
    /// What they said.
    pub said: Said,
    /// The plan's content hash, as the button or the form has it.
    pub plan: String,
}

/// What somebody said, or wants to see; none if it is something else.
pub(super) fn heard(event: SlackInteractionEvent) -> Option<Heard> {
    match event {
        SlackInteractionEvent::BlockActions(event) => by_a_button(event),
        SlackInteractionEvent::ViewSubmission(event) => by_a_form(event).map(Heard::Pressed),
        _ => None,
    }
}

fn by_a_button(event: SlackInteractionBlockActionsEvent) -> Option<Heard> {
    let SlackInteractionActionContainer::Message(message) = event.container else { return None };
    // More than one is never sent for buttons; which of two was meant nobody could tell.
    let [action] = <[_; 1]>::try_from(event.actions?).ok()?;
    if action.action_id.0 == PROOF {
        let reply = Reply::at(event.response_url?.0)?;
        return proof(event.user?, &event.team, action.value?, reply).map(Heard::Proof);
    }
    let (said, plan) = said(action, Trigger(event.trigger_id))?;
    let channel = message.channel_id.or(event.channel.map(|channel| channel.id))?.0;
    let reply = message.is_ephemeral.unwrap_or_default().then_some(event.response_url).flatten();
    let about = About { plan, channel, reply: reply.and_then(|url| Reply::at(url.0)) };
    Some(Heard::Pressed(by(event.user?, &event.team, about, said)))
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
    let (about, said) = forms::filled_in(&event.view.view, event.view.state_params.state.as_ref())?;
    Some(by(event.user, &event.team, about, said))
}

fn proof(user: SlackBasicUserInfo, app: &SlackBasicTeamInfo, finding: String, reply: Reply) -> Option<Proof> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !(1..=FINDING_LIMIT).contains(&finding.len()) || !finding.bytes().all(is_id) {
        return None;
    }
    let (account, is_guest_from_elsewhere) = who(user, app);
    Some(Proof { account, is_guest_from_elsewhere, finding, reply })
}

fn by(user: SlackBasicUserInfo, app: &SlackBasicTeamInfo, about: About, said: Said) -> Pressed {
    let About { plan, channel, reply } = about;
    let (account, is_guest_from_elsewhere) = who(user, app);
    Pressed { account, is_guest_from_elsewhere, channel, reply, said, plan }
}

/// Whose account it was, and whether it is of another workspace than the app.
fn who(user: SlackBasicUserInfo, app: &SlackBasicTeamInfo) -> (Account, bool) {
    let SlackBasicUserInfo { id: user, team_id, .. } = user;
    let team = team_id.unwrap_or_else(|| app.id.clone());
    let is_from_elsewhere = team != app.id;
    (Account { team: team.0, user: user.0 }, is_from_elsewhere)
}
