//! What was predicted of members beside what was then measured of them. In: an analysis, with the claims of its campaign. Out: a
//! point for each distinct member of a cell, those without one and why, scores. It predicts nothing itself.

use collo_predict::{Bounds, Scored};
use collo_store::{MemberSpec, Predicted, PredictedMember};

use super::{Analysis, Cell, MemberNumbers};
use crate::quantity::Key;
use crate::stats;

/// What is claimed of a member before it runs, in the unit of the quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    pub estimate: f64,
    /// 95 % of measurements are meant to be between these.
    pub low: f64,
    pub high: f64,
    /// 95 % are meant to be below.
    pub upper: f64,
}

/// A quantity of members that is claimed and read.
struct Predictable {
    key: Key,
    claim: fn(&PredictedMember) -> Option<Claim>,
    reading: fn(&MemberNumbers) -> Option<f64>,
}

/// To score another quantity, add it here.
const PREDICTABLE: [Predictable; 1] =
    [Predictable { key: Key::Memory, claim: memory, reading: |member| Some(member.memory?.bytes) }];

fn memory(of: &PredictedMember) -> Option<Claim> {
    let memory = of.memory.as_ref()?;
    // Readings are taken while it trains, and the warm-up may have held more before.
    let share = memory.training_bytes as f64 / (memory.estimate_bytes as f64).max(1.0);
    let [estimate, low, high, upper] =
        [memory.estimate_bytes, memory.low_bytes, memory.high_bytes, memory.upper_bytes].map(|bytes| bytes as f64 * share);
    Some(Claim { estimate, low, high, upper })
}

/// A distinct member of a cell, predicted and measured.
#[derive(Debug)]
pub struct PredictedPoint<'a> {
    pub cell: &'a Cell,
    pub spec: &'a MemberSpec,
    /// The median over its equals and the runs that count.
    pub measured: f64,
    pub repetitions: usize,
    pub claim: Claim,
    pub of: &'a PredictedMember,
}

impl PredictedPoint<'_> {
    /// Measured ÷ predicted.
    pub fn ratio(&self) -> f64 {
        self.measured / self.claim.estimate
    }

    pub fn is_covered(&self) -> bool {
        (self.claim.low..=self.claim.high).contains(&self.measured)
    }

    /// How far off it is, to either side.
    pub fn error_log(&self) -> f64 {
        self.ratio().ln().abs()
    }

    /// The cell; of different members in one also which of them.
    pub fn name(&self) -> String {
        let cell = self.cell.name();
        if self.cell.record.is_uniform() { cell.to_string() } else { format!("{} in {cell}", self.spec.workload) }
    }

    fn scored(&self) -> Scored {
        let Claim { estimate, low, high, upper } = self.claim;
        Scored {
            label: self.name(),
            measured_bytes: self.measured,
            estimate_bytes: Some(estimate),
            bounds: Some(Bounds { low_bytes: low, high_bytes: high, upper_bytes: upper }),
        }
    }
}

/// A distinct member of a cell that cannot be compared.
#[derive(Debug)]
pub struct Uncompared<'a> {
    pub cell: &'a Cell,
    pub spec: &'a MemberSpec,
    /// None: nothing was predicted of it either.
    pub claim: Option<Claim>,
    pub why: String,
}

/// A quantity, predicted and measured.
#[derive(Debug)]
pub struct PredictedQuantity<'a> {
    pub key: Key,
    /// In the order of the plan.
    pub points: Vec<PredictedPoint<'a>>,
    pub uncompared: Vec<Uncompared<'a>>,
}

impl<'a> PredictedQuantity<'a> {
    /// Add the distinct members of a cell.
    fn take(&mut self, cell: &'a Cell, claims: &'a Predicted, what: &Predictable) {
        let members = &cell.record.members;
        let distinct = members.iter().enumerate().filter(|(index, spec)| !members[..*index].contains(spec));
        for (_, spec) in distinct {
            let of = claims.of(&spec.solo, &cell.record.mode);
            let claim = of.and_then(what.claim).filter(|claim| claim.estimate > 0.0);
            let why = match (claim, of, read(cell, spec, what)) {
                (Some(claim), Some(of), Ok((measured, repetitions))) => {
                    self.points.push(PredictedPoint { cell, spec, measured, repetitions, claim, of });
                    continue;
                }
                (Some(_), _, Err(why)) => why,
                _ => of.and_then(|of| of.reason.clone()).unwrap_or_else(|| "nothing was predicted of it".into()),
            };
            self.uncompared.push(Uncompared { cell, spec, claim, why });
        }
    }
}

