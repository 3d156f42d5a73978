//! The rows at the ends of an interval or beyond, which decide its width. In: the width, and how far each row is from its estimate. Out: a
//! remark.

use collo_predict::Width;
use collo_text::Remark;

use crate::caller::Caller;

const MOST_NAMED: usize = 5;

/// Name the rows at the ends of an interval or beyond: a mistake in a table is among them. `rows`: of each its name, and the
/// logarithm of measured over estimated.
pub fn name_farthest(caller: &dyn Caller, what: &str, width: &Width, rows: &[(String, f64)]) {
    let places = width.decided_by(&rows.iter().map(|(_, log)| *log).collect::<Vec<f64>>());
    if places.is_empty() {
        return;
    }
    let named = |place: &usize| format!("{} (× {:.2})", rows[*place].0, rows[*place].1.exp());
    let few: Vec<String> = places.iter().take(MOST_NAMED).map(named).collect();
    let more = if places.len() > MOST_NAMED { "; …" } else { "" };
    caller.remark(Remark::Note(format!(
        "{} of {} rows are at the ends of the 95 % interval of {what}, or beyond it (measured ÷ estimated): {}{more}",
        places.len(),
        rows.len(),
        few.join("; ")
    )));
}
