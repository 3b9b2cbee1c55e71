//! Who besides the sweeper can change or read the files that it rests on.
//!
//! By the rules that sshd has for its files: they belong to root or to the user who runs this, and nobody else can write them. It is always the file that
//! counts and never a link to it: Kubernetes shows secrets and configuration maps by links, which have all rights. The folders are not looked at, since
//! Kubernetes makes those that everybody could write to, and mounts them so that nobody can.

use super::{Config, read_policy};
use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use toml::Table;

const ROOT: u32 = 0;

/// The rights that matter, and who asks.
#[derive(Clone, Copy, Debug)]
struct Rights {
    mode: u32,
    owner: u32,
    /// Who has the folder, if that can be told.
    folder_of: Option<u32>,
    /// Whether this process is of the file's group.
    is_of_group: bool,
    me: u32,
}

impl Rights {
    fn of(metadata: &Metadata, file: &Path) -> Self {
        use rustix::process::{getegid, geteuid, getgroups};
        let group = metadata.gid();
        let is_among = || getgroups().is_ok_and(|groups| groups.iter().any(|one| one.as_raw() == group));
        let folder = fs::canonicalize(file).ok().and_then(|file| fs::metadata(file.parent()?).ok());
        Self {
            folder_of: folder.map(|folder| folder.uid()),
            mode: metadata.mode() & 0o7777,
            owner: metadata.uid(),
            is_of_group: getegid().as_raw() == group || is_among(),
            me: geteuid().as_raw(),
        }
    }

    /// Who besides root and this user can change it, and which command ends that. Root runs commands beside a sweeper that has a user of its own, to
    /// whom the folder belongs as well: who has the folder can put another file there anyway.
    fn changeable(self, file: &Path) -> Option<String> {
        let Self { mode, owner, me, folder_of, .. } = self;
        let is_the_sweepers = owner == me || (me == ROOT && folder_of == Some(owner));
        let file = file.display();
        if mode & 0o022 != 0 {
            return Some(format!("others than its owner can write it (mode {mode:04o}); run `chmod go-w {file}`"));
        }
        (owner != ROOT && !is_the_sweepers).then(|| {
            format!("it belongs to the user {owner}, who is neither root nor the one who runs this ({me}); run `chown root {file}`")
        })
    }

    /// Who besides root and this user can read it, and which command ends that. What root lets this user's group read is as it is meant: so does
    /// Kubernetes with `fsGroup`.
    fn readable(self, file: &Path) -> Option<String> {
        let Self { mode, owner, is_of_group, .. } = self;
        let by_group = mode & 0o040 != 0 && !(owner == ROOT && is_of_group);
        (by_group || mode & 0o004 != 0).then(|| {
            let right = if by_group { "go-r" } else { "o-r" };
            format!("others than its owner can read it (mode {mode:04o}); run `chmod {right} {}`", file.display())
        })
    }
}

/// Who besides root and this user can change what was opened, and which command ends that.
pub(super) fn changeable(opened: &fs::File, file: &Path) -> std::io::Result<Option<String>> {
    Ok(Rights::of(&opened.metadata()?, file).changeable(file))
}

/// What to say at the start of files that others can read or change: of secrets, of the configuration, and of the policy, which is not used then. Files
/// that cannot be read are somebody else's to tell.
pub(super) fn warnings(config: &Config, file: Option<&Path>) -> Vec<String> {
    let mut said = Vec::new();
    let rights = |path: &Path| fs::metadata(path).ok().map(|metadata| Rights::of(&metadata, path));
    if let Some((path, rights)) = file.and_then(|path| Some((path, rights(path)?))) {
        let named = format!("the configuration {}", path.display());
        said.extend(
            rights
                .changeable(path)
                .map(|why| format!("{named} says who may approve what is stopped, and where: {why}")),
        );
        let readable = rights.readable(path).filter(|_| holds_a_secret(path));
        said.extend(readable.map(|why| format!("{named} holds a secret: {why}")));
    }
    for (key, path) in secret_files(config) {
        let Some(rights) = rights(path) else { continue };
        let why = rights.changeable(path).or_else(|| rights.readable(path));
        said.extend(why.map(|why| format!("the secret {} (`{key}`): {why}", path.display())));
    }
    if let Some(policy) = config.approvals.policy_file.as_deref()
        && let Err(error @ super::PolicyError::Changeable { .. }) = read_policy(policy)
    {
        said.push(format!("{error}; nobody can approve anything, and nothing is carried out"));
    }
    said
}

