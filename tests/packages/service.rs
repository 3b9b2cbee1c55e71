//! The sweeper's package: without a configuration it is installed and does not run; with a wrong one it says so once; with a right one it serves, and an agent of the
//! same release reports to it; root's commands find its data; an upgrade keeps nodes, tokens, kill switch and audit log; neither removal nor purging takes them.

use crate::{
    agent,
    machine::{Format, Machine, STARTS_WITHIN, Version},
    step,
};
use lab::wait;
use std::path::Path;

const SWEEPER: &str = "sweeper";
const PORT: u16 = 8090;
const DATA: &str = "/var/lib/cloud-sweeper";

/// As lines for `printf`.
const CONFIG: &str = r#"[aws]\nenabled = "no"\n[pricing]\nsource = "none"\n[api]\nlisten = "0.0.0.0:8090"\n[sweep]\nschedule = "0 0 3 * * *"\ntimezone = "Europe/Berlin"\n"#;

/// When the one node was heard last; nothing before one was.
const HEARD: &str = r#"sweeper nodes --output json | grep -o '"last_seen_at": "[^"]*"' || true"#;

async fn installed_unconfigured(machine: &mut Machine) {
    step("installs the old version, without a configuration");
    machine.install(SWEEPER, Version::Old).await;
    let untouched = machine.format.untouched();
    machine.assert_state(SWEEPER, &["ActiveState=inactive", "Result=success", "NRestarts=0", untouched]).await;
    machine.assert_state(SWEEPER, &["ConditionResult=no"]).await;
    machine.assert_nothing_failed().await;
    machine.run("id cloud-sweeper && test -f /usr/share/man/man1/sweeper-serve.1.gz").await;
    machine.assert_unchanged(SWEEPER).await;
    assert_eq!(machine.run("stat --format='%U:%G %a' /usr/bin/sweeper").await, "root:root 755");

    step("has a configuration that it cannot use: it says so once, and stays off");
    machine.run("echo 'colour = 1' >/etc/cloud-sweeper/sweeper.toml").await;
    machine.run("systemctl start sweeper; sleep 15").await;
    machine.assert_state(SWEEPER, &["ActiveState=failed", "Result=exit-code", "NRestarts=0"]).await;
    let said = machine.run("journalctl --no-pager --unit sweeper").await;
    assert!(said.contains("colour"), "{said}");
}

async fn is_ready(machine: &Machine) {
    let url = format!("http://{}/readyz", machine.debian.address(PORT));
    wait::until("the packaged sweeper to be ready", STARTS_WITHIN, || async {
        reqwest::get(&url).await.ok().filter(|answer| answer.status().is_success())
    })
    .await;
}

/// Beside the data of before 2026-11-28 an empty database would be made.
async fn leaves_older_data_alone(machine: &mut Machine) {
    step("finds data where they were before, and does not start");
    let old = format!("{DATA}/.local/state/cloud-sweeper");
    machine.run(&format!("install -d {old} && touch {old}/sweeper.db; systemctl reset-failed sweeper")).await;
    machine.run(&format!("printf '{CONFIG}' >/etc/cloud-sweeper/sweeper.toml; ! systemctl start sweeper")).await;
    machine.assert_state(SWEEPER, &["ActiveState=inactive", "AssertResult=no"]).await;
    machine.run(&format!("test ! -e {DATA}/sweeper.db && rm -r {DATA}/.local")).await;
}

