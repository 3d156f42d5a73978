use super::*;
use crate::fixture::{experiment, read};
use crate::select::Expression;

fn condition(text: &str) -> Selection {
    Selection::Where(Expression::parse("--where", text).unwrap_or_else(|m| panic!("{m}")))
}

fn labels(lines: &str, selection: Option<&str>) -> Vec<String> {
    let selection = selection.map(condition);
    let cells = expand(&experiment(lines), selection.as_ref()).unwrap_or_else(|mistake| panic!("{mistake}"));
    cells.iter().map(|e| format!("{}{}", e.cell.label(), if e.asked { "" } else { " (added)" })).collect()
}

#[test]
fn the_matrix_is_every_combination_with_its_baselines_in_front() {
    let lines = "[axes]\nworkload = [\"tiny\", \"small\"]\nbatch_size = [32, 128]\nsharing = [\"mps\"]\ndegree = [2, 7]\n";
    assert_eq!(
        labels(lines, None),
        [
            "tiny solo b32 (added)",
            "tiny×2 mps b32",
            "tiny×7 mps b32",
            "tiny solo b128 (added)",
            "tiny×2 mps b128",
            "tiny×7 mps b128",
            "small solo b32 (added)",
            "small×2 mps b32",
            "small×7 mps b32",
            "small solo b128 (added)",
            "small×2 mps b128",
            "small×7 mps b128",
        ]
    );
}

#[test]
fn naive_at_degree_one_is_the_baseline_and_not_a_second_cell() {
    let lines = "[axes]\nworkload = \"tiny\"\nsharing = [\"naive\", \"streams\", \"mps\"]\ndegree = [2, 1]\n";
    assert_eq!(labels(lines, None), ["tiny solo b32", "tiny×2 naive b32", "tiny×2 mps b32", "tiny mps b32"]);
}

#[test]
fn solo_alone_measures_baselines_whatever_the_degree() {
    assert_eq!(
        labels("[axes]\nworkload = [\"tiny\", \"sleep\"]\nsharing = \"solo\"\ndegree = [2, 3]\n", None),
        ["tiny solo b32", "sleep solo"]
    );
}

#[test]
fn settings_of_the_workloads_are_axes_too() {
    let lines = "[axes]\nworkload = \"small\"\namp = [\"off\", \"bf16\"]\nimages = 256\ndegree = 2\n";
    assert_eq!(
        labels(lines, None),
        [
            "small solo b32 images=256 (added)",
            "small×2 naive b32 images=256",
            "small solo b32 amp=bf16 images=256 (added)",
            "small×2 naive b32 amp=bf16 images=256"
        ]
    );
}

