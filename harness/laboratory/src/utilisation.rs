//! Utilisation, power and step time. In: measurements of trainings alone, described. Out: the rows of each who measured, as estimators
//! take them; a predictor.

use collo_predict::utilisation::{Row, UtilisationPredictor, fit_utilisation, peaks_of};
use collo_predict::{Conditions, Interval};
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::caller::{Caller, Request};
use crate::described::Described;
use crate::farthest::name_farthest;
use crate::sources;
use crate::table::Profile;

/// Where a table names none.
const USUAL_CARD: &str = "NVIDIA A100-SXM4-40GB";

/// Read the measurements, and describe what was trained. What cannot be described is left out.
pub fn read(caller: &dyn Caller, asked: &Request<'_>) -> Result<Described<Profile>, Diagnostics> {
    let mut described: Described<Profile> = Described::of(caller, asked, sources::read_as(caller, asked.rows)?)?;
    let unnamed = described.all.rows.iter().filter(|row| row.reading.peaks.is_none()).count();
    if unnamed > 0 {
        let text = format!("rows without a `device`: {unnamed}; they are taken to be of {USUAL_CARD}");
        caller.remark(Remark::Warning(text));
    }
    described.keep_described();
    if described.all.rows.is_empty() {
        return Err(Diagnostic::new("no row can be predicted").of_machine().into());
    }
    Ok(described)
}

/// The predictor of this name, and what could not be fitted.
pub fn fit(caller: &dyn Caller, asked: &Request<'_>, name: String) -> Result<(UtilisationPredictor, Vec<String>), Diagnostics> {
    let described = read(caller, asked)?;
    let (by, who) = described.one_of(caller)?;
    let rows = described.rows_alone(by)?;
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let fitted = fit_utilisation(&rows).map_err(unfit)?;
    for (activity, fit) in &fitted.activities {
        let ratio = |(row, said): (&Row, &Option<Interval>)| {
            let log = |percent: f64| percent.ln_1p();
            Some((row.label.clone(), log(row.measured.percent(*activity)?) - log((*said)?.estimate)))
        };
        let ratios: Vec<(String, f64)> = rows.iter().zip(&fit.left_out).filter_map(ratio).collect();
        name_farthest(caller, activity.as_str(), &fit.law.width, &ratios);
    }
    let first = rows.first().filter(|first| rows.iter().all(|row| row.peaks.agrees_with(first.peaks)));
    let conditions = Conditions {
        gpu: who.conditions.gpu.clone().or_else(|| first.map(Row::gpu)),
        precision: Some(described.precision(by)),
        sharing: Some("solo".into()),
        ..who.conditions.clone()
    };
    let (source, mark) = (described.source(by, who), described.mark(who));
    Ok((UtilisationPredictor::new(fitted.law(), name, conditions, source, mark), fitted.without))
}

impl Described<Profile> {
    /// The rows of one who measured.
    pub fn rows_alone(&self, by: usize) -> Result<Vec<Row>, Diagnostic> {
        let usual = peaks_of(USUAL_CARD)?;
        let row = |(row, (description, _)): (&crate::measurements::Measurement<Profile>, &(_, _))| {
            let subject = &self.all.subjects[row.subject];
            let peaks = row.reading.peaks.unwrap_or(usual);
            Row::of(self.label(row), subject.family.clone(), peaks, description, row.batch_size, row.reading.measured)
        };
        Ok(self.described(by).map(row).collect())
    }
}
