//! The spread of the members' training starts in a group.

use anyhow::Result;

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;

const MEMBERS: u32 = 7;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let lines = format!(
        "repetitions = {}\nepochs = 1\n[axes]\nworkload = \"sleep\"\nseconds = 0.05\nitems = 5\ndegree = {MEMBERS}",
        effort.times(100)
    );
    ground.write_experiment("skew", &lines)?;
    let runs = ground.measure("skew", |cell| cell.degree == MEMBERS, &mut |_| Ok(()))?;
    let skew_s = |timed: &crate::scratch_project::Timed| {
        let starts: Option<Vec<u64>> = timed.run.record.members.iter().map(|m| m.training_start_ns).collect();
        let starts = starts?;
        Some((starts.iter().max()? - starts.iter().min()?) as f64 / 1e9)
    };
    let skews_s: Vec<f64> = runs.iter().filter_map(skew_s).collect();
    let best_s = skews_s.iter().copied().reduce(f64::min);
    Ok(vec![Figure {
        limit: Some((1e-3, Statistic::Value)),
        note: best_s.map(|s| format!("median of {} starts; the best {:.3} ms", skews_s.len(), s * 1e3)),
        ..Figure::of_seconds(format!("start skew, {MEMBERS} members"), &skews_s)
    }])
}
