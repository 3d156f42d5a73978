//! `collo schema`: JSON Schemas, generated from the readers' and writers' own types.

use crate::answer::{Answer, Answered};
use crate::args::{self, Kind};

pub fn run(a: &args::Schema) -> Answered {
    Ok(Answer::json(match a.kind {
        Kind::Experiment => collo_plan::schema::experiment(),
        Kind::Workload => collo_plan::schema::workload(),
        Kind::Observer => collo_plan::schema::observer(),
        Kind::Trace => collo_plan::schema::trace(),
        Kind::Gpu => collo_plan::schema::gpu(),
        Kind::Host => collo_plan::schema::host(),
        Kind::Report => collo_guidelines::report_json::schema(),
    }))
}
