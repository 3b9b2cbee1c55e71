//! A silent agent: if and only if the provider lists a machine as running, an agent has reported from it, and nothing has been heard of that agent for the
//! policy's time, nor since the machine was last started.
//!
//! Nobody knows what the machine does meanwhile, and no other class can say anything of it: it is billed, and is no blind spot by intention. An agent whose
//! heartbeats are refused is heard.

use super::{Answer, Class, Detector, Of, seconds};
use crate::{
    inventory::InstanceState,
    snapshot::{MachineInputs, SnapshotPart},
    verdict::{Judgement, words},
};
use jiff::Timestamp;

pub(super) const DETECTOR: Detector = Detector {
    class: Class::SilentAgent,
    version: 1,
    rests_on: &[SnapshotPart::Inventory],
    answer: Of::Machine(answer),
};

fn answer(inputs: &MachineInputs, _: &Judgement) -> Answer {
    let presence = &inputs.presence;
    let (Some(heard), Ok(now)) = (presence.last_heard, Timestamp::from_millisecond(inputs.case.now_unix_ms)) else {
        return Answer::NotKnown;
    };
    let after = seconds(presence.silent_after_s);
    if now.duration_since(heard) < after {
        return Answer::Refuted { because: format!("its agent was heard at {}", words::time(heard.as_millisecond())) };
    }
    // That it runs, and since when, its provider alone can say.
    let runs = presence.listed.as_ref().and_then(InstanceState::runs);
    let since = presence.launched_at.map(|launched_at| launched_at.max(heard));
    match since.filter(|since| runs == Some(true) && now.duration_since(*since) >= after) {
        Some(since) => Answer::Confirmed { since, until: now, work: None },
        None => Answer::NotKnown,
    }
}
