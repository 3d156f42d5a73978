//! Measurements with what was trained described: what each does in a step, and of what family it is. In: measurements. Out: their rows with
//! descriptions; what cannot be described is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use collo_predict::{Basis, Description, Mark, published};
use collo_prepare::consent::DescribeConsent;
use collo_prepare::describe::{Describable, Describer, Traced, basis_of};
use collo_text::units::about;
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::caller::{Caller, Request};
use crate::measurements::{Measurement, Measurements, Measurer, Subject, Trained};
use crate::sources::PUBLISHED;

/// How a training is described, and which memory the formula takes of it.
type DescribedTraining = (Description, Basis);

/// Measurements, each of a training that is described if that is possible.
pub struct Described<R> {
    pub all: Measurements<R>,
    /// Of each subject; absent if it cannot be described.
    descriptions: Vec<Option<DescribedTraining>>,
}

/// So many are described while one waits.
const FEW: usize = 20;
/// How often it is reported how many trainings are traced.
const REPORT_EVERY: Duration = Duration::from_secs(20);

impl<R> Described<R> {
    /// Those of who was asked for, with the Python that was asked for. The warnings of the reading are reported first.
    pub fn of(caller: &dyn Caller, asked: &Request<'_>, all: Measurements<R>) -> Result<Described<R>, Diagnostics> {
        let mut all = match asked.measured_by {
            Some(who) => all.of(who)?,
            None => all,
        };
        all.warnings.iter().for_each(|text| caller.remark(Remark::Warning(text.clone())));
        for (reason, rows) in &all.left_out {
            caller.remark(Remark::Note(format!("rows that are not compared: {rows}; each {reason}")));
        }
        let mut workloads = Vec::new();
        for subject in &all.subjects {
            if let Trained::Member(member) = &subject.what {
                workloads.push(Arc::clone(member.workload()));
            }
        }
        let by_name = all.subjects.iter().any(|s| matches!(s.what, Trained::Model(_)));
        let project = caller.project()?;
        let consent = DescribeConsent::of(&project, asked.describe || asked.fresh).ok_or_else(|| {
            Diagnostic::new("nothing is described: that starts scripts of this project, in which you ran nothing yet")
                .hint("`--describe` starts them, as `collo run` does")
        })?;
        let mut display = caller.display();
        let describer = Describer::new(&project, &workloads, by_name, asked.python, asked.fresh, consent, &mut *display);
        drop(display);
        let descriptions = described(caller, &describer?, &mut all)?;
        if descriptions.iter().all(Option::is_none) {
            return Err(Diagnostic::new("nothing could be described, so nothing can be compared").of_machine().into());
        }
        Ok(Described { all, descriptions })
    }

    /// Leaves out the rows of what cannot be described.
    pub fn keep_described(&mut self) {
        let descriptions = &self.descriptions;
        self.all.rows.retain(|row| descriptions[row.subject].is_some());
    }

    pub fn rows(&self, by: usize) -> impl Iterator<Item = &Measurement<R>> {
        self.all.rows.iter().filter(move |row| row.by == by)
    }

    pub fn description(&self, row: &Measurement<R>) -> Option<&DescribedTraining> {
        self.descriptions[row.subject].as_ref()
    }

    /// For people: the name of what was trained, and its batch size.
    pub fn label(&self, row: &Measurement<R>) -> String {
        match self.description(row) {
            // They have one name in common.
            Some((Description { generated: Some(drawn), parameters, .. }, _)) => {
                format!("{} {}, {parameters} parameters b{}", drawn.kind, drawn.shape, row.batch_size)
            }
            _ => format!("{} b{}", self.all.subjects[row.subject].name(), row.batch_size),
        }
    }

    /// The rows of one who measured that are described.
    pub fn described(&self, by: usize) -> impl Iterator<Item = (&Measurement<R>, &DescribedTraining)> {
        self.rows(by).filter_map(|row| Some((row, self.description(row)?)))
    }

    /// Whether these are the published jobs, which are of no file and no campaign.
    pub fn is_published(&self) -> bool {
        self.all.sources.is_empty()
    }

