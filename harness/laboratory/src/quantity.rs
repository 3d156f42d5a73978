//! Which quantity is meant. In: names of tables. Out: the quantity that their columns tell.

use collo_predict::Quantity;
use collo_text::Diagnostic;

use crate::caller::Caller;
use crate::company::TELLS_PAIRS;
use crate::{lines, sources};

/// Columns that only tables of one quantity have.
const TELLING: [(&str, Quantity); 4] = [
    ("memory_bytes", Quantity::Memory),
    (TELLS_PAIRS[0], Quantity::Company),
    (TELLS_PAIRS[1], Quantity::Company),
    ("sm_active_ratio", Quantity::Utilisation),
];

/// As the first table that tells, in the order of `TELLING`: a table of profiles beside one of pairs serves the pairs.
pub fn of(caller: &dyn Caller, tables: &[String]) -> Result<Quantity, Diagnostic> {
    let mut columns = Vec::new();
    for name in tables.iter().filter(|name| sources::is_csv(name)) {
        columns.extend(first_line(&caller.folder()?.join(name)));
    }
    let told = TELLING.into_iter().find(|(column, _)| columns.iter().any(|has| has == column));
    Ok(told.map_or(Quantity::Memory, |(_, quantity)| quantity))
}

/// Where the first line is looked for: columns and comments above them are shorter.
const FIRST_BYTES: u64 = 1 << 20;

/// The names in the first line that is no comment; none of what cannot be read, which is said when it is read wholly.
fn first_line(path: &std::path::Path) -> Vec<String> {
    let Ok(begin) = collo_text::read_begin(path, FIRST_BYTES) else { return Vec::new() };
    let begin = String::from_utf8_lossy(&begin);
    let mut all = begin.lines();
    all.find(|line| !line.trim_start_matches('\u{feff}').starts_with('#')).map_or(Vec::new(), lines::columns)
}
