//! The study's shape: seven small models under naive sharing, MPS and MIG, by the clock.

mod machine;

use machine::{Machine, Member, cut, on, until};

const CONTROL: &str = env!("CARGO_BIN_EXE_nvidia-cuda-mps-control");

/// Sum of the paces of all members in their second epoch.
fn gain(mut members: Vec<Member>) -> f64 {
    members.iter_mut().for_each(|m| drop(m.warm_up()));
    members.iter_mut().for_each(|m| m.go(2, "keep-running"));
    let times: Vec<f64> = members
        .iter_mut()
        .map(|m| {
            m.epoch_s();
            m.epoch_s()
        })
        .collect();
    members.into_iter().for_each(Member::stop);
    // 17 batches of 32 items of 0.55 ms.
    times.iter().map(|t| 17.0 * 32.0 * 0.55e-3 / t).sum()
}

fn near(what: &str, got: f64, wanted: f64) {
    assert!((got / wanted - 1.0).abs() < 0.06, "{what}: {got:.2}, wanted {wanted}");
}

fn seven(machine: &Machine, devices: &[String]) -> Vec<Member> {
    (0..7)
        .map(|i| machine.member(&devices.get(i).map(|d| vec![("CUDA_VISIBLE_DEVICES", d.as_str())]).unwrap_or_default()))
        .collect()
}

#[test]
fn seven_small_models_gain_as_the_model_says_under_each_mode() {
    on("a100-40gb,noise=0", "seven_small_models_gain_as_the_model_says_under_each_mode", |machine| {
        near("naive", gain(seven(&machine, &[])), 1.94);

        let tell = |command: &str| machine.run(CONTROL, &[], &format!("{command}\n")).0;
        machine.run(CONTROL, &["-d"], "");
        until("the daemon", || tell("get_server_list") == 0);
        near("MPS", gain(seven(&machine, &[])), 5.48);
        tell("quit");

        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert_eq!(device.set_mig_mode(true).unwrap(), 0);
        // It was reset.
        let device = nvml.device_by_index(0).unwrap();
        (0..7).for_each(|start| assert!(cut(&nvml, 0, 19, start, 1).is_ok()));
        let devices: Vec<String> = (0..7).map(|i| device.mig_device_by_index(i).unwrap().uuid().unwrap()).collect();
        near("MIG", gain(seven(&machine, &devices)), 2.88);
        assert!(machine::clear(&nvml, 0).is_ok());
    });
}
