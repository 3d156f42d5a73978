//! The cost of being measured: epochs of `tiny` under collo, sampled at 10 Hz, over epochs of the same script by hand.
//!
//! Pairs of processes, interleaved (AB BA AB …), until the interval is narrow enough or the time is over: a rule that ignores
//! where the interval is. Both print wall and CPU time of their epochs; only measured epochs count, so set-up does not.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use collo_quantity::stats::{Quantity, Term, log_moments, median, quantity};
use collo_store::StoredRun;
use fs_err as fs;
use serde_json::Value as Json;

use super::Effort;
use crate::figure::{Figure, Statistic, Unit};
use crate::scratch_project::{Moment, ScratchProject};

/// The first is warm-up.
const EPOCHS: u32 = 9;
const PAIRS_PER_CAMPAIGN: usize = 4;
/// Narrow enough for a true ratio of 1.000 to pass.
const HALF_WIDTH: f64 = 0.004;

/// Median seconds of the measured epochs of one process.
#[derive(Debug, Clone, Copy)]
struct Epochs {
    wall_s: f64,
    cpu_s: f64,
}

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let name = "epoch under collo ÷ by hand, wall";
    let workload = if effort.smoke { "spin-timed" } else { "tiny-timed" };
    if !effort.smoke {
        if !ground.interpreters.has(&collo_plan::workload::WorkloadPython::Torch) {
            let why = "no Python environment yet: `cargo run -- run quickstart --prepare` provides it";
            return Ok(vec![Figure::absent(name, why)]);
        }
        ground.prepare("tiny")?;
    }
    let pairs_at_once = effort.times(PAIRS_PER_CAMPAIGN);
    // Solo cells are run twice per repetition, so half as many repetitions make the pairs.
    let lines = format!(
        "repetitions = {}\nepochs = {EPOCHS}\n[axes]\nworkload = \"{workload}\"\ndegree = 1\n[sampling]\nrate_hz = 10",
        pairs_at_once.div_ceil(2)
    );
    ground.write_experiment("perturbation", &lines)?;
    let begin = Instant::now();
    let mut pairs = Vec::new();
    loop {
        let mut hand = Vec::new();
        let runs = ground.measure("perturbation", |_| true, &mut |moment| {
            let turn = matches!(moment, Moment::Before(i) if i % 2 == 1) || matches!(moment, Moment::After(i) if i % 2 == 0);
            if turn {
                hand.push(by_hand(ground, workload)?);
            }
            Ok(())
        })?;
        for (timed, hand) in runs.iter().zip(hand) {
            pairs.push((under_collo(&timed.run)?, hand));
        }
        let wall = ratio(&pairs, |e| e.wall_s);
        let narrow = wall.is_some_and(|q| q.high.is_some_and(|high| (high / q.estimate).ln() <= HALF_WIDTH));
        if effort.smoke || narrow || begin.elapsed() > effort.most {
            break;
        }
    }
    let figure = |name: &str, of: fn(&Epochs) -> f64, limit| {
        let found = ratio(&pairs, of);
        let typical = median(&mut pairs.iter().map(|(_, hand)| of(hand)).collect::<Vec<_>>());
        let estimate = median(&mut pairs.iter().map(|(c, h)| of(c) / of(h)).collect::<Vec<_>>());
        Figure {
            name: name.into(),
            unit: Unit::Ratio,
            // Too few pairs for an interval still have a ratio.
            value: found.as_ref().map(|q| q.estimate).or(estimate),
            interval: found.and_then(|q| q.low.zip(q.high)),
            count: pairs.len(),
            limit,
            note: typical.map(|s| format!("{} pairs of {} epochs, {s:.3} s each by hand", pairs.len(), EPOCHS - 1)),
            ..Figure::default()
        }
    };
    let limit = Some((1.005, Statistic::High));
    Ok(vec![figure(name, |e| e.wall_s, limit), figure("epoch under collo ÷ by hand, CPU", |e| e.cpu_s, limit)])
}

/// The geometric mean of the ratios of pairs; `None` below three pairs.
fn ratio(pairs: &[(Epochs, Epochs)], of: impl Fn(&Epochs) -> f64) -> Option<Quantity> {
    let ratios: Vec<f64> = pairs.iter().map(|(collo, hand)| of(collo) / of(hand)).collect();
    let (n, (log_mean, variance)) = (ratios.len(), log_moments(&ratios)?);
    Some(quantity(log_mean, n, &[Term { weight: 1.0, variance: variance.filter(|_| n > 2)?, n }]))
}

fn by_hand(ground: &ScratchProject, workload: &str) -> Result<Epochs> {
    let command = ground.by_hand(workload, &[], &["--epochs".into(), EPOCHS.to_string()])?;
    let output = command.stdout_capture().stderr_capture().run()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{workload}` by hand: {}", said.lines().last().unwrap_or("it ended with an error"));
    read(&String::from_utf8_lossy(&output.stdout))
}

fn under_collo(run: &StoredRun) -> Result<Epochs> {
    read(&fs::read_to_string(run.path.join("member-0.log"))?)
}

/// What `timed.py` printed.
fn read(text: &str) -> Result<Epochs> {
    let lines = text.lines().filter_map(|l| serde_json::from_str::<Json>(l.strip_prefix("timed ")?).ok());
    let measured: Vec<Json> = lines.filter(|l| l["measured"] == true).collect();
    let median_s = |key: &str| {
        let values: Option<Vec<f64>> = measured.iter().map(|l| l[key].as_f64().map(|ns| ns / 1e9)).collect();
        values.and_then(|mut v| median(&mut v)).with_context(|| format!("no `{key}` of a measured epoch was printed"))
    };
    // By hand, the first epoch is a warm-up too; a single one is measured.
    ensure!(measured.len() == EPOCHS as usize - 1, "{} measured epochs instead of {}", measured.len(), EPOCHS - 1);
    Ok(Epochs { wall_s: median_s("wall_ns")?, cpu_s: median_s("cpu_ns")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(epochs: u32) -> String {
        let line =
            |i: u32| format!("epoch {i} took 1 s\ntimed {{\"measured\": {}, \"wall_ns\": {i}e9, \"cpu_ns\": 5e8}}\n", i > 0);
        (0..epochs).map(line).collect()
    }

    #[test]
    fn only_measured_epochs_count_and_all_of_them_must_be_there() {
        let epochs = read(&printed(EPOCHS)).unwrap();
        assert_eq!((epochs.wall_s, epochs.cpu_s), (4.5, 0.5));
        assert_eq!(read(&printed(3)).unwrap_err().to_string(), "2 measured epochs instead of 8");
    }
}
