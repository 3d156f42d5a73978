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
    #[error("the NVIDIA driver does not respond: {0}")]
    Silent(String),
    /// Its version.
    #[error("driver {0} writes its process lists in a withdrawn format: they would be misread, and past their end")]
    Unsafe(String),
}

/// The file that is opened: `COLLO_NVML`, if it is set and not empty.
fn named() -> Option<OsString> {
    std::env::var_os(LIBRARY).filter(|path| !path.is_empty())
}

impl NoDriver {
    /// The hint, if there is a certain one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            NoDriver::Unsafe(_) => Some("update the driver to 535.104.05 or later"),
            NoDriver::NoLibrary(_) | NoDriver::Silent(_) => None,
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
        _ => NoDriver::Silent(text(&e)),
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
        NvmlError::UnexpectedVariant(28) => "the GPU is not there".into(),
        NvmlError::UnexpectedVariant(29) => "impossible in its current state".into(),
        NvmlError::UnexpectedVariant(code) => format!("NVML error {code}"),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => "this driver is too old for it".into(),
        e => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_word_of_the_wrapper_have_one_here() {
        assert_eq!(text(&NvmlError::UnexpectedVariant(23)), "insufficient resources");
        assert_eq!(text(&NvmlError::UnexpectedVariant(77)), "NVML error 77");
    }
}
