//! What no rules file may say.
//!
//! A rule too many makes a busy machine look idle, and an idle machine is switched off. So there are lists here, in code,
//! that a file cannot touch. What runs other people's programs (shells, interpreters, launchers, pipeline engines) is never
//! housekeeping by its name; only cron's kind counts as a scheduler; units that hold other people's processes are never
//! upkeep. Containers are housekeeping by namespace, DaemonSet and image together, and never in a namespace that people work in. And no rule may
//! ask for the value of an option whose name says secret.

use crate::{NamePattern, Rules};

/// Programs that run what others wrote. A name fits that is one of these, also with a version behind it (`python3.11`).
pub const NEVER_BY_NAME: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "busybox",
    "toybox",
    "python",
    "pypy",
    "ipython",
    "jupyter",
    "jupyter-lab",
    "jupyter-notebook",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "java",
    "javaw",
    "R",
    "Rscript",
    "julia",
    "lua",
    "luajit",
    "php",
    "tclsh",
    "wish",
    "expect",
    "guile",
    "racket",
    "octave",
    "octave-cli",
    "MATLAB",
    "matlab",
    "ghc",
    "runghc",
    "scala",
    "groovy",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "make",
    "gmake",
    "ninja",
    "cmake",
    "xargs",
    "parallel",
    "env",
    "sudo",
    "su",
    "doas",
    "runuser",
    "setpriv",
    "chroot",
    "nsenter",
    "unshare",
    "time",
    "timeout",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "stdbuf",
    "taskset",
    "numactl",
    "script",
    "screen",
    "tmux",
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "srun",
    "sbatch",
    "slurmstepd",
    "docker",
    "podman",
    "conmon",
    "runc",
    "crun",
    "containerd-shim",
    "containerd-shim-runc-v1",
    "containerd-shim-runc-v2",
    "singularity",
    "apptainer",
    "starter",
    "bwrap",
    "gdb",
    "strace",
    "perf",
];

/// Units of schedulers whose tables the agent can read. A job is a person's unless the distribution ships every table.
pub const SCHEDULER_UNITS: &[&str] = &["cron.service", "crond.service", "anacron.service"];

/// Units that hold processes which others ask for. Without its suffix; instances of templates included.
///
/// Those of clouds' agents and of cloud-init are among them: a job that user data, a start-up script or a remote command
/// leaves behind (`nohup train.py &`) stays in the unit that started it (`KillMode=process`, `RemainAfterExit=yes`).
pub const NEVER_UNITS: &[&str] = &[
    "cron",
    "crond",
    "atd",
    "anacron",
    "fcron",
    "docker",
    "containerd",
    "podman",
    "crio",
    "cri-o",
    "kubelet",
    "k3s",
    "k3s-agent",
    "k0s",
    "rke2-server",
    "rke2-agent",
    "microk8s",
    "snap.microk8s.daemon-kubelite",
    "slurmd",
    "slurmstepd",
    "pbs",
    "pbs_mom",
    "sge_execd",
    "sgeexecd",
    "condor",
    "htcondor",
    "nomad",
    "ecs",
    "buildkit",
    "jupyterhub",
    "rstudio-server",
    "ssh",
    "sshd",
    "user",
    "user-runtime-dir",
    "libvirtd",
    "lxc",
    "lxd",
    "incus",
    "gitlab-runner",
    "jenkins",
    "cloud-init",
    "cloud-init-local",
    "cloud-init-main",
    "cloud-init-network",
    "cloud-init-hotplugd",
    "cloud-config",
    "cloud-final",
    "rc-local",
    "rc.local",
    "amazon-ssm-agent",
    "snap.amazon-ssm-agent.amazon-ssm-agent",
    "google-startup-scripts",
    "google-shutdown-scripts",
    "google-guest-agent",
    "google-guest-agent-manager",
    "google-guest-compat-manager",
    "google-osconfig-agent",
    "walinuxagent",
    "waagent",
    "qemu-guest-agent",
];

/// Units of container runtimes and of kubelet: what of [`RUNTIME_PROGRAMS`] runs there starts, watches and checks containers, and has no work of
/// its own.
pub const RUNTIME_UNITS: &[&str] = &["containerd.service", "crio.service", "docker.service", "kubelet.service"];