/// How well claims agree with measurements. Errors are shares of what was measured, as `collo predictor evaluate` has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionScore {
    pub points: usize,
    pub median_error_ratio: f64,
    /// The median of measured ÷ predicted, less 1.
    pub bias_ratio: f64,
    pub covered: usize,
    pub above_upper: usize,
    pub too_low: usize,
}

impl PredictionScore {
    /// None: there are no points.
    pub fn of<'a>(points: impl Iterator<Item = &'a PredictedPoint<'a>>) -> Option<PredictionScore> {
        let (scored, mut logs): (Vec<Scored>, Vec<f64>) = points.map(|point| (point.scored(), point.ratio().ln())).unzip();
        let score = collo_predict::score(&scored)?;
        let bounded = score.bounded?;
        Some(PredictionScore {
            points: score.rows,
            median_error_ratio: score.median_relative_error,
            bias_ratio: stats::median(&mut logs)?.exp() - 1.0,
            covered: bounded.covered,
            above_upper: bounded.exceeded,
            too_low: score.under,
        })
    }
}

/// Cells by whether the plan had marked them, and by whether they ran out of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryWarnings {
    pub ran_out: usize,
    pub ran_out_unmarked: usize,
    pub marked_completed: usize,
    /// Ran out, and whether it would could not be said: of a member nothing was predicted.
    pub ran_out_unsaid: usize,
}

impl Analysis {
    /// Of each quantity that something was claimed of: what was measured.
    pub fn predicted(&self) -> Vec<PredictedQuantity<'_>> {
        self.predicted_of(&self.cells)
    }

    /// The same of some of its cells. In a campaign without claims there is none.
    pub fn predicted_of<'a>(&'a self, cells: &'a [Cell]) -> Vec<PredictedQuantity<'a>> {
        let Some(claims) = &self.campaign.predicted else { return Vec::new() };
        let of = |what: &Predictable| {
            let mut found = PredictedQuantity { key: what.key, points: Vec::new(), uncompared: Vec::new() };
            cells.iter().for_each(|cell| found.take(cell, claims, what));
            found
        };
        let all = PREDICTABLE.iter().map(of);
        all.filter(|quantity| !quantity.points.is_empty() || !quantity.uncompared.is_empty()).collect()
    }

    /// What the plan said beforehand of cells that then ran out of memory, or did not.
    pub fn memory_warnings(&self) -> MemoryWarnings {
        let mut found = MemoryWarnings::default();
        for cell in &self.cells {
            let of = |word: &str| cell.outcomes.get(word).copied().unwrap_or(0);
            let (ran_out, completed) = (of("out_of_memory") > 0, of("completed") > 0);
            match (ran_out, self.may_run_out(cell)) {
                (true, marked) => {
                    found.ran_out += 1;
                    found.ran_out_unmarked += usize::from(marked == Some(false));
                    found.ran_out_unsaid += usize::from(marked.is_none());
                }
                (false, Some(true)) if completed => found.marked_completed += 1,
                (false, _) => {}
            }
        }
        found
    }

    /// Whether the plan said that it may run out of memory; `None` if it could not say.
    pub fn may_run_out(&self, cell: &Cell) -> Option<bool> {
        self.campaign.predicted.as_ref()?.may_run_out(&cell.record)
    }
}

/// The median over all members like this one in the runs that count, and the number of these; or why there is none.
fn read(cell: &Cell, spec: &MemberSpec, what: &Predictable) -> Result<(f64, usize), String> {
    let alike = |index: &usize| cell.record.members.get(*index) == Some(spec);
    let of = |run: &super::Repetition| -> Vec<f64> {
        let members = run.members.iter().enumerate().filter(|(index, _)| alike(index));
        members.filter_map(|(_, member)| (what.reading)(member)).filter(|value| *value > 0.0).collect()
    };
    let runs: Vec<Vec<f64>> = cell.counted().map(of).filter(|values| !values.is_empty()).collect();
    match stats::median(&mut runs.concat()) {
        Some(measured) => Ok((measured, runs.len())),
        None => Err(unread(cell, what.key)),
    }
}

fn unread(cell: &Cell, key: Key) -> String {
    if !cell.counted.is_empty() {
        let told = cell.absent.get(&key).filter(|why| *why != key.absent);
        return told.cloned().unwrap_or_else(|| format!("its {} was not read", key.label));
    }
    match cell.outcome() {
        "out_of_memory" => "it ran out of memory".into(),
        "missing" => "it has not run".into(),
        "completed" => "no run of it can be used".into(),
        other => format!("it ended otherwise: {}", crate::format::words::outcome(other)),
    }
}
