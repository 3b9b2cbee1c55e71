//! Images of containers with one static program in them, as archives in the format of `docker save`: nothing can be pulled here.

use crate::binaries;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// FOLDER PROGRAM COMMAND NAME
const MAKE: &str = r#"set -e
cd "$1"; rm -rf image; mkdir -p image/root/bin; cp "$2" "image/root/bin/${2##*/}"
tar -C image/root -cf image/layer.tar bin
printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/bin/%s"],"Cmd":%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "${2##*/}" "$3" "$(sha256sum <image/layer.tar | cut -d' ' -f1)" >image/config.json
printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$4" >image/manifest.json
tar -C image -cf image.tar manifest.json config.json layer.tar
"#;

/// Makes an image of this name in `folder`, whose containers run `program` with these words unless they are told others, and returns its archive. It takes the
/// place of one that was made there before.
///
/// # Panics
///
/// When it cannot be made.
#[must_use]
pub fn archive(folder: &Path, program: &Path, words: &[&str], name: &str) -> PathBuf {
    let mut make = Command::new(binaries::system("sh"));
    let words = serde_json::to_string(words).expect("words are text");
    make.args(["-c", MAKE, "image"]).arg(folder).arg(program).args([&words, name]);
    let done = make.output().expect("sh starts");
    assert!(done.status.success(), "{make:?}: {}", String::from_utf8_lossy(&done.stderr));
    folder.join("image.tar")
}
