//! Nights by hand, and the verdicts on each.

use collo_figures::document::{self, Present};

use super::*;
use crate::history::NightlySummary;
use crate::history::summary::{Class, History};

/// A small reproducible wobble without a trend.
fn wobble(night: usize, cell: usize, repetition: usize) -> f64 {
    let mut z = (night as u64) << 32 | (cell as u64) << 16 | repetition as u64;
    z = (z ^ (z >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((z >> 33) as f64 / (1u64 << 31) as f64 - 0.5) * 0.02
}

fn cell(night: usize, index: usize, moved: f64) -> CellNight {
    let times: Vec<f64> = (0..3).map(|r| (2.0 + moved + wobble(night, index, r)).exp()).collect();
    CellNight {
        cell: format!("cell {index}"),
        sharing: "mps".into(),
        outcome: "completed".into(),
        first: Mean::of(&times),
        ..CellNight::default()
    }
}

fn again(night: usize, index: usize, moved: f64) -> Option<Mean> {
    Mean::of(&(3..12).map(|r| (2.0 + moved + wobble(night, index, r)).exp()).collect::<Vec<_>>())
}

fn night(index: usize, cells: usize, moved: &dyn Fn(usize) -> f64) -> NightlyRun {
    NightlyRun {
        id: format!("n{index}"),
        created_utc: format!("2026-{:02}-{:02}T02:00:00Z", 1 + index / 28, 1 + index % 28),
        cells: (0..cells).map(|c| cell(index, c, moved(c))).collect(),
        ..NightlyRun::default()
    }
}

const STILL: &dyn Fn(usize) -> f64 = &|_| 0.0;

fn after(nights: usize, cells: usize) -> Judge {
    let mut judge = Judge::new(Rules::default());
    for i in 0..nights {
        let judged = judge.take(&night(i, cells, STILL));
        assert!(judged.steps.is_empty() && judged.gone.is_empty(), "night {i}: {judged:?}");
    }
    judge
}

#[test]
fn the_first_nights_are_learnt_and_never_judged() {
    let judge = after(4, 20);
    assert!(judge.suspects(&night(4, 20, &|c| if c == 3 { 0.5 } else { 0.0 })).is_empty());
    let judge = after(5, 20);
    assert_eq!(judge.suspects(&night(5, 20, &|c| if c == 3 { 0.5 } else { 0.0 })).len(), 1);
    let mut none = Judge::new(Rules::default());
    assert_eq!((none.detectable().len(), none.take(&NightlyRun::default()).judged), (0, 0));
}

#[test]
fn a_step_is_told_once_with_its_night_and_then_is_the_new_level() {
    let mut judge = after(20, 20);
    let stepped = |c: usize| if c == 7 { 1.08f64.ln() } else { 0.0 };
    for i in 20..32 {
        let mut n = night(i, 20, &stepped);
        if judge.suspects(&n).iter().any(|s| s.cell == "cell 7") {
            n.cells[7].again = again(i, 7, 1.08f64.ln());
        }
        let judged = judge.take(&n);
        assert_eq!(judged.steps, if i == 20 { vec![7] } else { vec![] }, "night {i}");
    }
    let step = &judge.tracks[7].steps[0];
    assert!((step.ratio.estimate - 1.08).abs() < 0.006 && step.ratio.low.unwrap() > 1.06, "{step:?}");
    assert_eq!((step.night, step.since, step.again, judge.tracks[7].steps.len()), (20, 20, 9, 1));
    // The way back is an improvement of its own.
    let mut back = night(32, 20, STILL);
    back.cells[7].again = again(32, 7, 0.0);
    assert_eq!(judge.take(&back).steps, [7]);
    assert!(!judge.tracks[7].steps[1].is_worse());
}

#[test]
fn what_was_suspicious_and_is_calm_when_measured_again_is_not_reported() {
    let mut judge = after(20, 20);
    let mut n = night(20, 20, &|c| if c == 7 { 0.08 } else { 0.0 });
    assert_eq!(judge.suspects(&n).len(), 1);
    n.cells[7].again = again(20, 7, 0.0);
    let judged = judge.take(&n);
    assert!(judged.steps.is_empty() && judged.suspects.len() == 1, "{judged:?}");
}

#[test]
fn a_move_of_all_cells_is_told_of_the_machine_and_of_no_cell() {
    let mut judge = after(20, 20);
    let judged = judge.take(&night(20, 20, &|_| 0.06));
    assert!(judged.steps.is_empty() && judged.suspects.is_empty());
    let common = judged.common.unwrap();
    assert!(common.moved && (common.ratio - 0.06f64.exp()).abs() < 0.005, "{common:?}");
    // It is the new level from then on.
    assert!(!judge.take(&night(21, 20, &|_| 0.06)).common.unwrap().moved || judge.common_start == 21);
}

#[test]
fn a_second_move_of_all_cells_is_found_although_few_nights_lie_between() {
    let mut judge = after(20, 20);
    let moved = |judge: &mut Judge, index: usize, log: f64| judge.take(&night(index, 20, &|_| log)).common.unwrap().moved;
    assert!(moved(&mut judge, 20, 0.08));
    assert!(!moved(&mut judge, 21, 0.08) && !moved(&mut judge, 22, 0.08));
    assert!(moved(&mut judge, 23, 0.16));
    (24..36).for_each(|index| assert!(!moved(&mut judge, index, 0.16), "night {index}"));
    assert!(moved(&mut judge, 36, 0.24));
}

#[test]
fn a_step_is_not_dated_by_an_old_change_that_was_too_small_to_report() {
    let mut judge = Judge::new(Rules::default());
    let of_7 = |index: usize| if index < 30 { 0.0 } else { 0.012 };
    for index in 0..70 {
        let mut n = night(index, 20, &|c| if c == 7 { of_7(index) } else { 0.0 });
        if judge.suspects(&n).iter().any(|s| s.cell == "cell 7") {
            n.cells[7].again = again(index, 7, of_7(index));
        }
        assert!(judge.take(&n).steps.is_empty(), "night {index}");
    }
    let mut n = night(70, 20, &|c| if c == 7 { 0.062 } else { 0.0 });
    n.cells[7].again = again(70, 7, 0.062);
    assert_eq!(judge.take(&n).steps, [7]);
    assert_eq!(judge.tracks[7].steps[0].since, 70);
    let mut next = night(71, 20, &|c| if c == 7 { 0.062 } else { 0.0 });
    next.cells[7].again = again(71, 7, 0.062);
    assert!(judge.take(&next).steps.is_empty(), "it is reported once");
}

#[test]
fn what_moves_within_a_night_is_in_none_of_the_nights_after_it() {
    let mut judge = after(20, 20);
    let mut slower = night(20, 20, STILL);
    for (index, cell) in slower.cells.iter_mut().enumerate() {
        cell.again = again(20, index, 0.05);
    }
    assert!(judge.take(&slower).steps.is_empty());
    let stored = judge.tracks.iter().map(|track| track.points.last().unwrap());
    assert!(
        stored.clone().all(|point| (point.x - 2.0).abs() < 0.015 && (point.again.0 - 2.0).abs() < 0.015),
        "{:?}",
        stored.collect::<Vec<_>>()
    );
}

#[test]
fn few_cells_have_no_common_move_and_a_step_of_one_is_its_own() {
    let mut judge = after(20, 2);
    let mut n = night(20, 2, &|c| if c == 1 { 0.1 } else { 0.0 });
    n.cells[1].again = again(20, 1, 0.1);
    let judged = judge.take(&n);
    assert_eq!((judged.steps, judged.common), (vec![1], None));
}

#[test]
fn a_cell_that_ran_without_a_time_is_not_quiet() {
    let mut judge = after(8, 10);
    let mut untimed = night(8, 10, STILL);
    untimed.cells[4].first = None;
    let judged = judge.take(&untimed);
    assert!(judged.gone.is_empty() && judge.tracks[4].is_untimed, "{judged:?}");
    judge.take(&night(9, 10, STILL));
    assert!(!judge.tracks[4].is_untimed);
}

#[test]
fn a_cell_that_no_longer_runs_is_told_until_it_runs_again() {
    let mut judge = after(8, 10);
    let broken = |i: usize| {
        let mut n = night(i, 10, STILL);
        // It fell before it could tell what it trains on.
        n.cells[4] =
            CellNight { first: None, outcome: "out_of_memory".into(), content: "nothing told".into(), ..n.cells[4].clone() };
        n
    };
    assert_eq!(judge.take(&broken(8)).gone, [4]);
    assert_eq!(judge.take(&broken(9)).gone, [4]);
    assert_eq!(judge.tracks[4].gone, Some((8, "out_of_memory".into())));
    assert!(judge.take(&night(10, 10, STILL)).gone.is_empty());
    // One that never ran is not broken.
    let mut judge = Judge::new(Rules::default());
    for i in 8..12 {
        assert!(judge.take(&broken(i)).gone.is_empty());
    }
}

#[test]
fn a_night_cut_short_is_never_judged_and_never_learnt_from() {
    let mut judge = after(20, 20);
    let cut = NightlyRun { incomplete: Some("3 of 60 planned runs are missing".into()), ..night(20, 20, &|_| 3.0) };
    assert!(judge.suspects(&cut).is_empty());
    let judged = judge.take(&cut);
    assert!(!judged.whole && judged.steps.is_empty());
    assert!(judge.take(&night(21, 20, STILL)).suspects.is_empty(), "the level is what it was");
    assert_eq!(judge.tracks[0].points.len(), 21);
}

#[test]
fn a_cell_with_other_settings_has_a_history_of_its_own() {
    let mut judge = after(20, 10);
    let mut n = night(20, 10, &|c| if c == 2 { 1.0 } else { 0.0 });
    n.cells[2].content = "other".into();
    let judged = judge.take(&n);
    assert_eq!((judged.steps.len(), judged.learning, judge.tracks.len()), (0, 1, 11));
}

#[test]
fn single_repetitions_and_alike_nights_break_nothing() {
    let mut judge = Judge::new(Rules::default());
    for i in 0..30 {
        let mut n = night(i, 9, STILL);
        n.cells.iter_mut().for_each(|c| c.first = Mean::of(&[7.0]));
        let judged = judge.take(&n);
        assert!(judged.steps.is_empty() && judged.suspects.is_empty());
    }
    assert!(judge.detectable().iter().flatten().all(|d| d.is_finite()));
    // Without any noise every move is sure.
    let mut n = night(30, 9, STILL);
    n.cells.iter_mut().for_each(|c| c.first = Mean::of(&[7.0]));
    n.cells[0].first = Mean::of(&[9.0]);
    assert_eq!(judge.take(&n).steps, [0]);
}

#[test]
fn ten_thousand_cells_are_judged_in_a_moment() {
    let nights: Vec<NightlyRun> = (0..8).map(|i| night(i, 10_000, STILL)).collect();
    let begun = std::time::Instant::now();
    let history = History::of("x", NightlySummary { nights, problems: vec![] }, Rules::default());
    assert_eq!(history.rows().len(), 10_000);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert!(document::html::document(&history.document()).unwrap().len() < 5 << 20);
}

#[test]
fn rows_come_in_the_order_in_which_they_matter() {
    let mut nights: Vec<NightlyRun> = (0..20).map(|i| night(i, 12, STILL)).collect();
    for (i, n) in nights.iter_mut().enumerate() {
        // The third jumps between two levels, the fourth is new.
        let jump = if i % 3 == 0 { 0.2 } else { 0.0 };
        n.cells[3] = cell(i, 3, jump);
        if i < 17 {
            n.cells.remove(4);
        }
    }
    let mut last = night(20, 12, &|c| if c == 7 { 0.1 } else { 0.0 });
    last.cells[7].again = again(20, 7, 0.1);
    last.cells[9] = CellNight { first: None, outcome: "crashed".into(), ..last.cells[9].clone() };
    nights.push(last);
    let history = History::of("x", NightlySummary { nights, problems: vec![] }, Rules::default());
    let rows = history.rows();
    let names: Vec<&str> = rows.iter().take(4).map(|r| history.judge.tracks[r.track].cell.as_str()).collect();
    assert_eq!(names, ["cell 7", "cell 3", "cell 9", "cell 4"]);
    assert!(matches!(rows[4].class, Class::Quiet) && history.has_regression());
    let (able, all) = history.could_show();
    assert_eq!((able, all), (9, 11), "two of twelve could not: one jumps, one learns; one is gone");
}
