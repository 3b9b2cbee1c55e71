//! The most memory that was in use within an interval: all of it less what can be had without swapping, sampled once a second.
//!
//! The kernel keeps no such peak of the whole host (the root cgroup has neither `memory.current` nor `memory.peak`, and pressure
//! tells waiting, not use). Once a heartbeat is too seldom for it: a job that takes 50 GB for ten seconds would be seen one time in
//! three. What came and went between two samples a second apart is still missed.
//!
//! Cost: one thread that wakes once a second and reads one open file: see `docs/journal/2026-11-22-host-side.md`. It holds no right, and
//! does not wake while collection is paused.

use crate::coverage::{Capabilities, Status};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    peak_bytes: Option<u64>,
    /// The thread holds no right any more.
    has_begun: bool,
    is_paused: bool,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Samples until this value is dropped.
#[derive(Debug)]
pub struct MemoryPeak {
    shared: Arc<Shared>,
    file: io::Result<File>,
    /// Why nothing is sampled between two heartbeats, if nothing is.
    refusal: Option<String>,
}

impl MemoryPeak {
    /// Begins to sample.
    #[must_use]
    pub fn start() -> Self {
        Self::of(Path::new("/proc/meminfo"), EVERY)
    }

    fn of(meminfo: &Path, every: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let file = File::open(meminfo);
        let theirs = Arc::clone(&shared);
        let begin = |file: File| {
            let keep_sampling = move || {
                crate::privileges::drop_in_this_thread();
                theirs.lock().has_begun = true;
                theirs.changed.notify_all();
                theirs.keep_sampling(&file, every);
            };
            thread::Builder::new().name("memory".to_owned()).stack_size(64 * 1024).spawn(keep_sampling)
        };
        let begun =
            file.as_ref().map_or(Ok(()), |file| file.try_clone().and_then(begin).map(|_| shared.wait_for_begin()));
        Self { shared, file, refusal: begun.err().map(|error| format!("no thread samples memory: {error}")) }
    }

    /// The peak since the last call, which counts as one more sample; absent if it is not known.
    pub fn take(&self, capabilities: &mut Capabilities) -> Option<u64> {
        let sampled = match (&self.file, &self.refusal) {
            (_, Some(refusal)) => Err((Status::Broken, refusal.clone())),
            (Err(error), _) => Err((Status::of_io(error), format!("/proc/meminfo cannot be opened: {error}"))),
            (Ok(file), None) => used_bytes(file).map_err(|error| (Status::of_io(&error), error.to_string())),
        };
        match sampled {
            Ok(now_bytes) => {
                capabilities.ok("host_memory_peak");
                let mut state = self.shared.lock();
                state.is_paused = false;
                self.shared.changed.notify_all();
                state.peak_bytes.replace(now_bytes).max(Some(now_bytes))
            }
            Err((status, reason)) => {
                capabilities.set("host_memory_peak", status, reason);
                None
            }
        }
    }

    /// Samples no more until the next [`MemoryPeak::take`].
    pub fn pause(&self) {
        let mut state = self.shared.lock();
        state.is_paused = true;
        state.peak_bytes = None;
    }
}

impl Drop for MemoryPeak {
    fn drop(&mut self) {
        self.shared.lock().has_ended = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever asks which thread holds which right must not find this one as it was started.
    fn wait_for_begin(&self) {
        let state = self.changed.wait_while(self.lock(), |state| !state.has_begun);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    fn keep_sampling(&self, file: &File, every: Duration) {
        let mut state = self.lock();
        while !state.has_ended {
            if state.is_paused {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // A sample that fails is missing; the next heartbeat's own tells why.
            drop(state);
            let now_bytes = used_bytes(file).ok();
            state = self.lock();
            if !state.is_paused {
                state.peak_bytes = state.peak_bytes.max(now_bytes);
            }
            let goes_on = |state: &mut State| !state.has_ended && !state.is_paused;
            let waited = self.changed.wait_timeout_while(state, every, goes_on);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// `MemTotal` less `MemAvailable`: <https://docs.kernel.org/filesystems/proc.html#meminfo>
fn used_bytes(meminfo: &File) -> io::Result<u64> {
    // Both are in the first three lines.
    let mut buffer = [0_u8; 256];
    let length = meminfo.read_at(&mut buffer, 0)?;
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "/proc/meminfo has an unknown shape");
    let text = std::str::from_utf8(buffer.get(..length).unwrap_or_default()).map_err(|_| unknown())?;
    used_in(text).ok_or_else(unknown)
}

fn used_in(text: &str) -> Option<u64> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    kib("MemTotal")?.saturating_sub(kib("MemAvailable")?).checked_mul(1024)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::{fs, time::Instant};

    fn meminfo(available_kib: u64) -> String {
        format!(
            "MemTotal:         100000 kB\nMemFree:            5 kB\nMemAvailable:   {available_kib} kB\nBuffers: 1 kB\n"
        )
    }

    #[test]
    fn what_is_in_use_is_all_but_what_can_be_had() {
        assert_eq!(used_in(&meminfo(30_000)), Some(70_000 * 1024));
        assert_eq!(used_in("MemTotal: 5 kB\nMemFree: 5 kB\n"), None, "before Linux 3.14");
        assert_eq!(used_in("MemTotal: 5 kB\nMemAvailable: x kB\n"), None);
    }

    #[test]
    fn a_peak_between_two_heartbeats_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("meminfo");
        fs::write(&file, meminfo(90_000)).unwrap();
        let memory = MemoryPeak::of(&file, Duration::from_millis(1));
        let mut capabilities = Capabilities::default();
        let mut used_kib = || memory.take(&mut capabilities).map(|bytes| bytes / 1024);
        assert_eq!(used_kib(), Some(10_000));
        // As the kernel rewrites it: the same file, the same length.
        fs::write(&file, meminfo(20_000)).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while memory.shared.lock().peak_bytes != Some(80_000 * 1024) {
            assert!(Instant::now() < deadline, "the thread does not sample");
            thread::yield_now();
        }
        fs::write(&file, meminfo(90_000)).unwrap();
        assert_eq!(used_kib(), Some(80_000));
        assert_eq!(capabilities.status("host_memory_peak"), Some(Status::Ok));
        memory.pause();
        assert_eq!(memory.shared.lock().peak_bytes, None);
        assert_eq!(memory.take(&mut capabilities), Some(10_000 * 1024), "it goes on after a pause, from that moment");
    }

    #[test]
    fn a_host_that_does_not_tell_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut capabilities = Capabilities::default();
        assert_eq!(MemoryPeak::of(&folder.path().join("none"), EVERY).take(&mut capabilities), None);
        assert_eq!(capabilities.status("host_memory_peak"), Some(Status::Broken));
        fs::write(folder.path().join("meminfo"), "MemTotal: 5 kB\n").unwrap();
        assert_eq!(MemoryPeak::of(&folder.path().join("meminfo"), EVERY).take(&mut capabilities), None);
        assert_eq!(capabilities.status("host_memory_peak"), Some(Status::Broken));
    }
}
