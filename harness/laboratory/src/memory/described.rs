//! Measurements with the descriptions of what was trained. In: what was asked for. Out: of each row the inputs of the formula.

use std::collections::BTreeMap;

use collo_predict::Conditions;
use collo_predict::{
    Basis, Coefficients, Description, Factors, MeasuredRow, MemoryFit, Predictor, Replay, Scored, Unfit, fit_context, fit_memory,
    published, replay,
};
use collo_prepare::memnet::MemnetRow;
use collo_text::{Diagnostics, Remark};

use crate::caller::{Caller, Request};
use crate::describing;
use crate::measurements::{Measurement, Measurements, Measurer};
use crate::sources;

/// Measurements with the descriptions of what was measured.
pub struct Described {
    pub all: Measurements,
    /// Of each subject; absent if it cannot be described.
    pub descriptions: Vec<Option<(Description, Basis)>>,
    /// The replay of a subject at a batch size.
    replays: BTreeMap<(usize, u64), Replay>,
    pub is_published: bool,
}

/// What the formula takes of a row.
#[derive(Clone, Copy)]
pub struct Inputs {
    pub held_bytes: u64,
    pub workspace_bytes: u64,
}

/// A byte for each byte that is held: a CPU has no allocator that caches and no cuDNN, and neither has the simulation.
const ONE: Coefficients = Coefficients { context_bytes: 0.0, per_reserved_byte: 1.0, per_workspace_byte: 0.0 };

impl Described {
    /// Read the measurements, and describe what was trained.
    pub fn of(caller: &dyn Caller, asked: &Request<'_>) -> Result<Described, Diagnostics> {
        let is_published = asked.rows == [sources::PUBLISHED];
        let mut all = sources::read(caller, asked.rows)?;
        if let Some(who) = asked.measured_by {
            all = all.of(who)?;
        }
        let descriptions = describing::traced(caller, asked, &mut all)?;
        let mut replays = BTreeMap::new();
        for row in &all.rows {
            let key = (row.subject, row.batch_size);
            if let (false, Some((description, _))) = (replays.contains_key(&key), &descriptions[row.subject]) {
                replays.insert(key, replay(description, row.batch_size)?);
            }
        }
        Ok(Described { all, descriptions, replays, is_published })
    }

    pub fn rows(&self, by: usize) -> Vec<&Measurement> {
        self.all.rows.iter().filter(|row| row.by == by).collect()
    }

    pub fn label(&self, row: &Measurement) -> String {
        let subject = &self.all.subjects[row.subject];
        match &self.descriptions[row.subject] {
            // They have one name in common.
            Some((Description { generated: Some(drawn), parameters, .. }, _)) => {
                format!("{} {}, {parameters} parameters b{}", drawn.kind, drawn.shape, row.batch_size)
            }
            _ => format!("{} b{}", subject.name(), row.batch_size),
        }
    }

    /// The rows that could be described, as GPUMemNet sees them.
    pub fn memnet_rows(&self, rows: &[&Measurement]) -> Vec<MemnetRow> {
        let described = rows.iter().filter_map(|row| Some((row, self.descriptions[row.subject].as_ref()?)));
        let family = |row: &Measurement| &self.all.subjects[row.subject].family;
        described.map(|(row, (d, _))| MemnetRow::of(family(row), d, row.batch_size, row.reading)).collect()
    }

    /// None: it could not be described.
    pub fn inputs(&self, row: &Measurement) -> Option<Inputs> {
        let (description, basis) = self.descriptions[row.subject].as_ref()?;
        let replay = self.replays.get(&(row.subject, row.batch_size))?;
        let who = &self.all.measured_by[row.by];
        let basis = if who.is_cpu() { Basis::Uncached } else { *basis };
        Some(Inputs {
            held_bytes: if who.while_training { basis.trained_bytes(replay) } else { basis.held_bytes(replay) },
            workspace_bytes: if who.is_cpu() { 0 } else { description.workspace.bytes_at(row.batch_size) },
        })
    }

