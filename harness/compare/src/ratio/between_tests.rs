//! Pages of two campaigns whose truth is known: how often an unchanged cell is called better or worse, and how often a change is found.

use std::collections::BTreeMap;

use collo_quantity::stats::{Pool, Term, Variance, log_moments, quantity};

use super::*;
use crate::history::CellVariation;
use crate::random::Random;
use crate::ratio::{Finding, judge};

const PAGES: usize = 300;
const REPETITIONS: usize = 3;
const NOISE: f64 = 0.01;
const THRESHOLD: f64 = 0.05;

/// What campaigns differ by, standard deviations: each cell on its own, all cells together.
#[derive(Debug, Clone, Copy)]
struct World {
    cells: usize,
    own: f64,
    common: f64,
}

/// How a page is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// By the repetitions alone.
    Repetitions,
    Scatter,
    History,
}

fn campaign(world: World, sds: &[f64], step: &dyn Fn(usize) -> f64, random: &mut Random) -> Vec<Quantity> {
    let shared = world.common * random.normal();
    let mut cell = |i: usize| {
        let centre = shared + world.own * random.normal() + step(i);
        let runs: Vec<f64> = (0..REPETITIONS).map(|_| (centre + sds[i] * random.normal()).exp()).collect();
        log_moments(&runs).unwrap()
    };
    let cells: Vec<(f64, Option<Variance>)> = (0..world.cells).map(&mut cell).collect();
    let pool = Pool::fit(&cells.iter().filter_map(|c| c.1).collect::<Vec<_>>()).unwrap();
    let of = |(mean, own): &(f64, Option<Variance>)| {
        quantity(*mean, REPETITIONS, &[Term { weight: 1.0, variance: pool.shrink(own.unwrap()), n: REPETITIONS }])
    };
    cells.iter().map(of).collect()
}

/// The share of pages with a wrong verdict on an unchanged cell, of changed cells found, of pages on which the common move is worse
/// or better, and on which two groups are named.
#[derive(Debug, Default)]
struct Rates {
    wrong: f64,
    found: f64,
    common: f64,
    mixed: f64,
}

fn rates(world: World, how: How, step: &dyn Fn(usize) -> f64) -> Rates {
    let mut random = Random::seeded(17);
    let ends = Quantiles::at(0.975);
    let names: Vec<String> = (0..world.cells).map(|i| format!("cell {i}")).collect();
    let variation = CellVariation { quantity: "epoch_time_s".into(), variance: world.own.powi(2) };
    let known = CampaignVariation {
        nights: 20,
        cells: names.iter().map(|name| (name.clone(), variation.clone())).collect::<BTreeMap<_, _>>(),
        common: Some((world.common.powi(2), 19.0)),
    };
    let changed = (0..world.cells).filter(|i| step(*i) != 0.0).count();
    let mut found = Rates::default();
    for _ in 0..PAGES {
        let sds: Vec<f64> = (0..world.cells).map(|_| NOISE * (0.3 * random.normal()).exp()).collect();
        let left = campaign(world, &sds, &|_| 0.0, &mut random);
        let right = campaign(world, &sds, step, &mut random);
        let ratios: Vec<Ratio> = left.iter().zip(&right).map(|(l, r)| Ratio::of(l, r, &ends)).collect();
        let compared: Vec<Compared<'_>> = ratios
            .iter()
            .zip(&names)
            .map(|(ratio, cell)| Compared { cell, quantity: "epoch_time_s", ratio, is_baseline: false })
            .collect();
        let known = Some(&known).filter(|_| how == How::History);
        let (between, judged) = match how {
            How::Repetitions => (None, ratios.clone()),
            _ => {
                let (between, judged) = apply(&compared, known, (THRESHOLD, true, Better::Smaller), &ends);
                (Some(between), judged)
            }
        };
        let verdicts = judge(&judged.iter().map(|r| (r, Better::Smaller)).collect::<Vec<_>>(), THRESHOLD, &ends);
        let decided = |i: &usize| matches!(verdicts[*i].finding, Finding::Better | Finding::Worse);
        found.wrong += f64::from(u8::from((0..world.cells).filter(|i| step(*i) == 0.0).any(|i| decided(&i))));
        found.found += (0..world.cells).filter(|i| step(*i) != 0.0).filter(decided).count() as f64 / changed.max(1) as f64;
        let common = between.as_ref().and_then(|b| b.common.as_ref());
        found.common += f64::from(u8::from(common.is_some_and(|c| c.verdict != CommonVerdict::CannotTell)));
        found.mixed += f64::from(u8::from(between.is_some_and(|b| b.mixture.is_some())));
    }
    let share = |x: f64| x / PAGES as f64;
    Rates { wrong: share(found.wrong), found: share(found.found), common: share(found.common), mixed: share(found.mixed) }
}