fn secret_files(config: &Config) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let Config { slack, email, api, .. } = config;
    let files = [
        ("slack.token_file", &slack.token_file),
        ("slack.signing_secret_file", &slack.signing_secret_file),
        ("slack.app_token_file", &slack.app_token_file),
        ("email.password_file", &email.password_file),
        ("api.tls_key", &api.tls_key),
    ];
    files.into_iter().filter_map(|(key, file)| Some((key, file.as_ref()?)))
}

/// Whether a configuration file itself holds what others should not read.
fn holds_a_secret(file: &Path) -> bool {
    let Some(table) = fs::read_to_string(file).ok().and_then(|text| text.parse::<Table>().ok()) else { return false };
    let text = |section: &str, key: &str| table.get(section)?.as_table()?.get(key)?.as_str();
    let secrets = [("slack", "token"), ("slack", "signing_secret"), ("slack", "app_token"), ("email", "password")];
    let url = text("store", "url").unwrap_or_default();
    secrets.into_iter().any(|(section, key)| text(section, key).is_some())
        || url.contains('@')
        || url.contains("password=")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_file_is_safe_if_root_or_this_user_has_it_and_nobody_else_can_write_it() {
        let of_folder = |mode, owner, me, folder_of| {
            Rights { mode, owner, folder_of: Some(folder_of), is_of_group: true, me }.changeable(Path::new("/a"))
        };
        let of = |mode, owner| of_folder(mode, owner, 1_000, 1_001);
        for (mode, owner) in [(0o644, 0), (0o600, 1_000), (0o444, 1_000), (0o755, 0)] {
            assert_eq!(of(mode, owner), None, "{mode:o} of {owner}");
        }
        for (mode, owner, command) in
            [(0o664, 0, "chmod go-w /a"), (0o646, 1_000, "chmod go-w /a"), (0o600, 1_001, "chown root /a")]
        {
            assert!(of(mode, owner).unwrap().contains(command), "{mode:o} of {owner}");
        }
        assert_eq!(of_folder(0o600, 1_000, 0, 1_000), None, "root beside a sweeper with a user of its own");
        assert!(of_folder(0o600, 1_000, 0, 0).is_some(), "somebody's file in root's folder");
        assert!(of_folder(0o600, 1_000, 1_001, 1_000).is_some(), "somebody else's folder");
    }

    #[test]
    fn a_secret_is_safe_if_its_owner_alone_reads_it_or_root_gives_it_to_this_users_group() {
        let of = |mode, owner, is_of_group| {
            Rights { mode, owner, folder_of: None, is_of_group, me: 1_000 }.readable(Path::new("/a"))
        };
        for (mode, owner, is_of_group) in [(0o600, 1_000, true), (0o400, 0, false), (0o440, 0, true), (0o640, 0, true)]
        {
            assert_eq!(of(mode, owner, is_of_group), None, "{mode:o} of {owner}");
        }
        for (mode, owner, is_of_group) in
            [(0o644, 0, true), (0o640, 1_000, true), (0o440, 0, false), (0o604, 1_000, true)]
        {
            assert!(of(mode, owner, is_of_group).unwrap().contains("run `chmod "), "{mode:o} of {owner}");
        }
    }

    #[test]
    fn what_others_can_read_or_change_is_said_of_each_file_behind_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let (file, link) = (folder.path().join(format!("..{name}")), folder.path().join(name));
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            if !link.exists() {
                symlink(&file, &link).unwrap();
            }
            link
        };
        let all = |config_mode, secret_mode, policy_mode| {
            let (secret, policy) = (write("secret", "hunter2", secret_mode), write("policy.toml", "", policy_mode));
            let text = format!(
                "[email]\nhost = \"mail\"\nfrom = \"a@b\"\nto = [\"a@b\"]\nusername = \"a\"\npassword_file = {secret:?}\n\
                 [store]\nurl = \"postgres://ada:hunter2@host/sweeper\"\n[approvals]\npolicy_file = {policy:?}\n"
            );
            let file = write("sweeper.toml", &text, config_mode);
            let config = Config::load(Some(&file), []).unwrap();
            config.warnings(Some(&file))
        };
        assert_eq!(all(0o600, 0o400, 0o644), Vec::<String>::new());
        let said = all(0o646, 0o604, 0o664);
        let parts = [
            "sweeper.toml says who may approve",
            "holds a secret",
            "`email.password_file`",
            "nobody can approve anything",
        ];
        assert_eq!(said.len(), parts.len(), "{said:#?}");
        for (line, part) in said.iter().zip(parts) {
            assert!(line.contains(part) && line.contains("run `chmod ") && !line.contains("hunter2"), "{line}");
        }
    }
}
