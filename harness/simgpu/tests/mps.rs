//! MPS: the daemon's program, its servers, and members as clients.

mod machine;

use machine::{Machine, on, until};
use nvml_wrapper::enums::device::UsedGpuMemory;

const CONTROL: &str = env!("CARGO_BIN_EXE_nvidia-cuda-mps-control");
const NOBODY: &str = "Cannot find MPS control daemon process\n";

fn tell(machine: &Machine, command: &str) -> (i32, String) {
    let (status, said, wrong) = machine.run(CONTROL, &[], &format!("{command}\n"));
    (status, said + &wrong)
}

fn start(machine: &Machine) {
    let (status, said, _) = machine.run(CONTROL, &["-d"], "");
    assert_eq!((status, said.as_str()), (0, ""));
    until("the daemon", || tell(machine, "get_default_active_thread_percentage") == (0, "100.0\n".into()));
}

#[test]
fn members_are_clients_of_the_server_and_gain_what_the_model_says() {
    on("a100-40gb,noise=0", "members_are_clients_of_the_server_and_gain_what_the_model_says", |machine| {
        assert_eq!(tell(&machine, "get_server_list"), (1, NOBODY.into()));
        start(&machine);
        let again = machine.run(CONTROL, &["-d"], "");
        assert_eq!((again.0, again.1.as_str()), (1, "An instance of this daemon is already running\n"));
        assert_eq!(tell(&machine, "get_server_list"), (0, String::new()));
        let mut members = [machine.member(&[]), machine.member(&[]), machine.member(&[])];
        members.iter_mut().for_each(|m| assert_eq!(m.warm_up()["sm_count"], 108));
        let (_, servers) = tell(&machine, "get_server_list");
        let server: u32 = servers.trim().parse().unwrap();
        assert_eq!(tell(&machine, &format!("get_server_status {server}")), (0, "ACTIVE\n".into()));
        let (_, clients) = tell(&machine, &format!("get_client_list {server}"));
        let mut pids: Vec<u32> = clients.lines().map(|l| l.parse().unwrap()).collect();
        pids.sort_unstable();
        let mut wanted = members.each_ref().map(machine::Member::pid);
        wanted.sort_unstable();
        assert_eq!(pids, wanted);
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert_eq!(nvml.sys_process_name(server, 64).unwrap(), "nvidia-cuda-mps-server");
        assert_eq!(device.mps_running_compute_processes().unwrap().len(), 3);
        let all = device.running_compute_processes().unwrap();
        assert!(all.len() == 4 && all.iter().any(|p| p.pid == server), "{all:?}");
        assert!(all.iter().all(|p| matches!(p.used_gpu_memory, UsedGpuMemory::Used(_))));
        members.iter_mut().for_each(|m| m.go(2, "keep-running"));
        members[0].epoch_s();
        let together_s = members[0].epoch_s();
        // Three small ones side by side lose two percent.
        assert!((together_s / 0.299 - 1.0).abs() < 0.05, "{together_s}");
        let (status, _) = tell(&machine, &format!("terminate_client {server} {}", members[2].pid()));
        assert_eq!(status, 0);
        let [first, second, third] = members;
        first.stop();
        second.stop();
        drop(third);
        assert_eq!(tell(&machine, "quit"), (0, String::new()));
        assert_eq!(tell(&machine, "get_server_list"), (1, NOBODY.into()));
        assert!(device.running_compute_processes().unwrap().is_empty());
        let log = std::fs::read_to_string(machine.folder.join("log/server.log")).unwrap();
        assert!(log.contains(&format!(" Server {server:>5}] Received new client request for {{PID: ")), "{log}");
    });
}

#[test]
fn limits_of_threads_and_memory_hold() {
    on("a100-40gb,noise=0", "limits_of_threads_and_memory_hold", |machine| {
        start(&machine);
        assert_eq!(tell(&machine, "set_default_device_pinned_mem_limit 0 1G").0, 0);
        assert_eq!(tell(&machine, "get_default_device_pinned_mem_limit 0").1, "1G\n");
        let mut limited = machine.member(&[("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50")]);
        assert_eq!(limited.hear("hello")["sm_count"], 54);
        limited.say(serde_json::json!({ "command": "warm_up" }));
        assert_eq!(limited.hear("error")["kind"], "out_of_memory");
        assert_eq!(limited.child.wait().unwrap().code(), Some(1));
        tell(&machine, "quit");
    });
}