#[test]
fn groups_follow_the_matrix_and_bring_the_baselines_of_all_their_members() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = 2\n[[group]]\nmembers = [{ workload = \"small\", count = 2 }, { workload = \"tiny\", images = 512 }]\n";
    assert_eq!(
        labels(lines, None),
        [
            "tiny solo b32 (added)",
            "tiny×2 naive b32",
            "tiny solo b32 images=512 (added)",
            "small solo b32 (added)",
            "tiny+small×2 naive b32 images=512"
        ]
    );
}

#[test]
fn what_is_excluded_goes_and_takes_its_unneeded_baseline_along() {
    let lines = "[axes]\nworkload = [\"tiny\", \"small\"]\ndegree = [2, 3]\n[[exclude]]\nwhere = \"workload == 'small'\"\n[[exclude]]\nwhere = \"degree == 3\"\n";
    assert_eq!(labels(lines, None), ["tiny solo b32 (added)", "tiny×2 naive b32"]);
}

#[test]
fn a_selection_keeps_the_baselines_that_it_needs() {
    let lines = "[axes]\nworkload = [\"tiny\", \"small\"]\ndegree = [1, 2, 3]\n";
    assert_eq!(labels(lines, Some("degree == 3 && workload == 'small'")), ["small solo b32 (added)", "small×3 naive b32"]);
    assert_eq!(
        labels(lines, Some("sharing == \"naive\" && degree <= 2")),
        ["tiny solo b32 (added)", "tiny×2 naive b32", "small solo b32 (added)", "small×2 naive b32"]
    );
}

#[test]
fn a_selection_may_mean_added_baselines_alone() {
    assert_eq!(
        labels("[axes]\nworkload = [\"tiny\", \"small\"]\ndegree = [2, 3]\n", Some("baseline && workload == 'tiny'")),
        ["tiny solo b32"]
    );
}

#[test]
fn cells_that_are_meant_by_their_labels_bring_their_baselines() {
    let experiment = experiment("[axes]\nworkload = \"tiny\"\nbatch_size = [32, 64]\ndegree = [2, 3]\n");
    let meant = Selection::Cells(["tiny×2 naive b64".to_string(), "of a cell that is gone \"".into()].into());
    let cells = expand(&experiment, Some(&meant)).expect("right");
    let labels: Vec<(String, bool)> = cells.iter().map(|e| (e.cell.label(), e.asked)).collect();
    assert_eq!(labels, [("tiny solo b64".to_string(), false), ("tiny×2 naive b64".to_string(), true)]);
    assert_eq!(meant.text(), "cell in ['of a cell that is gone \"', \"tiny×2 naive b64\"]");
}

#[test]
fn the_same_cell_with_two_tails_is_a_contradiction() {
    let text = "[[group]]\nmembers = [{ workload = \"tiny\", count = 2 }]\nafter_measured = \"keep-running\"\n[[group]]\nmembers = [{ workload = \"tiny\", count = 2 }]\nafter_measured = \"exit\"\n";
    let mistake = expand(&experiment(text), None).expect_err("contradiction");
    insta::assert_snapshot!(mistake, @r"
    error: cell `tiny×2 naive b32` is requested with `after_measured` both `keep-running` and `exit`
    hint: leave one out: both would have the same name
    ");
}

const HUGE: &str = "name = \"mine\"\ndevice = \"cpu\"\n[axes]\nworkload = [\"tiny\", \"small\"]\nbatch_size = BATCHES\nsharing = [\"naive\", \"mps\"]\ndegree = DEGREES\n";

fn list(n: usize) -> String {
    format!("{:?}", (1..=n).collect::<Vec<_>>())
}

#[test]
fn a_matrix_of_more_than_a_hundred_thousand_cells_asks_for_a_selection() {
    let big = read(&HUGE.replace("BATCHES", &list(1200)).replace("DEGREES", &list(50))).expect("right");
    insta::assert_snapshot!(expand(&big, None).expect_err("too many"), @r"
    error: 240000 cells (2 workload × 1200 batch_size × 2 sharing × 50 degree) are more than 100000
    hint: select some, as in `--where 'degree <= 7'`, or shorten an axis
    ");
    let few = condition("degree == 7 && batch_size <= 2");
    assert_eq!(expand(&big, Some(&few)).expect("few").len(), 2 * 2 * (1 + 2));
    let huge = read(&HUGE.replace("BATCHES", &list(10_000)).replace("DEGREES", &list(256))).expect("right");
    assert!(expand(&huge, Some(&few)).expect_err("too many to look at").to_string().ends_with("hint: shorten an axis"));
}

#[test]
fn axes_of_a_zip_step_together_and_are_crossed_with_the_others() {
    let lines = "[axes]\ndegree = [2, 3]\n[[zip]]\nworkload = [\"tiny\", \"small\", \"small\"]\nbatch_size = [32, 32, 128]\n";
    assert_eq!(
        labels(lines, None),
        [
            "tiny solo b32 (added)",
            "tiny×2 naive b32",
            "tiny×3 naive b32",
            "small solo b32 (added)",
            "small×2 naive b32",
            "small×3 naive b32",
            "small solo b128 (added)",
            "small×2 naive b128",
            "small×3 naive b128",
        ]
    );
    let two = "[axes]\nworkload = \"tiny\"\n[[zip]]\nbatch_size = [32, 64]\nimages = [512, 1024]\n[[zip]]\nsharing = [\"solo\", \"mps\"]\ndegree = [1, 4]\n";
    assert_eq!(labels(two, None), ["tiny solo b32 images=512", "tiny×4 mps b32 images=512", "tiny solo b64", "tiny×4 mps b64"]);
}
