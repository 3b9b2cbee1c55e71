//! The page and the picture.

use crate::{
    rules::RULES,
    timetable::{A_DAY, AN_HOUR, DAYS, Weeks, left_at, weeks},
};
use lab::labelled::{GRACE, IDLE_AFTER, INTERVAL, Machine, Measured, SCALE, Truth};
use std::fmt::Write as _;

/// What one rule said of one machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// It said idle, so many minutes after the machine was left; of a machine that is not, at some time.
    Idle { minutes: usize },
    /// It never said so.
    Never,
}

/// What a rule comes to over all machines.
#[derive(Clone, Debug, PartialEq)]
struct Score {
    name: &'static str,
    says: String,
    /// Machines that work or wait, and were called idle.
    false_idle: usize,
    /// Idle machines that were never called so, or too late for ours.
    missed: usize,
    /// Minutes until idle machines were called so, in order.
    minutes: Vec<usize>,
    /// Hours that idle machines ran before they were called so, or until the end of the six weeks, together.
    lost_hours: f64,
}

impl Score {
    fn median(&self) -> String {
        self.minutes.get(self.minutes.len() / 2).map_or_else(|| "never".to_owned(), |minutes| span(*minutes))
    }
}

fn span(minutes: usize) -> String {
    match minutes {
        0..120 => format!("{minutes} min"),
        120..2_880 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

/// Everything that was measured, and what each rule makes of it.
#[derive(Debug)]
pub(crate) struct Results<'a> {
    measured: &'a [Measured],
    slower: f64,
    /// By machine: what ours and each of the others said.
    answers: Vec<Vec<Answer>>,
    scores: Vec<Score>,
}

/// What a rule says of a machine, as time goes on.
fn ask(weeks: &Weeks, is_idle: fn(&[crate::timetable::Point]) -> bool, every: usize) -> Answer {
    let first = weeks.left.next_multiple_of(every).max(every);
    let at = (first..=weeks.points.len()).step_by(every).find(|at| is_idle(&weeks.points[..*at]));
    at.map_or(Answer::Never, |at| Answer::Idle { minutes: (at - weeks.left) * 5 })
}

fn ours(one: &Measured) -> Answer {
    let class = one.scenario.class().filter(|_| one.scenario.truth == Truth::Idle).unwrap_or("idle_node");
    let is_idle = one.found.iter().find(|found| found.class == class);
    let minutes = |found: &lab::labelled::Found| {
        let seconds = found.after.map_or(0, |after| after.as_secs()) * u64::from(SCALE);
        usize::try_from(seconds.div_ceil(60)).unwrap_or(usize::MAX)
    };
    is_idle.map_or(Answer::Never, |found| Answer::Idle { minutes: minutes(found) })
}

impl<'a> Results<'a> {
    pub(crate) fn of(measured: &'a [Measured], slower: f64) -> Self {
        let answers: Vec<Vec<Answer>> = measured
            .iter()
            .map(|one| {
                let weeks = weeks(one, slower);
                let others = RULES.iter().map(|rule| ask(&weeks, rule.is_idle, rule.every));
                std::iter::once(ours(one)).chain(others).collect()
            })
            .collect();
        let names =
            std::iter::once(("Cloud Sweeper", "all counters of the kernel's for half an hour (README)".to_owned()));
        let names = names.chain(RULES.iter().map(|rule| (rule.name, rule.says.to_owned())));
        let scores = names
            .enumerate()
            .map(|(rule, (name, says))| {
                let mut score = Score { name, says, false_idle: 0, missed: 0, minutes: Vec::new(), lost_hours: 0.0 };
                for (one, answers) in measured.iter().zip(&answers) {
                    let is_ours = rule == 0;
                    let (is_wrong, is_late) = (!one.wrong().is_empty(), !one.is_in_time());
                    score.add(one, answers[rule], is_ours && is_wrong, is_ours && is_late);
                }
                score.minutes.sort_unstable();
                score
            })
            .collect();
        Self { measured, slower, answers, scores }
    }

    fn count(&self, is_it: impl Fn(Truth) -> bool) -> usize {
        self.measured.iter().filter(|one| is_it(one.scenario.truth)).count()
    }

    /// No false idle, no false stuck, and nine of ten idle machines in time.
    pub(crate) fn is_good(&self) -> bool {
        let idle = self.count(|truth| truth == Truth::Idle);
        let in_time = self.measured.iter().filter(|one| one.scenario.truth == Truth::Idle && one.is_in_time()).count();
        self.measured.iter().all(|one| one.wrong().is_empty()) && in_time * 10 >= idle * 9
    }

    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        let (idle, others) = (self.count(|truth| truth == Truth::Idle), self.count(|truth| truth != Truth::Idle));
        let debian = self.measured.iter().filter(|one| one.scenario.machine == Machine::Debian).count();
        let minutes = |seconds: u64| seconds * u64::from(SCALE) / 60;
        write!(
            page,
            "# How often is it wrong?\n\n\
             Written by `make bench-truth`: {} machines of which it is known what they do, {debian} of them a whole Debian 12, the others micro-VMs with nothing but what is named. Each runs \
             under the real agent and is judged by a real sweeper. {idle} are idle, {others} work, wait, or hold a task that is stuck or loops.\n\n\
             ![False idle, missed and time to find, by rule](images/truth.svg)\n\n\
             | rule | what it says | called idle though it works or waits, of {others} | idle and never found, of {idle} | half of the idle ones found within | idle hours paid for |\n\
             | --- | --- | ---: | ---: | ---: | ---: |\n",
            self.measured.len()
        )
        .expect("a string can be written");
        for score in &self.scores {
            writeln!(
                page,
                "| {} | {} | {} | {} | {} | {:.0} |",
                score.name,
                score.says,
                score.false_idle,
                score.missed,
                score.median(),
                score.lost_hours
            )
            .expect("a string can be written");
        }
        write!(
            page,
            "\nA machine that costs a dollar an hour loses a dollar for each of these hours; one that was never found is counted to the end of the six weeks. *Never found* is, of ours, also what took longer than the window and {} minutes.\n\n\
             ## How it was measured\n\n\
             Times are {SCALE} times shorter than by default, by configuration: an interval of {} s, a window of {} s for {} minutes. A machine that was at work before it was left worked for 22 intervals. The other rules look at days: \
             what was measured is laid out over six weeks in points of five minutes (`tests/bench/truth/timetable.rs`): such a machine is at work from Monday to Friday, 9 to 18, and is left on the second Friday at 18; a machine with a nightly job is at work from 3 to 4; \
             all others are as they were measured from their start on. All machines are emulated, and their CPU is {:.0} times slower than a real one (measured): of the CPU time that the other rules see, what is not of the machine's workloads is divided by that, in their favour. \
             The Debian machines have ten times the thresholds of CPU time for the same reason, ours included. Workers of AWS Batch are instances of a server that answers for EC2, Batch and ECS by AWS's own schemas, and their job runs in a cgroup where ECS's agent would have it made.\n\n\
             ## Each machine\n\n\
             | machine | on | it truly | Cloud Sweeper | others that call it idle |\n\
             | --- | --- | --- | --- | --- |\n",
            minutes(GRACE.as_secs()),
            INTERVAL.as_secs(),
            IDLE_AFTER.as_secs(),
            minutes(IDLE_AFTER.as_secs()),
            self.slower
        )
        .expect("a string can be written");
        for (one, answers) in self.measured.iter().zip(&self.answers) {
            let calls = RULES.iter().zip(&answers[1..]).filter_map(|(rule, answer)| match answer {
                Answer::Idle { minutes } if one.scenario.truth == Truth::Idle => {
                    Some(format!("{} ({})", rule.name, span(*minutes)))
                }
                Answer::Idle { .. } => Some(format!("**{}**", rule.name)),
                Answer::Never => None,
            });
            let calls = calls.collect::<Vec<_>>().join(", ");
            let on = if one.scenario.machine == Machine::Debian { "Debian" } else { "micro-VM" };
            let on = if one.scenario.batch.is_some() { format!("{on}, a worker of AWS Batch") } else { on.to_owned() };
            writeln!(
                page,
                "| {} | {on} | {} | {} | {calls} |",
                one.scenario.name,
                one.scenario.truth.as_str(),
                said(one)
            )
            .expect("a string can be written");
        }
        page
    }

    /// Bars, one below the other.
    pub(crate) fn picture(&self) -> String {
        let (idle, others) = (self.count(|truth| truth == Truth::Idle), self.count(|truth| truth != Truth::Idle));
        let (row, top, left, width) = (34, 60, 250, 190);
        let height = top + row * self.scores.len() + 20;
        let mut picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            left + 3 * (width + 40)
        );
        let titles = ["called idle, and is not", "idle, and never found", "idle hours paid for"];
        let most = self.scores.iter().map(|score| score.lost_hours).fold(1.0, f64::max);
        let share = |part: usize, all: usize| {
            f64::from(u32::try_from(part).unwrap_or(0)) / f64::from(u32::try_from(all.max(1)).unwrap_or(1))
        };
        for (column, title) in titles.into_iter().enumerate() {
            let x = left + column * (width + 40);
            writeln!(picture, "<text x=\"{x}\" y=\"34\" font-weight=\"bold\" fill=\"#24292f\">{title}</text>")
                .expect("a string can be written");
        }
        for (line, score) in self.scores.iter().enumerate() {
            let y = top + line * row;
            let weight = if line == 0 { "bold" } else { "normal" };
            writeln!(
                picture,
                "<text x=\"16\" y=\"{}\" font-weight=\"{weight}\" fill=\"#24292f\">{}</text>",
                y + 16,
                score.name
            )
            .expect("a string can be written");
            let bars = [
                (share(score.false_idle, others), format!("{} of {others}", score.false_idle)),
                (share(score.missed, idle), format!("{} of {idle}", score.missed)),
                (score.lost_hours / most, format!("{:.0} h", score.lost_hours)),
            ];
            for (column, (part, text)) in bars.into_iter().enumerate() {
                let x = left + column * (width + 40);
                let colour = if line == 0 { "#1a7f37" } else { "#8c959f" };
                let long = part * 110.0;
                writeln!(
                    picture,
                    "<rect x=\"{x}\" y=\"{}\" width=\"{long:.1}\" height=\"20\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\" fill=\"#24292f\">{text}</text>",
                    y + 2,
                    f64::from(u32::try_from(x).unwrap_or(0)) + long + 6.0,
                    y + 17
                )
                .expect("a string can be written");
            }
        }
        picture + "</svg>\n"
    }
}

