//! Parts of texts about sides.

/// Rows of a table in a terminal.
pub const ROWS: usize = 60;

/// The line about what is not shown in a terminal.
pub fn more(all: usize, shown: usize, what: &str) -> Option<String> {
    (all > shown).then(|| format!("… {} more{what}: `--json` has them all, `--to DIR` writes the page", all - shown))
}

/// `a simulated A100-SXM4-40GB`, `an H100`, `a CPU`.
pub fn with_article(device: &str) -> String {
    let device = if device == "cpu" { "CPU" } else { device };
    let vowel = device.starts_with(['A', 'E', 'I', 'O', 'H']) || device.starts_with("NVIDIA");
    format!("{} {device}", if vowel { "an" } else { "a" })
}
