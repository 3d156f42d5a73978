use super::*;
use collo_store::{PredictedAlone, PredictedValue};

use crate::earlier::MeasuredCell;
use crate::experiment::Experiment;
use crate::facts::DeviceFacts;

use crate::fixture::{self, a100, claims};
use crate::plan::{ForecastBasis, ForecastSource, Plan, cells_of, plan};
use crate::prior::Prior;

const GIB: u64 = 1 << 30;

/// One run of a cell: set-up, go to done, done to ended, two epochs.
fn measured(record: &CellRecord, times: [f64; 3]) -> (CellRecord, PastCell) {
    let [set_up_s, measured_s, end_s] = times;
    let footprint_bytes = Some(16 * GIB);
    let run = PastRun {
        folder: record.slug.clone(),
        set_up_s,
        measured_s,
        end_s,
        power_w: Some(200.0),
        footprint_bytes,
        alone_epoch_s: Some(9.0),
    };
    (record.clone(), PastCell { epochs: 2, measure_for_s: None, runs: vec![run] })
}

fn experiment(lines: &str) -> Experiment {
    let text = format!("name = \"mine\"\ndevice = \"gpu\"\nrepetitions = 1\n{lines}");
    fixture::read(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn planned(experiment: &Experiment, past: &[(CellRecord, PastCell)]) -> Plan {
    planned_after(experiment, &Prior { past: past.iter().cloned().collect(), ..Prior::default() })
}

fn planned_after(experiment: &Experiment, prior: &Prior) -> Plan {
    let facts = a100();
    let cells = cells_of(experiment, None, None, &facts).unwrap_or_else(|mistake| panic!("{mistake}"));
    plan(experiment, &cells, &facts, prior)
}

/// The records of the cells as they are planned.
fn records(lines: &str) -> Vec<CellRecord> {
    planned(&experiment(lines), &[]).cells.into_iter().map(|cell| cell.record).collect()
}

fn each_s(plan: &Plan, cell: &str) -> Option<f64> {
    plan.cells.iter().find(|c| c.record.cell == cell).unwrap_or_else(|| panic!("no {cell}")).forecast.each_s
}

const NAIVE: &str = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n";

#[test]
fn a_stored_run_of_the_same_cell_is_the_forecast_scaled_to_its_epochs() {
    let past: Vec<_> = records(NAIVE).iter().map(|record| measured(record, [5.0, 20.0, 1.0])).collect();
    let plan = planned(&experiment(NAIVE), &past);
    assert_eq!(each_s(&plan, "tiny×2 naive b32"), Some(26.0));
    // Two baselines and one group; 200 W.
    assert_eq!((plan.forecast.runs_s, plan.forecast.energy_j), (Some(78.0), Some(78.0 * 200.0)));
    assert_eq!(plan.forecast.stored_runs, 2);
    let longer = experiment(&format!("epochs = 5\n{NAIVE}"));
    assert_eq!(each_s(&planned(&longer, &past), "tiny×2 naive b32"), Some(5.0 + 50.0 + 1.0));
    let clocked = experiment(&format!("measure_for = \"95s\"\n{NAIVE}"));
    assert_eq!(each_s(&planned(&clocked, &past), "tiny×2 naive b32"), Some(5.0 + 110.0 + 1.0), "a warm-up epoch and ten");
}

#[test]
fn another_batch_or_degree_or_mode_is_not_the_same_cell() {
    let past: Vec<_> = records(NAIVE).iter().filter(|r| r.degree == 2).map(|r| measured(r, [5.0, 20.0, 1.0])).collect();
    for other in
        [NAIVE.replace("[1, 2]", "3"), NAIVE.replace("degree", "batch_size = 64\ndegree"), format!("{NAIVE}sharing = \"mps\"\n")]
    {
        let plan = planned(&experiment(&other), &past);
        assert!(plan.cells.iter().all(|cell| cell.forecast.each_s.is_none()), "{other}");
        assert_eq!((plan.forecast.stored_runs, plan.forecast.energy_j), (0, None));
    }
}

#[test]
fn members_alone_give_an_upper_bound_and_on_slices_only_members_alone_on_slices_do() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = 2\nsharing = [\"naive\", \"mps\", \"mps:20%\", \"mig:3g.20gb\"]\n";
    let all = records(lines);
    let solo: Vec<_> = all.iter().filter(|r| r.sharing == "solo").map(|r| measured(r, [5.0, 20.0, 1.0])).collect();
    let plan = planned(&experiment(lines), &solo);
    // Each waits for the other: epochs twice as long, set up in turn.
    assert_eq!((each_s(&plan, "tiny×2 naive b32"), each_s(&plan, "tiny×2 mps b32")), (Some(50.0), Some(50.0)));
    assert_eq!(each_s(&plan, "tiny×2 mps:20% b32"), Some(10.0 + 2.0 * 50.0), "a fifth of the threads");
    let group = plan.cells.iter().find(|c| c.record.cell == "tiny×2 mps b32").expect("planned");
    assert!(group.forecast.is_bound(crate::facts::DeviceKind::Gpu) && group.forecast.energy_j.is_none());
    assert!(matches!(&group.forecast.basis, Some(ForecastBasis::Members(runs)) if runs.len() == 1));
    assert_eq!(each_s(&plan, "tiny×2 mig:3g.20gb b32"), None);
    let slice = all.iter().find(|r| r.degree == 1 && r.sharing != "solo").expect("the member alone on its slice");
    let with = [solo, vec![measured(slice, [6.0, 60.0, 1.0])]].concat();
    assert_eq!(each_s(&planned(&experiment(lines), &with), "tiny×2 mig:3g.20gb b32"), Some(12.0 + 60.0));
}

#[test]
fn on_a_gpu_stored_runs_mark_what_may_run_out_of_memory_and_refuse_nothing() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [2, 3, 4]\nsharing = [\"naive\", \"mig:1g.5gb\"]\n";
    let solo: Vec<_> = records(lines).iter().filter(|r| r.sharing == "solo").map(|r| measured(r, [5.0, 20.0, 1.0])).collect();
    let (plan, without) = (planned(&experiment(lines), &solo), planned(&experiment(lines), &[]));
    assert_eq!(plan.record(), without.record(), "a campaign that is resumed has the plan that it began with");
    let naive: Vec<_> = plan.cells.iter().filter(|c| c.record.sharing == "naive").collect();
    let marked: Vec<_> =
        naive.iter().map(|c| (c.record.degree, c.forecast.memory.bytes, c.forecast.memory.risk.is_some())).collect();
    assert_eq!(marked, [(2, Some(32 * GIB), false), (3, Some(48 * GIB), true), (4, Some(64 * GIB), true)]);
    let on_slices = plan.cells.iter().filter(|c| c.record.sharing.starts_with("mig"));
    assert!(
        on_slices.map(|c| c.forecast.memory.risk.is_some()).eq([true; 4]),
        "16 GiB in a slice of 5, alone and in three groups"
    );
}

#[test]
fn what_was_measured_beats_what_is_predicted() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3]\n";
    let solo: Vec<_> = records(lines).iter().filter(|r| r.sharing == "solo").map(|r| measured(r, [5.0, 20.0, 1.0])).collect();
    let refused = |past: &[(CellRecord, PastCell)]| {
        let past = past.iter().cloned().collect();
        let plan = planned_after(&experiment(lines), &Prior { past, predicted: Some(claims(30.0, 25.0)), ..Prior::default() });
        let sources: Vec<_> = plan.cells.iter().filter_map(|c| c.forecast.memory.source).collect();
        (plan.refusals.len(), sources)
    };
    // Two of 25 GiB do not fit 40. One needed 16: what says otherwise refuses nothing.
    assert_eq!(refused(&[]), (2, vec![ForecastSource::Predicted]));
    assert_eq!(refused(&solo), (0, vec![ForecastSource::Measured; 3]));
}

