//! `dcgmi`, `nvidia-smi` and `sim-train` as programs.

mod machine;

use machine::{Machine, cut, on};

const DCGMI: &str = env!("CARGO_BIN_EXE_dcgmi");
const SYSTEMCTL: &str = env!("CARGO_BIN_EXE_systemctl");
const SMI: &str = env!("CARGO_BIN_EXE_nvidia-smi");
const TRAIN: &str = env!("CARGO_BIN_EXE_sim-train");

fn monitor(machine: &Machine, fields: &str, entities: &str, times: &str) -> Vec<String> {
    let (status, said, errors) = machine.run(DCGMI, &["dmon", "-e", fields, "-i", entities, "-d", "150", "-c", times], "");
    assert_eq!((status, errors.as_str()), (0, ""), "{said}");
    said.lines().map(str::to_string).collect()
}

#[test]
fn dcgm_sees_what_a_member_does() {
    on("a100-40gb,noise=0", "dcgm_sees_what_a_member_does", |machine| {
        let mut member = machine.member(&[]);
        member.warm_up();
        member.go(50, "keep-running");
        let rows = monitor(&machine, "1001,1002,1005,1009,155", "0", "4");
        assert!(rows[0].starts_with("#Entity") && rows[1].starts_with("ID"), "{rows:?}");
        assert!(rows[2].contains("N/A"), "the first row has no window: {}", rows[2]);
        let cells: Vec<&str> = rows.last().unwrap().split_whitespace().collect();
        assert_eq!(&cells[..2], ["GPU", "0"]);
        let number = |i: usize| cells[i].parse::<f64>().unwrap();
        assert!(
            (number(2) - 0.5).abs() < 0.02 && (number(3) - 0.17).abs() < 0.01 && (number(4) - 0.05).abs() < 0.01,
            "{cells:?}"
        );
        // 13 KB per 0.55 ms, a tenth of it from the card.
        assert!((number(5) / 2.36e6 - 1.0).abs() < 0.05, "{cells:?}");
        assert!(number(6) > 80.0);
        drop(member);
    });
}

#[test]
fn the_host_engine_has_numbers_of_its_own_for_instances() {
    on("a100-40gb,mig=none", "the_host_engine_has_numbers_of_its_own_for_instances", |machine| {
        let nvml = machine.nvml();
        let first = cut(&nvml, 0, 9, 0, 4).unwrap();
        let second = cut(&nvml, 0, 14, 4, 2).unwrap();
        assert_eq!((first, second), (1, 3));
        std::thread::sleep(std::time::Duration::from_millis(400));
        let (_, table, _) = machine.run(DCGMI, &["discovery", "-c"], "");
        assert!(table.contains("| -> I 0/1          | GPU Instance (EntityID: 1) "), "{table}");
        assert!(table.contains("| -> I 0/3          | GPU Instance (EntityID: 0) "), "{table}");
        assert!(table.contains("|    -> CI 0/3/0    | Compute Instance (EntityID: 0) "), "{table}");
        assert!(table.lines().all(|l| l.chars().count() == 90), "{table}");
        let half = nvml.device_by_index(0).unwrap().mig_device_by_index(0).unwrap().uuid().unwrap();
        let mut member = machine.member(&[("CUDA_VISIBLE_DEVICES", &half)]);
        let hello = member.warm_up();
        // CUDA shows the digits of an instance, without what tells them from a card's.
        let seen = half.replacen("MIG-", "GPU-", 1);
        assert_eq!((hello["device"].as_str().unwrap(), hello["sm_count"].as_u64().unwrap()), (seen.as_str(), 42));
        member.go(50, "keep-running");
        let rows = monitor(&machine, "1002,155,252", "0/*", "3");
        let last: Vec<&String> = rows.iter().rev().take(2).collect();
        assert!(last[1].starts_with("GPU-I 1 ") && last[0].starts_with("GPU-I 0 "), "{rows:?}");
        let cells: Vec<&str> = last[1].split_whitespace().collect();
        // 0.17 of the card on 42 of 108 SMs, without power, which no instance has; but beside a 2g a 3g is told at two thirds.
        assert!((cells[2].parse::<f64>().unwrap() - 0.437 * 2.0 / 3.0).abs() < 0.02, "{cells:?}");
        // The column of power stays empty, so words are no columns.
        assert_eq!((cells.len(), cells[3]), (4, "1300"));
        assert_eq!(last[1].find("1300"), Some(16 + 13 + 18));
        assert!(monitor(&machine, "1002", "i:1", "1")[2].starts_with("GPU-I 1 "));
        let card = monitor(&machine, "203,1002", "gpu:0", "3");
        let cells: Vec<&str> = card.last().unwrap().split_whitespace().collect();
        assert_eq!(cells[2], "N/A");
        assert!((cells[3].parse::<f64>().unwrap() - 0.17 * 2.0 / 3.0).abs() < 0.01, "{cells:?}");
    });
}

