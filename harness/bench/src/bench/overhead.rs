//! The cost of a run outside the members' own time: two sleeping members under collo, from its start to its record on disk, minus
//! the same two started together by hand, interleaved. By hand they also tear down their interpreters, which collo spares them.

use std::time::Instant;

use anyhow::{Result, ensure};
use collo_quantity::stats::median;

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::{Moment, ScratchProject};

const DEGREE: usize = 2;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let repetitions = effort.times(40);
    let lines =
        format!("repetitions = {repetitions}\nepochs = 2\n[axes]\nworkload = \"sleep\"\nseconds = 0.2\ndegree = {DEGREE}");
    ground.write_experiment("overhead", &lines)?;
    let mut hand_s = Vec::new();
    let runs = ground.measure("overhead", |cell| cell.degree == DEGREE as u32, &mut |moment| {
        // By hand first in every second pair.
        let turn = matches!(moment, Moment::Before(i) if i % 2 == 1) || matches!(moment, Moment::After(i) if i % 2 == 0);
        if turn {
            hand_s.push(by_hand(ground)?);
        }
        Ok(())
    })?;
    let mut whole_s: Vec<f64> = runs.iter().map(|r| (r.recorded_ns - r.begun_ns) as f64 / 1e9).collect();
    let cost_s: Vec<f64> = whole_s.iter().zip(&hand_s).map(|(collo, hand)| collo - hand).collect();
    let (whole, hand) = (median(&mut whole_s), median(&mut hand_s));
    Ok(vec![Figure {
        limit: Some((0.3, Statistic::Value)),
        note: whole.zip(hand).map(|(w, h)| format!("median of pairs; a run {w:.3} s, the same two by hand {h:.3} s")),
        ..Figure::of_seconds("fixed cost of a run, degree 2", &cost_s)
    }])
}

/// Seconds that the members take on their own, started together.
fn by_hand(ground: &ScratchProject) -> Result<f64> {
    let arguments = ["--epochs".to_string(), "2".to_string()];
    let settings = [("seconds", "0.2".to_string())];
    let mut commands = Vec::new();
    for _ in 0..DEGREE {
        commands.push(ground.by_hand("sleep", &settings, &arguments)?.stdout_null());
    }
    let begin = Instant::now();
    let children: Vec<_> = commands.iter().map(duct::Expression::start).collect::<std::io::Result<_>>()?;
    for child in children {
        ensure!(child.wait()?.status.success(), "`sleep` by hand ended with an error");
    }
    Ok(begin.elapsed().as_secs_f64())
}
