//! Refuses a machine that somebody has exempted by a label, and one whose labels cannot be read: one of them may exempt it.

use model::machine::ComputeEngineFacts;

use crate::Refusal;

/// A machine of Google Cloud with this label is never touched, whatever the label's value, except `false`. Google takes no colon in a label's key.
pub const EXEMPTION_LABEL: &str = "cloud-sweeper-exempt";

pub(super) fn guard(facts: &ComputeEngineFacts) -> Result<(), Refusal> {
    let labels = facts.labels.as_ref().ok_or(Refusal::TagsUnreadable)?;
    match labels.get(EXEMPTION_LABEL) {
        Some(value) if value != "false" => Err(Refusal::Exempt { tag: EXEMPTION_LABEL.to_owned() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute_engine::{
        holds, may_stop_compute_engine,
        sample::{facts, labelled},
    };
    use model::plan::Condition;

    #[test]
    fn any_value_but_false_exempts() {
        let exempt = Err(Refusal::Exempt { tag: EXEMPTION_LABEL.to_owned() });
        for value in ["", "true", "no", "0"] {
            let facts = labelled(EXEMPTION_LABEL, value);
            assert_eq!(may_stop_compute_engine(&facts), exempt, "{value}");
            assert_eq!(holds(&Condition::TagsPermit, &facts), exempt, "{value}");
        }
        assert_eq!(guard(&labelled(EXEMPTION_LABEL, "false")), Ok(()));
        assert_eq!(guard(&labelled("cloud-sweeper-exempted", "true")), Ok(()), "another label");
        assert_eq!(may_stop_compute_engine(&facts(|facts| facts.labels = None)), Err(Refusal::TagsUnreadable));
    }
}
