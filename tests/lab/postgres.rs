//! A real PostgreSQL server with an empty data folder, as the distribution ships it.

use crate::{port, process::Running, wait};
use rustix::process::Signal;
use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// Longest that a start may take; a usual one takes a tenth of a second.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Where Debian and its kin keep the server's programs, which are not on `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";
const USER: &str = "sweeper";
const PASSWORD: &str = "only-for-this-test";

static SHARED: Mutex<Weak<Postgres>> = Mutex::const_new(Weak::new());

/// A server on the loopback interface; it ends with this value, and its folder goes with it.
#[derive(Debug)]
pub struct Postgres {
    // Declared in this order, so that the server has ended before its folder is removed.
    process: Running,
    folder: TempDir,
    settings: Vec<String>,
    port: u16,
    databases: AtomicU32,
}

impl Postgres {
    /// The server that other tests of this process use at this moment, or a new one.
    ///
    /// # Panics
    ///
    /// When PostgreSQL is not installed or does not start.
    pub async fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().await;
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let started = Arc::new(Self::start().await);
        *shared = Arc::downgrade(&started);
        started
    }

    /// Makes a data folder with `initdb` and starts a server over it. Run by root, both run as an unprivileged user, as they demand.
    ///
    /// # Panics
    ///
    /// When PostgreSQL is not installed or does not start.
    pub async fn start() -> Self {
        // What is lost in a power cut is a test.
        Self::start_with(&["fsync=off", "max_connections=200"]).await
    }

    /// The same with these settings, for example `shared_preload_libraries=pg_stat_statements`.
    ///
    /// # Panics
    ///
    /// When PostgreSQL is not installed or does not start.
    pub async fn start_with(settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("lab-postgres-").tempdir().expect("a temporary folder");
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).expect("the password can be written");
        for path in [folder.path(), &password] {
            if let Some((user, group)) = unprivileged() {
                chown(path, Some(user), Some(group)).expect("root can give a folder away");
            }
        }
        let data = folder.path().join("data");
        let mut initdb = command("initdb", folder.path());
        initdb.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password).args(["--username", USER]);
        // No sync: what is lost in a power cut is a test.
        initdb.args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]);
        let made = initdb.stdin(Stdio::null()).output().expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

        let port = port::free();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let process = serve(folder.path(), port, &settings).await;
        Self { process, folder, settings, port, databases: AtomicU32::new(0) }
    }

    /// Ends it as a crash would, without finishing anything: whatever is not committed is gone.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub async fn crash(&mut self) {
        self.process.signal(Signal::QUIT);
        self.until_ended().await;
    }

    /// Starts it once more over the same data and on the same port, after [`Postgres::crash`].
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start_again(&mut self) {
        self.process = serve(self.folder.path(), self.port, &self.settings).await;
    }

    /// Makes an empty database and returns its URL.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn database(&self) -> String {
        let name = format!("lab{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut create = tokio::process::Command::from(command("createdb", self.folder.path()));
        create.env("PGPASSWORD", PASSWORD).args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", USER, &name]);
        let made = create.stdin(Stdio::null()).output().await.expect("createdb starts");
        assert!(made.status.success(), "createdb: {}", String::from_utf8_lossy(&made.stderr));
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{name}", self.port)
    }

    /// Ends it as an administrator's fast shutdown would, breaking every connection, and waits for that.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub async fn stop(mut self) {
        self.process.signal(Signal::INT);
        self.until_ended().await;
    }

    async fn until_ended(&mut self) {
        wait::until("the end of PostgreSQL", START_TIMEOUT, || {
            let ended = self.process.ended();
            async move { ended }
        })
        .await;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT asks for a fast shutdown; on SIGTERM the server would wait for its last client.
        self.process.signal(Signal::INT);
    }
}

/// Starts a server over the data in a folder, and waits until it takes connections.
async fn serve(folder: &Path, port: u16, settings: &[String]) -> Running {
    let mut server = command("postgres", folder);
    server.arg("-D").arg(folder.join("data")).args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"]).arg(folder);
    server.args(settings.iter().flat_map(|setting| ["-c", setting]));
    // What an earlier one wrote says nothing of this one.
    let _ = fs::remove_file(folder.join("postgres.log"));
    let mut process = Running::start("postgres", &mut server, folder);
    process.line_with("database system is ready to accept connections", START_TIMEOUT).await;
    process
}

/// A command of the server's, in a folder that it can enter, as a user that it accepts.
fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(installed(program));
    command.current_dir(folder).env("LC_ALL", "C.UTF-8");
    if let Some((user, group)) = unprivileged() {
        command.uid(user).gid(group);
    }
    command
}

/// Whom to run as instead of root; `None` when this is not root.
fn unprivileged() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
    let ids = |name: &str| {
        let fields: Vec<&str> =
            users.lines().map(|line| line.split(':').collect()).find(|line: &Vec<_>| line[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user `postgres` or `nobody`"))
}

/// A program of PostgreSQL: of the newest version that the distribution has installed, else on `PATH`.
fn installed(program: &str) -> PathBuf {
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    let mut versions: Vec<PathBuf> =
        fs::read_dir(DEBIAN).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    versions.sort_by_key(version);
    let path = env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .rev()
        .map(|version| version.join("bin"))
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.exists())
        .unwrap_or_else(|| panic!("PostgreSQL's `{program}` is missing: run `make setup`"))
}

/// Turns each named `async fn(url: String)` into two tests, over an empty SQLite file and over an empty PostgreSQL database.
#[macro_export]
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $case() {
                let folder = tempfile::tempdir().expect("a temporary folder");
                super::$case(format!("sqlite://{}?mode=rwc", folder.path().join("new/sweeper.db").display())).await;
            })+
        }
        mod on_postgresql {
            $(#[tokio::test]
            async fn $case() {
                let server = $crate::postgres::Postgres::shared().await;
                super::$case(server.database().await).await;
            })+
        }
    };
}
