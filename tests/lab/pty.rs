//! A terminal: a program runs in it, keys go in, and what is on its screen can be read.

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZeroU16,
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// A program in a terminal of its own. Dropping it ends the program.
pub struct Terminal {
    master: File,
    /// Held open, so that the terminal can be looked at after the program's end.
    slave: File,
    child: Child,
    shown: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
}

impl Terminal {
    /// Starts `command` in a terminal of so many columns and rows.
    ///
    /// # Panics
    ///
    /// When there is no terminal to be had, or the command does not start.
    #[must_use]
    pub fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal that can be used");
        let name = ptsname(&master, Vec::new()).expect("a terminal with a name");
        let path = PathBuf::from(std::ffi::OsString::from_vec(name.into_bytes()));
        let slave = File::options().read(true).write(true).open(path).expect("the other side of the terminal");
        let master = File::from(master);
        tcsetwinsize(&master, size(columns, rows)).expect("a terminal has a size");
        // `setsid` makes it the controlling terminal, so that Ctrl-C and a new size become signals.
        let mut with = Command::new(crate::binaries::system("setsid"));
        with.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => with.env(key, value),
                None => with.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            with.current_dir(folder);
        }
        let side = || Stdio::from(slave.try_clone().expect("a second handle"));
        let child = with.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(side());
        let child = child.spawn().expect("setsid starts");
        let shown = Arc::new(Mutex::new((vt100::Parser::new(cells(rows), cells(columns), 0), Vec::new())));
        let (mut reader, writer) = (master.try_clone().expect("a second handle"), Arc::clone(&shown));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Ends when both sides are closed.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut shown = writer.lock().unwrap_or_else(PoisonError::into_inner);
                shown.0.process(&buffer[..count]);
                shown.1.extend_from_slice(&buffer[..count]);
            }
        });
        Self { master, slave, child, shown }
    }

    /// What is on the screen, line by line.
    #[must_use]
    pub fn screen(&self) -> String {
        self.inspect(|parser, _| parser.screen().contents())
    }

    /// Every byte that the program wrote.
    #[must_use]
    pub fn written(&self) -> Vec<u8> {
        self.inspect(|_, bytes| bytes.to_vec())
    }

    /// Whether the screen is the one that a shell would go on with: not the alternate one, and with a cursor.
    #[must_use]
    pub fn is_given_back(&self) -> bool {
        self.inspect(|parser, _| !parser.screen().alternate_screen() && !parser.screen().hide_cursor())
    }

    fn inspect<T>(&self, with: impl FnOnce(&vt100::Parser, &[u8]) -> T) -> T {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        with(&shown.0, &shown.1)
    }

    /// How the terminal treats keys: echo, line editing, signals.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    #[must_use]
    pub fn modes(&self) -> Termios {
        tcgetattr(&self.slave).expect("a terminal has modes")
    }

    /// Presses keys.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Gives it another size.
    ///
    /// # Panics
    ///
    /// When the terminal is gone.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).0.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.master, size(columns, rows)).expect("a terminal has a size");
    }

    /// The program's process id.
    #[must_use]
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// How the program ended, or `None` while it runs.
    ///
    /// # Panics
    ///
    /// When the kernel does not know it.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be asked for")
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a terminal has a size")
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
