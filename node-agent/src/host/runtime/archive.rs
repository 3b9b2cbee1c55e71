//! Archives of images, as `docker save` writes them and `docker load` reads them: which images they hold. ◇
//!
//! An image's id is the SHA-256 of its configuration, which lists the SHA-256 of each layer: it names one content and no other.
//! Format: <https://github.com/moby/docker-image-spec/blob/v1.3.1/v1.2.md#combined-image-json--filesystem-changeset-format>.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeSet,
    io::{self, Read, Seek},
};
use tar::Archive;

/// What lists the images.
const MANIFEST: &str = "manifest.json";
/// Most bytes of a manifest and of a configuration: both are lists of a few layers.
const MAX_BYTES: u64 = 1 << 20;
/// Most files of an archive.
const MAX_ENTRIES: usize = 10_000;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    config: String,
}

/// The ids of all images in an archive, as Docker tells them: `sha256:DIGEST`.
///
/// # Errors
/// If it cannot be read, or is no archive of images.
pub(super) fn image_ids(mut archive: impl Read + Seek) -> io::Result<BTreeSet<String>> {
    let mut manifest = Vec::new();
    visit(&mut archive, |path, content| {
        // The last one of a name is the one that unpacking leaves.
        if path == MANIFEST {
            manifest = content()?;
        }
        Ok(())
    })?;
    let images: Vec<Image> = serde_json::from_slice(&manifest)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{MANIFEST}: {error}")))?;
    archive.rewind()?;
    let mut ids = BTreeSet::new();
    visit(&mut archive, |path, content| {
        if images.iter().any(|image| image.config == path) {
            ids.insert(format!("sha256:{}", hex::encode(Sha256::digest(content()?))));
        }
        Ok(())
    })?;
    Ok(ids)
}

/// Shows each file's path and what reads it whole.
fn visit(
    archive: impl Read + Seek,
    mut one: impl FnMut(&str, &mut dyn FnMut() -> io::Result<Vec<u8>>) -> io::Result<()>,
) -> io::Result<()> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    for (count, entry) in Archive::new(archive).entries_with_seek()?.enumerate() {
        let mut entry = entry?;
        if count == MAX_ENTRIES {
            return Err(invalid("it has too many files"));
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        one(path.trim_start_matches("./"), &mut || {
            if entry.size() > MAX_BYTES {
                return Err(invalid("its manifest or configuration is too long"));
            }
            // A sparse file may be longer than it says.
            let mut content = Vec::new();
            entry.by_ref().take(MAX_BYTES).read_to_end(&mut content).map(|_| content)
        })?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An archive of these files.
    pub(in super::super) fn archive(files: &[(&str, &[u8])]) -> io::Cursor<Vec<u8>> {
        let mut made = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            made.append_data(&mut header, path, *content).unwrap_or_else(|error| panic!("{error}"));
        }
        io::Cursor::new(made.into_inner().unwrap_or_else(|error| panic!("{error}")))
    }

    /// `printf '{"os":"linux"}' | sha256sum`
    const ID: &str = "sha256:5809269daf2d55e988b09feecc13180c284754e4d2376d0f7297ab7c6a90b358";

    #[test]
    fn an_image_goes_by_the_digest_of_its_configuration_whatever_that_file_is_called() {
        let config = br#"{"os":"linux"}"#;
        for (manifest, name) in [
            (
                &br#"[{"Config":"config.json","RepoTags":["amazon/amazon-ecs-agent:latest"],"Layers":[]}]"#[..],
                "config.json",
            ),
            (br#"[{"Config":"blobs/sha256/00","Layers":[]}]"#, "blobs/sha256/00"),
        ] {
            for files in [
                [("layer.tar", &[7; 4096][..]), (name, config), (MANIFEST, manifest)],
                [(MANIFEST, manifest), ("layer.tar", &[7; 4096]), (name, config)],
            ] {
                let ids = image_ids(archive(&files)).unwrap_or_default();
                assert_eq!(ids.into_iter().collect::<Vec<_>>(), [ID], "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_archive_of_images_holds_none() {
        let long = vec![b' '; 2 << 20];
        for (what, bytes) in [
            ("nothing", io::Cursor::new(Vec::new())),
            ("noise", io::Cursor::new(vec![1; 10_000])),
            ("no manifest", archive(&[("config.json", b"{}")])),
            ("a manifest that is none", archive(&[(MANIFEST, b"{}")])),
            ("an endless manifest", archive(&[(MANIFEST, &long)])),
        ] {
            assert!(image_ids(bytes).is_err(), "{what}");
        }
        let elsewhere = archive(&[(MANIFEST, br#"[{"Config":"../etc/passwd"}]"#)]);
        assert_eq!(image_ids(elsewhere).ok(), Some(BTreeSet::new()), "only files of the archive are read");
        let mut cut = archive(&[("layer.tar", &[7; 4096]), (MANIFEST, b"[]")]).into_inner();
        cut.truncate(3000);
        assert!(image_ids(io::Cursor::new(cut)).is_err());
    }
}
