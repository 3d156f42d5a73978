//! The temperature of a GPU between runs.

use nvml_wrapper::enum_wrappers::device::TemperatureSensor;

use super::nvml;

/// In °C; `None` if the driver does not report it.
pub fn read_c(uuid: &str) -> Option<f64> {
    let nvml = nvml::open().ok()?;
    nvml.device_by_uuid(uuid).and_then(|device| device.temperature(TemperatureSensor::Gpu)).ok().map(f64::from)
}
