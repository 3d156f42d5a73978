//! Sentences on campaigns whose truth is known and which invite a wrong one: a tie, one gain of ten, a noisy group, slowdowns that SM activity
//! does not explain, groups that could not be judged.

use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::{Agreement, Holds};
use collo_quantity::Key;
use collo_report::Report;
use collo_store::{MemberSpec, Outcome};
use simgpu::card::Card;

use crate::support::Fixture;
use crate::support::card::CardTruth;
use crate::support::study::{analysed, on};

fn named<'a>(report: &'a Report, id: &str) -> &'a Guideline {
    report.guideline(id).unwrap_or_else(|| panic!("no guideline `{id}`"))
}

/// An A100 that draws this power with this activity.
fn gpu(power_w: f64, sm_active_ratio: f64) -> CardTruth {
    CardTruth {
        sm_active_ratio,
        idle_w: 50.0,
        power_w,
        instances: Vec::new(),
        sources: vec![("dcgm", 1.0)],
        pcie_rx_bytes_per_s: None,
        counter_resets: false,
        counters_of_instances: false,
    }
}

fn on_a100(name: &str) -> Fixture {
    let mut fixture = on(&Card::find("a100-40gb").unwrap(), name);
    (fixture.shared_noise, fixture.member_noise, fixture.samples_hz) = (0.004, 0.002, 4.0);
    fixture
}

/// A workload alone for 8 s an epoch, and twice under each mode with a gain and a power.
fn pairs(mut fixture: Fixture, workload: &str, modes: &[(&str, f64, f64)]) -> Fixture {
    fixture = fixture.on_card("solo", &[(workload, 8.0)], gpu(200.0, 0.3), 0.004);
    for (mode, gain, power_w) in modes {
        fixture = fixture.on_card(mode, &[(workload, 16.0 / gain), (workload, 16.0 / gain)], gpu(*power_w, 0.5), 0.004);
    }
    fixture
}

#[test]
fn a_noisy_group_with_a_large_estimate_is_not_what_is_recommended() {
    let mut recommended = 0;
    for seed in 0..6 {
        let mut fixture = Fixture::named("noisy").seed(seed);
        (fixture.shared_noise, fixture.member_noise) = (0.004, 0.002);
        for w in 0..8 {
            fixture = fixture.solo(&format!("calm{w}"), 32, 1.0).group(&format!("calm{w}"), 32, 3, "naive", 3.0 / 1.12);
        }
        fixture = fixture.solo("noisy", 32, 1.0).group("noisy", 32, 3, "naive", 3.0 / 1.25);
        fixture.cells.last_mut().unwrap().noise = Some(0.4);
        let report = analysed(&fixture);
        let g = named(&report, "collocate");
        assert_eq!(g.holds, Holds::Yes, "eight groups gain: {}", g.finding);
        assert!(!g.statement.contains("noisy"), "{}", g.statement);
        assert!(g.finding.contains("8 of 9 groups gain"), "{}", g.finding);
        recommended += 1;
    }
    assert_eq!(recommended, 6);
}

#[test]
fn mps_and_mig_that_are_equal_are_a_tie_and_not_a_choice() {
    let mut fixture = on_a100("tie");
    for w in 0..5 {
        let naive = if w == 0 { 1.2 } else { 1.4 };
        fixture = pairs(fixture, &format!("w{w}"), &[("naive", naive, 250.0), ("mps", 1.4, 250.0), ("mig", 1.4, 250.0)]);
    }
    let report = analysed(&fixture);
    let g = named(&report, "best-mode");
    assert_ne!(g.holds, Holds::Yes, "{} {}", g.statement, g.finding);
    assert!(g.holds == Holds::Open || g.finding.contains("not ahead of naive and MIG in most groups"), "{}", g.finding);
    assert!(g.finding.contains("ahead of naive in 1"), "{}", g.finding);
}

