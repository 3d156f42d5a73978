//! Guidelines on campaigns whose truth is known: what they say is what is true of the simulation, and what nobody measured stays open.

use std::sync::LazyLock;

use collo_guidelines::rule::Guideline;
use collo_guidelines::rule::evidence::Evidence;
use collo_guidelines::verdict::{Agreement, Holds};
use collo_quantity::Key;
use collo_quantity::stats::RatioVerdict;
use collo_report::Report;
use collo_store::{Outcome, Sharing};
use simgpu::card::Card;

use crate::support::Fixture;
use crate::support::card::CardTruth;
use crate::support::study::{WORKLOADS, analysed, campaign, group, on};

fn named<'a>(report: &'a Report, id: &str) -> &'a Guideline {
    report.guidelines.iter().find(|g| g.id == id).unwrap_or_else(|| panic!("no guideline `{id}`"))
}

/// The campaign of all workloads in all modes; `quiet` ones have hardly any noise.
fn study(seed: u64, quiet: bool) -> Report {
    let (mut fixture, _) = campaign("a100-40gb", seed, 3);
    if quiet {
        (fixture.shared_noise, fixture.member_noise) = (1e-5, 1e-6);
        fixture.cells.iter_mut().for_each(|c| c.noise = Some(1e-5));
    }
    analysed(&fixture)
}

/// Hardly any noise: what the simulation would say if it were asked often enough.
static QUIET: LazyLock<Report> = LazyLock::new(|| study(1, true));
/// The same campaign as it would be measured four times.
static NOISY: LazyLock<Vec<Report>> = LazyLock::new(|| (0..4).map(|i| study(100 + i, false)).collect());

/// A share of intervals that a nominal rate makes likely: three standard errors below it, twice as many for what cells share.
fn likely(covered: usize, of: usize) -> bool {
    covered as f64 / of as f64 >= 0.95 - 6.0 * (0.95f64 * 0.05 / of as f64).sqrt()
}

#[test]
fn the_threshold_of_summed_activity_is_the_simulation_s() {
    let truth = named(&QUIET, "sm-threshold").key.clone().unwrap().value.estimate;
    let mut covered = 0;
    for report in NOISY.iter() {
        let q = &named(report, "sm-threshold").key.as_ref().unwrap().value;
        covered += usize::from(q.low.unwrap() <= truth && truth <= q.high.unwrap());
        assert!((q.estimate / truth - 1.0).abs() < 0.25, "{} of {truth}", q.estimate);
    }
    assert!(covered >= 3, "{covered} of 4 intervals hold {truth}");
}

#[test]
fn ratios_of_modes_cover_the_truth_and_no_mode_is_called_behind_that_is_ahead() {
    let truth = named(&QUIET, "best-mode");
    let of = |e: &Evidence| truth.evidence.iter().find(|t| t.name() == e.name()).unwrap().value.estimate;
    let (mut covered, mut all) = (0, 0);
    for report in NOISY.iter() {
        let g = named(report, "best-mode");
        if g.holds == Holds::No {
            assert!(of(g.key.as_ref().unwrap()) < 1.0, "{}", g.finding);
        }
        for e in &g.evidence {
            all += 1;
            covered += usize::from(e.value.low.unwrap() <= of(e) && of(e) <= e.value.high.unwrap());
        }
    }
    assert!(all > 150 && likely(covered, all), "{covered} of {all}");
}

#[test]
fn the_saving_of_energy_covers_the_truth() {
    let of =
        |name: &str| QUIET.analysis.cells.iter().find(|c| c.name() == name).unwrap().get(Key::EnergyOfSolo).unwrap().estimate;
    let (mut covered, mut all) = (0, 0);
    for cell in NOISY.iter().flat_map(|r| r.analysis.groups()) {
        let (q, truth) = (cell.get(Key::EnergyOfSolo).unwrap(), of(cell.name()));
        all += 1;
        covered += usize::from(q.low.unwrap() <= truth && truth <= q.high.unwrap());
    }
    assert!(all > 250 && likely(covered, all), "{covered} of {all}");
}

