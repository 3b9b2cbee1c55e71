//! Where the elements of an XML text lie, so that a test can cut one out or put one in and leave all else as it was.
//!
//! It reads what AWS writes: no comments within, no `>` in an attribute.

use std::ops::Range;

/// One element of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Names from the root to this one: `DescribeVolumesResponse/volumeSet/item/size`.
    pub path: String,
    /// The whole of it.
    pub whole: Range<usize>,
    /// What lies between its tags; none for `<size/>`.
    pub inner: Option<Range<usize>>,
}

/// All elements, each after those that lie within it.
///
/// # Panics
///
/// When the text is not well-formed.
#[must_use]
pub fn elements(xml: &str) -> Vec<Element> {
    let mut found = Vec::new();
    let mut open: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(begin) = xml[at..].find('<').map(|offset| at + offset) {
        let end = begin + xml[begin..].find('>').expect("a tag ends") + 1;
        at = end;
        let tag = &xml[begin + 1..end - 1];
        if tag.starts_with(['?', '!']) {
            continue;
        }
        let path = |open: &[(&str, usize, usize)], last: &str| {
            open.iter().map(|(name, ..)| *name).chain([last]).collect::<Vec<_>>().join("/")
        };
        if tag.starts_with('/') {
            let (name, start, inner) = open.pop().expect("an end has a begin");
            let path = path(&open, name);
            found.push(Element { path, whole: start..end, inner: Some(inner..begin) });
            continue;
        }
        let name = tag.trim_end_matches('/').split_whitespace().next().expect("an element has a name");
        if tag.ends_with('/') {
            found.push(Element { path: path(&open, name), whole: begin..end, inner: None });
        } else {
            open.push((name, begin, end));
        }
    }
    assert!(open.is_empty(), "{open:?} never end");
    found
}

/// The text with something else in this place.
#[must_use]
pub fn with(xml: &str, place: &Range<usize>, text: &str) -> String {
    format!("{}{text}{}", &xml[..place.start], &xml[place.end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_with_what_is_in_them() {
        let xml = "<?xml version='1.0'?><a x='1'><b>c</b><d/></a>";
        let found = elements(xml);
        let told: Vec<_> = found.iter().map(|e| (e.path.as_str(), &xml[e.whole.clone()])).collect();
        assert_eq!(told, [("a/b", "<b>c</b>"), ("a/d", "<d/>"), ("a", "<a x='1'><b>c</b><d/></a>")]);
        assert_eq!(with(xml, &found[0].whole, ""), "<?xml version='1.0'?><a x='1'><d/></a>");
        assert_eq!(found[0].inner.as_ref().map(|inner| &xml[inner.clone()]), Some("c"));
    }
}
