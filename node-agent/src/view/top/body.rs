//! What is listed: workloads, runs, the rest of the machine, and the help.

use crate::view::{
    shape::{Row, Run, View},
    units::{byte_rate, count, cpus, ending, rate, size, span},
};
use heartbeat::wire::{CapabilityStatus, Class};
use ratatui::{
    style::{Color, Modifier, Style},
    text::Line,
};

type Body = (Line<'static>, Vec<Line<'static>>);

fn title(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED))
}

fn both(pair: [Option<f64>; 2]) -> Option<f64> {
    Some(pair[0]? + pair[1]?)
}

/// Columns that every list begins with; 47 letters.
fn figures(row: &Row) -> String {
    let waiting = match (row.run_queue, row.blocked_io) {
        (Some(queue), Some(disk)) => Some(queue + disk),
        (queue, disk) => queue.or(disk),
    };
    format!(
        "{:>6}{:>6}{:>9}{:>10}{:>10}{:>6}",
        cpus(row.cpu),
        cpus(waiting),
        size(row.memory_bytes),
        byte_rate(both(row.disk)),
        byte_rate(both(row.network)),
        rate(row.starts)
    )
}

fn figures_title() -> String {
    format!("{:>6}{:>6}{:>9}{:>10}{:>10}{:>6}", "CPUs", "waits", "memory", "disk", "net", "new/s")
}

fn class(class: Class) -> (char, Style) {
    match class {
        Class::Workload | Class::Unspecified => ('W', Style::new()),
        Class::Housekeeping => ('h', Style::new().add_modifier(Modifier::DIM)),
        Class::Kernel => ('k', Style::new().add_modifier(Modifier::DIM)),
        Class::Self_ => ('a', Style::new().add_modifier(Modifier::DIM)),
    }
}

pub(super) fn workloads(rows: &[&Row], width: usize) -> Body {
    let title = title(format!("{}{:>5}   {}", figures_title(), "live", "program, workload"));
    let line = |row: &&Row| {
        let (letter, style) = class(row.class);
        let front = format!("{}{:>5} {letter} ", figures(row), row.processes);
        let room = width.saturating_sub(front.chars().count() + row.command.chars().count() + 1);
        Line::styled(format!("{front}{} {}", row.command, ending_of(&place(row), room)), style)
    };
    (title, rows.iter().map(line).collect())
}

fn place(row: &Row) -> String {
    let Some(name) = &row.name else { return row.key.clone() };
    match name.container.as_ref().filter(|told| !told.pod.is_empty()) {
        Some(told) => format!("{} {}/{} {}", name.kind, told.namespace, told.pod, told.name),
        None => format!("{} {}", name.kind, name.id),
    }
}

/// Of a path, the end tells most.
fn ending_of(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let tail = text.chars().skip(count - room.saturating_sub(2)).collect::<String>();
    format!("..{tail}")
}

pub(super) fn runs(view: &View) -> Body {
    let title = title(format!("{}{:>10} {}", figures_title(), "age", "run, task, tool"));
    let mut lines = Vec::new();
    for run in &view.runs {
        lines.push(of_run(run));
        for task in &run.tasks {
            let style = match (task.ended, task.wait_status) {
                (true, Some(0)) => Style::new().add_modifier(Modifier::DIM),
                (true, _) => Style::new().fg(Color::Red),
                (false, _) => Style::new(),
            };
            let end = if task.ended { format!(" ({})", ending(task.wait_status)) } else { String::new() };
            lines.push(entry(&task.row, &span(task.age_ns), &format!("  {}{end}", task.name), style));
            let more = task.tools.iter().filter(|tool| task.tools.len() > 1 || tool.key != task.name);
            lines.extend(more.map(|tool| entry(tool, "", &format!("    {}", tool.key), style)));
        }
    }
    if lines.is_empty() {
        lines.push(Line::raw("No pipeline runs here, or none that is known by its engine."));
    }
    (title, lines)
}

fn of_run(run: &Run) -> Line<'static> {
    let [started, ended, failed] = run.counts;
    let name = if run.pipeline.is_empty() { "" } else { " " };
    let end = if run.ended { format!(", {}", ending(run.wait_status)) } else { String::new() };
    let text = format!(
        "{}{name}{}: {ended} of {started} tasks{}{end}",
        run.engine,
        run.pipeline,
        if failed > 0 { format!(", {failed} failed") } else { String::new() }
    );
    let style = if failed > 0 { Style::new().fg(Color::Yellow) } else { Style::new() };
    entry(&run.row, &span(run.age_ns), &text, style.add_modifier(Modifier::BOLD))
}

fn entry(row: &Row, age: &str, text: &str, style: Style) -> Line<'static> {
    Line::styled(format!("{}{age:>10} {text}", figures(row)), style)
}

