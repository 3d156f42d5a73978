//! How long a card that becomes free waits for the next member's process, beside a loop that starts the same program whenever it has
//! ended.

use anyhow::Result;
use collo_quantity::stats::{median, nearest_rank};

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;
use crate::sleepers::{ByHand, Places, Sleepers};

/// Sets of cores at most: more would compete for the machine.
const MOST_SETS: usize = 8;
const TASKS_OF_A_SET: usize = 125;
const SECONDS: f64 = 0.1;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let sets = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_SETS);
    let tasks = if effort.smoke { 2 * sets } else { TASKS_OF_A_SET * sets };
    let sleepers = Sleepers { tasks, seconds: SECONDS };
    let by_hand = Sleepers { tasks: if effort.smoke { 1 } else { 60 }, ..sleepers };
    // Half of them before and half after, so that a machine that becomes slower does so for both.
    let mut bare = by_hand.by_hand(ground, sets)?;
    let played = sleepers.play(ground, "dispatch", Places { sets, slots: 1 }, &mut |_| Ok(()))?;
    bare.extend(by_hand.by_hand(ground, sets)?);
    let bare_s: Vec<f64> = bare.iter().map(|ByHand { spawn_s, .. }| *spawn_s).collect();
    let (process_s, word_s) = (played.gaps_s(&played.started_ns), played.gaps_s(&played.spoke_ns));
    let turns = format!("{} turns of {sets} sets of cores, tasks of {SECONDS} s", process_s.len());
    let of = |name: &str, gaps_s: &[f64], q: fn(&mut [f64]) -> Option<f64>, note: &str| Figure {
        name: name.into(),
        value: q(&mut gaps_s.to_vec()),
        count: gaps_s.len(),
        peer: q(&mut bare_s.clone()).map(|s| ("a bare spawn", s)),
        note: Some(note.into()),
        ..Figure::default()
    };
    let p99 = |values: &mut [f64]| nearest_rank(values, 0.99);
    Ok(vec![
        Figure { limit: Some((0.03, Statistic::Value)), ..of("card free → process runs", &process_s, median, &turns) },
        Figure { limit: Some((0.1, Statistic::Value)), ..of("the same, p99", &process_s, p99, "of both") },
        Figure { peer: None, ..of("card free → member's first word", &word_s, median, "its own start included") },
    ])
}
