//! The tokens of one list's pages: each page's leads to the next.

use std::collections::HashSet;

use super::collect::malformed;
use crate::inventory::Failure;

/// Where the next page is.
#[derive(Debug)]
pub(super) struct Tokens {
    seen: HashSet<String>,
    next: Step,
}

#[derive(Debug)]
enum Step {
    First,
    To(String),
    Twice,
    End,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { seen: HashSet::new(), next: Step::First }
    }
}

impl Tokens {
    /// What to ask the next page with, the first one with nothing; none after the last one.
    ///
    /// # Errors
    /// The last page led to an earlier one: that would go round for ever.
    pub(super) fn next(&mut self) -> Result<Option<Option<String>>, Failure> {
        match std::mem::replace(&mut self.next, Step::End) {
            Step::First => Ok(Some(None)),
            Step::To(token) => Ok(Some(Some(token))),
            Step::Twice => Err(malformed("a page token came twice")),
            Step::End => Ok(None),
        }
    }

    /// Takes the token of the page that was just read; an empty one leads nowhere.
    pub(super) fn follow(&mut self, token: Option<String>) {
        self.next = match token.filter(|token| !token.is_empty()) {
            None => Step::End,
            Some(token) if self.seen.insert(token.clone()) => Step::To(token),
            Some(_) => Step::Twice,
        };
    }
}
