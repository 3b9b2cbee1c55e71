//! The commands and their help.

use super::{
    Printed, actions, approvers, audit, costs, digest, doctor, exemptions, inventory, jobs, messages, nodes, plans,
    policy, prices, recommendations, routes, rules,
};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the service: receive heartbeats, sweep on schedule, deliver messages
    #[command(after_help = "Example:\n  SWEEPER_API__LISTEN=0.0.0.0:8090 sweeper serve")]
    Serve,
    /// Sweep once, now, and print what was found
    #[command(after_help = "\
Examples:
  sweeper sweep
  sweeper sweep --output json | jq '.findings[] | {name, since, cost_per_hour}'
  AWS_PROFILE=research sweeper sweep

New findings are told on the configured channels, each once. Nothing is ever stopped by a sweep.")]
    Sweep(Printed),
    /// List the scopes: when each was last swept, what was read, and who sweeps it now
    #[command(after_help = "\
Examples:
  sweeper scopes
  sweeper scopes --output json | jq '.[] | select(.complete == false) | {account, region, failed}'")]
    Scopes(Printed),
    /// List findings
    #[command(after_help = "Examples:\n  sweeper findings\n  sweeper findings --closed --output json")]
    Findings {
        /// The last 50 that were closed, instead of the open ones
        #[arg(long)]
        closed: bool,
        #[command(flatten)]
        printed: Printed,
    },
    /// Show the evidence of one finding, in words that a person can check
    #[command(after_help = "Examples:\n  sweeper explain f-3f9a1c22b7d0\n  sweeper explain f-3f9a")]
    Explain {
        /// Id of the finding, or as much of its beginning as is unique
        finding: String,
        #[command(flatten)]
        printed: Printed,
    },
    /// Decide again about findings, from nothing but the evidence that was kept of each decision
    #[command(after_help = "\
Examples:
  sweeper replay                               every decision about every finding
  sweeper replay f-3f9a                        those about one finding
  sweeper replay --output json | jq '.decisions[] | select(.replayed.is_same | not)'
  sweeper replay --verdicts --output json >verdicts.json
                                               what every node was, each quarter of an hour of the kept heartbeats
  sweeper replay --verdicts --against verdicts.json
                                               what another version, or another configuration, says otherwise

It ends with 1 if this version decides one of them otherwise, and says which; nothing is changed.")]
    Replay {
        /// Ids of findings, or as much of the beginning of each as is unique; without one, all
        #[arg(value_name = "FINDING")]
        findings: Vec<String>,
        /// Judge every node through the kept heartbeats instead, those that nothing was found on among them
        #[arg(long, conflicts_with = "findings")]
        verdicts: bool,
        /// What `--verdicts --output json` of another version, or under another configuration, wrote: show the differences
        #[arg(long, value_name = "FILE", requires = "verdicts")]
        against: Option<PathBuf>,
        #[command(flatten)]
        printed: Printed,
    },
    /// Show what the provider bills for, now or at a moment in the past
    #[command(after_help = "\
Examples:
  sweeper inventory                            everything that the last complete listings showed
  sweeper inventory --at 2026-11-17            what there was at that day's begin
  sweeper inventory i-0123456789abcdef0        all that this machine has been, and what changed when
  sweeper inventory --output json | jq '.resources[].facts'

It shows what sweeps have read. Where a listing failed, what was seen before is shown, with a warning since when nobody has looked.")]
    Inventory {
        #[command(flatten)]
        question: inventory::Question,
        #[command(flatten)]
        printed: Printed,
    },
    /// List AWS Batch jobs, down to the machine, node and container that each runs on
    #[command(after_help = "\
Examples:
  sweeper jobs                                 all that live or ended within a day
  sweeper jobs --status RUNNABLE --queue high  what waits in one queue, and for what
  sweeper jobs --output json | jq '.jobs[] | {id: .job.id, machine: .placements[].machine}'

It shows what the last sweeps have read, joined with the latest heartbeats. Where Batch or ECS could not be read, a warning says since when.")]
    Jobs {
        #[command(flatten)]
        question: jobs::Question,
        #[command(flatten)]
        printed: Printed,
    },
    /// List what people were told of findings and whether it arrived; try again what was discarded
    #[command(after_help = "\
Examples:
  sweeper messages
  sweeper messages --state failed              what was discarded, and why
  sweeper messages retry                       have it tried again, once the reason is mended
  sweeper messages --output json | jq '.[] | {event, channel, state, receipt}'")]
    Messages(messages::Question),
    /// List whose findings are told in which channel of Slack; say where one would be told, and why there
    Routes(routes::Question),
    /// List the nodes and how each is attested, or show what one does; make join tokens, revoke
    #[command(after_help = "\
Examples:
  sweeper nodes
  sweeper nodes web-1                          its verdict now, what decided it, what its agent cannot measure
  sweeper nodes web-1 --now                    the same, of a sample that is taken now
  sweeper nodes web-1 --output json | jq '{verdict, why, not_measured}'
  sweeper nodes --output json | jq '.[] | select(.attested | not) | .node'
  sweeper nodes token --expires 1h
  sweeper nodes revoke host:0123456789abcdef0123456789abcdef

BY says how: aws_iid (EC2's signed instance identity document), aws_sts (the session of its EC2 role), gcp_token (Compute Engine's
identity token), join_token (it admitted this node alone); fleet_token and none are not attested.

A disputed node is unknown to every sweep until `revoke` (this machine was made anew) or `settle` (the claimant was not it).")]
    Nodes(nodes::Question),
    /// List the plans of open findings, and who said what of each
    #[command(after_help = "\
