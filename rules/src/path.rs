//! Patterns of cgroup paths: segments with literal text, `*`, and captures.
//!
//! No regular expressions: a pattern has at most 8 segments, and a segment at most 3 wild parts, never two in a row. A
//! segment of a path has at most 255 bytes (the kernel's bound for a name), so that one match costs at most some 30,000
//! steps; one that begins with literal text, as nearly all do, costs a comparison.

use crate::{RulesError, read::Text};
use serde::{Serialize, Serializer};

const MAX_SEGMENTS: usize = 8;
const MAX_WILD: usize = 3;

/// What a capture takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// One or more characters.
    Any,
    /// 12 or more hexadecimal digits: a container's id.
    Hex,
    /// Decimal digits.
    Number,
    /// 10 or more capital letters and digits: Slurm's SLUID.
    Code,
    /// A UUID, with `-` or `_` between its groups, or 32 hexadecimal digits.
    Uid,
}

impl Takes {
    fn accepts(self, text: &str) -> bool {
        let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match self {
            Self::Any => !text.is_empty(),
            Self::Hex => text.len() >= 12 && hex(text),
            Self::Number => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Code => {
                text.len() >= 10 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
            Self::Uid if text.len() == 32 => hex(text),
            Self::Uid => {
                let groups: Vec<&str> = text.split(['-', '_']).collect();
                groups.len() == 5
                    && groups.iter().zip([8, 4, 4, 4, 12]).all(|(group, len)| group.len() == len && hex(group))
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Some(Takes, String),
    Anything,
}

/// A pattern of consecutive segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    source: String,
    from_the_root: bool,
    segments: Vec<Vec<Piece>>,
}

/// What the captures of a pattern took, in their order.
pub type Captures<'p, 'a> = Vec<(&'p str, &'a str)>;

impl PathPattern {
    /// How many segments it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Never: an empty pattern is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Names of its captures.
    pub fn captures(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|piece| match piece {
            Piece::Some(_, name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Whether the segments of a path fit from index `start` on, and what the captures take.
    #[must_use]
    pub fn fits<'p, 'a>(&'p self, segments: &[&'a str], start: usize) -> Option<Captures<'p, 'a>> {
        if self.from_the_root && start != 0 {
            return None;
        }
        let segments = segments.get(start..)?.get(..self.segments.len())?;
        let mut captures = Vec::new();
        let all = self.segments.iter().zip(segments).all(|(pieces, segment)| {
            // No cgroup has a longer name; whoever says so gets no match, and no cost.
            segment.len() <= 255 && fits(pieces, segment, &mut captures)
        });
        all.then_some(captures)
    }

    pub(crate) fn read(text: &Text<'_>) -> Result<Self, RulesError> {
        let refuse = |what: &str, remedy: &str| Err(text.refuse(&format!("{}: {what}", text.shown()), remedy));
        let from_the_root = text.value.starts_with('/');
        let parts: Vec<&str> = text.value.strip_prefix('/').unwrap_or(text.value).split('/').collect();
        if parts.len() > MAX_SEGMENTS {
            return refuse("too many segments", "keep at most 8");
        }
        let mut segments = Vec::new();
        for part in parts {
            let pieces = match pieces(part) {
                Ok(pieces) => pieces,
                Err(what) => {
                    return refuse(
                        what,
                        "write segments of text, * and {name}, {name:hex}, {name:number}, {name:code} or {name:uid}, separated by /",
                    );
                }
            };
            let wild = |piece: &Piece| !matches!(piece, Piece::Text(_));
            if pieces.iter().filter(|piece| wild(piece)).count() > MAX_WILD {
                return refuse("more than 3 of * and {…} in one segment", "write the segment with fewer");
            }
            if pieces.windows(2).any(|pair| pair.iter().all(wild)) {
                return refuse(
                    "nothing stands between two of * and {…}",
                    "put the text between them that divides them",
                );
            }
            segments.push(pieces);
        }
        let pattern = Self { source: text.value.to_owned(), from_the_root, segments };
        let names: Vec<&str> = pattern.captures().collect();
        if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
            return refuse("two captures have the same name", "name each once");
        }
        Ok(pattern)
    }
}

fn pieces(segment: &str) -> Result<Vec<Piece>, &'static str> {
    if segment.is_empty() {
        return Err("an empty segment");
    }
    let mut pieces = Vec::new();
    let mut rest = segment;
    while let Some(at) = rest.find(['*', '{', '}']) {
        let (text, wild) = rest.split_at(at);
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        if let Some(after) = wild.strip_prefix('*') {
            pieces.push(Piece::Anything);
            rest = after;
            continue;
        }
        let Some((inner, after)) = wild.strip_prefix('{').and_then(|wild| wild.split_once('}')) else {
            return Err("a brace without its partner");
        };
        let (name, takes) = inner.split_once(':').unwrap_or((inner, ""));
        let takes = match takes {
            "" => Takes::Any,
            "hex" => Takes::Hex,
            "number" => Takes::Number,
            "code" => Takes::Code,
            "uid" => Takes::Uid,
            _ => return Err("a capture of an unknown kind"),
        };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return Err("a capture's name is not made of small letters");
        }
        pieces.push(Piece::Some(takes, name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

fn fits<'p, 'a>(pieces: &'p [Piece], text: &'a str, captures: &mut Captures<'p, 'a>) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return text.is_empty() };
    match piece {
        Piece::Text(expected) => text.strip_prefix(expected.as_str()).is_some_and(|text| fits(rest, text, captures)),
        Piece::Anything => cuts(text).any(|at| fits(rest, &text[at..], captures)),
        Piece::Some(takes, name) => {
            let kept = captures.len();
            cuts(text).rev().any(|at| {
                if !takes.accepts(&text[..at]) {
                    return false;
                }
                captures.push((name, &text[..at]));
                let fit = fits(rest, &text[at..], captures);
                if !fit {
                    captures.truncate(kept);
                }
                fit
            })
        }
    }
}

/// Where a text can be cut, its end included.
fn cuts(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    (0..=text.len()).filter(|at| text.is_char_boundary(*at))
}

impl Serialize for PathPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    fn took(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
        let text = format!(
            "version = \"1\"\n[[attribution]]\nkind = \"x\"\nlevel = \"unit\"\nid = \"x\"\npath = \"{pattern}\"\n"
        );
        let rules = crate::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let captures = (0..segments.len()).find_map(|start| rules.attribution[0].path.fits(&segments, start));
        captures.map(|all| all.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect())
    }

    #[test]
    fn captures_take_what_their_kind_allows() {
        for (pattern, path, expected) in [
            ("docker/{id:hex}", "/docker/0123456789abcdef", Some("0123456789abcdef")),
            ("docker/{id:hex}", "/docker/buildkit", None),
            ("docker/{id:hex}", "/a/docker/0123456789ab/b", Some("0123456789ab")),
            ("/docker/{id:hex}", "/a/docker/0123456789ab", None),
            ("job_{id:number}", "/slurm/job_17", Some("17")),
            ("job_{id:number}", "/slurm/job_17x", None),
            ("{id}.service", "/system.slice/a.service.service", Some("a.service")),
            ("{id}.service", "/system.slice/.service", None),
            ("*_slurmstepd.scope/job_{id:number}", "/system.slice/n1_slurmstepd.scope/job_3", Some("3")),
            (
                "k*-pod{id:uid}.slice",
                "/k-x-pod0123456789abcdef0123456789abcdef.slice",
                Some("0123456789abcdef0123456789abcdef"),
            ),
            ("k*-pod{id:uid}.slice", "/k-x-podnope.slice", None),
        ] {
            let found = took(pattern, path);
            let found = found.as_ref().and_then(|all| all.first()).map(|(_, text)| text.as_str());
            assert_eq!(found, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_hostile_segment_costs_little() {
        let begun = std::time::Instant::now();
        let path = format!("/{}", "a-".repeat(127));
        assert_eq!(took("*-{id}-*b", &path), None);
        assert_eq!(took("*-{id}-*b", &format!("/{}", "-".repeat(4_096))), None);
        assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    }
}
