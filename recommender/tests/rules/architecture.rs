//! The *architecture* rule: cases computed by hand.

use model::Usd;
use recommender::{
    blocker::{Blocker, NotRecommended, Unfit},
    catalogue::{Architecture, Offer, Worth},
    demand::Demand,
    executables::{ArmProof, ElfMachine, Executable, Executables, Unproven},
    fit::Dimension,
    recommendation::{Change, Evidence, Recommendation, Risk},
    rules::{
        architecture::{self, ArchitectureInput},
        rightsize::SizedMachine,
    },
};

use crate::support::{Case, WEEKS, price, record, too_small};

fn executable(file: &str, on_arm: Option<ArmProof>) -> Executable {
    Executable { file: file.into(), machine: Some(ElfMachine::X86_64), is_interpreter: false, image: None, on_arm }
}

fn package(name: &str) -> Option<ArmProof> {
    Some(ArmProof::Package { name: name.into() })
}

fn ran() -> Option<ArmProof> {
    Some(ArmProof::Ran { node: "host:1".into() })
}

fn in_image(file: &str, image: &str, on_arm: Option<ArmProof>) -> Executable {
    Executable { image: Some(image.into()), ..executable(file, on_arm) }
}

fn interpreter(file: &str, on_arm: Option<ArmProof>) -> Executable {
    Executable { is_interpreter: true, ..executable(file, on_arm) }
}

/// An m5.xlarge beside an m6g.xlarge (4 whole cores, 16 GiB, 154,000) and an m6g.large.
fn case() -> Case {
    let mut case = Case::of("m5.xlarge", record(WEEKS, |_, _| ())).offering(&["m5.xlarge"]);
    let arm = |name: &str, vcpus, gib: u64, micros, own: &Offer| {
        let mut offer = own.clone();
        (offer.machine_type.name, offer.machine_type.family) = (name.into(), "m6g".into());
        (offer.machine_type.vcpus, offer.machine_type.memory_mib) = (vcpus, gib * 1_024);
        (offer.machine_type.architecture, offer.machine_type.threads_per_core) = (Architecture::Arm64, Some(1));
        (offer.machine_type.mhz, offer.prices) = (Some(2_500), price(micros));
        offer
    };
    let own = case.catalogue.offers[0].clone();
    case.catalogue.offers.push(arm("m6g.xlarge", 4, 16, 154_000, &own));
    case.catalogue.offers.push(arm("m6g.large", 2, 8, 77_000, &own));
    case
}

fn judged(case: &Case, executables: &Executables, disks: &Worth) -> Result<Recommendation, NotRecommended> {
    let Case { resource, machine, interfaces, record, catalogue, policy } = case;
    let demand = Demand::of(record);
    let machine = SizedMachine { resource, machine, interfaces: *interfaces, record, demand: &demand, catalogue };
    architecture::recommend(&ArchitectureInput { machine, executables, disks_per_month: disks }, policy)
}

fn all(seen: Vec<Executable>) -> Executables {
    Executables { seen, is_all: Some(true) }
}

const DISKS: Worth = Worth::Known(Usd::from_micros(8_000_000));

fn blockers(executables: &Executables) -> Vec<Blocker> {
    judged(&case(), executables, &DISKS).unwrap_err().blockers
}

