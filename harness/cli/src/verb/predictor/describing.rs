//! The trainings of a table described: what each does in a step, and of what family it is. In: measurements. Out: a description each;
//! what cannot be described is said, and its rows are left out.

use std::collections::BTreeSet;

use collo_measure::{Describable, Describer, basis_of};
use collo_predict::{Basis, Description};
use collo_store::Diagnostics;

use super::measurements::{Measurements, Subject, Trained};
use crate::output;

/// So many are described while one waits.
const FEW: usize = 20;

/// Of each subject; None also where no row needs it. Families become what the descriptions say, where the table names none.
pub fn described(describer: &Describer<'_>, all: &mut Measurements) -> Result<Vec<Option<(Description, Basis)>>, Diagnostics> {
    let needed: BTreeSet<usize> = all.rows.iter().map(|row| row.subject).collect();
    let describable: Vec<Describable<'_>> = needed.iter().map(|place| describable(&all.subjects[*place])).collect();
    let answers = describer.all(&describable, &mut |new| {
        if new > FEW {
            output::note(format!("{new} trainings are traced, once each: about a second of a core for one"));
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
                output::failure(&why.into());
                output::warning(format!("the rows of `{}` are left out", subject.name()));
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
