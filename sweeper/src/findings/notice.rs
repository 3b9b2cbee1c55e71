//! What people are told of a new finding.

use super::{Evidence, Finding, Status};
use crate::{
    detectors::Class,
    pricing::Cost,
    snapshot::HoursCase,
    verdict::{Decision, words, work::Contract},
};
use model::plan::{Action, Charge, ChargeCost, ChargePrice, Plan, Saving};
use model::{Provider, ResourceKey, ResourceKind};
use notifier::message::{Ask, Ended, Ending, FindingNotice, end_headline, headline};

/// Puts a finding into a notice. There is no page that shows a finding yet, so no link leads to one.
#[must_use]
pub fn notice(finding: &Finding) -> FindingNotice {
    let as_of = finding.confirmed_until;
    let rate = finding.cost.rate().map(|rate| rate.to_string());
    let resource = finding.resource.to_string();
    let state = state(finding);
    let head = headline(finding.name().unwrap_or(&resource), state, finding.since, as_of, rate.as_deref());
    let mut notice = FindingNotice::new(&finding.id.0, head, &resource, verdict(finding), finding.since, as_of);
    notice.resource_name = finding.name().map(str::to_owned);
    notice.resource_kind = Some(kind(finding));
    notice.place = Some(place(&finding.resource));
    notice.account = Some(account(&finding.resource));
    notice.state = Some(state.to_owned());
    notice.owner = finding.evidence.owner().map(str::to_owned);
    notice.certainty = Some(capitalised(&finding.why()));
    notice.evidence = evidence(finding);
    match &finding.cost {
        Cost::Known { per_hour, as_of: read_at } => {
            let dated = |rate: String| match read_at {
                Some(read_at) => format!("{rate} (price of {})", words::time(read_at.as_millisecond())),
                None => rate,
            };
            let spent = per_hour.over(as_of.duration_since(finding.since));
            notice.cost_per_hour = rate.map(dated);
            notice.cost_so_far = Some(spent.in_cents());
            (notice.rate, notice.spent) = (Some(*per_hour), Some(spent));
        }
        Cost::Unknown { why } => notice.unknown_price_reason = Some(why.clone()),
    }
    if let Some(plan) = &finding.plan {
        notice.plan_summary = Some(plan.content().title.clone());
        notice.ask = ask(plan);
        notice.keeps_billing = plan.charges().map(|(kept, price)| charge(kept, price)).collect();
        match &plan.content().net_saving {
            Saving::Known { per_hour, per_month, .. } => {
                notice.net_saving = Some(format!("{per_hour} ({} per month)", per_month.in_cents()));
                notice.saving = Some(*per_hour);
            }
            Saving::Unknown { why } => notice.unknown_price_reason = Some(why.clone()),
        }
    }
    notice
}

/// What people are asked; nothing of a plan of which no word or two say what it does.
fn ask(plan: &Plan) -> Option<Ask> {
    let label = match plan.content().actions.as_slice() {
        [Action::StopInstance] => "Stop it",
        [Action::HibernateInstance] => "Hibernate it",
        [Action::ReleaseAddress] => "Release it",
        [Action::DeleteVolume] => "Delete it",
        [Action::EndMember] => "End it",
        [Action::TerminateJob] => "Terminate it",
        _ => return None,
    };
    Some(Ask { plan: plan.content_hash().clone(), label: label.to_owned(), nobody_may: None })
}

/// The same with a plan as the news.
#[must_use]
pub fn plan_notice(finding: &Finding) -> FindingNotice {
    let mut notice = notice(finding);
    let resource = finding.resource.to_string();
    let name = finding.name().unwrap_or(&resource);
    let saving = finding.plan.as_ref().and_then(|plan| match &plan.content().net_saving {
        Saving::Known { per_hour, .. } => Some(format!("would save {per_hour}")),
        Saving::Unknown { .. } => None,
    });
    let saving = saving.unwrap_or_else(|| "what it would save is not known".to_owned());
    notice.headline = format!("A plan would end the waste on {name}: {saving}");
    notice
}

