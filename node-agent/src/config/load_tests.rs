#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::config::{IdentityChoice, SourceChoice};

fn with(variables: &[(&str, &str)]) -> Surroundings {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Surroundings { variables: variables.collect(), root: true }
}

fn from(text: &str) -> Result<Config, String> {
    let mut config = Config::default_in(&with(&[]));
    overlay_file(&mut config, "agent.toml", text).map_err(|error| error.to_string())?;
    Ok(config)
}

fn from_variables(variables: &[(&str, &str)]) -> Result<Config, String> {
    let mut config = Config::default_in(&with(&[]));
    overlay_variables(&mut config, &with(variables)).map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn the_example_file_holds_the_defaults_and_documents_every_key() {
    let text = include_str!("../../node-agent.example.toml");
    // No secret is set by default, and one that is would show.
    assert_eq!(format!("{:?}", from(text).unwrap()), format!("{:?}", Config::default_in(&with(&[]))));

    // A commented-out setting is `# key = value`; with the mark taken away each must be a valid one.
    let setting = |line: &str| KEYS.iter().any(|key| line.starts_with(&format!("{key} = ")));
    let all = text
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| setting(line) && !line.starts_with("join_token = "))
        .collect::<Vec<_>>();
    let config = from(&all.join("\n")).unwrap();
    assert!(config.sweeper_url.is_some() && matches!(config.join_token, Some(JoinToken::File(_))));
    for key in KEYS {
        assert!(text.contains(&format!("{key} = ")), "{key} is not in the example file");
    }
}

#[test]
fn a_wrong_key_is_one_line_that_names_file_key_and_nearest_key() {
    assert_eq!(
        from("sweeper_ulr = \"http://x\"").unwrap_err(),
        "agent.toml: unknown key `sweeper_ulr`; did you mean `sweeper_url`?"
    );
    assert_eq!(
        from_variables(&[("NODE_AGENT_SPOOL_MAX_AEG", "1h")]).unwrap_err(),
        "environment: unknown key `NODE_AGENT_SPOOL_MAX_AEG`; did you mean `NODE_AGENT_SPOOL_MAX_AGE`?"
    );
    assert!(from("zzz = 1").unwrap_err().contains("valid keys are sweeper_url, "));
    assert!(!from("\"a\\u001bb\" = 1").unwrap_err().contains('\u{1b}'));
}

#[test]
fn what_a_key_cannot_hold_is_refused_with_a_reason() {
    for (text, says) in [
        ("interval = 30", "expected a text in quotes"),
        ("interval = \"soon\"", "is not a length of time"),
        ("interval = \"-5s\"", "negative"),
        ("interval = \"2h\"", "is outside 100ms to 1h"),
        ("sweeper_url = \"sweeper:80\"", "neither http nor https"),
        ("sweeper_url = \"https://u:p@sweeper\"", "user name or password"),
        ("sweeper_url = \"\"", "it is empty"),
        ("state_dir = 1", "expected a text in quotes"),
        ("spool_max_bytes = 1", "below the least"),
        ("source = \"bpf\"", "none of auto, ebpf, tracepoints, taskstats, proc"),
        ("keep_ptrace = \"perhaps\"", "expected true or false"),
        ("host_root = \"\"", "it is empty"),
        ("stop_file = \"\"", "it is empty"),
        ("max_cpu_percent_of_host = 0", "between 0.0001 and 100"),
        ("max_cpu_percent_of_host = 0.00001", "between 0.0001 and 100"),
        ("max_cpu_percent_of_host = -0.5", "between 0.0001 and 100"),
        ("max_cpu_percent_of_host = 101", "between 0.0001 and 100"),
        ("max_cpu_percent_of_host = \"half\"", "between 0.0001 and 100"),
        ("max_memory_bytes = 1", "below the least"),
        ("metrics_listen = \"9465\"", "is no address and port"),
        ("identity = \"azure\"", "none of auto, aws, gcp, host"),
        ("join_token = \"a\"\njoin_token_file = \"/b\"", "keep one of the two"),
    ] {
        let error = from(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(from("interval =\n").unwrap_err().starts_with("agent.toml, line 1: "));
}

#[test]
fn a_percentage_may_be_a_number_of_either_kind_or_a_text() {
    for (text, ppm) in [("1", 10_000), ("0.5", 5_000), ("100", 1_000_000), ("0.0001", 1), ("\"2.25\"", 22_500)] {
        let config = from(&format!("max_cpu_percent_of_host = {text}")).unwrap();
        assert_eq!(config.budget.cpu_ppm_of_host, ppm, "{text}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let mut config = from("interval = \"10s\"\nidentity = \"host\"").unwrap();
    let environment = with(&[
        ("NODE_AGENT_INTERVAL", "1m 30s"),
        ("NODE_AGENT_SPOOL_MAX_BYTES", "1048576"),
        ("NODE_AGENT_SPOOL_MAX_AGE", "2d"),
        ("NODE_AGENT_SOURCE", "proc"),
        ("NODE_AGENT_SWEEPER_URL", "http://10.0.2.2:8090/"),
        ("NODE_AGENT_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("NODE_AGENT_CONFIG", "/some/file"),
    ]);
    overlay_variables(&mut config, &environment).unwrap();
    assert_eq!(config.interval, Duration::from_secs(90));
    assert_eq!(config.spool_max_bytes, 1_048_576);
    assert_eq!(config.spool_max_age, Duration::from_secs(172_800));
    assert_eq!(config.source, SourceChoice::Proc);
    assert_eq!(config.identity, IdentityChoice::Host);
    assert_eq!(config.sweeper_url.as_deref(), Some("http://10.0.2.2:8090"));
}

#[test]
fn a_plain_user_keeps_state_at_home() {
    let mut user = Surroundings { root: false, ..with(&[("HOME", "/home/ada")]) };
    assert_eq!(user.default_state_dir(), Path::new("/home/ada/.local/state/cloud-sweeper/agent"));
    user.variables.insert("XDG_STATE_HOME".into(), "/state".into());
    assert_eq!(user.default_state_dir(), Path::new("/state/cloud-sweeper/agent"));
}

#[test]
fn a_secret_is_not_shown() {
    let config = from("join_token = \"hush\"").unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert!(!from("join_token = [\"hush\"]").unwrap_err().contains("hush"));
}

#[test]
fn a_file_that_was_asked_for_must_exist() {
    let error = load(Some(Path::new("/nowhere/agent.toml")), &with(&[])).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/agent.toml: cannot read the configuration file"), "{error}");
}
