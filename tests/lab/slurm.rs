//! A Slurm cluster of one node on loopback: munge, slurmctld and slurmd with keys, ports and state of their own.

use crate::{binaries, pipelines::Bench, port, process::Running, wait};
use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(60);
const CONFIG: &str = include_str!("slurm.conf");

/// A running cluster.
#[derive(Debug)]
pub struct Slurm {
    config: PathBuf,
    // In this order they end.
    _daemons: [Running; 3],
    _munge: tempfile::TempDir,
}

fn system_user(name: &str) -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let line = users.lines().find(|line| line.split(':').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no user {name}: run `make setup`"));
    let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().expect("an id"));
    (ids.next().expect("a user id"), ids.next().expect("a group id"))
}

impl Slurm {
    /// Starts it; it takes jobs when this returns.
    ///
    /// # Panics
    ///
    /// When a daemon does not start.
    pub async fn start(bench: &Bench) -> Self {
        // The socket must be reachable for everybody, its key for munge alone.
        let munge = tempfile::Builder::new().prefix("munge-").tempdir().expect("a temporary folder");
        fs::set_permissions(munge.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("it is ours");
        let (user, group) = system_user("munge");
        let key = munge.path().join("key");
        fs::write(&key, rand::random::<[u8; 32]>().repeat(8)).expect("the key can be written");
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o400)).expect("it is ours");
        for path in [munge.path(), &key] {
            chown(path, Some(user), Some(group)).expect("only root may run Slurm here");
        }
        let socket = munge.path().join("socket");
        let mut command = Command::new(binaries::system("runuser"));
        command.args(["-u", "munge", "--"]).arg(binaries::system("munged")).arg("--foreground");
        for (option, file) in [("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")] {
            command.arg(format!("--{option}={}", munge.path().join(file).display()));
        }
        command.arg(format!("--socket={}", socket.display()));
        let munged = Running::start("munged", &mut command, &bench.path("."));
        wait::until("munge's socket", TIMEOUT, || {
            let there = socket.exists().then_some(());
            async move { there }
        })
        .await;

        for folder in ["slurm/spool", "slurm/state", "slurm/log"] {
            fs::create_dir_all(bench.path(folder)).expect("the folder can be made");
        }
        let has_v1 = Path::new("/sys/fs/cgroup/cpuacct").is_dir();
        let (tracking, gathering) = if has_v1 { ("cgroup", "cgroup") } else { ("linuxproc", "none") };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap_or(&host).to_owned();
        let text = [
            ("@HOST@", host.as_str()),
            ("@SOCKET@", socket.to_str().expect("plain path")),
            ("@TRACKING@", tracking),
            ("@GATHERING@", gathering),
            ("@PORT@", &port::free().to_string()),
            ("@NODE_PORT@", &port::free().to_string()),
        ]
        .into_iter()
        .fold(CONFIG.to_owned(), |text, (from, to)| text.replace(from, to));
        bench.write("slurm.conf", &text);
        bench.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainCores=no\n");
        let config = bench.path("slurm.conf");
        let daemon = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(binaries::system(name));
            command.arg("-D").arg("-f").arg(&config).args(arguments).env("SLURM_CONF", &config);
            Running::start(name, &mut command, &bench.path("."))
        };
        let controller = daemon("slurmctld", &[]);
        let node = daemon("slurmd", &["-N", &host]);
        let slurm = Self { config, _daemons: [node, controller, munged], _munge: munge };
        wait::until("an idle node", TIMEOUT, || {
            let output = slurm.command("sinfo").args(["-h", "-o", "%T"]).output().expect("sinfo starts");
            let idle = String::from_utf8_lossy(&output.stdout).trim() == "idle";
            async move { idle.then_some(()) }
        })
        .await;
        slurm
    }

    /// One of Slurm's commands, for this cluster.
    ///
    /// # Panics
    ///
    /// When it is not installed.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(binaries::system(program));
        command.env("SLURM_CONF", &self.config);
        command
    }

    /// Waits until no step's daemon is left: a job is over for its sender a moment before that.
    ///
    /// # Panics
    ///
    /// When one stays.
    pub async fn is_quiet(&self) {
        let is_step = |name: String| name.trim() == "slurmstepd";
        wait::until("the end of the job's last step", TIMEOUT, || {
            let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
            let mut names = entries.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
            let quiet = !names.any(is_step);
            async move { quiet.then_some(()) }
        })
        .await;
    }
}