/// The same once the finding is over: since when it was so, up to where the evidence reached, what that cost, and what ended it.
#[must_use]
pub fn end_notice(finding: &Finding, how: Ending) -> FindingNotice {
    let mut notice = notice(finding);
    let Status::Closed { at, because } = &finding.status else { return notice };
    let resource = finding.resource.to_string();
    let name = finding.name().unwrap_or(&resource);
    let spent = notice.cost_so_far.as_deref();
    notice.headline = end_headline(name, state(finding), how, finding.since, finding.confirmed_until, spent);
    notice.ended = Some(Ended { at: *at, how, because: capitalised(because) });
    notice
}

/// The counters that decided, a line each, what ended last, and when it works as a rule.
fn evidence(finding: &Finding) -> Vec<String> {
    let last = finding.evidence.last_work().into_iter();
    counters(finding).into_iter().chain(last).chain(finding.evidence.regular_work()).collect()
}

fn counters(finding: &Finding) -> Vec<String> {
    match &finding.evidence {
        Evidence::Machine(machine) if finding.class == Class::BarelyUsed => {
            machine.hours.iter().flat_map(HoursCase::thresholds).collect()
        }
        Evidence::Machine(machine) => match (&machine.metrics, &machine.judgement.decision) {
            (Some(metrics), _) => metrics.thresholds(),
            (None, Decision::AllQuiet { total, .. }) => words::counters(total, &machine.case),
            (None, _) => Vec::new(),
        },
        Evidence::Leftover(_) | Evidence::Group(_) | Evidence::Batch(_) | Evidence::Work(_) => Vec::new(),
    }
}

/// The verdict on a machine; of what is none, the state that it is in.
fn verdict(finding: &Finding) -> &'static str {
    finding.evidence.of_machine().map_or_else(|| state(finding), |machine| machine.judgement.verdict.as_str())
}

fn state(finding: &Finding) -> &'static str {
    match (finding.class, finding.resource.kind) {
        (Class::IdleNode, _) => verdict(finding),
        (Class::RelaunchingGroup, ResourceKind::LaunchTemplate) => "relaunching template",
        (class, _) => word(class),
    }
}

/// The state that a class is about.
fn word(class: Class) -> &'static str {
    match class {
        Class::IdleNode | Class::IdleWorker => "idle",
        Class::IdleGroup => "wholly idle",
        Class::RelaunchingGroup => "relaunching",
        Class::QuietInstance => "quiet",
        Class::IdleGpu => "unused GPU",
        Class::BarelyUsed => "barely used",
        Class::QuietHours => "resting",
        Class::UnattachedVolume => "unattached",
        Class::UnusedAddress => "unused",
        Class::OrphanedSnapshot => "orphaned",
        Class::StoppedInstance => "stopped",
        Class::SilentAgent => "silent",
        Class::UnregisteredWorker => "unregistered",
        Class::AbandonedWorker => "abandoned",
        Class::BlockedQueue => "blocked",
        Class::HeldCapacity => "held",
        Class::LostJob => "lost",
        Class::StartingJob => "starting",
        Class::StragglingJob => "straggling",
        Class::OrphanedJob => "headless",
        Class::StuckJob => "stuck",
        Class::SpinningJob => "spinning",
        Class::FailingRun => "failing",
        Class::OrphanedTask => "left behind",
    }
}

