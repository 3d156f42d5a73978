//! Tables of memory: bytes, by what read them. In: a row. Out: its bytes.

use collo_store::Sharing;
use collo_text::Diagnostic;
use collo_text::quoted;

use super::Reading;
use crate::lines::Row;

/// No training needs as little: a number below is one of MiB, or of GB.
const LEAST_BYTES: f64 = 1e6;
const NEEDED: [&str; 2] = ["memory_bytes", "measured_by"];

impl Reading for f64 {
    const EXAMPLE: &'static str = "workload,batch_size,memory_bytes,measured_by";

    fn columns() -> Vec<&'static str> {
        vec!["memory_bytes", "memory_kind"]
    }

    fn lacking(has: impl Fn(&str) -> bool, is_dataset: bool) -> Vec<String> {
        let is_missing = |name: &&&str| !(has(name) || is_dataset && **name == "measured_by");
        NEEDED.iter().filter(is_missing).map(|name| format!("`{name}`")).collect()
    }

    fn unmeasured(row: &Row<'_>) -> Option<&'static str> {
        row.get("memory_bytes").is_empty().then_some("has no reading of its memory")
    }

    fn of(row: &Row<'_>, _is_dataset: bool, _batch_size: u64) -> Result<f64, Diagnostic> {
        bytes(row)
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

fn bytes(row: &Row<'_>) -> Result<f64, Diagnostic> {
    let text = row.get("memory_bytes");
    let bytes = text.parse::<f64>().ok().filter(|n| n.is_finite());
    let bytes = bytes.ok_or_else(|| {
        row.wrong("memory_bytes", format!("`memory_bytes` is {}, not a number of bytes", quoted(text)))
            .hint("an absent reading is no row")
    })?;
    if bytes < LEAST_BYTES {
        let what = format!("{} bytes are less than any training needs", quoted(text));
        return Err(row.wrong("memory_bytes", what).hint("nvidia-smi counts in MiB: 6684 MiB are 7008681984 bytes"));
    }
    Ok(bytes)
}
