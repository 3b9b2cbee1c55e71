//! What people ask in Slack by the slash command: they alone are answered, and nothing is changed by it.
//!
//! Whoever may press a button may ask, and nobody else. `approve` approves nothing: it shows the plan with its button, which asks once more, so that a yes has one way, and one record.

use super::{Members, NotCounted};
use crate::{
    approvals::{self, Answer as Said, Given, NotAnswered},
    exemptions::Exemptions,
    findings::{Finding, Status, notice, plan_notice},
    savings::{NotKnown, Saved, Savings, until},
    store::StoreError,
    verdict::words,
};
use model::{
    HourlyRate, Sum, Usd,
    plan::{Plan, Saving},
};
use notifier::{
    message::{Ended, Ending, FindingNotice},
    slack::{Account, Answer, Asked, Command, List, NotAPerson, Proof, Row},
};

/// Why somebody is not answered.
#[derive(Debug, thiserror::Error)]
enum NotRead {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Savings(#[from] NotKnown),
}

/// Answers one command. That something could not be read is an answer, too: nobody else would say so.
pub(super) async fn answer(members: &Members, command: &Command) -> Answer {
    in_words(&command.account, answered(members, command).await)
}

/// Shows the evidence of a finding to whoever sees a message about it: they need not be enrolled, but of this workspace, as Slack says. It changes nothing.
pub(super) async fn prove(members: &Members, proof: &Proof) -> Answer {
    in_words(&proof.account, proved(members, proof).await)
}

fn in_words(account: &Account, answered: Result<Result<Answer, NotCounted>, NotRead>) -> Answer {
    match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => {
            tracing::warn!(%account, %why, "what somebody asked in Slack is not answered");
            Answer::Told(format!("That does not count: {why}."))
        }
        Err(error) => {
            tracing::error!(%account, error = %crate::chain(&error), "what somebody asked in Slack could not be read");
            Answer::Told("The sweeper could not read that, and its log says why. Try again in a moment.".to_owned())
        }
    }
}

async fn proved(members: &Members, proof: &Proof) -> Result<Result<Answer, NotCounted>, NotRead> {
    if proof.is_guest_from_elsewhere {
        return Ok(Err(NotAPerson::Stranger.into()));
    }
    match members.slack.membership(&proof.account).await {
        // A guest sees the message that has the button, too.
        Ok(Ok(_) | Err(NotAPerson::Guest)) => Ok(Ok(explain(members, &proof.finding).await?)),
        Ok(Err(why)) => Ok(Err(why.into())),
        Err(error) => {
            tracing::warn!(account = %proof.account, %error, "Slack did not say who somebody is");
            Ok(Err(NotCounted::SlackSilent))
        }
    }
}

async fn answered(members: &Members, command: &Command) -> Result<Result<Answer, NotCounted>, NotRead> {
    let is_from_elsewhere = match members.slack.workspace().await {
        Ok(workspace) => workspace != command.account.team,
        Err(error) => {
            tracing::warn!(account = %command.account, %error, "Slack did not say whose app this is");
            return Ok(Err(NotCounted::SlackSilent));
        }
    };
    let who = match members.person(&command.account, is_from_elsewhere).await? {
        Ok((who, _)) => who,
        Err(why) => return Ok(Err(why)),
    };
    Ok(Ok(match &command.asked {
        Asked::Help => Answer::Help,
        Asked::Findings => findings(members).await?,
        Asked::Explain { finding } => explain(members, finding).await?,
        Asked::Plans => plans(members).await?,
        Asked::Approve { plan } => match ask(members, plan, &who).await? {
            Ok(answer) => answer,
            Err(why) => Answer::Told(format!("Nobody can approve that: {why}.")),
        },
        Asked::Savings => savings(members).await?,
    }))
}

async fn findings(members: &Members) -> Result<Answer, StoreError> {
    let open = members.store.open_findings().await?;
    if open.is_empty() {
        return Ok(Answer::Told("No finding is open.".to_owned()));
    }
    Ok(Answer::List(List::of_findings(open.iter().map(notice).collect())))
}

async fn explain(members: &Members, id: &str) -> Result<Answer, StoreError> {
    let found = members.store.findings_by_prefix(id).await?;
    let finding = match found.as_slice() {
        [finding] => finding,
        [] => {
            return Ok(Answer::Told("There is no such finding; `/sweeper findings` lists the open ones.".to_owned()));
        }
        [first, second, ..] => {
            return Ok(Answer::Told(format!("That is not unique: {} and {} begin like this.", first.id, second.id)));
        }
    };
    let mut told = notice(finding);
    // Whoever wants to answer asks for the plan.
    told.ask = None;
    if let Status::Closed { at, because } = &finding.status {
        // How it ended is not kept with it, and shown nowhere here; why is.
        told.ended = Some(Ended { at: *at, how: Ending::Resolved, because: because.clone() });
    }
    told.answers = match &finding.plan {
        Some(plan) => said(members, plan).await?.iter().map(approvals::line).collect(),
        None => Vec::new(),
    };
    Ok(Answer::Finding(Box::new(told)))
}

async fn said(members: &Members, plan: &Plan) -> Result<Vec<Given>, StoreError> {
    let hash = plan.content_hash().to_string();
    Ok(members.store.answers(std::slice::from_ref(&hash)).await?.remove(&hash).unwrap_or_default())
}

fn saves(plan: &Plan) -> Option<HourlyRate> {
    match &plan.content().net_saving {
        Saving::Known { per_hour, .. } => Some(*per_hour),
        Saving::Unknown { .. } => None,
    }
}

