//! Refuses a resource that somebody has exempted by a tag, and one whose tags cannot be read: one of them may exempt it.

use std::collections::BTreeMap;

use model::machine::Ec2Facts;

use crate::Refusal;

/// A resource with this tag is never touched, whatever the tag's value, except `false`.
pub const EXEMPTION_TAG: &str = "cloud-sweeper:exempt";

pub(crate) fn guard(facts: &Ec2Facts) -> Result<(), Refusal> {
    of_tags(facts.tags.as_ref())
}

/// The same by the tags of any resource.
pub(crate) fn of_tags(tags: Option<&BTreeMap<String, String>>) -> Result<(), Refusal> {
    let tags = tags.ok_or(Refusal::TagsUnreadable)?;
    match tags.get(EXEMPTION_TAG) {
        Some(value) if !value.trim().eq_ignore_ascii_case("false") => {
            Err(Refusal::Exempt { tag: EXEMPTION_TAG.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::facts;

    #[test]
    fn any_value_but_false_exempts() {
        let of = |value: &str| guard(&facts(|facts| facts.tag(EXEMPTION_TAG, value)));
        for value in ["", "true", "until 2027", "no", "0", "False?"] {
            assert_eq!(of(value), Err(Refusal::Exempt { tag: EXEMPTION_TAG.to_owned() }), "{value}");
        }
        for value in ["false", " FALSE "] {
            assert_eq!(of(value), Ok(()), "{value}");
        }
        assert_eq!(guard(&facts(|facts| facts.tag("cloud-sweeper:exempted", "true"))), Ok(()), "another tag");
        assert_eq!(guard(&facts(|_| ())), Ok(()));
        assert_eq!(guard(&facts(|facts| facts.0.tags = None)), Err(Refusal::TagsUnreadable));
    }
}
