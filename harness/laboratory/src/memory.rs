//! Memory. In: measurements, described. Out: the cases of each who measured, as estimators take them; a predictor.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use collo_plan::predictors;
use collo_predict::{
    Basis, Conditions, Description, FEWEST_TO_FIT, Factors, MemoryCase, MemoryCases, MemoryPredictor, Replay, Scored,
    TargetDevice, published, replay,
};
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::caller::{Caller, Request};
use crate::described::Described;
use crate::farthest::name_farthest;
use crate::measurements::{Measurement, Measurer, Trained};
use crate::sources;

/// Read the measurements, and describe what was trained.
pub fn read(caller: &dyn Caller, asked: &Request<'_>) -> Result<Described<f64>, Diagnostics> {
    Described::of(caller, asked, sources::read(caller, asked.rows)?)
}

/// The predictor of this name.
pub fn fit(caller: &dyn Caller, asked: &Request<'_>, name: String) -> Result<MemoryPredictor, Diagnostics> {
    let described = read(caller, asked)?;
    let (by, who) = described.one_of(caller)?;
    let shipped = predictors::find_of(&caller.project()?, &caller.folder()?, predictors::SHIPPED)?;
    let unfit = |why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why);
    let fitted = described.cases(by, who)?.fit(&shipped).map_err(unfit)?;
    doubt(caller, &fitted.left_out);
    let ratio = |row: &Scored| Some((row.label.clone(), (row.measured_bytes / row.estimate_bytes?).ln()));
    let ratios: Vec<(String, f64)> = fitted.left_out.iter().filter_map(ratio).collect();
    name_farthest(caller, "memory", &fitted.law.width, &ratios);
    let law = fitted.law;
    if law.factors != Factors::Fitted && !who.is_cpu() {
        caller.remark(Remark::Note(format!(
            "only the context is fitted: {} architectures are too few for the factors, which take {FEWEST_TO_FIT}",
            law.width.families
        )));
    }
    let is_native = !who.is_cpu() && described.described(by).all(|(_, (_, basis))| *basis != Basis::Allocated);
    let conditions = Conditions {
        precision: Some(described.precision(by)),
        allocator: is_native.then(|| "native".into()),
        ..who.conditions.clone()
    };
    let (source, mark) = (described.source(by, who), described.mark(who));
    Ok(MemoryPredictor::new(law, name, conditions, source, mark))
}

/// Rows that are beside the largest, though each was to be much larger, are doubted aloud: a run that ended for lack of memory looks
/// like this.
pub fn doubt(caller: &dyn Caller, left_out: &[Scored]) {
    let largest = left_out.iter().map(|row| row.measured_bytes).fold(0.0, f64::max);
    let is_short = |row: &&Scored| row.estimate_bytes.is_some_and(|estimate| row.measured_bytes < 0.8 * estimate);
    let found: Vec<&str> =
        left_out.iter().filter(|row| row.measured_bytes > 0.9 * largest).filter(is_short).map(|row| row.label.as_str()).collect();
    if !found.is_empty() {
        let (count, few) = (found.len(), found.iter().take(3).copied().collect::<Vec<_>>().join(", "));
        let more = if count > 3 { " …" } else { "" };
        caller.remark(Remark::Warning(format!(
            "{count} of the largest measurements ({few}{more}) are far below what their trainings need: where a run ended for lack of \
             memory, write `out-of-memory` under `state`"
        )));
    }
}

impl Described<f64> {
    /// All rows of one who measured, each with what the formula takes of it.
    pub fn cases(&self, by: usize, who: &Measurer) -> Result<MemoryCases<'_>, Diagnostic> {
        let mut replays: BTreeMap<(usize, u64), Replay> = BTreeMap::new();
        let mut all = Vec::new();
        for row in self.rows(by) {
            let described = self.description(row);
            let mut inputs = None;
            if let Some((description, basis)) = described {
                let key = (row.subject, row.batch_size);
                let replay = match replays.entry(key) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(replay(description, row.batch_size)?),
                };
                inputs = Some(inputs_of(row.batch_size, description, *basis, replay, who));
            }
            all.push(MemoryCase {
                label: self.label(row),
                family: &self.all.subjects[row.subject].family,
                batch: row.batch_size,
                measured_bytes: row.reading,
                description: described.map(|(description, _)| description),
                inputs,
                published: self.published(row),
            });
        }
        let device = if who.is_cpu() { TargetDevice::Cpu } else { TargetDevice::Gpu };
        Ok(MemoryCases { all, device, simulated: who.simulated, is_published: self.is_published() })
    }

    fn published(&self, row: &Measurement) -> Option<&'static published::PublishedJob> {
        let Trained::Model(model) = &self.all.subjects[row.subject].what else { return None };
        let is_it = |job: &&published::PublishedJob| {
            job.model == model.model && model.input.as_ref() == Some(&job.input) && u64::from(job.batch_size) == row.batch_size
        };
        published::estimators().jobs.iter().find(is_it)
    }
}

/// R and X of the formula.
fn inputs_of(batch_size: u64, description: &Description, basis: Basis, replay: &Replay, who: &Measurer) -> (u64, u64) {
    let basis = if who.is_cpu() { Basis::Uncached } else { basis };
    let held_bytes = if who.while_training { basis.trained_bytes(replay) } else { basis.held_bytes(replay) };
    (held_bytes, if who.is_cpu() { 0 } else { description.workspace.bytes_at(batch_size) })
}
