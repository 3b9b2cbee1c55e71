//! A real node agent on this host, with a state folder of its own.

use crate::{binaries, process::Running};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

/// Longest that an orderly end may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A node agent; it ends with this value, its state stays in its folder.
#[derive(Debug)]
pub struct Agent {
    folder: PathBuf,
    environment: Vec<(String, String)>,
    program: PathBuf,
    process: Option<Running>,
}

impl Agent {
    /// Starts `node-agent run` in `folder`.
    ///
    /// `config` is the text of its configuration file; where its state lies is decided here. `environment` is added to
    /// an environment that holds nothing of the caller's clouds and settings.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        let mut agent = Self::prepare(folder, config, environment);
        agent.start_again();
        agent
    }

    /// An agent with its configuration written, but not running.
    ///
    /// # Panics
    ///
    /// When the folder cannot be made.
    #[must_use]
    pub fn prepare(folder: &Path, config: &str, environment: &[(&str, &str)]) -> Self {
        fs::create_dir_all(folder).expect("the agent's folder can be made");
        fs::write(folder.join("agent.toml"), config).expect("the configuration can be written");
        let environment = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { folder: folder.to_owned(), environment, program: binaries::node_agent(), process: None }
    }

    /// Starts it once more over the same state, after [`Agent::stop`] or [`Agent::kill`].
    ///
    /// # Panics
    ///
    /// When it runs already, or cannot be started.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the agent runs already");
        self.process = Some(Running::start("node-agent", self.command().arg("run"), &self.folder));
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
        let status = self.process.take().expect("a running agent").terminate(STOP_TIMEOUT).await;
        assert!(status.success(), "the agent ended with {status}");
    }

    /// Ends it by SIGKILL.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn kill(&mut self) {
        self.process.take().expect("a running agent").kill();
    }

    /// The running process.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn process(&mut self) -> &mut Running {
        self.process.as_mut().expect("a running agent")
    }

    /// Its folder: configuration, log, and the state folder `state`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything that it has logged so far.
    ///
    /// # Panics
    ///
    /// When the log cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("node-agent.log")).expect("the agent's log can be read")
    }

    /// The `node-agent` command over the same state and configuration, without arguments yet.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (key, _) in env::vars_os() {
            let name = key.to_string_lossy();
            if ["AWS_", "NODE_AGENT_", "GCE_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&key);
            }
        }
        command
            .current_dir(&self.folder)
            .env("NO_COLOR", "1")
            .env("NODE_AGENT_STATE_DIR", self.folder.join("state"))
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .arg("--config")
            .arg(self.folder.join("agent.toml"));
        command
    }

    /// Runs one `node-agent` command to its end, over the same state and configuration.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = tokio::process::Command::from(self.command());
        command.args(arguments).stdin(Stdio::null()).output().await.expect("the agent starts")
    }
}
