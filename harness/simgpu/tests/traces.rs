//! What traces of tasks need of the machine: times in proportion, tasks of two cards, and what befalls tasks and cards midway.

mod machine;

use machine::{Machine, Member, on};
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use serde_json::json;

const MIB: u64 = 1 << 20;

fn used_mib(nvml: &Nvml, card: u32) -> u64 {
    nvml.device_by_index(card).expect("the card answers").memory_info().expect("it has memory").used / MIB
}

fn uuid(nvml: &Nvml, card: u32) -> String {
    nvml.device_by_index(card).expect("the card answers").uuid().expect("it has one")
}

/// A network on CIFAR-100 or ImageNet, on that card.
fn vision(model: &str, dataset: &str, card: &str, more: &[&str]) -> Member {
    let words = [format!("--model={model}"), format!("--dataset={dataset}"), "--batch-size=128".into()];
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Member::start("vision", &words, &[("CUDA_VISIBLE_DEVICES", card)])
}

#[test]
fn a_share_of_an_epoch_takes_its_true_time_and_a_scale_divides_whole_ones() {
    on("a100-40gb,noise=0", "a_share_of_an_epoch_takes_its_true_time_and_a_scale_divides_whole_ones", |machine| {
        let nvml = machine.nvml();
        let published_s = 60.0 * 0.163400;
        for (more, scale, part, batches) in [("--limit-batches=0.03", "", 0.03, 11), ("--limit-batches=0", "30", 1.0 / 30.0, 13)]
        {
            let words = ["--model=resnet18", "--dataset=cifar-100", "--batch-size=128", more];
            let mut member = Member::start("vision", &words, &[("COLLO_SIM_SCALE", scale)]);
            assert_eq!(member.warm_up()["limit_batches"], batches, "{more}");
            member.go(1, "exit");
            let took_s = member.epoch_s();
            // A whole batch of 390 more or less.
            assert!((took_s / (part * published_s) - 1.0).abs() < 0.1, "{more}: {took_s} s");
        }
        drop(nvml);
    });
}

fn xlnet(cards: &str) -> Member {
    let words = ["--model=xlnet-base", "--dataset=wikitext-2", "--packing=lines", "--batch-size=8", "--data-parallel=auto"];
    let words: Vec<&str> = words.into_iter().chain(["--limit-batches=0.0009"]).collect();
    Member::start("language", &words, &[("CUDA_VISIBLE_DEVICES", cards)])
}

#[test]
fn a_task_of_two_cards_holds_memory_and_computes_on_both() {
    on("a100-40gb,noise=0,gpus=3", "a_task_of_two_cards_holds_memory_and_computes_on_both", |machine| {
        let nvml = machine.nvml();
        let mut member = xlnet(&[uuid(&nvml, 2), uuid(&nvml, 1)].join(","));
        let hello = member.warm_up();
        assert_eq!((&hello["data_parallel"], &hello["limit_batches"]), (&json!(2), &json!(2)));
        assert_eq!(hello["device"], uuid(&nvml, 2));
        assert_eq!([0, 1, 2].map(|card| used_mib(&nvml, card)), [0, 8526, 8526]);
        member.go(2, "keep-running");
        let epoch = member.hear("epoch");
        assert_eq!(epoch["items"], 2 * 2 * 8, "a batch on each");
        let published_s = 60.0 * 8.949518 * 32.0 / 36718.0;
        let took_s = member.epoch_s();
        assert!((took_s / published_s - 1.0).abs() < 0.05, "{took_s} of {published_s} s");
        for (card, is_busy) in [(0, false), (1, true), (2, true)] {
            let power_w = f64::from(nvml.device_by_index(card).unwrap().power_usage().unwrap()) / 1e3;
            assert_eq!(power_w > 132.0, is_busy, "card {card}: {power_w} W");
        }
        member.stop();
    });
}

#[test]
fn a_task_may_leave_its_second_card_idle() {
    on("a100-40gb,noise=0,gpus=2,idle-cards=xlnet-base", "a_task_may_leave_its_second_card_idle", |machine| {
        let nvml = machine.nvml();
        let mut member = xlnet(&[uuid(&nvml, 0), uuid(&nvml, 1)].join(","));
        let hello = member.warm_up();
        assert_eq!((&hello["data_parallel"], used_mib(&nvml, 1)), (&json!(null), 0));
        member.stop();
    });
}

