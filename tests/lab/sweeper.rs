//! A real sweeper on the loopback interface, with a data folder of its own.

use crate::{binaries, certificates::Certificates, port, process::Running, wait};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

/// Longest that a start may take: migrations of an empty database on a busy machine take a tenth of it.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest that an orderly end may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A sweeper; it ends with this value, its data stay in its folder.
#[derive(Debug)]
pub struct Sweeper {
    folder: PathBuf,
    port: u16,
    environment: Vec<(String, String)>,
    program: PathBuf,
    /// Whom its clients trust, if it speaks TLS.
    authority: Option<PathBuf>,
    process: Option<Running>,
}

impl Sweeper {
    /// Starts `sweeper serve` in `folder` and waits until it is ready.
    ///
    /// `config` is the text of its configuration file; where it listens and where its data lie is decided here.
    /// `environment` is added to an environment that holds nothing of the caller's clouds and settings.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn start(folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        Self::start_build(binaries::sweeper(), folder, config, environment).await
    }

    /// The same with another build of the program, [`binaries::release_sweeper`] for example.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn start_build(program: PathBuf, folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        let mut sweeper = Self::prepare_build(program, folder, config, environment);
        sweeper.start_again().await;
        sweeper
    }

    /// The same, speaking TLS by this certificate.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn start_with_tls(folder: &Path, config: &str, certificates: &Certificates) -> Self {
        let (certificate, key) = (certificates.certificate(), certificates.key());
        let environment = [("SWEEPER_API__TLS_CERTIFICATE", &certificate), ("SWEEPER_API__TLS_KEY", &key)];
        let environment = environment.map(|(name, path)| (name, path.to_str().expect("a path of text")));
        let authority = Some(certificates.authority());
        let mut sweeper = Self { authority, ..Self::prepare(folder, config, &environment) };
        sweeper.start_again().await;
        sweeper
    }

    /// A sweeper with its configuration written, but not running.
    ///
    /// # Panics
    ///
    /// When the folder cannot be made.
    #[must_use]
    pub fn prepare(folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        Self::prepare_build(binaries::sweeper(), folder, config, environment)
    }

    fn prepare_build(program: PathBuf, folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        fs::create_dir_all(folder).expect("the sweeper's folder can be made");
        fs::write(folder.join("sweeper.toml"), config).expect("the configuration can be written");
        let environment = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { folder: folder.to_owned(), port: port::free(), environment, program, authority: None, process: None }
    }

    /// A client that trusts what it shows, and tells what that was. Each request has a connection of its own.
    ///
    /// # Panics
    ///
    /// When the authority's certificate cannot be read.
    #[must_use]
    pub fn client(&self) -> reqwest::Client {
        let mut client = reqwest::Client::builder().pool_max_idle_per_host(0).tls_info(true);
        if let Some(authority) = &self.authority {
            let authority = fs::read(authority).expect("the authority's certificate can be read");
            let authority = reqwest::Certificate::from_pem(&authority).expect("a certificate");
            client = client.tls_certs_only([authority]);
        }
        client.build().expect("a client")
    }

    /// Starts it once more over the same data and on the same port, after [`Sweeper::stop`] or [`Sweeper::kill`].
    ///
    /// # Panics
    ///
    /// When it runs already, or does not become ready.
    pub async fn start_again(&mut self) {
        assert!(self.process.is_none(), "the sweeper runs already");
        let mut process = Running::start("sweeper", self.command().arg("serve"), &self.folder);
        let (client, url) = (self.client(), format!("{}/readyz", self.url()));
        wait::until("the sweeper to be ready", START_TIMEOUT, || {
            let ended = process.ended();
            assert!(ended.is_none(), "the sweeper ended: {ended:?}");
            let answer = client.get(&url).send();
            async { answer.await.ok().filter(|answer| answer.status().is_success()) }
        })
        .await;
        self.process = Some(process);
    }

    /// From its next start on it is this build of the program.
    pub fn use_build(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// Ends it in good order.
    ///
    /// # Panics
    ///
    /// When it does not run, or its exit status is not that of success.
    pub async fn stop(&mut self) {
        let status = self.process.take().expect("a running sweeper").terminate(STOP_TIMEOUT).await;
        assert!(status.success(), "the sweeper ended with {status}");
    }

    /// Ends it by SIGKILL.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn kill(&mut self) {
        self.process.take().expect("a running sweeper").kill();
    }

    /// Sends it a signal, SIGSTOP or SIGCONT for example.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn signal(&mut self, signal: rustix::process::Signal) {
        self.process.as_mut().expect("a running sweeper").signal(signal);
    }

    /// The most memory that it has held since it started, in bytes.
    ///
    /// # Panics
    ///
    /// When it does not run.
    #[must_use]
    pub fn peak_resident_bytes(&self) -> u64 {
        self.process.as_ref().expect("a running sweeper").memory_bytes("VmHWM")
    }

    /// Where it listens, as this host sees it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Its port, for those who reach this host under another address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder: configuration, log, and the data folder `data`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The join token that it made at its first start.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn join_token(&self) -> String {
        fs::read_to_string(self.folder.join("data/join-token")).expect("the sweeper made a join token").trim().into()
    }

    /// The operator token that it made at its first start.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn operator_token(&self) -> String {
        fs::read_to_string(self.folder.join("data/operator-token")).expect("the sweeper made it").trim().into()
    }

    /// Everything that it has logged so far.
    ///
    /// # Panics
    ///
    /// When the log cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("sweeper.log")).expect("the sweeper's log can be read")
    }

    /// What it says at /metrics.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn metrics(&self) -> String {
        let request = self.client().get(format!("{}/metrics", self.url())).bearer_auth(self.operator_token());
        let answer = request.send().await.expect("the sweeper answers");
        assert!(answer.status().is_success(), "{answer:?}");
        answer.text().await.expect("the metrics are text")
    }

    /// The `sweeper` command over the same data and configuration, without arguments yet.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (key, _) in env::vars_os() {
            let name = key.to_string_lossy();
            if ["AWS_", "SWEEPER_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&key);
            }
        }
        command
            .current_dir(&self.folder)
            .env("NO_COLOR", "1")
            // Credentials and settings of the person who runs the tests have no place in a test.
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("SWEEPER_DATA_DIR", self.folder.join("data"))
            .env("SWEEPER_API__LISTEN", format!("127.0.0.1:{}", self.port))
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .arg("--config")
            .arg(self.folder.join("sweeper.toml"));
        command
    }

    /// Runs one `sweeper` command to its end, over the same data and configuration.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = tokio::process::Command::from(self.command());
        command.args(arguments).stdin(Stdio::null()).output().await.expect("the sweeper starts")
    }

    /// Sweeps once, on demand. Returns the exit code and the report.
    ///
    /// # Panics
    ///
    /// When there is no report.
    pub async fn sweep(&self) -> (i32, serde_json::Value) {
        let output = self.run(&["sweep", "--output", "json"]).await;
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().expect("no signal ends it"), report)
    }

    /// Has every decision about every finding made again from what the database holds, with the same result. Returns how many there were, and how
    /// many of them made a plan.
    ///
    /// # Panics
    ///
    /// When one is made otherwise, or of a finding nothing is kept.
    pub async fn replays(&self) -> (usize, usize) {
        let replay = self.json(&["replay"]).await;
        assert_eq!(replay["without_evidence"], serde_json::json!([]), "{replay:#}");
        let decisions = replay["decisions"].as_array().expect("decisions");
        let plans = decisions.iter().filter(|decision| !decision["plan"].is_null()).count();
        (decisions.len(), plans)
    }

    /// Runs one command with `--output json` and reads its answer.
    ///
    /// # Panics
    ///
    /// When it fails, or does not answer in JSON.
    pub async fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat()).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "sweeper {arguments:?} ended with {}: {errors}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("sweeper {arguments:?}: {error}: {text}\n{errors}"))
    }
}
