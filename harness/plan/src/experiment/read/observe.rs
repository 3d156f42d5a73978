//! The axis `observe`.

use collo_text::Diagnostic;

use super::ExperimentReader;
use crate::observer::{Observe, Observers};
use collo_text::fields::Fields;

impl ExperimentReader<'_> {
    /// Who watches, as written.
    pub(in crate::experiment) fn observe(&mut self, table: &Fields) -> Vec<Observe> {
        let all = table.list("observe").unwrap_or_default();
        if all.is_empty() {
            return Vec::new();
        }
        let observers = Observers::load(&self.workloads.observers());
        let mut read: Vec<Observe> = Vec::new();
        for found in all {
            match Observe::parse(found.text().unwrap_or_default(), &observers) {
                Ok(observe) => read.push(observe),
                Err(mistakes) => mistakes.iter().for_each(|m| self.wrong(&found.span, m.clone())),
            }
        }
        read
    }

    /// What contradicts somebody who watches.
    pub(super) fn check_observe(&mut self, fields: &Fields, recording: bool) {
        let tables = fields.table("axes").into_iter().chain(fields.tables("zip"));
        let Some((span, all)) = tables.filter_map(|table| Some((table.key_span("observe")?, self.observed_by(table)))).next()
        else {
            return;
        };
        let mut wrong = |what: &str, note: &str| self.wrong(&span, Diagnostic::new(what).note(note));
        if fields.found("search").is_some() {
            wrong("a search compares degrees, and `observe` compares observers", "make two experiments of it");
        }
        if fields.table("until").is_some() {
            wrong(
                "`until` narrows intervals of groups, and watched cells are compared within blocks",
                "`--more 3` adds repetitions",
            );
        }
        let collo = all.iter().any(|text| collo_store::observer_name(text) == collo_store::COLLO_SAMPLES);
        if collo && !recording {
            wrong(
                "`collo` watches by sampling, which `recording = \"off\"` turns off",
                "leave `recording` out: `none` is without sampling",
            );
        }
    }

    fn observed_by(&self, table: &Fields) -> Vec<String> {
        table.get("observe")
    }
}