    /// The rows whose training could be described, as a fit takes them.
    pub fn measured(&self, rows: &[&Measurement]) -> Vec<MeasuredRow> {
        let measured = rows.iter().filter_map(|row| {
            let Inputs { held_bytes, workspace_bytes } = self.inputs(row)?;
            Some(MeasuredRow {
                label: self.label(row),
                family: self.all.subjects[row.subject].family.clone(),
                measured_bytes: row.reading,
                held_bytes,
                workspace_bytes,
            })
        });
        measured.collect()
    }

    /// All coefficients, or the context alone: on a CPU, and where there are too few architectures.
    pub fn fitted(&self, rows: &[&Measurement], who: &Measurer, shipped: &Predictor) -> Result<(MemoryFit, Factors), Unfit> {
        let measured = self.measured(rows);
        if who.is_cpu() {
            return Ok((fit_context(&measured, ONE)?, Factors::One));
        }
        match fit_memory(&measured) {
            Err(Unfit::TooFewFamilies { .. }) if who.simulated => Ok((fit_context(&measured, ONE)?, Factors::One)),
            Err(Unfit::TooFewFamilies { .. }) => Ok((fit_context(&measured, shipped.coefficients)?, Factors::Published)),
            fitted => Ok((fitted?, Factors::Fitted)),
        }
    }

    /// Rows that are beside the largest, though each was to be much larger, are doubted aloud: a run that ended for lack of memory looks
    /// like this.
    pub fn doubt(&self, caller: &dyn Caller, left_out: &[Scored]) {
        let largest = left_out.iter().map(|row| row.measured_bytes).fold(0.0, f64::max);
        let is_short = |row: &&Scored| row.estimate_bytes.is_some_and(|estimate| row.measured_bytes < 0.8 * estimate);
        let found: Vec<&str> = left_out
            .iter()
            .filter(|row| row.measured_bytes > 0.9 * largest)
            .filter(is_short)
            .map(|row| row.label.as_str())
            .collect();
        if !found.is_empty() {
            let (count, few) = (found.len(), found.iter().take(3).copied().collect::<Vec<_>>().join(", "));
            let more = if count > 3 { " …" } else { "" };
            caller.remark(Remark::Warning(format!(
                "{count} of the largest measurements ({few}{more}) are far below what their trainings need: where a run ended for lack of \
                 memory, write `out-of-memory` under `state`"
            )));
        }
    }

    /// Under which these rows were measured.
    pub fn conditions(&self, rows: &[&Measurement], who: &Measurer) -> Conditions {
        let described = || rows.iter().filter_map(|row| self.descriptions[row.subject].as_ref());
        let mut precision: Vec<&str> = described().map(|(d, _)| d.precision.as_str()).collect();
        precision.sort_unstable();
        precision.dedup();
        let is_native = !who.is_cpu() && described().all(|(_, basis)| *basis != Basis::Allocated);
        Conditions {
            precision: Some(precision.join(", ")),
            allocator: is_native.then(|| "native".into()),
            ..who.conditions.clone()
        }
    }

    /// Where these rows are from, each source with their number.
    pub fn source(&self, rows: &[&Measurement], who: &Measurer) -> String {
        if self.is_published {
            let file = published::estimators();
            let cited = file.measured.get(&who.name).and_then(|series| file.sources.get(&series.source));
            return format!("{}, measured by {}: {}", sources::PUBLISHED, who.name, cited.map_or("", String::as_str));
        }
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        rows.iter().for_each(|row| *counted.entry(row.source).or_default() += 1);
        let each = counted.iter().map(|(source, rows)| format!("{}, {rows} rows", self.all.sources[*source]));
        format!("{}, measured by {}", each.collect::<Vec<_>>().join("; "), who.name)
    }
}