#[test]
fn predicted_power_is_that_of_training_and_the_set_up_draws_between_nothing_and_as_much() {
    let lines = "[axes]\nworkload = \"tiny\"\n";
    let (cell, mut past) = measured(&records(lines)[0], [5.0, 20.0, 1.0]);
    past.runs[0].power_w = None;
    let mut predicted = claims(1.0, 1.0);
    let power_w = Some(PredictedValue { estimate: 200.0, low: 150.0, high: 250.0 });
    for member in &mut predicted.members {
        member.alone = Some(PredictedAlone { power_w, ..PredictedAlone::default() });
    }
    let prior = Prior { past: [(cell, past)].into_iter().collect(), predicted: Some(predicted), ..Prior::default() };
    let plan = planned_after(&experiment(lines), &prior);
    let forecast = &plan.cells[0].forecast;
    assert_eq!((forecast.each_s, forecast.energy_from), (Some(26.0), Some(ForecastSource::Predicted)));
    let all = f64::from(plan.cells[0].record.repetitions);
    assert_eq!(forecast.energy_j, Some(all * (26.0 - 5.0) * 200.0));
    assert_eq!(forecast.energy_bounds_j, Some((all * (26.0 - 5.0) * 150.0, all * 26.0 * 250.0)));
}

#[test]
fn a_member_alone_under_an_observer_is_no_member_alone() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n";
    let solo = records(lines).into_iter().find(|r| r.sharing == "solo").expect("planned");
    let watched = CellRecord { observe: Some("none".into()), ..solo.clone() };
    let cells = [measured(&watched, [5.0, 20.0, 1.0])];
    let past: PastRuns = cells.iter().cloned().collect();
    assert_eq!((past.of(&solo), past.alone(&solo.members[0])), (None, None));
    let plan = planned(&experiment(lines), &cells);
    assert!(plan.cells.iter().all(|cell| cell.forecast.each_s.is_none()), "nor is anything forecast from it");
}

