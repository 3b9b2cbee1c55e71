//! For whom process 1 listens, by the units of Ubuntu 24.04 and of Debian 12, and each way in which somebody may have changed that.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use md5::{Digest as _, Md5};
use std::{
    collections::BTreeSet,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

const UBUNTUS: &str = "[Unit]\nDescription=OpenBSD Secure Shell server socket\n[Socket]\nListenStream=0.0.0.0:22\nListenStream=[::]:22\n\
                       BindIPv6Only=ipv6-only\nAccept=no\nFreeBind=yes\n[Install]\nWantedBy=sockets.target\nRequiredBy=ssh.service\n";
const DEBIANS: &str = "[Socket]\nListenStream=22\nAccept=yes\n[Install]\nWantedBy=sockets.target\n";
const SERVICE: &str = "[Service]\nExecStart=/usr/sbin/sshd -D\n";
const FOLDER: &str = "/usr/lib/systemd/system";

struct System(tempfile::TempDir);

impl System {
    fn with(socket: &str) -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(system.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let files = [("ssh.socket", socket), ("ssh.service", SERVICE), ("ssh@.service", SERVICE)];
        let mut sums = String::new();
        for (name, content) in files {
            let path = format!("{FOLDER}/{name}");
            system.file(&path, content);
            sums += &format!("{}  {}\n", hex::encode(Md5::digest(content)), &path[1..]);
        }
        system.file(
            "/var/lib/dpkg/info/openssh-server.list",
            &files.map(|(name, _)| format!("{FOLDER}/{name}")).join("\n"),
        );
        system.file("/var/lib/dpkg/info/openssh-server.md5sums", &sums);
        system.file("/var/lib/dpkg/status", "");
        system.link(&format!("{FOLDER}/ssh.socket"), "/etc/systemd/system/sockets.target.wants/ssh.socket");
        system
    }

    fn file(&self, path: &str, content: &str) {
        let path = self.0.path().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, to: &str, path: &str) {
        let path = self.0.path().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn has_ssh_at(&self, port: u16) -> bool {
        let owner = fs::metadata(self.0.path()).unwrap().uid();
        are_sshs(&Packages::read_owned_by(self.0.path(), &BTreeSet::new(), owner), port)
    }
}

#[test]
fn the_port_of_the_distributions_own_socket_is_sshs() {
    for socket in [UBUNTUS, DEBIANS] {
        let system = System::with(socket);
        assert!(system.has_ssh_at(22), "{socket}");
        assert!(!system.has_ssh_at(2222) && !system.has_ssh_at(80), "{socket}");
    }
    // What Ubuntu's generator makes of a port in sshd_config.
    let system = System::with(UBUNTUS);
    let generated = "[Socket]\nListenStream=\nListenStream=0.0.0.0:2222\nListenStream=[::]:2222\n";
    system.file("/run/systemd/generator/ssh.socket.d/addresses.conf", generated);
    assert!(system.has_ssh_at(2222) && !system.has_ssh_at(22));
    // A later one adds to it, and of two of one name the administrator's counts.
    system.file("/etc/systemd/system/ssh.socket.d/zz.conf", "[Socket]\nListenStream=22\n");
    assert!(system.has_ssh_at(2222) && system.has_ssh_at(22));
    system.file("/etc/systemd/system/ssh.socket.d/addresses.conf", "[Socket]\n");
    assert!(!system.has_ssh_at(2222) && system.has_ssh_at(22));
}

#[test]
fn what_somebody_has_changed_or_added_may_be_anybodys() {
    for (path, content) in [
        ("/etc/systemd/system/ssh.socket", UBUNTUS),
        ("/run/systemd/transient/ssh.socket", UBUNTUS),
        ("/usr/lib/systemd/system/ssh.socket", "[Socket]\nListenStream=22\nExecStartPre=mine\n"),
        ("/etc/systemd/system/ssh.socket.d/mine.conf", "[Socket]\nService=mine.service\n"),
        ("/etc/systemd/system/socket.d/mine.conf", "[Socket]\n"),
        ("/etc/systemd/system/ssh.service", SERVICE),
        ("/etc/systemd/system/ssh.service.d/mine.conf", "[Service]\nExecStart=mine\n"),
        // Another unit that may hold it, whether or not the distribution's is up.
        ("/etc/systemd/system/mine.socket", "[Socket]\nListenStream=0.0.0.0:22\n"),
        ("/run/systemd/transient/mine.socket", "[Socket]\nListenStream=22\n"),
        ("/etc/systemd/system/cockpit.socket.d/listen.conf", "[Socket]\nListenStream=\nListenStream=22\n"),
    ] {
        let system = System::with(UBUNTUS);
        system.file(path, content);
        assert!(!system.has_ssh_at(22), "{path}");
    }
    let disabled = System::with(UBUNTUS);
    fs::remove_file(disabled.0.path().join("etc/systemd/system/sockets.target.wants/ssh.socket")).unwrap();
    assert!(!disabled.has_ssh_at(22), "what is not enabled may not be what listens");
    let elsewhere = System::with(UBUNTUS);
    elsewhere.file("/etc/systemd/system/mine.socket", "[Socket]\nListenStream=8080\n");
    elsewhere.link("/dev/null", "/etc/systemd/system/masked.socket");
    assert!(elsewhere.has_ssh_at(22));
}
