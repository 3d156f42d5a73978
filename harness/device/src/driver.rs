//! The driver's properties that determine the PyTorch build: its version and its CUDA.

use nvml_wrapper::Nvml;

use crate::{has_gpu, nvml};
use collo_plan::facts::DeviceFacts;

/// The CUDA version of this machine's driver (`12020` for 12.2). `None` without a driver, or if it does not respond.
pub fn cuda() -> Option<i32> {
    let nvml = opened()?;
    // The first asks libcuda, which a container may lack.
    nvml.sys_cuda_driver_version().ok().or_else(|| cuda_of(&nvml.sys_driver_version().ok()?))
}

/// The driver and the GPU that a Python is to compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverTarget {
    /// The CUDA version of the driver: `12020` for 12.2.
    pub cuda: i32,
    /// The compute capability of the GPU, the lowest of several; `None` if unknown.
    pub capability: Option<(i32, i32)>,
}

impl DriverTarget {
    /// The target that a Python must support to compute on this device; `None` for a CPU.
    pub fn of(facts: &DeviceFacts) -> Option<DriverTarget> {
        let capability = facts.gpus.iter().filter_map(|g| g.capability).min();
        facts.cuda.map(|cuda| DriverTarget { cuda, capability })
    }
}

/// This machine's; `None` without a driver, or if it does not respond.
pub fn target() -> Option<DriverTarget> {
    let cuda = cuda()?;
    let capabilities = opened().and_then(|nvml| {
        let of = |index: u32| nvml.device_by_index(index).and_then(|d| d.cuda_compute_capability()).ok();
        (0..nvml.device_count().ok()?).filter_map(of).map(|c| (c.major, c.minor)).min()
    });
    Some(DriverTarget { cuda, capability: capabilities })
}

/// Its own version: `535.183.06`.
pub fn version() -> Option<String> {
    opened()?.sys_driver_version().ok()
}

fn opened() -> Option<Nvml> {
    let another = std::env::var_os(nvml::LIBRARY).is_some_and(|path| !path.is_empty());
    (has_gpu() || another).then(nvml::open)?.ok()
}

/// The first driver of each CUDA; it runs every minor version of that CUDA.
const FIRST: [(u32, i32); 2] = [(580, 13_000), (525, 12_000)];

/// The lowest CUDA that a driver of this version supports.
fn cuda_of(driver: &str) -> Option<i32> {
    let branch: u32 = driver.split('.').next()?.parse().ok()?;
    FIRST.iter().find(|(first, _)| branch >= *first).map(|(_, cuda)| *cuda)
}

/// The first driver that supports this CUDA, if known.
pub fn first_with(cuda_major: i32) -> Option<u32> {
    FIRST.iter().find(|(_, cuda)| cuda / 1000 == cuda_major).map(|(first, _)| *first)
}

/// `12020` as people write it: `12.2`.
pub fn shown(cuda: i32) -> String {
    format!("{}.{}", cuda / 1000, cuda % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_has_the_cuda_of_its_branch() {
        assert_eq!(cuda_of("580.95.05"), Some(13_000));
        assert_eq!(cuda_of("610.12"), Some(13_000));
        assert_eq!((cuda_of("535.183.06"), cuda_of("525.60.13")), (Some(12_000), Some(12_000)));
        assert_eq!((cuda_of("470.82.01"), cuda_of(""), cuda_of("[N/A]")), (None, None, None));
    }

    #[test]
    fn versions_are_shown_as_people_write_them() {
        assert_eq!((shown(12_020), shown(13_000), shown(11_080)), ("12.2".into(), "13.0".into(), "11.8".into()));
    }
}
