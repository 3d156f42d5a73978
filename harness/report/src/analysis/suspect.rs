//! Unusual observations about a cell, reported rather than dropped. In: cells with their repetitions. Out: sentences.
//!
//! An outlier is a repetition whose epoch time (makespan, if members exit when finished) is further from its cell's median than the campaign's noise makes likely: more
//! than four and a half standard deviations, estimated by the median over all cells, so that the outliers themselves do not hide
//! it.

use super::{Cell, GainBy, steady};
use crate::number;
use crate::quantity::Key;

/// Standard deviations from the median at which a repetition is an outlier.
const FAR: f64 = 4.5;
/// Of the absolute deviations of a normal sample the median is this many standard deviations.
const MEDIAN_OF_NORMAL: f64 = 0.6745;
/// A smaller deviation is never worth reporting.
const LEAST: f64 = 0.01;
/// Minimum share of the readings that a source must have given.
const COVERED: f64 = 0.8;
/// Drifts inside one run from which on they are reported.
const WARMER_C: f64 = 5.0;
const SLOWER: f64 = 0.03;

/// Fill every cell's list.
pub fn all(cells: &mut [Cell]) {
    let deviations: Vec<Vec<(u32, f64)>> = cells.iter().map(deviations).collect();
    for (cell, far) in cells.iter_mut().zip(outliers(&deviations)) {
        for (repetition, log) in far {
            let change = (log.exp() - 1.0) * 100.0;
            cell.suspicious.push(format!("repetition {repetition} deviates {change:+.1} % from the cell's median"));
        }
        if let Some((source, share)) = thinnest(cell).filter(|(_, share)| *share < COVERED) {
            let share = number::percent(share);
            cell.suspicious.push(format!("`{source}` was read at {share} of the requested rate in one of its runs"));
        }
        if let Some(q) = cell.metrics.get(Key::TemperatureDrift.name).filter(|q| q.estimate.abs() >= WARMER_C) {
            cell.suspicious.push(format!("GPU temperature changed by {:+.0} °C between the halves of its runs", q.estimate));
        }
        if let Some(q) = cell.metrics.get(Key::SmClockDrift.name).filter(|q| (q.estimate - 1.0).abs() >= SLOWER) {
            cell.suspicious
                .push(format!("SM clocks changed by {:+.1} % between the halves of its runs", (q.estimate - 1.0) * 100.0));
        }
        cell.suspicious.extend(steady::change(cell));
        cell.suspicious.extend(short_of_energy(cell));
        for odd in untrue(cell) {
            cell.suspicious.push(odd);
        }
        if let Some(q) = cell.get(Key::Throttled).filter(|q| q.estimate > 0.0) {
            cell.suspicious.push(format!("clocks were throttled for {} of the time", number::percent(q.estimate)));
        }
    }
}

/// Below these the energy of a run is mostly the counter's own steps: NVML's counter moves every 20 to 100 ms, RAPL's every
/// millisecond (<https://arxiv.org/abs/2312.02741>: part-time power measurements of NVIDIA GPUs).
const ENERGY_STEPS: u32 = 20;
const ENERGY_WINDOW_S: f64 = 1.0;

/// Energies from so few steps of the counter, or so short a window, that they say little.
pub fn short_of_energy(cell: &Cell) -> Option<String> {
    let found = cell.counted().filter_map(|r| Some((r.energy?.steps, r.measured?.seconds())));
    let (steps, window_s) = found.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))?;
    (steps < ENERGY_STEPS || window_s < ENERGY_WINDOW_S).then(|| {
        format!(
            "its energy rests on as few as {} of the counter, in windows as short as {}: more `epochs`, or longer ones, make it sound",
            number::count(steps as usize, "step"),
            number::duration(window_s)
        )
    })
}

/// What was left out of the samples of its counted runs: identical ones in one sentence.
fn untrue(cell: &Cell) -> Vec<String> {
    let mut said: Vec<(&String, u32)> = Vec::new();
    for r in cell.counted() {
        for odd in &r.trust.odd {
            if !said.iter().any(|(known, _)| *known == odd) {
                said.push((odd, r.record().repetition));
            }
        }
    }
    said.into_iter().map(|(odd, repetition)| format!("{odd} (repetition {repetition})")).collect()
}

