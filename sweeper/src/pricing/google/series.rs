//! What each series of machines is called in the catalogue, which names no type of machine: its descriptions are all there is.
//!
//! A series is in this table if it is billed by cores and memory under one name each. Left out, and so unpriced, is what is billed
//! otherwise or in a way that is not published: M2 (a premium besides), Z3 (disks of the host come with each, and two SKUs could be theirs), A3 and later GPUs, TPUs, machines without a hypervisor.

/// How a series is billed.
#[derive(Debug)]
pub(super) struct Series {
    /// As types of machines begin: `n2`.
    pub(super) name: &'static str,
    /// What stands before `Instance Core` and `Instance Ram`.
    pub(super) predefined: &'static str,
    /// The same of types of the customer's own measures; several are spellings of one. None: the series has none.
    pub(super) custom: &'static [&'static str],
    /// Of these, MiB for each core that are not extended memory.
    /// <https://cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type>
    pub(super) mib_per_core: u32,
    /// Whether a type may have more: extended memory.
    pub(super) extends: bool,
    /// How disks of the host are billed.
    pub(super) local_ssd: LocalSsd,
}

/// How disks of the host are billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalSsd {
    /// Under the name that most series share.
    Shared,
    /// Under a name of the series' own.
    Own(&'static str),
    /// In no known way.
    NotKnown,
}

const fn predefined(name: &'static str, words: &'static str, local_ssd: LocalSsd) -> Series {
    Series { name, predefined: words, custom: &[], mib_per_core: 0, extends: false, local_ssd }
}

const fn custom(
    name: &'static str,
    (words, own): (&'static str, &'static [&'static str]),
    (mib_per_core, extends): (u32, bool),
    local_ssd: LocalSsd,
) -> Series {
    Series { name, predefined: words, custom: own, mib_per_core, extends, local_ssd }
}

pub(super) const SERIES: [Series; 22] = [
    custom("n1", ("N1 Predefined", &["Custom"]), (6_656, true), LocalSsd::Shared),
    custom("n2", ("N2", &["N2 Custom"]), (8_192, true), LocalSsd::Shared),
    custom("n2d", ("N2D AMD", &["N2D AMD Custom"]), (8_192, true), LocalSsd::Shared),
    custom("e2", ("E2", &["E2 Custom", "Custom E2"]), (8_192, false), LocalSsd::NotKnown),
    custom("n4", ("N4", &["N4 Custom"]), (8_192, false), LocalSsd::NotKnown),
    custom("n4d", ("N4D", &["N4D Custom"]), (8_192, false), LocalSsd::NotKnown),
    predefined("n4a", "N4A", LocalSsd::NotKnown),
    predefined("t2d", "T2D AMD", LocalSsd::NotKnown),
    predefined("t2a", "T2A Arm", LocalSsd::NotKnown),
    predefined("c2", "Compute optimized", LocalSsd::Shared),
    predefined("c2d", "C2D AMD", LocalSsd::Shared),
    predefined("c3", "C3", LocalSsd::Shared),
    predefined("c3d", "C3D", LocalSsd::Shared),
    predefined("c4", "C4", LocalSsd::Own("C4 Instance Local SSD")),
    predefined("c4a", "C4A Arm", LocalSsd::Own("C4A Instance Local SSD")),
    predefined("c4d", "C4D", LocalSsd::Own("C4D Instance Local SSD")),
    predefined("h3", "H3", LocalSsd::NotKnown),
    predefined("m1", "Memory-optimized", LocalSsd::Shared),
    predefined("m3", "M3 Memory-optimized", LocalSsd::Shared),
    predefined("m4", "M4", LocalSsd::NotKnown),
    predefined("a2", "A2", LocalSsd::Shared),
    predefined("g2", "G2", LocalSsd::Shared),
];

/// Disks of the host, of most series.
pub(super) const LOCAL_SSD: &str = "SSD backed Local Storage";

/// Accelerators, as types of them are called, and what they are called in the catalogue. Virtual workstations (`…-vws`) have a licence besides.
const GPUS: [(&str, &str); 8] = [
    ("nvidia-tesla-k80", "Nvidia Tesla K80 GPU"),
    ("nvidia-tesla-p4", "Nvidia Tesla P4 GPU"),
    ("nvidia-tesla-p100", "Nvidia Tesla P100 GPU"),
    ("nvidia-tesla-v100", "Nvidia Tesla V100 GPU"),
    ("nvidia-tesla-t4", "Nvidia Tesla T4 GPU"),
    ("nvidia-tesla-a100", "Nvidia Tesla A100 GPU"),
    ("nvidia-a100-80gb", "Nvidia Tesla A100 80GB GPU"),
    ("nvidia-l4", "Nvidia L4 GPU"),
];

/// Types that are billed as a whole.
const WHOLE: [(&str, &str); 2] =
    [("f1-micro", "Micro Instance with burstable CPU"), ("g1-small", "Small Instance with 1 VCPU")];

/// The series of that name.
pub(super) fn series(name: &str) -> Option<&'static Series> {
    SERIES.iter().find(|series| series.name == name)
}

/// An accelerator's name in the catalogue.
pub(super) fn gpu(kind: &str) -> Option<&'static str> {
    GPUS.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

/// The name of a type that is billed as a whole.
pub(super) fn whole(machine_type: &str) -> Option<&'static str> {
    WHOLE.iter().find(|(known, _)| *known == machine_type).map(|(_, name)| *name)
}

impl Series {
    /// What cores and memory of its predefined types may be called; several are spellings of one.
    pub(super) fn names(&self, what: &str) -> Vec<String> {
        let with = format!("{} Instance {what}", self.predefined);
        // Of C2 the older regions leave out a word.
        if self.name == "c2" { vec![format!("{} {what}", self.predefined), with] } else { vec![with] }
    }

    /// The same of types of the customer's own measures.
    pub(super) fn custom_names(&self, what: &str) -> Vec<String> {
        self.custom.iter().map(|words| format!("{words} Instance {what}")).collect()
    }

    /// What memory beyond [`Series::mib_per_core`] may be called.
    pub(super) fn extended_names(&self) -> Vec<String> {
        let spellings = |words: &&str| [format!("{words} Extended Instance Ram"), format!("{words} Extended Ram")];
        self.custom.iter().filter(|_| self.extends).flat_map(spellings).collect()
    }
}

/// Every name that a machine's part may have in the catalogue.
pub(super) fn all_names() -> Vec<String> {
    let mut names: Vec<String> = vec![LOCAL_SSD.to_owned()];
    names.extend(GPUS.iter().chain(&WHOLE).map(|(_, name)| (*name).to_owned()));
    for series in &SERIES {
        for what in ["Core", "Ram"] {
            names.extend(series.names(what));
            names.extend(series.custom_names(what));
        }
        names.extend(series.extended_names());
        if let LocalSsd::Own(name) = series.local_ssd {
            names.push(name.to_owned());
        }
    }
    names
}
