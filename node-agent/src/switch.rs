//! The kill switch: a file. While it exists nothing is measured, no program is attached, and nothing is sent.
//!
//! It is checked once a second and at each sample: two system calls, 1.5 µs (measured on 6.18). Polling and not inotify, because the file's folder
//! may come and go with the service that makes it. The sweeper hears of it in the last heartbeat (capability `kill_switch`) and then nothing:
//! silence is *unknown*, on which nobody acts. When the file is gone, counting begins anew.

use crate::{
    config::Config,
    coverage::{Capabilities, Status},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Name of the file in the state directory, which is looked at as well.
const IN_STATE_DIR: &str = "stop";
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Where the switch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    files: [PathBuf; 2],
}

/// How a file stands.
enum Seen {
    Absent,
    There,
    Hidden(io::Error),
}

fn check(path: &Path) -> Seen {
    match fs::symlink_metadata(path) {
        Ok(_) => Seen::There,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Seen::Absent,
        Err(error) => Seen::Hidden(error),
    }
}

impl Switch {
    /// The one of this configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self { files: [config.stop_file.clone(), config.state_dir.join(IN_STATE_DIR)] }
    }

    /// The file that stops collection, if there is one.
    #[must_use]
    pub fn thrown(&self) -> Option<&Path> {
        self.files.iter().find(|path| matches!(check(path), Seen::There)).map(PathBuf::as_path)
    }

    /// Returns once the switch is thrown, with its file.
    pub async fn until_thrown(&self) -> &Path {
        loop {
            if let Some(path) = self.thrown() {
                return path;
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// Returns once it is not.
    pub async fn until_released(&self) {
        while self.thrown().is_some() {
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// Makes the file, and its folder if need be.
    ///
    /// # Errors
    /// If the user may not.
    pub fn throw(&self) -> io::Result<&Path> {
        let [path, _] = &self.files;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Whatever lies there already stops as well. It is not opened: a link would have its target emptied.
        match fs::File::create_new(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(path),
        }
    }

    /// Takes every such file away; says which there were.
    ///
    /// # Errors
    /// If the user may not.
    pub fn release(&self) -> io::Result<Vec<&Path>> {
        let mut gone = Vec::new();
        for path in &self.files {
            match fs::remove_file(path) {
                Ok(()) => gone.push(path.as_path()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }

    /// States the capability `kill_switch`: *denied* means that it is thrown.
    pub fn state(&self, capabilities: &mut Capabilities) {
        if let Some(path) = self.thrown() {
            let reason = format!("collection is stopped by {}; it goes on when that file is gone", path.display());
            return capabilities.set("kill_switch", Status::Denied, reason);
        }
        capabilities.ok("kill_switch");
        for path in &self.files {
            if let Seen::Hidden(error) = check(path) {
                capabilities.set(
                    "kill_switch",
                    Status::Broken,
                    format!("{} cannot be looked at: {error}", path.display()),
                );
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn switch(folder: &Path) -> Switch {
        Switch { files: [folder.join("run/stop"), folder.join("state/stop")] }
    }

    #[test]
    fn either_file_stops_and_release_takes_both_away() {
        let folder = tempfile::tempdir().unwrap();
        let switch = switch(folder.path());
        assert_eq!(switch.thrown(), None);
        assert_eq!(switch.throw().unwrap(), folder.path().join("run/stop"));
        assert_eq!(switch.thrown(), Some(folder.path().join("run/stop").as_path()));
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::write(folder.path().join("state/stop"), "because").unwrap();
        fs::remove_file(folder.path().join("run/stop")).unwrap();
        assert_eq!(switch.thrown(), Some(folder.path().join("state/stop").as_path()));
        switch.throw().unwrap();
        assert_eq!(switch.release().unwrap().len(), 2);
        assert_eq!((switch.thrown(), switch.release().unwrap().len()), (None, 0));
    }

    #[test]
    fn a_link_that_leads_nowhere_stops_as_well() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("run")).unwrap();
        std::os::unix::fs::symlink("/nonexistent", folder.path().join("run/stop")).unwrap();
        assert!(switch(folder.path()).thrown().is_some());
    }

    #[test]
    fn throwing_it_twice_is_no_error_and_leaves_the_target_of_a_link_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let switch = switch(folder.path());
        let target = folder.path().join("target");
        fs::write(&target, "somebody's").unwrap();
        fs::create_dir(folder.path().join("run")).unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("run/stop")).unwrap();
        for _ in 0..2 {
            switch.throw().unwrap();
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "somebody's");
        assert!(switch.thrown().is_some());
    }

    #[test]
    fn the_capability_says_which_file_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let switch = switch(folder.path());
        let mut capabilities = Capabilities::default();
        switch.state(&mut capabilities);
        assert_eq!(capabilities.status("kill_switch"), Some(Status::Ok));
        switch.throw().unwrap();
        switch.state(&mut capabilities);
        let wire = capabilities.to_wire();
        assert!(wire[0].reason.contains("run/stop"), "{wire:?}");
        assert_eq!(capabilities.status("kill_switch"), Some(Status::Denied));
    }
}