fn kind(finding: &Finding) -> String {
    let described = |what: &str| match finding.evidence.described() {
        Some(described) => format!("{what}, {described}"),
        None => what.to_owned(),
    };
    if let Evidence::Work(evidence) = &finding.evidence
        && !matches!(evidence.job.work.contract, Contract::BatchJob { .. })
    {
        return evidence.job.work.contract.what();
    }
    let Evidence::Machine(evidence) = &finding.evidence else {
        if finding.resource.kind == ResourceKind::LaunchTemplate {
            return described("EC2 launch template");
        }
        return described(match (finding.class, finding.resource.provider) {
            (Class::UnusedAddress, Provider::Aws) => "Elastic IP address",
            (Class::UnusedAddress, _) => "public address",
            (Class::OrphanedSnapshot, _) => "EBS snapshot",
            (Class::StoppedInstance, Provider::Gcp) => "Compute Engine instance",
            (Class::StoppedInstance, _) => "EC2 instance",
            (Class::IdleGroup | Class::RelaunchingGroup, Provider::Gcp) => "managed instance group",
            (Class::IdleGroup | Class::RelaunchingGroup, _) => "Auto Scaling group",
            (Class::BlockedQueue, _) => "AWS Batch queue",
            (Class::HeldCapacity, _) => "AWS Batch compute environment",
            (
                Class::LostJob
                | Class::StartingJob
                | Class::StragglingJob
                | Class::OrphanedJob
                | Class::StuckJob
                | Class::SpinningJob,
                _,
            ) => "AWS Batch job",
            (_, Provider::Gcp) => "disk",
            (_, _) => "EBS volume",
        });
    };
    match finding.resource.provider {
        Provider::Aws => described("EC2 instance"),
        Provider::Gcp => "Compute Engine instance".to_owned(),
        Provider::OnPrem => match evidence.case.node.as_ref() {
            Some(node) => {
                format!("Linux host with {}, kernel {}", words::count(node.cpus, "CPU", "CPUs"), node.kernel_release)
            }
            None => "Linux host".to_owned(),
        },
    }
}

fn account(ResourceKey { provider, account, .. }: &ResourceKey) -> String {
    match provider {
        Provider::Aws => format!("AWS account {account}"),
        Provider::Gcp => format!("Google Cloud project {account}"),
        Provider::OnPrem => "on premises".to_owned(),
    }
}

fn place(ResourceKey { provider, account, location, .. }: &ResourceKey) -> String {
    match provider {
        Provider::Aws => format!("AWS account {account}, {location}"),
        Provider::Gcp => format!("Google Cloud project {account}, {location}"),
        Provider::OnPrem => "on premises".to_owned(),
    }
}

/// A charge in words, with what it comes to where that is told.
#[must_use]
pub fn charge(charge: &Charge, price: Option<&ChargePrice>) -> String {
    let what = price.and_then(|price| price.what.as_ref()).map(|what| format!(", {what}")).unwrap_or_default();
    let name = match charge {
        Charge::Volume { id } if price.is_none() => format!("volume {id}, by its size"),
        Charge::Volume { id } => format!("volume {id}{what}"),
        Charge::ElasticIpv4 { address, may_be_released: false } => format!("elastic address {address}"),
        Charge::ElasticIpv4 { address, may_be_released: true } => format!("address {address}, if it is elastic"),
        Charge::SnapshotOf { volume } => format!("the snapshot of {volume}{what}"),
        Charge::MachineOfJob { id } => format!("its machine {id}, for as long as AWS Batch keeps it"),
        Charge::CommitmentsUnknown => "reservations and savings plans, if any cover it (not read)".to_owned(),
    };
    match price.map(|price| &price.cost) {
        None => name,
        Some(ChargeCost::Known { per_month, as_of }) => {
            let dated = as_of.map(|as_of| format!(" (price of {})", words::time(as_of.as_millisecond())));
            format!("{name}: {} a month{}", per_month.in_cents(), dated.unwrap_or_default())
        }
        Some(ChargeCost::Unknown { why }) => format!("{name}: its price is not known: {why}"),
    }
}

/// As a sentence begins.
#[must_use]
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn a_message_has_words_for_every_class() {
        for class in Class::ALL {
            let (now, state) = (Timestamp::UNIX_EPOCH, word(class));
            let begun = headline("align-7", state, now, now, None);
            let over = end_headline("align-7", state, Ending::Resolved, now, now, None);
            assert!(!begun.contains("wasteful") && !over.contains("wasteful"), "{class:?}: {begun}; {over}");
        }
    }
}
