//! What people say by Slack's buttons and forms, and ask by its slash command.
//!
//! A button carries no right. Slack says who pressed it; whose account that is an administrator has said (`sweeper approvers link`); whether it is a full member's Slack is asked at each press, and whoever it does
//! not vouch for decides about nothing; what they may the policy says, as it does in the shell. What counts is written before Slack is answered, so that a button that
//! seems to have worked has; a press that comes twice counts once. Why one does not count is told to whoever pressed, and to nobody else.

mod commands;

use crate::{
    approvals::{Answer, NotAnswered, Tally},
    config::{ActConfig, ApprovalsConfig, Config},
    exemptions::NotExempted,
    outbox,
    store::{Alone, Doer, Store, StoreError},
    verdict::words,
};
use jiff::{Timestamp, tz::TimeZone};
use model::plan::{ContentHash, Plan};
use notifier::{
    SendError,
    slack::{
        Account, Answer::Told, Command, ConfigError, Form, Heard, Member, NotAPerson, NotSlacks, Pressed, Proof, Said,
        Signing, Slack, Socket, Trigger,
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Takes what people press and ask.
#[derive(Debug)]
pub struct Interactions {
    members: Members,
    act: ActConfig,
    /// By which requests of Slack's are known; none if it sends none.
    signing: Option<Signing>,
    /// Over which Slack says what is pressed, where it sends no requests.
    socket: Option<Socket>,
    places: Semaphore,
    /// For commands that are being answered.
    answering: Arc<Semaphore>,
}

/// Finds out who somebody is.
#[derive(Clone, Debug)]
struct Members {
    store: Store,
    slack: Arc<Slack>,
    approvals: ApprovalsConfig,
}

/// Requests that are read at once: strangers who send slowly take these places, and none of heartbeats.
const AT_ONCE: usize = 16;
/// Commands that are answered at once: each may read all that is open.
const ANSWERED_AT_ONCE: usize = 4;
/// Slack replaces each connection every few hours; the other one hears meanwhile.
const SOCKETS: usize = 2;
/// From one attempt to connect to the next: doubled from the first to the last. Slack allows about one a minute for long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(60);

/// Why a press does not count.
#[derive(Debug, thiserror::Error)]
enum NotCounted {
    #[error(
        "nobody has said whose account {account} is; an administrator does that by `sweeper approvers link NAME {account}`"
    )]
    NotLinked { account: String },
    #[error(transparent)]
    NotAPerson(#[from] NotAPerson),
    #[error(
        "Slack did not say whether you are a member of this workspace, and the sweeper's log says why; try again in a moment"
    )]
    SlackSilent,
    #[error("the policy cannot be read, so nobody may approve anything; the sweeper's log says why")]
    NoPolicy,
    #[error("there is no such plan")]
    NoPlan,
    #[error(transparent)]
    NotAnswered(#[from] NotAnswered),
    #[error(transparent)]
    NotExempted(#[from] NotExempted),
}

/// Why nothing is taken: Slack tells whoever pressed or asked that it did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// As many commands are being answered as may be.
    #[error("too many commands are being answered; ask again in a moment")]
    Busy,
}

/// What comes of what somebody said.
enum Counted {
    /// It counts, and they are told this.
    Told(String),
    /// They are asked more.
    Asked(Form, Trigger),
}

impl Interactions {
    /// Those of the configuration; none if there is neither a signing secret, by which Slack's requests are known, nor an app-level token, by which sockets are opened.
    ///
    /// # Errors
    /// If they are on and cannot be used.
    pub fn new(store: Store, config: &Config) -> Result<Option<Self>, ConfigError> {
        let Some(slack) = outbox::slack(&config.slack).filter(|slack| slack.buttons) else { return Ok(None) };
        let signing = config.slack.signing_secret.as_ref().map(Signing::new).transpose()?;
        let socket = config.slack.app_token.as_ref().map(|token| Socket::new(&slack, token)).transpose()?;
        let slack = Arc::new(Slack::new(slack)?);
        let act = config.act.clone();
        let (places, answering) = (Semaphore::new(AT_ONCE), Arc::new(Semaphore::new(ANSWERED_AT_ONCE)));
        let members = Members { store, slack, approvals: config.approvals.clone() };
        Ok(Some(Self { members, act, signing, socket, places, answering }))
    }

    /// Whether Slack sends requests: otherwise there is nothing where they would come.
    pub(crate) fn takes_requests(&self) -> bool {
        self.signing.is_some()
    }

