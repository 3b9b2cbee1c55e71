//! The machine's own figures, in at most nine lines.

use crate::view::{
    rates::float,
    shape::View,
    units::{byte_rate, bytes, count, cpus, percent, rate, size, span},
    waits,
};
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

const BAR: usize = 20;

fn label(text: &str) -> Span<'static> {
    Span::styled(format!("{text:<5}"), Style::new().add_modifier(Modifier::BOLD))
}

/// Green, then yellow from half, then red from nine tenths.
fn bar(share: Option<f64>) -> Span<'static> {
    let Some(share) = share else { return Span::raw(format!("[{:^BAR$}]", "not measured")) };
    let share = share.clamp(0.0, 1.0);
    // At most 20: no digit is lost.
    let filled = (1..=BAR).filter(|cell| share * 20.0 + 0.5 >= float(u64::try_from(*cell).unwrap_or(0))).count();
    let colour = match share {
        ..0.5 => Color::Green,
        0.5..0.9 => Color::Yellow,
        _ => Color::Red,
    };
    Span::styled(format!("[{}{}]", "|".repeat(filled), " ".repeat(BAR - filled)), Style::new().fg(colour))
}

pub(super) fn lines(view: &View, frozen: bool, width: usize) -> Vec<Line<'static>> {
    let mut lines =
        vec![title(view, frozen, width), cpu(view), memory(view), traffic(view), pressure(view), waiting(view)];
    lines.push(others(view));
    lines.push(coverage(view));
    lines.push(Line::default());
    lines
}

fn title(view: &View, frozen: bool, width: usize) -> Line<'static> {
    let host = &view.host;
    let left = format!(" {}  {}  up {}", host.hostname, host.kernel_release, span(view.boottime_ns));
    let source = if view.ebpf { "eBPF" } else { "/proc" };
    let right = if frozen { "FROZEN ".to_owned() } else { format!("{source}, every {:.1} s ", view.seconds) };
    let gap = width.saturating_sub(left.chars().count() + right.chars().count()).max(1);
    Line::styled(format!("{left}{}{right}", " ".repeat(gap)), Style::new().add_modifier(Modifier::REVERSED))
}

fn cpu(view: &View) -> Line<'static> {
    let machine = &view.machine;
    let count = f64::from(view.host.cpus.max(1));
    let share = machine.cpu.map(|cpu| cpu / count);
    let text = format!(
        " {} of {}: user {} sys {} iowait {} steal {}",
        cpus(machine.cpu),
        view.host.cpus,
        cpus(machine.user),
        cpus(machine.system),
        cpus(machine.iowait),
        cpus(machine.steal)
    );
    Line::from(vec![label("cpu"), bar(share), Span::raw(text)])
}

fn memory(view: &View) -> Line<'static> {
    let (machine, total) = (&view.machine, view.host.memory_bytes);
    let used = machine.memory_available_bytes.map(|free| total.saturating_sub(free));
    let share = used.map(|used| float(used) / float(total.max(1)));
    let text = format!(
        " {} of {}, {} major faults/s, {} swapped/s",
        size(used),
        bytes(float(total)),
        rate(machine.major_faults),
        rate(machine.swapped)
    );
    Line::from(vec![label("mem"), bar(share), Span::raw(text)])
}

fn traffic(view: &View) -> Line<'static> {
    let machine = &view.machine;
    let text = format!(
        "r {} ({}/s) w {} ({}/s)  net in {} out {}",
        byte_rate(machine.disk[0]),
        rate(machine.disk_operations[0]),
        byte_rate(machine.disk[1]),
        rate(machine.disk_operations[1]),
        byte_rate(machine.network[0]),
        byte_rate(machine.network[1])
    );
    Line::from(vec![label("disk"), Span::raw(text)])
}

fn pressure(view: &View) -> Line<'static> {
    let (machine, pressure) = (&view.machine, &view.machine.pressure);
    let text = format!(
        "cpu {} mem {} all {} io {} all {}; {} switches/s, {} new tasks/s",
        percent(pressure.cpu),
        percent(pressure.memory),
        percent(pressure.memory_full),
        percent(pressure.io),
        percent(pressure.io_full),
        rate(machine.switches),
        rate(machine.created)
    );
    Line::from(vec![label("psi"), Span::raw(text)])
}

fn waiting(view: &View) -> Line<'static> {
    let heaviest = waits::waits(view).and_then(|waits| Some(waits.first()?.weight));
    let colour = match heaviest {
        Some(0.2..) => Style::new().fg(Color::Red),
        Some(_) => Style::new().fg(Color::Yellow),
        None => Style::new(),
    };
    Line::from(vec![label("waits"), Span::styled(format!(" for {}", waits::sentence(view)), colour)])
}

/// Interactive sessions, inbound peers, GPUs and kills: who would notice.
fn others(view: &View) -> Line<'static> {
    let interactive_sessions = view.interactive_sessions.as_ref().map_or_else(
        || "sessions not known".to_owned(),
        |interactive_sessions| {
            let input = interactive_sessions.last_input_unix_ms.map_or_else(String::new, |at| {
                let ms = u64::try_from(view.taken_unix_ms.saturating_sub(at)).unwrap_or(0);
                format!(", last input {} ago", span(ms.saturating_mul(1_000_000)))
            });
            format!("{} at a terminal{input}", interactive_sessions.terminal_sessions)
        },
    );
    let inbound_peers = view.inbound_peers.as_ref().map_or_else(
        || "inbound peers not known".to_owned(),
        |inbound_peers| {
            let peers: u32 = inbound_peers.listeners.iter().map(|port| port.outside_peers).sum();
            format!("{} on {}", count(u64::from(peers), "inbound peer"), count(inbound_peers.listeners.len(), "port"))
        },
    );
    let busy = view.gpus.iter().filter_map(|gpu| gpu.utilization_percent).max();
    let gpus = match (view.gpus.len(), view.host.gpu_present) {
        (0, false) => "no GPU".to_owned(),
        (0, true) => "GPU not read".to_owned(),
        (count, _) => format!("{count} GPU {}", busy.map_or_else(|| "-".to_owned(), |busy| format!("{busy} %"))),
    };
    let mut spans = vec![label("who"), Span::raw(format!("{interactive_sessions}; {inbound_peers}; {gpus}"))];
    if let Some(kills @ 1..) = view.machine.oom_kills {
        spans.push(Span::styled(format!("; {kills} OOM kills"), Style::new().fg(Color::Red)));
    }
    Line::from(spans)
}

fn coverage(view: &View) -> Line<'static> {
    let lost = view.lost.iter().map(|drop| format!("{} {}", drop.count, drop.name)).collect::<Vec<_>>();
    let names = view.problems.iter().map(|capability| capability.name.as_str()).collect::<Vec<_>>();
    let mut text = if names.is_empty() { "all measured".to_owned() } else { format!("without {}", names.join(", ")) };
    if !lost.is_empty() {
        text = format!("{text}; lost {}", lost.join(", "));
    }
    let style = if names.is_empty() && lost.is_empty() { Style::new() } else { Style::new().fg(Color::Yellow) };
    Line::from(vec![label("seen"), Span::styled(text, style)])
}
