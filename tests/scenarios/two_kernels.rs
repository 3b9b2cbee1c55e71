//! Same bytes, two kernels: the one static agent binary passes the same kernel tests natively and in a micro-VM.
//!
//! Each test is a shell script for busybox, and runs unchanged on both: on this host's kernel with whatever cgroup trees
//! it has, and on Debian's 6.1 cloud kernel, a pure cgroup v2 host whose task_struct is laid out otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::{
    binaries,
    microvm::{Guest, MicroVm},
    process::Running,
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{self, Command},
    time::Duration,
};

/// Long enough for 2,000 short lives under emulation on a machine that builds at the same time.
const TIMEOUT: Duration = Duration::from_secs(600);

/// What the agent says of the kernel. Exit code 3 is left to the test: it reads which probe has no standing.
const DOCTOR: &str = r#"
node-agent doctor --output json >"$OUT/doctor" 2>"$OUT/doctor.log" || [ $? = 3 ]
"#;

/// `$LIVES` processes that do nothing, in a cgroup of their own in every tree that has accounts; then the agent's
/// heartbeat over that time, and the accounts of the cgroup itself.
const SHORT_LIVES: &str = r#"
node-agent once --interval 1h >"$OUT/heartbeat" 2>"$OUT/agent.log" &
agent=$!
until grep -q measuring "$OUT/agent.log"; do usleep 20000; kill -0 $agent; done

groups=
for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpuacct /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/pids; do
    if [ -e $tree/cgroup.procs ]; then mkdir "$tree/$GROUP"; groups="$groups $tree/$GROUP"; fi
done
sh -c '
    for group in "$@"; do echo $$ >"$group/cgroup.procs"; done
    i=0
    while [ $i -lt "$LIVES" ]; do ( : ); i=$((i + 1)); done
' lives $groups

# The kernel frees a dead task, and with it settles its account, a grace period of RCU later; nobody tells when.
usleep 500000
kill -TERM $agent
wait $agent
for group in $groups; do
    if [ -e $group/cpuacct.usage ]; then cat $group/cpuacct.usage >"$OUT/cpu_ns"; fi
    if [ -e $group/cpu.stat ] && grep -q usage_usec $group/cpu.stat; then
        sed -n 's/^usage_usec \(.*\)/\1000/p' $group/cpu.stat >"$OUT/cpu_ns"
    fi
    rmdir $group
done
"#;

/// What a script left behind.
struct Results {
    doctor: Value,
    layout: String,
    heartbeat: Value,
    cgroup_cpu_ns: f64,
}

impl Results {
    fn read(file: impl Fn(&str) -> String) -> Self {
        let json = |name| {
            let text = file(name);
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
        };
        let cgroup_cpu_ns = file("cpu_ns").trim().parse().unwrap();
        let log = file("doctor.log");
        let layout = log.lines().find_map(|line| line.split_once("layout of this kernel")).unwrap().1.to_owned();
        Self { doctor: json("doctor"), layout, heartbeat: json("heartbeat"), cgroup_cpu_ns }
    }

    fn kernel(&self) -> &str {
        self.doctor["kernel"].as_str().unwrap()
    }

    fn check(&self, lives: u64, group: &str) {
        let kernel = self.kernel();
        let row = self.heartbeat["workloads"].as_array().unwrap().iter();
        let row = row.filter(|row| row["key"].as_str().unwrap().ends_with(group)).collect::<Vec<_>>();
        let [row] = row[..] else { panic!("{kernel}: {} rows for {group}: {:#}", row.len(), self.heartbeat) };
        let number = |field: &str| row[field].as_u64().unwrap_or_else(|| panic!("{kernel}: no {field} in {row:#}"));
        assert_eq!(number("forks"), lives, "{kernel}: {row:#}");
        // The shell that forked them came from outside, and ended inside.
        assert_eq!(number("exits"), lives + 1, "{kernel}: {row:#}");

        let cpu_ns = row["cpu_ns"].as_f64().unwrap();
        let difference = (cpu_ns - self.cgroup_cpu_ns).abs() / self.cgroup_cpu_ns;
        assert!(difference < 0.01, "{kernel}: the agent says {cpu_ns} ns, the cgroup {} ns", self.cgroup_cpu_ns);

        let coverage = &self.heartbeat["coverage"];
        assert_eq!(coverage["collector"], "COLLECTOR_EBPF", "{kernel}: {coverage:#}");
        let lost = coverage["drops"].as_array().unwrap().iter().filter(|drop| drop["count"] != 0).collect::<Vec<_>>();
        assert!(lost.is_empty(), "{kernel}: {lost:?}");
    }

