//! What a machine's not being there, or not running, says of every class of waste.

use super::Answer;
use crate::{
    snapshot::{Coverage, Presence},
    verdict::words,
};

/// What refutes every class of waste; none if nothing of the machine's presence does.
pub(super) fn refutes(presence: &Presence, now_unix_ms: i64) -> Option<Answer> {
    match (&presence.listed, presence.coverage) {
        (Some(state), _) => {
            (state.runs() == Some(false)).then(|| Answer::Refuted { because: format!("the instance is {state}") })
        }
        (None, Coverage::Complete) => {
            Some(Answer::Gone { because: "the provider lists the instance no more".to_owned() })
        }
        (None, Coverage::Failed) => None,
        // Whether one that an inventory covers is there, its provider says.
        (None, Coverage::NotAsked) => silence(presence, now_unix_ms),
    }
}

fn silence(presence: &Presence, now_unix_ms: i64) -> Option<Answer> {
    let last_ms = presence.last_heard?.as_millisecond();
    let silent_s = u64::try_from(now_unix_ms.saturating_sub(last_ms) / 1_000).ok()?;
    (silent_s >= presence.gone_after_s)
        .then(|| Answer::Gone { because: format!("nothing has been heard of the host since {}", words::time(last_ms)) })
}
