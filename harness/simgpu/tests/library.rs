//! The library as production opens it: through `nvml-wrapper`.

mod machine;

use std::time::Duration;

use machine::{clear, cut, on};
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

#[test]
fn a_card_is_found_and_says_that_it_is_simulated() {
    on("a100-40gb,gpus=2", "a_card_is_found_and_says_that_it_is_simulated", |machine| {
        let nvml = machine.nvml();
        assert_eq!(nvml.sys_driver_version().unwrap(), "580.95.05");
        assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 13000);
        assert_eq!(nvml.device_count().unwrap(), 2);
        let device = nvml.device_by_index(1).unwrap();
        assert_eq!(device.name().unwrap(), "simulated NVIDIA A100-SXM4-40GB");
        let uuid = device.uuid().unwrap();
        assert_eq!(nvml.device_by_uuid(uuid.as_str()).unwrap().index().unwrap(), 1);
        let pci = device.pci_info().unwrap();
        assert_eq!(nvml.device_by_pci_bus_id(pci.bus_id.as_str()).unwrap().uuid().unwrap(), uuid);
        let memory = device.memory_info().unwrap();
        assert_eq!(memory.total, 40960 << 20);
        assert_eq!(memory.total, memory.reserved + memory.used + memory.free);
        assert_eq!(device.num_cores().unwrap(), 108 * 64);
        assert_eq!(device.clock_info(Clock::SM).unwrap(), 210);
        assert!(!device.gpm_support().unwrap());
        assert!(matches!(nvml.device_by_index(2), Err(NvmlError::InvalidArg)));
        nvml.shutdown().unwrap();
    });
}

#[test]
fn what_is_cut_stays_cut_for_other_processes_until_it_is_destroyed() {
    on("a100-40gb", "what_is_cut_stays_cut_for_other_processes_until_it_is_destroyed", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert_eq!(device.mig_mode().unwrap().current, 0);
        assert!(matches!(cut(&nvml, 0, 9, 4, 4), Err(NvmlError::NotSupported)));
        assert_eq!(device.set_mig_mode(true).unwrap(), 0);
        // The card was reset: what stood for it before stands for nothing.
        assert!(matches!(device.mig_mode(), Err(NvmlError::InvalidArg)));
        assert_eq!(nvml.device_by_index(0).unwrap().mig_mode().unwrap().current, 1);
        let ids =
            [(9, 4, 4), (14, 0, 2), (19, 2, 1), (19, 3, 1)].map(|(id, start, size)| cut(&nvml, 0, id, start, size).unwrap());
        assert_eq!(ids, [1, 3, 7, 8]);
        assert!(matches!(cut(&nvml, 0, 19, 3, 1), Err(NvmlError::UnexpectedVariant(23))));
        drop(nvml);
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let found: Vec<String> =
            (0..device.mig_device_count().unwrap()).filter_map(|i| device.mig_device_by_index(i).ok()?.uuid().ok()).collect();
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|uuid| uuid.starts_with("MIG-")));
        assert!(matches!(device.mig_device_by_index(5), Err(NvmlError::NotFound)));
        let half = nvml.device_by_uuid(found[0].as_str()).unwrap();
        let attributes = half.attributes().unwrap();
        assert_eq!((attributes.multiprocessor_count, attributes.memory_size_mb), (42, 19968));
        assert_eq!(half.mig_parent_device().unwrap().index().unwrap(), 0);
        assert!(matches!(half.power_usage(), Err(NvmlError::NotSupported)));
        assert!(matches!(device.utilization_rates(), Err(NvmlError::NotSupported)));
        assert_eq!(device.set_mig_mode(false).unwrap(), 19);
        assert_eq!(device.mig_mode().unwrap().current, 1);
        clear(&nvml, 0).unwrap();
        assert!(matches!(half.uuid(), Err(NvmlError::InvalidArg)));
        assert_eq!(device.set_mig_mode(false).unwrap(), 0);
        assert_eq!(nvml.device_by_index(0).unwrap().mig_mode().unwrap().current, 0);
    });
}

#[test]
fn members_show_in_the_lists_and_in_what_the_card_draws() {
    on("a100-40gb,noise=0", "members_show_in_the_lists_and_in_what_the_card_draws", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let idle_mw = device.power_usage().unwrap();
        let mut members = [machine.member(&[]), machine.member(&[])];
        for member in &mut members {
            let hello = member.warm_up();
            assert_eq!(hello["device"], device.uuid().unwrap());
            assert_eq!(hello["sm_count"], 108);
        }
        members.iter_mut().for_each(|m| m.go(2, "keep-running"));
        std::thread::sleep(Duration::from_millis(300));
        let mut pids: Vec<u32> = device.running_compute_processes().unwrap().iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        let mut wanted = members.each_ref().map(machine::Member::pid);
        wanted.sort_unstable();
        assert_eq!(pids, wanted);
        let used = device.running_compute_processes().unwrap()[0].used_gpu_memory.clone();
        assert!(matches!(used, UsedGpuMemory::Used(bytes) if bytes == 1300 << 20), "{used:?}");
        assert!(device.mps_running_compute_processes().unwrap().is_empty());
        assert!(device.power_usage().unwrap() > idle_mw + 10_000);
        assert!(device.utilization_rates().unwrap().gpu > 50);
        let energy = device.total_energy_consumption().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let drawn_w = (device.total_energy_consumption().unwrap() - energy) as f64 / 1e3 / 0.5;
        let power_w = f64::from(device.power_usage().unwrap()) / 1e3;
        assert!((drawn_w / power_w - 1.0).abs() < 0.1, "{drawn_w} {power_w}");
        assert!(matches!(device.set_mig_mode(true), Ok(19)));
        assert_eq!((device.mig_mode().unwrap().current, device.mig_mode().unwrap().pending), (0, 1));
        // Time slicing: 0.3 s alone, 1.32 times as long together. The first of two may train alone for a moment.
        members[0].epoch_s();
        let together_s = members[0].epoch_s();
        assert!((together_s / 0.304 - 1.32).abs() < 0.08, "{together_s}");
        for member in members {
            member.stop();
        }
        assert!(device.running_compute_processes().unwrap().is_empty());
        assert_eq!(device.power_usage().unwrap(), idle_mw);
    });
}
