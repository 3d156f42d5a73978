//! What people read of a history: the terminal, Markdown and the page, of nights whose truth is known.

use collo_compare::history::{CellNight, History, Mean, NightlyRun, NightlySummary, Rules};
use collo_figures::document::Present;

/// A wobble between repetitions and nights that is the same each time.
fn wobble(night: usize, cell: usize, repetition: usize) -> f64 {
    let mut z = (night as u64) << 32 | (cell as u64) << 16 | repetition as u64;
    z = (z ^ (z >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z >> 33) as f64 / (1u64 << 31) as f64 - 0.5) * 0.02
}

fn times(night: usize, cell: usize, repetitions: std::ops::Range<usize>, moved: f64) -> Option<Mean> {
    Mean::of(&repetitions.map(|r| 20.0 * (moved + wobble(night, cell, r)).exp()).collect::<Vec<_>>())
}

fn night(index: usize, names: &[&str]) -> NightlyRun {
    let cells = names.iter().enumerate().map(|(c, name)| CellNight {
        cell: name.to_string(),
        sharing: name.split(' ').nth(1).unwrap_or("mps").into(),
        quantity: "epoch_time_s".into(),
        outcome: "completed".into(),
        first: times(index, c, 0..3, 0.0),
        ..CellNight::default()
    });
    NightlyRun {
        id: format!("202611{:02}-0200-{index:04x}", index + 1),
        created_utc: format!("2026-11-{:02}T02:00:00Z", index + 1),
        device: "NVIDIA A100-SXM4-40GB (40 GiB)".into(),
        environment: [("driver".to_string(), "570.124.06".to_string())].into(),
        cells: cells.collect(),
        ..NightlyRun::default()
    }
}

const NAMES: [&str; 9] = [
    "small solo b32",
    "small×2 naive b32",
    "small×4 naive b32",
    "small×2 mps b32",
    "small×4 mps b32",
    "medium solo b32",
    "medium×2 naive b32",
    "medium×2 mps b32",
    "medium×3 mps b32",
];

/// Twenty nights, the tenth cut short; on the last one cell is 6 % slower, one is out of memory, the driver is another.
fn history(names: &[&str]) -> History {
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, names)).collect();
    nights[9].incomplete = Some("12 of 54 planned runs are missing".into());
    let last = &mut nights[19];
    last.environment.insert("driver".into(), "580.95.05".into());
    last.cells[8].first = times(19, 8, 0..3, 1.06f64.ln());
    last.cells[8].again = times(19, 8, 3..12, 1.06f64.ln());
    last.cells[7] = CellNight { first: None, outcome: "out_of_memory".into(), ..last.cells[7].clone() };
    History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default())
}

#[test]
fn the_terminal_says_what_stepped_what_is_gone_and_what_could_have_been_seen() {
    insta::assert_snapshot!(history(&NAMES).text(100), @"
    nightly on NVIDIA A100-SXM4-40GB (40 GiB): 20 nights, 19 complete; the last is 20261120-0200-0013
    slower  medium×3 mps b32  +6.3 % [5.8, 6.7]  p <0.001  since 20 Nov
    gone    medium×2 mps b32  out of memory                since 20 Nov
    environment of 20 Nov: driver 570.124.06 → 580.95.05
    8 of 8 cells could have shown a step of 5 %
    1 slower, 0 faster, 1 gone, 0 suspicious, of 8 judged
    ");
}

#[test]
fn a_quiet_night_and_no_night_are_said_in_few_words() {
    let nights = (0..20).map(|i| night(i, &NAMES)).collect();
    let quiet = History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    assert!(!quiet.has_regression());
    insta::assert_snapshot!(quiet.text(100), @"
    nightly on NVIDIA A100-SXM4-40GB (40 GiB): 20 nights, 20 complete; the last is 20261120-0200-0013
    9 of 9 cells could have shown a step of 5 %
    0 slower, 0 faster, 0 gone, 0 suspicious, of 9 judged
    ");
    let none = History::of("nightly", NightlySummary::default(), Rules::default());
    assert_eq!(none.text(100), "no nights are stored yet\n");
    assert!(!none.has_regression() && none.json()["rows"].as_array().is_some_and(Vec::is_empty));
    let folder = tempfile::tempdir().expect("a folder");
    let page = fs_err::read_to_string(none.write(folder.path()).expect("written").html).expect("there");
    assert!(page.contains("No night yet"));
}

/// Fifty cells over twenty nights; on the last one the driver is another, and cells are slower or faster by a factor.
fn last_night(factor: &dyn Fn(usize) -> f64) -> History {
    let names: Vec<String> = (0..50).map(|i| format!("w{i}×2 mps")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, &names)).collect();
    nights[19].environment.insert("driver".into(), "580.95.05".into());
    for (c, cell) in nights[19].cells.iter_mut().enumerate() {
        cell.first = times(19, c, 0..3, factor(c).ln());
    }
    History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default())
}