#[test]
fn what_does_not_fit_into_memory_is_said_of_the_mode_of_which_it_is_true() {
    let out = || Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let naive = || pairs(on_a100("memory"), "w", &[("naive", 1.2, 250.0)]).ends(out());
    let mps = || naive().on_card("mps", &[("w", 10.0), ("w", 10.0)], gpu(250.0, 0.5), 0.004);
    let report = analysed(&mps());
    let g = named(&report, "best-mode");
    assert_eq!((g.holds, g.statement.as_str()), (Holds::Yes, "Choose MPS over naive for throughput."));
    assert_eq!(g.finding, "MPS is ahead of naive in 1 of 1 group, decided by which groups fit into memory.");
    let report = analysed(&mps().ends(out()));
    let g = named(&report, "best-mode");
    assert_eq!((g.holds, g.finding.as_str()), (Holds::Open, "No group fits into memory (2 groups)."));
}

#[test]
fn a_mode_that_does_not_fit_is_behind_none_of_which_nobody_knows_whether_it_fits() {
    let out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    let naive = pairs(on_a100("memory"), "w", &[("naive", 1.2, 250.0)]).ends(crash);
    let report = analysed(&naive.on_card("mps", &[("w", 10.0), ("w", 10.0)], gpu(250.0, 0.5), 0.004).ends(out));
    let g = named(&report, "best-mode");
    assert_eq!(g.holds, Holds::Open, "{}", g.finding);
    assert_eq!(g.finding, "No group can be judged by the work per second: 1 crashed.");
}

#[test]
fn equal_energy_names_all_modes_that_tie() {
    for seed in 0..6 {
        let modes = [("naive", 1.8, 220.0), ("mps", 1.8, 220.0), ("mig", 1.8, 220.0)];
        let mut fixture = pairs(on_a100("energy").seed(seed), "w", &modes);
        fixture.epochs = 3;
        let report = analysed(&fixture);
        let g = named(&report, "least-energy");
        assert_eq!(g.holds, Holds::Yes, "{}", g.finding);
        let all = "For `w b32`: share under naive sharing or MPS or MIG to save energy";
        assert!(g.statement.starts_with(all), "seed {seed}: {}", g.statement);
    }
}

#[test]
fn energy_is_advised_to_be_saved_only_where_it_is() {
    let mut fixture = pairs(on_a100("energy"), "small", &[("mps", 1.8, 220.0)]);
    fixture = pairs(fixture, "large", &[("mps", 1.2, 320.0)]);
    fixture.epochs = 3;
    let report = analysed(&fixture);
    let g = named(&report, "least-energy");
    assert_eq!(g.holds, Holds::Yes, "{}", g.finding);
    assert_eq!(g.statement, "Share under MPS to save energy, as was measured for `small×2 mps b32`.");
}

#[test]
fn an_order_of_modes_is_not_found_where_one_of_them_was_not_measured() {
    let agrees = |modes: &[(&str, f64, f64)]| {
        let mut fixture = pairs(on_a100("energy"), "w", modes);
        fixture.epochs = 3;
        (fixture.device.simulated, fixture.device.name) = (false, "NVIDIA A100-SXM4-40GB".into());
        named(&analysed(&fixture), "least-energy").agrees
    };
    assert_eq!(agrees(&[("naive", 1.8, 260.0), ("mps", 1.8, 220.0), ("mig", 1.8, 180.0)]), Agreement::Yes);
    assert_eq!(agrees(&[("naive", 1.8, 260.0), ("mps", 1.8, 220.0)]), Agreement::Open, "MIG is not known");
}