    /// Hears over sockets what is pressed, for as long as this is awaited.
    pub async fn hear(&self) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        futures::future::join_all((0..SOCKETS).map(|_| self.hear_over(socket))).await;
    }

    async fn hear_over(&self, socket: &Socket) {
        let mut wait = FIRST_WAIT;
        loop {
            let is_heard = AtomicBool::new(false);
            let greeted = || {
                is_heard.store(true, Ordering::Relaxed);
                tracing::info!("Slack says over a socket what is pressed");
            };
            let take = async |heard| match self.take(heard).await {
                Ok(()) => true,
                Err(NotTaken::Busy) => {
                    tracing::warn!(why = %NotTaken::Busy, "a command in Slack is not answered");
                    false
                }
                Err(NotTaken::Store(error)) => {
                    tracing::error!(error = %crate::chain(&error), "an answer in Slack was not written, and Slack is not told that it was");
                    false
                }
            };
            let ended = socket.hear(greeted, take).await;
            if is_heard.into_inner() {
                wait = FIRST_WAIT;
            }
            let after = match ended {
                Ok(()) => {
                    tracing::info!("Slack asks for another socket");
                    FIRST_WAIT
                }
                Err(error) => {
                    let asked = if let SendError::Retry { after, .. } = &error { *after } else { Some(LAST_WAIT) };
                    let after = asked.unwrap_or(wait).max(wait);
                    tracing::warn!(%error, ?after, "nothing that is pressed in Slack is heard over this socket; it is opened again");
                    wait = wait.saturating_mul(2).min(LAST_WAIT);
                    after
                }
            };
            tokio::time::sleep(after).await;
        }
    }

    /// A place for a request that is to be read; none if all are taken.
    pub(crate) fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.try_acquire().ok()
    }

    /// What a request tells that somebody said or asked.
    pub(crate) fn heard(&self, signature: &str, timestamp: &str, body: &[u8]) -> Result<Option<Heard>, NotSlacks> {
        let signing = self.signing.as_ref().ok_or(NotSlacks::Signature)?;
        signing.heard(signature, timestamp, body)
    }

    /// Counts what somebody said, or begins to answer what they asked.
    pub(crate) async fn take(&self, heard: Heard) -> Result<(), NotTaken> {
        match heard {
            Heard::Pressed(pressed) => Ok(self.answer(pressed).await?),
            Heard::Proof(proof) => self.prove(proof),
            Heard::Asked(command) => self.tell(command),
        }
    }

    /// Answers a command behind Slack's back, which waits three seconds for a word and half an hour for the answer.
    fn tell(&self, command: Command) -> Result<(), NotTaken> {
        let place = Arc::clone(&self.answering).try_acquire_owned().map_err(|_| NotTaken::Busy)?;
        let members = self.members.clone();
        tokio::spawn(async move {
            let answer = commands::answer(&members, &command).await;
            if let Err(why) = members.slack.reply(&command.reply, &answer).await {
                tracing::warn!(account = %command.account, %why, "what somebody asked in Slack could not be answered there");
            }
            drop(place);
        });
        Ok(())
    }

    /// Shows somebody the evidence of a finding, in the same way.
    fn prove(&self, proof: Proof) -> Result<(), NotTaken> {
        let place = Arc::clone(&self.answering).try_acquire_owned().map_err(|_| NotTaken::Busy)?;
        let members = self.members.clone();
        tokio::spawn(async move {
            let answer = commands::prove(&members, &proof).await;
            if let Err(why) = members.slack.reply(&proof.reply, &answer).await {
                tracing::warn!(account = %proof.account, %why, "the evidence that somebody asked for in Slack could not be shown there");
            }
            drop(place);
        });
        Ok(())
    }

    /// Counts what somebody said, asks them more, or says to them why it does not count.
    async fn answer(&self, pressed: Pressed) -> Result<(), StoreError> {
        let counted = match self.count(&pressed).await? {
            Ok(counted) => counted,
            Err(why) => {
                tracing::warn!(account = %pressed.account, plan = pressed.plan, %why, "what somebody said in Slack does not count");
                Counted::Told(format!("That does not count: {why}."))
            }
        };
        let slack = Arc::clone(&self.members.slack);
        // What counts is written; Slack waits for its answer meanwhile.
        tokio::spawn(async move {
            let Pressed { account, channel, reply, .. } = &pressed;
            let done = match (counted, reply) {
                (Counted::Told(said), Some(reply)) => slack.reply(reply, &Told(said)).await,
                (Counted::Told(said), None) => slack.whisper(channel, &account.user, &said).await,
                (Counted::Asked(form, trigger), _) => slack.ask(form, trigger, &pressed).await,
            };
            if let Err(why) = done {
                tracing::warn!(%account, %why, "what came of a press could not be shown in Slack");
            }
        });
        Ok(())
    }

    /// What comes of what somebody said.
    async fn count(&self, pressed: &Pressed) -> Result<Result<Counted, NotCounted>, StoreError> {
        let (who, member) = match self.members.person(&pressed.account, pressed.is_guest_from_elsewhere).await? {
            Ok(person) => person,
            Err(why) => return Ok(Err(why)),
        };
        let by = Doer { who, way: "slack" };
        let plan = match ContentHash::try_from(pressed.plan.clone()) {
            Ok(hash) => self.members.store.sealed_plan(&hash).await?,
            Err(_) => None,
        };
        let Some(plan) = plan else { return Ok(Err(NotCounted::NoPlan)) };
        let told = match &pressed.said {
            Said::Asks(form, trigger) => return Ok(Ok(Counted::Asked(*form, trigger.clone()))),
            Said::Approve => self.answered(&plan, Answer::Approve, &by).await?,
            Said::Deny => self.answered(&plan, Answer::Deny, &by).await?,
            Said::Never { because } => self.left_alone(&plan, None, Some(because), &by, &member.zone).await?,
            Said::Until(until) => self.left_alone(&plan, Some(*until), None, &by, &member.zone).await?,
            Said::NotNow(delay) => {
                let now = self.members.store.now().await?;
                // There is none at the end of time alone, which is too far.
                let until = delay.until(now, &member.zone).unwrap_or(Timestamp::MAX);
                self.left_alone(&plan, Some(until), None, &by, &member.zone).await?
            }
        };
        Ok(told.map(Counted::Told))
    }

    /// What to say of an answer to a plan.
    async fn answered(&self, plan: &Plan, answer: Answer, by: &Doer) -> Result<Result<String, NotCounted>, StoreError> {
        let (policy, policy_sha256) = match self.members.approvals.policy() {
            Ok(policy) => policy,
            Err(error) => {
                tracing::error!(error = %crate::chain(&error), "an answer does not count, because the policy cannot be read");
                return Ok(Err(NotCounted::NoPolicy));
            }
        };
        let tally =
            match self.members.store.answer(plan.content_hash(), answer, None, by, (&policy, &policy_sha256)).await? {
                Ok(tally) => tally,
                Err(why) => return Ok(Err(why.into())),
            };
        let is_switched_on = self.act.may_carry_out(plan);
        let alone = tally.snoozed_until.map_or_else(String::new, |until| {
            format!(" It is left alone until {}, as the policy says.", words::time(until.as_millisecond()))
        });
        Ok(Ok(format!("{}{alone}", told(answer, &tally, is_switched_on))))
    }

    /// What to say of a word that what a plan is about is left alone.
    async fn left_alone(
        &self,
        plan: &Plan,
        until: Option<Timestamp>,
        because: Option<&String>,
        by: &Doer,
        zone: &TimeZone,
    ) -> Result<Result<String, NotCounted>, StoreError> {
        let what = match self.members.store.finding(&plan.content().finding).await? {
            Some(finding) => Alone::Finding(Box::new(finding)),
            None => Alone::Resource(plan.content().resource.clone()),
        };
        let left = match self.members.store.exempt(&what, until, because.map(String::as_str), by).await? {
            Ok(left) => left,
            Err(why) => return Ok(Err(why.into())),
        };
        let until = match until {
            Some(until) => until.to_zoned(zone.clone()).strftime("until %A, %-d %B %Y, %H:%M %Z").to_string(),
            None => "for good".to_owned(),
        };
        let (id, too_late) = (&left.exemption.id, left.too_late());
        Ok(Ok(format!("It is left alone {until}. `sweeper exemptions lift {id}` ends that.{too_late}")))
    }
}

