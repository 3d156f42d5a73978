//! `collo schema`: JSON Schemas, generated from the readers' and writers' own types.

use super::Ended;
use crate::args::{self, Kind};
use crate::{exit, output};

pub fn run(a: &args::Schema) -> Ended {
    output::json(&match a.kind {
        Kind::Experiment => collo_measure::schema::experiment(),
        Kind::Workload => collo_measure::schema::workload(),
        Kind::Observer => collo_measure::schema::observer(),
        Kind::Trace => collo_measure::schema::trace(),
        Kind::Gpu => collo_measure::schema::gpu(),
        Kind::Host => collo_measure::schema::host(),
        Kind::Report => collo_guidelines::report_json::schema(),
    });
    Ok(exit::DONE)
}
