//! Predictors of utilisation, power and step time. In: measured rows, each of a training alone. Out: a predictor, or scores.

mod evaluate;
mod fit;

use collo_predict::Conditions;
use collo_predict::utilisation::{Row, peaks_of};
use collo_text::{Diagnostic, Diagnostics, Remark};

pub use evaluate::{Judged, ProtocolScores, judged, protocols};
pub use fit::fit;

use crate::caller::{Caller, Request};
use crate::describing;
use crate::measurements::{Measurement, Measurements, Measurer};
use crate::sources;
use crate::table::Profile;

/// Where a table names none.
const USUAL_CARD: &str = "NVIDIA A100-SXM4-40GB";

/// The rows of one who measured, each with what its prediction takes.
pub struct Profiled {
    pub who: Measurer,
    pub rows: Vec<Row>,
    /// Of each row, its source.
    sources: Vec<String>,
    precisions: Vec<String>,
}

/// Read the measurements, and describe what was trained: the rows of each who measured.
pub fn profiled(caller: &dyn Caller, asked: &Request<'_>) -> Result<Vec<Profiled>, Diagnostics> {
    let mut all: Measurements<Profile> = sources::read_as(caller, asked.rows)?;
    if let Some(who) = asked.measured_by {
        all = all.of(who)?;
    }
    let descriptions = describing::traced(caller, asked, &mut all)?;
    let usual = peaks_of(USUAL_CARD)?;
    let unnamed = all.rows.iter().filter(|row| row.reading.peaks.is_none()).count();
    if unnamed > 0 {
        let text = format!("{unnamed} rows name no `device`: they are taken to be of {USUAL_CARD}");
        caller.remark(Remark::Warning(text));
    }
    let profiled = all.measurers().into_iter().map(|(by, who)| {
        let mut of_one = Profiled { who: who.clone(), rows: Vec::new(), sources: Vec::new(), precisions: Vec::new() };
        for row in all.rows.iter().filter(|row| row.by == by) {
            let Measurement { subject, batch_size, reading, source, .. } = *row;
            let Some((description, _)) = &descriptions[subject] else { continue };
            let subject = &all.subjects[subject];
            let label = format!("{} b{batch_size}", subject.name());
            let peaks = reading.peaks.unwrap_or(usual);
            of_one.rows.push(Row::of(label, subject.family.clone(), peaks, description, batch_size, reading.measured));
            of_one.sources.push(all.sources[source].clone());
            of_one.precisions.push(description.precision.clone());
        }
        of_one
    });
    let profiled: Vec<Profiled> = profiled.filter(|of_one| !of_one.rows.is_empty()).collect();
    if profiled.is_empty() {
        return Err(Diagnostic::new("no row can be predicted").of_machine().into());
    }
    Ok(profiled)
}

impl Profiled {
    /// Under which these rows were measured.
    pub fn conditions(&self) -> Conditions {
        let mut precisions = self.precisions.clone();
        precisions.sort_unstable();
        precisions.dedup();
        let first = self.rows.first().filter(|first| self.rows.iter().all(|row| row.peaks.agrees_with(first.peaks)));
        Conditions {
            gpu: self.who.conditions.gpu.clone().or_else(|| first.map(Row::gpu)),
            precision: Some(precisions.join(", ")),
            sharing: Some("solo".into()),
            ..self.who.conditions.clone()
        }
    }

    /// Where these rows are from, each source with their number.
    pub fn source(&self) -> String {
        let mut counted: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        self.sources.iter().for_each(|source| *counted.entry(source).or_default() += 1);
        let each: Vec<String> = counted.iter().map(|(source, rows)| format!("{source}, {rows} rows")).collect();
        format!("{}, measured by {}", each.join("; "), self.who.name)
    }
}