/// Programs that count in [`RUNTIME_UNITS`] and nowhere else. What a container runs is executed by the container's own processes, in its own
/// cgroup; a shim only holds it, and `runc` has become the container's program by the time that this one begins. The daemons themselves are housekeeping by
/// name, `docker-proxy` is not: it passes on what clients send.
pub const RUNTIME_PROGRAMS: &[&str] = &[
    "containerd-shim",
    "containerd-shim-runc-v1",
    "containerd-shim-runc-v2",
    "runc",
    "crun",
    "xtables-nft-multi",
    "xtables-legacy-multi",
    "mount",
    "umount",
];

/// Namespaces of Kubernetes in which no container is housekeeping, whatever its DaemonSet and image: where people work, by name.
pub const NEVER_NAMESPACES: &[&str] = &[
    "default",
    "dev",
    "development",
    "test",
    "testing",
    "stage",
    "staging",
    "prod",
    "production",
    "app",
    "apps",
    "batch",
    "jobs",
    "work",
    "argo",
    "workflows",
    "airflow",
    "spark",
    "ray",
    "dask",
    "kubeflow",
    "jupyter",
    "jupyterhub",
    "ci",
    "gitlab-runner",
    "arc-runners",
];

/// Accounts of the registries from which EKS's own images come, one for most regions and one for each of the others:
/// <https://docs.aws.amazon.com/eks/latest/userguide/add-ons-images.html>
pub const EKS_ACCOUNTS: &[&str] = &[
    "602401143452",
    "013241004608",
    "066635153087",
    "121268973566",
    "151610086707",
    "151742754352",
    "296578399912",
    "333609536671",
    "455263428931",
    "491585149902",
    "533267051163",
    "558608220178",
    "590381155156",
    "730335286997",
    "759879836304",
    "761377655185",
    "800184023465",
    "877085696533",
    "900612956339",
    "900889452093",
    "918309763551",
    "961992271922",
];

/// Parts of options' names by which their values are secrets: no rule may ask for those.
pub const SECRETS: &[&str] =
    &["pass", "secret", "token", "credential", "apikey", "accesskey", "sshkey", "keyfile", "keystore", "private"];

/// Whole words of options' names that say the same, as in `--ssh-key`, `--access_key` and `--secretKey`.
pub const SECRET_WORDS: &[&str] = &["key", "keys"];

/// Shortest beginning of names or segments, in bytes.
pub const MIN_PREFIX_BYTES: usize = 3;

/// Highest first user id of people: beyond it, a person's work would pass for the system's.
pub const MAX_FIRST_PERSONAL_UID: u32 = 1_000;

/// Whether an option says by its name that its value is a secret. `-`, `_`, other signs and a capital letter behind a small one
/// divide words.
pub(crate) fn is_secret(option: &str) -> bool {
    let mut words = String::new();
    let mut before = ' ';
    for letter in option.chars() {
        if before.is_lowercase() && letter.is_uppercase() {
            words.push(' ');
        }
        if letter.is_alphanumeric() {
            words.extend(letter.to_lowercase());
        } else {
            words.push(' ');
        }
        before = letter;
    }
    words.split(' ').any(|word| SECRET_WORDS.contains(&word) || SECRETS.iter().any(|part| word.contains(part)))
}

/// Programs that are never housekeeping by name: the list above, and what rules call interpreter or engine.
#[derive(Debug)]
pub(crate) struct Programs<'a> {
    interpreters: Vec<&'a NamePattern>,
    engines: Vec<&'a str>,
}

impl<'a> Programs<'a> {
    pub(crate) fn of(rules: [&'a Rules; 2]) -> Self {
        let interpreters = rules.into_iter().flat_map(|rules| &rules.tools.interpreters);
        let engines = rules.into_iter().flat_map(|rules| &rules.engines);
        Self {
            interpreters: interpreters.flat_map(|one| &one.names).collect(),
            engines: engines.flat_map(|engine| &engine.programs).map(String::as_str).collect(),
        }
    }

    fn named(&self) -> impl Iterator<Item = &'a str> {
        NEVER_BY_NAME.iter().copied().chain(self.engines.iter().copied())
    }

    /// Whether a name is one of these.
    pub(crate) fn include(&self, name: &str) -> bool {
        self.named().any(|never| name.strip_prefix(never).is_some_and(is_version))
            || self.interpreters.iter().any(|pattern| pattern.fits(name))
    }

    /// Whether one of these may begin with a prefix.
    pub(crate) fn may_begin_with(&self, prefix: &str) -> bool {
        let begins = |never: &str| never.starts_with(prefix) || prefix.strip_prefix(never).is_some_and(is_version);
        self.named().any(begins) || self.interpreters.iter().any(|pattern| pattern.may_fit(prefix))
    }
}

/// Nothing, or what distributions put behind the name of one of several versions.
fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_'))
}