#[test]
fn one_mixed_group_of_ten_makes_no_rule() {
    let mut fixture = Fixture::named("mixes");
    (fixture.shared_noise, fixture.member_noise) = (0.004, 0.002);
    for w in 0..20 {
        fixture = fixture.solo(&format!("w{w}"), 32, 1.0);
    }
    for pair in 0..10 {
        let gain = if pair == 0 { 1.34 } else { 1.0 };
        let (a, b) = (format!("w{}", 2 * pair), format!("w{}", 2 * pair + 1));
        fixture = fixture.mixed((&a, 2.0 / gain), (&b, 2.0 / gain), "naive", "keep-running");
    }
    let report = analysed(&fixture);
    let g = named(&report, "mixing");
    assert_eq!(g.holds, Holds::No, "{}", g.finding);
    assert!(g.finding.contains("mix only those measured to gain, starting with `w0+w1 naive b32`"), "{}", g.finding);
    assert!(g.finding.contains("1 of 10 mixed groups gain, 9 have the throughput of running in turn"), "{}", g.finding);
}

#[test]
fn where_one_group_needs_more_than_the_sum_it_is_not_said_that_less_is_enough() {
    let mut fixture = Fixture::named("memory").solo("more", 32, 1.0).group("more", 32, 2, "naive", 1.1).holding(0.825);
    fixture = fixture.solo("less", 32, 1.0).group("less", 32, 2, "naive", 1.1).holding(0.5);
    let report = analysed(&fixture);
    let g = named(&report, "memory-adds-up");
    assert_eq!(g.holds, Holds::No, "1.10 and 0.67 of the sum: {}", g.finding);
    assert!(g.finding.starts_with("No: plan for more than the sum. `more×2 naive b32` needs 1.1"), "{}", g.finding);
}

/// Ten mixed pairs: in the first one member starves, in the last one may, by a baseline that jumps.
fn with_a_jumping_baseline(seed: u64) -> Report {
    let mut fixture = Fixture::named("starvation").seed(seed);
    (fixture.shared_noise, fixture.member_noise) = (0.004, 0.002);
    let names: Vec<String> = (0..20).map(|w| format!("w{w}")).collect();
    fixture = names.iter().fold(fixture, |fixture, name| fixture.solo(name, 32, 1.0));
    for (pair, slower) in names.chunks(2).zip([0.7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.65]) {
        fixture = fixture.mixed((&pair[0], 1.5), (&pair[1], 1.5 / slower), "naive", "keep-running");
    }
    fixture.cells[19].noise = Some(0.35);
    analysed(&fixture)
}

#[test]
fn a_group_that_failed_leaves_open_whether_the_sum_decides_how_many_fit() {
    let naive = |fixture: Fixture, degree: usize| {
        fixture.on_card("naive", &vec![("w", degree as f64); degree], gpu(250.0, 0.5), 0.004).holding(15.0)
    };
    let out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let solo = on_a100("frontier").on_card("solo", &[("w", 1.0)], gpu(200.0, 0.3), 0.004).holding(15.0);
    let fixture = naive(naive(solo, 2), 3).ends(out);
    let report = analysed(&fixture);
    let g = named(&report, "frontier");
    assert_eq!((g.holds, &g.command), (Holds::Yes, &None), "two need 30 of 40 GiB, three 45: {}", g.finding);
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    let report = analysed(&fixture.on_card("mps", &[("w", 2.0); 2], gpu(250.0, 0.5), 0.004).ends(crash));
    let g = named(&report, "frontier");
    assert_eq!((g.holds, g.command.as_deref()), (Holds::Open, Some("collo show frontier \"w×2 mps b32\"")), "{}", g.finding);
    assert!(g.finding.ends_with(" Not judged: `w×2 mps b32`."), "{}", g.finding);
}

#[test]
fn a_limit_of_memory_is_no_limit_of_threads() {
    let limited = |limit: &str| analysed(&pairs(on_a100("limits"), "w", &[("mps", 1.6, 250.0), (limit, 1.6, 250.0)]));
    assert!(limited("mps:mem=4GB").guideline("thread-limits").is_none(), "no limit of threads was measured");
    assert_eq!(named(&limited("mps:50%"), "thread-limits").holds, Holds::No);
}

