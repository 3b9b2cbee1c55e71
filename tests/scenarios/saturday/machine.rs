//! An instance of the EC2 server that is a machine: it is on as long as EC2 says that it runs, and works when it is told to.

use lab::{
    aws::Moto,
    binaries,
    imds::Imds,
    microvm::{Guest, HOST, MicroVm, TOLD},
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::AbortHandle;

/// How often it is held to what EC2 says of it.
const EVERY: Duration = Duration::from_millis(300);

/// What is switched on and off.
#[derive(Default)]
struct Power {
    machine: Option<MicroVm>,
    boots: usize,
    /// The agent's key, which outlasts the machine's being off as a disk does.
    key: Option<String>,
}

/// What each boot of it is made of.
pub(crate) struct Image {
    pub(crate) folder: PathBuf,
    pub(crate) metadata: Imds,
    pub(crate) agent_config: String,
    pub(crate) work: PathBuf,
}

pub(crate) struct Machine {
    power: Arc<Mutex<Power>>,
    task: AbortHandle,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Image {
    fn boot(&self, boots: usize, key: Option<&str>) -> MicroVm {
        let script = format!(
            "set -e\nhostname align-7\nmkdir -p /opt /var/spool/cron/crontabs\n\
             export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://{HOST}:{}\n\
             if [ -e /etc/node-key ]; then mkdir -m 700 /run/agent; cp /etc/node-key /run/agent/; chmod 600 /run/agent/node-key; fi\n\
             node-agent --config /etc/agent.toml run &\nuntil [ -s /run/agent/node-key ]; do usleep 200000; done\n\
             give node-key /run/agent/node-key\nexec work obey {TOLD}\n",
            self.metadata.port()
        );
        let guest = Guest::running(&script)
            .that_listens()
            .with_program("node-agent", &binaries::node_agent())
            .with_program("work", &self.work)
            .with_text("agent.toml", &self.agent_config)
            .with_text("machine-id", &uuid::Uuid::new_v4().simple().to_string());
        let guest = key.into_iter().fold(guest, |guest, key| guest.with_text("node-key", key));
        MicroVm::boot(&self.folder.join(format!("boot-{boots}")), &guest)
    }
}

impl Machine {
    /// Switches it on and off from now on, as EC2 says.
    pub(crate) fn of(moto: Arc<Moto>, region: &'static str, instance: String, image: Image) -> Self {
        let power = Arc::new(Mutex::new(Power::default()));
        let follows = follow(moto, region, instance, image, Arc::clone(&power));
        Self { power, task: tokio::spawn(follows).abort_handle() }
    }

    fn read<T>(&self, read: impl FnOnce(&mut Power) -> T) -> T {
        read(&mut self.power.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.read(|power| power.machine.as_mut().is_some_and(MicroVm::is_running))
    }

    pub(crate) fn boots(&self) -> usize {
        self.read(|power| power.boots)
    }

    /// Lets it burn CPU time from now on.
    pub(crate) fn works(&self) {
        self.tell("b");
    }

    pub(crate) fn rests(&self) {
        self.tell("r");
    }

    fn tell(&self, word: &str) {
        self.read(|power| power.machine.as_ref().expect("the machine is on").tell(word));
    }

    pub(crate) fn console(&self) -> String {
        self.read(|power| power.machine.as_ref().map(MicroVm::console).unwrap_or_default())
    }
}

async fn follow(moto: Arc<Moto>, region: &str, instance: String, image: Image, power: Arc<Mutex<Power>>) {
    loop {
        let is_to_run = ["pending", "running"].contains(&moto.instance_state(region, &instance).await.as_str());
        {
            let mut power = power.lock().unwrap_or_else(PoisonError::into_inner);
            let told = power.machine.as_ref().and_then(|machine| machine.given("node-key"));
            power.key = told.or(power.key.take());
            match (is_to_run, power.machine.is_some()) {
                (true, false) => {
                    power.boots += 1;
                    power.machine = Some(image.boot(power.boots, power.key.as_deref()));
                }
                // As if somebody had pulled the plug.
                (false, true) => power.machine = None,
                _ => {}
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}
