//! What a normal user is told, what not.

mod machine;

use machine::on;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};

fn refused<T>(answer: Result<T, NvmlError>) -> bool {
    matches!(answer, Err(NvmlError::NoPermission))
}

#[test]
fn a_user_reads_what_is_open_to_everybody_and_changes_nothing() {
    on("a100-40gb,user", "a_user_reads_what_is_open_to_everybody_and_changes_nothing", |machine| {
        let nvml = machine.nvml();
        let mut device = nvml.device_by_index(0).unwrap();
        assert_eq!(device.mig_mode().unwrap().current, 0);
        assert_eq!(device.memory_info().unwrap().total, 40960 << 20);
        assert!(device.running_compute_processes().unwrap().is_empty());
        assert_eq!(device.profile_info(0).unwrap().slice_count, 1);
        device.compute_mode().unwrap();
        let mut count = 0;
        // SAFETY: without a place to write to, only the count is written.
        let places = unsafe {
            let call = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref()).unwrap();
            nvml_try(call(device.handle(), 19, std::ptr::null_mut(), &mut count))
        };
        assert!(refused(places));
        assert!(refused(device.set_mig_mode(true)));
        assert!(refused(device.set_compute_mode(nvml_wrapper::enum_wrappers::device::ComputeMode::ExclusiveProcess)));
        assert!(refused(device.set_persistent(false)));
        assert_eq!(device.mig_mode().unwrap().pending, 0);
    });
}

#[test]
fn of_a_card_that_is_cut_a_user_is_told_of_its_mig_devices_and_nothing_of_the_whole() {
    let test = "of_a_card_that_is_cut_a_user_is_told_of_its_mig_devices_and_nothing_of_the_whole";
    on("a100-40gb,user,mig=2×3g.20gb", test, |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert!(refused(device.memory_info()) && refused(device.running_compute_processes()));
        assert!(refused(device.mps_running_compute_processes()));
        let (mut handles, mut count) = ([std::ptr::null_mut(); 8], 8);
        // SAFETY: the list has room for as many as there can be.
        let instances = unsafe {
            let call = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstances.as_ref()).unwrap();
            nvml_try(call(device.handle(), 9, handles.as_mut_ptr(), &mut count))
        };
        assert!(refused(instances));
        for index in 0..2 {
            let part = device.mig_device_by_index(index).unwrap();
            assert_eq!(part.name().unwrap(), "simulated NVIDIA A100-SXM4-40GB MIG 3g.20gb");
            assert_eq!(part.attributes().unwrap().gpu_instance_slice_count, 3);
            assert_eq!(part.memory_info().unwrap().total, 19968 << 20);
            assert!(part.running_compute_processes().unwrap().is_empty());
            assert!(part.uuid().unwrap().starts_with("MIG-"));
        }
    });
}

#[test]
fn drivers_of_a_time_write_wide_entries_and_never_behind_the_room() {
    let test = "drivers_of_a_time_write_wide_entries_and_never_behind_the_room";
    on("a100-40gb,driver=535.54.03", test, |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        // Their torch is too new for this driver; of it nothing else is looked at here.
        let mut members = [0, 1].map(|_| machine.member(&[("COLLO_SIM", "a100-40gb")]));
        members.iter_mut().for_each(|m| drop(m.warm_up()));
        let seen = device.running_compute_processes().unwrap();
        let real: Vec<u32> = members.iter().map(|m| m.pid()).collect();
        // The first is right, the second is read eight bytes too early.
        assert!(seen.len() == 2 && real.contains(&seen[0].pid) && !real.contains(&seen[1].pid), "{seen:?} {real:?}");
        let mut exact = [[0xeeu8; 24]; 3];
        let mut count = 2;
        // SAFETY: the room is for three, and two are told.
        let done = unsafe {
            let call = nvml_sym(nvml.lib().nvmlDeviceGetComputeRunningProcesses_v3.as_ref()).unwrap();
            nvml_try(call(device.handle(), &mut count, exact.as_mut_ptr().cast()))
        };
        assert!(done.is_ok() && count == 2 && exact[2] == [0xee; 24], "it writes behind the room");
        drop(nvml);
        // SAFETY: this process has one thread, the test's, that reads the environment.
        unsafe { std::env::set_var("COLLO_SIM", "a100-40gb,driver=535.98") };
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert!(matches!(device.running_compute_processes(), Err(NvmlError::FunctionNotFound)));
    });
}

#[test]
fn in_a_container_a_stranger_is_not_listed_and_its_memory_and_load_show() {
    let test = "in_a_container_a_stranger_is_not_listed_and_its_memory_and_load_show";
    on("a100-40gb,pid-namespace", test, |machine| {
        let me = std::process::id();
        // SAFETY: this process has one thread, the test's, that reads the environment.
        unsafe {
            std::env::set_var("COLLO_SIM", format!("a100-40gb,pid-namespace,foreign={me},foreign-mib=3000,foreign-load=40"))
        };
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert!(device.running_compute_processes().unwrap().is_empty());
        assert_eq!(device.memory_info().unwrap().used, 3000 << 20);
        assert_eq!(device.utilization_rates().unwrap().gpu, 40);
        let member = machine.member(&[]);
        let pid = member.pid();
        let mut member = member;
        member.warm_up();
        let seen: Vec<u32> = device.running_compute_processes().unwrap().iter().map(|p| p.pid).collect();
        assert_eq!(seen, [pid]);
    });
}
