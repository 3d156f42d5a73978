//! Measurements, a row for each training, whatever they were read from: what was trained, each once, and by whom it was measured. What was
//! read of it is bytes of memory, or whatever else a predictor is fitted on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use collo_plan::cell::Member;
use collo_predict::{Conditions, TargetDevice, published};
use collo_prepare::describe::NamedModel;
use collo_text::{Diagnostic, quoted};

/// A training without its batch size.
#[derive(Debug, Clone)]
pub struct Subject {
    pub what: Trained,
    /// Architectures of one family are predicted by what was fitted on the others.
    pub family: String,
    /// Whether a table names the family; else it is the letters of a name, until a description knows better.
    pub family_is_given: bool,
}

#[derive(Debug, Clone)]
pub enum Trained {
    Member(Arc<Member>),
    Model(NamedModel),
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement<R = f64> {
    /// An index of the subjects.
    pub subject: usize,
    pub batch_size: u64,
    /// Of memory bytes.
    pub reading: R,
    /// An index of `measured_by`.
    pub by: usize,
    /// An index of the sources.
    pub source: usize,
}

/// Who measured, or what: figures of two are never mixed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurer {
    pub name: String,
    pub simulated: bool,
    /// What all its rows have in common.
    pub conditions: Conditions,
    /// It was read while the members trained, and the warm-up is not in it.
    pub while_training: bool,
    /// Its members needed less than alone: clients of MPS share a context, processes on a CPU the pages of their libraries.
    pub shares: bool,
    /// It is a table that collo did not measure.
    pub is_table: bool,
}

/// Measurements from one source or several.
#[derive(Debug)]
pub struct Measurements<R = f64> {
    pub subjects: Vec<Subject>,
    pub rows: Vec<Measurement<R>>,
    pub measured_by: Vec<Measurer>,
    /// Files and campaigns, with their digests.
    pub sources: Vec<String>,
    /// Rows that are not compared, by their reason.
    pub left_out: BTreeMap<&'static str, usize>,
    pub warnings: Vec<String>,
    /// Subjects by their keys: a table has many rows of few.
    known: HashMap<String, usize>,
}

impl Subject {
    /// `tiny`, `timm:resnet50`.
    pub fn name(&self) -> &str {
        match &self.what {
            Trained::Member(member) => &member.workload().name,
            Trained::Model(model) => &model.model,
        }
    }

    /// Equal for two subjects that are one.
    fn key(&self) -> String {
        match &self.what {
            Trained::Member(member) => format!("w {}", member.key()),
            Trained::Model(model) => format!("m {model:?}"),
        }
    }
}

impl Measurer {
    pub fn is_cpu(&self) -> bool {
        self.conditions.device == TargetDevice::Cpu
    }
}

impl<R> Default for Measurements<R> {
    fn default() -> Self {
        Measurements {
            subjects: Vec::new(),
            rows: Vec::new(),
            measured_by: Vec::new(),
            sources: Vec::new(),
            left_out: BTreeMap::new(),
            warnings: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl Measurements {
    /// Of the published jobs, both measurements.
    pub fn published() -> Measurements {
        let mut all = Measurements::default();
        let file = published::estimators();
        for job in &file.jobs {
            let model = NamedModel {
                model: job.model.clone(),
                input: Some(job.input.clone()),
                classes: job.classes,
                optimizer: job.optimizer.clone(),
                precision: "fp32".into(),
            };
            let subject = all.subject(Subject { what: Trained::Model(model), family: job.family.clone(), family_is_given: true });
            for (who, mib) in &job.measured_mib {
                let conditions = Conditions {
                    gpu: Some(file.device.clone()),
                    architecture: Some("ampere".into()),
                    sharing: Some("solo".into()),
                    ..Conditions::default()
                };
                let by = all.by(Measurer { name: who.clone(), conditions, ..Measurer::default() });
                let (batch_size, reading) = (u64::from(job.batch_size), mib * published::MIB);
                all.rows.push(Measurement { subject, batch_size, reading, by, source: 0 });
            }
        }
        all
    }

    /// Memory that shrinks as the batch grows is that of a training that ended early: an undeclared want of memory.
    pub fn shrinking(&mut self) {
        let mut by_job: BTreeMap<(usize, usize), Vec<(u64, f64)>> = BTreeMap::new();
        for row in &self.rows {
            by_job.entry((row.by, row.subject)).or_default().push((row.batch_size, row.reading));
        }
        let mut found = BTreeSet::new();
        for ((_, subject), mut rows) in by_job {
            rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            // Within 2 % it is the noise of a reading.
            if rows.windows(2).any(|pair| pair[1].0 > pair[0].0 && pair[1].1 < 0.98 * pair[0].1) {
                found.insert(self.subjects[subject].name().to_string());
            }
        }
        if !found.is_empty() {
            let few: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
            let more = if found.len() > few.len() { " …" } else { "" };
            self.warnings.push(format!(
                "of {} ({}{more}) a larger batch took less memory: where a run ended for lack of it, write `out-of-memory` under `state`",
                if found.len() == 1 { "a training".to_string() } else { format!("{} trainings", found.len()) },
                few.join(", ")
            ));
        }
    }
}

impl<R> Measurements<R> {
    pub fn subject(&mut self, subject: Subject) -> usize {
        *self.known.entry(subject.key()).or_insert_with(|| {
            self.subjects.push(subject);
            self.subjects.len() - 1
        })
    }

    pub fn by(&mut self, who: Measurer) -> usize {
        match self.measured_by.iter().position(|known| known.name == who.name) {
            Some(place) => {
                self.measured_by[place].conditions.join(&who.conditions);
                place
            }
            None => {
                self.measured_by.push(who);
                self.measured_by.len() - 1
            }
        }
    }

    pub fn leave_out(&mut self, reason: &'static str) {
        *self.left_out.entry(reason).or_default() += 1;
    }

    /// Only the rows of one source.
    pub fn of(mut self, who: &str) -> Result<Measurements<R>, Diagnostic> {
        let Some(by) = self.measured_by.iter().position(|known| known.name == who) else {
            let known: Vec<String> = self.measured_by.iter().map(|by| format!("`{}`", by.name)).collect();
            let what = Diagnostic::new(format!("no row was measured by {}", quoted(who)));
            return Err(what.hint(format!("`--measured-by` is one of {}", known.join(", "))));
        };
        self.rows.retain(|row| row.by == by);
        Ok(self)
    }

    /// Those who measured something that is compared.
    pub fn measurers(&self) -> Vec<(usize, &Measurer)> {
        let found: BTreeSet<usize> = self.rows.iter().map(|row| row.by).collect();
        found.into_iter().map(|by| (by, &self.measured_by[by])).collect()
    }
}
