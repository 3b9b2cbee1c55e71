//! The screen of `node-agent top`: what is shown, and what each key does. Pure: samples and keys go in, text comes out.
//!
//! It fits a terminal of 80 by 24; a larger one shows more, a smaller one less. Letters are ASCII but for the names that the
//! machine's own processes bear, so that a serial console shows it as well.

mod body;
mod head;

use super::shape::{Row, View};
use heartbeat::wire;
use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};
use std::cmp::Ordering;

/// What is listed below the machine's own figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// Workloads by cgroup.
    #[default]
    Workloads,
    /// Pipelines, their tasks and tools.
    Runs,
    /// GPUs, interactive sessions, inbound peers, and what is not measured.
    Machine,
}

/// What rows are ordered by, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// CPUs used.
    #[default]
    Cpu,
    /// Waiting for a CPU or a disk.
    Waiting,
    /// Resident memory.
    Memory,
    /// Bytes to and from storage.
    Disk,
    /// Bytes over the network.
    Network,
    /// Processes and programs started.
    Starts,
}

const SORTS: [(Sort, &str); 6] = [
    (Sort::Cpu, "cpu"),
    (Sort::Waiting, "waiting"),
    (Sort::Memory, "memory"),
    (Sort::Disk, "disk"),
    (Sort::Network, "network"),
    (Sort::Starts, "starts"),
];

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// End.
    Quit,
    /// The next pane.
    NextPane,
    /// This pane.
    Show(Pane),
    /// The next order of rows.
    NextSort,
    /// Only workloads, or every class.
    OnlyWorkloads,
    /// Stop or go on showing new samples.
    Freeze,
    /// Show or hide the help.
    Help,
    /// Move by so many lines.
    Scroll(i32),
}

/// All that `top` knows.
#[derive(Debug, Default)]
pub struct Screen {
    last: Option<wire::Heartbeat>,
    view: Option<View>,
    pane: Pane,
    sort: Sort,
    only_workloads: bool,
    frozen: bool,
    help: bool,
    first_line: usize,
}

impl Screen {
    /// A new heartbeat; while the screen is frozen it is kept for the next difference and not shown.
    pub fn sample(&mut self, heartbeat: wire::Heartbeat) {
        if !self.frozen {
            self.view = Some(View::new(self.last.as_ref(), &heartbeat));
        }
        self.last = Some(heartbeat);
    }

    /// Does what a key asks for; false if it asks for the end.
    pub fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Quit => return false,
            Command::NextPane => {
                self.show(match self.pane {
                    Pane::Workloads => Pane::Runs,
                    Pane::Runs => Pane::Machine,
                    Pane::Machine => Pane::Workloads,
                });
            }
            Command::Show(pane) => self.show(pane),
            Command::NextSort => {
                let at = SORTS.iter().position(|(sort, _)| *sort == self.sort).unwrap_or(0);
                self.sort = SORTS[(at + 1) % SORTS.len()].0;
            }
            Command::OnlyWorkloads => self.only_workloads = !self.only_workloads,
            Command::Freeze => self.frozen = !self.frozen,
            Command::Help => self.help = !self.help,
            Command::Scroll(lines) => {
                let by = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
                self.first_line =
                    if lines < 0 { self.first_line.saturating_sub(by) } else { self.first_line.saturating_add(by) };
            }
        }
        true
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.first_line = 0;
        self.help = false;
    }

    /// Paints everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let Some(view) = &self.view else {
            frame.render_widget(
                Paragraph::new("node-agent top: measuring the first interval ... (q ends)"),
                frame.area(),
            );
            return;
        };
        let width = usize::from(frame.area().width);
        let head = head::lines(view, self.frozen, width);
        let head_rows = u16::try_from(head.len()).unwrap_or(u16::MAX);
        let parts = Layout::vertical([
            Constraint::Length(head_rows),
            Constraint::Length(2),
            Constraint::Min(0),
            Constraint::Length(1),
        ]);
        let [top, titles, list, foot] = parts.areas(frame.area());
        frame.render_widget(Paragraph::new(head), top);
        let (title, lines) = if self.help { body::help() } else { self.body(view, width) };
        // No further than that the last line stays in sight.
        self.first_line = self.first_line.min(lines.len().saturating_sub(usize::from(list.height)));
        frame.render_widget(Paragraph::new(vec![self.tabs(view), title]), titles);
        let shown = lines.into_iter().skip(self.first_line).take(usize::from(list.height)).collect::<Vec<_>>();
        frame.render_widget(Paragraph::new(shown), list);
        let keys = "q quit  Tab view  s sort  w workloads only  space freeze  arrows scroll  ? help";
        frame.render_widget(Paragraph::new(Line::styled(keys, Style::new().add_modifier(Modifier::DIM))), foot);
    }

    fn body(&self, view: &View, width: usize) -> (Line<'static>, Vec<Line<'static>>) {
        match self.pane {
            Pane::Workloads => body::workloads(&self.rows(view), width),
            Pane::Runs => body::runs(view),
            Pane::Machine => body::machine(view),
        }
    }

    fn tabs(&self, view: &View) -> Line<'static> {
        let living = view.runs.iter().filter(|run| !run.ended).count();
        let tabs = [
            (Pane::Workloads, format!("1 Workloads {}", self.rows(view).len())),
            (Pane::Runs, format!("2 Runs {living}")),
            (Pane::Machine, format!("3 Machine, {} not measured", view.problems.len())),
        ];
        let mut line = Line::default();
        for (pane, text) in tabs {
            let chosen = pane == self.pane && !self.help;
            let style = if chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            line.push_span(ratatui::text::Span::styled(format!(" {text} "), style));
        }
        if self.pane == Pane::Workloads {
            let order = SORTS.iter().find(|(sort, _)| *sort == self.sort).map_or("", |(_, name)| *name);
            let which = if self.only_workloads { ", workloads only" } else { "" };
            line.push_span(format!("  by {order}{which}"));
        }
        line
    }

    /// Rows in order, without those of whom nobody lives and who did nothing.
    fn rows<'a>(&self, view: &'a View) -> Vec<&'a Row> {
        let shown = |row: &&Row| {
            let there = row.processes > 0 || row.cpu.is_some_and(|cpu| cpu > 0.0);
            there && !(self.only_workloads && row.class != wire::Class::Workload)
        };
        let mut rows = view.workloads.iter().filter(shown).collect::<Vec<_>>();
        rows.sort_by(|a, b| self.compare(b, a).then_with(|| a.key.cmp(&b.key)));
        rows
    }

    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let sum = |pair: [Option<f64>; 2]| pair.into_iter().flatten().sum::<f64>();
        let key = |row: &Row| match self.sort {
            Sort::Cpu => row.cpu.unwrap_or(-1.0),
            Sort::Waiting => sum([row.run_queue, row.blocked_io]),
            Sort::Memory => row.memory_bytes.map_or(-1.0, super::rates::float),
            Sort::Disk => sum(row.disk),
            Sort::Network => sum(row.network),
            Sort::Starts => row.starts.unwrap_or(-1.0),
        };
        key(a).total_cmp(&key(b))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
