//! Unusual observations about a cell, reported rather than dropped. In: cells with their repetitions. Out: sentences.
//!
//! Repetitions far from the others of their cell are found in `second_look`.

use collo_quantity::{Key, number};

use super::{Cell, steady};

/// Minimum share of the readings that a source must have given.
const COVERED: f64 = 0.8;
/// Drifts inside one run from which on they are reported.
const WARMER_C: f64 = 5.0;
const SLOWER: f64 = 0.03;

/// Fill every cell's list.
pub fn all(cells: &mut [Cell]) {
    for cell in cells {
        cell.suspicious.extend(cell.second_look.as_ref().map(|look| look.to_text(cell.name())));
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

/// What the text about such an energy begins with.
const SHORT_OF_ENERGY: &str = "its energy rests on";

/// Whether a text of `suspicious` is about energies from few steps of the counter. A cell of a `report.json` has these texts and no runs.
pub fn is_short_of_energy(text: &str) -> bool {
    text.starts_with(SHORT_OF_ENERGY)
}

/// Energies from so few steps of the counter, or so short a window, that they say little.
pub fn short_of_energy(cell: &Cell) -> Option<String> {
    let found = cell.counted().filter_map(|r| Some((r.energy?.steps, r.measured?.seconds())));
    let (steps, window_s) = found.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)))?;
    (steps < ENERGY_STEPS || window_s < ENERGY_WINDOW_S).then(|| {
        format!(
            "{SHORT_OF_ENERGY} as few as {} of the counter, in windows as short as {}: more `epochs`, or longer ones, make it sound",
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

/// The source that gave the smallest share of its readings in any of a cell's counted runs.
fn thinnest(cell: &Cell) -> Option<(String, f64)> {
    let all = cell.counted().flat_map(|r| &r.record().sampling);
    let shares = all.filter(|q| q.asked_hz > 0.0).filter_map(|q| Some((q.source.clone(), q.achieved_hz? / q.asked_hz)));
    shares.min_by(|a, b| a.1.total_cmp(&b.1))
}