#[test]
fn memory_is_limited_on_each_device_that_the_list_names_and_on_no_other() {
    let test = "memory_is_limited_on_each_device_that_the_list_names_and_on_no_other";
    on("a100-40gb,noise=0,gpus=2", test, |machine| {
        let nvml = machine.nvml();
        let cards = [0, 1].map(|card| nvml.device_by_index(card).unwrap().uuid().unwrap()).join(",");
        let words = ["--model=xlnet-base", "--dataset=wikitext-2", "--packing=lines", "--batch-size=8", "--data-parallel=auto"];
        for (limits, refused) in [("0=30G,1=30G", None), ("0=1G", Some("GPU 0")), ("1=1G", Some("GPU 1"))] {
            let mut command = std::process::Command::new(CONTROL);
            command.arg("-f").env("CUDA_VISIBLE_DEVICES", &cards).env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limits);
            let mut daemon = command.spawn().unwrap();
            until("the daemon", || tell(&machine, "get_server_list").0 == 0);
            let mut member = machine::Member::start("language", &words, &[("CUDA_VISIBLE_DEVICES", cards.as_str())]);
            let Some(refused) = refused else {
                member.warm_up();
                member.stop();
                tell(&machine, "quit");
                daemon.wait().unwrap();
                continue;
            };
            member.hear("hello");
            member.say(serde_json::json!({ "command": "warm_up" }));
            let error = member.hear("error");
            assert_eq!(error["kind"], "out_of_memory", "{limits}");
            assert!(error["message"].as_str().unwrap().contains(refused), "{limits}: {error}");
            member.child.wait().unwrap();
            tell(&machine, "quit");
            daemon.wait().unwrap();
        }
    });
}

#[test]
fn a_fault_kills_every_client_and_is_over_when_they_are_gone() {
    on("a100-40gb,mps-fault@300ms", "a_fault_kills_every_client_and_is_over_when_they_are_gone", |machine| {
        start(&machine);
        let mut members = [machine.member(&[]), machine.member(&[])];
        members.iter_mut().for_each(|m| drop(m.warm_up()));
        let (_, servers) = tell(&machine, "get_server_list");
        members.iter_mut().for_each(|m| m.go(9, "keep-running"));
        for member in &mut members {
            let said = member.hear("error");
            assert!(said["message"].as_str().unwrap().contains("fatal fault"), "{said}");
            assert_eq!(member.child.wait().unwrap().code(), Some(1));
        }
        let status = format!("get_server_status {}", servers.trim());
        until("the server", || tell(&machine, &status) == (0, "ACTIVE\n".into()));
        tell(&machine, "quit");
    });
}

#[test]
fn whoever_cannot_reach_the_daemon_runs_without_mps_and_says_nothing() {
    on("a100-40gb,mps-no-attach=1", "whoever_cannot_reach_the_daemon_runs_without_mps_and_says_nothing", |machine| {
        start(&machine);
        let mut members = [machine.member(&[("COLLO_MEMBER", "0")]), machine.member(&[("COLLO_MEMBER", "1")])];
        let elsewhere = machine.folder.join("elsewhere");
        let mut third = machine.member(&[("CUDA_MPS_PIPE_DIRECTORY", elsewhere.to_str().unwrap())]);
        members.iter_mut().for_each(|m| drop(m.warm_up()));
        third.warm_up();
        let (_, servers) = tell(&machine, "get_server_list");
        let (_, clients) = tell(&machine, &format!("get_client_list {}", servers.trim()));
        assert_eq!(clients, format!("{}\n", members[0].pid()));
        members.into_iter().for_each(machine::Member::stop);
        drop(third);
        tell(&machine, "quit");
    });
}

