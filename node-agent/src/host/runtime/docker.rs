//! Docker: `GET /containers/json` over its socket, which lists every container that runs.
//!
//! Docker's socket is root, as every runtime's; the one call that this program knows is [`CALL`], and it only reads. Names, labels and the names of
//! images are what whoever reaches the socket wanted them to be, and prove nothing. An image's *id* does: Docker makes it of the image's content. So a
//! container is the system's own if it has the name and runs the very image of an archive that root keeps for it ([`ARCHIVES`]).
//!
//! Shape: <https://docs.docker.com/reference/api/engine/version/v1.47/#tag/Container/operation/ContainerList>.

use super::{
    archive,
    report::{ARCHIVE, Container, Failure, MAX_CONTAINERS},
    socket::connect,
};
use crate::host::guarded::guarded;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1::handshake, header::HOST};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufReader},
    path::Path,
};

/// The one call; Docker takes its own newest version where none is named.
const CALL: &str = "/containers/json";
/// Most bytes of an answer: 8 KiB for each of the most containers that are known.
const MAX_ANSWER_BYTES: usize = MAX_CONTAINERS * (8 << 10);
/// The system's own containers and the archive that each is loaded from: that of ECS's agent, which the service `ecs` loads and starts, and which no task can
/// be named after while it runs. <https://github.com/aws/amazon-ecs-agent/blob/v1.86.0/ecs-init/config/common.go>
const ARCHIVES: [(&str, &str); 1] = [("ecs-agent", "/var/cache/ecs/ecs-agent.tar")];
/// Root.
const OWNER: u32 = 0;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Running {
    id: String,
    names: Vec<String>,
    image: String,
    #[serde(rename = "ImageID")]
    image_id: String,
}

