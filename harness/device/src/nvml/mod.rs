//! Opens NVIDIA's management library: the only access to a driver.
//!
//! `COLLO_NVML` names a library file to use instead of the system's `libnvidia-ml.so.1`. An open library keeps the GPUs open, so
//! it has to be closed before partitioning: open it for one operation, and drop it.

pub mod instances;
pub mod probe;
mod version;

use std::ffi::OsString;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

/// The variable that names another library.
pub const LIBRARY: &str = "COLLO_NVML";

/// Why there is no driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDriver {
    /// What was tried.
    #[error("{0}")]
    NoLibrary(String),
    /// What it answered instead, and the hint that belongs to that.
    #[error("the NVIDIA driver does not respond: {text}")]
    Silent { text: String, hint: Option<&'static str> },
    /// Its version.
    #[error("driver {0} writes its process lists in a withdrawn format: they would be misread, and past their end")]
    Unsafe(String),
}

/// The file that is opened: `COLLO_NVML`, if it is set and not empty.
fn named() -> Option<OsString> {
    std::env::var_os(LIBRARY).filter(|path| !path.is_empty())
}

impl NoDriver {
    /// It answered with an error.
    pub fn silent(e: &NvmlError) -> NoDriver {
        NoDriver::Silent { text: text(e), hint: hint(e) }
    }

    /// The hint, if there is a certain one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            NoDriver::Unsafe(_) => Some("update the driver to 535.104.05 or later"),
            NoDriver::Silent { hint, .. } => *hint,
            NoDriver::NoLibrary(_) => None,
        }
    }
}

/// Open the library of this machine. A driver whose answers cannot be read safely is refused before any other query.
pub fn open() -> Result<Nvml, NoDriver> {
    let named = named();
    let opened = match &named {
        Some(path) => Nvml::builder().lib_path(path).init(),
        None => Nvml::init(),
    };
    let nvml = opened.map_err(|e| match (&e, &named) {
        (NvmlError::LibloadingError(_), None) => {
            NoDriver::NoLibrary(format!("no `libnvidia-ml.so.1`, and `{LIBRARY}` is not set"))
        }
        (NvmlError::LibloadingError(cause), Some(path)) => {
            NoDriver::NoLibrary(format!("`{LIBRARY}={}` cannot be opened: {cause}", path.to_string_lossy()))
        }
        _ => NoDriver::silent(&e),
    })?;
    // A version that is not told is somebody else's trouble: whoever needs it asks again.
    nvml.sys_driver_version().map_or(Ok(()), |version| version::check(&version))?;
    Ok(nvml)
}

/// The driver's report of a GPU that has disappeared; `None` if it is there, or nobody answers.
pub fn lost(uuid: &str) -> Option<String> {
    let gone = |e: &NvmlError| matches!(e, NvmlError::GpuLost | NvmlError::ResetRequired);
    let answer = open().ok()?.device_by_uuid(uuid).and_then(|device| device.memory_info()).err()?;
    gone(&answer).then(|| format!("the driver reports: {}", text(&answer)))
}

/// NVML's error message, including codes unknown to the wrapper.
pub fn text(e: &NvmlError) -> String {
    match e {
        NvmlError::UnexpectedVariant(23) => "insufficient resources".into(),
        NvmlError::UnexpectedVariant(25) => "the driver expects another version of an argument".into(),
        NvmlError::UnexpectedVariant(27) => "not ready".into(),
        NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => "the GPU is not there".into(),
        NvmlError::UnexpectedVariant(29) => "impossible in its current state".into(),
        NvmlError::UnexpectedVariant(code) => format!("NVML error {code}"),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => "this driver is too old for it".into(),
        e => e.to_string(),
    }
}

/// The way out of an error that concerns the whole driver or a GPU; `None` where it depends on the question. What the codes mean:
/// `nvmlReturn_t` of nvml.h, <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html>.
pub fn hint(e: &NvmlError) -> Option<&'static str> {
    Some(match e {
        NvmlError::DriverNotLoaded => {
            "`sudo modprobe nvidia` loads the kernel module or prints why not: Secure Boot, or a kernel that was updated without DKMS; \
             a container must be started with `--gpus all`"
        }
        NvmlError::LibRmVersionMismatch => {
            "the driver was updated while its kernel module stayed loaded: reboot; in a container, its library is another version than the host's"
        }
        NvmlError::NoPermission => "this user may not open the device: `ls -l /dev/nvidia*` shows who may",
        NvmlError::OperatingSystem => {
            "a cgroup or container blocks /dev/nvidia*: request the GPU from the batch system, or start the container with `--gpus`"
        }
        NvmlError::GpuLost => "the kernel log (`sudo dmesg`, lines with Xid) shows why; a lost GPU needs a reboot",
        NvmlError::ResetRequired => "`sudo nvidia-smi --gpu-reset` with no process on the GPU, or a reboot",
        NvmlError::InsufficientPower => "connect the power cables of the GPU",
        NvmlError::CorruptedInfoROM => "the GPU's InfoROM is corrupted: contact the vendor, `nvidia-smi -q` shows the versions",
        NvmlError::IrqIssue | NvmlError::Unknown => "the kernel log (`sudo dmesg`, lines with NVRM) shows the cause",
        NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => {
            "`lspci -d 10de:` lists the GPUs on the bus; one that is missing there needs a reboot"
        }
        _ => return None,
    })
}

/// `NVML_ERROR_GPU_NOT_FOUND` of nvml.h: no supported GPU was found.
const GPU_NOT_FOUND: u32 = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_not_loaded_and_a_library_of_another_version_have_hints_of_their_own() {
        let of = |code: u32| NoDriver::silent(&NvmlError::from(code)).hint().unwrap_or_default();
        assert!(of(9).contains("modprobe nvidia") && of(9).contains("--gpus all") && !of(9).contains("reboot"), "{}", of(9));
        assert!(of(18).contains("reboot") && !of(18).contains("modprobe"), "{}", of(18));
    }

    #[test]
    fn codes_that_depend_on_the_question_have_no_hint() {
        let with: Vec<u32> = (1..=29).chain([999]).filter(|code| hint(&NvmlError::from(*code)).is_some()).collect();
        assert_eq!(with, [4, 8, 9, 11, 14, 15, 16, 17, 18, 28, 999]);
    }

    #[test]
    fn codes_without_a_word_of_the_wrapper_have_one_here() {
        assert_eq!(text(&NvmlError::UnexpectedVariant(23)), "insufficient resources");
        assert_eq!(text(&NvmlError::UnexpectedVariant(77)), "NVML error 77");
    }
}