/// The first two cells once more with another setting, of the group with another pace.
fn with_setting(mut fixture: Fixture, label: &str, pace: f64, set: impl Fn(&mut MemberSpec)) -> Fixture {
    let first: Vec<_> = fixture.cells.iter().take(2).cloned().collect();
    for mut cell in first {
        let pace = if cell.record.baseline { 1.0 } else { pace };
        cell.epoch_s.iter_mut().for_each(|s| *s *= pace);
        let record = &mut cell.record;
        (record.cell, record.slug) = (record.cell.replace("b32", label), record.slug.replace("b32", label));
        record.against.iter_mut().for_each(|solo| *solo = solo.replace("b32", label));
        for member in &mut record.members {
            member.solo = member.solo.replace("b32", label);
            set(member);
        }
        fixture.cells.push(cell);
    }
    fixture
}

#[test]
fn a_setting_that_changes_nothing_is_not_one_to_decide_at() {
    let fixture = pairs(on_a100("settings"), "w", &[("mps", 1.6, 250.0)]);
    let fixture = with_setting(fixture, "b128", 1.5, |member| member.batch_size = Some(128));
    let fixture = with_setting(fixture, "tf32", 1.0, |member| {
        member.settings.insert("precision".into(), "tf32".into());
    });
    let report = analysed(&fixture);
    let g = named(&report, "settings");
    assert_eq!((g.holds, g.statement.as_str()), (Holds::Yes, "Decide at the batch size you train with."), "{}", g.finding);
    assert!(g.finding.ends_with("; a difference in 1 of 2 pairs, none in 1."), "{}", g.finding);
}

#[test]
fn what_was_asked_and_cannot_be_judged_yet_is_open_with_the_command_that_decides() {
    let modes = [("mps", 1.6, 250.0), ("naive", 1.5, 240.0), ("mps:50%", 1.6, 250.0)];
    let fixture = with_setting(pairs(on_a100("once"), "w", &modes), "b128", 1.5, |member| member.batch_size = Some(128));
    let read = CardTruth { pcie_rx_bytes_per_s: Some(1e9), ..gpu(250.0, 0.3) };
    let once = analysed(&fixture.on_card("mps", &[("w", 8.1)], read, 0.004).repetitions(1));
    for id in ["thread-limits", "settings", "mps-pcie", "alone-overhead"] {
        let g = named(&once, id);
        assert_eq!((g.holds, g.command.as_deref()), (Holds::Open, Some("collo run once --more 2")), "{id}: {}", g.finding);
        assert!(g.finding.starts_with("No group can be judged by ") && g.finding.contains("with one run"), "{id}: {}", g.finding);
    }
}

#[test]
fn who_starves_is_said_of_a_group_in_which_a_member_certainly_does() {
    let misleading = |report: &Report| {
        let fairness = |cell: &str| report.analysis.cell(cell).and_then(|c| c.get(Key::Fairness)).cloned().unwrap();
        let (sure, jumping) = (fairness("w0+w1 naive b32"), fairness("w18+w19 naive b32"));
        sure.high.unwrap() < 0.8 && jumping.estimate < sure.estimate && jumping.high.unwrap() > 0.8
    };
    let report = (0..40).map(with_a_jumping_baseline).find(misleading).expect("one with a wide interval below the first");
    let g = named(&report, "starvation");
    assert_eq!(g.holds, Holds::No, "{}", g.finding);
    assert!(g.finding.starts_with("No: `w1` starves beside `w0`."), "{}", g.finding);
}