pub(super) fn machine(view: &View) -> Body {
    let mut lines = Vec::new();
    let mut section = |name: &str, entries: Vec<String>| {
        lines.push(Line::styled(name.to_owned(), Style::new().add_modifier(Modifier::BOLD)));
        lines.extend(entries.into_iter().map(|entry| Line::raw(format!("  {entry}"))));
    };
    section("Not measured", problems(view));
    section(
        "Lost in this interval",
        or("nothing", view.lost.iter().map(|drop| format!("{} {}", drop.count, drop.name)).collect()),
    );
    let gpus = view.gpus.iter().map(|gpu| {
        let percent = gpu.utilization_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
        let power = gpu.power_mw.map_or_else(|| "-".to_owned(), |mw| format!("{} W", mw / 1000));
        let (used, total) = (size(gpu.memory_used_bytes), size(gpu.memory_total_bytes));
        let processes = gpu.processes.map_or_else(|| "- processes".to_owned(), |number| count(number, "process"));
        format!("{} {percent}, {used} of {total}, {power}, {processes}", gpu.model)
    });
    section("GPUs", or(if view.host.gpu_present { "present and not read" } else { "none" }, gpus.collect()));
    section("Who would notice", inbound_peers(view));
    let (cpu, memory) = view.agent;
    section("This agent", vec![format!("{} CPUs, {} resident", cpus(cpu), size(memory))]);
    (title("what else there is".to_owned()), lines)
}

fn or(nothing: &str, entries: Vec<String>) -> Vec<String> {
    if entries.is_empty() { vec![nothing.to_owned()] } else { entries }
}

fn problems(view: &View) -> Vec<String> {
    let word = |status: CapabilityStatus| match status {
        CapabilityStatus::Denied => "denied",
        CapabilityStatus::Unsupported => "unsupported",
        _ => "broken",
    };
    let entries = view
        .problems
        .iter()
        .map(|capability| format!("{} ({}): {}", capability.name, word(capability.status()), capability.reason));
    or("everything that this machine has is measured", entries.collect())
}

fn inbound_peers(view: &View) -> Vec<String> {
    let Some(inbound_peers) = &view.inbound_peers else { return vec!["listening ports could not be read".to_owned()] };
    let mut entries = inbound_peers
        .listeners
        .iter()
        .map(|port| {
            let newest = port.last_new_peer_unix_ms.map_or_else(String::new, |at| {
                let ms = u64::try_from(view.taken_unix_ms.saturating_sub(at)).unwrap_or(0);
                format!(", the newest {} ago", span(ms.saturating_mul(1_000_000)))
            });
            let holder = if port.command.is_empty() { "?" } else { &port.command };
            format!("port {} ({holder}): {}{newest}", port.port, count(port.outside_peers, "inbound peer"))
        })
        .collect::<Vec<_>>();
    if inbound_peers.listeners_not_listed > 0 {
        entries.push(format!("and {} more", count(inbound_peers.listeners_not_listed, "port")));
    }
    or("nobody: no port is open to others", entries)
}

pub(super) fn help() -> Body {
    let lines = [
        "q, Esc, Ctrl-C   end; the terminal is as it was",
        "Tab, 1, 2, 3     workloads; runs with their tasks and tools; the rest of the machine",
        "s                order: cpu, waiting, memory, disk, network, starts",
        "w                workloads only, without housekeeping (h), kernel (k) and agent (a)",
        "space            freeze what is shown; measuring goes on",
        "arrows, PgUp/Dn  scroll; Home goes to the first line",
        "",
        "CPUs     processors used: 1.5 is one and a half",
        "waits    tasks that could run and had no CPU, and tasks blocked on a disk",
        "-        not measured; `node-agent doctor` says why and what helps",
        "",
        "top has a sampler of its own, beside that of a running agent, and sends nothing.",
    ];
    (title("help".to_owned()), lines.into_iter().map(Line::raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heartbeat::wire;

    #[test]
    fn a_container_is_shown_by_its_pod_if_that_is_told() {
        let told = |container| {
            let name = Some(wire::WorkloadName { kind: "kubernetes".into(), id: "8e2b/9517".into(), container });
            place(&Row { name, ..Row::default() })
        };
        let aws_node = wire::Container {
            name: "aws-node".into(),
            pod: "aws-node-x7q2w".into(),
            namespace: "kube-system".into(),
            ..wire::Container::default()
        };
        assert_eq!(told(Some(aws_node)), "kubernetes kube-system/aws-node-x7q2w aws-node");
        assert_eq!(told(None), "kubernetes 8e2b/9517");
        assert_eq!(told(Some(wire::Container::default())), "kubernetes 8e2b/9517", "it is known, and has no pod");
    }
}
