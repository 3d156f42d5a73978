//! What goes wrong when the scenario says so, and metrics of Hopper.

mod machine;

use std::time::Duration;

use machine::{clear, cut, on};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;

#[test]
fn gpm_measures_the_card_and_its_instances() {
    on("h100-80gb,noise=0,mig=2×3g.40gb", "gpm_measures_the_card_and_its_instances", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert!(device.gpm_support().unwrap());
        let half = device.mig_device_by_index(0).unwrap().uuid().unwrap();
        let mut member = machine.large_member(&[("CUDA_VISIBLE_DEVICES", &half)]);
        assert_eq!(member.warm_up()["sm_count"], 60);
        member.go(50, "keep-running");
        std::thread::sleep(Duration::from_millis(100));
        let ids = [GpmMetricId::SmUtil, GpmMetricId::DramBwUtil, GpmMetricId::PcieRxPerSec];
        let (card, own) = (device.gpm_sample().unwrap(), device.gpm_mig_sample(1).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let early = device.gpm_sample().unwrap();
        assert!(matches!(gpm_metrics_get(&nvml, &card, &early, &ids), Err(NvmlError::InvalidArg)));
        std::thread::sleep(Duration::from_millis(150));
        let (card_later, own_later) = (device.gpm_sample().unwrap(), device.gpm_mig_sample(1).unwrap());
        let value = |all: Vec<Result<nvml_wrapper::struct_wrappers::gpm::GpmMetricResult, NvmlError>>, i: usize| {
            all[i].as_ref().unwrap().value
        };
        let on_card = value(gpm_metrics_get(&nvml, &card, &card_later, &ids).unwrap(), 0);
        let on_own = value(gpm_metrics_get(&nvml, &own, &own_later, &ids).unwrap(), 0);
        assert!(on_own > 40.0 && on_own <= 100.0, "{on_own}");
        assert!((on_card / on_own - 60.0 / 132.0).abs() < 0.02, "{on_card} {on_own}");
        assert!(matches!(gpm_metrics_get(&nvml, &card, &own_later, &ids), Err(NvmlError::InvalidArg)));
    });
}

#[test]
fn a_lost_gpu_answers_nothing_and_its_members_die() {
    on("a100-40gb,lost@200ms", "a_lost_gpu_answers_nothing_and_its_members_die", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let mut member = machine.member(&[]);
        member.warm_up();
        assert!(device.power_usage().is_ok());
        member.go(50, "keep-running");
        assert!(member.hear("error")["message"].as_str().unwrap().contains("CUDA error"));
        assert_eq!(member.child.wait().unwrap().code(), Some(1));
        assert!(matches!(device.power_usage(), Err(NvmlError::GpuLost)));
        assert!(matches!(nvml.device_by_index(0), Err(NvmlError::GpuLost)));
    });
}

#[test]
fn mig_changes_are_refused_as_the_scenario_says() {
    on("a100-40gb,mig-in-use", "mig_changes_are_refused_as_the_scenario_says", |machine| {
        let under = |scenario: &str, act: &dyn Fn(&nvml_wrapper::Nvml)| {
            // SAFETY: this process has one thread, the test's, that reads the environment.
            unsafe { std::env::set_var("COLLO_SIM", scenario) };
            act(&machine.nvml());
        };
        let mode = |nvml: &nvml_wrapper::Nvml| nvml.device_by_index(0).unwrap().set_mig_mode(true);
        under("a100-40gb,mig-in-use", &|nvml| assert!(matches!(mode(nvml), Ok(19))));
        under("a100-40gb,mig-pending", &|nvml| {
            assert!(matches!(mode(nvml), Ok(16)));
            let seen = nvml.device_by_index(0).unwrap().mig_mode().unwrap();
            assert_eq!((seen.current, seen.pending), (0, 1));
        });
        under("a100-40gb,mig-no-permission", &|nvml| assert!(matches!(mode(nvml), Err(NvmlError::NoPermission))));
        under("a100-40gb,mig-not-supported", &|nvml| {
            assert!(matches!(nvml.device_by_index(0).unwrap().mig_mode(), Err(NvmlError::NotSupported)));
        });
        under("a100-40gb", &|nvml| assert!(matches!(mode(nvml), Ok(0))));
        under("a100-40gb,no-resources", &|nvml| {
            assert!(matches!(cut(nvml, 0, 9, 0, 4), Err(NvmlError::UnexpectedVariant(23))));
        });
        under("a100-40gb,ci-fails", &|nvml| assert!(cut(nvml, 0, 9, 0, 4).is_err()));
        under("a100-40gb,gi-busy=2", &|nvml| {
            assert!(matches!(clear(nvml, 0), Err(NvmlError::InUse)));
            assert!(matches!(clear(nvml, 0), Err(NvmlError::InUse)));
            assert!(clear(nvml, 0).is_ok());
        });
        under("a100-40gb,nvml:nvmlDeviceGetName=999,no-power,no-energy", &|nvml| {
            let device = nvml.device_by_index(0).unwrap();
            assert!(matches!(device.name(), Err(NvmlError::Unknown)));
            assert!(matches!(device.power_usage(), Err(NvmlError::NotSupported)));
            assert!(matches!(device.total_energy_consumption(), Err(NvmlError::NotSupported)));
        });
        under("a100-40gb,driver=535.183.06", &|nvml| {
            assert_eq!(nvml.sys_driver_version().unwrap(), "535.183.06");
            assert_eq!(nvml.sys_cuda_driver_version().unwrap(), 12020);
        });
    });
}

#[test]
fn seven_large_ones_run_out_of_memory_and_so_does_one_on_a_small_instance() {
    on("a100-40gb", "seven_large_ones_run_out_of_memory_and_so_does_one_on_a_small_instance", |machine| {
        let mut members: Vec<machine::Member> = (0..5).map(|_| machine.large_member(&[])).collect();
        for member in &mut members[..4] {
            member.warm_up();
        }
        let last = &mut members[4];
        last.hear("hello");
        last.say(serde_json::json!({ "command": "warm_up" }));
        let said = last.hear("error");
        assert_eq!(said["kind"], "out_of_memory");
        assert!(said["message"].as_str().unwrap().starts_with("CUDA out of memory. Tried to allocate "), "{said}");
        members.into_iter().take(4).for_each(machine::Member::stop);
        let nvml = machine.nvml();
        nvml.device_by_index(0).unwrap().set_mig_mode(true).unwrap();
        cut(&nvml, 0, 19, 0, 1).unwrap();
        let mut member = machine.large_member(&[("CUDA_VISIBLE_DEVICES", "0")]);
        assert_eq!(member.hear("hello")["sm_count"], 14);
        member.say(serde_json::json!({ "command": "warm_up" }));
        assert_eq!(member.hear("error")["kind"], "out_of_memory");
    });
}

#[test]
fn a_killed_member_leaves_the_card() {
    on("a100-40gb,energy-reset@100ms,throttle@100ms", "a_killed_member_leaves_the_card", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let before_mj = device.total_energy_consumption().unwrap();
        let mut member = machine.member(&[]);
        member.warm_up();
        member.go(50, "keep-running");
        std::thread::sleep(Duration::from_millis(400));
        assert!(device.total_energy_consumption().unwrap() < before_mj);
        assert_eq!(device.current_throttle_reasons().unwrap().bits(), 4);
        assert_eq!(device.running_compute_processes().unwrap().len(), 1);
        member.child.kill().unwrap();
        member.child.wait().unwrap();
        assert!(device.running_compute_processes().unwrap().is_empty());
        assert_eq!(device.memory_info().unwrap().used, 0);
    });
}