#[test]
fn a_driver_that_slows_all_cells_makes_the_night_slower_and_an_improvement_does_not() {
    let slower = last_night(&|_| 1.08);
    assert!(slower.has_regression());
    insta::assert_snapshot!(slower.text(160), @"
    nightly on NVIDIA A100-SXM4-40GB (40 GiB): 20 nights, 20 complete; the last is 20261120-0200-0013
    the machine or the software became slower: all 50 cells +8.0 % relative to earlier nights, removed
      from each cell; look first at what changed that night: driver 570.124.06 → 580.95.05
    50 of 50 cells could have shown a step of 5 %
    all 50 cells slower, beside that 0 slower, 0 faster, 0 gone, 0 suspicious, of 50 judged
    ");
    let faster = last_night(&|_| 0.92);
    assert!(!faster.has_regression() && faster.text(160).contains("became faster: all 50 cells −"), "{}", faster.text(160));
}

#[test]
fn a_driver_that_slows_thirty_of_fifty_cells_is_told_as_that() {
    let mixed = last_night(&|c| if c < 30 { 1.08 } else { 1.0 });
    let text = mixed.text(160);
    assert!(
        mixed.has_regression()
            && text.contains("30 of 50 cells +7.9 %, the others unchanged; look first at what changed that night: driver"),
        "{text}"
    );
    assert!(text.contains("30 slower, 0 faster, 0 gone, 0 suspicious, of 50 judged") && !text.contains("all "), "{text}");
    let json = mixed.json()["nights"][19].clone();
    assert_eq!((json["mixture"]["cells"].as_u64(), json["machine_moved"].as_bool()), (Some(30), Some(false)), "{json}");
}

#[test]
fn where_all_of_a_few_cells_became_slower_that_is_said() {
    let names = &NAMES[..4];
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, names)).collect();
    for (c, cell) in nights[19].cells.iter_mut().enumerate() {
        (cell.first, cell.again) = (times(19, c, 0..3, 1.08f64.ln()), times(19, c, 3..12, 1.08f64.ln()));
    }
    let all = History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    insta::assert_snapshot!(all.text(100), @"
    nightly on NVIDIA A100-SXM4-40GB (40 GiB): 20 nights, 20 complete; the last is 20261120-0200-0013
    the machine or the software became slower: all 4 cells moved, +7.7 % to +8.2 %; no recorded
      condition changed: look at the machine first (clocks, cooling, power, other load)
    slower  small solo b32     +7.9 % [7.4, 8.4]  p <0.001  since 20 Nov
    slower  small×2 naive b32  +7.9 % [7.3, 8.4]  p <0.001  since 20 Nov
    slower  small×4 naive b32  +7.7 % [7.2, 8.2]  p <0.001  since 20 Nov
    slower  small×2 mps b32    +8.2 % [7.8, 8.7]  p <0.001  since 20 Nov
    environment of 20 Nov: as before
    4 of 4 cells could have shown a step of 5 %
    every judged cell slower: 4 slower, 0 faster, 0 gone, 0 suspicious, of 4 judged
    ");
    let folder = tempfile::tempdir().expect("a folder");
    let page = fs_err::read_to_string(all.write(folder.path()).expect("written").markdown).expect("there");
    let (sentence, list) = (page.find("look at the machine first"), page.find("Confirmed steps"));
    assert!(page.contains("All 4 cells slower.") && sentence.is_some() && sentence < list, "{page}");
}

#[test]
fn a_night_before_anything_is_judged_is_neither_quiet_nor_judged() {
    let nights = (0..4).map(|i| night(i, &NAMES)).collect();
    let early = History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    let folder = tempfile::tempdir().expect("a folder");
    let page = fs_err::read_to_string(early.write(folder.path()).expect("written").markdown).expect("there");
    assert!(page.contains("Not judged yet: every cell is learning") && page.contains("4 nights, 4 complete"), "{page}");
    assert!(!page.contains("No confirmed change") && !page.contains("No cell stepped"), "nothing could be judged: {page}");
    let nights = (0..5).map(|i| night(i, &NAMES)).collect();
    let fifth = History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    let page = fs_err::read_to_string(fifth.write(folder.path()).expect("written").markdown).expect("there");
    assert!(page.contains("the next night is the first that is judged") && !page.contains("every cell is learning"), "{page}");
    assert!(page.contains("from now on") && !page.contains("could have shown"), "{page}");
}

