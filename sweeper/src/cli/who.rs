//! Who runs a command, as the kernel knows it. What the environment says (`USER`, `SUDO_USER`) everybody sets as they like.

use nix::unistd::{Uid, User};

/// The kernel's note of who logged in, which `sudo` and `su` leave as it is and which none but root can change.
const LOGIN_UID: &str = "/proc/self/loginuid";
/// What stands there where nobody logged in, as in a service or a container.
const NOBODY: u32 = u32::MAX;

/// The user of this process, and who logged in to become it: `root`, or `ada as root`.
pub(super) fn user() -> String {
    let login = std::fs::read_to_string(LOGIN_UID).ok().and_then(|text| text.trim().parse().ok());
    let name = |uid| User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
    named(login, rustix::process::getuid().as_raw(), name)
}

fn named(login: Option<u32>, uid: u32, name: impl Fn(u32) -> Option<String>) -> String {
    let shown = |uid| name(uid).unwrap_or_else(|| format!("uid {uid}"));
    match login.filter(|login| *login != NOBODY && *login != uid) {
        Some(login) => format!("{} as {}", shown(login), shown(uid)),
        None => shown(uid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::nodes::operator;
    use std::process::Command;

    #[test]
    fn who_logged_in_is_named_beside_who_they_became() {
        let name = |uid| match uid {
            0 => Some("root".to_owned()),
            1_000 => Some("ada".to_owned()),
            _ => None,
        };
        for (login, uid, said) in [
            (Some(1_000), 0, "ada as root"),
            (Some(1_000), 1_000, "ada"),
            (Some(NOBODY), 0, "root"),
            (None, 1_000, "ada"),
            (Some(7), 0, "uid 7 as root"),
            (None, 7, "uid 7"),
        ] {
            assert_eq!(named(login, uid, name), said, "{login:?} {uid}");
        }
    }

    /// By itself, and as the child of the test below.
    #[test]
    fn somebody_runs_this() {
        let operator = operator();
        assert!(!operator.starts_with('@') && operator.contains('@'), "{operator}");
        assert_eq!(operator.split('@').next(), Some(user().as_str()));
        if let Ok(claimed) = std::env::var("SUDO_USER") {
            assert_ne!(operator.split('@').next(), Some(claimed.as_str()), "the environment was believed");
        }
    }

    #[test]
    fn the_environment_says_nothing_about_who_runs_this() {
        let this = std::env::current_exe().expect("this program");
        let child = Command::new(this)
            .args(["--exact", "cli::who::tests::somebody_runs_this"])
            .envs([("SUDO_USER", "mallory"), ("USER", "mallory"), ("LOGNAME", "mallory")])
            .output()
            .expect("it runs again");
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
    }
}
