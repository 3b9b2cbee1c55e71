//! Real engines, a real container and a real batch system: each shows up as pipeline, run, task and tool, and a task's CPU time is
//! what the kernel's own counters of its cgroup say. Nothing is wrapped, and no environment variable is read.

use lab::{
    binaries,
    pipelines::{Bench, Seen, names, task, tool},
    slurm::Slurm,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{path::Path, process::Command, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(120);

/// Within 5 %, and 20 ms for what runs before a task has joined its cgroup and after its last tick. Where a kernel did not show the agent how a process
/// ended, what it used is in its cgroup's row and in no task: as much as the agent says may lack here.
fn assert_cpu(bench: &Bench, seen: &Seen, group: &str, ns: u64) {
    let (truth, taken_up) = (bench.cpu_ns(group), seen.taken_up_ns());
    assert!(truth > 100_000_000, "{group} did no work: {truth} ns");
    let (least, most) = (truth.saturating_sub(taken_up), truth);
    let within = least.saturating_sub(truth / 20 + 20_000_000)..=most + truth / 20 + 20_000_000;
    assert!(
        within.contains(&ns),
        "{group}: the agent says {ns} ns and {taken_up} ns without a task, the cgroup {truth} ns"
    );
}

fn assert_over(run: &Value, started: u64, failed: u64) {
    assert_eq!([&run["tasks_started"], &run["tasks_ended"]], [&json!(started); 2], "{run:#}");
    assert_eq!(run["tasks_failed"].as_u64().unwrap_or(0), failed, "{run:#}");
    assert_eq!(run["wait_status"], 0, "{run:#}");
    assert!(run["ended_boottime_ns"].as_u64() > run["started_boottime_ns"].as_u64());
    let tasks = run["tasks"].as_array().expect("tasks").iter();
    let sum: u64 = tasks.map(|task| task["activity"]["cpu_ns"].as_u64().unwrap_or(0)).sum();
    assert!(run["activity"]["cpu_ns"].as_u64() >= Some(sum), "a run holds its tasks");
}

fn engine(program: &str) -> std::path::PathBuf {
    binaries::installed(&binaries::checkout().join(".setup/engines/bin").join(program))
}

#[tokio::test]
async fn snakemake() {
    let bench = Bench::new();
    bench.write(
        "rna-seq/Snakefile",
        r#"rule all:
    input: "@DIR@/packed.gz", "@DIR@/aligned", "@DIR@/report"
rule pack:
    output: "@DIR@/packed.gz"
    shell: "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; @DIR@/in_group.sh @GROUP@/pack gzip -c @DIR@/reads > {output}"
rule align:
    output: "@DIR@/aligned"
    params: group="@GROUP@/align"
    script: "@DIR@/align.py"
rule report:
    output: "@DIR@/report"
    run:
        open(output[0], "w").close()
"#,
    );
    let snakefile = bench.path("rna-seq/Snakefile");
    let command = bench.command(&engine("snakemake"), &["--cores", "1", "-s", snakefile.to_str().expect("plain path")]);
    let (pid, seen) = bench.watch(command).await;
    let run = seen.run(&format!("{pid}-"));
    assert_eq!([&run["engine"], &run["pipeline"]], ["snakemake", "rna-seq"]);
    assert_over(run, 3, 0);
    assert_eq!(names(run), ["align.py", "gzip", "report:"]);
    let pack = task(run, "gzip");
    assert_eq!([tool(pack, "true", "execs"), tool(pack, "true", "exits"), tool(pack, "gzip", "exits")], [10, 10, 1]);
    assert_cpu(&bench, &seen, "pack", tool(pack, "gzip", "cpu_ns"));
    let align = task(run, "align.py");
    // Python's own start-up comes before the script joins its cgroup.
    let truth = bench.cpu_ns("align");
    let (known, taken_up) = (tool(align, "align.py", "cpu_ns"), seen.taken_up_ns());
    assert!(known + taken_up >= truth, "{known} ns, and {taken_up} ns without a task, of {truth} ns: {align:#}");
}

#[tokio::test]
async fn cwltool() {
    let bench = Bench::new();
    let step = |name: &str, command: &str, from: &str| {
        format!(
            "  {name}:\n    in: {{text: {from}}}\n    out: [out]\n    run:\n      class: CommandLineTool\n      baseCommand: [@DIR@/in_group.sh, @GROUP@/{name}, {command}]\n      inputs: {{text: {{type: File, inputBinding: {{position: 1}}}}}}\n      stdout: {name}.out\n      outputs: {{out: stdout}}\n"
        )
    };
    bench.write(
        "count.cwl",
        &format!(
            "cwlVersion: v1.2\nclass: Workflow\ninputs: {{text: File}}\noutputs: {{out: {{type: File, outputSource: sum/out}}}}\nsteps:\n{}{}",
            step("pack", "gzip, -c", "text"),
            step("sum", "sha512sum", "text"),
        ),
    );
    let out = bench.path("out");
    let arguments = ["--outdir", out.to_str().expect("plain path"), "count.cwl", "--text", "reads"];
    let (pid, seen) = bench.watch(bench.command(&engine("cwltool"), &arguments)).await;
    let run = seen.run(&format!("{pid}-"));
    assert_eq!([&run["engine"], &run["pipeline"]], ["cwltool", "count.cwl"]);
    assert_over(run, 2, 0);
    assert_eq!(names(run), ["gzip", "sha512sum"]);
    let pack = task(run, "gzip");
    assert_cpu(&bench, &seen, "pack", tool(pack, "gzip", "cpu_ns"));
    assert_eq!([tool(pack, "gzip", "exits"), tool(task(run, "sha512sum"), "sha512sum", "exits")], [1, 1]);
}

/// A script is listed as a run once it has lived for a second: each of those below sleeps for one.
#[tokio::test]
async fn a_plain_script() {
    let bench = Bench::new();
    bench.write(
        "nightly.sh",
        "#!/bin/bash\nfor i in {1..40}; do /bin/true; done\n/bin/sleep 1\n@DIR@/in_group.sh @GROUP@/pack gzip -c @DIR@/reads >/dev/null\n\
         python3 @DIR@/align.py @GROUP@/align\n/bin/false\nexit 0\n",
    );
    let (pid, seen) = bench.watch(bench.command(&bench.path("nightly.sh"), &[])).await;
    let run = seen.run(&format!("{pid}-"));
    assert_eq!([&run["engine"], &run["pipeline"]], ["script", "nightly.sh"]);
    assert_over(run, 44, 1);
    let names = names(run);
    assert_eq!(names.iter().filter(|name| *name == "true").count(), 40, "{names:?}");
    assert_cpu(&bench, &seen, "pack", tool(task(run, "gzip"), "gzip", "cpu_ns"));
    // Python's own start-up comes before the script joins its cgroup; it takes less than the script's half second.
    let (align, truth) = (tool(task(run, "align.py"), "align.py", "cpu_ns"), bench.cpu_ns("align"));
    let taken_up = seen.taken_up_ns();
    assert!(
        align + taken_up >= truth && align < 2 * truth,
        "the agent says {align} ns and {taken_up} ns without a task, the cgroup {truth} ns"
    );
    assert_eq!(task(run, "false")["wait_status"], 256);
}

#[tokio::test]
async fn an_engine_that_was_there_before_the_agent() {
    let bench = Bench::new();
    bench.write(
        "early.sh",
        "#!/bin/bash\nmkfifo @DIR@/go\n(read -r _ <@DIR@/go)\n/bin/true\n/bin/sleep 1\n@DIR@/in_group.sh @GROUP@/pack gzip -c @DIR@/reads >/dev/null\n",
    );
    let early = bench.orphan(&bench.command(&bench.path("early.sh"), &[]));
    let pid = early.begin().await;
    lab::wait::until("the script's first step", Duration::from_secs(30), || {
        let waits = bench.path("go").exists().then_some(());
        async move { waits }
    })
    .await;
    let agent = bench.agent().await;
    std::fs::write(bench.path("go"), "go\n").expect("the script reads");
    assert_eq!(early.end(Duration::from_secs(120)).await.0, 0);
    let seen = bench.seen(agent).await;
    let run = seen.run(&format!("{pid}-"));
    assert_eq!([&run["engine"], &run["pipeline"]], ["script", "early.sh"]);
    assert_over(run, 4, 0);
    assert_cpu(&bench, &seen, "pack", tool(task(run, "gzip"), "gzip", "cpu_ns"));
}

/// Its parent is killed, and nobody ends the task.
#[tokio::test]
async fn a_task_that_outlives_its_engine() {
    let bench = Bench::new();
    bench.write(
        "left/Snakefile",
        r#"rule all:
    input: "@DIR@/fitted"
rule fit:
    output: "@DIR@/fitted"
    shell: "echo $$ >@DIR@/part; mv @DIR@/part @DIR@/task; @DIR@/in_group.sh @GROUP@/fit gzip -c @DIR@/reads >/dev/null; exec sleep 240"
"#,
    );
    let snakefile = bench.path("left/Snakefile");
    let command = bench.command(&engine("snakemake"), &["--cores", "1", "-s", snakefile.to_str().expect("plain path")]);
    let head = bench.orphan(&command);
    let agent = bench.agent().await;
    let pid = head.begin().await;
    let read = || std::fs::read_to_string(bench.path("task")).ok().and_then(|pid| pid.trim().parse::<i32>().ok());
    let task_pid = lab::wait::until("the task to begin", TIMEOUT, || async { read() }).await;
    let [of_head, of_task] = [pid, task_pid].map(|pid| Pid::from_raw(pid).expect("a process"));
    kill_process(of_head, Signal::KILL).expect("the head lives");
    assert_eq!(head.end(TIMEOUT).await.0, 128 + 9);
    // It works on after the end of its run, until it sleeps.
    lab::wait::until("the task to have worked", TIMEOUT, || async {
        let name = std::fs::read_to_string(format!("/proc/{task_pid}/comm")).ok()?;
        (name.trim() == "sleep").then_some(())
    })
    .await;
    let seen = bench.seen(agent).await;
    kill_process(of_task, Signal::KILL).expect("the task lives");
    let run = seen.run(&format!("{pid}-"));
    assert_eq!(
        [&run["engine"], &run["pipeline"], &run["wait_status"]],
        [&json!("snakemake"), &json!("left"), &json!(9)]
    );
    let left = task(run, "sleep");
    assert_eq!(
        (&left["ended_boottime_ns"], &left["activity"]["live_processes"]),
        (&Value::Null, &json!(1)),
        "{left:#}"
    );
    assert_cpu(&bench, &seen, "fit", tool(left, "gzip", "cpu_ns"));
}

/// Podman without a registry, a network and a store of anybody else's.
fn podman(bench: &Bench) -> String {
    let program = binaries::system("podman");
    let (store, state) = (bench.path("store"), bench.path("state"));
    format!(
        "{} --root {} --runroot {} --storage-driver vfs --runtime runc --cgroup-manager=cgroupfs",
        program.display(),
        store.display(),
        state.display()
    )
}

#[tokio::test]
async fn a_container() {
    let bench = Bench::new();
    let podman = podman(&bench);
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
    bench.write(
        "image.sh",
        &format!(
            "set -eu\nmkdir -p @DIR@/root/bin\ncp {} @DIR@/root/bin/busybox\nfor name in sh gzip cat; do ln -s busybox @DIR@/root/bin/$name; done\n\
             cp @DIR@/reads @DIR@/root/reads\ntar -C @DIR@/root -cf @DIR@/image.tar .\n{podman} import @DIR@/image.tar localhost/lab:1\n",
            busybox.expect("busybox-static: run `make setup`").display()
        ),
    );
    let mut build = Command::new("sh");
    build.arg(bench.path("image.sh"));
    assert!(bench.run(build), "{}", std::fs::read_to_string(bench.path("command.log")).unwrap_or_default());
    // `times` prints what the shell in the container and its children used, by the kernel's counters.
    bench.write(
        "contained.sh",
        &format!(
            "#!/bin/bash\n/bin/true\n/bin/sleep 1\n{podman} run --rm --network=none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 localhost/lab:1 \
             /bin/sh -c 'gzip -c /reads >/dev/null; times; cat /proc/self/cgroup' >@DIR@/times\n"
        ),
    );
    let (pid, seen) = bench.watch(bench.command(&bench.path("contained.sh"), &[])).await;
    let run = seen.run(&format!("{pid}-"));
    assert_eq!([&run["engine"], &run["pipeline"]], ["script", "contained.sh"]);
    assert_over(run, 3, 0);
    let contained = task(run, "podman");
    for name in ["gzip", "cat", "conmon", "runc"] {
        assert!(tool(contained, name, "exits") >= 1, "{name}: {contained:#}");
    }
    let times = std::fs::read_to_string(bench.path("times")).expect("the container's output");
    let truth: f64 =
        times.lines().nth(1).map(|line| line.split_whitespace().map(seconds).sum()).expect("children's times");
    let agent = tool(contained, "gzip", "cpu_ns") as f64 / 1e9;
    // Whether ends were lost says which of the two is wrong.
    let drops = &seen.0["coverage"]["drops"];
    assert!(
        (agent - truth).abs() <= truth / 20.0 + 0.02,
        "the agent says {agent} s, the container {truth} s: {contained:#}\n{drops:#}"
    );
    assert_is_named(&seen, &times);
    let mut reset = Command::new("sh");
    reset.arg("-c").arg(format!("{podman} rm --all --force && {podman} rmi --all --force"));
    assert!(bench.run(reset));
}

/// `0m1.25s`.
fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').expect("minutes and seconds");
    minutes.parse::<f64>().expect("minutes") * 60.0 + seconds.parse::<f64>().expect("seconds")
}

/// The container has a workload row of its own, under its name.
fn assert_is_named(seen: &Seen, cgroups: &str) {
    let path = cgroups.lines().find_map(|line| Some(line.split_once("libpod-")?.1)).expect("libpod's cgroup");
    let id = path.split(['.', '/']).next().expect("an id");
    let rows = seen.0["workloads"].as_array().expect("workloads");
    let row =
        rows.iter().find(|row| row["key"].as_str().is_some_and(|key| key.contains(id))).expect("the container's row");
    assert_eq!([&row["name"]["kind"], &row["name"]["id"]], ["podman", id]);
}

#[tokio::test]
async fn a_job_of_slurm() {
    let bench = Bench::new();
    let slurm = Slurm::start(&bench).await;
    bench.write(
        "job.sh",
        "#!/bin/bash\nsrun -n1 @DIR@/in_group.sh @GROUP@/pack gzip -c @DIR@/reads >/dev/null\nsrun -n1 sha512sum @DIR@/reads >/dev/null\n",
    );
    let mut command = slurm.command("sbatch");
    command.args(["--wait", "--output"]).arg(bench.path("job.log")).arg(bench.path("job.sh"));
    command.current_dir(bench.path("."));
    let (_, seen) = bench.watch_until(command, slurm.is_quiet()).await;
    let run = seen.run("slurm:1");
    assert_eq!(run["engine"], "slurm");
    assert_over(run, 3, 0);
    assert_eq!(names(run), ["0", "1", "batch"]);
    let pack = task(run, "0");
    assert_cpu(&bench, &seen, "pack", tool(pack, "gzip", "cpu_ns"));
    assert_eq!([tool(pack, "gzip", "exits"), tool(task(run, "1"), "sha512sum", "exits")], [1, 1]);
    assert_eq!(tool(task(run, "batch"), "srun", "execs"), 2);
}
