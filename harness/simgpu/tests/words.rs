//! Further words of the scenario, and what reading the card costs.

mod machine;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use machine::{Machine, on, until};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::ComputeMode;
use nvml_wrapper::error::NvmlError;
use serde_json::json;

const CONTROL: &str = env!("CARGO_BIN_EXE_nvidia-cuda-mps-control");

fn under(machine: &Machine, words: &str) -> Nvml {
    // SAFETY: this process has one thread, the test's, that reads the environment.
    unsafe { std::env::set_var("COLLO_SIM", format!("a100-40gb{words}")) };
    machine.nvml()
}

#[test]
fn words_change_what_the_library_says() {
    on("a100-40gb,exclusive,no-persistence", "words_change_what_the_library_says", |machine| {
        let nvml = under(&machine, ",exclusive,no-persistence");
        let device = nvml.device_by_index(0).unwrap();
        assert!(!device.is_in_persistent_mode().unwrap());
        assert!(matches!(device.compute_mode().unwrap(), ComputeMode::ExclusiveProcess));
        let mut first = machine.member(&[]);
        first.warm_up();
        let mut second = machine.member(&[]);
        assert!(second.hear("error")["message"].as_str().unwrap().contains("busy or unavailable"));
        drop(nvml);
        let nvml = under(&machine, ",hidden-pids");
        let device = nvml.device_by_index(0).unwrap();
        let seen = device.running_compute_processes().unwrap();
        assert!(seen.len() == 1 && seen[0].pid != first.pid());
        first.stop();
        drop(nvml);
        let me = std::process::id();
        let nvml = under(&machine, &format!(",foreign={me}"));
        let device = nvml.device_by_index(0).unwrap();
        assert_eq!(device.running_compute_processes().unwrap()[0].pid, me);
        assert_eq!(device.memory_info().unwrap().used, 2 << 30);
        assert!(matches!(device.set_mig_mode(true), Ok(19)));
        drop(nvml);
        let nvml = under(&machine, ",display");
        let small = nvml.device_by_index(0).unwrap();
        assert_eq!((nvml.device_count().unwrap(), small.name().unwrap().as_str()), (2, "simulated NVIDIA DGX Display"));
        assert!(small.is_display_active().unwrap());
        assert!(matches!(small.mig_mode(), Err(NvmlError::NotSupported)));
        let member = machine.member(&[]).warm_up();
        assert_eq!(member["device"], nvml.device_by_index(1).unwrap().uuid().unwrap());
    });
}

#[test]
fn members_misbehave_as_the_scenario_says() {
    let scenario = "a100-40gb,oom=1,wrong-sm=2,wrong-device=3,silent=4,crash=5@50ms";
    on(scenario, "members_misbehave_as_the_scenario_says", |machine| {
        let mut members: Vec<machine::Member> = (0..6).map(|i| machine.member(&[("COLLO_MEMBER", &i.to_string())])).collect();
        let hellos: Vec<serde_json::Value> = members.iter_mut().map(|m| m.hear("hello")).collect();
        assert_eq!((&hellos[0]["sm_count"], &hellos[2]["sm_count"]), (&json!(108), &json!(110)));
        assert_ne!(hellos[0]["device"], hellos[3]["device"]);
        members.iter_mut().for_each(|m| m.say(json!({ "command": "warm_up" })));
        assert_eq!(members[1].hear("error")["kind"], "out_of_memory");
        for ready in [0, 2, 3, 5] {
            members[ready].hear("ready");
        }
        members.iter_mut().for_each(|m| m.go(50, "keep-running"));
        assert!(members[5].hear("error")["message"].as_str().unwrap().contains("illegal memory access"));
        let silent = members.remove(4);
        silent.stop();
    });
}

#[test]
fn daemons_misbehave_as_the_scenario_says() {
    on("a100-40gb,mps-slow=400ms", "daemons_misbehave_as_the_scenario_says", |machine| {
        let tell = |command: &str| machine.run(CONTROL, &[], &format!("{command}\n")).0;
        let mut daemon = Command::new(CONTROL).arg("-f").stdout(Stdio::null()).spawn().unwrap();
        assert_eq!(tell("get_server_list"), 1);
        let began = Instant::now();
        until("the slow daemon", || tell("get_server_list") == 0);
        assert!(began.elapsed() > Duration::from_millis(300));
        assert_eq!(tell("quit"), 0);
        assert_eq!(daemon.wait().unwrap().code(), Some(0));
        assert!(!machine.folder.join("mps/nvidia-cuda-mps-control.pid").exists());

        let refused = Command::new(CONTROL).arg("-f").env("COLLO_SIM", "a100-40gb,mps-no-start").output().unwrap();
        assert_eq!(refused.status.code(), Some(1));

        let mut daemon = Command::new(CONTROL).arg("-f").env("COLLO_SIM", "a100-40gb,mps-hang").spawn().unwrap();
        until("the daemon", || tell("get_server_list") == 0);
        let mut quitting = Command::new(CONTROL).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut quitting.stdin.take().unwrap(), b"quit\n").unwrap();
        let _ = Command::new("kill").arg(daemon.id().to_string()).status();
        std::thread::sleep(Duration::from_millis(300));
        assert!(quitting.try_wait().unwrap().is_none() && daemon.try_wait().unwrap().is_none());
        end(&mut daemon);
        end(&mut quitting);
    });
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_log_that_has_grown_is_begun_anew_and_nothing_is_forgotten() {
    on("a100-40gb,noise=0", "a_log_that_has_grown_is_begun_anew_and_nothing_is_forgotten", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let mut last_mj = 0;
        let mut longest = 0;
        for _ in 0..4 {
            let mut member = machine.member(&[]);
            member.warm_up();
            member.go(1, "exit");
            member.hear("done");
            member.child.wait().unwrap();
            // As if a hundred more had come and gone.
            let text = std::fs::read_to_string(machine.folder.join("activity.log")).unwrap();
            let tail = format!("{}\n", text.lines().last().unwrap()).repeat(1000);
            std::fs::write(machine.folder.join("activity.log"), text + &tail).unwrap();
            let now_mj = device.total_energy_consumption().unwrap();
            assert!(now_mj > last_mj, "{now_mj} {last_mj}");
            last_mj = now_mj;
            drop(machine.member(&[]).warm_up());
            longest = longest.max(std::fs::metadata(machine.folder.join("activity.log")).unwrap().len());
        }
        assert!(longest < 64 << 10, "{longest}");
        assert!(device.total_energy_consumption().unwrap() >= last_mj);
    });
}

