//! When systemd's timers elapse next, which only systemd itself knows.
//!
//! Asked over the system bus by two calls that read, and by no others: `ListUnitsByPatterns`, and `Get` of the two properties that tell a timer's next
//! elapse: <https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html>. Anybody may make them. What a timer
//! starts is not asked for. Timers of users' own managers are not on this bus, so they are not seen.
//!
//! A thread of its own asks, for [`LONGEST`] at most, so that no sample waits for a bus or a manager that hangs; only the first waits a moment.

use crate::{coverage::Status, privileges};
use rustix::time::{ClockId, clock_gettime};
use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::Builder,
    time::{Duration, Instant},
};
use tokio::{net::UnixStream, time::timeout};
use zbus::{Connection, OwnedObjectPath, Variant, connection, fdo};

const BUS: &str = "/run/dbus/system_bus_socket";
const SYSTEMD: &str = "org.freedesktop.systemd1";
/// Timers change rarely.
const EVERY: Duration = Duration::from_secs(600);
/// Where one has elapsed, or units have changed, systemd is asked sooner, but not more often than this.
const LEAST_PAUSE: Duration = Duration::from_secs(60);
/// Time for the whole answer.
const LONGEST: Duration = Duration::from_secs(5);
/// How long the first sample waits for the first answer, which takes some 10 ms.
const FIRST: Duration = Duration::from_secs(1);
/// A distribution has some ten. Whoever has more than this is not asked about each of them.
const MOST_TIMERS: usize = 1024;

/// A timer that will elapse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elapse {
    /// Its unit's name.
    pub unit: String,
    /// When it elapses next, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
}

/// All timers that will elapse, or why they are not known.
pub(super) type Answer = Result<Vec<Elapse>, (Status, String)>;

/// Asks again and again, in the background.
#[derive(Debug)]
pub(super) struct Timers {
    socket: PathBuf,
    asked_at: Option<Instant>,
    asking: Option<Receiver<Answer>>,
    /// Units have changed since systemd was asked.
    may_be_old: bool,
    last: Option<Answer>,
}

impl Timers {
    /// Nothing is asked before the first [`read`](Self::read). `root` is where the host's files lie.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            socket: root.join(BUS.trim_start_matches('/')),
            asked_at: None,
            asking: None,
            may_be_old: false,
            last: None,
        }
    }

    /// The last answer; `None` before the first. Asks again where that is due.
    pub(super) fn read(&mut self, have_units_changed: bool) -> Option<&Answer> {
        self.may_be_old |= have_units_changed;
        let is_first = self.asked_at.is_none();
        let pause = if self.may_be_old || self.has_one_elapsed() { LEAST_PAUSE } else { EVERY };
        if self.asking.is_none() && self.asked_at.is_none_or(|at| at.elapsed() >= pause) {
            self.asked_at = Some(Instant::now());
            self.may_be_old = false;
            let (answer, asking) = channel();
            let socket = self.socket.clone();
            // Nobody listens any more where the agent ends.
            let ask = move || drop(answer.send(ask(&socket, LONGEST)));
            match Builder::new().name("timers".to_owned()).spawn(ask) {
                Ok(_) => self.asking = Some(asking),
                Err(error) => self.last = Some(Err(broken(format!("no thread: {error}")))),
            }
        }
        let answer = self.asking.as_ref().map(|asking| {
            match asking.recv_timeout(if is_first { FIRST } else { Duration::ZERO }) {
                Ok(answer) => Some(answer),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err(broken("asking systemd failed"))),
            }
        });
        if let Some(Some(answer)) = answer {
            self.asking = None;
            self.last = Some(answer);
        }
        self.last.as_ref()
    }

    fn has_one_elapsed(&self) -> bool {
        let now = now_us(ClockId::Realtime) / 1000;
        matches!(&self.last, Some(Ok(elapses)) if elapses.iter().any(|elapse| elapse.unix_ms <= now))
    }
}

fn broken(why: impl Into<String>) -> (Status, String) {
    (Status::Broken, why.into())
}

fn ask(socket: &Path, longest: Duration) -> Answer {
    privileges::drop_in_this_thread();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| broken(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        let silence = || Err(broken(format!("systemd has not answered within {} s", longest.as_secs())));
        timeout(longest, elapses(socket)).await.unwrap_or_else(|_| silence())
    })
}

