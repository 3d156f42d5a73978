//! A GPU's partition as a normal user can read it: from its MIG devices visible to CUDA.
//!
//! In: the MIG devices of a GPU, which NVML shows to every user with their ids, names and attributes. Out: the same as for an
//! administrator, without the places of the instances, and without instances that CUDA cannot see.

use crate::nvml::instances::MigDevice;
use crate::repartition::{PartitionedGpu, PartitionedInstance};
use collo_gpus::mig::DriverProfile;
use collo_gpus::partition::{Partition, Slice};

/// The GPU instances of these devices, sorted by id.
pub fn by_devices(devices: &[MigDevice], profiles: &[DriverProfile]) -> PartitionedGpu {
    let mut ids: Vec<u32> = devices.iter().map(|d| d.gpu_instance).collect();
    ids.sort_unstable();
    ids.dedup();
    let (mut slices, mut parts) = (Vec::new(), Vec::new());
    for id in ids {
        let mut inside: Vec<&MigDevice> = devices.iter().filter(|d| d.gpu_instance == id).collect();
        inside.sort_by_key(|d| d.compute_instance);
        let profile = inside.iter().find_map(|d| profile_of(d, profiles)).unwrap_or_else(|| "an unknown profile".into());
        let compute = inside.iter().map(|d| compute_of(d, &profile)).collect();
        let memory_mib = inside.iter().find_map(|d| d.memory_mib);
        slices.push(Slice { profile, start: None, compute });
        let devices = inside.into_iter().cloned().collect();
        parts.push(PartitionedInstance { gpu_instance: id, memory_bytes: memory_mib.map(|mib| mib << 20), devices });
    }
    // Without places the order stays that of the ids.
    PartitionedGpu { partition: Partition { mig: true, instances: slices }, instances: parts }
}

/// `1c.3g.20gb` → its compute slices and its profile; `3g.20gb` has one compute instance with all of it.
fn part(called: &str) -> (Option<u32>, &str) {
    let divided = called.split_once('.').and_then(|(c, profile)| Some((c.strip_suffix('c')?.parse().ok()?, profile)));
    divided.map_or((None, called), |(size, profile)| (Some(size), profile))
}

/// By its name; else the only profile that has its slices and its memory.
fn profile_of(device: &MigDevice, profiles: &[DriverProfile]) -> Option<String> {
    if let Some(called) = &device.called {
        return Some(part(called).1.to_string());
    }
    let (slices, _) = device.slices?;
    let mut alike = profiles.iter().filter(|p| p.slices == slices && Some(p.memory_mib) == device.memory_mib);
    alike.next().filter(|_| alike.next().is_none()).map(|p| p.name.clone())
}

/// Its compute slices: from the driver, else from its name.
fn compute_of(device: &MigDevice, profile: &str) -> u32 {
    let by_name = || {
        let own = device.called.as_deref().and_then(|called| part(called).0);
        own.or_else(|| profile.split('g').next()?.parse().ok())
    };
    device.slices.map(|(_, own)| own).or_else(by_name).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(gpu_instance: u32, compute_instance: u32, called: Option<&str>, slices: Option<(u32, u32)>) -> MigDevice {
        MigDevice {
            uuid: format!("MIG-{gpu_instance}-{compute_instance}"),
            gpu_instance,
            compute_instance,
            sms: None,
            memory_mib: Some(19968),
            called: called.map(str::to_string),
            slices,
        }
    }

    fn profile(name: &str, slices: u32) -> DriverProfile {
        DriverProfile {
            name: name.into(),
            id: 0,
            slices,
            most: 1,
            sms: 14 * slices,
            memory_mib: 19968,
            engines: [0; 5],
            starts: Vec::new(),
            units: 0,
        }
    }

    #[test]
    fn instances_are_known_by_their_devices_and_their_places_are_not() {
        let devices = [
            device(5, 1, Some("2c.3g.20gb"), Some((3, 2))),
            device(5, 0, Some("1c.3g.20gb"), Some((3, 1))),
            device(1, 0, Some("4g.20gb"), Some((4, 4))),
        ];
        let cut = by_devices(&devices, &[]);
        assert_eq!(cut.partition.to_string(), "4g.20gb + 1c.3g.20gb + 2c.3g.20gb");
        assert!(cut.partition.instances.iter().all(|s| s.start.is_none()));
        let order: Vec<&str> = cut.instances.iter().flat_map(|p| &p.devices).map(|d| d.uuid.as_str()).collect();
        assert_eq!(order, ["MIG-1-0", "MIG-5-0", "MIG-5-1"]);
        assert_eq!(cut.instances[0].memory_bytes, Some(19968 << 20));
    }

    #[test]
    fn a_name_alone_or_numbers_alone_will_do() {
        let by_name = by_devices(&[device(1, 0, Some("3g.20gb"), None), device(2, 0, Some("1c.4g.20gb"), None)], &[]);
        assert_eq!(by_name.partition.to_string(), "3g.20gb + 1c.4g.20gb");
        let profiles = [profile("3g.20gb", 3), profile("4g.20gb", 4)];
        assert_eq!(by_devices(&[device(1, 0, None, Some((3, 3)))], &profiles).partition.to_string(), "3g.20gb");
        // With `+me` beside it nobody can tell which of the two it is.
        let both = [profile("3g.20gb", 3), profile("3g.20gb+me", 3)];
        let unknown = by_devices(&[device(1, 0, None, Some((3, 3)))], &both);
        assert!(unknown.partition.to_string().contains("unknown profile"), "{}", unknown.partition);
    }
}
