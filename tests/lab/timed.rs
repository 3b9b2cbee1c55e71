//! A program's run, by the kernel's counters.

use crate::process::memory_bytes;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;
use std::{
    fmt,
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How often the memory is read; the kernel keeps the peak.
const PAUSE: Duration = Duration::from_millis(20);

/// What a run took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    wall_s: f64,
    /// Of all its threads, in and out of the kernel; none for what runs in this process.
    cpu_s: Option<f64>,
    /// Most memory that it ever held at once.
    peak_mb: Option<f64>,
}

impl Run {
    /// That of something which runs here.
    #[must_use]
    pub fn waited(wall: Duration) -> Self {
        Self { wall_s: wall.as_secs_f64(), cpu_s: None, peak_mb: None }
    }

    /// See [`Run`].
    #[must_use]
    pub fn wall_s(&self) -> f64 {
        self.wall_s
    }

    /// See [`Run`].
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.cpu_s.unwrap_or(f64::NAN)
    }

    /// See [`Run`].
    #[must_use]
    pub fn peak_mb(&self) -> f64 {
        self.peak_mb.unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} s", self.wall_s)?;
        match (self.cpu_s, self.peak_mb) {
            (Some(cpu), Some(peak)) => write!(f, ", {cpu:.2} s of CPU, at most {peak:.0} MB"),
            _ => Ok(()),
        }
    }
}

/// Runs a command to its end, with its errors on this terminal, and returns what it printed.
///
/// # Panics
///
/// When it cannot be started, or fails.
pub fn run(command: &mut Command, folder: &Path) -> (Run, String) {
    let (run, printed) = tried(command, folder);
    (run, printed.unwrap_or_else(|failure| panic!("{command:?}: {failure}")))
}

/// The same of a command that may fail: with how it ended instead of what it printed.
///
/// # Errors
///
/// If it did not end well.
///
/// # Panics
///
/// When it cannot be started.
pub fn tried(command: &mut Command, folder: &Path) -> (Run, Result<String, String>) {
    fs::create_dir_all(folder).expect("a folder for its output");
    let printed = folder.join("printed");
    let file = File::create(&printed).expect("a file for its output");
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(file).spawn().expect("the program starts");
    let pid = Pid::from_child(&child);
    let ended = Arc::new(AtomicBool::new(false));
    let watching = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            let mut peak = None;
            while !ended.load(Ordering::Relaxed) {
                peak = memory_bytes(pid, "VmHWM").or(peak);
                thread::sleep(PAUSE);
            }
            peak
        }
    });
    // Ended, but its counters are still there.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it can be waited for");
    let wall = began.elapsed();
    ended.store(true, Ordering::Relaxed);
    let cpu_s = cpu_s(pid);
    let status = child.wait().expect("it can be waited for");
    let output = fs::read_to_string(&printed).expect("its output can be read");
    let peak_mb = watching.join().expect("the watching thread ends").map(|bytes| bytes as f64 / 1e6);
    let printed = if status.success() { Ok(output) } else { Err(format!("{status}: {output}")) };
    (Run { wall_s: wall.as_secs_f64(), cpu_s, peak_mb }, printed)
}

/// `utime` and `stime`, in ticks of the clock.
fn cpu_s(pid: Pid) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let ticks: Vec<f64> = after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() / rustix::param::clock_ticks_per_second() as f64)
}

/// The figure in the middle, or between the two of an even number; NaN of none.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match (figures.len() % 2, figures.get(middle)) {
        (1, Some(figure)) => *figure,
        (_, Some(figure)) => f64::midpoint(figures[middle - 1], *figure),
        (_, None) => f64::NAN,
    }
}
