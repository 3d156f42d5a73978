//! Reference values of an experiment, and the width wanted of intervals.

use collo_quantity::number;
use collo_store::{Reference, WantedWidth};
use collo_text::Diagnostic;

use super::{Experiment, ExperimentReader, keys};
use collo_text::fields::Fields;

impl ExperimentReader<'_> {
    /// `until`, which can be reached: with a width, and not capped below the planned repetitions.
    pub(super) fn until(&mut self, fields: &Fields) -> Option<WantedWidth> {
        let table = &fields.table("until")?.or_defaults(&keys::UNTIL);
        let span = fields.key_span("until").unwrap_or(table.span.clone());
        if table.found("width").is_none() && table.key_span("width").is_none() && self.mistakes.is_empty() {
            self.wrong(&span, Diagnostic::new("`until` has no `width`").note("as in `until = { width = \"5%\" }`"));
        }
        if let Some(found) = table.found("width").filter(|_| table.get::<Option<f64>>("width").is_some_and(|width| width <= 0.0))
        {
            self.wrong(&found.span, Diagnostic::new("no interval is as narrow as that").note("as in `width = \"5%\"`"));
        }
        if fields.found("search").is_some() {
            let why = "a search measures to find what fits, not how fast it is";
            self.wrong(&span, Diagnostic::new("`until` and `search` exclude each other").note(why));
        }
        let (planned, at_most) = (Experiment::from_fields(fields).repetitions, table.get::<u32>("at_most"));
        if at_most < planned {
            let allowed = number::count(at_most as usize, "repetition");
            let what = format!("`until` allows {allowed} of a cell, and {planned} are planned");
            self.wrong(&span, Diagnostic::new(what).note("raise `at_most`, or lower `repetitions`"));
        }
        Some(WantedWidth { quantity: table.get("quantity"), width_ratio: table.get::<Option<_>>("width")?, at_most })
    }

    /// One `[[reference]]`; without one of its parts it is a mistake.
    pub(super) fn reference(&mut self, table: &Fields) -> Option<Reference> {
        let header = table.span.start..table.span.start + 2;
        let parts =
            [("cell", "\"tiny×2 naive b32\""), ("quantity", "\"throughput_gain\""), ("value", "1.9"), ("tolerance", "\"5%\"")];
        for (key, example) in parts {
            if table.found(key).is_none() && table.key_span(key).is_none() && self.mistakes.is_empty() {
                let what = Diagnostic::new(format!("a reference value has no `{key}`"));
                self.wrong(&header, what.note(format!("as in `{key} = {example}`")));
            }
        }
        let text = |key: &str| table.text(key).map(str::to_string);
        Some(Reference {
            cell: text("cell")?,
            quantity: text("quantity")?,
            value: table.get::<Option<_>>("value")?,
            tolerance_ratio: table.get::<Option<_>>("tolerance")?,
            device: text("device"),
        })
    }
}