async fn elapses(socket: &Path) -> Answer {
    let stream = UnixStream::connect(socket).await.and_then(UnixStream::into_std).map_err(|error| {
        let status = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Status::NotApplicable,
            io::ErrorKind::PermissionDenied => Status::Denied,
            _ => Status::Broken,
        };
        (status, format!("the system bus at {}: {error}", socket.display()))
    })?;
    let asked = async {
        let bus = connection::Builder::unix_stream(stream).build().await?;
        let units = units(&bus).await?;
        if units.len() > MOST_TIMERS {
            return Ok(Err(broken(format!("there are {} timers, more than {MOST_TIMERS}", units.len()))));
        }
        let mut elapses = Vec::new();
        for (unit, path) in units {
            match next_of(&bus, &path).await {
                Ok(Some(unix_ms)) => elapses.push(Elapse { unit, unix_ms }),
                Ok(None) => {}
                // It went since it was listed.
                Err(zbus::Error::FDO(error)) if matches!(*error, fdo::Error::UnknownObject(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(elapses))
    };
    asked.await.unwrap_or_else(|error: zbus::Error| {
        let is_denied = matches!(&error, zbus::Error::FDO(error) if matches!(**error, fdo::Error::AccessDenied(_)));
        // dbus-daemon hangs up on a user that it cannot look up: systemd keeps it from asking for dynamic ones (`EXEC_NSS_DYNAMIC_BYPASS`).
        let is_hung_up = matches!(&error, zbus::Error::InputOutput(error) if error.kind() == io::ErrorKind::BrokenPipe);
        let hint = if is_hung_up { "; it hangs up on dynamic users: install node-agent.sysusers" } else { "" };
        let why = format!("systemd over the system bus: {error}{hint}");
        Err((if is_denied { Status::Denied } else { Status::Broken }, why))
    })
}

/// Name, description, load state, active state, sub-state, unit that it follows, object, number, kind and object of its job.
type Unit = (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// The timers that systemd has started.
async fn units(bus: &Connection) -> zbus::Result<Vec<(String, OwnedObjectPath)>> {
    let (manager, path) = ("org.freedesktop.systemd1.Manager", "/org/freedesktop/systemd1");
    let patterns = (["active"].as_slice(), ["*.timer"].as_slice());
    let reply = bus.call_method(Some(SYSTEMD), path, Some(manager), "ListUnitsByPatterns", &patterns).await?;
    let units: Vec<Unit> = reply.body().deserialize()?;
    Ok(units.into_iter().map(|unit| (unit.0, unit.6)).collect())
}

/// When this timer elapses next, in milliseconds since 1970-01-01 UTC.
async fn next_of(bus: &Connection, path: &OwnedObjectPath) -> zbus::Result<Option<i64>> {
    let realtime = property(bus, path, "NextElapseUSecRealtime").await?;
    let monotonic = property(bus, path, "NextElapseUSecMonotonic").await?;
    Ok(next_unix_ms(realtime, monotonic, (now_us(ClockId::Realtime), now_us(ClockId::Monotonic))))
}

async fn property(bus: &Connection, path: &OwnedObjectPath, name: &str) -> zbus::Result<u64> {
    let properties = "org.freedesktop.DBus.Properties";
    let which = ("org.freedesktop.systemd1.Timer", name);
    let reply = bus.call_method(Some(SYSTEMD), path, Some(properties), "Get", &which).await?;
    let body = reply.body();
    let value: Variant<'_> = body.deserialize()?;
    u64::try_from(value)
}

/// Whichever of its two clocks is first. 0 and the highest number are no time: systemd's `timestamp_is_set`. `now` is that of the real-time and of
/// the monotonic clock. All in microseconds, the outcome in milliseconds.
fn next_unix_ms(realtime: u64, monotonic: u64, now: (i64, i64)) -> Option<i64> {
    let is_set = |at: &u64| *at > 0 && *at < u64::MAX;
    let at = |at: u64| i64::try_from(at).ok();
    let realtime = Some(realtime).filter(is_set).and_then(at);
    let monotonic =
        Some(monotonic).filter(is_set).and_then(at).map(|at| now.0.saturating_add(at.saturating_sub(now.1)));
    realtime.into_iter().chain(monotonic).min().map(|micros| micros / 1000)
}

fn now_us(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_first_of_both_clocks_counts_and_no_time_is_none() {
        let now = (1_700_000_000_000_000, 50_000_000);
        assert_eq!(next_unix_ms(0, u64::MAX, now), None);
        assert_eq!(next_unix_ms(u64::MAX, 0, now), None);
        assert_eq!(next_unix_ms(1_700_000_060_000_000, u64::MAX, now), Some(1_700_000_060_000));
        assert_eq!(next_unix_ms(0, 80_000_000, now), Some(1_700_000_030_000), "30 s of the monotonic clock from now");
        assert_eq!(next_unix_ms(1_700_000_060_000_000, 80_000_000, now), Some(1_700_000_030_000));
        assert_eq!(next_unix_ms(0, 20_000_000, now), Some(1_699_999_970_000), "it is late");
    }

    #[test]
    fn no_bus_is_named_and_so_is_one_that_never_answers() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("bus");
        let (status, why) = ask(&socket, LONGEST).unwrap_err();
        assert_eq!(status, Status::NotApplicable, "{why}");
        let _silent = UnixListener::bind(&socket).unwrap();
        let began = Instant::now();
        let (status, why) = ask(&socket, Duration::from_secs(1)).unwrap_err();
        assert_eq!((status, why.as_str()), (Status::Broken, "systemd has not answered within 1 s"));
        assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    }

    #[test]
    fn systemd_is_asked_once_in_a_minute_however_often_units_change() {
        let root = tempfile::tempdir().unwrap();
        let socket = root.path().join("run/dbus/system_bus_socket");
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let bus = UnixListener::bind(&socket).unwrap();
        let mut timers = Timers::new(root.path());
        assert!(timers.read(true).is_none(), "it waits a moment, and not for the whole answer");
        let (silent, _) = bus.accept().unwrap();
        assert!(timers.read(true).is_none());
        drop((silent, bus));
        let began = Instant::now();
        while timers.read(true).is_none() && began.elapsed() < 2 * LONGEST {
            std::thread::yield_now();
        }
        assert!(matches!(timers.read(true), Some(Err(_))), "the bus hung up");
        std::fs::remove_file(&socket).unwrap();
        let bus = UnixListener::bind(&socket).unwrap();
        bus.set_nonblocking(true).unwrap();
        assert!(timers.read(true).is_some() && timers.asking.is_none(), "not again within a minute");
        assert_eq!(bus.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        timers.asked_at = Instant::now().checked_sub(LEAST_PAUSE);
        timers.read(false);
        assert!(timers.asking.is_some(), "then it is");
    }
}
