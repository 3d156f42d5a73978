//! What was predicted of members beside what was then measured of them. In: an analysis, with the claims of its campaign. Out: a
//! point for each cell or distinct member of one, those without one and why, scores. It predicts nothing itself.

use collo_predict::{Bounds, Scored};
use collo_quantity::Key;
use collo_quantity::stats::{self, Quantity};
use collo_store::{MemberSpec, Predicted, PredictedAlone, PredictedCompany, PredictedMember, PredictedValue, PredictorRecord};

use super::Analysis;
use crate::cell::{Cell, Member};
use crate::reading::repetition::MemberNumbers;

/// What is claimed before a run, in the unit of the quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    pub estimate: f64,
    /// 95 % of measurements are meant to be between these.
    pub low: f64,
    pub high: f64,
    /// 95 % are meant to be below; absent where nobody plans with a bound.
    pub upper: Option<f64>,
}

/// A quantity that is claimed and read.
struct Predictable {
    key: Key,
    /// Who claims it.
    by: fn(&Predicted) -> Option<&PredictorRecord>,
    of: Of,
}

/// Of what, and how it is read.
enum Of {
    /// Of each distinct member of every cell, in each of its runs.
    Member { claim: fn(&PredictedMember) -> Option<Claim>, reading: fn(&MemberNumbers) -> Option<f64> },
    /// Of each distinct member of a group.
    InCompany { claim: fn(&PredictedCompany, usize) -> Option<PredictedValue>, read: fn(&Member) -> Option<&Quantity> },
    /// Of whole cells: of members alone, of groups, or of both.
    Cell {
        alone: fn(&PredictedAlone) -> Option<PredictedValue>,
        company: fn(&PredictedCompany) -> Option<PredictedValue>,
        read: fn(&Cell) -> Option<&Quantity>,
    },
}

/// To score another quantity, add it here.
const PREDICTABLE: &[Predictable] = &[
    Predictable {
        key: Key::Memory,
        by: |claims| claims.predictor.as_ref(),
        of: Of::Member { claim: memory, reading: |member| Some(member.usage.memory?.bytes) },
    },
    alone(Key::SmActive, |alone| alone.sm_active_ratio, |cell| cell.metric(Key::SmActive)),
    alone(Key::GpuUtilization, |alone| alone.gpu_utilization_ratio, |cell| cell.metric(Key::GpuUtilization)),
    alone(Key::DramActive, |alone| alone.dram_active_ratio, |cell| cell.metric(Key::DramActive)),
    alone(Key::Items, |alone| alone.items_per_s, |cell| cell.get(Key::Items)),
    Predictable {
        key: Key::Power,
        by: |claims| claims.utilisation_predictor.as_ref(),
        of: Of::Cell { alone: |alone| alone.power_w, company: |group| group.power_w, read: |cell| cell.metric(Key::Power) },
    },
    Predictable {
        key: Key::Slowdown,
        by: |claims| claims.company_predictor.as_ref(),
        of: Of::InCompany { claim: |group, index| group.slowdowns.get(index).copied(), read: |member| member.get(Key::Slowdown) },
    },
    group(Key::Stp, |group| Some(group.stp), |cell| cell.get(Key::Stp)),
    group(Key::ThroughputGain, |group| group.throughput_gain, |cell| cell.get(Key::ThroughputGain)),
    group(Key::Fairness, |group| Some(group.fairness), |cell| cell.get(Key::Fairness)),
];

const fn alone(
    key: Key,
    alone: fn(&PredictedAlone) -> Option<PredictedValue>,
    read: fn(&Cell) -> Option<&Quantity>,
) -> Predictable {
    Predictable { key, by: |claims| claims.utilisation_predictor.as_ref(), of: Of::Cell { alone, company: |_| None, read } }
}

const fn group(
    key: Key,
    company: fn(&PredictedCompany) -> Option<PredictedValue>,
    read: fn(&Cell) -> Option<&Quantity>,
) -> Predictable {
    Predictable { key, by: |claims| claims.company_predictor.as_ref(), of: Of::Cell { alone: |_| None, company, read } }
}