#[test]
fn memory_runs_out_when_what_all_hold_exceeds_the_card_and_not_before() {
    let scenario = "a100-40gb,noise=0,gpus=2,grows=resnet18@150ms,grows-mib=17000";
    on(scenario, "memory_runs_out_when_what_all_hold_exceeds_the_card_and_not_before", |machine| {
        let nvml = machine.nvml();
        let [first, second] = [0, 1].map(|card| uuid(&nvml, card));
        let mut resident = vision("vgg16", "imagenet", &first, &[]);
        resident.warm_up();
        let mut growing = vision("resnet18", "cifar-100", &first, &[]);
        let mut alone = vision("resnet18", "cifar-100", &second, &[]);
        growing.warm_up();
        alone.warm_up();
        let mut newcomer = vision("vgg16", "imagenet", &first, &[]);
        newcomer.hear("hello");
        assert_eq!(used_mib(&nvml, 0), 23216 + 814 + 400, "its context has come");
        newcomer.say(json!({ "command": "warm_up" }));
        assert_eq!(newcomer.hear("error")["kind"], "out_of_memory", "22816 MiB more are too many");
        newcomer.child.wait().unwrap();
        for member in [&mut resident, &mut growing, &mut alone] {
            member.go(50, "keep-running");
        }
        assert_eq!(growing.hear("error")["kind"], "out_of_memory", "23216 + 814 + 17000 of 40341 MiB");
        machine::until("the card is left to the resident", || used_mib(&nvml, 0) == 23216);
        machine::until("who is alone has grown", || used_mib(&nvml, 1) == 814 + 17000);
        resident.epoch_s();
        alone.epoch_s();
    });
}

#[test]
fn a_workload_may_never_fit_or_crash_each_time() {
    on("a100-40gb,noise=0,never-fits=vgg16,crashes=resnet34@50ms", "a_workload_may_never_fit_or_crash_each_time", |machine| {
        for _ in 0..2 {
            let mut large = vision("vgg16", "imagenet", "0", &[]);
            large.hear("hello");
            large.say(json!({ "command": "warm_up" }));
            assert_eq!(large.hear("error")["kind"], "out_of_memory");
            let mut broken = vision("resnet34", "cifar-100", "0", &[]);
            broken.warm_up();
            broken.go(50, "keep-running");
            assert!(broken.hear("error")["message"].as_str().unwrap().contains("illegal memory access"));
        }
        let mut sound = machine.member(&[]);
        sound.warm_up();
        sound.stop();
    });
}

#[test]
fn one_card_is_lost_and_the_others_are_not() {
    on("a100-40gb,noise=0,gpus=2,lost=1@300ms", "one_card_is_lost_and_the_others_are_not", |machine| {
        let nvml = machine.nvml();
        let mut members = [0, 1].map(|card| vision("resnet18", "cifar-100", &uuid(&nvml, card), &[]));
        members.iter_mut().for_each(|member| drop(member.warm_up()));
        members.iter_mut().for_each(|member| member.go(50, "keep-running"));
        let [sound, lost] = &mut members;
        assert!(lost.hear("error")["message"].as_str().unwrap().contains("the GPU is lost"));
        assert!(matches!(nvml.device_by_index(1), Err(NvmlError::GpuLost)));
        assert!(used_mib(&nvml, 0) > 800);
        sound.epoch_s();
        let mut late = vision("resnet18", "cifar-100", "1", &[]);
        assert!(late.hear("error")["message"].as_str().unwrap().contains("No CUDA GPUs"));
    });
}

#[test]
fn a_fault_of_mps_may_be_that_of_one_cards_servers() {
    on("a100-40gb,noise=0,gpus=2,mps-fault=1@200ms", "a_fault_of_mps_may_be_that_of_one_cards_servers", |machine: Machine| {
        let nvml = machine.nvml();
        let control = env!("CARGO_BIN_EXE_nvidia-cuda-mps-control");
        let mut daemons = Vec::new();
        for card in [0, 1] {
            let pipe = machine.folder.join(format!("mps-{card}"));
            // SAFETY: this process has one thread, the test's, that reads the environment.
            unsafe {
                std::env::set_var("CUDA_MPS_PIPE_DIRECTORY", &pipe);
                std::env::set_var("CUDA_VISIBLE_DEVICES", uuid(&nvml, card));
            }
            machine.run(control, &["-d"], "");
            machine::until("the daemon", || machine.run(control, &[], "get_server_list\n").0 == 0);
            daemons.push(pipe.display().to_string());
        }
        let member = |pipe: &String| {
            let words = ["--model=resnet18", "--dataset=cifar-100", "--batch-size=128"];
            Member::start("vision", &words, &[("CUDA_MPS_PIPE_DIRECTORY", pipe), ("CUDA_VISIBLE_DEVICES", "0")])
        };
        let mut members: Vec<Member> = daemons.iter().map(member).collect();
        members.iter_mut().for_each(|member| drop(member.warm_up()));
        members.iter_mut().for_each(|member| member.go(50, "keep-running"));
        assert!(members[1].hear("error")["message"].as_str().unwrap().contains("fatal fault on the MPS server"));
        members[0].epoch_s();
        for pipe in daemons {
            // SAFETY: as above.
            unsafe { std::env::set_var("CUDA_MPS_PIPE_DIRECTORY", pipe) };
            machine.run(control, &[], "quit -t 1\n");
        }
    });
}