/// The outliers among each cell's deviations. The median over all is taken from cells of three repetitions or more.
fn outliers(deviations: &[Vec<(u32, f64)>]) -> Vec<Vec<(u32, f64)>> {
    let mut sizes: Vec<f64> = deviations.iter().filter(|d| d.len() > 2).flatten().map(|d| d.1.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let Some(sd) = sizes.get(sizes.len() / 2).map(|median| median / MEDIAN_OF_NORMAL) else {
        return vec![Vec::new(); deviations.len()];
    };
    let far = |d: &Vec<(u32, f64)>| d.iter().filter(|d| d.1.abs() > (FAR * sd).max(LEAST)).copied().collect();
    deviations.iter().map(|d| if d.len() > 2 { far(d) } else { Vec::new() }).collect()
}

/// The source that gave the smallest share of its readings in any of a cell's counted runs.
fn thinnest(cell: &Cell) -> Option<(String, f64)> {
    let all = cell.counted().flat_map(|r| &r.record().sampling);
    let shares = all.filter(|q| q.asked_hz > 0.0).filter_map(|q| Some((q.source.clone(), q.achieved_hz? / q.asked_hz)));
    shares.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The time by which repetitions of a cell are compared. Members that exit when finished train their last epochs in less company:
/// which of them count for the epoch time differs between repetitions, so only the makespan compares like with like.
fn compared_s(by: GainBy, training_s: Option<f64>, makespan_s: Option<f64>) -> Option<f64> {
    match by {
        GainBy::Makespan => makespan_s,
        GainBy::EpochTime | GainBy::Progress => training_s.or(makespan_s),
    }
}

/// Logarithmic distance of each counted repetition's time from the cell's median.
fn deviations(cell: &Cell) -> Vec<(u32, f64)> {
    let by = GainBy::of(&cell.record);
    let time = |r: &super::Repetition| Some((r.record().repetition, compared_s(by, r.training_s(), r.makespan_s)?.ln()));
    let times: Vec<(u32, f64)> = cell.counted().filter_map(time).filter(|t| t.1.is_finite()).collect();
    let mut sorted: Vec<f64> = times.iter().map(|t| t.1).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2).copied() else { return Vec::new() };
    times.into_iter().map(|(repetition, log)| (repetition, log - median)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_left_out_for_its_overlap_makes_no_outlier() {
        // In the second repetition the epoch of the slower member beside nobody was left out: a shorter mean of the same run.
        let runs = [(3.0, 10.0), (2.0, 10.1), (3.02, 9.95)];
        let by = |by| -> Vec<(u32, f64)> {
            let times = runs.iter().map(|&(training, makespan)| compared_s(by, Some(training), Some(makespan)));
            let logs: Vec<f64> = times.map(|t| t.unwrap().ln()).collect();
            (1..).zip(&logs).map(|(n, log)| (n, log - logs[0])).collect()
        };
        let calm = || vec![(1, -0.01), (2, 0.0), (3, 0.012)];
        let beside = |odd| outliers(&[calm(), calm(), calm(), odd]).pop().unwrap();
        assert!(beside(by(GainBy::Makespan)).is_empty());
        assert_eq!(beside(by(GainBy::Progress)).len(), 1, "the epoch time alone would call it one");
        assert_eq!(compared_s(GainBy::Makespan, Some(3.0), None), None, "no makespan is not replaced by another time");
    }

    #[test]
    fn one_repetition_far_from_its_cell_is_an_outlier_and_noise_is_none() {
        let calm = || vec![(1, -0.01), (2, 0.0), (3, 0.012)];
        let mut cells: Vec<_> = (0..20).map(|_| calm()).collect();
        cells.push(vec![(1, 0.0), (2, 0.3), (3, -0.011)]);
        // Of two repetitions nobody knows which is the odd one.
        cells.push(vec![(1, 0.0), (2, 0.3)]);
        let found = outliers(&cells);
        assert!(found[..20].iter().all(Vec::is_empty) && found[21].is_empty());
        assert_eq!(found[20], [(2, 0.3)]);
        assert!(outliers(&[vec![(1, 0.0)]])[0].is_empty());
    }
}
