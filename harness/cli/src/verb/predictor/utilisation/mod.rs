//! Predictors of utilisation, power and step time. In: measured rows, each of a training alone. Out: a predictor file, or scores.

mod evaluate;
mod fit;
mod show;

use collo_predict::Conditions;
use collo_predict::utilisation::{Row, peaks_of};
use collo_text::{Diagnostic, Diagnostics};

pub use evaluate::evaluate;
pub use fit::fit;
pub use show::{in_full, left_out};

use super::describing;
use super::measurements::{Measurement, Measurements, Measurer};
use super::sources;
use super::table::Profile;
use crate::args::Evaluate;
use crate::output;
use crate::verb::Context;

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
pub fn profiled(context: &Context<'_>, asked: &Evaluate) -> Result<Vec<Profiled>, Diagnostics> {
    let mut all: Measurements<Profile> = sources::read_as(context, &asked.rows)?;
    if let Some(who) = &asked.measured_by {
        all = all.of(who)?;
    }
    let descriptions = describing::traced(context, asked, &mut all)?;
    let usual = peaks_of(USUAL_CARD)?;
    let unnamed = all.rows.iter().filter(|row| row.reading.peaks.is_none()).count();
    if unnamed > 0 {
        output::warning(format!("{unnamed} rows name no `device`: they are taken to be of {USUAL_CARD}"));
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
    fn conditions(&self) -> Conditions {
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
    fn source(&self) -> String {
        let mut counted: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        self.sources.iter().for_each(|source| *counted.entry(source).or_default() += 1);
        let each: Vec<String> = counted.iter().map(|(source, rows)| format!("{source}, {rows} rows")).collect();
        format!("{}, measured by {}", each.join("; "), self.who.name)
    }
}
