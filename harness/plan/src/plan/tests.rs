use std::collections::BTreeMap;

use collo_store::BlockEdge;

use super::*;
use crate::expand::expand;
use crate::fixture::{self, experiment, read};
use collo_gpus::mig::GpuModel;

fn planned_on(lines: &str, facts: &DeviceFacts) -> Plan {
    let e = experiment(lines);
    plan(&e, &expand(&e, None).unwrap_or_else(|mistake| panic!("{mistake}")), facts, &Prior::default())
}

fn planned(lines: &str) -> Plan {
    planned_on(lines, &DeviceFacts::of_cpu(2, 24 << 30))
}

const QUICK: &str = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3]\n";

#[test]
fn every_repetition_is_a_block_in_which_each_baseline_stands_around_its_own_groups() {
    let mixed = "[[group]]\nmembers = [{ workload = \"tiny\" }, { workload = \"small\" }]\n";
    let plan = planned(&format!("[axes]\nworkload = [\"tiny\", \"small\"]\ndegree = [2, 3]\n{mixed}"));
    let record = &plan.record();
    for block in 1..=3 {
        let runs: Vec<&PlannedRun> = record.order.iter().filter(|run| run.block == block).collect();
        assert_eq!(runs.len(), 9, "two baselines twice, four groups and a mixed one");
        assert!(runs.iter().all(|run| record.cells[run.cell].baseline == run.edge.is_some()));
        let families = runs.split_inclusive(|run| run.edge == Some(BlockEdge::Closes));
        for family in families {
            let ends: Vec<Option<BlockEdge>> = family.iter().map(|run| run.edge).filter(Option::is_some).collect();
            assert_eq!(ends, [Some(BlockEdge::Opens), Some(BlockEdge::Closes)]);
            let solo = &record.cells[family[0].cell].cell;
            assert!(family[0].edge.is_some() && family.len() >= 4);
            for run in family {
                assert!(record.cells[run.cell].members.iter().any(|m| m.solo == *solo), "{:?}", record.cells[run.cell].cell);
            }
        }
    }
    assert!(record.order.windows(2).all(|w| w[0].block <= w[1].block));
}

#[test]
fn every_repetition_of_every_cell_is_planned_once() {
    let plan = planned("repetitions = 4\n[axes]\nworkload = [\"tiny\", \"small\"]\ndegree = [1, 2, 3]\n");
    let mut seen: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    plan.order.iter().for_each(|run| seen.entry(run.cell).or_default().push(run.repetition));
    for (cell, record) in plan.record().cells.iter().enumerate() {
        assert_eq!(record.repetitions, if record.baseline { 8 } else { 4 });
        assert_eq!(seen[&cell], (1..=record.repetitions).collect::<Vec<u32>>());
    }
}

#[test]
fn a_forecast_of_more_runs_scales_its_bounds_with_it() {
    let Plan { mut cells, order, .. } = planned(QUICK);
    let before = cells[0].record.repetitions;
    (cells[0].forecast.energy_j, cells[0].forecast.energy_bounds_j) = (Some(10.0), Some((9.0, 12.0)));
    count(&mut cells, &[order.clone(), order].concat());
    assert_eq!(cells[0].record.repetitions, 2 * before);
    assert_eq!((cells[0].forecast.energy_j, cells[0].forecast.energy_bounds_j), (Some(20.0), Some((18.0, 24.0))));
}

#[test]
fn what_is_known_of_a_plan_on_several_gpus_is_the_time_of_the_one_that_has_most_to_do() {
    let Plan { mut cells, order, .. } = planned(QUICK);
    cells.iter_mut().for_each(|cell| cell.forecast.each_s = Some(60.0));
    cells[2].forecast.each_s = None;
    let run = |cell: usize, card: u32| PlannedRun { cell, card: Some(card), ..order[0].clone() };
    let forecast = Forecast::of(&cells, &[run(0, 0), run(1, 0), run(0, 1), run(2, 1)], std::time::Duration::ZERO);
    assert_eq!((forecast.known_s, forecast.total_s), (120.0, None));
}

