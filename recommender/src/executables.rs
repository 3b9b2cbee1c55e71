//! What was executed on a machine, and whether it is known to run on Arm.

use std::fmt;

use serde::{Deserialize, Serialize};

/// So many are named of those that are not proven.
const NAMED: usize = 20;

/// What was executed on a machine in the recorded time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executables {
    /// Every file that was executed: programs, interpreters, the loader's own; those of housekeeping, too.
    pub seen: Vec<Executable>,
    /// Whether that is all of them: no start of a program was lost, nor left out. None: not known.
    pub is_all: Option<bool>,
}

/// A file that was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    /// Its name, as the agent shows it.
    pub file: String,
    /// The machine that its ELF header states; none if it was not read.
    pub machine: Option<ElfMachine>,
    /// Whether it executes what others bring, such as `python3`, `java`, `perl`, `Rscript`: then it says nothing of what that needs.
    pub is_interpreter: bool,
    /// The container image that it ran in; none of the host's own.
    pub image: Option<String>,
    /// What shows that the same runs on Arm.
    pub on_arm: Option<ArmProof>,
}

/// The machine that an ELF header states (`e_machine`): <https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElfMachine {
    /// 62
    X86_64,
    /// 183
    Aarch64,
    /// Another one, by its number.
    Other(u16),
}

/// What shows that the same runs on Arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "proof", rename_all = "snake_case")]
pub enum ArmProof {
    /// The same package or image, in the same version, was executed on a machine of Arm; of an interpreter with the same script or pipeline.
    Ran {
        /// On this node.
        node: String,
    },
    /// The distribution has the same version of its package for Arm.
    Package {
        /// Which.
        name: String,
    },
    /// The image's list of platforms has `linux/arm64`.
    Image {
        /// Which.
        image: String,
    },
}

/// Why an executable is not proven to run on Arm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Unproven {
    /// Nobody knows of one.
    #[error("{file}: no build for Arm is known")]
    NoBuild {
        /// Its name.
        file: String,
    },
    /// Its header was not read.
    #[error("{file}: its ELF header was not read")]
    NotRead {
        /// Its name.
        file: String,
    },
    /// A package of the interpreter proves nothing of what it executes.
    #[error("{file}: an interpreter, and what it executes was not seen on Arm")]
    Interpreter {
        /// Its name.
        file: String,
    },
    /// What a container has is its image's.
    #[error("{file} in the image {image}, which is not known to have a variant for Arm")]
    Image {
        /// Its name.
        file: String,
        /// The image.
        image: String,
    },
}

/// All that is not proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllUnproven {
    /// The first twenty, by kind and name.
    pub named: Vec<Unproven>,
    /// How many others.
    pub others: usize,
}

impl fmt::Display for AllUnproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.named.iter().map(ToString::to_string).collect();
        f.write_str(&named.join("; "))?;
        if self.others > 0 { write!(f, "; and {} others", self.others) } else { Ok(()) }
    }
}

impl Executable {
    fn unproven(&self) -> Option<Unproven> {
        let file = || self.file.clone();
        if self.machine.is_none() {
            return Some(Unproven::NotRead { file: file() });
        }
        match (&self.on_arm, &self.image) {
            (Some(ArmProof::Ran { .. }), _) => None,
            (Some(ArmProof::Image { image: of }), Some(image)) if of == image => None,
            (_, Some(image)) => Some(Unproven::Image { file: file(), image: image.clone() }),
            (Some(ArmProof::Package { .. }), None) if !self.is_interpreter => None,
            (Some(ArmProof::Package { .. }), None) => Some(Unproven::Interpreter { file: file() }),
            (Some(ArmProof::Image { .. }) | None, None) => Some(Unproven::NoBuild { file: file() }),
        }
    }
}

impl Executables {
    /// What is not proven to run on Arm; none if all is.
    #[must_use]
    pub fn unproven(&self) -> Option<AllUnproven> {
        let mut named: Vec<Unproven> = self.seen.iter().filter_map(Executable::unproven).collect();
        named.sort();
        named.dedup();
        let others = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        (!named.is_empty()).then_some(AllUnproven { named, others })
    }
}