/// Members of a large workload on halves of a card, with each alone on such a half; each is slowed by its neighbours as given.
fn on_halves(slowdowns: &[f64]) -> Fixture {
    let card = Card::find("a100-40gb").unwrap();
    let mut fixture = on(&card, "halves");
    let truth = |members: &[&str], mode: &str| -> (Vec<f64>, CardTruth) {
        let (epochs, truth, _) = group(&card, members, mode).unwrap();
        (epochs, truth)
    };
    let (alone, card_alone) = truth(&["large"], "solo");
    let (two, card_two) = truth(&["large", "large"], "mig");
    fixture = fixture.on_card("solo", &[("large", alone[0])], card_alone, 0.005);
    fixture = fixture.on_card("mig:3g.20gb", &[("large", two[0])], card_two.clone(), 0.005);
    let label = fixture.cells.last().unwrap().record.cell.clone();
    let beside: Vec<(&str, f64)> = slowdowns.iter().map(|slowdown| ("large", two[0] * slowdown)).collect();
    fixture = fixture.on_card("mig", &beside, card_two, 0.005);
    fixture.cells.last_mut().unwrap().record.alone_on_slice = vec![label; slowdowns.len()];
    fixture
}

#[test]
fn a_smaller_slice_and_a_neighbour_are_told_apart() {
    let apart = analysed(&on_halves(&[1.0; 2]));
    let cell = apart.analysis.groups().find(|c| c.record.degree == 2).unwrap();
    let (whole, slice) = (cell.get(Key::Slowdown).unwrap().estimate, cell.get(Key::SlowdownOnSlice).unwrap());
    assert!((slice.estimate - 1.0).abs() < 0.02 && whole > 1.05, "{whole}, {slice:?}");
    assert_eq!(named(&apart, "isolation").holds, Holds::Yes);

    let disturbed = analysed(&on_halves(&[1.2; 2]));
    let cell = disturbed.analysis.groups().find(|c| c.record.degree == 2).unwrap();
    assert!((cell.get(Key::SlowdownOnSlice).unwrap().estimate - 1.2).abs() < 0.02);
    assert_eq!(named(&disturbed, "isolation").holds, Holds::No);
}

#[test]
fn one_disturbed_member_is_not_hidden_by_the_mean_of_all() {
    let report = analysed(&on_halves(&[1.0, 1.0, 1.15, 1.0]));
    let cell = report.analysis.groups().find(|c| c.record.degree == 4).unwrap();
    let mean = cell.get(Key::SlowdownOnSlice).unwrap();
    assert!(mean.high.unwrap() < 1.05, "the mean is the same within 5 %: {mean:?}");
    let isolation = named(&report, "isolation");
    assert_eq!(isolation.holds, Holds::No, "{}", isolation.finding);
    let key = isolation.key.as_ref().unwrap();
    assert_eq!(key.member, Some(2), "{}", isolation.finding);
    assert!((key.value.estimate - 1.15).abs() < 0.02, "{key:?}");
}

#[test]
fn equal_members_on_unequal_instances_are_not_expected_to_progress_equally() {
    let mut fixture = on_halves(&[1.0, 1.5]);
    let unequal = named(&analysed(&fixture), "fairness").holds;
    let slices = &mut fixture.cells.last_mut().unwrap().record.alone_on_slice;
    let equal = std::mem::replace(slices, vec!["large×1 mig:4g.20gb b32".into(), "large×1 mig:3g.20gb b32".into()]);
    assert_ne!(*slices, equal);
    assert_eq!((unequal, named(&analysed(&fixture), "fairness").holds), (Holds::No, Holds::Open));
}

