//! GPU instances and compute instances, as reported by the driver. The wrapper's safe calls do not cover them, so this module has
//! the raw ones, and nothing else.
//!
//! NVML identifies a profile by two numbers: its index for queries, its id for everything else.

use collo_gpus::mig::DriverProfile;
use std::ffi::CStr;
use std::os::raw::c_char;

use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings as b;

/// A GPU instance that exists.
pub struct GpuInstance {
    handle: b::nvmlGpuInstance_t,
    pub id: u32,
    pub profile: u32,
    pub start: u32,
}

/// A compute instance that exists.
pub struct ComputeInstance {
    handle: b::nvmlComputeInstance_t,
    pub id: u32,
    pub profile: u32,
}

/// A size of compute instance that a GPU instance offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeProfile {
    pub id: u32,
    pub slices: u32,
    pub sms: u32,
}

/// What CUDA sees as a device: a compute instance of a GPU instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigDevice {
    pub uuid: String,
    pub gpu_instance: u32,
    pub compute_instance: u32,
    pub sms: Option<u32>,
    pub memory_mib: Option<u64>,
    /// `3g.20gb`, or `1c.3g.20gb` if it is a part: the end of its name.
    pub called: Option<String>,
    /// Compute slices of its GPU instance, and its own.
    pub slices: Option<(u32, u32)>,
}

/// Profiles are queried by index, up to this one. Their number grows with each driver (`nvml.h` had 15, 17, 18 and 8, 9 in turn),
/// and the header says to query until an index is not valid.
const INDICES: std::ops::Range<u32> = 0..32;

type Result<T> = std::result::Result<T, NvmlError>;

/// A GPU, with its open library.
pub struct Raw<'a> {
    nvml: &'a Nvml,
    device: &'a Device<'a>,
}

/// The errors for a profile that this GPU or driver does not have.
fn is_absent(e: &NvmlError) -> bool {
    matches!(e, NvmlError::NotSupported | NvmlError::InvalidArg | NvmlError::NotFound)
}

impl<'a> Raw<'a> {
    pub fn new(nvml: &'a Nvml, device: &'a Device<'a>) -> Self {
        Raw { nvml, device }
    }

    fn device(&self) -> b::nvmlDevice_t {
        // SAFETY: the handle is used while the library that gave it is open, which the lifetime sees to.
        unsafe { self.device.handle() }
    }

    /// Every profile that the GPU offers.
    pub fn profiles(&self) -> Result<Vec<DriverProfile>> {
        let mut all: Vec<DriverProfile> = Vec::new();
        for index in INDICES {
            let mut profile = match self.device.profile_info(index) {
                Ok(info) => DriverProfile {
                    name: self.profile_name(index).unwrap_or_default(),
                    id: info.id,
                    slices: info.slice_count,
                    most: info.instance_count,
                    sms: info.multiprocessor_count,
                    memory_mib: info.memory_size_mb,
                    engines: [info.copy_engine_count, info.decoder_count, info.encoder_count, info.jpeg_count, info.ofa_count],
                    starts: Vec::new(),
                    units: 0,
                },
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(e),
            };
            if all.iter().any(|p| p.id == profile.id) {
                continue;
            }
            let places = match self.placements(profile.id) {
                // "Requires privileged user" (nvml.h): who may not cut the card is not told where instances may lie.
                Err(NvmlError::NoPermission) => Vec::new(),
                told => told?,
            };
            for place in places {
                profile.starts.push(place.start);
                profile.units = place.size;
            }
            all.push(profile);
        }
        if all.iter().any(|p| p.name.is_empty()) {
            let whole_mib = all.iter().map(|p| p.memory_mib).max().unwrap_or(0);
            let total = self.device.memory_info().map_or(whole_mib << 20, |m| m.total);
            for profile in all.iter_mut().filter(|p| p.name.is_empty()) {
                profile.name = by_eighths(profile.slices, profile.memory_mib, total);
            }
        }
        Ok(all)
    }

    fn profile_name(&self, index: u32) -> Option<String> {
        // SAFETY: a plain struct of integers and characters, for which all zeros is a value.
        let mut info: b::nvmlGpuInstanceProfileInfo_v2_t = unsafe { std::mem::zeroed() };
        info.version = size_of_val(&info) as u32 | (2 << 24);
        let call = nvml_sym(self.nvml.lib().nvmlDeviceGetGpuInstanceProfileInfoV.as_ref()).ok()?;
        // SAFETY: the struct says its version and lives through the call; the wider type is this one's newer form.
        nvml_try(unsafe { call(self.device(), index, std::ptr::from_mut(&mut info).cast()) }).ok()?;
        let name = text(&info.name);
        Some(name.strip_prefix("MIG ").unwrap_or(&name).to_string()).filter(|n| !n.is_empty())
    }

