//! What is packaged holds: the service is well-formed and narrow, the cluster's and the cloud's own checkers take the files, and the container
//! measures the host to the last process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    kernels::Architecture,
    once::Group,
    process::Running,
    short_lived::{Proof, ShortLived},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

/// `systemd-analyze security` calls a service *OK* up to 5.0; tenths.
const MOST_EXPOSURE: &str = "25";

fn packaged(path: &str) -> PathBuf {
    binaries::checkout().join("packaging").join(path)
}

fn outcome(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.success(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

fn systemd_analyze(arguments: &[&str], unit: &Path) -> (bool, String) {
    outcome(Command::new(binaries::system("systemd-analyze")).arg("--no-pager").args(arguments).arg(unit))
}

/// The service with the agent where it was built.
fn unit(folder: &Path, change: impl Fn(&str) -> String) -> PathBuf {
    let text = fs::read_to_string(packaged("systemd/node-agent.service")).unwrap();
    let text = text.replace("/usr/local/bin/node-agent", &binaries::node_agent().display().to_string());
    let path = folder.join("node-agent.service");
    fs::write(&path, change(&text)).unwrap();
    path
}

/// The other service, whose program need not be built to judge it.
#[test]
fn the_sweepers_service_is_well_formed_and_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(packaged("systemd/sweeper.service")).unwrap();
    let good = folder.path().join("sweeper.service");
    // systemd asks for the program and for the manual page that the package installs.
    let text = text.replace("/usr/local/bin/sweeper", "/bin/true").replace("Documentation=man:sweeper(1)\n", "");
    fs::write(&good, &text).unwrap();
    assert_eq!(systemd_analyze(&["verify"], &good), (true, String::new()));
    let threshold = format!("--threshold={MOST_EXPOSURE}");
    let security = ["security", "--offline=yes", &threshold];
    let (is_narrow, report) = systemd_analyze(&security, &good);
    assert!(is_narrow, "{report}");
    fs::write(&good, text.replace("CapabilityBoundingSet=", "#").replace("SystemCallFilter=", "#")).unwrap();
    assert!(!systemd_analyze(&security, &good).0, "a wide one is refused");
}

/// A switch that root throws must be that of the service: both find the database in the same folder, though they are different users.
#[test]
fn the_sweepers_service_keeps_its_data_where_roots_commands_find_them() {
    let text = fs::read_to_string(packaged("systemd/sweeper.service")).unwrap();
    let of = |key: &str| text.lines().filter_map(|line| line.strip_prefix(key)).collect::<Vec<_>>();
    assert_eq!(of("StateDirectory="), ["cloud-sweeper"]);
    let environment: Vec<_> = of("Environment=").iter().filter_map(|one| one.split_once('=')).collect();
    let mut asked = Command::new(binaries::system("setpriv"));
    // Nobody's user, who may look at the checkout wherever it is.
    asked.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_read_search"]);
    asked.args(["--ambient-caps=+dac_read_search", "--"]).arg(binaries::sweeper()).arg("kill-switch");
    asked.env_clear().env("HOME", "/var/lib/cloud-sweeper").envs(environment);
    let (_, said) = outcome(&mut asked);
    assert!(said.contains("there is no database at /var/lib/cloud-sweeper/sweeper.db yet"), "{said}");
}

#[test]
fn the_service_is_well_formed_and_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let good = unit(folder.path(), str::to_owned);
    assert_eq!(systemd_analyze(&["verify"], &good), (true, String::new()));
    let threshold = format!("--threshold={MOST_EXPOSURE}");
    let security = ["security", "--offline=yes", &threshold];
    let (is_narrow, report) = systemd_analyze(&security, &good);
    assert!(is_narrow, "{report}");
    // The checkers see what they should.
    let wide =
        unit(folder.path(), |text| text.replace("CapabilityBoundingSet=", "#").replace("SystemCallFilter=", "#"));
    assert!(!systemd_analyze(&security, &wide).0);
    let wrong = unit(folder.path(), |text| text.replace("DynamicUser=yes", "DynamicUsers=yes"));
    assert!(systemd_analyze(&["verify"], &wrong).1.contains("DynamicUsers"));
}

/// What `/proc/devices` calls NVIDIA's devices differs by driver; one that is not allowed is a GPU that is not read.
#[test]
fn the_service_reaches_the_gpus_of_every_driver_and_no_other_device() {
    let text = fs::read_to_string(packaged("systemd/node-agent.service")).unwrap();
    let allowed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("DeviceAllow=")).collect();
    let gpus = ["nvidia", "nvidiactl", "nvidia-frontend", "nvidia-uvm"].map(|name| format!("char-{name} rw"));
    assert_eq!(allowed, [gpus.as_slice(), &["char-pts r".to_owned()]].concat());
    assert!(text.lines().any(|line| line == "DevicePolicy=closed"));
}

