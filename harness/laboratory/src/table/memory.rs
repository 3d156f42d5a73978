//! Tables of memory, in bytes or MiB, by what read them. In: a row. Out: its bytes.

use collo_predict::published;
use collo_store::Sharing;
use collo_text::{Diagnostic, quoted};

use super::Reading;
use crate::lines::Row;

/// The columns of memory, each with the bytes of its unit.
const UNITS: [(&str, f64); 2] = [("memory_bytes", 1.0), ("memory_mib", published::MIB)];
/// No training needs as little: such a number is in a larger unit.
const LEAST_BYTES: f64 = 1e6;
/// No device has as much: such a number is in a smaller unit.
const MOST_BYTES: f64 = 1e14;

impl Reading for f64 {
    const EXAMPLE: &'static str = "workload,batch_size,memory_bytes,measured_by";

    fn columns() -> Vec<&'static str> {
        UNITS.iter().map(|(column, _)| *column).chain(["memory_kind"]).collect()
    }

    fn lacking(has: impl Fn(&str) -> bool, is_dataset: bool) -> Vec<String> {
        let no_memory = !UNITS.iter().any(|(column, _)| has(column));
        let no_measurer = !is_dataset && !has("measured_by");
        let lacking = [(no_memory, "`memory_bytes` (or `memory_mib`)"), (no_measurer, "`measured_by`")];
        lacking.into_iter().filter(|(lacks, _)| *lacks).map(|(_, column)| column.to_string()).collect()
    }

    fn unmeasured(row: &Row<'_>) -> Option<&'static str> {
        UNITS.iter().all(|(column, _)| row.get(column).is_empty()).then_some("has no reading of its memory")
    }

    fn of(row: &Row<'_>, _is_dataset: bool, _batch_size: u64) -> Result<f64, Diagnostic> {
        memory(row)?.ok_or_else(|| row.wrong(column(row), "the memory is absent").hint("an absent reading is no row"))
    }

    fn read_by(row: &Row<'_>, is_cpu: bool) -> (String, bool) {
        let (mps, alone) = (Sharing::of_label(row.get("sharing")).mps, row.get("degree") == "1");
        let kind = match row.get("memory_kind") {
            "gpu_memory" => "memory by process",
            "pss" | "pss_peak" => "PSS",
            "rss" => "RSS",
            "peak_rss" => "VmHWM",
            other => other,
        };
        let (shares, how) = match is_cpu {
            true if !alone && kind == "PSS" => (true, " in company"),
            false if mps => (true, " of MPS clients"),
            _ => (false, ""),
        };
        (format!("{kind}{how}"), shares)
    }

    fn with_one_more(self, alike: f64, more: f64) -> f64 {
        (self * alike + more) / (alike + 1.0)
    }

    fn measured_by() -> Option<&'static str> {
        None
    }
}

/// The column that has the memory of a row, or would have it.
fn column(row: &Row<'_>) -> &'static str {
    let has = |column: &&str| !row.get(column).is_empty();
    UNITS.map(|(column, _)| column).into_iter().find(has).unwrap_or(UNITS[0].0)
}

/// The bytes of a row, whichever unit its table has; None: it has no reading.
pub fn memory(row: &Row<'_>) -> Result<Option<f64>, Diagnostic> {
    let given: Vec<(&str, f64)> = UNITS.into_iter().filter(|(column, _)| !row.get(column).is_empty()).collect();
    let (column, unit) = match given[..] {
        [] => return Ok(None),
        [one] => one,
        _ => {
            let wrong = row.wrong(column(row), "the row has its memory in `memory_bytes` and in `memory_mib`");
            return Err(wrong.hint("leave one of the columns out"));
        }
    };
    let text = row.get(column);
    let bytes = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(|n| n * unit);
    let bytes = bytes.ok_or_else(|| {
        row.wrong(column, format!("`{column}` is {}, not a number above 0", quoted(text))).hint("leave out what was not read")
    })?;
    let hint = match (bytes < LEAST_BYTES, bytes > MOST_BYTES) {
        (false, false) => return Ok(Some(bytes)),
        (true, _) => "a number of MiB, as nvidia-smi has it, is written under `memory_mib`",
        (_, true) => "a number of bytes is written under `memory_bytes`",
    };
    let is = if bytes < LEAST_BYTES { "less than any training needs" } else { "more than any device has" };
    Err(row.wrong(column, format!("`{column}` is {}, {is}", quoted(text))).hint(hint))
}
