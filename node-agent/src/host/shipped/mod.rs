//! What of this system its distribution shipped: executables, units, crontabs.
//!
//! The kernel tells which file a process executes ([`Executable`]); a name would prove nothing. Such a file is the system's own if and only if
//! dpkg's or rpm's database lists it, its content has the digest that the database holds, and root owns it and every folder above, and
//! nobody else may write there; or it is a daemon of one of two signed snaps. Each file is hashed once, and only where that could make a process housekeeping. What cannot be read is
//! not the system's own, and so somebody's work.
//!
//! Cost: see `docs/journal/2026-11-22-provenance.md`.

mod crontabs;
mod packages;
mod schedules;
mod sockets;
mod timers;
mod units;

use crate::coverage::{Capabilities, Status};
use crontabs::Crontabs;
use node_agent_ebpf::Executable;
use packages::Packages;
use schedules::Schedules;
pub use schedules::{Existing, Next};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    time::{Duration, Instant},
};

/// The package databases are read again at most this often while they change.
const REREAD_AFTER: Duration = Duration::from_secs(10);

/// How many there are: what the distribution ships as it is, and all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// As a package ships them.
    pub shipped: u32,
    /// All others.
    pub others: u32,
}

impl Count {
    fn add(&mut self, is_shipped: bool) {
        let count = if is_shipped { &mut self.shipped } else { &mut self.others };
        *count = count.saturating_add(1);
    }
}

/// The system's own files.
#[derive(Debug)]
pub struct Shipped {
    packages: Packages,
    read_at: Instant,
    /// Executables outside the package database that the rules vouch for.
    vouched: BTreeSet<String>,
    units: HashMap<String, bool>,
    /// Whether process 1 holds a port for ssh's server.
    ports: HashMap<u16, bool>,
    crontabs: Crontabs,
    ships_crontabs: Result<(), String>,
    schedules: Schedules,
    is_reread: bool,
}

impl Shipped {
    /// Reads what is below `root`, which is `/` unless the host's files are mounted elsewhere. Best called while the agent holds all of its
    /// rights: people's crontabs are hidden from others.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let packages = Packages::read(root, &BTreeSet::new());
        let mut crontabs = Crontabs::watch(root);
        let ships_crontabs = crontabs.check(&packages);
        Self {
            packages,
            read_at: Instant::now(),
            vouched: BTreeSet::new(),
            units: HashMap::new(),
            ports: HashMap::new(),
            crontabs,
            ships_crontabs,
            schedules: Schedules::new(root),
            is_reread: true,
        }
    }

    /// Begins a sample: notices what was installed, changed or removed since the last one.
    pub fn begin(&mut self, vouched: &BTreeSet<String>) {
        let has_changed = self.packages.has_changed() && self.read_at.elapsed() >= REREAD_AFTER;
        if has_changed || *vouched != self.vouched {
            self.packages = Packages::read(self.packages.root(), vouched);
            self.vouched.clone_from(vouched);
            self.read_at = Instant::now();
            self.crontabs.forget();
            self.is_reread = true;
        }
        self.units.clear();
        self.ports.clear();
        self.ships_crontabs = self.crontabs.check(&self.packages);
    }

    /// Where a package database, or a rule, has a file that may be this executable. Its content is not looked at.
    #[must_use]
    pub fn locate(&mut self, executable: &Executable) -> Option<&str> {
        self.packages.locate(executable)
    }

    /// Whether this executable is the system's own, or one that the rules vouch for.
    pub fn is_own(&mut self, executable: &Executable) -> bool {
        self.packages.is_own(executable)
    }

    /// Whether the distribution ships this unit as it is: nobody wrote, changed or made it up at run time.
    pub fn has_unit(&mut self, name: &str) -> bool {
        if let Some(known) = self.units.get(name) {
            return *known;
        }
        let is_shipped = units::is_shipped(&self.packages, name);
        self.units.insert(name.to_owned(), is_shipped);
        is_shipped
    }

    /// Whether process 1, where it listens at this TCP port, does so for ssh's server.
    pub fn has_ssh_at(&mut self, port: u16) -> bool {
        let packages = &self.packages;
        *self.ports.entry(port).or_insert_with(|| sockets::are_sshs(packages, port))
    }

    /// Whether the distribution ships every table and every job of cron's.
    #[must_use]
    pub fn has_crontabs(&self) -> bool {
        self.ships_crontabs.is_ok()
    }

    /// Which timers and crontabs exist, and whether it is known when timers elapse, or why it is not.
    pub fn schedules(&mut self) -> (Existing, Result<(), (Status, String)>) {
        self.schedules.read(&mut self.packages, &self.crontabs, std::mem::take(&mut self.is_reread))
    }

    /// Says what can be known here.
    pub fn state(&self, capabilities: &mut Capabilities) {
        match self.packages.refusal() {
            None => capabilities.ok("provenance"),
            Some(refusal) => capabilities.set("provenance", refusal.status, refusal.reason.clone()),
        }
        match &self.ships_crontabs {
            Ok(()) => capabilities.ok("crontabs"),
            Err(reason) => capabilities.set("crontabs", Status::NotApplicable, reason.clone()),
        }
    }
}
