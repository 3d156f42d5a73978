use std::sync::Arc;

use collo_gpus::mig::{Cards, GpuModel};
use collo_gpus::partition::{Partition, Slice};
use collo_plan::facts::{Address, Company, Driver, Gpu, Holder, SilentGpu};

use collo_store::{Outcome, RunRecord, StoredRun};

use crate::check::{Check, Mark, lines};
use crate::{deep, gpu, indices, smact, verdict};

pub const GO_NS: u64 = 5_000_000_000;
pub const DONE_NS: u64 = 9_000_000_000;

fn cards() -> Cards {
    Cards::load(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles")).expect("the cards are there")
}

fn card() -> GpuModel {
    cards().find("a100-40gb").expect("it is known").clone()
}

#[test]
fn a_line_has_its_sign_its_subject_and_its_hint_below() {
    let checks = [
        Check::new(Mark::Changes, "simulated", "every number here comes from a model"),
        Check::new(Mark::Good, "driver", "580.95.05"),
        Check::new(Mark::Fixable, "persistence", "off on GPU 0").hint("`sudo nvidia-smi -pm 1`"),
    ];
    insta::assert_snapshot!(lines(&checks).join("\n"), @"
    ! simulated: every number here comes from a model
    ✓ driver      580.95.05
    ✗ persistence off on GPU 0
                  hint: `sudo nvidia-smi -pm 1`
    ");
}

fn gpu_at(index: u32) -> Gpu {
    let at = Address { index, uuid: format!("GPU-{index}"), pci: format!("00000000:{:02X}:00.0", 0x36 + index) };
    Gpu { at: Some(at), partition: Some(Partition::off()), persistence: Some(true), ..Gpu::planned(&card()) }
}

fn sevenths() -> Partition {
    Partition::on((0..7).map(|start| Slice { profile: "1g.5gb".into(), start: Some(start), compute: vec![1] }).collect())
}

/// Eight GPUs, one in use, one partitioned.
fn dgx() -> Driver {
    let mut gpus: Vec<Gpu> = (0..8).map(gpu_at).collect();
    let bob = Holder { pid: 88121, name: Some("python".into()), user: Some("bob".into()), memory_bytes: Some(33_500_000_000) };
    gpus[3].company.listed = Some(vec![bob]);
    gpus[7].partition = Some(sevenths());
    Driver { version: "535.183.06".into(), cuda: Some(12_020), gpus, silent: Vec::new() }
}

#[test]
fn a_dgx_is_told_in_few_lines() {
    let driver = dgx();
    let mut checks = vec![gpu::gpus(&driver)];
    checks.extend(gpu::in_use(&driver));
    checks.extend([gpu::mig(&driver, false), gpu::persistence(&driver)]);
    checks.extend(gpu::profiles(&driver, &cards()));
    insta::assert_snapshot!(lines(&checks).join("\n"), @"
    ✓ gpus        0–7 NVIDIA A100-SXM4-40GB; MIG off on 0–6, on on 7 (7×1g.5gb)
    ! in use      GPU 3: pid 88121 `python` of bob, 31.2 GiB
    ✗ mig         no permission to change GPUs 0–7: not root, capability `mig/config` not readable
                  hint: a sudo rule for `collo mig apply`; GPU 7 can be measured now with `--as-found`
    ✓ persistence on: the driver stays loaded, and the energy counter keeps running
    – profile     the driver reports no profile, as some do while MIG is off, so mig-profiles/a100-40gb.toml is used
    ");
    assert_eq!(
        verdict::can(&driver, true, false),
        "naive, mps on GPUs 0–2 and 4–6; mig on GPU 7 as found. Cannot: any other MIG layout"
    );
    assert_eq!(verdict::can(&driver, true, true), "naive, mps, mig on GPUs 0–2 and 4–7");
    assert_eq!(verdict::can(&driver, false, true), "naive, mig on GPUs 0–2 and 4–7. Cannot: mps");
}

#[test]
fn the_driver_decides_the_python_and_one_that_is_too_old_says_so() {
    let of = |cuda| gpu::driver(&Driver { cuda, ..dgx() });
    assert_eq!(of(Some(13_000)).text, "535.183.06: CUDA 13.0, so Python's `cuda13` set");
    assert_eq!(of(Some(11_040)).mark, Mark::Fixable);
}

#[test]
fn a_card_that_nobody_may_use_leaves_the_cpu() {
    let mut driver = dgx();
    driver.gpus.retain(|gpu| !gpu.company.is_nobody());
    assert_eq!(verdict::can(&driver, true, true), "workloads on the CPU. Cannot: anything on a GPU: none is free");
    driver.gpus[0].company = Company::nobody();
    assert_eq!(verdict::can(&driver, true, false), "naive, mps on GPU 3. Cannot: mig");
    // A card without MIG beside one that has it.
    driver.gpus.push(Gpu { card: None, has_mig: false, ..gpu_at(4) });
    assert_eq!(verdict::can(&driver, true, true), "naive, mps on GPUs 3 and 4; mig on GPU 3");
}

#[test]
fn energy_without_persistence_is_refused_by_the_card() {
    let mut driver = dgx();
    driver.gpus[2].persistence = Some(false);
    let check = gpu::persistence(&driver);
    assert_eq!((check.mark, check.text.as_str()), (Mark::Fixable, "off on GPU 2: energy is refused"));
    driver.gpus.iter_mut().for_each(|gpu| gpu.persistence = None);
    assert_eq!(gpu::persistence(&driver).mark, Mark::Absent);
}

#[test]
fn of_gpus_that_do_not_respond_nothing_is_good_and_the_hint_is_that_of_their_error() {
    let lost = |index| SilentGpu { index, why: "it fell off the bus".into(), hint: Some("a reboot") };
    let driver = Driver { gpus: Vec::new(), silent: vec![lost(0), lost(1)], ..dgx() };
    let checks =
        [gpu::gpus(&driver), gpu::mig(&driver, false), smact::check(&driver, &[]), gpu::persistence(&driver), gpu::near(&driver)];
    insta::assert_snapshot!(lines(&checks).join("\n"), @"
    ✗ gpus        GPU 0 does not respond: it fell off the bus; GPU 1 does not respond: it fell off the bus
                  hint: a reboot
    – mig         unknown: no GPU responds
    – smact       unknown: no GPU responds
    – persistence unknown: no GPU responds
    – numa        unknown: no GPU responds
    ");
    assert_eq!(verdict::can(&driver, true, false), "workloads on the CPU. Cannot: anything on a GPU: none responds");
}

#[test]
fn a_file_that_differs_from_the_card_says_in_what() {
    let mut driver = dgx();
    let mut told = card();
    Arc::make_mut(&mut told.profiles[0]).sms = Some(16);
    driver.gpus.iter_mut().for_each(|gpu| gpu.card = Some(told.clone()));
    let checks = gpu::profiles(&driver, &cards());
    assert_eq!(checks.len(), 1);
    assert!(checks[0].text.starts_with("mig-profiles/a100-40gb.toml and the GPU agree on 6 of 7 profiles: `1g.5gb`: SMs 14"));
}

#[test]
fn a_gpu_whose_placements_are_in_no_file_can_be_partitioned_only_once_mig_is_on() {
    let mut driver = dgx();
    let gb200 = cards().find("gb200").expect("known").clone();
    driver.gpus.iter_mut().for_each(|gpu| (gpu.card, gpu.partition) = (Some(gb200.clone()), Some(Partition::off())));
    let check = gpu::mig(&driver, true);
    assert!(check.text.contains("MIG is off, and the places of its instances are known once it is on"), "{}", check.text);
    assert_eq!(check.hint.as_deref(), Some("`sudo collo mig apply on --gpu N` turns MIG on"));
}

#[test]
fn a_healthy_b200_of_a_later_driver_is_no_difference() {
    let file = cards().find("b200").expect("known").clone();
    let reports = |gib: f64| {
        let mut told = file.clone();
        told.profiles.iter_mut().filter(|p| p.slices == 1).for_each(|p| Arc::make_mut(p).memory_gib = Some(gib));
        let mut driver = dgx();
        driver.gpus.iter_mut().for_each(|gpu| gpu.card = Some(told.clone()));
        gpu::profiles(&driver, &cards()).remove(0)
    };
    // 1g.45gb differs here; 1g.23gb and its +me do not (NVIDIA/mig-parted #187, NVIDIA/gpu-operator #1351).
    assert!(reports(20.5).text.contains("agree on 6 of 7 profiles: `1g.45gb`"), "{}", reports(20.5).text);
    assert!(reports(19.0).text.contains("agree on 4 of 7"), "{}", reports(19.0).text);
}

#[test]
fn ranges_read_as_people_write_them() {
    let text = |numbers: &[u32]| indices::ranges(numbers);
    assert_eq!((text(&[0, 1, 2, 4, 5, 6]), text(&[0, 2, 5])), ("0–2 and 4–6".into(), "0, 2 and 5".into()));
    assert_eq!((text(&[0, 1]), text(&[7]), text(&[])), ("0 and 1".into(), "7".into(), String::new()));
}

/// Two members, 7 and 8, that trained naively, without their hellos.
pub fn two_that_trained() -> RunRecord {
    let member = |pid: u32| {
        serde_json::json!({
            "spec": {"workload": "w", "batch_size": null, "settings": {}, "solo": ""}, "pid": pid, "barrier": true, "hello": null,
            "synthetic": null, "ready_ns": null, "training_start_ns": GO_NS, "training_end_ns": DONE_NS, "exit": null,
            "cpu_time_s": null, "peak_rss_bytes": null, "allocated_bytes": null, "reserved_bytes": null, "orphans": [], "log_tail": []
        })
    };
    let text = serde_json::json!({
        "schema": 2, "experiment": "e", "campaign": "c", "repetition": 1, "block": 1, "started_utc": "",
        "cell": {"cell": "a", "slug": "a", "sharing": "naive", "degree": 2, "members": [], "baseline": false,
                 "against": [], "repetitions": 1, "after_measured": "exit"},
        "device": collo_device::cpu::facts().record(),
        "timeline": {"launched_ns": 0, "go_ns": GO_NS, "done_ns": DONE_NS, "ended_ns": DONE_NS}, "outcome": {"kind": "completed"},
        "validity": {"verdict": "valid", "reasons": []}, "attestation": {"verdict": "attested", "checks": []},
        "members": [member(7), member(8)], "sampling": [], "ingredients": {}, "files": {}
    });
    serde_json::from_value(text).expect("a record")
}

#[test]
fn limits_of_mps_are_reported_as_asked_and_as_found() {
    let gpu = gpu_at(0);
    let of = |sharing: &str, sms: u32, found: Option<&str>, outcome: Outcome| {
        let mut record = two_that_trained();
        record.cell.sharing = sharing.into();
        record.members.iter_mut().for_each(|member| member.hello = Some(serde_json::json!({"sm_count": sms})));
        let check = collo_store::Check {
            what: collo_measure::stage::MEMORY_LIMIT.into(),
            member: None,
            asked: String::new(),
            found: found.map(str::to_string),
            holds: true,
        };
        record.attestation.checks.push(check);
        record.outcome = outcome;
        deep::limits(&gpu, &StoredRun { record, path: "nowhere".into() })
    };
    let lost = Outcome::ModeLost { reason: "SMs as it sees them of member 0: asked 13 to 18 of 108, found 20".into() };
    let checks = [
        of("mps:50%", 54, None, Outcome::Completed),
        of("mps:14%", 20, None, lost),
        of("mps:mem=4GB", 108, Some("3814 MiB, its server logged"), Outcome::Completed),
        of("mps:mem=4GB", 108, None, Outcome::Completed),
    ];
    insta::assert_snapshot!(lines(&checks.map(|check| check.expect("it has limits"))).join("\n"), @"
    ✓ limits   GPU 0: 2 under mps:50%: asked 50 % of 108 SMs, which is 54.0, members see 54 and 54
    ✗ limits   GPU 0: 2 under mps:14%: asked 14 % of 108 SMs, which is 15.1, members see 20 and 20; discarded: mode lost, no numbers are kept: SMs as it sees them of member 0: asked 13 to 18 of 108, found 20
               hint: this driver may round a limit otherwise: `collo doctor --collect` stores what it reports
    ✓ limits   GPU 0: 2 under mps:mem=4GB: asked 3814 MiB, found 3814 MiB, its server logged
    ! limits   GPU 0: 2 under mps:mem=4GB: asked 3814 MiB, found nothing
               hint: runs of such cells are indicative here; `collo doctor --collect` stores what the daemon answers
    ");
    assert_eq!(of("mps", 108, None, Outcome::Completed), None);
}
