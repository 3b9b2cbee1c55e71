//! What an account's machines cost together, in words: the first thing that `sweeper sweep` says to somebody without agents.

use super::screen::{BOLD, WARN, bare_table, plain, trim_lines};
use crate::{
    sweep::{AtMost, Left, MachineLine, NoReport, Overview, RunRate, ScopeLine, WhyNot},
    verdict::words,
};
use comfy_table::CellAlignment;
use model::{ResourceKind, Usd};
use std::fmt::Write as _;

/// More lines than these push the findings off the screen; JSON has them all.
const MOST_PARTS: usize = 5;

/// What runs and what it costs, and what is left lying about.
pub(super) fn overview(out: &mut String, overview: &Overview, scopes: &[ScopeLine]) {
    // What could not be listed may be there as well.
    let or_more = |kind: ResourceKind| {
        let may_be_of = |scope: &ScopeLine| scope.kind.as_deref().is_none_or(|listed| listed == kind.as_str());
        let is_partial = scopes.iter().any(|scope| scope.failed.is_some() && may_be_of(scope));
        if is_partial { " or more" } else { "" }
    };
    let Overview { running, unpriced, unattached_volumes, unused_addresses, unpriced_left, snapshots, .. } = overview;
    if running.machines > 0 {
        let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}", burns(*running, or_more(ResourceKind::Instance)));
        out.push_str(&parts(overview));
        for reason in unpriced {
            let count = words::count(reason.machines, "machine", "machines");
            let _ = writeln!(out, "  {WARN}no price of {count}:{WARN:#} {}", plain(&reason.why));
        }
    }
    let left = |left: Left, kind: ResourceKind, one: &str, many: &str| {
        let what = if left.count == 1 { one } else { many };
        (left.count > 0).then(|| format!("{}{} {what} ({})", left.count, or_more(kind), costs(left)))
    };
    let lying = [
        left(*unattached_volumes, ResourceKind::Volume, "volume attached to nothing", "volumes attached to nothing"),
        left(*unused_addresses, ResourceKind::Address, "address tied to nothing", "addresses tied to nothing"),
    ];
    let lying: Vec<String> = lying.into_iter().flatten().collect();
    if !lying.is_empty() {
        let _ =
            writeln!(out, "\n{BOLD}Left lying about:{BOLD:#} {}. `sweeper inventory` lists each.", lying.join(", "));
        for WhyNot { why, resources } in unpriced_left {
            let _ = writeln!(out, "  {WARN}no price of {resources} of them:{WARN:#} {}", plain(why));
        }
    }
    held(out, *snapshots, or_more(ResourceKind::Snapshot));
}