#[test]
fn reading_eight_cards_with_56_processes_costs_little() {
    on("a100-40gb,gpus=8,mig=7×1g.5gb", "reading_eight_cards_with_56_processes_costs_little", |machine| {
        let nvml = machine.nvml();
        let mut sleepers: Vec<Child> = (0..56).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let mut sim = simgpu::sim::Sim::open().unwrap();
        for (i, child) in sleepers.iter().enumerate() {
            let (card, pid) = (i / 7, child.id());
            let gpu = sim.state().cards[card].instances[i % 7].id;
            let born = simgpu::clock::born(pid).unwrap();
            let arrival = json!({
                "born": born, "card": card, "gi": gpu, "ci": 0, "sms": 0.13, "memory": 0.125, "server": null, "bytes": 1,
                "u": 0.5, "a": 0.34, "m": 0.1, "cap": null, "pace": 1.0,
            });
            let arrival: simgpu::log::Arrival = serde_json::from_value(arrival).unwrap();
            let events = vec![(pid, simgpu::log::Event::Start(arrival)), (pid, simgpu::log::Event::Train)];
            sim.append(|_| events).unwrap();
        }
        let devices: Vec<_> = (0..8).map(|i| nvml.device_by_index(i).unwrap()).collect();
        let began = Instant::now();
        let rounds = 20;
        let mut calls = 0;
        for _ in 0..rounds {
            for device in &devices {
                assert!(device.power_usage().unwrap() > 60_000);
                device.total_energy_consumption().unwrap();
                device.memory_info().unwrap();
                assert_eq!(device.running_compute_processes().unwrap().len(), 7);
                // The wrapper asks for the length of a list first.
                calls += 5;
                for i in 0..7 {
                    let own = device.mig_device_by_index(i).unwrap();
                    own.memory_info().unwrap();
                    assert_eq!(own.running_compute_processes().unwrap().len(), 1);
                    calls += 4;
                }
            }
        }
        let each_us = began.elapsed().as_secs_f64() * 1e6 / f64::from(calls);
        println!("{each_us:.1} µs a call, {:.1} ms a round", began.elapsed().as_secs_f64() * 1e3 / f64::from(rounds));
        assert!(each_us < 200.0, "{each_us} µs a call");
        sleepers.iter_mut().for_each(end);
    });
}

#[test]
fn two_compute_instances_of_one_gpu_instance_are_two_devices_with_one_memory() {
    let test = "two_compute_instances_of_one_gpu_instance_are_two_devices_with_one_memory";
    on("a100-40gb,noise=0,mig=none", test, |machine| {
        use nvml_wrapper::error::{nvml_sym, nvml_try};
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let lib = nvml.lib();
        let (mut gpu, mut compute) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: every pointer is to a local of the type that NVML wants.
        unsafe {
            nvml_try(nvml_sym(lib.nvmlDeviceCreateGpuInstance.as_ref()).unwrap()(device.handle(), 9, &mut gpu)).unwrap();
            for profile in [0, 1] {
                nvml_try(nvml_sym(lib.nvmlGpuInstanceCreateComputeInstance.as_ref()).unwrap()(gpu, profile, &mut compute))
                    .unwrap();
            }
        }
        let parts = [0, 1].map(|i| device.mig_device_by_index(i).unwrap());
        assert!(parts[0].name().unwrap().ends_with("MIG 1c.3g.20gb") && parts[1].name().unwrap().ends_with("MIG 2c.3g.20gb"));
        let mut members = parts.each_ref().map(|p| machine.member(&[("CUDA_VISIBLE_DEVICES", &p.uuid().unwrap())]));
        assert_eq!(members.each_mut().map(|m| m.warm_up()["sm_count"].as_u64()), [Some(14), Some(28)]);
        members.iter_mut().for_each(|m| m.go(2, "keep-running"));
        for (part, member) in parts.iter().zip(&members) {
            let seen = part.running_compute_processes().unwrap();
            assert_eq!(seen.iter().map(|p| p.pid).collect::<Vec<_>>(), [member.pid()]);
            assert_eq!(part.memory_info().unwrap().used, (2 * 1300) << 20);
        }
        assert_eq!(device.running_compute_processes().unwrap().len(), 2);
    });
}