#[test]
fn a_seed_means_the_same_order_for_ever() {
    let order = |seed: u64| {
        let plan = planned(&format!("seed = {seed}\n[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3, 4, 5, 6]\n"));
        plan.order.iter().map(|run| run.cell.to_string()).collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(order(42), @"0 2 3 5 1 4 0 0 3 2 5 4 1 0 0 5 4 1 3 2 0");
    assert_eq!(order(42), order(42));
    assert_ne!(order(42), order(43));
}

#[test]
fn on_a_cpu_other_modes_are_refused_and_their_baselines_go_with_them() {
    let plan = planned("[axes]\nworkload = \"tiny\"\nsharing = [\"mps:50%\", \"mig\"]\ndegree = [2, 7]\n");
    assert!(plan.cells.is_empty() && plan.order.is_empty());
    assert_eq!(plan.record().refusals.len(), 4);
    assert_eq!(
        plan.record().refusals[0],
        RefusalRecord {
            cell: "tiny×2 mps:50% b32".into(),
            sharing: "mps:50%".into(),
            reason: "`mps` needs an NVIDIA GPU, this is a cpu".into(),
            hint: Some("on a CPU: `naive`, `threads`".into()),
        }
    );
    let mixed = planned("[axes]\nworkload = \"tiny\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2\n");
    assert_eq!(mixed.record().cells.iter().map(|c| c.cell.as_str()).collect::<Vec<_>>(), ["tiny solo b32", "tiny×2 naive b32"]);
    assert_eq!(mixed.record().refusals.len(), 1);
}

#[test]
fn what_does_not_fit_the_memory_is_refused_with_numbers() {
    let plan = planned_on(QUICK, &DeviceFacts::of_cpu(2, 2_000_000_000));
    assert_eq!(plan.record().cells.len(), 2);
    let refusal = &plan.record().refusals[0];
    assert_eq!(refusal.cell, "tiny×3 naive b32");
    assert_eq!(refusal.reason, "3 members need about 2.2 GiB, this machine has 1.86 GiB");
    assert_eq!(refusal.hint.as_deref(), Some("`degree` up to 2 fits"));
    let unknown = planned_on("[axes]\nworkload = \"sleep\"\ndegree = 200\n", &DeviceFacts::of_cpu(2, 1));
    assert!(unknown.record().refusals.is_empty(), "who tells no memory is let in");
}

#[test]
fn members_with_cores_of_their_own_need_that_many() {
    let plan = planned("cores = \"spread\"\n[axes]\nworkload = \"tiny\"\ndegree = [2, 3]\n");
    assert_eq!(plan.record().refusals.len(), 1);
    assert_eq!(plan.record().refusals[0].reason, "3 members need 3 cores of their own, this machine has 2");
}

#[test]
fn what_needs_cuda_is_refused_on_a_cpu() {
    let plan = planned("[axes]\nworkload = [\"net\", \"net-gpu\"]\n");
    let record = plan.record();
    let refused: Vec<_> = record.refusals.iter().map(|r| (r.cell.as_str(), r.reason.as_str())).collect();
    assert_eq!(refused, [("net-gpu solo b10", "`net-gpu` needs an NVIDIA GPU with CUDA, this device is a CPU")]);
    assert!(plan.record().cells.iter().all(|c| c.cell == "net solo b10"));
}

#[test]
fn the_slots_say_which_cores_the_members_get() {
    let slots = |cores: &str| {
        let plan = planned(&format!("cores = \"{cores}\"\n[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n"));
        plan.cells.into_iter().filter_map(|c| c.record.slots).collect::<Vec<_>>()
    };
    assert_eq!(slots("shared"), ["whole CPU", "whole CPU, shared"]);
    assert_eq!(slots("spread"), ["cores of their own", "cores of their own"]);
    assert_eq!(slots("8,0-2"), ["cores 0-2,8", "cores 0-2,8"]);
}

#[test]
fn the_forecast_adds_what_the_workloads_tell() {
    let plan = planned(QUICK);
    let each: Vec<f64> = plan.cells.iter().filter_map(|c| c.forecast.each_s).collect();
    // Set-up 4 s, two epochs of 1.6 s, half as long again with three on two cores.
    assert_eq!(each.iter().map(|s| format!("{s:.1}")).collect::<Vec<_>>(), ["7.2", "7.2", "8.8"]);
    let runs_s = plan.forecast.runs_s.expect("all tell");
    assert!((runs_s - (6.0 * 7.2 + 3.0 * 7.2 + 3.0 * 8.8)).abs() < 1e-9);
    assert_eq!((plan.forecast.between_s, plan.forecast.total_s), (11.0, Some(runs_s + 11.0)));
    assert_eq!(plan.cells[2].forecast.memory.bytes, Some(2_400_000_000));
}

#[test]
fn a_workload_that_tells_nothing_leaves_the_total_absent() {
    let plan = planned("[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = 2\n");
    assert_eq!((plan.forecast.runs_s, plan.forecast.total_s), (None, None));
    assert!(plan.cells[0].forecast.each_s.is_some() && plan.cells[2].forecast.each_s.is_none());
    assert!(plan.json()["forecast_s"].is_null());
}

#[test]
fn a_shortened_epoch_takes_its_share_and_another_training_is_unknown() {
    let first = |axes: &str| planned(&format!("[axes]\nworkload = \"net\"\n{axes}\n")).cells[0].forecast.clone();
    assert!((first("limit_batches = 5").each_s.expect("told") - (4.0 + 2.0 * 5.0)).abs() < 1e-9);
    assert!((first("limit_batches = 5000").each_s.expect("told") - 204.0).abs() < 1e-9, "no longer than a whole one");
    assert!((first("limit_batches = 0.25").each_s.expect("told") - (4.0 + 2.0 * 25.0)).abs() < 1e-9, "a share of it");
    assert_eq!((first("width = 128").each_s, first("width = 128").memory.bytes), (None, None));
}

#[test]
fn half_the_images_take_half_an_epoch_and_all_of_them_nobody_knows() {
    let each = |images: u32| planned(&format!("[axes]\nworkload = \"tiny\"\nimages = {images}\n")).cells[0].forecast.each_s;
    assert!((each(512).expect("told") - 5.6).abs() < 1e-9);
    assert_eq!(each(0), None);
}

#[test]
fn in_a_mixed_group_the_work_is_shared_by_who_is_left() {
    let plan = planned("[[group]]\nmembers = [{ workload = \"small\" }, { workload = \"tiny\", count = 3 }]\n");
    // 8 s + 3 × 1.6 s of work per epoch on two cores is less than the slowest takes alone.
    let each = plan.cells.last().and_then(|c| c.forecast.each_s).expect("told");
    assert!((each - (5.0 + 2.0 * 8.0)).abs() < 1e-9);
}

#[test]
fn the_json_has_the_agreed_keys() {
    let json =
        planned("repetitions = 1\nseed = 1\n[axes]\nworkload = \"tiny\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2\n").json();
    insta::assert_snapshot!(serde_json::to_string(&json).expect("text").replace("},{", "},\n{").replace("],\"", "],\n\""), @r#"
    {"schema":1,"experiment":"mine","cells":[{"cell":"tiny solo b32","sharing":"solo","degree":1,"members":[{"workload":"tiny","batch_size":32,"images":1024}],
    "baseline":true,"repetitions":2,"slots":"whole CPU","forecast":{"each_s":7.2,"each_low_s":null,"each_high_s":null,"total_s":14.4,"memory_bytes":800000000,"memory_upper_bytes":null,"memory_from":"workload.toml","may_run_out_of_memory":false,"out_of_memory_probability":null,"gain":null,"gain_withheld":null,"energy_j":null,"energy_low_j":null,"energy_high_j":null,"energy_from":null,"from":"workload.toml","stored_runs":0}},
    {"cell":"tiny×2 naive b32","sharing":"naive","degree":2,"members":[{"workload":"tiny","batch_size":32,"images":1024},
    {"workload":"tiny","batch_size":32,"images":1024}],
    "baseline":false,"repetitions":1,"slots":"whole CPU, shared","forecast":{"each_s":7.2,"each_low_s":null,"each_high_s":null,"total_s":7.2,"memory_bytes":1600000000,"memory_upper_bytes":null,"memory_from":"workload.toml","may_run_out_of_memory":false,"out_of_memory_probability":null,"gain":null,"gain_withheld":null,"energy_j":null,"energy_low_j":null,"energy_high_j":null,"energy_from":null,"from":"workload.toml","stored_runs":0}}],
    "order":[[1,"tiny solo b32",1],[1,"tiny×2 naive b32",1],[1,"tiny solo b32",2]],
    "refusals":[{"cell":"tiny×2 mps b32","sharing":"mps","reason":"`mps` needs an NVIDIA GPU, this is a cpu","hint":"on a CPU: `naive`, `threads`"}],
    "forecast_s":23.6,"energy_j":null,"predictors":null}
    "#);
}

#[test]
fn ten_thousand_cells_are_planned() {
    let degrees: Vec<u32> = (1..=7).collect();
    let batches: Vec<u32> = (1..=715).collect();
    let e = read(&format!("name = \"mine\"\ndevice = \"cpu\"\n[axes]\nworkload = [\"tiny\", \"small\"]\nbatch_size = {batches:?}\ndegree = {degrees:?}\n")).expect("right");
    let cells = expand(&e, None).expect("few enough");
    let plan = plan(&e, &cells, &DeviceFacts::of_cpu(2, 24 << 30), &Prior::default());
    assert_eq!((plan.cells.len(), plan.order.len()), (10_010, 3 * (8580 + 2 * 1430)));
}

#[test]
fn two_cells_with_one_slug_get_two_folders() {
    let mut same = planned(QUICK).cells;
    same.iter_mut().for_each(|c| c.record.slug = "same".into());
    distinct_slugs(&mut same);
    let slugs: HashSet<&str> = same.iter().map(|c| c.record.slug.as_str()).collect();
    assert_eq!(slugs.len(), 3, "{slugs:?}");
}

/// An A100 found with this partition.
fn on_an_a100(found: Partition) -> DeviceFacts {
    let gpu = crate::facts::Gpu::planned(fixture::models().find("a100-40gb").expect("known"));
    fixture::planned(vec![crate::facts::Gpu { partition: Some(found), ..gpu }])
}

const ALL_MODES: &str = "repetitions = 3\n[axes]\nworkload = \"tiny\"\nsharing = [\"naive\", \"mps\", \"mig:2×1g.5gb\", \"mig:2×3g.20gb\"]\ndegree = 2\n";

/// Whether MIG is on, run by run.
fn modes(plan: &Plan) -> Vec<bool> {
    plan.order.iter().map(|run| plan.cells[run.cell].seating.partition.as_ref().is_some_and(|p| p.mig)).collect()
}

#[test]
fn the_mode_is_switched_once_and_back_and_what_is_there_comes_first_and_last() {
    let planned = |found: Partition| modes(&planned_on(ALL_MODES, &on_an_a100(found)));
    let switches = |modes: &[bool]| modes.windows(2).filter(|w| w[0] != w[1]).count();
    let (off, on) = (planned(Partition::off()), planned(Partition::on(Vec::new())));
    // With the change that restores the mode, as many as with one half after the other.
    assert_eq!((switches(&off), switches(&on)), (2, 2));
    assert!(!off[0] && !off[off.len() - 1] && on[0] && on[on.len() - 1] && off.len() == on.len());
    assert_eq!(planned_on(ALL_MODES, &on_an_a100(Partition::off())).mode_changes(), 2);
    let once = ALL_MODES.replace("repetitions = 3", "repetitions = 1");
    assert_eq!(planned_on(&once, &on_an_a100(Partition::off())).mode_changes(), 1);
}

#[test]
fn cells_on_instances_stand_between_runs_of_their_baseline_and_no_run_is_added() {
    let plan = planned_on(ALL_MODES, &on_an_a100(Partition::off()));
    let places = |wanted: &dyn Fn(&PlannedCell) -> bool| -> Vec<usize> {
        (0..plan.order.len()).filter(|place| wanted(&plan.cells[plan.order[*place].cell])).collect()
    };
    let on_instances = places(&|cell| cell.seating.partition.as_ref().is_some_and(|p| p.mig));
    let baselines = places(&|cell| cell.record.baseline);
    assert!(baselines.iter().filter(|place| **place < on_instances[0]).count() >= 2);
    assert!(baselines.iter().filter(|place| **place > on_instances[on_instances.len() - 1]).count() >= 2);
    assert_eq!(baselines.len(), 6, "two around each of three repetitions");
    let repetitions: Vec<u32> = baselines.iter().map(|place| plan.order[*place].repetition).collect();
    assert_eq!(repetitions, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_is_used_as_found_is_never_switched() {
    let mut facts = on_an_a100(Partition::off());
    facts.as_found = true;
    assert!(modes(&planned_on(ALL_MODES, &facts)).iter().all(|on| !on));
}

#[test]
fn what_the_machine_beside_a_card_cannot_hold_is_refused_with_the_way_out() {
    let lines = "[axes]\nworkload = \"net-gpu\"\ndegree = [1, 2, 7]\n";
    let mut facts = on_an_a100(Partition::off());
    let refused = |facts: &DeviceFacts| planned_on(lines, facts).record().refusals;
    // The machine of a card that is only planned for is not this one.
    assert_eq!((facts.host_memory_bytes, refused(&facts).len()), (None, 0));
    facts.host_memory_bytes = Some(256 << 30);
    assert_eq!(refused(&facts).len(), 0);
    facts.host_memory_bytes = Some(16 << 30);
    let refusals = refused(&facts);
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].cell, "net-gpu×7 naive b10");
    let reason = "7 members need about 19.6 GiB of host memory, besides the GPU's; this machine has 16.0 GiB";
    assert_eq!(refusals[0].reason, reason);
    assert_eq!(refusals[0].hint.as_deref(), Some("`degree` up to 5 fits"));
}

#[test]
fn every_repetition_is_a_block_of_its_own_in_each_layout() {
    let plan = planned_on(ALL_MODES, &on_an_a100(Partition::off()));
    let mut blocks: BTreeMap<u32, Vec<Option<&Partition>>> = BTreeMap::new();
    for run in &plan.order {
        blocks.entry(run.block).or_default().push(plan.cells[run.cell].seating.partition.as_ref());
    }
    // Three repetitions of MIG off and of two layouts.
    assert_eq!(blocks.len(), 9);
    assert!(blocks.values().all(|states| states.iter().all(|s| *s == states[0])));
}

#[test]
fn only_cells_that_need_a_change_that_cannot_be_had_are_refused() {
    let mut facts = on_an_a100(Partition::off());
    facts.fixed.mode = Some(collo_gpus::PartitionError::new("the MIG mode of GPU 0 cannot be turned on"));
    let plan = planned_on(ALL_MODES, &facts);
    let record = plan.record();
    let kept: Vec<&str> = record.cells.iter().map(|c| c.sharing.as_str()).collect();
    assert_eq!(kept, ["solo", "naive", "mps"]);
    let refused: Vec<&str> = record.refusals.iter().map(|r| r.sharing.as_str()).collect();
    assert_eq!(refused, ["mig:2×1g.5gb", "mig:2×3g.20gb"]);
    assert_eq!(plan.record().refusals[0].reason, "the MIG mode of GPU 0 cannot be turned on");
    let hint = record.refusals[0].hint.as_deref().unwrap_or_default();
    // One layout serves all cells with instances of that size.
    assert!(hint.contains("sudo collo mig apply sevenths --services stop"), "{hint}");
    assert!(hint.contains("collo run mine --new --as-found"), "{hint}");
}

#[test]
fn of_a_plan_of_which_a_part_is_kept_each_cell_has_the_repetitions_that_are_left() {
    let mut plan = planned("repetitions = 2\n[axes]\nworkload = \"tiny\"\ndegree = 2\n");
    plan.keep(|place, cell| place < 3 && cell.asked);
    assert_eq!(plan.cells.iter().map(|c| c.record.repetitions).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(plan.record().order.len(), 1);
}

#[test]
fn a_member_without_a_list_of_cores_is_refused() {
    let plan = planned("cores = [\"0\", \"1\"]\n[axes]\nworkload = \"tiny\"\ndegree = [2, 3]\n");
    let slots: Vec<_> = plan.cells.iter().map(|c| c.record.slots.clone().unwrap_or_default()).collect();
    assert_eq!(slots, ["cores 0", "cores 0 | 1"]);
    assert_eq!(plan.refusals[0].record.reason, "`cores` lists those of 2 members, and this cell has 3");
}

/// So many equal cards that are only planned for.
fn cards(count: usize) -> DeviceFacts {
    let model = GpuModel { memory_gb: Some(40), ..GpuModel::bare("a100-40gb", 7) };
    let gpu = crate::facts::Gpu::planned(&model);
    DeviceFacts { cores: (0..16).collect(), ..fixture::planned(vec![gpu; count]) }
}

/// The cards on which each cell is measured, one for each repetition.
fn cards_of(plan: &Plan) -> BTreeMap<&str, Vec<u32>> {
    let mut found: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for run in &plan.order {
        found.entry(&plan.cells[run.cell].record.cell).or_default().push(run.card.expect("there are several"));
    }
    found.values_mut().for_each(|cards| cards.sort_unstable());
    found
}

#[test]
fn on_several_cards_each_block_lies_on_one_and_every_cell_goes_around_them() {
    let plan = planned_on("repetitions = 4\n[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = [2, 3]\n", &cards(2));
    let block_card: BTreeMap<u32, Option<u32>> = plan.order.iter().map(|run| (run.block, run.card)).collect();
    assert!(plan.order.iter().all(|run| block_card[&run.block] == run.card));
    for (cell, cards) in cards_of(&plan) {
        let each = if cell.contains("solo") { 4 } else { 2 };
        assert_eq!(cards, [vec![0; each], vec![1; each]].concat(), "{cell}");
    }
    let one = planned_on("repetitions = 4\n[axes]\nworkload = [\"tiny\", \"sleep\"]\ndegree = [2, 3]\n", &cards(1));
    assert!(one.order.iter().all(|run| run.card.is_none()), "one card needs no number");
    let bare = |plan: &Plan| plan.order.iter().map(|run| (run.block, run.cell, run.repetition)).collect::<Vec<_>>();
    assert_eq!(bare(&plan), bare(&one), "the order of the runs does not depend on the cards");
}

#[test]
fn with_fewer_repetitions_than_cards_each_part_of_the_cells_has_its_own_cards_and_baselines() {
    let plan = planned_on("repetitions = 3\n[axes]\nworkload = [\"tiny\", \"sleep\", \"small\"]\ndegree = [2, 3]\n", &cards(8));
    let cards = cards_of(&plan);
    let used: std::collections::BTreeSet<u32> = cards.values().flatten().copied().collect();
    assert_eq!(used, (0..8).collect(), "no card is idle");
    for (cell, planned) in plan.cells.iter().enumerate() {
        let runs = plan.order.iter().filter(|run| run.cell == cell).count() as u32;
        assert_eq!(planned.record.repetitions, runs, "{}", planned.record.cell);
        for label in &planned.record.against {
            let baselines = &cards[label.as_str()];
            assert!(cards[planned.record.cell.as_str()].iter().all(|card| baselines.contains(card)), "{label}");
        }
    }
}