#[test]
fn one_alone_on_the_instance_that_is_the_whole_card_is_found_on_every_model() {
    let models =
        [("rtx-pro-6000", "4g.96gb", "2g.48gb"), ("a30-24gb", "4g.24gb", "2g.12gb"), ("a100-40gb", "7g.40gb", "4g.20gb")];
    for (model, whole, half) in models {
        let card = Card::find(model).unwrap();
        let (epochs, truth, _) = group(&card, &["small"], "solo").unwrap();
        let mut fixture = on(&card, "alone");
        // As a campaign has it: that it is simulated stands beside the name.
        fixture.device.name = card.name.trim_start_matches("simulated ").into();
        for (sharing, of_solo) in [("solo".into(), 1.0), (format!("mig:{whole}"), 1.0), (format!("mig:{half}"), 1.5)] {
            fixture = fixture.on_card(&sharing, &[("small", epochs[0] * of_solo)], truth.clone(), 0.001);
            fixture.cells.last_mut().unwrap().record.slots = sharing.strip_prefix("mig:").map(str::to_string);
        }
        let report = analysed(&fixture);
        let overhead = named(&report, "alone-overhead");
        let cells: Vec<String> = overhead.evidence.iter().map(|e| e.name()).collect();
        assert_eq!(cells, [format!("small×1 mig:{whole} b32")], "{model}");
        assert_eq!(overhead.holds, Holds::Yes, "{model}: {}", overhead.finding);
    }
}

#[test]
fn of_an_instance_that_was_not_measured_nothing_is_said() {
    let card = Card::find("a100-40gb").unwrap();
    let (epochs, truth, _) = group(&card, &["small"], "solo").unwrap();
    let mut fixture = on(&card, "alone");
    fixture.device.name = card.name.trim_start_matches("simulated ").into();
    for sharing in ["solo", "mps"] {
        fixture = fixture.on_card(sharing, &[("small", epochs[0])], truth.clone(), 0.001);
    }
    let only_mps = analysed(&fixture);
    let overhead = named(&only_mps, "alone-overhead");
    assert_eq!(overhead.statement, "For `small b32`: leave MPS on when one member trains alone.", "{}", overhead.finding);
    let crash = Outcome::Crashed { member: 0, status: "exited with 1".into(), message: "boom".into(), place_alone: false };
    fixture = fixture.on_card("mig:7g.40gb", &[("small", epochs[0])], truth, 0.001).ends(crash);
    fixture.cells.last_mut().unwrap().record.slots = Some("7g.40gb".into());
    let failed = analysed(&fixture);
    assert_eq!(named(&failed, "alone-overhead").holds, Holds::Open, "{}", named(&failed, "alone-overhead").finding);
}

#[test]
fn members_that_share_an_instance_say_nothing_of_isolation() {
    for sharing in ["mig:3g.20gb+mps", "mig:2×3c.7g.40gb"] {
        let mut fixture = on_halves(&[1.5; 2]);
        let group = fixture.cells.last_mut().unwrap();
        (group.record.sharing, group.record.mode) = (sharing.into(), Sharing::of_label(sharing));
        let report = analysed(&fixture);
        assert_eq!(named(&report, "isolation").holds, Holds::Open, "{sharing}");
    }
}

#[test]
fn what_was_not_measured_stays_open_and_names_a_command() {
    let card = Card::find("a100-40gb").unwrap();
    let (epochs, truth, _) = group(&card, &["small"], "solo").unwrap();
    let alone = analysed(&on(&card, "alone").on_card("solo", &[("small", epochs[0])], truth, 0.01));
    for g in &alone.guidelines {
        assert_eq!(g.holds, Holds::Open, "{}: {}", g.id, g.finding);
        assert!(g.command.is_some() && g.evidence.is_empty(), "{}: {:?}", g.id, g.command);
    }
    let ids: Vec<&str> = alone.guidelines.iter().map(|g| g.id.as_str()).collect();
    assert!(ids.contains(&"best-mode") && ids.contains(&"sm-threshold") && ids.contains(&"isolation"), "{ids:?}");
}

#[test]
fn a_cpu_is_not_asked_about_cards() {
    let report = analysed(&Fixture::quickstart());
    let ids: Vec<&str> = report.guidelines.iter().map(|g| g.id.as_str()).collect();
    assert_eq!(ids, ["collocate", "memory-adds-up", "naive-in-turn", "fairness"]);
}