#[test]
fn runs_that_differ_in_more_than_members_and_mode_are_not_of_the_same_cell() {
    let group = |more: &str| {
        let all = records(&format!("{more}[axes]\nworkload = \"tiny\"\ndegree = 2\n"));
        all.into_iter().find(|r| r.degree == 2).expect("planned")
    };
    let own = group("");
    assert!(own.is_same(&own) && !own.is_same(&group("after_measured = \"exit\"\n")));
    let watched = CellRecord { observe: Some("torch-profiler".into()), ..own.clone() };
    assert!(!own.is_same(&watched) && watched.is_same(&watched));
    let elsewhere = CellRecord { slots: Some("cores 0-1".into()), ..own.clone() };
    let of_an_earlier_version = CellRecord { slots: None, ..own.clone() };
    assert!(!own.is_same(&elsewhere) && own.is_same(&of_an_earlier_version));
    let mut relabelled = own.clone();
    relabelled.members[0].solo = "as it was called when another default was in force".into();
    assert!(own.is_same(&relabelled));
    relabelled.members[0].batch_size = Some(64);
    assert!(!own.is_same(&relabelled));
}

#[test]
fn the_measured_gain_of_a_group_is_not_that_of_the_group_under_an_observer() {
    let own = records(NAIVE).into_iter().find(|r| r.degree == 2).expect("planned");
    let cell = (own, MeasuredCell { throughput_gain: Some(1.23), ..MeasuredCell::default() });
    let gains = |lines: &str| -> Vec<Option<f64>> {
        let prior = Prior { measured: [cell.clone()].into_iter().collect(), ..Prior::default() };
        let plan = planned_after(&experiment(lines), &prior);
        let groups = plan.cells.iter().filter(|c| c.record.degree == 2);
        groups.map(|c| c.forecast.gain.map(|gain| gain.estimate)).collect()
    };
    let watched = NAIVE.replace("[1, 2]", "2\nobserve = [\"none\", \"collo\"]");
    assert_eq!((gains(NAIVE), gains(&watched)), (vec![Some(1.23)], vec![None, None]));
}

#[test]
fn of_a_large_plan_fewer_runs_of_each_cell_are_read_and_every_cell_has_one() {
    assert_eq!([0, 1, 75, 76, 204, 1000].map(runs_of_a_cell), [4, 4, 4, 3, 1, 1]);
    assert!((1..2000).all(|cells| runs_of_a_cell(cells) * cells <= MOST_RUNS.max(cells)));
}

#[test]
fn a_counter_that_decreases_or_stands_still_tells_no_power() {
    let at = |s: u64, value: f64| (s * 1_000_000_000, 0, Some(value));
    assert_eq!(growth_per_s(&[at(0, 0.0), at(2, 100.0), at(4, 300.0), at(9, 1.0)], 1, 5_000_000_000), Some(100.0));
    assert_eq!(growth_per_s(&[at(1, 100.0), at(2, 50.0), at(3, 400.0)], 0, 5_000_000_000), None);
    assert_eq!(growth_per_s(&[at(1, 100.0), at(2, 100.0)], 0, 5_000_000_000), None);
    assert_eq!(growth_per_s(&[at(1, 100.0)], 0, 5_000_000_000), None);
}

#[test]
fn simulated_runs_and_other_devices_never_serve() {
    let device = |name: &str, simulated: bool| DeviceRecord {
        name: name.into(),
        simulated,
        kind: "gpu".into(),
        ..DeviceFacts::of_cpu(2, 1).record()
    };
    let own = device("NVIDIA A100", false);
    assert!(own.is_like(&device("NVIDIA A100", false)));
    assert!(!own.is_like(&device("NVIDIA A100", true)) && !own.is_like(&device("NVIDIA H100", false)));
    let (two, four) = (DeviceFacts::of_cpu(2, 1).record(), DeviceFacts::of_cpu(4, 1).record());
    let half = DeviceRecord { quota_cores: Some(0.5), ..two.clone() };
    assert!(two.is_like(&two) && !two.is_like(&four) && !two.is_like(&half));
}
