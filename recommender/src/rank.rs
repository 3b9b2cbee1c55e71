//! Which recommendation first, and which exclude each other.
//!
//! All recommendations for one resource exclude each other, however different they are: each was made for the machine as it is, and once one of them is carried out what
//! the others rest on is history of another machine. So only one of a group can be approved; the others are made anew from what is observed then. The order is total and the same
//! however they come: what prevents failures first, then by what is surely saved, then by confidence, then by the change itself.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{ResourceKey, Usd, money::Sum};
use serde::{Deserialize, Serialize};

use crate::recommendation::{Change, Level, Recommendation};

/// Recommendations of which only one can be approved, the best first; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Their resource.
    pub resource: ResourceKey,
    /// The part of it that is changed, where several parts can be changed by themselves.
    pub part: Option<String>,
    /// All of them.
    pub ranked: Vec<Recommendation>,
}

/// What is approved, and what goes with that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The one.
    pub chosen: &'a Recommendation,
    /// All others of its group, which can be approved no more.
    pub withdrawn: Vec<&'a Recommendation>,
}

impl Group {
    /// What an approval of this change means; none if it is not among them.
    #[must_use]
    pub fn choose(&self, change: &Change) -> Option<Choice<'_>> {
        let chosen = self.ranked.iter().find(|one| one.change == *change)?;
        let withdrawn = self.ranked.iter().filter(|one| one.change != *change).collect();
        Some(Choice { chosen, withdrawn })
    }
}

/// Whether it saves, how much of it surely, how sure it is, what it is, and all of it as text for the last tie.
type Place = (bool, Reverse<Usd>, Reverse<Level>, Change, String);

fn place(of: &Recommendation) -> Place {
    let saved = of.saving.as_ref().map_or(Usd::from_micros(0), |saving| saving.surely());
    (of.saving.is_some(), Reverse(saved), Reverse(of.confidence.level), of.change.clone(), format!("{of:?}"))
}

/// Groups what excludes each other and puts all in order, the best group first. Of the same change of the same resource only the best one stays.
#[must_use]
pub fn rank(recommendations: Vec<Recommendation>) -> Vec<Group> {
    let mut groups = BTreeMap::<(ResourceKey, Option<String>), Vec<(Place, Recommendation)>>::new();
    for one in recommendations {
        let part = one.change.part().map(str::to_owned);
        groups.entry((one.resource.clone(), part)).or_default().push((place(&one), one));
    }
    let mut ranked = Vec::new();
    for ((resource, part), mut of_group) in groups {
        of_group.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut seen = std::collections::BTreeSet::new();
        of_group.retain(|(_, one)| seen.insert(one.change.clone()));
        let Some((best, _)) = of_group.first().cloned() else { continue };
        let ranked_here = of_group.into_iter().map(|(_, one)| one).collect();
        ranked.push((best, Group { resource, part, ranked: ranked_here }));
    }
    // Of equal places the resource decides, by which they are sorted already.
    ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
    ranked.into_iter().map(|(_, group)| group).collect()
}

/// What is saved in a month if the best of each group is done: never the sum of recommendations that exclude each other.
#[must_use]
pub fn total(groups: &[Group]) -> Sum {
    let best = groups.iter().filter_map(|group| group.ranked.first());
    Sum::of(best.filter_map(|best| best.saving.as_ref()).map(|saving| Some(saving.surely())))
}