fn memory(of: &PredictedMember) -> Option<Claim> {
    let memory = of.memory.as_ref()?;
    // Readings are taken while it trains, and the warm-up may have held more before.
    let share = memory.training_bytes as f64 / (memory.estimate_bytes as f64).max(1.0);
    let [estimate, low, high, upper] =
        [memory.estimate_bytes, memory.low_bytes, memory.high_bytes, memory.upper_bytes].map(|bytes| bytes as f64 * share);
    Some(Claim { estimate, low, high, upper: Some(upper) })
}

impl From<PredictedValue> for Claim {
    fn from(PredictedValue { estimate, low, high }: PredictedValue) -> Claim {
        Claim { estimate, low, high, upper: None }
    }
}

/// A cell, or a distinct member of one, predicted and measured.
#[derive(Debug)]
pub struct PredictedPoint<'a> {
    pub cell: &'a Cell,
    /// Absent if it is the whole cell's.
    pub spec: Option<&'a MemberSpec>,
    /// The median over its equals and the runs that count; of a group the report's own number.
    pub measured: f64,
    pub repetitions: usize,
    pub claim: Claim,
    /// What else was predicted of the member; absent of a whole cell.
    pub of: Option<&'a PredictedMember>,
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
        match self.spec.filter(|_| !self.cell.record.is_uniform()) {
            Some(spec) => format!("{} in {cell}", spec.workload),
            None => cell.to_string(),
        }
    }

    fn scored(&self) -> Scored {
        let Claim { estimate, low, high, upper } = self.claim;
        Scored {
            label: self.name(),
            measured_bytes: self.measured,
            estimate_bytes: Some(estimate),
            bounds: Some(Bounds { low_bytes: low, high_bytes: high, upper_bytes: upper.unwrap_or(high) }),
        }
    }
}

/// A cell, or a distinct member of one, that cannot be compared.
#[derive(Debug)]
pub struct Uncompared<'a> {
    pub cell: &'a Cell,
    pub spec: Option<&'a MemberSpec>,
    /// None: nothing was predicted of it either.
    pub claim: Option<Claim>,
    pub why: String,
}

/// A quantity, predicted and measured.
#[derive(Debug)]
pub struct PredictedQuantity<'a> {
    pub key: Key,
    pub by: &'a PredictorRecord,
    /// In the order of the plan.
    pub points: Vec<PredictedPoint<'a>>,
    pub uncompared: Vec<Uncompared<'a>>,
}

/// Of threads of one process.
const OF_PROCESSES: &str = "memory is predicted of processes, and its members are threads of one";

const NOTHING: &str = "nothing was predicted of it";

impl<'a> PredictedQuantity<'a> {
    fn take(&mut self, cell: &'a Cell, claims: &'a Predicted, of: &Of) {
        let members = &cell.record.members;
        let distinct = || members.iter().enumerate().filter(|(index, spec)| !members[..*index].contains(spec));
        let is_group = members.len() > 1;
        let key = self.key;
        match of {
            Of::Member { claim, reading } => {
                for (_, spec) in distinct() {
                    let said = claims.of(&spec.solo, &cell.record.mode);
                    let thread = || cell.record.mode.one_process.then(|| OF_PROCESSES.to_string());
                    let why = || said.and_then(|said| said.reason.clone()).or_else(thread);
                    self.put(cell, Some(spec), said, said.and_then(claim), why, || read(cell, spec, key, *reading));
                }
            }
            Of::InCompany { claim, read } if is_group => {
                let said = claims.of_cell(cell.name());
                for (index, spec) in distinct() {
                    let claim = said.and_then(|said| claim(said.company.as_ref()?, index)).map(Claim::from);
                    let why = || said.and_then(|said| said.reason.clone());
                    // Equals are measured one by one: the median over all of them.
                    let read = || {
                        let alike = members.iter().zip(&cell.members).filter(|(other, _)| *other == spec);
                        let found: Vec<&Quantity> = alike.filter_map(|(_, member)| read(member)).collect();
                        let measured = stats::median(&mut found.iter().map(|q| q.estimate).collect::<Vec<_>>());
                        measured.map(|measured| (measured, found[0].n)).ok_or_else(|| unread(cell, key))
                    };
                    self.put(cell, Some(spec), None, claim, why, read);
                }
            }
            Of::InCompany { .. } => {}
            Of::Cell { alone, company, read } => {
                let group = claims.of_cell(cell.name()).filter(|_| is_group);
                let member = members.first().filter(|_| cell.is_solo()).and_then(|m| claims.of(&m.solo, &cell.record.mode));
                let claim = match is_group {
                    true => group.and_then(|said| company(said.company.as_ref()?)),
                    false => member.and_then(|said| alone(said.alone.as_ref()?)),
                };
                // Of a cell of which nobody claims this quantity there is nothing to say.
                let why = || group.and_then(|said| said.reason.clone());
                if claim.is_none() && why().is_none() {
                    return;
                }
                let read = || {
                    let found = read(cell).filter(|q| q.estimate > 0.0);
                    found.map(|q| (q.estimate, q.n)).ok_or_else(|| unread(cell, key))
                };
                self.put(cell, None, None, claim.map(Claim::from), why, read);
            }
        }
    }

