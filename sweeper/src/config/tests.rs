//! The example file is the types' defaults, and every refusal is one helpful line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{Config, keys};
use secrecy::ExposeSecret;
use std::{collections::BTreeSet, path::PathBuf};

const EXAMPLE: &str = include_str!("../../sweeper.example.toml");

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sweeper.toml");
    std::fs::write(&path, text).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let place = format!("{}/", directory.path().display());
    Config::load(Some(&path), environment).map_err(|error| error.to_string().replace(&place, ""))
}

fn refusal(text: &str, environment: &[(&str, &str)]) -> String {
    let line = load(text, environment).unwrap_err();
    assert!(!line.contains('\n'), "more than one line: {line}");
    line
}

/// The example with its commented-out keys switched on.
fn complete_example() -> String {
    let is_key =
        |line: &str| line.strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    EXAMPLE.lines().map(|line| if is_key(line) { &line[1..] } else { line }).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_file_is_the_defaults() {
    // No secret is set by default, and one that is would show.
    assert_eq!(format!("{:?}", load(EXAMPLE, &[]).unwrap()), format!("{:?}", Config::default()));
}

#[test]
fn the_example_file_has_every_key_and_no_other() {
    let table: toml::Table = complete_example().parse().unwrap();
    let mut shown = BTreeSet::new();
    for (section, value) in table {
        match value {
            toml::Value::Table(entries) => shown.extend(entries.keys().map(|entry| format!("{section}.{entry}"))),
            _ => _ = shown.insert(section),
        }
    }
    assert_eq!(shown, keys::all().into_iter().map(|key| key.name).collect::<BTreeSet<_>>());
}

#[test]
fn commented_out_keys_of_the_example_are_of_the_right_type() {
    let complete = complete_example();
    // A secret and the file that holds it exclude each other.
    let direct: Vec<&str> = complete
        .lines()
        .filter(|line| {
            !["token_file", "signing_secret_file", "app_token_file", "password_file"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .collect();
    // Mail needs a recipient, and the default has none.
    let config = load(&direct.join("\n").replace("to = []", "to = [\"ops@example.com\"]"), &[]).unwrap();
    assert_eq!(config.slack.token.as_ref().map(ExposeSecret::expose_secret), Some("xoxb-your-token"));
    assert_eq!(config.email.ca_file, Some(PathBuf::from("/etc/cloud-sweeper/mail-ca.pem")));
}

#[test]
fn an_unknown_key_is_refused_with_file_key_and_the_nearest_valid_key() {
    assert_eq!(
        refusal("[ingest]\nclock_skw = \"5m\"", &[]),
        "sweeper.toml: unknown key `ingest.clock_skw`; the nearest valid key is `ingest.clock_skew`"
    );
    assert_eq!(
        refusal("[verdicts]\nidle_after = \"5m\"", &[]),
        "sweeper.toml: unknown key `verdicts`; the nearest valid key is `verdict`"
    );
    assert_eq!(
        refusal("listen = \"127.0.0.1:1\"", &[]),
        "sweeper.toml: unknown key `listen`; the nearest valid key is `api.listen`"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_file_and_key() {
    for (text, line) in [
        ("[email]\nport = \"587\"", "sweeper.toml: key `email.port`: invalid type: string \"587\", expected u16"),
        (
            "[ingest]\nclock_skew = \"5 minuts\"",
            "sweeper.toml: key `ingest.clock_skew`: `5 minuts` is not a duration; write it like \"30s\", \"10m\", \"24h\" or \"7d\"",
        ),
        (
            "[aws]\nenabled = \"maybe\"",
            "sweeper.toml: key `aws.enabled`: unknown variant `maybe`, expected one of `auto`, `yes`, `no`",
        ),
        ("[aws]\nregions = [1]", "sweeper.toml: key `aws.regions[0]`: invalid type: integer `1`, expected a string"),
        ("store = 3", "sweeper.toml: key `store`: invalid type: integer `3`, expected struct StoreConfig"),
    ] {
        assert_eq!(refusal(text, &[]), line);
    }
}

#[test]
fn what_is_not_toml_is_refused_with_line_and_column() {
    assert!(refusal("[api]\nlisten = ", &[]).starts_with("sweeper.toml:2:10: not valid TOML: "));
    let missing = Config::load(Some(&PathBuf::from("/nowhere/sweeper.toml")), []).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/sweeper.toml: cannot be read: "), "{missing}");
}

#[test]
fn environment_variables_override_the_file_in_every_type() {
    let config = load(
        "[api]\nlisten = \"127.0.0.1:1\"\n[store]\nurl = \"sqlite::memory:\"",
        &[
            ("SWEEPER_API__LISTEN", "0.0.0.0:9"),
            ("SWEEPER_AWS__REGIONS", "eu-central-1, us-east-1"),
            ("SWEEPER_VERDICT__MISSED_HEARTBEATS", "5"),
            ("SWEEPER_VERDICT__UNATTRIBUTED_STARTS_PER_S", "2"),
            ("SWEEPER_ONPREM__HOURLY_USD", "{ default = \"0.25\" }"),
            ("SWEEPER_STORE__URL", ""),
            ("SWEEPER_DATA_DIR", "/srv/sweeper"),
            ("SWEEPER_CONFIG", "elsewhere.toml"),
            ("SWEEPER_SERVICE_HOST", "10.0.0.1"),
        ],
    )
    .unwrap();
    assert_eq!(config.api.listen.to_string(), "0.0.0.0:9");
    assert_eq!(config.aws.regions, ["eu-central-1", "us-east-1"]);
    assert_eq!(config.verdict.missed_heartbeats, 5);
    assert_eq!(config.onprem.hourly_usd["default"], "0.25");
    assert_eq!(config.store_url().expose_secret(), "sqlite:///srv/sweeper/sweeper.db?mode=rwc");
    assert_eq!(config.join_token_file(), PathBuf::from("/srv/sweeper/join-token"));
    assert_eq!(config.operator_token_file(), PathBuf::from("/srv/sweeper/operator-token"));
}

#[test]
fn a_wrong_variable_is_refused_by_its_name() {
    for (name, value, line) in [
        (
            "SWEEPER_INGEST__CLOCK_SKW",
            "5m",
            "environment variable SWEEPER_INGEST__CLOCK_SKW: unknown key `SWEEPER_INGEST__CLOCK_SKW`; the nearest valid key is `SWEEPER_INGEST__CLOCK_SKEW`",
        ),
        (
            "SWEEPER_API_LISTEN",
            "x",
            "environment variable SWEEPER_API_LISTEN: unknown key `SWEEPER_API_LISTEN`; the nearest valid key is `SWEEPER_API__LISTEN`",
        ),
        (
            "SWEEPER_EMAIL__PORT",
            "many",
            "environment variable SWEEPER_EMAIL__PORT: key `email.port`: invalid type: string \"many\", expected u16",
        ),
    ] {
        assert_eq!(refusal("", &[(name, value)]), line);
    }
}

#[test]
fn secrets_come_from_files_and_never_from_two_places() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "xoxb-from-file\n").unwrap();
    let text = format!("[slack]\nchannel = \"c\"\ntoken_file = {:?}", file.display().to_string());
    let config = load(&text, &[]).unwrap();
    assert_eq!(config.slack.token.as_ref().map(ExposeSecret::expose_secret), Some("xoxb-from-file"));
    assert!(!format!("{config:?}").contains("from-file"));
    assert!(!serde_json::to_string(&config).unwrap().contains("from-file"));
    assert_eq!(
        refusal(&text, &[("SWEEPER_SLACK__TOKEN", "xoxb-other")]),
        "sweeper.toml: key `slack.token_file`: `slack.token` is set too; keep one"
    );
    assert!(
        refusal("[slack]\nchannel = \"c\"\ntoken_file = \"/nowhere/token\"", &[])
            .starts_with("sweeper.toml: key `slack.token_file`: /nowhere/token cannot be read: ")
    );
}

#[test]
fn settings_that_cannot_work_together_are_refused() {
    for (text, key) in [
        ("[pricing]\nsource = \"file\"", "pricing.file"),
        ("[api]\ntls_certificate = \"/tls.crt\"", "api.tls_key"),
        ("[api]\ntls_key = \"/tls.key\"", "api.tls_certificate"),
        ("[[sweep.schedules]]\nprovider = \"onprem\"\nschedule = \"0 0 * * * *\"", "sweep.schedules[0].provider"),
        ("[slack]\nchannel = \"c\"", "slack.token"),
        ("[slack]\nteams = [{ name = \"n\", channel = \"#c\" }]", "slack.token"),
        (
            "[slack]\ntoken = \"xoxb-1\"\nchannel = \"c\"\nteams = [{ name = \"n\", channel = \" \" }]",
            "slack.teams[0].channel",
        ),
        ("[slack]\nsigning_secret = \"8f742231b10e8888\"", "slack.token"),
        ("[slack]\napp_token = \"xapp-1-A0-2-abc\"", "slack.token"),
        ("[email]\nhost = \"h\"", "email.from"),
        ("[email]\nusername = \"u\"", "email.password"),
        ("[verdict]\nidle_after = \"5h\"", "verdict.idle_after"),
        ("[store]\nheartbeat_retention = \"1h\"", "store.heartbeat_retention"),
        ("[verdict]\nbarely_used_after = \"59m\"", "verdict.barely_used_after"),
        ("[verdict]\nbarely_used_after = \"91d\"", "verdict.barely_used_after"),
        ("[store]\nurl = \"mysql://x\"", "store.url"),
        ("[sweep]\ntimezone = \"Mars/Olympus\"", "sweep.timezone"),
        ("[[sweep.schedules]]\nschedule = \"0 0 9 * * *\"", "sweep.schedules[0]"),
        ("[[sweep.schedules]]\nprovider = \"azure\"", "sweep.schedules[0].provider"),
        ("[[sweep.schedules]]\naccount = \"1\"\ntimezone = \"Mars/Olympus\"", "sweep.schedules[0].timezone"),
        ("[[sweep.schedules]]\nregoin = \"us-east-1\"", "sweep.schedules[0].regoin"),
        ("[onprem]\nhourly_usd = { default = \"cheap\" }", "onprem.hourly_usd"),
        ("[aws]\nown_account = false", "aws.own_account"),
        ("[aws]\nscopes_at_once = 0", "aws.scopes_at_once"),
        ("[aws]\nregions = [\"[eu-central-1]\"]", "aws.regions"),
        ("[aws]\nlisting_timeout = \"0s\"", "aws.listing_timeout"),
    ] {
        let line = refusal(text, &[]);
        assert!(line.starts_with(&format!("sweeper.toml: key `{key}`: ")), "{line}");
    }
}

#[test]
fn a_lease_too_short_to_be_renewed_or_too_long_to_wait_for_is_refused() {
    for (lease, fits) in [("2999ms", false), ("3s", true), ("1h", true), ("61m", false)] {
        let text = format!("[sweep]\nlease = \"{lease}\"");
        let refused = load(&text, &[]).err();
        assert_eq!(refused.is_none(), fits, "{lease}: {refused:?}");
        assert!(refused.is_none_or(|line| line.contains("sweep.lease") && line.contains("3s")), "{lease}");
    }
}

#[test]
fn other_accounts_are_read_with_what_is_left_out_filled_in() {
    let text = "[aws]\nown_account = false\n[[aws.accounts]]\nrole_arn = \"arn:aws:iam::111122223333:role/r\"\n\
                [[aws.accounts]]\nrole_arn = \"arn:aws:iam::444455556666:role/r\"\nexternal_id = \"id-1\"\nregions = [\"eu-west-1\"]";
    let from_file = load(text, &[]).unwrap();
    let accounts: Vec<_> = from_file.aws.accounts.iter().map(|account| account.role_arn.account()).collect();
    assert_eq!(accounts, ["111122223333", "444455556666"]);
    let options = from_file.aws.options();
    assert!(!options.own_account);
    assert_eq!((options.roles[0].session_name.as_str(), &options.roles[0].external_id), ("cloud-sweeper", &None));
    assert_eq!(
        (options.roles[1].regions.as_slice(), options.roles[1].external_id.as_deref()),
        (["eu-west-1".to_owned()].as_slice(), Some("id-1"))
    );

    let variable = "[{ role_arn = \"arn:aws:iam::111122223333:role/r\" }]";
    let from_variable = load("", &[("SWEEPER_AWS__ACCOUNTS", variable)]).unwrap();
    assert_eq!(from_variable.aws.accounts, from_file.aws.accounts[..1]);
}

#[test]
fn an_account_that_cannot_be_read_is_refused_by_its_number() {
    let role =
        |account: &str, more: &str| format!("[[aws.accounts]]\nrole_arn = \"arn:aws:iam::{account}:role/r\"\n{more}\n");
    for (text, line) in [
        (
            "[[aws.accounts]]\nrole_arn = \"cloud-sweeper\"".to_owned(),
            "`aws.accounts[0].role_arn`: `cloud-sweeper` is not the ARN of a role; write it like \"arn:aws:iam::111122223333:role/cloud-sweeper\"",
        ),
        ("[[aws.accounts]]\nexternal_id = \"x1\"".to_owned(), "`aws.accounts[0]`: missing field `role_arn`"),
        (
            role("111122223333", "extern_id = \"x1\""),
            "`aws.accounts[0].extern_id`: unknown field `extern_id`, expected one of `role_arn`, `external_id`, `regions`, `session_name`",
        ),
        (
            role("111122223333", "") + &role("444455556666", "") + &role("111122223333", ""),
            "`aws.accounts[2].role_arn`: is in account 111122223333, as that of `aws.accounts[0]` is; keep one",
        ),
        (
            role("111122223333", "") + &role("444455556666", "external_id = \"a b\""),
            "`aws.accounts[1].external_id`: must be 2 to 1,224 letters, digits or any of _+=,.@:/-",
        ),
        (
            role("111122223333", "regions = [\"Frankfurt\"]"),
            "`aws.accounts[0].regions`: `Frankfurt` is not a region such as `eu-central-1`",
        ),
        (
            role("111122223333", "session_name = \"x\""),
            "`aws.accounts[0].session_name`: must be 2 to 64 letters, digits or any of _+=,.@-",
        ),
    ] {
        assert_eq!(refusal(&text, &[]), format!("sweeper.toml: key {line}"));
    }
}

#[test]
fn a_refusal_shows_nothing_of_a_secret_that_was_written_in_place_of_its_section() {
    for text in ["store = \"postgres://ada:hunter2@host/sweeper\"", "slack = \"hunter2\"", "email = 'hunter2'"] {
        let line = refusal(text, &[]);
        assert!(!line.contains("hunter2") && !line.contains("ada"), "{line}");
        assert!(line.contains("is a section"), "{line}");
    }
    let line = refusal("[store]\nurl = \"mysql://ada:hunter2@host/sweeper\"", &[]);
    assert!(!line.contains("hunter2"), "{line}");
}
