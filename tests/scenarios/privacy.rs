//! What the agent never tells: under default settings no byte that it sends, spools, logs, prints or exports holds anything of a
//! workload's environment, files, arguments, input or memory.
//!
//! Each of these gets a secret of its own. A last one is the name of a program, which the agent does report: if that is not
//! found everywhere, this test looks in the wrong places.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use jiff::Timestamp;
use lab::{agent::Agent, binaries, enclosure::Enclosure, port, relay::Relay, sweeper::Sweeper, wait};
use std::{
    fs,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use sweeper::store::Store;

const TIMEOUT: Duration = Duration::from_secs(90);

/// A text that stands nowhere else.
fn secret() -> String {
    // 14 letters: a program's name may have 15.
    format!("s{}", &uuid::Uuid::new_v4().simple().to_string()[..13])
}

/// The secrets of one workload, by where they are.
struct Secrets {
    all: Vec<(&'static str, String)>,
}

impl Secrets {
    fn new() -> Self {
        let places = [
            "environment",
            "argument",
            "option",
            "file content",
            "file name",
            "folder of the program",
            "working directory",
            "input",
            "memory",
            "pipeline option",
            "pipeline environment",
            "nextflow option",
        ];
        Self { all: places.map(|place| (place, secret())).into() }
    }

    fn of(&self, place: &str) -> &str {
        &self.all.iter().find(|(known, _)| *known == place).unwrap().1
    }
}

/// A text as it would stand in bytes: plain, in hexadecimal digits, or in base64 at each of its three alignments.
fn forms(text: &str) -> Vec<Vec<u8>> {
    let mut forms =
        vec![text.as_bytes().to_vec(), hex::encode(text).into_bytes(), hex::encode_upper(text).into_bytes()];
    for shift in 0..3_usize {
        let mut padded = vec![0; shift];
        padded.extend(text.as_bytes());
        let encoded = STANDARD_NO_PAD.encode(&padded);
        // Letters that also depend on what stands before and behind are left out.
        let from = (shift * 8).div_ceil(6);
        let to = (padded.len() * 8) / 6;
        forms.push(encoded.as_bytes()[from..to].to_vec());
    }
    forms
}

fn holds(haystack: &[u8], text: &str) -> bool {
    forms(text).iter().any(|form| haystack.windows(form.len()).any(|window| window == form.as_slice()))
}

/// A workload with a secret in every place, and pipelines with secrets where people put them.
struct Workload {
    children: Vec<Child>,
    /// Each has a row of its own. Removed after their processes have ended.
    _cgroups: Vec<Enclosure>,
}

impl Workload {
    fn start(folder: &Path, secrets: &Secrets, control: &str) -> Self {
        let hidden = folder.join(secrets.of("folder of the program"));
        let working = folder.join(secrets.of("working directory"));
        fs::create_dir_all(&hidden).unwrap();
        fs::create_dir_all(&working).unwrap();
        let program = hidden.join(control);
        fs::copy(binaries::system("busybox"), &program).unwrap();
        let file = working.join(secrets.of("file name"));
        fs::write(&file, secrets.of("file content")).unwrap();
        let work = format!(
            "read given; kept=$given; exec 3<{}; read content <&3; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; read end",
            file.display()
        );
        let mut command = Command::new(&program);
        command
            .arg0("sh")
            .args(["-c", &work, secrets.of("argument"), &format!("--password={}", secrets.of("option"))])
            .current_dir(&working)
            .env("DATABASE_PASSWORD", secrets.of("environment"))
            .stdin(Stdio::piped());
        let plain = command.spawn().unwrap();
        writeln!(plain.stdin.as_ref().unwrap(), "{}", secrets.of("input")).unwrap();

        // A module of this name runs as the engine does: `python -m snakemake` with options as people give them.
        let module = folder.join("modules/snakemake");
        fs::create_dir_all(&module).unwrap();
        let code = "import os, sys\nkept = open(sys.argv[-1]).read()\nn = sum(range(3_000_000))\nsys.stdin.read()\n";
        fs::write(module.join("__main__.py"), code).unwrap();
        let memory = folder.join("read-by-the-pipeline");
        fs::write(&memory, secrets.of("memory")).unwrap();
        let mut engine = Command::new(binaries::system("python3"));
        engine
            .args(["-m", "snakemake", "--cores", "1", "--config"])
            .arg(format!("token={}", secrets.of("pipeline option")))
            .arg(&memory)
            .env("PYTHONPATH", folder.join("modules"))
            .env("API_KEY", secrets.of("pipeline environment"))
            .stdin(Stdio::piped());
        let engine = engine.spawn().unwrap();

        let java = folder.join("java");
        fs::copy(binaries::system("busybox"), &java).unwrap();
        let mut nextflow = Command::new(&java);
        nextflow
            .arg0("sh")
            .args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read end", "-jar", "nextflow.jar"])
            .args(["run", "main.nf", "--token", secrets.of("nextflow option")])
            .stdin(Stdio::piped());
        let children = vec![plain, engine, nextflow.spawn().unwrap()];
        let enclose = |(number, child): (usize, &Child)| Enclosure::around(child.id(), format!("{number}").as_bytes());
        let cgroups = children.iter().enumerate().map(enclose).collect();
        Self { children, _cgroups: cgroups }
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Everything under a folder, by path, as one text of bytes each; the names count as well.
fn everything(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let path: PathBuf = entry.path();
            let mut bytes = path.to_string_lossy().into_owned().into_bytes();
            if path.is_dir() {
                open.push(path.clone());
            } else {
                bytes.extend(fs::read(&path).unwrap_or_default());
            }
            found.push((path.display().to_string(), bytes));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_workload_leaves_the_agent() {
    let scratch = tempfile::tempdir().unwrap();
    let (secrets, control) = (Secrets::new(), secret());
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), "", &[]).await;
    let relay = Relay::start(sweeper.port()).await;
    let metrics_port = port::free();
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\nidentity = \"host\"\ninterval = \"500ms\"\nlog = \"trace\"\nmetrics_listen = \"127.0.0.1:{metrics_port}\"\n",
        relay.url(),
        sweeper.join_token()
    );
    let mut agent = Agent::start(&scratch.path().join("agent"), &config, &[]);
    let _workload = Workload::start(&scratch.path().join("work"), &secrets, &control);
    let tells = |relay: &Relay| {
        let envelopes = relay.envelopes();
        envelopes.iter().flat_map(|envelope| &envelope.heartbeats).any(|one| format!("{one:?}").contains(&control))
    };
    wait::until("a heartbeat that names the program", TIMEOUT, || async { tells(&relay).then_some(()) }).await;

    // Away goes the sweeper: the spool fills. Then the same is looked at in every other way.
    sweeper.stop().await;
    let state = agent.folder().join("state");
    let spooled = |(path, bytes): &(String, Vec<u8>)| path.ends_with(".heartbeat") && holds(bytes, &control);
    wait::until("spooled heartbeats", TIMEOUT, || async {
        (everything(&state).iter().filter(|one| spooled(one)).count() >= 3).then_some(())
    })
    .await;
    let mut seen = everything(&state);
    let metrics = reqwest::get(format!("http://127.0.0.1:{metrics_port}/metrics")).await.unwrap();
    seen.push(("metrics".into(), metrics.bytes().await.unwrap().to_vec()));
    let looker = Agent::prepare(&scratch.path().join("looker"), "identity = \"host\"\nlog = \"trace\"\n", &[]);
    for arguments in [
        &["once"][..],
        &["watch", "--json", "--count", "2", "--interval", "300ms"],
        &["watch", "--count", "2", "--interval", "300ms"],
        &["doctor", "--output", "json"],
    ] {
        let output = looker.run(arguments).await;
        seen.push((format!("{arguments:?}"), output.stdout));
        seen.push((format!("the log of {arguments:?}"), output.stderr));
    }
    sweeper.start_again().await;
    let waits = || everything(&state).iter().filter(|one| one.0.ends_with(".heartbeat")).count();
    wait::until("an empty spool", TIMEOUT, || async { (waits() <= 1).then_some(()) }).await;
    agent.stop().await;

    // On the wire, as it was sent and unpacked; in the log; and in what the sweeper keeps.
    seen.extend(relay.sent().into_iter().map(|bytes| ("the wire".to_owned(), bytes)));
    seen.extend(
        relay.envelopes().iter().map(|envelope| ("an envelope".to_owned(), format!("{envelope:?}").into_bytes())),
    );
    seen.push(("the agent's log".to_owned(), agent.log().into_bytes()));
    let database = format!("sqlite://{}/data/sweeper.db?mode=rw", sweeper.folder().display());
    let store = Store::connect(&database).await.unwrap();
    for node in store.nodes().await.unwrap() {
        let rows = store.heartbeats(&node.node_id, Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        seen.extend(
            rows.iter().map(|row| ("a stored heartbeat".to_owned(), serde_json::to_vec(&row.heartbeat).unwrap())),
        );
    }
    seen.extend(everything(sweeper.folder()));

    for (what, bytes) in &seen {
        for (place, secret) in &secrets.all {
            assert!(!holds(bytes, secret), "{what} holds the secret of the {place}");
        }
    }
    for place in ["[\"once\"]", "an envelope", "a stored heartbeat", ".heartbeat"] {
        let there = seen.iter().any(|(what, bytes)| what.ends_with(place) && holds(bytes, &control));
        assert!(there, "the name of the program is not found in {place}: this test would find no secret either");
    }
}

#[test]
fn a_secret_is_found_in_every_form() {
    let secret = secret();
    for shift in 0..3 {
        let around = format!("{}{secret}and more", "x".repeat(shift));
        assert!(holds(STANDARD_NO_PAD.encode(&around).as_bytes(), &secret), "base64 shifted by {shift}");
    }
    assert!(holds(hex::encode(&secret).as_bytes(), &secret) && holds(format!("a{secret}b").as_bytes(), &secret));
    assert!(!holds(b"nothing", &secret));
}
