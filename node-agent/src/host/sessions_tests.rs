#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// A host on paper: processes as (pid, name, parent, session, terminal).
fn host(processes: &[(u32, &str, u32, u32, i32)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (pid, name, parent, session, terminal) in processes {
        let dir = root.path().join("proc").join(pid.to_string());
        fs::create_dir_all(&dir).unwrap();
        let line = format!("{pid} ({name}) S {parent} {pid} {session} {terminal} -1 0 0 0\n");
        fs::write(dir.join("stat"), line).unwrap();
        fs::write(dir.join("status"), format!("NSpid:\t{pid}\n")).unwrap();
    }
    root
}

fn of(root: &Path) -> SessionSampler {
    SessionSampler { root: root.to_owned(), ..SessionSampler::default() }
}

/// Terminal 3 of `/dev/pts`.
const PTS_3: i32 = 136 << 8 | 3;

#[test]
fn a_session_is_its_first_process_and_needs_a_terminal() {
    let root = host(&[
        (1, "init", 0, 1, 0),
        (40, "sshd", 1, 40, 0),
        (50, "bash", 40, 50, PTS_3),
        (51, "vim", 50, 50, PTS_3),
        (60, "cron", 1, 60, 0),
    ]);
    let mut sampler = of(root.path());
    let pids = process::list(&root.path().join("proc")).unwrap();
    assert_eq!(sampler.sessions(pids), (vec![(50, 136 << 8 | 3)], false));
}

#[test]
fn a_login_prompt_is_no_person_and_not_everybody_can_call_himself_one() {
    let stat = |name: &str, parent: u32| Stat::parse(format!("9 ({name}) S {parent} 9 9 1025").as_bytes()).unwrap();
    assert!(is_login_prompt(&stat("agetty", 1), 0));
    assert!(!is_login_prompt(&stat("agetty", 1), 1000));
    assert!(!is_login_prompt(&stat("agetty", 77), 0));
    assert!(!is_login_prompt(&stat("bash", 1), 0));
}

#[test]
fn a_terminal_that_cannot_be_read_is_a_session_whose_age_nobody_knows() {
    let root = host(&[(1, "init", 0, 1, 0), (50, "bash", 1, 50, PTS_3)]);
    let mut capabilities = Capabilities::default();
    let found = of(root.path()).read(1_800_000_000_000, &mut capabilities);
    assert_eq!(found, Some(wire::InteractiveSessions { terminal_sessions: 1, last_input_unix_ms: None }));
    assert_eq!(capabilities.status("interactive_sessions"), Some(Status::Denied));
}

#[test]
fn a_file_that_lies_where_the_terminal_should_be_is_not_asked() {
    let root = host(&[(1, "init", 0, 1, 0), (50, "bash", 1, 50, PTS_3)]);
    let pts = root.path().join("proc/50/root/dev/pts");
    fs::create_dir_all(&pts).unwrap();
    fs::write(pts.join("3"), "").unwrap();
    assert!(last_input(root.path(), 50, 136 << 8 | 3).is_err());
}

#[test]
fn nobody_there_is_known_and_hidden_processes_are_not() {
    let mut capabilities = Capabilities::default();
    let root = host(&[(1, "init", 0, 1, 0)]);
    assert_eq!(of(root.path()).read(0, &mut capabilities), Some(wire::InteractiveSessions::default()));
    assert_eq!(capabilities.status("interactive_sessions"), Some(Status::Ok));
    let root = host(&[(70, "bash", 1, 70, 0)]);
    assert!(of(root.path()).read(0, &mut capabilities).is_some());
    assert_eq!(capabilities.status("interactive_sessions"), Some(Status::Denied));
    assert_eq!(of(Path::new("/nonexistent")).read(0, &mut capabilities), None);
    assert_eq!(capabilities.status("interactive_sessions"), Some(Status::Broken));
}

#[test]
fn many_processes_take_turns_and_known_sessions_are_looked_at_each_time() {
    let mut processes: Vec<_> = (1..=50).map(|pid| (pid, "x", 1, pid, 0)).collect();
    processes[9].4 = PTS_3;
    let root = host(&processes);
    let mut sampler = SessionSampler { max_checked: 20, ..of(root.path()) };
    let mut sample = |root: &Path| sampler.sessions(process::list(&root.join("proc")).unwrap()).0;
    assert_eq!(sample(root.path()).len(), 1, "the first sample looks at everybody");
    let line = format!("43 (bash) S 1 43 43 {PTS_3} -1 0\n");
    fs::write(root.path().join("proc/43/stat"), line).unwrap();
    let seen: Vec<usize> = (0..3).map(|_| sample(root.path()).len()).collect();
    assert_eq!(seen, [1, 1, 2], "20 a sample");
    fs::remove_dir_all(root.path().join("proc/10")).unwrap();
    assert_eq!(sample(root.path()), [(43, 136 << 8 | 3)]);
}

#[test]
fn devices_are_numbered_as_the_kernel_does() {
    assert_eq!(major_minor(34_819), (136, 3));
    assert_eq!(major_minor(0x1040_0440), (4, 0x10440));
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/dev/char/4:64");
    fs::create_dir_all(&device).unwrap();
    fs::write(device.join("uevent"), "MAJOR=4\nMINOR=64\nDEVNAME=ttyS0\n").unwrap();
    assert_eq!(name_of(root.path(), 4 << 8 | 64), Some("ttyS0".into()));
    assert_eq!(name_of(root.path(), 136 << 8 | 7), Some("pts/7".into()));
    fs::write(device.join("uevent"), "DEVNAME=../etc/passwd\n").unwrap();
    assert_eq!(name_of(root.path(), 4 << 8 | 64), None);
    assert_eq!(name_of(root.path(), 5 << 8), None);
}

#[test]
fn this_host_can_be_asked() {
    let mut capabilities = Capabilities::default();
    assert!(SessionSampler::default().read(i64::MAX, &mut capabilities).is_some());
    assert!(capabilities.status("interactive_sessions").is_some());
}
