//! Refuses a machine that has changed hands since it was found: whoever approved it may not be asked any more.

use std::collections::BTreeMap;

use model::machine::owner;

use super::Moment;
use crate::Refusal;

pub(crate) fn guard(moment: &Moment<'_>) -> Result<(), Refusal> {
    let nothing = BTreeMap::new();
    let of = |tags: Option<&BTreeMap<String, String>>| owner(tags.unwrap_or(&nothing));
    let now = moment.subject.tags().ok_or(Refusal::TagsUnreadable)?;
    let (was, is) = (of(moment.tags_before), owner(now));
    if moment.tags_before.is_some() && was == is { Ok(()) } else { Err(Refusal::OwnerChanged { was, is }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::sample::Sample;

    #[test]
    fn another_owner_is_asked_anew() {
        let [ada, grace] = ["ada", "grace"].map(|name| Some(name.to_owned()));
        let given = Sample::with(|sample| {
            sample.machine.tags.as_mut().expect("tags").insert("owner".to_owned(), "grace".to_owned());
        });
        assert_eq!(given, Err(Refusal::OwnerChanged { was: ada.clone(), is: grace }));
        let orphaned = Sample::with(|sample| drop(sample.machine.tags.as_mut().expect("tags").remove("owner")));
        assert_eq!(orphaned, Err(Refusal::OwnerChanged { was: ada.clone(), is: None }));
        let unknown = Sample::with(|sample| sample.tags_before = None);
        assert_eq!(unknown, Err(Refusal::OwnerChanged { was: None, is: ada }));
        assert_eq!(Sample::with(|sample| sample.machine.tags = None), Err(Refusal::TagsUnreadable));
        let nobodys = Sample::with(|sample| {
            sample.tags_before = Some(BTreeMap::new());
            sample.machine.tags = Some(BTreeMap::new());
        });
        assert_eq!(nobodys, Ok(()), "nobody's before and now");
    }
}