    /// Every probe measures, but for those named.
    fn check_probes(&self, unsupported: &[&str]) {
        let probes = self.doctor["probes"].as_array().unwrap();
        let unwell = |probe: &&Value| !["ok", "not_applicable"].contains(&probe["standing"].as_str().unwrap());
        let unwell = probes.iter().filter(unwell).map(|probe| probe["name"].as_str().unwrap()).collect::<Vec<_>>();
        assert!(probes.iter().any(|probe| probe["name"] == "ebpf"), "{}: {probes:#?}", self.kernel());
        assert_eq!(unwell, unsupported, "{}: {probes:#?}", self.kernel());
    }
}

async fn natively(folder: &Path, lives: u64, group: &str) -> Results {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy(binaries::node_agent(), bin.join("node-agent")).unwrap();
    // Busybox's programs under their own names, so that both kernels run the very same script.
    let busybox = binaries::system("busybox");
    assert!(Command::new(&busybox).args(["--install", "-s"]).arg(&bin).status().unwrap().success());
    let mut script = Command::new(bin.join("sh"));
    script
        .args(["-euc", &format!("{DOCTOR}{SHORT_LIVES}")])
        .env("PATH", &bin)
        .env("OUT", folder)
        .env("LIVES", lives.to_string())
        .env("GROUP", group)
        .env("NODE_AGENT_STATE_DIR", folder.join("state"))
        .env("NODE_AGENT_IDENTITY", "host")
        .env("NODE_AGENT_LOG", "info,node_agent::kernel=debug")
        .env("NO_COLOR", "1");
    let mut script = Running::start("script", &mut script, folder);
    let status = script.end(TIMEOUT).await;
    assert!(status.success(), "the script ended with {status}: {}", script.output());
    Results::read(|name| fs::read_to_string(folder.join(name)).unwrap())
}

async fn in_a_micro_vm(folder: &Path, lives: u64, group: &str) -> Results {
    let script = format!(
        "set -eu
        export OUT=/tmp LIVES={lives} GROUP={group} NODE_AGENT_STATE_DIR=/tmp/state NODE_AGENT_IDENTITY=host
        export NODE_AGENT_LOG=info,node_agent::kernel=debug
        {DOCTOR}{SHORT_LIVES}
        for file in doctor doctor.log heartbeat cpu_ns; do give $file /tmp/$file; done"
    );
    let guest = Guest::running(&script).with_program("node-agent", &binaries::node_agent());
    let mut guest = MicroVm::boot(folder, &guest);
    guest.end(TIMEOUT).await;
    Results::read(|name| guest.given(name).unwrap())
}

#[tokio::test]
async fn the_same_binary_counts_short_lives_exactly_on_two_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let group = format!("lab-two-kernels-{}", process::id());
    // Emulation costs a factor of about ten.
    let (native_lives, guest_lives) = (20_000, 2_000);
    let (here, there) = (folder.path().join("native"), folder.path().join("guest"));
    let (native, guest) =
        tokio::join!(natively(&here, native_lives, &group), in_a_micro_vm(&there, guest_lives, &group));

    assert_ne!(native.kernel(), guest.kernel());
    assert_ne!(native.layout, guest.layout);
    // Before Linux 6.16 a process's memory is gone when its exit is shown.
    let release = native.kernel().split(['.', '-']).map_while(|part| part.parse::<u32>().ok()).collect::<Vec<_>>();
    native.check_probes(if release[..2] >= [6, 16][..] { &[] } else { &["memory_peak_of_the_dead"] });
    guest.check_probes(&["memory_peak_of_the_dead"]);
    native.check(native_lives, &group);
    guest.check(guest_lives, &group);
}
