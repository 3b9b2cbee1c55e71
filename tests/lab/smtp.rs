//! A real SMTP server on the loopback interface: aiosmtpd, with STARTTLS and a login required, and a Maildir.

use crate::{binaries, port, process::Running};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

/// Longest that a start may take; Python and its libraries need under a second on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How the server wants its connections protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// A message only after STARTTLS and a login.
    StartTls,
    /// TLS from the first byte, and a login.
    Implicit,
    /// Nothing: any connection may send.
    Plain,
}

/// What the server does with a message instead of taking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This reply, for example `451 4.3.0 try again later`.
    Reply(&'static str),
    /// Silence for so long after the message's content, then the message is taken after all.
    Stall(Duration),
}

/// A mail server; it ends with this value, and its messages with it.
#[derive(Debug)]
pub struct Smtp {
    folder: TempDir,
    port: u16,
    protection: Protection,
    process: Option<Running>,
}

impl Smtp {
    /// The one user who may send.
    pub const USERNAME: &str = "sweeper";
    /// That user's password.
    pub const PASSWORD: &str = "lab-secret";

    /// Starts a server that requires STARTTLS and a login.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start() -> Self {
        Self::start_with(Protection::StartTls).await
    }

    /// Starts a server.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start_with(protection: Protection) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Self { folder, port: port::free(), protection, process: None };
        server.start_again().await;
        server
    }

    /// Starts it once more on the same port, with the same certificate and over the same messages.
    ///
    /// # Panics
    ///
    /// When it runs already, or does not start.
    pub async fn start_again(&mut self) {
        assert!(self.process.is_none(), "the mail server runs already");
        let protection = match self.protection {
            Protection::StartTls => "starttls",
            Protection::Implicit => "implicit",
            Protection::Plain => "plain",
        };
        let mut command = Command::new(binaries::python("python"));
        command
            .arg(binaries::checkout().join("tests/lab/python/smtp_server.py"))
            .arg(self.port.to_string())
            .arg(self.folder.path())
            .arg(protection);
        // A log of its own for each start, so that the awaited line is this start's.
        let name = format!("smtp-{}", fs::read_dir(self.folder.path()).map_or(0, Iterator::count));
        let mut process = Running::start(&name, &mut command, self.folder.path());
        process.line_with("listening", START_TIMEOUT).await;
        self.process = Some(process);
    }

    /// Ends it: connections are refused from now on.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn stop(&mut self) {
        self.process.take().expect("a running mail server").kill();
    }

    /// Where it listens.
    #[must_use]
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The root certificate to trust, in PEM form.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Lets the next messages meet these faults, one each; the messages after them are taken.
    ///
    /// # Panics
    ///
    /// When the list cannot be written.
    pub fn fail_next(&self, faults: &[Fault]) {
        let line = |fault: &Fault| match fault {
            Fault::Reply(reply) => format!("{}\n", json!({ "reply": reply })),
            Fault::Stall(time) => format!("{}\n", json!({ "stall_s": time.as_secs_f64() })),
        };
        let lines: String = faults.iter().map(line).collect();
        fs::write(self.folder.path().join("faults.jsonl"), lines).expect("the faults can be written");
    }

    /// The messages taken so far, as they came over the wire, oldest first.
    ///
    /// # Panics
    ///
    /// When the Maildir cannot be read.
    #[must_use]
    pub fn delivered(&self) -> Vec<Vec<u8>> {
        let Ok(entries) = fs::read_dir(self.folder.path().join("maildir/new")) else {
            return Vec::new();
        };
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable Maildir").path()).collect();
        // A Maildir name begins with the time, in seconds, then microseconds.
        files.sort_by_key(|path| fs::metadata(path).and_then(|file| file.modified()).ok());
        files.iter().map(|path| fs::read(path).expect("a readable message")).collect()
    }

    /// How many messages got as far as their content, taken or not.
    #[must_use]
    pub fn attempts(&self) -> usize {
        lines(&self.folder.path().join("attempts.jsonl")).len()
    }
}

/// The lines of a file that may not be there yet.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    let read = fs::read(path).unwrap_or_default();
    // Of a line that is being written a part may be there: a file grows by pages.
    let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &read[..end]);
    String::from_utf8_lossy(whole).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_that_is_being_written_nothing_is_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("messages.jsonl");
        assert!(lines(&path).is_empty(), "nor of a file that is not there yet");
        for (written, read) in [("{\"a", &[][..]), ("{}\n", &["{}"]), ("{}\n[]\n{\"ü", &["{}", "[]"])] {
            // Without the second half of its last letter.
            let bytes = written.strip_suffix('ü').map_or(written.len(), |before| before.len() + 1);
            fs::write(&path, &written.as_bytes()[..bytes]).expect("the file can be written");
            assert_eq!(lines(&path), read);
        }
    }
}