#[test]
fn advice_is_given_only_where_it_holds_and_the_study_is_judged_apart() {
    for g in NOISY.iter().chain([&*QUIET]).flat_map(|r| &r.guidelines) {
        let asks = g.statement.ends_with('?');
        assert_eq!(asks, g.holds != Holds::Yes, "{}: {:?}, {}", g.id, g.holds, g.statement);
        assert_eq!(g.finding.starts_with("No: "), g.holds == Holds::No, "{}: {}", g.id, g.finding);
        assert_eq!(g.agrees == Agreement::NotStudied, g.published.is_none(), "{}", g.id);
    }
    // The fitted threshold holds, whatever the published one.
    let threshold = named(&QUIET, "sm-threshold");
    assert_eq!((threshold.holds, threshold.agrees), (Holds::Yes, Agreement::Circular), "{}", threshold.statement);
}

#[test]
fn a_cpu_is_not_compared_with_a_study_of_gpus() {
    let report = analysed(&Fixture::quickstart());
    for g in &report.guidelines {
        let expected = if g.published.is_some() { Agreement::NotComparable } else { Agreement::NotStudied };
        assert_eq!(g.agrees, expected, "{}", g.id);
    }
    let text = &named(&report, "naive-in-turn").statement;
    assert!(text.starts_with("For `tiny b32`: naive sharing costs no throughput, and gains up to 1.9"), "{text}");
}

#[test]
fn at_most_seven_stand_on_the_first_screen_and_contradictions_always_do() {
    let report = &*QUIET;
    let first: Vec<&Guideline> = report.guidelines.iter().filter(|g| g.summary).collect();
    let contradicted = |g: &&Guideline| g.is_contrary();
    assert!(first.len() <= 7.max(first.iter().filter(|g| contradicted(g)).count()), "{}", first.len());
    assert!(report.guidelines.iter().filter(contradicted).all(|g| g.summary));
    assert!(report.guidelines.iter().position(|g| !g.summary).unwrap_or(99) >= first.len(), "the first screen comes first");
    assert!(WORKLOADS.len() > 7, "a campaign of many workloads");
}

/// Ten workloads that gain `gain` in pairs, and one that seems to gain more, by repetitions that jump.
fn with_a_jumping_pair(gain: f64, seed: u64) -> Report {
    let mut fixture = Fixture::named("jumping").seed(seed);
    (fixture.shared_noise, fixture.thresholds.relevant_ratio) = (0.004, 0.2);
    for w in 0..10 {
        fixture = fixture.solo(&format!("calm{w}"), 32, 1.0).group(&format!("calm{w}"), 32, 2, "naive", 2.0 / gain);
    }
    fixture = fixture.solo("jumping", 32, 1.0).group("jumping", 32, 2, "naive", 2.0 / 1.7);
    fixture.cells.last_mut().unwrap().noise = Some(0.35);
    analysed(&fixture)
}

#[test]
fn naive_sharing_is_said_to_gain_what_is_certain_whatever_seems_to_gain_more() {
    let undecided = |report: &Report| {
        let cell = report.analysis.cell("jumping×2 naive b32").unwrap();
        let largest = cell.get(Key::ThroughputGain).unwrap().estimate > 1.5;
        let verdict = cell.gain_verdict.as_ref().unwrap().verdict;
        largest && matches!(verdict, RatioVerdict::CannotTell { .. }) && named(report, "naive-in-turn").holds == Holds::Yes
    };
    let said = |gain: f64| {
        let mut reports = (0..40).map(|seed| with_a_jumping_pair(gain, seed));
        let report = reports.find(undecided).expect("one with a wide interval above 1");
        named(&report, "naive-in-turn").statement.clone()
    };
    let gained = said(1.4);
    assert!(gained.starts_with("Naive sharing costs no throughput, and gains up to 1.4"), "{gained}");
    assert_eq!(said(1.0), "Naive sharing costs no throughput.");
}

/// A workload that gains in pairs and of which a larger group cannot be used, and one that seems to gain more, by repetitions that jump.
fn with_an_odd_larger_group(seed: u64) -> Report {
    let mut fixture = Fixture::named("odd").seed(seed);
    fixture.shared_noise = 0.004;
    for w in 0..10 {
        fixture = fixture.solo(&format!("calm{w}"), 32, 1.0).group(&format!("calm{w}"), 32, 2, "naive", 2.0);
    }
    // Nobody is twice as fast in company.
    fixture = fixture.solo("sure", 32, 1.0).group("sure", 32, 2, "naive", 2.0 / 1.4).group("sure", 32, 3, "naive", 0.5);
    fixture = fixture.solo("jumping", 32, 1.0).group("jumping", 32, 2, "naive", 2.0 / 1.7);
    fixture.cells.last_mut().unwrap().noise = Some(0.35);
    analysed(&fixture)
}

