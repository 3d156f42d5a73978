//! What a baseline would have taken when a group was measured that has no run of it in its own block, as on MIG instances. In: the runs of
//! a campaign. Out: the baseline's time at the pace of a run, and the uncertainty of that; see [`collo_quantity::stats::pace`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use collo_quantity::Key;
use collo_quantity::stats::Variance;
use collo_quantity::stats::pace::{FittedPace, Pace, PacedRun};

use super::Cell;
use super::quantities::{BaselineQuantity, TIMES};
use crate::reading::repetition::Repetition;

/// With more cells the pace is fitted to baselines and to the groups that need it.
const LARGEST: usize = 400;

/// The paces of the devices of a campaign, by what was timed.
#[derive(Debug, Clone, Default)]
pub struct Paces {
    fitted: BTreeMap<(usize, Key), DevicePace>,
}

/// The pace of one device.
#[derive(Debug, Clone)]
struct DevicePace {
    fitted: FittedPace,
    /// The number of each cell by its label, and its runs.
    cells: HashMap<String, (usize, usize)>,
    /// The place of each run, by its cell and repetition.
    runs: HashMap<(String, u32), usize>,
}

impl Paces {
    /// Fit the pace of each device on which a group `lacks` a baseline in its block: a run, the label of the baseline, what was timed.
    pub fn of(cells: &[Cell], lacks: impl Fn(&Repetition, &str, Key) -> bool) -> Paces {
        let solos = |cell: &Cell| cell.record.members.iter().map(|m| m.solo.clone()).collect::<BTreeSet<_>>();
        let mut found = Paces::default();
        for key in TIMES {
            let is_lacking = |cell: &Cell, r: &Repetition| solos(cell).iter().any(|solo| lacks(r, solo, key));
            let mut needy = BTreeMap::<usize, BTreeSet<&str>>::new();
            for (cell, r) in cells.iter().flat_map(|cell| cell.counted().map(move |r| (cell, r))) {
                if is_lacking(cell, r) {
                    needy.entry(r.device).or_default().insert(&cell.record.cell);
                }
            }
            for (device, needy) in needy {
                let mut used: Vec<&Cell> = cells.iter().filter(|cell| cell.counted().any(|r| r.device == device)).collect();
                if used.len() > LARGEST {
                    used.retain(|cell| cell.record.baseline || needy.contains(cell.record.cell.as_str()));
                }
                found.fitted.extend(DevicePace::fit(&used, device, key).map(|pace| ((device, key), pace)));
            }
        }
        found
    }

    /// The logarithm of a baseline's time at the pace of a run.
    pub fn log_at(&self, r: &Repetition, baseline: &str, key: Key) -> Option<f64> {
        let pace = self.fitted.get(&(r.device, key))?;
        let run = pace.runs.get(&place(r))?;
        Some(pace.fitted.log_at(pace.cells.get(baseline)?.0, *run))
    }

    /// What a cell's mean on one device leans on: the variance of Σ weight × the logarithm of a baseline at the cell's pace, without
    /// the noise of the cell's own runs.
    pub fn variance(&self, cell: &str, weights: &[(&BaselineQuantity, f64)]) -> Option<Variance> {
        let (device, _, key) = weights.first()?.0;
        let pace = self.fitted.get(&(*device, *key))?;
        let (own, runs) = pace.cells.get(cell)?;
        let whole: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let of = |(baseline, weight): &(&BaselineQuantity, f64)| Some((pace.cells.get(&baseline.1)?.0, *weight));
        let mut contrast: Vec<(usize, f64)> = weights.iter().map(of).collect::<Option<_>>()?;
        contrast.push((*own, -whole));
        let all = pace.fitted.variance(&contrast);
        Some(Variance { s2: (all.s2 - whole.powi(2) * pace.fitted.noise() / *runs as f64).max(0.0), df: all.df })
    }
}

impl DevicePace {
    fn fit(cells: &[&Cell], device: usize, key: Key) -> Option<DevicePace> {
        let here = cells.iter().flat_map(|cell| cell.counted()).filter(|r| r.device == device);
        let timed = |r| Some((r, time_s(r, key).filter(|s| s.is_finite() && *s > 0.0)?.ln()));
        let mut runs: Vec<(&Repetition, f64)> = here.filter_map(timed).collect();
        // The wall clock goes on where a campaign was resumed after the machine was started again.
        runs.sort_by(|(a, _), (b, _)| when(a).cmp(&when(b)));
        let mut found: HashMap<String, (usize, usize)> = HashMap::new();
        let mut paced = Vec::new();
        for (r, log) in &runs {
            let next = found.len();
            let (cell, count) = found.entry(r.record().cell.cell.clone()).or_insert((next, 0));
            *count += 1;
            paced.push(PacedRun { cell: *cell, log: *log });
        }
        let places = runs.iter().enumerate().map(|(at, (r, _))| (place(r), at)).collect();
        Some(DevicePace { fitted: Pace::fit(&paced)?, cells: found, runs: places })
    }
}

fn place(r: &Repetition) -> (String, u32) {
    (r.record().cell.cell.clone(), r.record().repetition)
}

fn when(r: &Repetition) -> (&str, u32, u64) {
    (&r.record().started_utc, r.record().block, r.record().timeline.launched_ns)
}

/// What shows the pace: the epoch times of all members that train together, or the makespan.
fn time_s(r: &Repetition, key: Key) -> Option<f64> {
    if key == Key::Makespan { r.makespan_s } else { r.training_s() }
}