fn unproven(seen: Vec<Executable>) -> Vec<Unproven> {
    match blockers(&all(seen)).as_slice() {
        [Blocker::NotProvenForArm { unproven }] => unproven.named.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_executable_is_proven_and_the_cheapest_type_of_arm_would_have_done() {
    let seen = vec![
        executable("sshd", package("openssh-server")),
        in_image("bwa", "bwa:0.7", Some(ArmProof::Image { image: "bwa:0.7".into() })),
        interpreter("python3", ran()),
    ];
    let recommended = judged(&case(), &all(seen.clone()), &DISKS).unwrap();
    let to = |recommended: &Recommendation| match &recommended.change {
        Change::Architecture { to, .. } => to.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(to(&recommended), "m6g.large");
    // (192,000 - 77,000) × 730; the old machine's disks for a month.
    assert_eq!(recommended.saving.as_ref().unwrap().list_per_month, Usd::from_micros(83_950_000));
    assert_eq!(recommended.saving.as_ref().unwrap().once, Usd::from_micros(8_000_000));
    assert!(recommended.risks.contains(&Risk::NewMachine));
    let Evidence::Programs { executables: 3, ran_on_arm: 1, .. } = recommended.evidence else {
        panic!("{recommended:?}")
    };
    // 1,600 thousandths at 3,100 MHz are 1,984 at 2,500 MHz: 80 % of 2,000 are 1,600, so the large one is too small; of the xlarge 3,200 may be used.
    let mut busy = case();
    busy.record.hours.iter_mut().for_each(|hour| hour.milli_cores = [(1_600, 3_600_000)].into_iter().collect());
    let recommended = judged(&busy, &all(seen.clone()), &DISKS).unwrap();
    assert_eq!(to(&recommended), "m6g.xlarge");
    busy.catalogue.offers.retain(|offer| offer.machine_type.name != "m6g.xlarge");
    let refused = judged(&busy, &all(seen), &DISKS).unwrap_err();
    assert_eq!(refused.considered[0].why_not, too_small(Dimension::Cpu, 1_984, 1_600));
}

#[test]
fn interpreters_images_and_unknown_builds_are_named() {
    let image = |image: &str| Some(ArmProof::Image { image: image.into() });
    let named = unproven(vec![
        executable("sshd", package("openssh-server")),
        executable("licensed-tool", None),
        executable("licensed-tool", None),
        interpreter("python3", package("python3")),
        interpreter("java", None),
        in_image("gatk", "gatk:4", None),
        in_image("samtools", "samtools:1", image("another:1")),
        in_image("bwa", "bwa:0.7", package("bwa")),
        executable("mounted", image("bwa:0.7")),
        Executable { machine: None, ..executable("unread", ran()) },
    ]);
    let plain: Vec<String> = named.iter().map(ToString::to_string).collect();
    assert_eq!(
        plain,
        [
            "java: no build for Arm is known",
            "licensed-tool: no build for Arm is known",
            "mounted: no build for Arm is known",
            "unread: its ELF header was not read",
            "python3: an interpreter, and what it executes was not seen on Arm",
            "bwa in the image bwa:0.7, which is not known to have a variant for Arm",
            "gatk in the image gatk:4, which is not known to have a variant for Arm",
            "samtools in the image samtools:1, which is not known to have a variant for Arm",
        ]
    );
    let many: Vec<_> = (0..25).map(|number| executable(&format!("tool{number:02}"), None)).collect();
    let text = blockers(&all(many))[0].to_string();
    assert!(text.starts_with("not proven to run on Arm: tool00: ") && text.ends_with("; and 5 others"), "{text}");
}

#[test]
fn what_was_not_seen_is_not_proven() {
    let unknown = [Blocker::FactUnknown { fact: "whether every program that ran on it was seen".into() }];
    let seen = || vec![executable("sshd", package("openssh-server"))];
    for is_all in [None, Some(false)] {
        assert_eq!(blockers(&Executables { seen: seen(), is_all }), unknown);
    }
    assert_eq!(blockers(&all(Vec::new())), unknown, "something always runs");
    let unpriced = judged(&case(), &all(seen()), &Worth::Unknown("no row".into())).unwrap_err();
    assert_eq!(unpriced.blockers, [Blocker::PriceUnknown { why: "no row".into() }]);
    // 83.95 × 3 = 251.85
    let late = judged(&case(), &all(seen()), &Worth::Known(Usd::from_micros(251_850_001))).unwrap_err();
    assert!(matches!(late.blockers[..], [Blocker::PaysBackLate { .. }]));
    let mut arm = case();
    arm.offer("m5.xlarge").machine_type.architecture = Architecture::Arm64;
    let refused = judged(&arm, &all(seen()), &DISKS).unwrap_err();
    assert_eq!(refused.blockers, [Blocker::NotX86 { is: Architecture::Arm64 }]);
    let mut none = case();
    none.catalogue.offers.truncate(1);
    let refused = judged(&none, &all(seen()), &DISKS).unwrap_err();
    assert_eq!(refused.blockers, [Blocker::NothingFits { zone: "us-east-1a".into() }]);
    let mut gpu = case();
    gpu.offer("m5.xlarge").machine_type.accelerators = crate::support::gpus(1);
    let refused = judged(&gpu, &all(seen()), &DISKS).unwrap_err();
    assert!(refused.considered.iter().all(|one| matches!(one.why_not, Unfit::Misfit(_))));
}