#[test]
fn a_group_that_gains_is_recommended_and_not_a_larger_estimate_that_is_undecided() {
    let misleading = |report: &Report| {
        let cell = report.analysis.cell("jumping×2 naive b32").unwrap();
        let verdict = cell.gain_verdict.as_ref().unwrap().verdict;
        let larger = cell.get(Key::ThroughputGain).unwrap().estimate > 1.5;
        larger && cell.is_valid() && matches!(verdict, RatioVerdict::CannotTell { .. })
    };
    let report = (0..40).map(with_an_odd_larger_group).find(misleading).expect("one with a wide interval above the sure one");
    let g = named(&report, "collocate");
    assert_eq!((g.holds, g.statement.as_str()), (Holds::Yes, "Collocate `sure×2 naive b32`."), "{}", g.finding);
    assert!(g.finding.starts_with("`sure×2 naive b32` has 1."), "{}", g.finding);
    assert_eq!(g.key.as_ref().unwrap().cell, "sure×2 naive b32");
}

#[test]
fn members_are_not_stopped_at_a_knee_while_a_larger_group_may_still_add() {
    for seed in 0..6 {
        let mut fixture = Fixture::named("knee").seed(seed).solo("tiny", 32, 1.0);
        fixture.shared_noise = 0.002;
        for (degree, gain) in [(2, 1.8), (3, 1.8), (7, 2.5)] {
            fixture = fixture.group("tiny", 32, degree, "naive", f64::from(degree) / gain);
        }
        // Seven may add 40 %, or nothing.
        fixture.cells.last_mut().unwrap().noise = Some(0.4);
        for w in 0..8 {
            fixture = fixture.solo(&format!("calm{w}"), 32, 1.0).group(&format!("calm{w}"), 32, 2, "naive", 2.0);
        }
        let report = analysed(&fixture);
        let g = named(&report, "collocate");
        assert!(g.holds == Holds::Yes && !g.statement.contains("Stop at two"), "seed {seed}: {}", g.statement);
    }
}

#[test]
fn where_mps_moves_more_bytes_in_one_pair_and_less_in_another_neither_is_said_of_all() {
    let card = Card::find("a100-40gb").unwrap();
    let mut fixture = on(&card, "traffic");
    for (workload, naive, mps) in [("small", 1e9, 2e9), ("large", 2e9, 1e9)] {
        for (mode, rate) in [("naive", naive), ("mps", mps)] {
            let (epochs, truth, _) = group(&card, &[workload; 2], mode).unwrap();
            let members: Vec<(&str, f64)> = epochs.iter().map(|e| (workload, *e)).collect();
            fixture = fixture.on_card(mode, &members, CardTruth { pcie_rx_bytes_per_s: Some(rate), ..truth }, 0.01);
        }
    }
    let report = analysed(&fixture);
    let traffic = named(&report, "mps-pcie");
    assert_eq!((traffic.holds, traffic.agrees), (Holds::No, Agreement::Circular));
    assert!(traffic.finding.starts_with("No: not every group does."), "{}", traffic.finding);
    assert!(traffic.finding.ends_with("; 1 of 2 pairs move more, 1 less."), "{}", traffic.finding);
}

#[test]
fn what_was_tested_is_what_answered_and_what_the_study_is_compared_by_stands_apart() {
    for (id, own, agreement) in [
        ("least-energy", "in some group, Holm-corrected over the groups", "MIG not above MPS"),
        ("sm-threshold", "a hinge through the slowdowns", "the published 80 %"),
    ] {
        let (before, after) = named(&QUIET, id).tested.split_once(" Agreement: ").unwrap();
        assert!(before.contains(own) && !before.contains(agreement) && after.contains(agreement), "{before} / {after}");
    }
}