    fn put(
        &mut self,
        cell: &'a Cell,
        spec: Option<&'a MemberSpec>,
        of: Option<&'a PredictedMember>,
        claim: Option<Claim>,
        why: impl Fn() -> Option<String>,
        read: impl Fn() -> Result<(f64, usize), String>,
    ) {
        let claim = claim.filter(|claim| claim.estimate > 0.0);
        let why = match (claim, read()) {
            (Some(claim), Ok((measured, repetitions))) => {
                return self.points.push(PredictedPoint { cell, spec, measured, repetitions, claim, of });
            }
            (Some(_), Err(unread)) => unread,
            (None, _) => why().unwrap_or_else(|| NOTHING.into()),
        };
        self.uncompared.push(Uncompared { cell, spec, claim, why });
    }
}

/// How well claims agree with measurements. Errors are shares of what was measured, as `collo predict evaluate` has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionScore {
    pub points: usize,
    pub median_error_ratio: f64,
    /// The median of measured ÷ predicted, less 1.
    pub bias_ratio: f64,
    pub covered: usize,
    /// Absent where no upper bound is claimed.
    pub above_upper: Option<usize>,
    pub too_low: usize,
}

impl PredictionScore {
    /// None: there are no points.
    pub fn of<'a>(points: impl Iterator<Item = &'a PredictedPoint<'a>>) -> Option<PredictionScore> {
        let points: Vec<&PredictedPoint> = points.collect();
        let (scored, mut logs): (Vec<Scored>, Vec<f64>) = points.iter().map(|point| (point.scored(), point.ratio().ln())).unzip();
        let score = collo_predict::score(&scored)?;
        let bounded = score.bounded?;
        Some(PredictionScore {
            points: score.rows,
            median_error_ratio: score.median_relative_error,
            bias_ratio: stats::median(&mut logs)?.exp() - 1.0,
            covered: bounded.covered,
            above_upper: points.iter().all(|point| point.claim.upper.is_some()).then_some(bounded.exceeded),
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
            let by = (what.by)(claims)?;
            let mut found = PredictedQuantity { key: what.key, by, points: Vec::new(), uncompared: Vec::new() };
            cells.iter().for_each(|cell| found.take(cell, claims, &what.of));
            Some(found)
        };
        let all = PREDICTABLE.iter().filter_map(of);
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
fn read(cell: &Cell, spec: &MemberSpec, key: Key, reading: fn(&MemberNumbers) -> Option<f64>) -> Result<(f64, usize), String> {
    let alike = |index: &usize| cell.record.members.get(*index) == Some(spec);
    let of = |run: &crate::reading::repetition::Repetition| -> Vec<f64> {
        let members = run.members.iter().enumerate().filter(|(index, _)| alike(index));
        members.filter_map(|(_, member)| reading(member)).filter(|value| *value > 0.0).collect()
    };
    let runs: Vec<Vec<f64>> = cell.counted().map(of).filter(|values| !values.is_empty()).collect();
    match stats::median(&mut runs.concat()) {
        Some(measured) => Ok((measured, runs.len())),
        None => Err(unread(cell, key)),
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
        other => format!("it ended otherwise: {}", crate::words::outcome(other)),
    }
}