#[test]
fn dcgm_fails_as_the_scenario_says() {
    on("a100-40gb,no-dcgm", "dcgm_fails_as_the_scenario_says", |machine| {
        let (status, said, _) = machine.run(DCGMI, &["discovery", "-c"], "");
        assert_ne!(status, 0);
        assert!(said.starts_with("Error: unable to establish a connection to the specified host: localhost\n"), "{said}");
        let with = |scenario: &str| {
            let arguments = ["dmon", "-e", "1002,252", "-i", "0", "-d", "100", "-c", "2"];
            let output = std::process::Command::new(DCGMI).args(arguments).env("COLLO_SIM", scenario).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(with("a100-40gb,dcgm=2.3").starts_with("# Entity  SMACT"));
        assert!(with("a100-40gb,dcgm=3.3").starts_with("#Entity   SMACT"));
        assert!(with("a100-40gb,dcgm=4.2").starts_with("#Entity    SMACT"));
        assert!(with("a100-40gb,dcgm-blank").lines().last().unwrap().ends_with("N/A               "));
    });
}

#[test]
fn services_are_stopped_and_started_by_an_administrator_alone() {
    const TEST: &str = "services_are_stopped_and_started_by_an_administrator_alone";
    on("a100-40gb,services", TEST, |machine| {
        let units = ["nvidia-dcgm", "nvsm", "dcgm-exporter", "nvidia-persistenced", "nvidia-fabricmanager"];
        let (status, said, _) = machine.run(SYSTEMCTL, &[&["is-active"], &units[..]].concat(), "");
        assert_eq!((status, said.as_str()), (0, "active\nactive\nactive\nactive\nactive\n"));
        assert_eq!(machine.run(DCGMI, &["discovery", "-l"], "").0, 0);
        assert_eq!(machine.run(SYSTEMCTL, &["stop", "nvidia-dcgm.service", "nvsm"], ""), (0, String::new(), String::new()));
        let (status, said, _) = machine.run(SYSTEMCTL, &["is-active", "nvidia-dcgm", "xorg"], "");
        assert_eq!((status, said.as_str()), (3, "inactive\ninactive\n"));
        let (status, said, _) = machine.run(DCGMI, &["discovery", "-l"], "");
        assert!(status != 0 && said.contains("Unable to connect to host engine"), "{said}");
        assert_eq!(machine.run(SYSTEMCTL, &["start", "nvidia-dcgm"], "").0, 0);
        assert_eq!(machine.run(DCGMI, &["discovery", "-l"], "").0, 0);
        let (status, _, errors) = machine.run(SYSTEMCTL, &["stop", "xorg"], "");
        assert_eq!((status, errors.as_str()), (5, "Failed to stop xorg.service: Unit xorg.service not loaded.\n"));
        let as_user = |scenario: &str| {
            let output = std::process::Command::new(SYSTEMCTL).args(["stop", "nvidia-dcgm"]).env("COLLO_SIM", scenario).output();
            let output = output.unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap().lines().next().map(str::to_string))
        };
        let denied = Some("Failed to stop nvidia-dcgm.service: Interactive authentication required.".to_string());
        assert_eq!(as_user("a100-40gb,services,user"), (Some(1), denied));
        let denied = Some("Failed to stop nvidia-dcgm.service: Access denied".to_string());
        assert_eq!(as_user("a100-40gb,services,user=denied"), (Some(4), denied));
    });
}

#[test]
fn nvidia_smi_lists_cards_and_mig_devices() {
    on("a100-40gb,mig=2×3g.20gb", "nvidia_smi_lists_cards_and_mig_devices", |machine| {
        let (status, said, _) = machine.run(SMI, &["-L"], "");
        assert_eq!(status, 0);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("GPU 0: simulated NVIDIA A100-SXM4-40GB (UUID: GPU-"), "{said}");
        assert!(lines.len() == 3 && lines[2].starts_with("  MIG 3g.20gb     Device  1: (UUID: MIG-"), "{said}");
        let (_, said, _) = machine.run(SMI, &["--query-gpu=name,mig.mode.current,memory.total", "--format=csv,noheader"], "");
        assert_eq!(said, "simulated NVIDIA A100-SXM4-40GB, Enabled, 40960 MiB\n");
    });
}

#[test]
fn sim_train_answers_where_python_would() {
    on("a100-40gb", "sim_train_answers_where_python_would", |machine| {
        let (status, said, _) = machine.run(TRAIN, &["-c", "import torch"], "");
        let facts: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
        assert_eq!((status, facts["torch"].as_str()), (0, Some("2.14.1+simulated")));
        let (_, said, _) = machine.run(TRAIN, &["-m", "collo_data", "prepare", "imagenet"], "");
        let data: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
        assert_eq!((data["dataset"].as_str(), data["items"].as_u64()), (Some("imagenet"), Some(1_281_167)));
        let (status, said, _) = machine.run(TRAIN, &["train.py", "--batch-size", "32"], "");
        assert_eq!(status, 0);
        assert_eq!(said.lines().filter(|l| l.starts_with("epoch ")).count(), 2, "{said}");
        let output = std::process::Command::new(TRAIN).arg("train.py").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("No CUDA GPUs are available"));
    });
}

#[test]
fn torch_that_is_newer_than_the_driver_says_so() {
    on("a100-40gb,driver=535.183.06", "torch_that_is_newer_than_the_driver_says_so", |machine| {
        let (status, _, errors) = machine.run(TRAIN, &["train.py"], "");
        assert_eq!(status, 1);
        assert!(errors.contains("too old (found version 12020)"), "{errors}");
        let older = std::process::Command::new(TRAIN).arg("train.py").env("COLLO_SIM_TORCH_CUDA", "12.6").output().unwrap();
        assert_eq!(older.status.code(), Some(0));
    });
}
