#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

#[test]
fn each_field_is_where_the_kernel_puts_it() {
    let line =
        |state: &str| format!("17 (a) b) (c) {state} 1 17 17 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 3 0 4711 1 2 3");
    let of = |text: &str| Line::of(&Stat::parse(text.as_bytes()).unwrap());
    let expected = Line {
        comm: comm_bytes(b"a) b) (c"),
        is_zombie: false,
        is_kernel_thread: false,
        minor_faults: 1,
        major_faults: 3,
        user_ticks: 250,
        system_ticks: 50,
        threads: 3,
        start_ticks: 4711,
    };
    assert_eq!(of(&line("S")), Some(expected.clone()));
    assert_eq!(of(&line("Z")), Some(Line { is_zombie: true, ..expected }));
    assert_eq!(of("17 (a) S 1 17 17 0 -1 4194560 1 2 3 4 250 50"), None);
}

#[test]
fn this_process_is_found_with_its_executable_and_its_cgroup() {
    let scan = scan().unwrap();
    let own = &scan.processes[&std::process::id()];
    assert!(own.whose.is_own && !own.has_exited && own.threads > 0 && own.peak_resident_bytes > 0);
    assert_ne!(own.whose.executable, Executable::default());
    let place = Place { path: own.whose.path.clone(), executable: own.whose.executable };
    assert_eq!(place_of(std::process::id()), Some(place));
    assert_eq!(place_of(u32::MAX), None);
}

/// A process of a made-up `/proc`.
fn process(proc: &Path, pid: u32, comm: &str, exe: Option<&str>) {
    let dir = proc.join(pid.to_string());
    fs::create_dir_all(&dir).unwrap();
    let stat = format!("{pid} ({comm}) S 1 1 1 0 -1 0 1 2 3 4 250 50 0 0 20 0 3 0 4711 1 2 3");
    let io = "syscr: 1\nsyscw: 1\nread_bytes: 1\nwrite_bytes: 1\n";
    for (file, text) in [("stat", stat.as_str()), ("status", "Uid:\t0\t0\n"), ("io", io), ("cgroup", "0::/\n")] {
        fs::write(dir.join(file), text).unwrap();
    }
    if let Some(exe) = exe {
        std::os::unix::fs::symlink(exe, dir.join("exe")).unwrap();
    }
}

fn made_up() -> tempfile::TempDir {
    let proc = tempfile::tempdir().unwrap();
    process(proc.path(), 1, "systemd", Some("/usr/lib/systemd/systemd"));
    std::os::unix::fs::symlink("1", proc.path().join("self")).unwrap();
    proc
}

#[test]
fn a_kernel_without_io_accounting_is_no_host_without_io() {
    let proc = made_up();
    process(proc.path(), 7, "python3", None);
    assert_eq!(scan_under(proc.path()).unwrap().hides_io, None);
    fs::write(proc.path().join("7/io"), "rchar: 1\n").unwrap();
    assert_eq!(scan_under(proc.path()).unwrap().hides_io, Some(NO_ACCOUNTING), "half of it");
    for pid in ["1", "7"] {
        fs::remove_file(proc.path().join(pid).join("io")).unwrap();
    }
    let scan = scan_under(proc.path()).unwrap();
    assert_eq!((scan.hides_io, scan.processes.len()), (Some(NO_ACCOUNTING), 2));
}

#[test]
fn only_who_is_missing_is_gone() {
    let proc = made_up();
    process(proc.path(), 7, "python3", None);
    fs::remove_file(proc.path().join("7/stat")).unwrap();
    assert_eq!(scan_under(proc.path()).unwrap().processes.len(), 1);
    fs::write(proc.path().join("7/stat"), "7 (python3").unwrap();
    assert!(scan_under(proc.path()).is_err());
    fs::remove_dir_all(proc.path().join("7")).unwrap();
    fs::remove_dir_all(proc.path().join("1")).unwrap();
    assert_eq!(scan_under(proc.path()).unwrap().hides_io, Some(HIDDEN));
}

#[test]
fn a_process_is_known_by_the_file_that_it_executes() {
    let proc = made_up();
    let file = proc.path().join("dash");
    fs::write(&file, "a shell").unwrap();
    process(proc.path(), 10, "vector", file.to_str());
    process(proc.path(), 11, "vector", Some("/nowhere/vector"));
    process(proc.path(), 12, "vector", None);
    let found = scan_under(proc.path()).unwrap().processes;
    assert_eq!(found[&10].whose.executable.inode, std::os::unix::fs::MetadataExt::ino(&fs::metadata(&file).unwrap()));
    for hidden in [11, 12] {
        assert_eq!(found[&hidden].whose.executable, Executable::default());
    }
    let everybody = scan().unwrap().processes;
    assert!(everybody.values().filter(|one| one.whose.is_kernel_thread).all(|one| one.whose.executable.inode == 0));
}

#[test]
fn what_nobody_may_read_stays_unknown_in_sums_and_differences() {
    let known = Sums { cpu_ns: 5, io: Some(Io { read_bytes: 7, ..Io::default() }), ..Sums::default() };
    let hidden = Sums { cpu_ns: 3, ..Sums::default() };
    assert_eq!(known.since(hidden), Sums { cpu_ns: 2, ..Sums::default() });
    assert_eq!(known.plus(hidden), Sums { cpu_ns: 8, ..known });
    assert_eq!(hidden.since(known), Sums::default());
    assert_eq!(known.totals().counters[counter::DISK_READ_BYTES], 7);
}