#[test]
fn a_daemon_that_dies_takes_its_server_and_its_clients_along() {
    on("a100-40gb,mps-dies@300ms", "a_daemon_that_dies_takes_its_server_and_its_clients_along", |machine| {
        start(&machine);
        let mut member = machine.member(&[]);
        member.warm_up();
        member.go(9, "keep-running");
        assert!(member.hear("error")["message"].as_str().unwrap().contains("MPS"));
        assert_eq!(tell(&machine, "get_server_list"), (1, NOBODY.into()));
        let nvml = machine.nvml();
        until("an empty card", || nvml.device_by_index(0).unwrap().running_compute_processes().unwrap().is_empty());
    });
}

#[test]
fn quit_waits_for_clients_only_as_long_as_it_is_told() {
    on("a100-40gb", "quit_waits_for_clients_only_as_long_as_it_is_told", |machine| {
        start(&machine);
        let mut member = machine.member(&[]);
        member.warm_up();
        member.go(2, "keep-running");
        assert_eq!(tell(&machine, "quit -t 1"), (0, String::new()));
        assert!(member.hear("error")["message"].as_str().unwrap().contains("810"));
        assert_eq!(tell(&machine, "get_server_list"), (1, NOBODY.into()));
    });
}

#[test]
fn a_path_that_is_too_long_for_a_socket_finds_nobody() {
    on("a100-40gb", "a_path_that_is_too_long_for_a_socket_finds_nobody", |machine| {
        let long = machine.folder.join("x".repeat(100));
        let output = std::process::Command::new(CONTROL).arg("-d").env("CUDA_MPS_PIPE_DIRECTORY", long).output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(1), ""));
    });
}

#[test]
fn a_daemon_on_an_instance_serves_that_instance() {
    on("a100-40gb,noise=0,mig=2×3g.20gb", "a_daemon_on_an_instance_serves_that_instance", |machine| {
        let nvml = machine.nvml();
        let device = nvml.device_by_index(0).unwrap();
        let half = device.mig_device_by_index(1).unwrap().uuid().unwrap();
        let other = device.mig_device_by_index(0).unwrap().uuid().unwrap();
        let mut daemon = std::process::Command::new(CONTROL).arg("-f").env("CUDA_VISIBLE_DEVICES", &half).spawn().unwrap();
        until("the daemon", || tell(&machine, "get_server_list").0 == 0);
        let mut members = [half.as_str(), "0"].map(|d| machine.member(&[("CUDA_VISIBLE_DEVICES", d)]));
        let seen = half.replacen("MIG-", "GPU-", 1);
        for member in &mut members {
            let hello = member.warm_up();
            assert_eq!((hello["device"].as_str(), hello["sm_count"].as_u64()), (Some(seen.as_str()), Some(42)));
        }
        let mut lost = machine.member(&[("CUDA_VISIBLE_DEVICES", other.as_str())]);
        assert!(lost.hear("error")["message"].as_str().unwrap().contains("No CUDA GPUs"));
        let seen = nvml.device_by_uuid(half.as_str()).unwrap().running_compute_processes().unwrap();
        assert!(seen.len() == 3 && seen.iter().all(|p| p.gpu_instance_id.is_some()), "{seen:?}");
        let all = device.mps_running_compute_processes().unwrap();
        assert!(all.len() == 2 && all.iter().all(|p| p.compute_instance_id == Some(0)), "{all:?}");
        members.iter_mut().for_each(|m| m.go(2, "keep-running"));
        members[0].epoch_s();
        let together_s = members[0].epoch_s();
        // 0.34 of the card are 0.87 of 42 SMs: both fit, and being served costs two percent.
        assert!((together_s / 0.305 - 1.0).abs() < 0.05, "{together_s}");
        let server: i32 = tell(&machine, "get_server_list").1.trim().parse().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        until("the end of the server", || !std::path::Path::new(&format!("/proc/{server}")).exists());
        assert!(members[0].hear("error")["message"].as_str().unwrap().contains("MPS"));
        until("an empty card", || device.running_compute_processes().unwrap().is_empty());
        // What a killed daemon leaves lying does not stop the next.
        start(&machine);
        assert_eq!(tell(&machine, "quit").0, 0);
    });
}
