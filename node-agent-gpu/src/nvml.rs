//! NVIDIA's management library, read only: <https://docs.nvidia.com/deploy/nvml-api/>

use crate::samples::{Ran, Seen};
use node_agent_gpu::{Device, MAX_DEVICES, MAX_PROCESSES, Report, cut};
use nvml_wrapper::{Nvml, enum_wrappers::device::Sampling, enums::device::SampleValue, error::NvmlError};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The library, and which of the driver's samples were told of.
pub(crate) struct Reader {
    nvml: Nvml,
    seen: BTreeMap<String, Seen>,
    since: Instant,
}

/// Loads the library and connects it to the driver.
///
/// # Errors
/// The reason, in words: no library, no driver, or two that do not fit each other.
pub(crate) fn open() -> Result<Reader, String> {
    let nvml = Nvml::init().map_err(|error| match error {
        NvmlError::LibloadingError(error) => {
            cut(&format!("libnvidia-ml.so.1 cannot be loaded: {error}; it comes with NVIDIA's driver"))
        }
        error => format!("NVML does not start: {error}"),
    })?;
    Ok(Reader { nvml, seen: BTreeMap::new(), since: Instant::now() })
}

impl Reader {
    /// Reads every device once.
    pub(crate) fn read(&mut self) -> Report {
        let count = match self.nvml.device_count() {
            Ok(count) => count,
            Err(error) => return Report::Failed { reason: format!("the devices cannot be counted: {error}") },
        };
        let (mut devices, mut lost) = (Vec::new(), Vec::new());
        for index in 0..count {
            if devices.len() + lost.len() == MAX_DEVICES {
                lost.pop();
                lost.push(format!("{count} devices are there, and {MAX_DEVICES} are read"));
                break;
            }
            match self.device(index) {
                Ok(device) => devices.push(device),
                Err(error) => lost.push(cut(&format!("device {index}: {error}"))),
            }
        }
        Report::Read { devices, lost }
    }

    fn device(&mut self, index: u32) -> Result<Device, NvmlError> {
        let device = self.nvml.device_by_index(index)?;
        let uuid = cut(&device.uuid()?);
        let mut unreadable = Vec::new();
        let mut told = |what: &str, error: &NvmlError| unreadable.push(cut(&format!("{what}: {error}")));
        let model = device.name().map_err(|error| told("name", &error)).map(|name| cut(&name)).unwrap_or_default();
        let utilization = device.utilization_rates().map_err(|error| told("utilization", &error)).ok();
        let seen = self.seen.entry(uuid.clone()).or_default();
        let ran = ran(&device, seen, self.since.elapsed()).map_err(|error| told("samples", &error)).ok();
        let memory = device.memory_info().map_err(|error| told("memory", &error)).ok();
        let power = device.power_usage().map_err(|error| told("power", &error)).ok();
        let energy = device.total_energy_consumption().map_err(|error| told("energy", &error)).ok();
        let processes = device
            .running_compute_processes()
            .and_then(|mut compute| {
                // A data-centre GPU may have no graphics at all; that is no reason to know less about its computing.
                match device.running_graphics_processes() {
                    Ok(graphics) => compute.extend(graphics),
                    Err(NvmlError::NotSupported) => {}
                    Err(error) => return Err(error),
                }
                Ok(compute.into_iter().map(|process| process.pid).collect::<BTreeSet<u32>>())
            })
            .map_err(|error| told("processes", &error))
            .ok();
        Ok(Device {
            uuid,
            model,
            utilization_percent: utilization.map(|rates| rates.gpu),
            busy_us: ran.as_ref().map(|ran| ran.busy_us),
            gap: ran.and_then(|ran| ran.gap),
            memory_used_bytes: memory.as_ref().map(|memory| memory.used),
            memory_total_bytes: memory.as_ref().map(|memory| memory.total),
            power_mw: power.map(u64::from),
            energy_mj: energy,
            process_count: processes.as_ref().map(|pids| u32::try_from(pids.len()).unwrap_or(u32::MAX)),
            processes: processes.map(|pids| pids.into_iter().take(MAX_PROCESSES).collect()),
            unreadable,
        })
    }
}

/// What the samples say that are newer than those seen.
fn ran(device: &nvml_wrapper::Device<'_>, seen: &mut Seen, now: Duration) -> Result<Ran, NvmlError> {
    let samples = match device.samples(Sampling::GpuUtilization, seen.newest_us()) {
        Ok(samples) => samples,
        // There is none that is newer.
        Err(NvmlError::NotFound) => Vec::new(),
        Err(error) => return Err(error),
    };
    let samples = samples.into_iter().map(|sample| match sample.value {
        SampleValue::U32(percent) => Ok((sample.timestamp, percent)),
        // The header says that it is no other.
        _ => Err(NvmlError::UnexpectedVariant(0)),
    });
    Ok(seen.take(samples.collect::<Result<_, _>>()?, now))
}
