//! An idle GPU: if and only if the machine is not idle as a whole, its GPUs were read without a gap for the policy's time up to its newest heartbeat, and
//! none of them worked above its threshold in any interval of it.
//!
//! Nobody acts on it: the machine works, or waits. What it says is that the same work would be done on a machine without a GPU, or that the work has lost its
//! GPU without telling anybody. GPUs that could not be read confirm nothing, and neither does a time that nobody saw.

use super::{Answer, Class, Detector, Of};
use crate::{
    snapshot::{MachineInputs, SnapshotPart},
    verdict::{Case, Gpu, GpuUse, Judgement, Signal, gpu_use, words},
};
use jiff::Timestamp;
use model::Verdict;

pub(super) const DETECTOR: Detector =
    Detector { class: Class::IdleGpu, version: 1, rests_on: &[SnapshotPart::Inventory], answer: Of::Machine(answer) };

fn answer(inputs: &MachineInputs, judgement: &Judgement) -> Answer {
    let Case { node, .. } = &inputs.case;
    match node.as_ref().map(|node| node.gpu) {
        Some(Gpu::Measured) => {}
        Some(Gpu::Absent) => return Answer::Refuted { because: "it has no GPU any more".to_owned() },
        Some(Gpu::NotMeasured) | None => return Answer::NotKnown,
    }
    match judgement.verdict {
        Verdict::Idle => return Answer::Refuted { because: "the machine is idle as a whole".to_owned() },
        // What is not known of the machine (a node that fell silent, or is disputed) is not known of its GPUs.
        Verdict::Unknown | Verdict::Stuck => return Answer::NotKnown,
        Verdict::Active | Verdict::Waiting => {}
    }
    let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
    match gpu_use(&inputs.case) {
        GpuUse::Unused { since_unix_ms, until_unix_ms } => match (time(since_unix_ms), time(until_unix_ms)) {
            (Some(since), Some(until)) => Answer::Confirmed { since, until, work: None },
            _ => Answer::NotKnown,
        },
        GpuUse::Used { until_unix_ms } => Answer::Refuted {
            because: format!("{} was seen up to {}", words::signal(Signal::Gpu), words::time(until_unix_ms)),
        },
        GpuUse::NotKnown => Answer::NotKnown,
    }
}