impl Score {
    /// Takes up what a rule said of a machine. `is_wrong`: of ours, that something was found that is not so; `is_late`: that it took too long.
    fn add(&mut self, one: &Measured, answer: Answer, is_wrong: bool, is_late: bool) {
        let hours = |points: usize| f64::from(u32::try_from(points).unwrap_or(u32::MAX)) * 5.0 / 60.0;
        if is_wrong {
            self.false_idle += 1;
            return;
        }
        match (one.scenario.truth, answer) {
            (Truth::Idle, Answer::Idle { minutes }) => {
                self.minutes.push(minutes);
                self.lost_hours += hours(minutes.div_ceil(5));
                self.missed += usize::from(is_late);
            }
            (Truth::Idle, Answer::Never) => {
                self.missed += 1;
                self.lost_hours += hours(DAYS * A_DAY - left_at(&one.scenario));
            }
            (_, Answer::Idle { .. }) => self.false_idle += 1,
            (_, Answer::Never) => {}
        }
    }
}

/// What ours said of a machine.
fn said(one: &Measured) -> String {
    let minutes = |after: std::time::Duration| after.as_secs() * u64::from(SCALE) / 60;
    let found = one.found.iter().map(|found| match found.after {
        Some(after) => format!("`{}` after {} min", found.class, minutes(after)),
        None => format!("`{}` before it was left", found.class),
    });
    let found = found.collect::<Vec<_>>().join(", ");
    let is_looked_for = one.scenario.class().is_some();
    let fault = match (one.wrong().is_empty(), is_looked_for, one.is_in_time()) {
        (false, ..) => " (**wrong**)",
        (true, true, false) => " (**missed or late**)",
        _ => "",
    };
    let said = one.said.replace('|', "\\|");
    if found.is_empty() { format!("{said}{fault}") } else { format!("{found}{fault}") }
}

/// So many points are an hour; the page says five minutes.
const _: () = assert!(AN_HOUR == 12);
