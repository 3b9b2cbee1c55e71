//! What the helper writes to the agent, one line of JSON for each question. ◇

use serde::{Deserialize, Serialize};

/// Longest line: 1,024 containers of some 600 bytes each.
pub const MAX_LINE_BYTES: usize = 2 << 20;
/// Most containers of one machine that are known. Kubernetes plans for 110 pods of a node: <https://kubernetes.io/docs/setup/best-practices/cluster-large/>
pub const MAX_CONTAINERS: usize = 1_024;
/// Longest name, in bytes: Kubernetes' own bound.
const MAX_NAME_BYTES: usize = 253;
/// Longest image reference and reason, in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// Kind of owner that the path of an archive follows.
pub const ARCHIVE: &str = "Archive";

/// Who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// Kubelet: the pods of this node with their owners. Its word alone makes a container of Kubernetes housekeeping.
    Kubelet,
    /// The container runtime, by CRI: what it was told of each container, which anybody may tell it who reaches its socket.
    Cri,
    /// ECS's agent: tasks. Their owner is not told.
    Ecs,
    /// Docker: what it was told of each container, and which image that runs.
    Docker,
}

impl Source {
    /// As reasons have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Cri => "the container runtime (CRI)",
            Self::Ecs => "ECS's agent",
            Self::Docker => "Docker",
        }
    }
}

/// Why a source said nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// There is none: no socket, nobody listens.
    Absent(String),
    /// It refuses to answer to this agent.
    Denied(String),
    /// It should have answered, and did not, or not what it should.
    Broken(String),
}

impl Failure {
    /// The same with another reason, made of its own.
    #[must_use]
    pub fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Absent(why) => Self::Absent(change(why)),
            Self::Denied(why) => Self::Denied(change(why)),
            Self::Broken(why) => Self::Broken(change(why)),
        }
    }
}

/// What one source said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which one.
    pub source: Source,
    /// Every container that it knows, or why it said nothing. Half an answer is none.
    pub outcome: Result<Vec<Container>, Failure>,
}

/// One container, as one source has it. Texts are cut at what [`Container::bounded`] allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its id: 64 hexadecimal digits.
    pub id: String,
    /// Its name within the pod or task.
    pub name: String,
    /// The pod, or of ECS the task's family and revision.
    pub pod: String,
    /// The pod's uid; of ECS the task's id.
    pub pod_uid: String,
    /// The pod's namespace, or of ECS the cluster.
    pub namespace: String,
    /// Kind and name of what controls the pod: `DaemonSet/aws-node`; `StaticPod/kube-proxy` is a file on the node. Of Docker [`ARCHIVE`] and the path of the archive
    /// that root keeps its image in. Empty if that is not told.
    pub owner: String,
    /// The image as the pod or task names it.
    pub image: String,
    /// It was put into a pod that ran already (`kubectl debug`), whoever owns that.
    pub is_ephemeral: bool,
}

impl Container {
    /// With all texts within bounds.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for text in [&mut self.name, &mut self.pod, &mut self.pod_uid, &mut self.namespace] {
            cut(text, MAX_NAME_BYTES);
        }
        cut(&mut self.owner, MAX_NAME_BYTES + 64);
        cut(&mut self.image, MAX_TEXT_BYTES);
        self
    }

    /// Whether the id is one that a runtime makes.
    #[must_use]
    pub fn has_id(&self) -> bool {
        is_id(&self.id)
    }
}

/// Whether this is a container's id: 64 hexadecimal digits, as containerd's CRI, CRI-O and Docker make them.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

fn cut(text: &mut String, most: usize) {
    text.truncate(heartbeat::text::cut(text, most).len());
}

impl Answer {
    /// An answer within bounds: more containers than [`MAX_CONTAINERS`] are no answer.
    #[must_use]
    pub fn new(source: Source, outcome: Result<Vec<Container>, Failure>) -> Self {
        let bounded = outcome.and_then(|found| {
            if found.len() > MAX_CONTAINERS {
                let why = format!("it has {} containers, and {MAX_CONTAINERS} are the most", found.len());
                return Err(Failure::Broken(why));
            }
            Ok(found.into_iter().filter(Container::has_id).map(Container::bounded).collect())
        });
        Self { source, outcome: bounded.map_err(|failure| failure.map(shortened)) }
    }
}

fn shortened(mut why: String) -> String {
    cut(&mut why, MAX_TEXT_BYTES);
    why
}