#[test]
fn a_night_without_a_change_counts_what_was_judged_and_names_what_is_suspicious() {
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, &NAMES)).collect();
    let page = |nights: &[NightlyRun]| {
        let folder = tempfile::tempdir().expect("a folder");
        let history = History::of("nightly", NightlySummary { nights: nights.to_vec(), problems: Vec::new() }, Rules::default());
        fs_err::read_to_string(history.write(folder.path()).expect("written").markdown).expect("there")
    };
    assert!(page(&nights).contains("No confirmed change in 9 judged cells."), "{}", page(&nights));
    let last = &mut nights[19].cells[8];
    (last.first, last.again) = (times(19, 8, 0..3, 1.06f64.ln()), times(19, 8, 3..12, 0.0));
    assert!(page(&nights).contains("No confirmed change in 9 judged cells, 1 suspicious, not confirmed."), "{}", page(&nights));
}

#[test]
fn the_page_draws_every_cell_and_hostile_names_stay_text() {
    let mut names = NAMES;
    names[2] = "<script>alert(1)</script> \"naive\" | `x` & ](y)";
    let folder = tempfile::tempdir().expect("a folder");
    let written = history(&names).write(folder.path()).expect("written");
    let page = fs_err::read_to_string(&written.html).expect("there");
    assert!(!page.contains("<script") && page.contains("alert(1)"), "the page has no script of its own");
    assert_eq!(page.matches("<tr><th scope=\"row\"><b class=\"k ").count(), names.len());
    assert_eq!(page.matches("class=\"chg\"").count(), 1);
    assert_eq!(page.matches("class=\"tick\"").count(), names.len(), "one night is hollow in every line");
    assert_eq!(page.matches("class=\"fail\"").count(), 1);
    // Nineteen judged nights of nine cells, less the one on which a cell fell.
    assert_eq!(page.matches("class=\"dot\"").count(), 19 * 9 - 1);
    assert!(page.contains("driver 570.124.06 → 580.95.05"));
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs nothing from elsewhere");
    let markdown = fs_err::read_to_string(&written.markdown).expect("there");
    assert!(!markdown.contains("<script") && markdown.contains(r"\| `x` & \](y)"), "{markdown}");
    let order: Vec<usize> = ["Confirmed steps", "No longer running", "Quiet"].iter().filter_map(|s| markdown.find(s)).collect();
    assert!(order.len() == 3 && order.is_sorted(), "{markdown}");
}

#[test]
fn the_json_names_every_cell_its_class_and_its_steps() {
    let told = history(&NAMES).json();
    assert_eq!((told["schema"].as_u64(), told["regression"].as_bool()), (Some(1), Some(true)));
    let rows = told["rows"].as_array().expect("rows");
    let classes: Vec<&str> = rows.iter().filter_map(|r| r["class"].as_str()).collect();
    assert_eq!(&classes[..3], ["stepped", "gone", "quiet"]);
    assert_eq!(rows[0]["steps"][0]["environment"][0], "driver 570.124.06 → 580.95.05");
    assert_eq!((told["nights"][9]["whole"].as_bool(), told["nights"].as_array().map(Vec::len)), (Some(false), Some(20)));
    assert_eq!(rows[0]["nights"].as_array().map(Vec::len), Some(19));
}

#[test]
fn times_that_are_none_and_a_clock_that_went_back_break_nothing() {
    let mut nights: Vec<NightlyRun> = (0..12).map(|i| night(i, &NAMES)).collect();
    nights[5].created_utc = "garbage".into();
    nights[6].cells[0].first = Mean::of(&[f64::NAN, 0.0]);
    nights[7].cells.clear();
    nights[8].cells[1].first = Some(Mean { log_mean: 3.0, n: 1, variance: None });
    let told = History::of("x", NightlySummary { nights, problems: vec!["the clock went back".into()] }, Rules::default());
    assert!(!told.has_regression(), "{}", told.text(100));
    assert!(told.text(100).contains("the clock went back"));
}

#[test]
fn under_the_pointer_is_what_was_measured_and_the_dot_is_without_the_common_change() {
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, &NAMES)).collect();
    for (c, cell) in nights[19].cells.iter_mut().enumerate() {
        cell.first = times(19, c, 0..3, 1.5f64.ln());
    }
    let moved = History::of("nightly", NightlySummary { nights, problems: Vec::new() }, Rules::default());
    let points = moved.json()["rows"][0]["nights"].clone();
    let (measured, adjusted) = (&points[19]["time_s"], &points[19]["adjusted_time_s"]);
    let seconds = |value: &serde_json::Value| value.as_f64().expect("seconds");
    assert!((seconds(measured) / 30.0 - 1.0).abs() < 0.02 && (seconds(adjusted) / 20.0 - 1.0).abs() < 0.02);
    let folder = tempfile::tempdir().expect("a folder");
    let page = fs_err::read_to_string(moved.write(folder.path()).expect("written").html).expect("there");
    let tips: Vec<String> = page.split("20 Nov: ").skip(1).map(|t| t.chars().take(60).collect()).collect();
    assert!(tips.iter().any(|t| t.starts_with("30.") && t.contains("without the common change)")), "{tips:?}");
    assert!(page.contains("s, without changes common to all cells"));
}
