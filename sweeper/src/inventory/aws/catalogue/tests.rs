#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use aws_sdk_ec2::types::{
    ArchitectureType, BootModeType, EbsInfo, EbsOptimizedInfo, GpuDeviceInfo, GpuInfo, InstanceStorageInfo,
    InstanceType, InstanceTypeHypervisor, MemoryInfo, NetworkInfo, ProcessorInfo, VCpuInfo,
    builders::InstanceTypeInfoBuilder,
};

fn card(baseline: f64, peak: f64) -> NetworkCardInfo {
    NetworkCardInfo::builder().baseline_bandwidth_in_gbps(baseline).peak_bandwidth_in_gbps(peak).build()
}

/// As EC2 describes an m5.large.
fn m5_large() -> InstanceTypeInfoBuilder {
    let processor =
        ProcessorInfo::builder().supported_architectures(ArchitectureType::X8664).sustained_clock_speed_in_ghz(3.1);
    let ebs = EbsOptimizedInfo::builder().baseline_bandwidth_in_mbps(650).maximum_bandwidth_in_mbps(4_750);
    let ebs = ebs.baseline_iops(3_600).maximum_iops(18_750).build();
    let network = NetworkInfo::builder().maximum_network_interfaces(3).network_cards(card(0.75, 10.0)).build();
    InstanceTypeInfo::builder()
        .instance_type(InstanceType::M5Large)
        .supported_usage_classes(UsageClassType::OnDemand)
        .bare_metal(false)
        .hypervisor(InstanceTypeHypervisor::Nitro)
        .processor_info(processor.build())
        .v_cpu_info(VCpuInfo::builder().default_v_cpus(2).default_threads_per_core(2).build())
        .memory_info(MemoryInfo::builder().size_in_mib(8_192).build())
        .instance_storage_supported(false)
        .burstable_performance_supported(false)
        .network_info(network)
        .ebs_info(
            EbsInfo::builder().ebs_optimized_support(EbsOptimizedSupport::Default).ebs_optimized_info(ebs).build(),
        )
        .supported_boot_modes(BootModeType::Uefi)
        .supported_boot_modes(BootModeType::LegacyBios)
}

fn of(info: InstanceTypeInfoBuilder) -> MachineType {
    offered_type(&info.build()).unwrap().machine_type
}

#[test]
fn what_ec2_says_of_a_type_is_taken_over_in_bytes_and_mhz() {
    let told = offered_type(&m5_large().build()).unwrap();
    assert_eq!(told.boot_modes, Some(["legacy-bios", "uefi"].map(str::to_owned).into()));
    let limits = |baseline, burst| Limits { baseline: Some(baseline), burst: Some(burst) };
    let expected = MachineType {
        name: "m5.large".to_owned(),
        family: "m5".to_owned(),
        architecture: Architecture::X86_64,
        platform: Platform::Hypervisor("nitro".to_owned()),
        vcpus: 2,
        threads_per_core: Some(2),
        mhz: Some(3_100),
        memory_mib: 8_192,
        accelerators: Some(Vec::new()),
        local_disk_gib: Some(0),
        burst: Burst::Steady,
        network: limits(93_750_000, 1_250_000_000),
        disk: limits(81_250_000, 593_750_000),
        disk_operations: limits(3_600, 18_750),
        interfaces: Some(3),
    };
    assert_eq!(told.machine_type, expected);
}

#[test]
fn what_ec2_does_not_say_is_not_known() {
    assert_eq!(of(m5_large().set_burstable_performance_supported(None)).burst, Burst::Unknown);
    assert_eq!(of(m5_large().burstable_performance_supported(true)).burst, Burst::Unknown, "the baseline is not told");
    assert_eq!(of(m5_large().set_hypervisor(None)).platform, Platform::Unknown);
    assert_eq!(of(m5_large().set_hypervisor(None).bare_metal(true)).platform, Platform::BareMetal);
    assert_eq!(of(m5_large().set_instance_storage_supported(None)).local_disk_gib, None);
    assert_eq!(of(m5_large().instance_storage_supported(true)).local_disk_gib, None);
    let disks = InstanceStorageInfo::builder().total_size_in_gb(75).build();
    let with_disks = m5_large().instance_storage_supported(true).instance_storage_info(disks);
    assert_eq!(of(with_disks).local_disk_gib, Some(70), "75 GB are 69.8 GiB");
    let cards = NetworkInfo::builder().network_cards(card(25.0, 50.0)).network_cards(card(25.0, 50.0)).build();
    let of_cards = of(m5_large().network_info(cards));
    assert_eq!((of_cards.network, of_cards.interfaces), (Limits::default(), None));
    let asked_for = EbsInfo::builder()
        .ebs_optimized_support(EbsOptimizedSupport::Supported)
        .ebs_optimized_info(EbsOptimizedInfo::builder().baseline_iops(4_000).build());
    assert_eq!(of(m5_large().ebs_info(asked_for.build())).disk_operations, Limits::default());
    for lacking in [
        m5_large().set_v_cpu_info(None),
        m5_large().set_memory_info(None),
        m5_large().processor_info(ProcessorInfo::builder().build()),
        m5_large().set_supported_usage_classes(Some(vec![UsageClassType::Spot])),
    ] {
        assert_eq!(offered_type(&lacking.build()), None);
    }
}

#[test]
fn accelerators_are_all_named_or_not_known() {
    let gpus = |device: GpuDeviceInfo| of(m5_large().gpu_info(GpuInfo::builder().gpus(device).build())).accelerators;
    let t4 = GpuDeviceInfo::builder().manufacturer("NVIDIA").name("T4");
    let expected = Accelerator { model: "NVIDIA T4".to_owned(), count: 4 };
    assert_eq!(gpus(t4.clone().count(4).build()), Some(vec![expected]));
    assert_eq!(gpus(t4.build()), None);
    assert_eq!(gpus(GpuDeviceInfo::builder().count(1).build()), None);
    assert_eq!(of(m5_large().gpu_info(GpuInfo::builder().build())).accelerators, None);
}

#[test]
fn a_type_boots_all_of_another_only_if_both_are_known_to() {
    let with = |modes: Option<&[&str]>| OfferedType {
        machine_type: of(m5_large()),
        boot_modes: modes.map(|modes| modes.iter().map(|mode| (*mode).to_owned()).collect()),
    };
    assert!(with(Some(&["legacy-bios", "uefi"])).boots_all_of(&with(Some(&["uefi"]))));
    assert!(!with(Some(&["uefi"])).boots_all_of(&with(Some(&["legacy-bios", "uefi"]))));
    assert!(!with(None).boots_all_of(&with(Some(&["uefi"]))));
    assert!(!with(Some(&["uefi"])).boots_all_of(&with(None)));
}
