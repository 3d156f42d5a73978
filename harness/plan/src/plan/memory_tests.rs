use collo_store::{BlockEdge, RefusalRecord};

use super::super::{cells_of, plan};
use super::*;
use crate::experiment::Experiment;
use crate::fixture::{a100, claims, read};
use crate::plan::Plan;
use crate::prior::Prior;

const GIB: u64 = 1 << 30;

fn experiment(lines: &str) -> Experiment {
    let text = format!("name = \"mine\"\ndevice = \"gpu\"\nrepetitions = 1\n{lines}");
    read(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn predicted(estimate_gib: f64, least_gib: f64) -> Prior {
    Prior { predicted: Some(claims(estimate_gib, least_gib)), ..Prior::default() }
}

fn planned(lines: &str, prior: &Prior) -> Plan {
    let (experiment, facts) = (experiment(lines), a100());
    let cells = cells_of(&experiment, None, None, &facts).unwrap_or_else(|mistake| panic!("{mistake}"));
    plan(&experiment, &cells, &facts, prior)
}

/// The degrees that are planned under naive sharing, and the refusals in words.
fn fits(plan: &Plan) -> (Vec<u32>, Vec<String>) {
    let said = |r: &crate::plan::RefusedCell| {
        let RefusalRecord { cell, reason, hint, .. } = &r.record;
        format!("{cell}: {reason}; {}", hint.as_deref().unwrap_or_default())
    };
    (plan.cells.iter().map(|c| c.record.degree).collect(), plan.refusals.iter().map(said).collect())
}

const NAIVE: &str = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3, 4]\n";

#[test]
fn a_cell_is_refused_if_even_its_lower_bounds_are_more_than_the_gpu_has() {
    let (degrees, refused) = fits(&planned(NAIVE, &predicted(16.0, 12.0)));
    assert_eq!(degrees, [1, 2, 3]);
    insta::assert_snapshot!(refused.join("\n"), @"tiny×4 naive b32: 4 members need at least 48.0 GiB by prediction, the GPU has 40.0 GiB; `degree` up to 2 fits; `--no-predict` runs it anyway");
}

#[test]
fn a_cell_whose_upper_bounds_are_more_is_planned_and_marked_with_its_probability() {
    let plan = planned(NAIVE, &predicted(13.0, 6.0));
    let memory: Vec<MemoryForecast> = plan.cells.iter().map(|c| c.forecast.memory).collect();
    assert!(memory.iter().all(|m| m.source == Some(ForecastSource::Predicted)));
    assert_eq!(
        memory.iter().map(|m| m.upper_bytes.map(|b| b / GIB)).collect::<Vec<_>>(),
        [Some(16), Some(32), Some(48), Some(65)]
    );
    let chances: Vec<Option<u32>> = memory.iter().map(|m| m.probability().map(|p| (p * 100.0).round() as u32)).collect();
    // 39 GiB of 40 in the middle of ± 25 %: somewhat less than half; 52 GiB are more than the interval.
    assert_eq!(chances, [None, None, Some(41), Some(99)]);
    assert_eq!(memory.iter().map(|m| m.fits).collect::<Vec<_>>(), [Some(true), Some(true), Some(true), Some(false)]);
}

#[test]
fn the_plan_marks_in_its_claims_the_cells_that_may_run_out_and_no_other() {
    let marked = |plan: &Plan| -> Vec<(String, Option<u32>)> {
        let marked = plan.predicted.iter().flat_map(|claims| &claims.marked);
        marked.map(|m| (m.cell.clone(), m.probability.map(|p| (p * 100.0).round() as u32))).collect()
    };
    let prior = predicted(13.0, 6.0);
    let plan = planned(NAIVE, &prior);
    assert_eq!(marked(&plan), [("tiny×3 naive b32".to_string(), Some(41)), ("tiny×4 naive b32".to_string(), Some(99))]);
    let claims = plan.predicted.as_ref().expect("kept");
    let said = |label: &str| plan.cells.iter().find(|c| c.record.cell == label).and_then(|c| claims.may_run_out(&c.record));
    assert_eq!(["tiny×2 naive b32", "tiny×3 naive b32"].map(said), [Some(false), Some(true)]);
    assert_eq!(marked(&planned(NAIVE, &predicted(9.0, 6.0))), [("tiny×4 naive b32".to_string(), Some(18))]);
    assert_eq!(marked(&planned(NAIVE, &predicted(5.0, 4.0))), []);
    // On slices what is compared is the memory of an instance.
    let slices = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\nsharing = [\"mig:2g.10gb\", \"mig:3g.20gb\"]\n";
    let cells: Vec<String> = marked(&planned(slices, &predicted(9.0, 6.0))).into_iter().map(|(cell, _)| cell).collect();
    assert_eq!(cells, ["tiny mig:2g.10gb b32", "tiny×2 mig:2g.10gb b32"]);
}

#[test]
fn a_search_an_expected_failure_and_what_a_campaign_has_begun_are_never_refused_by_a_prediction() {
    let prior = predicted(16.0, 12.0);
    let refused = |lines: &str, prior: &Prior| planned(lines, prior).refusals.len();
    assert_eq!(refused(&format!("search = \"largest-degree\"\n{NAIVE}"), &prior), 0);
    let expected = format!("{NAIVE}[[expect]]\nwhere = \"degree == 4\"\noutcome = \"out_of_memory\"\nreason = \"too many\"\n");
    assert_eq!(refused(&expected, &prior), 0);
    let begun = Prior { begun: ["tiny×4 naive b32".to_string()].into(), ..prior.clone() };
    assert_eq!((refused(NAIVE, &begun), refused(NAIVE, &prior)), (0, 1));
}

#[test]
fn on_slices_each_member_has_the_memory_of_its_instance() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\nsharing = [\"mig:1g.5gb\", \"mig:3g.20gb\"]\n";
    let (_, refused) = fits(&planned(lines, &predicted(16.0, 12.0)));
    insta::assert_snapshot!(refused.join("\n"), @"
    tiny mig:1g.5gb b32: 1 member needs at least 12.0 GiB by prediction, an instance 1g.5gb has 4.8 GiB; `--no-predict` runs it anyway
    tiny×2 mig:1g.5gb b32: 1 member needs at least 12.0 GiB by prediction, an instance 1g.5gb has 4.8 GiB; `--no-predict` runs it anyway
    ");
}

#[test]
fn what_is_likely_to_run_out_of_memory_comes_after_the_other_groups_of_its_baseline() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [2, 3, 4, 5, 6, 7]\n";
    let plan = planned(lines, &predicted(9.0, 1.0));
    let order: Vec<u32> = plan.order.iter().map(|run| plan.cells[run.cell].record.degree).collect();
    assert_eq!((order[0], order[order.len() - 1]), (1, 1), "its baselines are around all");
    assert!(plan.order.first().is_some_and(|run| run.edge == Some(BlockEdge::Opens)));
    let groups = &order[1..order.len() - 1];
    assert!(groups[..3].iter().all(|degree| *degree <= 4) && groups[3..].iter().all(|degree| *degree >= 5), "{order:?}");
}

#[test]
fn a_limit_of_mps_is_a_place_of_its_own_that_is_not_counted_twice() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = 2\nsharing = [\"mps:50%,mem=8GB\", \"mps:50%,mem=16GB\"]\n";
    let plan = planned(lines, &predicted(11.0, 9.0));
    let (_, refused) = fits(&plan);
    insta::assert_snapshot!(refused.join("\n"), @"tiny×2 mps:50%,mem=8GB b32: 1 member needs at least 9.0 GiB by prediction, its limit under MPS has 7.5 GiB; `--no-predict` runs it anyway");
    let group = plan.cells.iter().find(|c| c.record.degree == 2).expect("the other");
    assert_eq!(group.forecast.memory.bytes, Some(22 * GIB));
}
