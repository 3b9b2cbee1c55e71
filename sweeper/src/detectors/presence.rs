//! What a machine's not being there, or not running, says of every class of waste.

use super::{Answer, leftover};
use crate::{
    snapshot::{Coverage, Presence},
    verdict::words,
};

const NOT_LISTED: &str = "the provider lists the instance no more";
const IS_IN_STATE: &str = "the instance is ";

/// What refutes every class of waste; none if nothing of the machine's presence does.
pub(super) fn refutes(presence: &Presence, now_unix_ms: i64) -> Option<Answer> {
    match (&presence.listed, presence.coverage) {
        (Some(state), _) => {
            (state.runs() == Some(false)).then(|| Answer::Refuted { because: format!("{IS_IN_STATE}{state}") })
        }
        (None, Coverage::Complete) => Some(Answer::Gone { because: NOT_LISTED.to_owned() }),
        (None, Coverage::Failed) => None,
        // Whether one that an inventory covers is there, its provider says.
        (None, Coverage::NotAsked) => silence(presence, now_unix_ms),
    }
}

/// Whether what refuted a class of waste was that the machine had ended or stopped, by the words for it: a closed finding keeps nothing else.
#[must_use]
pub fn says_ended(because: &str) -> bool {
    because == NOT_LISTED || because == leftover::NOT_LISTED || because.starts_with(IS_IN_STATE)
}

fn silence(presence: &Presence, now_unix_ms: i64) -> Option<Answer> {
    let last_ms = presence.last_heard?.as_millisecond();
    let silent_s = u64::try_from(now_unix_ms.saturating_sub(last_ms) / 1_000).ok()?;
    (silent_s >= presence.gone_after_s)
        .then(|| Answer::Gone { because: format!("nothing has been heard of the host since {}", words::time(last_ms)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::InstanceState;
    use jiff::Timestamp;

    #[test]
    fn an_end_is_told_by_the_words_for_it() {
        let of = |listed, coverage| {
            let presence = Presence {
                listed,
                coverage,
                launched_at: None,
                last_heard: Some(Timestamp::UNIX_EPOCH),
                gone_after_s: 60,
                silent_after_s: 60,
            };
            match refutes(&presence, 90_000) {
                Some(Answer::Refuted { because } | Answer::Gone { because }) => says_ended(&because),
                other => panic!("{other:?}"),
            }
        };
        assert!(of(Some(InstanceState::Terminated), Coverage::Complete));
        assert!(of(Some(InstanceState::Stopped), Coverage::Complete));
        assert!(of(None, Coverage::Complete));
        assert!(!of(None, Coverage::NotAsked), "nothing has been heard, which is no end");
        assert!(!says_ended("work ran on it in between: CPU time"));
    }
}