#[test]
fn slowdowns_that_sm_activity_does_not_explain_give_no_threshold() {
    for seed in 0..6u64 {
        let mut fixture = on_a100("independent").seed(seed);
        for w in 0..10u32 {
            let name = format!("w{w}");
            let activity = 0.08 + 0.05 * f64::from(w);
            // About half of them are slowed down, whatever their activity.
            let slowed = (u64::from(w) * 7 + seed * 3) % 5 < 2;
            let epoch_s = if slowed { 4.0 * 1.3 } else { 4.0 };
            fixture = fixture.on_card("solo", &[(&name, 4.0)], gpu(200.0, activity), 0.004);
            fixture = fixture.on_card("mps", &[(&name, epoch_s), (&name, epoch_s)], gpu(250.0, 2.0 * activity), 0.004);
        }
        let report = analysed(&fixture);
        let g = named(&report, "sm-threshold");
        assert_ne!(g.holds, Holds::Yes, "seed {seed}: {} {}", g.statement, g.finding);
        assert_ne!(g.agrees, Agreement::Yes, "seed {seed}");
    }
}

#[test]
fn a_rule_is_open_while_groups_that_were_not_run_could_overturn_it() {
    let mut fixture = on_a100("unfinished");
    for w in 0..3 {
        fixture = pairs(fixture, &format!("w{w}"), &[("naive", 1.2, 250.0), ("mps", 1.6, 250.0), ("mig", 1.7, 220.0)]);
    }
    let all = analysed(&fixture);
    let g = named(&all, "best-mode");
    assert_eq!(g.holds, Holds::No, "MIG is ahead: {}", g.finding);
    // The first block without its last groups: three solos, and two groups of the first workload.
    fixture.repetitions = 2;
    fixture.cells.sort_by_key(|c| c.record.sharing == "mig");
    let cells = fixture.cells.len();
    fixture.stop_after = cells - 3;
    let part = analysed(&fixture);
    for id in ["best-mode", "least-energy", "memory-adds-up", "naive-in-turn"] {
        let g = named(&part, id);
        assert_eq!(g.holds, Holds::Open, "{id}: {}", g.finding);
    }
    let g = named(&part, "best-mode");
    assert_eq!(g.command.as_deref(), Some("collo run unfinished"), "the missing runs come first");
    let text = collo_report::terminal(&part, 100);
    assert!(text.contains("unfinished: ") && text.contains("nothing was measured under MIG"), "{text}");
}

#[test]
fn a_failed_group_asks_for_its_reason_and_not_for_repetitions() {
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    let fixture = Fixture::quickstart().ends(crash);
    let report = analysed(&fixture);
    let g = named(&report, "naive-in-turn");
    assert_eq!(g.holds, Holds::Open);
    assert_eq!(g.command.as_deref(), Some("collo show quickstart \"tiny×3 naive b32\""));
    let scope = g.scope.as_ref().unwrap();
    assert_eq!((scope.judged, scope.missing()), (1, 1));
    assert!(scope.text.as_ref().unwrap().ends_with("not judged: 1 crashed."), "{:?}", scope.text);
}

#[test]
fn advice_from_one_workload_names_it() {
    let report = analysed(&Fixture::quickstart());
    let g = named(&report, "naive-in-turn");
    assert!(g.statement.starts_with("For `tiny b32`: naive sharing costs no throughput"), "{}", g.statement);
    let scope = g.scope.as_ref().unwrap().text.clone().unwrap();
    assert_eq!(scope, "Based on 2 groups: 1 workload, ×2 and ×3, 1 machine, 3 repetitions.");
}

#[test]
fn agreement_on_a_simulated_gpu_is_circular_and_without_a_published_cell_not_measured() {
    let simulated = analysed(&pairs(on_a100("sim"), "w", &[("naive", 1.2, 250.0), ("mps", 1.6, 250.0)]));
    assert!(simulated.guidelines.iter().all(|g| matches!(g.agrees, Agreement::Circular | Agreement::NotStudied)));
    let mut real = pairs(on_a100("real"), "w", &[("naive", 1.2, 250.0), ("mps", 1.6, 250.0)]);
    (real.device.simulated, real.device.name) = (false, "NVIDIA A100-SXM4-40GB".into());
    let real = analysed(&real);
    for id in ["collocate", "best-mode", "naive-in-turn"] {
        assert_eq!(named(&real, id).agrees, Agreement::NotMeasured, "{id}");
    }
}