fn kubernetes_validate(manifest: &Path) -> (bool, String) {
    outcome(Command::new(binaries::python("python")).args(["-m", "kubernetes_validate", "--strict"]).arg(manifest))
}

#[test]
fn kubernetes_takes_the_daemonset() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = packaged("kubernetes/daemonset.yaml");
    let (is_valid, said) = kubernetes_validate(&manifest);
    assert!(is_valid, "{said}");
    let text = fs::read_to_string(&manifest).unwrap();
    let wrong = folder.path().join("daemonset.yaml");
    fs::write(&wrong, text.replace("hostPID: true", "hostPid: true")).unwrap();
    assert!(!kubernetes_validate(&wrong).0, "a wrong key is refused");
    assert!(text.contains("privileged: false") && text.contains("readOnlyRootFilesystem: true"));
}

fn cloud_init(user_data: &Path) -> (bool, String) {
    let modules = binaries::installed(&binaries::checkout().join(".setup/cloud-init/usr/lib/python3/dist-packages"));
    let mut command = Command::new(binaries::python("python"));
    command.env("PYTHONPATH", modules).args(["-m", "cloudinit.cmd.main", "schema", "--config-file"]).arg(user_data);
    outcome(&mut command)
}

#[test]
fn cloud_init_takes_the_user_data() {
    let folder = tempfile::tempdir().unwrap();
    let user_data = packaged("cloud-init/user-data.yaml");
    let (is_valid, said) = cloud_init(&user_data);
    assert!(is_valid, "{said}");
    let user = fs::read_to_string(packaged("systemd/node-agent.sysusers")).unwrap();
    let user = user.lines().find(|line| line.starts_with("u ")).unwrap();
    assert!(fs::read_to_string(&user_data).unwrap().lines().any(|line| line.trim() == user), "the same user: {user}");
    let wrong = folder.path().join("user-data.yaml");
    fs::write(&wrong, fs::read_to_string(&user_data).unwrap().replace("permissions:", "permission:")).unwrap();
    assert!(!cloud_init(&wrong).0, "a wrong key is refused");
}

/// Podman with a store of its own, which needs no service and no network.
struct Podman {
    words: Vec<String>,
    _store: tempfile::TempDir,
}

impl Podman {
    fn new() -> Self {
        let store = tempfile::tempdir().unwrap();
        let mut words = vec![binaries::system("podman").display().to_string()];
        for (option, folder) in [("--root", "root"), ("--runroot", "run"), ("--tmpdir", "tmp")] {
            words.extend([option.to_owned(), store.path().join(folder).display().to_string()]);
        }
        words.extend(["--storage-driver=vfs", "--runtime=runc", "--cgroup-manager=cgroupfs"].map(str::to_owned));
        words.push("--events-backend=none".to_owned());
        Self { words, _store: store }
    }

    fn build(&self, image: &str) {
        let context = binaries::node_agent();
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(["build", "--quiet", "--tag", image, "--file"]);
        command
            .arg(packaged("container/Containerfile"))
            .arg("--build-context=certificates=/etc/ssl/certs")
            .arg(context.parent().unwrap());
        let (is_built, said) = outcome(&mut command);
        assert!(is_built, "{said}");
    }

    fn load(&self, archive: &Path) {
        let mut command = Command::new(&self.words[0]);
        let (is_loaded, said) =
            outcome(command.args(&self.words[1..]).args(["load", "--quiet", "--input"]).arg(archive));
        assert!(is_loaded, "{said}");
    }

    fn run(&self, image: &str, capabilities: &str) -> Vec<String> {
        let mut words = self.words.clone();
        let seccomp = format!("--security-opt=seccomp={}", packaged("container/seccomp.json").display());
        let options = ["run", "--rm", "--pid=host", "--network=host", "--read-only", "--cap-drop=all", &seccomp];
        words.extend(options.map(str::to_owned));
        words.push(format!("--cap-add={capabilities}"));
        // The host's limits may be higher than what whoever runs this test may set.
        let options =
            ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:ro"];
        words.extend(options.map(str::to_owned));
        words.extend(["--env=NODE_AGENT_SOURCE", "--env=NODE_AGENT_LOG", image].map(str::to_owned));
        words
    }
}