    /// Who measured. One source of measurements for one fit: two that differ by what else was on the device are no scatter. Of those whose
    /// members needed less than alone no predictor is wanted while there are others.
    pub fn one_of(&self, caller: &dyn Caller) -> Result<(usize, &Measurer), Diagnostic> {
        let all = self.all.measurers();
        let alone: Vec<(usize, &Measurer)> = all.iter().copied().filter(|(_, who)| !who.shares).collect();
        match (&all[..], &alone[..]) {
            ([one], _) => Ok(*one),
            (_, [one]) => {
                for (by, who) in all.iter().filter(|(_, who)| who.shares) {
                    let rows = self.rows(*by).count();
                    let why = format!("they are {}, whose members need less than alone", who.name);
                    caller.remark(Remark::Note(format!("rows that are not fitted: {rows}; {why}")));
                }
                Ok(*one)
            }
            _ => {
                let list = all.iter().map(|(_, who)| format!("`{}`", who.name)).collect::<Vec<_>>().join(", ");
                let wrong = Diagnostic::new(format!("the rows are measured by {list}: a fit mixes no sources"));
                let first = all.first().map_or("", |(_, who)| who.name.as_str());
                Err(wrong.hint(format!("one predictor for each: `--measured-by \"{first}\"` chooses one")))
            }
        }
    }

    /// The precisions of the rows of one who measured.
    pub fn precision(&self, by: usize) -> String {
        let all: BTreeSet<&str> = self.described(by).map(|(_, (description, _))| description.precision.as_str()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    }

    pub fn mark(&self, who: &Measurer) -> Mark {
        match self.is_published() {
            true => Mark::Published,
            false if who.simulated => Mark::Simulated,
            false if who.is_table => Mark::Table,
            false => Mark::Own,
        }
    }

    /// Where the rows of one who measured are from, each source with their number.
    pub fn source(&self, by: usize, who: &Measurer) -> String {
        if self.is_published() {
            let file = published::estimators();
            let cited = file.measured.get(&who.name).and_then(|series| file.sources.get(&series.source));
            return format!("{PUBLISHED}, measured by {}: {}", who.name, cited.map_or("", String::as_str));
        }
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        self.described(by).for_each(|(row, _)| *counted.entry(row.source).or_default() += 1);
        let each = counted.iter().map(|(source, rows)| format!("{}, {rows} rows", self.all.sources[*source]));
        format!("{}, measured by {}", each.collect::<Vec<_>>().join("; "), who.name)
    }
}

/// Of each subject; None also where no row needs it. Families become what the descriptions say, where the table names none.
fn described<R>(
    caller: &dyn Caller,
    describer: &Describer<'_>,
    all: &mut Measurements<R>,
) -> Result<Vec<Option<DescribedTraining>>, Diagnostics> {
    let needed: BTreeSet<usize> = all.rows.iter().map(|row| row.subject).collect();
    let describable: Vec<Describable<'_>> = needed.iter().map(|place| describable(&all.subjects[*place])).collect();
    let (begun, mut reported) = (Instant::now(), Instant::now());
    let answers = describer.all(&describable, &mut |Traced { done, of }| {
        let note = |text: String| caller.remark(Remark::Note(text));
        if done == 0 && of > FEW {
            note(format!("{of} trainings are traced, once each"));
        } else if done > 0 && reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            let left_s = begun.elapsed().as_secs_f64() * (of - done.min(of)) as f64 / done as f64;
            note(format!("{done} of {of} trainings are traced, {} left", about(left_s)));
        }
    })?;
    let mut descriptions: Vec<Option<DescribedTraining>> = all.subjects.iter().map(|_| None).collect();
    for (place, answer) in needed.into_iter().zip(answers) {
        let subject = &mut all.subjects[place];
        match answer {
            Ok(description) => {
                if let (Some(drawn), false) = (&description.generated, subject.family_is_given) {
                    subject.family = format!("generated {} {}", drawn.kind, drawn.shape);
                }
                let basis = match &subject.what {
                    Trained::Member(member) => basis_of(member),
                    Trained::Model(_) => Basis::Reserved,
                };
                descriptions[place] = Some((description, basis));
            }
            Err(why) => {
                caller.remark(Remark::Failure(why.into()));
                caller.remark(Remark::Warning(format!("the rows of `{}` are left out", subject.name())));
            }
        }
    }
    Ok(descriptions)
}

fn describable(subject: &Subject) -> Describable<'_> {
    match &subject.what {
        Trained::Member(member) => Describable::Member(member),
        Trained::Model(model) => Describable::Model(model),
    }
}