/// `600 GiB, $48.00 a month besides 1 without a known price`
fn costs(left: Left) -> String {
    let size = (left.gib > 0).then(|| format!("{} GiB", left.gib));
    let cost = if left.priced == 0 {
        "price not known".to_owned()
    } else {
        let not_priced = left.count - left.priced;
        let besides =
            if not_priced > 0 { format!(" besides {not_priced} without a known price") } else { String::new() };
        format!("{} a month{besides}", Usd::from_micros(left.micro_usd_per_month).in_cents())
    };
    [size, Some(cost)].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Snapshots, whose price nobody but the bill knows.
fn held(out: &mut String, snapshots: AtMost, or_more: &str) {
    let AtMost { count, bounded, micro_usd_per_month } = snapshots;
    if count == 0 {
        return;
    }
    let what = if count == 1 { "snapshot" } else { "snapshots" };
    let most = if bounded == 0 {
        String::new()
    } else {
        let of = if bounded < count { format!(" for {bounded} of them") } else { String::new() };
        format!(
            " At most {} a month{of}, as if each were a full copy.",
            Usd::from_micros(micro_usd_per_month).in_cents()
        )
    };
    let _ = writeln!(
        out,
        "{BOLD}{count}{or_more} {what}:{BOLD:#} what they cost is not known, since EC2 does not say how many bytes of each are stored.{most}"
    );
}

fn burns(rate: RunRate, or_more: &str) -> String {
    let what = if rate.machines == 1 { "machine runs" } else { "machines run" };
    let machines = format!("{}{or_more} {what}", rate.machines);
    if rate.priced == 0 {
        return format!("{machines}; what they cost is not known");
    }
    let per_hour = rate.per_hour();
    let not_priced = rate.machines - rate.priced;
    let besides = if not_priced > 0 { format!(", besides {not_priced} without a known price") } else { String::new() };
    format!("{machines}: {per_hour}, {} a month at list prices{besides}", per_hour.per_month().in_cents())
}

/// Regions and owners, dearest first.
fn parts(overview: &Overview) -> String {
    let Overview { by_region, by_owner, .. } = overview;
    // Where nobody has an owner, the total says it all.
    let has_owners = by_owner.iter().any(|part| part.name.is_some());
    let owners = if has_owners { by_owner.as_slice() } else { &[] };
    let mut table = bare_table(["", "", ""]);
    for (label, parts) in [("", by_region.as_slice()), ("owner ", owners)] {
        for part in parts.iter().take(MOST_PARTS) {
            let name = part.name.as_deref().map(|name| format!("{label}{name}"));
            let cost = if part.rate.priced == 0 { "not known".to_owned() } else { part.rate.per_hour().to_string() };
            let name = name.unwrap_or_else(|| "without an owner's tag".to_owned());
            table.add_row([plain(&name), part.rate.machines.to_string(), cost]);
        }
        if parts.len() > MOST_PARTS {
            let more = format!("and {} more: sweeper sweep --output json", parts.len() - MOST_PARTS);
            table.add_row([more, String::new(), String::new()]);
        }
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The header is empty: its line is not for people.
    let table = trim_lines(&table.to_string());
    table.lines().filter(|line| !line.is_empty()).map(|line| format!(" {line}\n")).collect()
}

/// What would tell most: an agent that reports from the dearest machines of which nothing is known.
pub(super) fn next_step(out: &mut String, blind_spots: &[MachineLine]) {
    const NAMED: usize = 3;
    if blind_spots.is_empty() {
        return;
    }
    let dearest = &blind_spots[..blind_spots.len().min(NAMED)];
    let named = |reasons: &[Option<NoReport>]| {
        let its = dearest.iter().filter(|machine| reasons.contains(&machine.no_report));
        let names: Vec<String> =
            its.map(|machine| plain(machine.name.as_deref().unwrap_or(&machine.resource))).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let steps = [
        named(&[None, Some(NoReport::NoAgent)]).map(|names| format!("put an agent on {names} (docs/operations.md)")),
        named(&[Some(NoReport::Silent)]).map(|names| {
            format!("start the agent again on {names} (`node-agent doctor` on the machine says what it lacks)")
        }),
        named(&[Some(NoReport::Refused)]).map(|names| format!("see above why the heartbeats of {names} are refused")),
    ];
    let steps = steps.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let _ = writeln!(out, "{BOLD}Next:{BOLD:#} {steps}. What they do is not known until one reports.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_agent_fell_silent_it_is_to_be_started_again_and_where_none_is_one_is_to_be_put() {
        let machine = |name: &str, no_report| MachineLine {
            resource: format!("aws:123456789012:eu-central-1:{name}"),
            name: Some(name.to_owned()),
            owner: None,
            instance_type: None,
            verdict: "unknown".into(),
            why: String::new(),
            cost_micro_usd_per_hour: None,
            cost_per_hour: None,
            cost_unknown_because: None,
            usage: None,
            launched_by: None,
            no_report,
        };
        let said = |blind_spots: &[MachineLine]| {
            let mut out = String::new();
            next_step(&mut out, blind_spots);
            anstream::adapter::strip_str(&out).to_string()
        };
        let (silent, bare) = (machine("vm", Some(NoReport::Silent)), machine("db", Some(NoReport::NoAgent)));
        let refused = machine("web", Some(NoReport::Refused));
        assert_eq!(
            said(std::slice::from_ref(&silent)),
            "Next: start the agent again on vm (`node-agent doctor` on the machine says what it lacks). What they do is not known \
             until one reports.\n"
        );
        assert_eq!(
            said(&[silent, bare, refused]),
            "Next: put an agent on db (docs/operations.md); start the agent again on vm (`node-agent doctor` on the machine says \
             what it lacks); see above why the heartbeats of web are refused. What they do is not known until one reports.\n"
        );
        assert_eq!(said(&[]), "");
    }
}