async fn plans(members: &Members) -> Result<Answer, StoreError> {
    let open = members.store.open_findings().await?;
    let mut plans: Vec<Plan> = open.into_iter().filter_map(|finding| finding.plan).collect();
    if plans.is_empty() {
        return Ok(Answer::Told("There is no plan.".to_owned()));
    }
    plans.sort_by(|a, b| saves(b).cmp(&saves(a)).then_with(|| a.content_hash().cmp(b.content_hash())));
    let hashes: Vec<String> = plans.iter().map(|plan| plan.content_hash().to_string()).collect();
    let mut said = members.store.answers(&hashes).await?;
    let row = |(plan, hash): (&Plan, &String)| Row {
        name: plan.content().title.clone(),
        details: details(plan, &said.remove(hash).unwrap_or_default()),
        id: plan.content_hash().short().to_owned(),
    };
    let rows: Vec<Row> = plans.iter().zip(&hashes).map(row).collect();
    let sum = Sum::of(plans.iter().map(|plan| saves(plan).map(HourlyRate::per_hour)));
    let saving = match (sum.count, sum.unknown) {
        (0, _) => "what is saved is not known".to_owned(),
        (_, 0) => format!("{}/h saved", sum.known.in_cents()),
        (_, unknown) => format!("{}/h saved, and {unknown} an unknown amount", sum.known.in_cents()),
    };
    let headline = format!("{}: {saving}", words::count(plans.len(), "plan", "plans"));
    let notes = vec!["One of them with its buttons: `/sweeper approve PLAN`.".to_owned()];
    Ok(Answer::List(List { headline, rows, notes, command: "sweeper plans" }))
}

fn details(plan: &Plan, said: &[Given]) -> String {
    let saves = saves(plan).map_or_else(|| "saving not known".to_owned(), |rate| format!("saves {rate}"));
    let until = words::time(plan.valid_until().as_millisecond());
    let said: Vec<String> = said.iter().map(approvals::line).collect();
    let said = if said.is_empty() { "nobody has answered".to_owned() } else { said.join(", ") };
    format!("{saves}, valid until {until}, {said}")
}

/// The plan whose hash begins like this, with its buttons, if a yes of theirs to it could count.
async fn ask(members: &Members, prefix: &str, who: &str) -> Result<Result<Answer, NotAnswered>, StoreError> {
    let found = members.store.plans_by_prefix(prefix).await?;
    let plan = match found.as_slice() {
        [plan] => plan,
        [] => return Ok(Err(NotAnswered::NoPlan)),
        [first, second, ..] => {
            let (first, second) = (first.content_hash(), second.content_hash());
            return Ok(Ok(Answer::Told(format!("That is not unique: {first} and {second} begin like this."))));
        }
    };
    let left_alone = Exemptions::new(members.store.exemptions(false).await?);
    if let Some(exemption) = left_alone.of(&plan.content().resource) {
        return Ok(Err(NotAnswered::LeftAlone { said: exemption.line() }));
    }
    let finding = members.store.finding(&plan.content().finding).await?;
    let is_its = |finding: &Finding| finding.plan.as_ref().is_some_and(|one| one.content_hash() == plan.content_hash());
    let Some(finding) = finding.filter(is_its) else { return Ok(Err(NotAnswered::Withdrawn)) };
    if plan.valid_until() <= members.store.now().await? {
        return Ok(Err(NotAnswered::Expired { at: plan.valid_until() }));
    }
    let said = said(members, plan).await?;
    if let Some(no) = said.iter().find(|given| given.answer == Said::Deny) {
        return Ok(Err(NotAnswered::Denied { by: no.approver.clone() }));
    }
    if said.iter().any(|given| given.approver == who) {
        return Ok(Err(NotAnswered::Already));
    }
    let mut asks = FindingNotice { answers: said.iter().map(approvals::line).collect(), ..plan_notice(&finding) };
    if let (Some(ask), Ok((policy, _))) = (&mut asks.ask, members.approvals.policy()) {
        let tags_before = members.store.tags_before(plan).await?;
        ask.nobody_may = approvals::nobody_may(&members.approvals, &policy, plan, tags_before.as_ref());
    }
    Ok(Ok(match &asks.ask {
        Some(_) => Answer::Finding(Box::new(asks)),
        None => {
            let hash = plan.content_hash().short();
            Answer::Told(format!("This plan has no button; `sweeper approve {hash}` approves it in the shell."))
        }
    }))
}

async fn savings(members: &Members) -> Result<Answer, NotKnown> {
    let savings = Savings::read(&members.store).await?;
    let notes = savings.in_words().into();
    let rows = savings.actions.iter().map(saved).collect();
    Ok(Answer::List(List { headline: "What was saved".to_owned(), rows, notes, command: "sweeper savings" }))
}

fn saved(one: &Saved) -> Row {
    let or_unknown = |amount: Option<String>| amount.unwrap_or_else(|| "an unknown amount".to_owned());
    let since = words::time(one.stopped.since.as_millisecond());
    let rate = or_unknown(one.per_hour.map(|rate| rate.to_string()));
    let so_far = or_unknown(one.saved.map(Usd::in_cents));
    let (until, by) = (until(one.stopped), one.approved_by.join(", "));
    Row {
        name: one.title.clone(),
        details: format!("since {since}, until: {until}; saves {rate}, so far {so_far}; approved by {by}"),
        id: one.plan.short().to_owned(),
    }
}
