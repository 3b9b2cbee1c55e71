//! dpkg's database: which files it installed, and what their content was.
//!
//! Format: <https://wiki.debian.org/Teams/Dpkg/Spec/MetadataFormats> (`info/PACKAGE.list`, `info/PACKAGE.md5sums`, and the conffiles of
//! `status`).

use super::{
    Refusal, Source,
    digest::Digest,
    tree::{Stamp, Tree},
};
use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    sync::Arc,
};

const LISTS: &str = "/var/lib/dpkg/info";
const STATUS: &str = "/var/lib/dpkg/status";

pub(super) fn stamps(tree: &Tree) -> Vec<Stamp> {
    vec![tree.stamp(LISTS), tree.stamp(STATUS)]
}

/// Says each file; false if dpkg is not used here.
pub(super) fn read(tree: &Tree, take: &mut dyn FnMut(&str, Source)) -> Result<bool, Refusal> {
    match read_lists(tree, take).and_then(|()| read_conffiles(tree, take)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Refusal::of_io("dpkg's", &error)),
    }
}

fn read_lists(tree: &Tree, take: &mut dyn FnMut(&str, Source)) -> io::Result<()> {
    for entry in fs::read_dir(tree.guarded(LISTS)?)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else { continue };
        let package: Arc<str> = package.into();
        for path in fs::read_to_string(entry.path())?.lines() {
            take(path, Source::Sums(Arc::clone(&package)));
        }
    }
    Ok(())
}

/// Configuration, whose digests stand in `status`.
fn read_conffiles(tree: &Tree, take: &mut dyn FnMut(&str, Source)) -> io::Result<()> {
    for line in BufReader::new(File::open(tree.guarded(STATUS)?)?).split(b'\n') {
        let line = line?;
        let Some(line) = line.strip_prefix(b" /etc/").and_then(|line| std::str::from_utf8(line).ok()) else { continue };
        let mut words = line.split(' ');
        if let (Some(path), Some(digest)) = (words.next(), words.next().and_then(Digest::md5)) {
            take(&format!("/etc/{path}"), Source::Digest(digest));
        }
    }
    Ok(())
}

/// What the package says that the file held.
pub(super) fn digest(tree: &Tree, package: &str, path: &str) -> Option<Digest> {
    let text = fs::read_to_string(tree.on_disk(&format!("{LISTS}/{package}.md5sums"))).ok()?;
    let wanted = path.strip_prefix('/')?;
    text.lines()
        .find_map(|line| {
            let (digest, name) = line.split_once("  ")?;
            (name == wanted).then_some(digest)
        })
        .and_then(Digest::md5)
}