impl Members {
    /// Who it was, if somebody has said whose account it is, and Slack vouches for it.
    async fn person(
        &self,
        account: &Account,
        is_guest_from_elsewhere: bool,
    ) -> Result<Result<(String, Member), NotCounted>, StoreError> {
        if is_guest_from_elsewhere {
            return Ok(Err(NotAPerson::Stranger.into()));
        }
        let Some(who) = self.store.approver_by_account(&account.to_string()).await? else {
            return Ok(Err(NotCounted::NotLinked { account: account.to_string() }));
        };
        Ok(match self.slack.membership(account).await {
            Ok(Ok(member)) => Ok((who, member)),
            Ok(Err(why)) => Err(why.into()),
            Err(error) => {
                tracing::warn!(%account, %error, "Slack did not say who somebody is");
                Err(NotCounted::SlackSilent)
            }
        })
    }
}

fn told(answer: Answer, tally: &Tally, is_switched_on: bool) -> &'static str {
    match (answer, tally.is_approved(), is_switched_on) {
        (Answer::Deny, ..) => "You said no. Nobody can approve this plan any more.",
        (Answer::Approve, false, _) => "You said yes. More people must before anything is done.",
        (Answer::Approve, true, true) => {
            "You said yes. It is looked at once more, and done if nothing speaks against it; what came of it is told here."
        }
        (Answer::Approve, true, false) => {
            "You said yes. A dry run is all that is done, because that is not switched on there (`act.scopes`, and what has a switch of its own); what would have come of it is told here."
        }
    }
}
