//! What looks odd in a cell, and is said rather than dropped. In: cells with their repetitions. Out: sentences.
//!
//! An outlier is a repetition whose epoch time lies further from its cell's median than the campaign's noise makes likely: more than four and a
//! half standard deviations, estimated by the median over all cells, so that the outliers themselves do not hide it.

use super::Cell;
use crate::number;

/// Standard deviations from the median at which a repetition is an outlier.
const FAR: f64 = 4.5;
/// Of the absolute deviations of a normal sample the median is this many standard deviations.
const MEDIAN_OF_NORMAL: f64 = 0.6745;
/// A smaller deviation than this is never worth a word.
const LEAST: f64 = 0.01;
/// Drifts inside one run from which on they are said.
const WARMER_C: f64 = 5.0;
const SLOWER: f64 = 0.03;

/// Fill every cell's list.
pub fn all(cells: &mut [Cell]) {
    let deviations: Vec<Vec<(u32, f64)>> = cells.iter().map(deviations).collect();
    let mut sizes: Vec<f64> = deviations.iter().filter(|d| d.len() > 2).flatten().map(|d| d.1.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let sd = sizes.get(sizes.len() / 2).map(|median| median / MEDIAN_OF_NORMAL);
    for (cell, deviations) in cells.iter_mut().zip(deviations) {
        if let Some(sd) = sd.filter(|_| deviations.len() > 2) {
            for (repetition, log) in deviations.iter().filter(|d| d.1.abs() > (FAR * sd).max(LEAST)) {
                let change = (log.exp() - 1.0) * 100.0;
                cell.suspicious.push(format!("repetition {repetition} lies {change:+.1} % from the cell's median"));
            }
        }
        if let Some(q) = cell.metrics.get("temperature_drift_c").filter(|q| q.estimate.abs() >= WARMER_C) {
            cell.suspicious.push(format!("the card changed by {:+.0} °C between the halves of its runs", q.estimate));
        }
        if let Some(q) = cell.metrics.get("sm_clock_drift_ratio").filter(|q| (q.estimate - 1.0).abs() >= SLOWER) {
            cell.suspicious
                .push(format!("SM clocks changed by {:+.1} % between the halves of its runs", (q.estimate - 1.0) * 100.0));
        }
        if let Some(q) = cell.get("throttled_ratio").filter(|q| q.estimate > 0.0) {
            cell.suspicious.push(format!("something held the clocks down for {} of the time", number::percent(q.estimate)));
        }
    }
}

/// Logarithmic distance of each counted repetition's time from the cell's median.
fn deviations(cell: &Cell) -> Vec<(u32, f64)> {
    let time = |r: &super::Repetition| {
        let epochs = r.members.iter().map(|m| m.epoch_s).sum::<Option<f64>>();
        Some((r.record().repetition, epochs.or(r.makespan_s)?.ln()))
    };
    let times: Vec<(u32, f64)> = cell.counted().filter_map(time).filter(|t| t.1.is_finite()).collect();
    let mut sorted: Vec<f64> = times.iter().map(|t| t.1).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2).copied() else { return Vec::new() };
    times.into_iter().map(|(repetition, log)| (repetition, log - median)).collect()
}