/// Every container that runs. The host's files lie below `root`.
///
/// # Errors
/// If there is no Docker, it may not be asked, or it does not answer as it should.
pub(super) async fn containers(socket: &Path, root: &Path) -> Result<Vec<Container>, Failure> {
    let stream = connect(socket).await?;
    let broken = |why: String| Failure::Broken(format!("{}: {why}", socket.display()));
    let (mut sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| broken(crate::http::chain(&error)))?;
    let connection = tokio::spawn(connection);
    let answer = async {
        let request = Request::get(CALL).header(HOST, "docker").body(Empty::<Bytes>::new());
        let request = request.map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| crate::http::chain(&error))?;
        if response.status() != StatusCode::OK {
            return Err(format!("it answered by status {}", response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        Ok(body.map_err(|error| crate::http::chain(&*error))?.to_bytes())
    };
    let body = answer.await;
    connection.abort();
    read(&body.map_err(broken)?, &kept(root, OWNER)).map_err(broken)
}

/// Ids of the images that root keeps in archives, by the archive.
type Kept = BTreeMap<&'static str, BTreeSet<String>>;

fn kept(root: &Path, owner: u32) -> Kept {
    let ids = |path| -> io::Result<BTreeSet<String>> {
        archive::image_ids(BufReader::new(File::open(guarded(root, path, owner)?)?))
    };
    // Where there is none, or it is not root's alone, the container is work like any other.
    ARCHIVES.into_iter().filter_map(|(_, path)| Some((path, ids(path).ok()?))).collect()
}

fn read(body: &[u8], kept: &Kept) -> Result<Vec<Container>, String> {
    let running: Vec<Running> =
        serde_json::from_slice(body).map_err(|error| format!("its list of containers cannot be read: {error}"))?;
    let described = |one: Running| {
        // A link of another container to this one has a name with a second slash.
        let mut names = one.names.iter().filter_map(|name| name.strip_prefix('/'));
        let name = names.find(|name| !name.contains('/')).unwrap_or_default();
        let archive = ARCHIVES
            .iter()
            .find(|(of, path)| *of == name && kept.get(path).is_some_and(|ids| ids.contains(&one.image_id)));
        Container {
            name: name.to_owned(),
            owner: archive.map(|(_, path)| format!("{ARCHIVE}{path}")).unwrap_or_default(),
            id: one.id,
            image: one.image,
            ..Container::default()
        }
    };
    Ok(running.into_iter().map(described).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    const ID: &str = "8dfafdbc3a40fb3d1a9f1c1d0a8f6ab9a52b5b0d0b9f5f9f8f5a0d2f4f1e6c77";
    const IMAGE_ID: &str = "sha256:b3a1cbe3fb2f16b5e4a7e3f0c7a9e7a9d0a3a0c7f7c5e7b3f5b5a1c9f8e7d6c5";

    /// The documentation's example, cut to what is read and a little more, as a container with this name and of this image.
    fn answer(name: &str, image_id: &str) -> Vec<u8> {
        format!(
            r#"[{{"Id": "{ID}", "Names": ["/other/db", "/{name}"], "Image": "amazon/amazon-ecs-agent:latest", "ImageID": "{image_id}", "Command": "/agent",
            "Created": 1367854155, "State": "running", "Status": "Up 2 hours", "Ports": [], "Labels": {{}}, "HostConfig": {{"NetworkMode": "host"}}, "Mounts": []}}]"#
        )
        .into_bytes()
    }

    fn kept_here() -> Kept {
        ARCHIVES.into_iter().map(|(_, path)| (path, BTreeSet::from([IMAGE_ID.to_owned()]))).collect()
    }

    fn owner(body: &[u8], kept: &Kept) -> String {
        let found = read(body, kept).unwrap_or_else(|error| panic!("{error}"));
        let [one] = <[Container; 1]>::try_from(found).unwrap_or_else(|all| panic!("{all:?}"));
        assert_eq!((one.id.as_str(), one.image.as_str()), (ID, "amazon/amazon-ecs-agent:latest"));
        one.owner
    }

    #[test]
    fn a_container_is_of_an_archive_by_its_name_and_its_images_content_together() {
        let genuine = owner(&answer("ecs-agent", IMAGE_ID), &kept_here());
        assert_eq!(genuine, "Archive/var/cache/ecs/ecs-agent.tar");
        assert_eq!(owner(&answer("ecs-agent", IMAGE_ID), &Kept::new()), "", "no archive");
        assert_eq!(owner(&answer("ecs-agent-2", IMAGE_ID), &kept_here()), "", "another name");
        assert_eq!(owner(&answer("x/ecs-agent", IMAGE_ID), &kept_here()), "", "a link's name");
        assert_eq!(owner(&answer("ecs-agent", &IMAGE_ID.replace('b', "c")), &kept_here()), "", "another image");
        assert_eq!(owner(&answer("ecs-agent", ""), &kept_here()), "");
    }

    #[test]
    fn what_is_no_list_of_containers_is_refused() {
        assert_eq!(read(b"[]", &Kept::new()), Ok(Vec::new()));
        for wrong in ["", "{}", "[{}]", r#"{"message": "page not found"}"#] {
            assert!(read(wrong.as_bytes(), &Kept::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_an_archive_that_nobody_else_can_change_counts() {
        let root = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let folder = root.path().join("var/cache/ecs");
        let manifest = br#"[{"Config": "config.json"}]"#;
        let made = archive::tests::archive(&[("config.json", b"{}"), ("manifest.json", manifest)]).into_inner();
        let (file, owner) = (folder.join("ecs-agent-v1.86.0.tar"), rustix::process::geteuid().as_raw());
        let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let prepared = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, made))
            .and_then(|()| std::os::unix::fs::symlink("ecs-agent-v1.86.0.tar", folder.join("ecs-agent.tar")))
            .and_then(|()| {
                ["", "var", "var/cache", "var/cache/ecs"]
                    .iter()
                    .try_for_each(|one| allow(&root.path().join(one), 0o755))
            })
            .and_then(|()| allow(&file, 0o644));
        assert!(prepared.is_ok(), "{prepared:?}");
        let kept_as = |owner| kept(root.path(), owner);
        assert_eq!(kept_as(owner).len(), 1);
        assert_eq!(kept_as(owner + 1), Kept::new(), "somebody else's");
        for (path, mode, back) in [(&file, 0o664, 0o644), (&folder, 0o777, 0o755)] {
            assert!(allow(path, mode).is_ok());
            assert_eq!(kept_as(owner), Kept::new(), "{} is open to others", path.display());
            assert!(allow(path, back).is_ok());
        }
        assert_eq!(kept_as(owner).len(), 1);
    }
}