Examples:
  sweeper plans
  sweeper plans --output json | jq '.[] | select(.answers == []) | {plan, title, saving}'

`sweeper explain FINDING` shows a plan in full: what is done, what takes it back, what is lost.")]
    Plans(Printed),
    /// Say yes to exactly one plan, in your name
    #[command(after_help = "\
Examples:
  SWEEPER_APPROVER_TOKEN=$(cat token) sweeper approve 5d0f66e03c15
  sweeper approve 5d0f66e03c15 --token-file ~/.config/cloud-sweeper/token --wait

Who may approve what the policy says. Where `act.scopes` says so, `sweeper serve` then carries it out (docs/approvals.md).")]
    Approve(plans::Approval),
    /// Say no to a plan, in your name: nobody can approve it any more
    #[command(
        after_help = "Example:\n  sweeper deny 5d0f66e03c15 --because \"the benchmark of Monday needs it\" --token-file token"
    )]
    Deny(plans::Said),
    /// Leave something alone for now, in your name: no plan, no message and no action until then
    #[command(after_help = "\
Examples:
  sweeper snooze f-3f9a --for 3d --token-file token
  sweeper snooze 5d0f66e03c15 --until 2026-11-30 --because \"the demo is on Friday\"

Whoever is enrolled may; what was approved there is not carried out.")]
    Snooze(exemptions::Snooze),
    /// Leave something alone for good, in your name
    #[command(after_help = "\
Examples:
  sweeper exempt f-3f9a --because \"the licence server\" --token-file token
  sweeper exempt aws:123456789012:eu-central-1:i-0123456789abcdef0 --because \"a pet\"

Of a finding nobody is told again; of a resource new findings are told, and nothing is planned. The tag `cloud-sweeper:exempt` (in Google Cloud the label `cloud-sweeper-exempt`) does the latter, too.")]
    Exempt(exemptions::Exempt),
    /// List what people want left alone; lift it
    #[command(after_help = "\
Examples:
  sweeper exemptions
  sweeper exemptions --ended                   all that there ever were
  sweeper exemptions lift x-5d0f66e03c15")]
    Exemptions(exemptions::Question),
    /// List what was carried out, and how far each action is
    #[command(after_help = "\
Examples:
  sweeper actions
  sweeper actions --output json | jq '.[] | select(.state == \"voided\") | {resource, outcome}'
  sweeper actions review 123456789012          after something came undone there: carry out again")]
    Actions(actions::Question),
    /// Undo an action, in your name: a machine that was stopped is started again
    #[command(after_help = "Example:\n  sweeper undo 5d0f66e03c15 --token-file token --wait")]
    Undo(plans::Undone),
    /// Show or set the switch that stops all actions
    #[command(after_help = "\
Examples:
  sweeper kill-switch
  sweeper kill-switch on --because \"we are moving the cluster\"
  sweeper kill-switch off")]
    KillSwitch(actions::Switching),
    /// List who may decide about plans; enrol somebody, make a token, remove somebody
    #[command(after_help = "\
Examples:
  sweeper approvers
  sweeper approvers add ada --slack T0123ABCD/U0456EFGH
  sweeper approvers token ada > token
  sweeper approvers remove ada")]
    Approvers(approvers::Question),
    /// Look at who may approve what (docs/approvals.md)
    #[command(subcommand, after_help = "Example:\n  sweeper policy test --as ada --plan 5d0f66e03c15")]
    Policy(policy::Command),
    /// Show what was saved by what people approved, and how often a plan was wrong
    #[command(after_help = "Examples:\n  sweeper savings\n  sweeper savings --output json | jq .saved")]
    Savings(Printed),
    /// Show what machines cost and what used them, idle and unseen time included, to the micro-dollar
    #[command(after_help = costs::EXAMPLES)]
    Costs(costs::Asked),
    /// Recommend cheaper types of machines, what saves most first, with the evidence; or say why not
    #[command(after_help = recommendations::EXAMPLES)]
    Recommendations(recommendations::Asked),
    /// Show what machines that run cost an hour, since when, and which rows of which list say so; ask the list again
    #[command(after_help = prices::EXAMPLES)]
    Prices(prices::Question),
    /// Check what the sweeper rests on: credentials, rights, database, clocks, prices, Slack, mail, agents; nothing is changed
    #[command(after_help = "\
Examples:
  sweeper doctor
  sweeper doctor --send-test                   also one message to the channel and one mail
  sweeper doctor --output json | jq '.checks[] | select(.status == \"broken\")'

Each right is tried by a small call that reads, those of who acts by EC2's dry runs and by what Google says of their rights. It ends with 1 if something is broken.")]
    Doctor(doctor::Question),
    /// List the digests that are sent by mail, or print what one would say now
    #[command(after_help = "\
Examples:
  sweeper digest                               which lists there are, and when each comes next
  sweeper digest --preview                     what the first one would say now; nothing is sent
  sweeper digest --preview --list genomics --output html >digest.html
  sweeper digest --preview --output json | jq .open.sum

`digest.lists` says who gets which, and when (docs/operations.md).")]
    Digest(digest::Question),
    /// List who enrolled whom and who said what of which plan; check that the log is whole
    #[command(after_help = "\
Examples:
  sweeper audit
  sweeper audit verify
  sweeper audit --output json | jq '.[] | select(.did == \"approved\")'")]
    Audit(audit::Question),
    /// Look at rules files before agents do (docs/rules.md)
    #[command(subcommand, after_help = "Example:\n  sweeper rules check /etc/cloud-sweeper/rules.toml")]
    Rules(rules::Command),
}