#[tokio::test]
async fn the_container_counts_the_hosts_processes_exactly() {
    const COUNT: u32 = ShortLived::ON_A_SHARED_HOST;
    let podman = Podman::new();
    podman.build("node-agent");
    let processes = ShortLived { agent: podman.run("node-agent", "bpf,perfmon"), ..ShortLived::programs(COUNT) };
    let proof = Proof::on_this_host(&processes).await;
    proof.assert_exact(COUNT);
    assert_eq!(proof.capability("privileges").0, "CAPABILITY_STATUS_OK");
}

#[tokio::test]
async fn a_container_without_rights_says_what_it_cannot_see() {
    let podman = Podman::new();
    podman.build("node-agent");
    let mut agent = podman.run("node-agent", "bpf");
    agent.retain(|word| !word.starts_with("--cap-add"));
    let proof = Proof::on_this_host(&ShortLived { agent, source: "auto", ..ShortLived::programs(10) }).await;
    assert_eq!(proof.heartbeat["coverage"]["source"], "SOURCE_PROC");
    assert_eq!(proof.capability("ebpf").0, "CAPABILITY_STATUS_DENIED");
}

/// The image of a release, which no daemon makes: the archive has the same bytes when it is made again, later, and gives a machine what fits its processor.
#[test]
fn the_image_of_a_release_is_reproducible_and_measures_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let archives = ["one", "another"].map(|name| {
        let archive = folder.path().join(name);
        let mut command = Command::new(packaged("release/image.sh"));
        let of = [("arm64", Architecture::Arm), ("amd64", Architecture::X86)]
            .map(|(name, architecture)| format!("{name}={}", binaries::node_agent_of(architecture).display()));
        let (is_made, said) = outcome(command.arg("node-agent").arg(&archive).args(of));
        assert!(is_made, "{said}");
        archive
    });
    let [one, another] = archives.each_ref().map(|archive| fs::read(archive).unwrap());
    assert!(one == another, "{} and {} bytes, and not the same", one.len(), another.len());
    let podman = Podman::new();
    podman.load(&archives[0]);
    let image = format!("localhost/node-agent:{}", env!("CARGO_PKG_VERSION"));
    let mut words = podman.run(&image, "bpf,perfmon");
    let image = words.pop().unwrap();
    words.extend([env("IDENTITY=host"), image].into_iter().chain(["once", "--interval", "500ms"].map(str::to_owned)));
    let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let heartbeat: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(heartbeat["coverage"]["source"], "SOURCE_EBPF");
}

/// A pod has a cgroup namespace of its own, in which the kernel writes every path from the pod's own on.
#[test]
fn a_container_with_a_cgroup_namespace_of_its_own_names_workloads_by_the_hosts_paths() {
    let podman = Podman::new();
    podman.build("node-agent");
    let scratch = tempfile::tempdir().unwrap();
    let group = Group::new("namespace");
    let _inside = Running::start("inside", group.inside(&binaries::system("sleep")).arg("3600"), scratch.path());
    for (source, capabilities) in [("ebpf", "bpf,perfmon"), ("proc", "net_admin")] {
        let mut words = podman.run("node-agent", capabilities);
        let image = words.pop().unwrap();
        words.extend(
            ["--cgroupns=private", &env(&format!("SOURCE={source}")), &env("IDENTITY=host"), &image].map(str::to_owned),
        );
        words.extend(["once", "--interval", "500ms"].map(str::to_owned));
        let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let heartbeat: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let keys: Vec<&str> =
            heartbeat["workloads"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
        assert!(keys.contains(&group.key().as_str()), "{source}: {keys:#?}");
        assert!(!keys.iter().any(|key| key.contains("/..")), "{source}: {keys:#?}");
    }
}

/// Nobody listens there: that the agent is refused the connection, and not the certificates, shows that it got as far.
#[tokio::test]
async fn the_container_speaks_https() {
    let podman = Podman::new();
    podman.build("node-agent");
    let scratch = tempfile::tempdir().unwrap();
    let mut words = podman.run("node-agent", "bpf,perfmon");
    let image = words.pop().unwrap();
    words.extend(["SWEEPER_URL=https://127.0.0.1:9", "JOIN_TOKEN=none", "IDENTITY=host", "INTERVAL=500ms"].map(env));
    words.extend(["--volume=/etc/machine-id:/etc/machine-id:ro".to_owned(), image]);
    let mut agent = Running::start("container", Command::new(&words[0]).args(&words[1..]), scratch.path());
    let line = agent.line_with("the sweeper does not take heartbeats", Duration::from_secs(60)).await;
    assert!(line.contains("Connection refused"), "{line}");
    assert!(agent.terminate(Duration::from_secs(30)).await.success());
}

fn env(setting: &str) -> String {
    format!("--env=NODE_AGENT_{setting}")
}
