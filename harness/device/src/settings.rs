//! User settings of a GPU that a reset loses: the power limit and the application clocks.
//!
//! Ampere's MIG mode requires a reset, which loses limits and clocks, so that later measurements would run on other clocks than
//! earlier ones. They are read before, and set again after. Locked clocks can be set but not read (`nvml.h` has
//! nvmlDeviceSetGpuLockedClocks and no function that gets them), so they are unknown here.

use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

use super::nvml;
use collo_gpus::PartitionError;

/// Deviations from the GPU's defaults; absent is the default, or not reported by this GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSettings {
    pub power_limit_mw: Option<u32>,
    /// Application clocks of memory and SM, in MHz.
    pub application_mhz: Option<(u32, u32)>,
}

impl ChangedSettings {
    /// The current settings of this GPU.
    pub fn read(uuid: &str) -> ChangedSettings {
        let Ok(nvml) = nvml::open() else { return ChangedSettings::default() };
        let Ok(device) = nvml.device_by_uuid(uuid) else { return ChangedSettings::default() };
        let limit = device.power_management_limit().ok();
        let own = device.power_management_limit_default().ok();
        let clocks =
            |read: &dyn Fn(Clock) -> Result<u32, NvmlError>| Some((read(Clock::Memory).ok()?, read(Clock::Graphics).ok()?));
        let set = clocks(&|clock| device.applications_clock(clock));
        let usual = clocks(&|clock| device.default_applications_clock(clock));
        ChangedSettings { power_limit_mw: limit.filter(|_| limit != own), application_mhz: set.filter(|_| set != usual) }
    }

    pub fn is_nothing(&self) -> bool {
        *self == ChangedSettings::default()
    }

    /// Set them again where they differ; returns what was set.
    pub fn set_again(&self, uuid: &str, label: &str) -> Result<ChangedSettings, PartitionError> {
        let now = ChangedSettings::read(uuid);
        let wanted = ChangedSettings {
            power_limit_mw: self.power_limit_mw.filter(|_| now.power_limit_mw != self.power_limit_mw),
            application_mhz: self.application_mhz.filter(|_| now.application_mhz != self.application_mhz),
        };
        wanted.set(uuid, label)?;
        Ok(wanted)
    }

    /// Check that they can be restored, by setting the current values, which changes nothing and requires the same permission.
    pub fn can_be_set(&self, uuid: &str, label: &str) -> Result<(), PartitionError> {
        self.set(uuid, label).map_err(|e| {
            let why = e.line();
            let mut error =
                PartitionError::new_with(format!("MIG mode of {label} is not changed: its reset clears {}", self.to_text()), why);
            error.forgets = true;
            error.hint = Some("restore the default (`sudo nvidia-smi -pl`, `-rac`), or measure without MIG".into());
            error
        })
    }

    fn set(&self, uuid: &str, label: &str) -> Result<(), PartitionError> {
        if self.is_nothing() {
            return Ok(());
        }
        let not = |what: &str, e: &NvmlError| {
            PartitionError::new_with(format!("{what} of {label} cannot be set"), format!("NVML reports {}", nvml::text(e)))
        };
        let nvml = nvml::open()?;
        let mut device = nvml.device_by_uuid(uuid).map_err(|e| not("the power limit", &e))?;
        if let Some(mw) = self.power_limit_mw {
            device.set_power_management_limit(mw).map_err(|e| not("the power limit", &e))?;
        }
        if let Some((memory, sm)) = self.application_mhz {
            device.set_applications_clocks(memory, sm).map_err(|e| not("the application clocks", &e))?;
        }
        Ok(())
    }

    /// a power limit of 300 W and application clocks of 1215 and 1095 MHz
    pub fn to_text(&self) -> String {
        let power = self.power_limit_mw.map(|mw| format!("a power limit of {} W", f64::from(mw) / 1000.0));
        let clocks = self.application_mhz.map(|(memory, sm)| format!("application clocks of {memory} and {sm} MHz"));
        power.into_iter().chain(clocks).collect::<Vec<_>>().join(" and ")
    }
}
