//! *A machine of Arm would do.*
//!
//! Recommended if and only if
//! - all that *rightsize* asks of the machine holds, and it is of x86-64,
//! - every executable that ran on it is known, with its ELF header, and each is proven to run on Arm,
//! - a type of Arm that the zone offers costs less, saves enough, fits, and would not have failed in any recorded hour.
//!
//! Proof is that the same was seen on a machine of Arm; that the image in which it ran has a variant for it; or, of a program of the host that is no interpreter, that the
//! distribution has the same version of its package. What an interpreter executes may bring code of its own, so its package proves nothing. A machine of another
//! architecture is a new one, made from another image: the old one is kept for a month, which is paid for.

use model::Usd;

use super::rightsize::{self, SizedMachine};
use crate::{
    blocker::{self, Blocker, NotRecommended},
    catalogue::{Architecture, Worth},
    executables::{ArmProof, Executables},
    policy::Policy,
    recommendation::{Change, Confidence, Evidence, Recommendation, Risk, Undo},
};

/// A machine, and what ran on it.
#[derive(Clone, Copy, Debug)]
pub struct ArchitectureInput<'a> {
    /// The machine.
    pub machine: SizedMachine<'a>,
    /// What ran on it.
    pub executables: &'a Executables,
    /// What its disks cost in a month: those of the old machine are kept for one.
    pub disks_per_month: &'a Worth,
}

/// Recommends the cheapest type of Arm that would have done, or says why none.
///
/// # Errors
/// Every reason that is known.
pub fn recommend(of: &ArchitectureInput<'_>, policy: &Policy) -> Result<Recommendation, NotRecommended> {
    let (mut blockers, present) = match rightsize::present(&of.machine) {
        Ok(present) => (Vec::new(), Some(present)),
        Err(refused) => (refused.blockers, None),
    };
    if let Some(present) = &present
        && present.offer.machine_type.architecture != Architecture::X86_64
    {
        blockers.push(Blocker::NotX86 { is: present.offer.machine_type.architecture.clone() });
    }
    blockers.extend(of_executables(of.executables));
    let once = match of.disks_per_month {
        Worth::Known(disks) => *disks,
        Worth::Unknown(why) => {
            blockers.push(Blocker::PriceUnknown { why: why.clone() });
            Usd::from_micros(0)
        }
    };
    let Some(present) = present.filter(|_| blockers.is_empty()) else {
        return Err(NotRecommended { blockers, considered: Vec::new() });
    };
    let from = &present.offer.machine_type;
    let (to, saving, replayed) = rightsize::cheapest(&of.machine, &present, &Architecture::Arm64, policy)?;
    let saving = saving.less(Usd::from_micros(0), once);
    blocker::pays_back(&saving, policy).map_err(NotRecommended::from)?;
    let mut risks = rightsize::risks(&of.machine, to);
    risks.extend([Risk::NewMachine, Risk::AllAddressesChange]);
    Ok(Recommendation {
        resource: of.machine.resource.clone(),
        change: Change::Architecture {
            from: from.name.clone(),
            to: to.machine_type.name.clone(),
            architecture: Architecture::Arm64,
        },
        evidence: Evidence::Programs {
            demand: Box::new(of.machine.demand.clone()),
            replayed,
            executables: count(of.executables, |_| true),
            ran_on_arm: count(of.executables, |proof| matches!(proof, ArmProof::Ran { .. })),
        },
        confidence: Confidence::with(rightsize::doubts(&of.machine, true, &saving)),
        saving: Some(saving),
        risks,
        undo: Undo::StartTheOldOne { region: of.machine.catalogue.region.clone() },
    })
}

fn of_executables(executables: &Executables) -> Vec<Blocker> {
    let unknown = || Blocker::FactUnknown { fact: "whether every program that ran on it was seen".to_owned() };
    let is_all = executables.is_all == Some(true) && !executables.seen.is_empty();
    let unproven = executables.unproven().map(|unproven| Blocker::NotProvenForArm { unproven });
    (!is_all).then(unknown).into_iter().chain(unproven).collect()
}

fn count(executables: &Executables, which: impl Fn(&ArmProof) -> bool) -> u32 {
    let number = executables.seen.iter().filter(|one| one.on_arm.as_ref().is_some_and(&which)).count();
    u32::try_from(number).unwrap_or(u32::MAX)
}