async fn serves(machine: &mut Machine) {
    step("is configured and started");
    machine.run(&format!("printf '{CONFIG}' >/etc/cloud-sweeper/sweeper.toml")).await;
    machine.run("systemctl reset-failed sweeper; systemctl enable --quiet --now sweeper").await;
    is_ready(machine).await;
    machine.assert_state(SWEEPER, &["ActiveState=active", "NRestarts=0", "ConditionResult=yes"]).await;
    let private = format!("stat --format='%U %a' {DATA}/sweeper.db {DATA}/join-token {DATA}/operator-token | uniq");
    assert_eq!(machine.run(&private).await, "cloud-sweeper 600");

    step("an agent of the same machine reports to it");
    machine.install("node-agent", Version::New).await;
    machine.run(&agent::configure(&format!("http://127.0.0.1:{PORT}"), &format!("cat {DATA}/join-token"))).await;
    machine.run("systemctl enable --quiet --now node-agent").await;
    machine.until_says("the agent's first heartbeat", HEARD, "").await;

    step("root's commands work on its data, and take none of them away from it");
    machine.run("sweeper kill-switch on --because 'the packages are tried'").await;
    machine.run("sweeper sweep --output json >/dev/null").await;
    assert_eq!(machine.run(&format!("find {DATA} ! -user cloud-sweeper")).await, "");
}

/// What must be the same whatever is installed: nodes, tokens, and the state of the kill switch.
async fn kept(machine: &mut Machine) -> String {
    let nodes = r#"sweeper nodes --output json | grep -e '"node":' -e '"key":'"#;
    machine.run(&format!("{nodes}; sha256sum {DATA}/join-token {DATA}/operator-token; sweeper kill-switch")).await
}

/// The hash of the audit log's last entry.
async fn audit_head(machine: &mut Machine) -> String {
    let said = machine.run("sweeper audit verify").await;
    let (_, head) = said.rsplit_once(' ').expect("a hash");
    head.to_owned()
}

async fn upgraded(machine: &mut Machine) {
    step("is upgraded while the agent reports");
    let (before, head, process) = (kept(machine).await, audit_head(machine).await, machine.process(SWEEPER).await);
    assert!(before.contains("on: nothing is carried out"), "{before}");
    let heard = machine.run(HEARD).await;
    machine.upgrade(SWEEPER).await;
    is_ready(machine).await;
    machine.assert_state(SWEEPER, &["ActiveState=active", "NRestarts=0", "UnitFileState=enabled"]).await;
    assert_ne!(machine.process(SWEEPER).await, process, "it was restarted");
    machine.run(&format!("sweeper audit verify --head {head}")).await;
    assert_eq!(kept(machine).await, before);
    machine.until_says("a heartbeat after the upgrade", HEARD, &heard).await;
}

async fn removed(machine: &mut Machine) {
    step("is removed, and its data stay");
    let head = audit_head(machine).await;
    machine.run("systemctl stop node-agent").await;
    machine.remove(SWEEPER).await;
    machine.assert_state(SWEEPER, &["ActiveState=inactive"]).await;
    machine.run("test ! -e /usr/bin/sweeper && ! pidof sweeper").await;
    machine.assert_nothing_failed().await;
    if machine.format == Format::Deb {
        step("is purged, and its data stay all the same");
        let said = machine.run("dpkg --purge sweeper").await;
        assert!(said.contains("is kept, with findings and audit log"), "{said}");
    }
    let left = machine.left_of(SWEEPER).await;
    let of_data = |line: &&str| line.starts_with(DATA);
    let others: Vec<&str> = left.lines().filter(|line| !of_data(line) && *line != "/etc/cloud-sweeper").collect();
    assert_eq!(others, ["/etc/cloud-sweeper/sweeper.toml"], "what the operator wrote stays");
    assert!(left.lines().any(|line| line == format!("{DATA}/sweeper.db")), "{left}");

    step("comes again, to the same data");
    machine.install(SWEEPER, Version::New).await;
    machine.run("systemctl enable --quiet --now sweeper").await;
    is_ready(machine).await;
    machine.run(&format!("sweeper audit verify --head {head}")).await;
}

/// Tries the package of this format.
pub(crate) async fn try_package(format: Format, versions: [&Path; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let programs = [SWEEPER, "node-agent"];
    let mut machine = Machine::boot(folder.path(), format, &programs, versions, &[PORT]).await;
    installed_unconfigured(&mut machine).await;
    leaves_older_data_alone(&mut machine).await;
    serves(&mut machine).await;
    upgraded(&mut machine).await;
    removed(&mut machine).await;
}
