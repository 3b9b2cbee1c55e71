//! An aggregated list: all zones, all regions and what is global, in one chain of pages. Pure.
//!
//! A zone is known if each page that speaks of it says what it has, or that it has nothing there (`NO_RESULTS_ON_PAGE`), and no page
//! names it among those that did not answer. Anything else makes that one zone unknown; what cannot be told of one zone makes the
//! whole list so. A list that names no place at all is malformed, not empty.

use std::collections::BTreeMap;

use crate::inventory::{Failure, FailureKind};

/// A zone's part of a page.
pub(super) struct Part<T> {
    /// `zones/europe-west3-a`, `regions/europe-west3`, `global`
    pub(super) scope: String,
    pub(super) items: Vec<T>,
    pub(super) warning: Option<Warning>,
}

/// Why a part may not be whole.
#[derive(Clone, Debug)]
pub(super) struct Warning {
    /// In Google's words; none for one that has no name here.
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

/// One piece of one page.
pub(super) enum Piece<T> {
    /// What a zone has on this page.
    Part(Part<T>),
    /// A place that did not answer, as a path.
    Unreachable(String),
    /// Of the page as a whole.
    Warning(Warning),
}

/// What a list came to.
#[derive(Debug)]
pub(super) struct Listed<T> {
    /// Each resource with its zone, its region or `global`.
    pub(super) items: Vec<(String, T)>,
    /// The places of which nothing is known, and why.
    pub(super) unknown: BTreeMap<String, Failure>,
}

/// Normal: a page that has nothing of a zone says so.
const NOTHING_HERE: &str = "NO_RESULTS_ON_PAGE";
/// Some places are named among those that did not answer.
const PARTIAL: &str = "PARTIAL_SUCCESS";

impl Warning {
    fn words(&self) -> String {
        let code = self.code.as_deref().unwrap_or("a warning without a name");
        self.message.as_deref().map_or_else(|| code.to_owned(), |message| format!("{code}: {message}"))
    }
}

/// Puts the pieces of all pages together.
pub(super) fn whole<T>(pieces: Vec<Piece<T>>) -> Result<Listed<T>, Failure> {
    let incomplete = |message: String| Failure { kind: FailureKind::Unreachable, message };
    let malformed = |message: String| Failure { kind: FailureKind::Malformed, message };
    let mut listed = Listed { items: Vec::new(), unknown: BTreeMap::new() };
    let (mut places, mut partial) = (0_usize, None);
    for piece in pieces {
        match piece {
            Piece::Part(part) => {
                places += 1;
                let place = place_of(&part.scope)
                    .ok_or_else(|| malformed(format!("a part is of `{}`, which is no place", part.scope)))?;
                let nothing =
                    part.warning.as_ref().is_some_and(|warning| warning.code.as_deref() == Some(NOTHING_HERE));
                match part.warning {
                    Some(warning) if !nothing => {
                        listed.unknown.insert(place, incomplete(warning.words()));
                    }
                    None if part.items.is_empty() => {
                        let why = "says neither what it has nor that it has nothing".to_owned();
                        listed.unknown.insert(place, malformed(why));
                    }
                    _ => listed.items.extend(part.items.into_iter().map(|item| (place.clone(), item))),
                }
            }
            Piece::Unreachable(path) => {
                places += 1;
                let why = incomplete("did not answer".to_owned());
                let place = place_of(&path)
                    .ok_or_else(|| incomplete(format!("`{path}` did not answer, and is of no zone that it names")))?;
                listed.unknown.insert(place, why);
            }
            Piece::Warning(warning) => match warning.code.as_deref() {
                Some(NOTHING_HERE) => {}
                Some(PARTIAL) => partial = Some(warning),
                _ => return Err(incomplete(warning.words())),
            },
        }
    }
    if let Some(warning) = partial.filter(|_| listed.unknown.is_empty()) {
        return Err(incomplete(format!("{}; it does not say what is missing", warning.words())));
    }
    if places == 0 {
        return Err(malformed("an answer names no zone".to_owned()));
    }
    listed.items.retain(|(place, _)| !listed.unknown.contains_key(place));
    Ok(listed)
}

/// `projects/omics/zones/europe-west3-a` → `europe-west3-a`; none for a path that holds no place.
fn place_of(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let after = |word: &str| parts.iter().position(|part| *part == word).and_then(|at| parts.get(at + 1)).copied();
    let global = || (parts.last() == Some(&"global")).then_some("global");
    after("zones").or_else(|| after("regions")).or_else(global).filter(|place| !place.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(scope: &str, items: &[u32], code: Option<&str>) -> Piece<u32> {
        let warning = code.map(|code| Warning { code: Some(code.to_owned()), message: None });
        Piece::Part(Part { scope: scope.to_owned(), items: items.to_vec(), warning })
    }

    fn warning(code: &str) -> Piece<u32> {
        Piece::Warning(Warning { code: Some(code.to_owned()), message: None })
    }

    /// The items, and the places that are not known.
    fn read(pieces: Vec<Piece<u32>>) -> Result<(Vec<u32>, Vec<String>), FailureKind> {
        let listed = whole(pieces).map_err(|why| why.kind)?;
        Ok((listed.items.into_iter().map(|(_, item)| item).collect(), listed.unknown.into_keys().collect()))
    }

    #[test]
    fn a_zone_without_results_on_a_page_is_read_from_the_others() {
        let pages = vec![
            part("zones/a", &[1], None),
            part("zones/b", &[], Some("NO_RESULTS_ON_PAGE")),
            part("zones/a", &[], Some("NO_RESULTS_ON_PAGE")),
            part("zones/b", &[2], None),
            part("regions/r", &[3], None),
            part("global", &[], Some("NO_RESULTS_ON_PAGE")),
            warning("NO_RESULTS_ON_PAGE"),
        ];
        assert_eq!(read(pages), Ok((vec![1, 2, 3], vec![])));
    }

    #[test]
    fn a_zone_that_did_not_answer_is_unknown_on_all_pages_and_the_others_are_known() {
        let why = |piece| read(vec![part("zones/a", &[1], None), part("zones/b", &[2], None), piece]);
        let only_b = Ok((vec![2], vec!["a".to_owned()]));
        assert_eq!(why(Piece::Unreachable("projects/omics/zones/a".into())), only_b);
        assert_eq!(why(Piece::Unreachable("zones/a".into())), only_b);
        assert_eq!(why(part("zones/a", &[], Some("UNREACHABLE"))), only_b);
        assert_eq!(why(part("zones/a", &[3], Some("BRAND_NEW"))), only_b, "half a zone is none");
        assert_eq!(why(part("zones/a", &[], None)), only_b, "it does not say that it is empty");
    }

    #[test]
    fn what_cannot_be_told_of_one_zone_makes_the_list_unknown() {
        let failed = |pieces: Vec<Piece<u32>>| {
            read([vec![part("zones/a", &[1], None)], pieces].into_iter().flatten().collect()).err()
        };
        assert_eq!(failed(vec![warning("PARTIAL_SUCCESS")]), Some(FailureKind::Unreachable));
        assert_eq!(failed(vec![warning("UNREACHABLE")]), Some(FailureKind::Unreachable));
        assert_eq!(failed(vec![Piece::Unreachable("cells/7".into())]), Some(FailureKind::Unreachable));
        assert_eq!(failed(vec![part("cells/7", &[2], None)]), Some(FailureKind::Malformed));
        assert_eq!(failed(vec![warning("PARTIAL_SUCCESS"), Piece::Unreachable("zones/b".into())]), None);
        assert_eq!(read(vec![]), Err(FailureKind::Malformed), "an answer without places is not an empty project");
    }
}