    /// Whether this user may partition the GPU, as far as the driver shows it: other users cannot read places (nvml.h).
    pub fn may_cut(&self, profiles: &[DriverProfile]) -> Option<bool> {
        match self.placements(profiles.first()?.id) {
            Ok(places) => (!places.is_empty()).then_some(true),
            Err(NvmlError::NoPermission) => Some(false),
            Err(_) => None,
        }
    }

    fn placements(&self, profile: u32) -> Result<Vec<b::nvmlGpuInstancePlacement_t>> {
        let call = nvml_sym(self.nvml.lib().nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref())?;
        let mut count = 0;
        // SAFETY: without a place to write to, only the count is written.
        match nvml_try(unsafe { call(self.device(), profile, std::ptr::null_mut(), &mut count) }) {
            Ok(()) | Err(NvmlError::InsufficientSize(_)) => {}
            Err(e) if is_absent(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        }
        let mut places = vec![b::nvmlGpuInstancePlacement_t { start: 0, size: 0 }; count as usize];
        // SAFETY: the list is as long as the count says.
        nvml_try(unsafe { call(self.device(), profile, places.as_mut_ptr(), &mut count) })?;
        places.truncate(count as usize);
        Ok(places)
    }

    /// The GPU instances that exist, of these profiles.
    pub fn gpu_instances(&self, profiles: &[DriverProfile]) -> Result<Vec<GpuInstance>> {
        let list = nvml_sym(self.nvml.lib().nvmlDeviceGetGpuInstances.as_ref())?;
        let mut all = Vec::new();
        for profile in profiles {
            // The driver asks for room for all that there could be.
            let mut handles = vec![std::ptr::null_mut(); profile.most.max(1) as usize];
            let mut count = handles.len() as u32;
            // SAFETY: the list has room for as many as the profile allows.
            match nvml_try(unsafe { list(self.device(), profile.id, handles.as_mut_ptr(), &mut count) }) {
                Ok(()) => {}
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(e),
            }
            for handle in handles.into_iter().take(count as usize) {
                all.push(self.gpu_instance(handle)?);
            }
        }
        all.sort_by_key(|gi| gi.start);
        Ok(all)
    }

    fn gpu_instance(&self, handle: b::nvmlGpuInstance_t) -> Result<GpuInstance> {
        let call = nvml_sym(self.nvml.lib().nvmlGpuInstanceGetInfo.as_ref())?;
        // SAFETY: a plain struct, for which all zeros is a value.
        let mut info: b::nvmlGpuInstanceInfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the handle came from this library, the struct lives through the call.
        nvml_try(unsafe { call(handle, &mut info) })?;
        Ok(GpuInstance { handle, id: info.id, profile: info.profileId, start: info.placement.start })
    }

    pub fn create_gpu_instance(&self, profile: u32, start: u32, units: u32) -> Result<GpuInstance> {
        let call = nvml_sym(self.nvml.lib().nvmlDeviceCreateGpuInstanceWithPlacement.as_ref())?;
        let place = b::nvmlGpuInstancePlacement_t { start, size: units };
        let mut handle = std::ptr::null_mut();
        // SAFETY: both live through the call.
        nvml_try(unsafe { call(self.device(), profile, &place, &mut handle) })?;
        self.gpu_instance(handle)
    }

    pub fn destroy_gpu_instance(&self, instance: &GpuInstance) -> Result<()> {
        let call = nvml_sym(self.nvml.lib().nvmlGpuInstanceDestroy.as_ref())?;
        // SAFETY: the handle came from this library and is not used again.
        nvml_try(unsafe { call(instance.handle) })
    }

    /// The sizes of compute instance that a GPU instance offers, smallest first.
    pub fn compute_profiles(&self, of: &GpuInstance) -> Result<Vec<ComputeProfile>> {
        let call = nvml_sym(self.nvml.lib().nvmlGpuInstanceGetComputeInstanceProfileInfo.as_ref())?;
        let mut all: Vec<ComputeProfile> = Vec::new();
        for index in INDICES {
            // SAFETY: a plain struct of integers, for which all zeros is a value.
            let mut info: b::nvmlComputeInstanceProfileInfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: the handle came from this library, the struct lives through the call.
            let code = unsafe { call(of.handle, index, b::NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &mut info) };
            match nvml_try(code) {
                Ok(()) if all.iter().all(|p| p.id != info.id) => {
                    all.push(ComputeProfile { id: info.id, slices: info.sliceCount, sms: info.multiprocessorCount });
                }
                Ok(()) => {}
                Err(e) if is_absent(&e) => {}
                Err(e) => return Err(e),
            }
        }
        all.sort_by_key(|p| p.slices);
        Ok(all)
    }

    /// The compute instances inside a GPU instance.
    pub fn compute_instances(&self, of: &GpuInstance, profiles: &[ComputeProfile]) -> Result<Vec<ComputeInstance>> {
        let list = nvml_sym(self.nvml.lib().nvmlGpuInstanceGetComputeInstances.as_ref())?;
        let mut all = Vec::new();
        for profile in profiles {
            let mut handles = [std::ptr::null_mut(); 16];
            let mut count = handles.len() as u32;
            // SAFETY: no GPU instance has more than eight compute instances.
            match nvml_try(unsafe { list(of.handle, profile.id, handles.as_mut_ptr(), &mut count) }) {
                Ok(()) => {}
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(e),
            }
            for handle in handles.into_iter().take(count as usize) {
                all.push(self.compute_instance(handle)?);
            }
        }
        all.sort_by_key(|ci| ci.id);
        Ok(all)
    }

    fn compute_instance(&self, handle: b::nvmlComputeInstance_t) -> Result<ComputeInstance> {
        let call = nvml_sym(self.nvml.lib().nvmlComputeInstanceGetInfo_v2.as_ref())?;
        // SAFETY: a plain struct, for which all zeros is a value.
        let mut info: b::nvmlComputeInstanceInfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the handle came from this library, the struct lives through the call.
        nvml_try(unsafe { call(handle, &mut info) })?;
        Ok(ComputeInstance { handle, id: info.id, profile: info.profileId })
    }

    pub fn create_compute_instance(&self, inside: &GpuInstance, profile: u32) -> Result<ComputeInstance> {
        let call = nvml_sym(self.nvml.lib().nvmlGpuInstanceCreateComputeInstance.as_ref())?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle came from this library, the place lives through the call.
        nvml_try(unsafe { call(inside.handle, profile, &mut handle) })?;
        self.compute_instance(handle)
    }

    pub fn destroy_compute_instance(&self, instance: &ComputeInstance) -> Result<()> {
        let call = nvml_sym(self.nvml.lib().nvmlComputeInstanceDestroy.as_ref())?;
        // SAFETY: the handle came from this library and is not used again.
        nvml_try(unsafe { call(instance.handle) })
    }

    /// The devices that CUDA can see while the GPU is partitioned. The count is the maximum: gaps are skipped.
    pub fn mig_devices(&self) -> Result<Vec<MigDevice>> {
        let gi_of = nvml_sym(self.nvml.lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
        let ci_of = nvml_sym(self.nvml.lib().nvmlDeviceGetComputeInstanceId.as_ref())?;
        let mut all = Vec::new();
        for index in 0..self.device.mig_device_count()? {
            let mig = match self.device.mig_device_by_index(index) {
                Ok(mig) => mig,
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(e),
            };
            let (mut gpu_instance, mut compute_instance) = (0, 0);
            // SAFETY: the handle came from this library, the places live through the calls.
            unsafe {
                nvml_try(gi_of(mig.handle(), &mut gpu_instance))?;
                nvml_try(ci_of(mig.handle(), &mut compute_instance))?;
            }
            let attributes = mig.attributes().ok();
            let called = mig.name().ok().and_then(|name| Some(name.rsplit_once("MIG ")?.1.trim().to_string()));
            all.push(MigDevice {
                uuid: mig.uuid()?,
                gpu_instance,
                compute_instance,
                sms: attributes.as_ref().map(|a| a.multiprocessor_count),
                memory_mib: attributes.as_ref().map(|a| a.memory_size_mb),
                called: called.filter(|name| !name.is_empty()),
                slices: attributes.as_ref().map(|a| (a.gpu_instance_slice_count, a.compute_instance_slice_count)),
            });
        }
        Ok(all)
    }
}

/// The name of a profile, for drivers too old to report it. NVIDIA's own rule: memory counts in eighths of the GPU's, rounded up
/// (go-nvlib, pkg/nvlib/device/mig_profile.go).
fn by_eighths(slices: u32, memory_mib: u64, total_bytes: u64) -> String {
    let total_gb = total_bytes.div_ceil(1 << 30);
    let eighths = ((memory_mib << 20) * 8).div_ceil(total_bytes.max(1));
    format!("{slices}g.{:.0}gb", (eighths as f64 / 8.0 * total_gb as f64).round())
}

fn text(characters: &[c_char]) -> String {
    // The end is looked for inside the array only.
    let bytes: Vec<u8> = characters.iter().map(|c| *c as u8).chain([0]).collect();
    CStr::from_bytes_until_nul(&bytes).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_a_name_is_called_by_eighths_of_the_memory() {
        let gib = |gib: f64| (gib * 1024.0) as u64;
        let a100 = 81_920u64 << 20;
        assert_eq!(by_eighths(1, gib(9.5), a100), "1g.10gb");
        assert_eq!(by_eighths(3, gib(39.25), a100), "3g.40gb");
        // Rounded up to whole GiB it would be `7g.79gb`.
        assert_eq!(by_eighths(7, gib(79.0), a100), "7g.80gb");
        let h200 = 143_771u64 << 20;
        let names = [(1, 16.0), (1, 32.25), (2, 32.25), (3, 69.5), (7, 139.75)].map(|(s, m)| by_eighths(s, gib(m), h200));
        assert_eq!(names, ["1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "7g.141gb"]);
    }
}
