//! The built-in file, refusals by line and reason, and what holds for every file that is accepted.

use super::*;
use proptest::prelude::*;
use std::{fmt::Write as _, time::Duration};

const HEAD: &str = "version = \"1\"\n";

fn refused(file: &str) -> String {
    match parse(file.as_bytes()) {
        Ok(rules) => panic!("accepted: {file}\n{rules:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_built_in_file_is_acceptable_by_its_own_rules_and_says_something_everywhere() {
    let rules = parse(BUILT_IN.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rules, *built_in());
    assert!(rules.housekeeping.names.len() > 100 && rules.housekeeping.first_personal_uid == 1_000);
    assert!(!rules.attribution.is_empty() && !rules.tools.interpreters.is_empty() && !rules.engines.is_empty());
}

#[test]
fn a_file_stands_for_itself_unless_it_adds_to_the_built_in_rules() -> Result<(), RulesError> {
    let own = "[housekeeping]\nnames = [\"acme-agent\"]\n[[attribution]]\nkind = \"acme\"\nlevel = \"job\"\npath = \"acme/{id}\"\nid = \"{id}\"\n";
    let alone = parse(format!("{HEAD}{own}").as_bytes())?;
    assert_eq!(alone.housekeeping.names.len(), 1);
    assert_eq!(alone.attribution.len(), 1);
    assert_eq!(alone.housekeeping.first_personal_uid, 0, "without a word on users nothing is housekeeping");
    let added = parse(format!("{HEAD}base = \"built-in\"\n{own}").as_bytes())?;
    assert_eq!(added.housekeeping.names.len(), built_in().housekeeping.names.len() + 1);
    assert_eq!(added.attribution[0].kind, "acme", "a file's own patterns come first");
    assert_eq!(added.version, "1");
    for rules in [alone, added] {
        assert!(rules.housekeeping.is_excluded("docker"), "what is excluded stays excluded");
    }
    Ok(())
}

#[test]
fn a_refusal_says_where_what_and_what_to_do() {
    let name = |name: &str| format!("{HEAD}[housekeeping]\nnames = [\n  \"chronyd\", \"{name}\",\n]\n");
    let in_housekeeping = |line: &str| format!("{HEAD}[housekeeping]\n{line}\n");
    let pattern = |path: &str| {
        format!("{HEAD}[[attribution]]\nkind = \"x\"\nlevel = \"job\"\npath = \"{path}\"\nid = \"{{id}}\"\n")
    };
    let mut all = String::new();
    for file in [
        String::new(),
        "version = 1".to_owned(),
        "version = \"\"".to_owned(),
        "version = \"1\nbase = \"built-in\"".to_owned(),
        "version = \"a b\"".to_owned(),
        format!("{HEAD}base = \"mine\""),
        format!("{HEAD}houskeeping = 1"),
        format!("{HEAD}housekeeping = 1"),
        in_housekeeping("nmaes = []"),
        in_housekeeping("names = \"chronyd\""),
        in_housekeeping("names = [1]"),
        in_housekeeping("names = [\"\"]"),
        in_housekeeping("names = [\"a\\u001b[2J\"]"),
        in_housekeeping("first_personal_uid = 1001"),
        in_housekeeping("first_personal_uid = -1"),
        in_housekeeping("first_personal_uid = \"0\""),
        name("../bin/vector"),
        name("bash"),
        name("python3.11"),
        name("snakemake"),
        name("gu*"),
        in_housekeeping("name_prefixes = [\"sy\"]"),
        in_housekeeping("name_prefixes = [\"pyt\"]"),
        in_housekeeping("name_prefixes = [\"python3.1\"]"),
        name("containerd-shim-runc-v2"),
        in_housekeeping("paths = [\"opt/acme/monitor\"]"),
        in_housekeeping("paths = [\"/opt/../home/me/monitor\"]"),
        in_housekeeping("paths = [\"/opt/acme/*\"]"),
        in_housekeeping("paths = [\"/opt/conda/bin/python3.11\"]"),
        in_housekeeping("schedulers = [\"cron\"]"),
        in_housekeeping("scheduler_units = [\"docker.service\"]"),
        in_housekeeping("scheduler_units = [\"atd.service\"]"),
        in_housekeeping("units = [\"docker.service\"]"),
        in_housekeeping("units = [\"cron\"]"),
        in_housekeeping("units = [\"session-1.scope\"]"),
        in_housekeeping("unit_parents = [\"/user.slice/\"]"),
        in_housekeeping("unit_parents = [\"system.slice\"]"),
        in_housekeeping("excluded_cgroup_prefixes = [\"a\"]"),
        in_housekeeping("excluded_cgroups = [\"a/b\"]"),
        pattern("a//b"),
        pattern("{id}*"),
        pattern("{id}/{id}"),
        pattern("{ID}"),
        pattern("{id:what}"),
        pattern("{other}"),
        pattern("{id"),
        format!("{HEAD}[[attribution]]\nkind = \"x\"\n"),
        format!("{HEAD}[[attribution]]\nkind = \"X y\"\n"),
        format!("{HEAD}[[tools.interpreter]]\nshows = \"script\"\n"),
        format!("{HEAD}[[tools.interpreter]]\nnames = [\"*\"]\nshows = \"script\"\n"),
        format!("{HEAD}[[engine]]\nname = \"x\"\n"),
        format!("{HEAD}[[engine]]\nname = \"x\"\nprograms = [\"x\"]\ntask_options = [\"--db-password\"]\n"),
        format!("{HEAD}# {}", "x".repeat(MAX_FILE_BYTES)),
    ] {
        let _ = writeln!(all, "{}", refused(&file));
    }
    assert!(!all.contains('\u{1b}'), "what is cited is harmless");
    insta::assert_snapshot!(all);
    let error = parse(b"version = \"1\"\n# \xff").map_err(|error| (error.line, error.column));
    assert_eq!(error, Err((2, 3)));
}

#[test]
fn no_file_makes_upkeep_of_what_user_data_start_up_scripts_and_remote_commands_leave_behind() {
    for unit in [
        "cloud-init.service",
        "cloud-init-local.service",
        "cloud-init-main.service",
        "cloud-init-network.service",
        "cloud-config.service",
        "cloud-final.service",
        "rc-local.service",
        "amazon-ssm-agent.service",
        "snap.amazon-ssm-agent.amazon-ssm-agent.service",
        "google-startup-scripts.service",
        "google-shutdown-scripts.service",
        "google-guest-agent.service",
        "google-osconfig-agent.service",
        "waagent.service",
    ] {
        assert!(!built_in().housekeeping.units.contains(unit), "{unit}");
        assert_eq!(
            refused(&format!("{HEAD}[housekeeping]\nunits = [\"{unit}\"]\n")),
            format!(
                "line 3, column 10: `{unit}` holds what people, containers or batch systems run; take it away; it never counts as upkeep"
            )
        );
    }
}

#[test]
fn lists_are_bounded() {
    let many = |count: usize| (0..count).map(|index| format!("\"n{index}\",")).collect::<String>();
    let file = |count| format!("{HEAD}[housekeeping]\nnames = [{}]\n", many(count));
    assert!(parse(file(4_096).as_bytes()).is_ok());
    assert!(refused(&file(4_097)).contains("4097 entries"));
}

#[test]
fn no_rule_may_ask_for_the_value_of_an_option_whose_name_says_secret() {
    for (option, is_secret) in [
        ("--db-password", true),
        ("--DB_PASSPHRASE", true),
        ("-api-token", true),
        ("--client_secret", true),
        ("--aws-credentials", true),
        ("--private-file", true),
        ("--key", true),
        ("-key", true),
        ("--keys", true),
        ("--ssh-key", true),
        ("--ssh_key", true),
        ("--sshkey", true),
        ("--access_key", true),
        ("--access-key-id", true),
        ("--accessKey", true),
        ("--API_KEY", true),
        ("--APIKey", true),
        ("--encryption.key", true),
        ("--keyfile", true),
        ("key", true),
        ("--target-jobs", false),
        ("--monkey", false),
        ("--keyboard-layout", false),
        ("--keep-going", false),
        ("--map-assembly", false),
        ("--task-name", false),
        ("-n", false),
    ] {
        let engine = "[[engine]]\nname = \"x\"\nprograms = [\"x\"]\n";
        let interpreter = "[[tools.interpreter]]\nnames = [\"x\"]\nshows = \"script\"\n";
        for (table, key) in [(engine, "task_options"), (engine, "pipeline_options"), (interpreter, "named_by")] {
            let file = format!("{HEAD}{table}{key} = [{option:?}]\n");
            match parse(file.as_bytes()) {
                Ok(_) => assert!(!is_secret, "accepted: {file}"),
                Err(error) => {
                    assert!(is_secret && error.to_string().contains("a secret by its name"), "{error}: {file}");
                }
            }
        }
    }
}

/// What no accepted file may break, told without the code that checks it.
fn holds(rules: &Rules) {
    let housekeeping = &rules.housekeeping;
    for never in
        ["sh", "bash", "zsh", "python", "python3", "python3.11", "perl", "java", "R", "node", "sudo", "snakemake"]
    {
        assert!(!housekeeping.names.contains(never), "{never}");
        let prefixed = housekeeping.name_prefixes.iter().find(|prefix| never.starts_with(prefix.as_str()));
        assert_eq!(prefixed, None, "{never}");
    }
    assert!(
        housekeeping.name_prefixes.iter().chain(&housekeeping.excluded_cgroup_prefixes).all(|prefix| prefix.len() >= 3)
    );
    assert!(housekeeping.names.iter().all(|name| !name.is_empty() && !name.contains('/')));
    assert!(
        housekeeping.paths.iter().all(|path| path.starts_with('/') && !path.contains("..") && !path.ends_with("/bash"))
    );
    assert!(housekeeping.first_personal_uid <= 1_000);
    let guardrail = &built_in().housekeeping;
    assert!(housekeeping.excluded_cgroups.is_superset(&guardrail.excluded_cgroups));
    assert!(housekeeping.excluded_cgroup_prefixes.is_superset(&guardrail.excluded_cgroup_prefixes));
    assert!(!housekeeping.units.iter().any(|unit| unit.starts_with("cron.") || unit.starts_with("docker.")));
    assert!(housekeeping.scheduler_units.iter().all(|unit| unit.contains("cron")));
    let told = rules.engines.iter().flat_map(|engine| engine.pipeline_options.iter().chain(&engine.task_options));
    assert!(!told.into_iter().any(|option| option.contains("password")));
    assert!(rules.attribution.len() <= attribution::MAX_PATTERNS && rules.version.len() <= MAX_VERSION_BYTES);
}

/// Parses, within a bound that only what runs away passes.
fn parse_quickly(file: &[u8]) {
    let begun = std::time::Instant::now();
    match parse(file) {
        Ok(rules) => holds(&rules),
        Err(error) => assert!(error.line >= 1 && error.column >= 1 && !error.to_string().contains(char::is_control)),
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for {} bytes", begun.elapsed(), file.len());
}

fn word() -> impl Strategy<Value = String> {
    let telling = [
        "bash",
        "pyt",
        "python3.11",
        "sh",
        "docker",
        "",
        "cron.service",
        "{id}",
        "*",
        "1001",
        "\\u001b",
        "a/b",
        "kube*-pod{pod:uid}",
    ];
    prop_oneof![prop::sample::select(telling.to_vec()).prop_map(str::to_owned), "[ -~]{0,20}", "\\PC{0,8}"]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(file in prop::collection::vec(any::<u8>(), 0..2_000)) {
        parse_quickly(&file);
    }

    #[test]
    fn a_mutated_file_is_refused_or_keeps_what_every_file_must_keep(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, word()), 1..6)
    ) {
        let mut file = BUILT_IN.as_bytes().to_vec();
        for (at, removed, inserted) in edits {
            let start = at.index(file.len());
            let end = start.saturating_add(removed).min(file.len());
            file.splice(start..end, inserted.into_bytes());
        }
        parse_quickly(&file);
    }

    #[test]
    fn a_file_of_any_words_is_refused_or_keeps_what_every_file_must_keep(
        key in prop::sample::select(vec![
            "names", "name_prefixes", "paths", "units", "unit_parents", "scheduler_units", "excluded_cgroups", "excluded_cgroup_prefixes",
        ]),
        words in prop::collection::vec(word(), 1..4),
        uid in any::<i64>(),
        base in any::<bool>(),
    ) {
        let list = words.iter().map(|word| format!("{word:?},")).collect::<String>();
        let base = if base { "base = \"built-in\"\n" } else { "" };
        parse_quickly(format!("{HEAD}{base}[housekeeping]\n{key} = [{list}]\n").as_bytes());
        parse_quickly(format!("{HEAD}{base}[housekeeping]\nfirst_personal_uid = {uid}\n").as_bytes());
    }

    #[test]
    fn a_pattern_and_a_path_of_any_words_never_panic(pattern in word(), path in "[ -~]{0,300}") {
        let file = format!("{HEAD}[[attribution]]\nkind = \"x\"\nlevel = \"unit\"\nid = \"x\"\npath = {pattern:?}\n");
        if let Ok(rules) = parse(file.as_bytes()) {
            let segments: Vec<&str> = path.split('/').collect();
            for start in 0..segments.len() {
                if let Some(captures) = rules.attribution[0].path.fits(&segments, start) {
                    prop_assert!(captures.iter().all(|(_, text)| path.contains(text)));
                }
            }
        }
    }
}
