//! Headers that fit, and headers of a stranger's making.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::{collection::vec, prelude::*};

/// A header with these tags: number, type, count, and where in the data they lie.
fn header(tags: &[(u32, u32, u32, u32)], data: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    let mut number = |number: u32| header.extend_from_slice(&number.to_be_bytes());
    number(u32::try_from(tags.len()).unwrap());
    number(u32::try_from(data.len()).unwrap());
    for (tag, kind, count, offset) in tags {
        [*tag, *kind, *offset, *count].into_iter().for_each(&mut number);
    }
    header.extend_from_slice(data);
    header
}

const DATA: &[u8] = b"\0\0\0\x01\0\0\0\0\x81\xed\x81\xa4\0\0chronyd\0crontab\0/etc/\0/usr/sbin/\0ab\0cd\0\0\0\0\x08";
const TAGS: [(u32, u32, u32, u32); 7] = [
    (DIR_INDEXES, INT32, 2, 0),
    (FILE_MODES, INT16, 2, 8),
    (FILE_STATES, CHAR, 2, 12),
    (BASENAMES, STRING_ARRAY, 2, 14),
    (DIR_NAMES, STRING_ARRAY, 2, 30),
    (FILE_DIGESTS, STRING_ARRAY, 2, 47),
    (FILE_DIGEST_ALGORITHM, INT32, 1, 53),
];

fn said(header: &[u8]) -> Option<Vec<String>> {
    let said = |file: Installed<'_>| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{} {:o} {}", text(file.folder), text(file.name), file.mode, text(file.digest))
    };
    files(header).map(|files| files.map(said).collect())
}

#[test]
fn each_file_has_its_folder_mode_and_digest() {
    let header = header(&TAGS, DATA);
    assert_eq!(files(&header).unwrap().algorithm, 8);
    assert_eq!(said(&header).unwrap(), ["/usr/sbin/chronyd 100755 ab", "/etc/crontab 100644 cd"]);
}

#[test]
fn what_rpm_added_when_it_installed_replaces_what_the_package_said() {
    let data = [DATA, b"\x02\0"].concat();
    let states = (FILE_STATES, CHAR, 2, 57);
    assert_eq!(said(&header(&[&TAGS[..], &[states]].concat(), &data)).unwrap(), ["/etc/crontab 100644 cd"]);
}

#[test]
fn a_package_without_files_is_one() {
    assert_eq!(said(&header(&[(1000, 6, 1, 0)], b"name\0")), Some(Vec::new()));
}

#[test]
fn what_does_not_fit_is_no_header_or_ends_the_list() {
    let with = |changed: (u32, u32, u32, u32)| {
        let tags = TAGS.map(|tag| if tag.0 == changed.0 { changed } else { tag });
        said(&header(&tags, DATA))
    };
    // Of another type, beyond the end, or more than there are.
    assert_eq!(with((DIR_NAMES, INT32, 2, 30)), None);
    assert_eq!(with((DIR_NAMES, STRING_ARRAY, u32::MAX, 30)), None);
    assert_eq!(with((BASENAMES, STRING_ARRAY, 2, u32::MAX)), None);
    assert_eq!(with((FILE_MODES, INT16, u32::MAX, 8)), None);
    assert_eq!(with((DIR_INDEXES, INT32, 2, 50)), None);
    assert_eq!(with((FILE_DIGEST_ALGORITHM, INT32, 0, 53)), None);
    assert_eq!(with((FILE_STATES, CHAR, 1, 12)).unwrap(), ["/usr/sbin/chronyd 100755 ab"]);
    // A folder that is not among them.
    assert_eq!(with((DIR_INDEXES, INT32, 2, 8)), Some(Vec::new()));
    for tag in TAGS.map(|tag| tag.0).into_iter().filter(|tag| ![BASENAMES, FILE_DIGEST_ALGORITHM].contains(tag)) {
        let tags: Vec<_> = TAGS.into_iter().filter(|one| one.0 != tag).collect();
        assert_eq!(said(&header(&tags, DATA)), None, "without {tag}");
    }
}

#[test]
fn a_header_that_ends_early_says_no_more_than_it_holds() {
    let whole = header(&TAGS, DATA);
    for end in 0..whole.len() {
        assert_eq!(said(&whole[..end]), None, "{end}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_bounds(
        tags in vec((prop_oneof![Just(BASENAMES), Just(DIR_NAMES), Just(DIR_INDEXES), Just(FILE_MODES), Just(FILE_STATES),
            Just(FILE_DIGESTS), Just(FILE_DIGEST_ALGORITHM), any::<u32>()], 0_u32..10, 0_u32..40, 0_u32..80), 0..12),
        data in vec(any::<u8>(), 0..80),
        cut in 0_usize..300,
    ) {
        let header = header(&tags, &data);
        for bytes in [&header[..], &header[cut.min(header.len())..], &data] {
            if let Some(files) = files(bytes) {
                // Each file takes at least 4 + 2 + 1 bytes of numbers, which may lie upon each other, and one for its name.
                prop_assert!(files.count() <= bytes.len());
            }
        }
    }
}