#[test]
fn pages_of_two_unchanged_campaigns_are_wrong_in_one_of_twenty_at_most() {
    let allowed = 0.05 + 2.0 * (0.05f64 * 0.95 / PAGES as f64).sqrt();
    let settings = [(0.0, 0.0), (0.005, 0.0), (0.01, 0.0), (0.015, 0.0), (0.02, 0.0), (0.0, 0.02), (0.01, 0.02), (0.005, 0.03)];
    for cells in [50, 10] {
        for (own, common) in settings {
            let world = World { cells, own, common };
            let [before, scatter, history] =
                [How::Repetitions, How::Scatter, How::History].map(|how| rates(world, how, &|_| 0.0));
            println!(
                "{cells} cells, campaigns {:.1} % / {:.1} %: wrong by repetitions {:.3}, by scatter {:.3} (all cells {:.3}), by history {:.3} (all cells {:.3})",
                own * 100.0,
                common * 100.0,
                before.wrong,
                scatter.wrong,
                scatter.common,
                history.wrong,
                history.common
            );
            for found in [&scatter, &history] {
                assert!(found.wrong <= allowed && found.mixed <= 0.01, "{world:?}: {found:?}");
            }
            // The assumed variation of machines is 2 %: more of it needs a history.
            assert!(history.common <= allowed && (common > 0.02 || scatter.common <= allowed), "{world:?}");
        }
    }
    let today = rates(World { cells: 50, own: 0.02, common: 0.0 }, How::Repetitions, &|_| 0.0);
    assert!(today.wrong > 0.5, "repetitions alone know nothing of another day: {today:?}");
}

#[test]
fn one_changed_cell_is_found_and_so_is_a_part_of_them_and_a_move_of_all() {
    let one = |i: usize| if i == 0 { 0.1f64.ln_1p() } else { 0.0 };
    for (own, least) in [(0.0, 0.9), (0.005, 0.8), (0.01, 0.3)] {
        for how in [How::Scatter, How::History] {
            let found = rates(World { cells: 50, own, common: 0.0 }, how, &one);
            println!("one cell +10 %, campaigns {:.1} %, {how:?}: {found:?}", own * 100.0);
            assert!(found.found >= least, "{own} {how:?}: {found:?}");
        }
    }
    let part = |i: usize| if i < 30 { 0.08f64.ln_1p() } else { 0.0 };
    for how in [How::Scatter, How::History] {
        let found = rates(World { cells: 50, own: 0.005, common: 0.0 }, how, &part);
        println!("30 of 50 cells +8 %, {how:?}: {found:?}");
        assert!(found.mixed >= 0.95 && found.wrong <= 0.08 && found.found >= 0.6, "{how:?}: {found:?}");
    }
    let all = |_: usize| 0.08f64.ln_1p();
    let world = World { cells: 30, own: 0.003, common: 0.003 };
    for how in [How::Scatter, How::History] {
        let found = rates(world, how, &all);
        println!("all 30 cells +8 %, {how:?}: {found:?}");
        assert!(found.common >= 0.95 && found.found <= 0.05, "{how:?}: {found:?}");
    }
}
