//! The trainings of a table described: what each does in a step, and of what family it is. In: measurements. Out: a description each;
//! what cannot be described is said, and its rows are left out.

use std::collections::BTreeSet;
use std::sync::Arc;

use collo_predict::{Basis, Description};
use collo_prepare::describe::{Describable, Describer, basis_of};
use collo_text::{Diagnostic, Diagnostics, Remark};

use crate::caller::{Caller, Request};
use crate::measurements::{Measurements, Subject, Trained};

/// So many are described while one waits.
const FEW: usize = 20;

/// Of each subject, with the Python that was asked for. The warnings of the reading are said first.
pub fn traced<R>(
    caller: &dyn Caller,
    asked: &Request<'_>,
    all: &mut Measurements<R>,
) -> Result<Vec<Option<(Description, Basis)>>, Diagnostics> {
    all.warnings.iter().for_each(|text| caller.remark(Remark::Warning(text.clone())));
    for (reason, rows) in &all.left_out {
        caller.remark(Remark::Note(format!("{rows} rows are not compared: each {reason}")));
    }
    let mut workloads = Vec::new();
    for subject in &all.subjects {
        if let Trained::Member(member) = &subject.what {
            workloads.push(Arc::clone(member.workload()));
        }
    }
    let by_name = all.subjects.iter().any(|s| matches!(s.what, Trained::Model(_)));
    let project = caller.project()?;
    let mut display = caller.display();
    let describer = Describer::new(&project, &workloads, by_name, asked.python, asked.fresh, &mut *display);
    drop(display);
    let descriptions = described(caller, &describer?, all)?;
    if descriptions.iter().all(Option::is_none) {
        return Err(Diagnostic::new("nothing could be described, so nothing can be compared").of_machine().into());
    }
    Ok(descriptions)
}

/// Of each subject; None also where no row needs it. Families become what the descriptions say, where the table names none.
fn described<R>(
    caller: &dyn Caller,
    describer: &Describer<'_>,
    all: &mut Measurements<R>,
) -> Result<Vec<Option<(Description, Basis)>>, Diagnostics> {
    let needed: BTreeSet<usize> = all.rows.iter().map(|row| row.subject).collect();
    let describable: Vec<Describable<'_>> = needed.iter().map(|place| describable(&all.subjects[*place])).collect();
    let answers = describer.all(&describable, &mut |new| {
        if new > FEW {
            caller.remark(Remark::Note(format!("{new} trainings are traced, once each: about a second of a core for one")));
        }
    })?;
    let mut descriptions: Vec<Option<(Description, Basis)>> = all.subjects.iter().map(|_| None).collect();
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
