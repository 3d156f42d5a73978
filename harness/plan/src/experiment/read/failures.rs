//! What an experiment says of failures: which are measured again, and which are expected; and the conditions on cells.

use std::collections::BTreeSet;

use collo_store::Expectation;
use collo_text::Diagnostic;

use super::ExperimentReader;
use crate::experiment::{ExpectedFailure, RetryBudget};
use crate::select::Expression;
use collo_text::fields::Fields;

impl ExperimentReader<'_> {
    /// The `where` of a table: a condition on cells.
    pub(super) fn condition(&mut self, table: &Fields, what: &str, settings: &BTreeSet<String>) -> Option<Expression> {
        let Some(found) = table.found("where") else {
            let header = table.span.start..table.span.start + 2;
            self.wrong(&header, Diagnostic::new(format!("{what} has no `where`")).note("as in `where = \"degree > 4\"`"));
            return None;
        };
        let text = found.text().unwrap_or_default();
        let read = Expression::parse("where", text)
            .and_then(|e| if self.mistakes.is_empty() { e.check(settings).map(|()| e) } else { Ok(e) });
        match read {
            Ok(expression) => Some(expression),
            // A string without escapes holds its own text one character in, so that the carets can point into it.
            Err(mistake) => {
                let inside = found.span.start + 1..found.span.end.saturating_sub(1);
                let plain = self.source.text().get(inside.clone()) == Some(text);
                self.mistakes.push(mistake.moved(self.source, &found.span, plain.then_some(inside.start)));
                None
            }
        }
    }

    pub(super) fn expected(&mut self, table: &Fields, settings: &BTreeSet<String>) -> Option<ExpectedFailure> {
        let condition = self.condition(table, "an expected failure", settings);
        let header = table.span.start..table.span.start + 2;
        for (key, example) in [("outcome", "out_of_memory"), ("reason", "seven do not fit 40 GB")] {
            if table.found(key).is_none() && table.key_span(key).is_none() && self.mistakes.is_empty() {
                let what = Diagnostic::new(format!("an expected failure has no `{key}`"));
                self.wrong(&header, what.note(format!("as in `{key} = \"{example}\"`")));
            }
        }
        let text = |key: &str| table.text(key).map(str::to_string);
        let expectation = Expectation { outcome: text("outcome")?, reason: text("reason")? };
        Some(ExpectedFailure { condition: condition?, expectation })
    }
}

pub(super) fn retries(table: Option<&Fields>) -> RetryBudget {
    let Some(table) = table else { return RetryBudget::default() };
    RetryBudget { each: table.get::<Option<_>>("each").unwrap_or(1), total: table.get::<Option<_>>("total").unwrap_or(5) }
}
