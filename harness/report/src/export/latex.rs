//! The cells as LaTeX tables for a paper: booktabs, nothing else. In: an analysis. Out: floats of at most forty rows, whose
//! captions give the device, the campaign and caveats about the numbers. Every label is escaped: none of it is a command.

use std::fmt::Write;

use super::caveats;
use crate::analysis::{Analysis, Cell, GainBy};
use crate::format::words;
use crate::number;
use crate::quantity::Key;
use crate::section::notes;
use crate::stats::Quantity;

/// Rows that fit a page.
const ROWS: usize = 40;

struct LatexColumn {
    key: Key,
    unit: &'static str,
    factor: f64,
}

const fn column(key: Key, unit: &'static str, factor: f64) -> LatexColumn {
    LatexColumn { key, unit, factor }
}

/// In the unit of its definition.
const fn plain(key: Key) -> LatexColumn {
    let unit = key.definition().unit;
    column(key, unit.symbol, unit.factor)
}

/// Those that a cell of the campaign has are used, and the first three always.
static COLUMNS: [LatexColumn; 11] = [
    plain(Key::EpochTime),
    plain(Key::Slowdown),
    plain(Key::ThroughputGain),
    plain(Key::Makespan),
    column(Key::LatencyP99, "ms", 1e3),
    plain(Key::LatencyP99OfSolo),
    plain(Key::WithinSlo),
    plain(Key::Goodput),
    plain(Key::SmActive),
    plain(Key::Memory),
    column(Key::EnergyPerEpoch, "kJ", 1e-3),
];

impl LatexColumn {
    fn of<'a>(&self, cell: &'a Cell) -> Option<&'a Quantity> {
        // Elsewhere the makespan is epochs and warm-up once more.
        let told = self.key != Key::Makespan || GainBy::of(&cell.record) == GainBy::Makespan;
        cell.get(self.key).or_else(|| cell.metric(self.key)).filter(|_| told)
    }

    fn head(&self) -> String {
        if self.unit.is_empty() { self.key.head().into() } else { format!("{} ({})", self.key.head(), self.unit) }
    }
}

/// All tables, with the packages that the preamble needs.
pub fn tables(analysis: &Analysis) -> String {
    let c = &analysis.campaign;
    let has = |column: &LatexColumn| analysis.cells.iter().any(|cell| column.of(cell).is_some());
    let columns: Vec<&LatexColumn> = COLUMNS.iter().enumerate().filter(|(i, c)| *i < 3 || has(c)).map(|(_, c)| c).collect();
    let mut out = String::from("% needs \\usepackage{booktabs}\n");
    for said in caveats::sentences(analysis) {
        let _ = writeln!(out, "% {}", comment(&said));
    }
    let pages: Vec<&[Cell]> = if analysis.cells.is_empty() { vec![&[]] } else { analysis.cells.chunks(ROWS).collect() };
    for (i, cells) in pages.iter().enumerate() {
        if i > 0 {
            // Floats that wait for their place are limited in number.
            out.push_str("\\clearpage\n");
        }
        let part = if pages.len() > 1 { format!("; part {} of {}", i + 1, pages.len()) } else { String::new() };
        let _ = writeln!(out, "\\begin{{table}}\n\\centering\n\\caption{{{}{part}}}", caption(analysis, &columns));
        let label = format!("tab:{}", name(&c.experiment));
        let _ = writeln!(out, "\\label{{{label}{}}}", if i > 0 { format!("-{}", i + 1) } else { String::new() });
        let _ = writeln!(out, "\\begin{{tabular}}{{l{}}}\n\\toprule", "r".repeat(columns.len()));
        let heads: Vec<String> = columns.iter().map(|c| escape(&c.head())).collect();
        let _ = writeln!(out, "cell & {} \\\\\n\\midrule", heads.join(" & "));
        cells.iter().for_each(|cell| out.push_str(&row(cell, &columns)));
        out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    }
    out
}

fn row(cell: &Cell, columns: &[&LatexColumn]) -> String {
    let mut name = escape(cell.name());
    if !cell.counted.is_empty() && !cell.is_valid() {
        name.push_str("\\textsuperscript{i}");
    }
    if cell.counted.is_empty() {
        let how = match cell.outcome() {
            "completed" => "no usable run",
            word => &words::outcome(word),
        };
        return format!("{name} & \\multicolumn{{{}}}{{l}}{{{}}} \\\\\n", columns.len(), escape(how));
    }
    let fields: Vec<String> = columns.iter().map(|c| c.of(cell).map_or("--".into(), |q| value(q, c.factor))).collect();
    format!("{name} & {} \\\\\n", fields.join(" & "))
}

/// `$26.8 \pm 0.5$`.
fn value(q: &Quantity, factor: f64) -> String {
    if !q.estimate.is_finite() {
        return "--".into();
    }
    match number::scaled(q, factor).split_once(" ±") {
        Some((estimate, half)) => format!("${estimate} \\pm {half}$"),
        None => escape(&number::scaled(q, factor)),
    }
}

fn caption(analysis: &Analysis, columns: &[&LatexColumn]) -> String {
    let c = &analysis.campaign;
    let has = |key: Key| columns.iter().any(|c| c.key == key);
    let mut said = vec![format!("{} on {}, campaign {}", c.experiment, c.device.text(), c.id)];
    said.extend(caveats::sentences(analysis));
    said.extend(notes::method(analysis).map(|m| format!("±: {m}")));
    said.push("gain: work per second against running in turn".into());
    if has(Key::SmActive) {
        said.push("SMACT: share of the GPU's SMs that are active".into());
    }
    if has(Key::WithinSlo) {
        said.push("in time: share of requests answered within the limit; goodput: those per second".into());
    }
    let informative: Vec<&Cell> = analysis.cells.iter().filter(|c| !c.counted.is_empty() && !c.is_valid()).collect();
    let mut caption = said.iter().map(|s| escape(s)).collect::<Vec<_>>().join("; ");
    if !informative.is_empty() {
        caption.push_str("; \\textsuperscript{i} informative: shown, supports no conclusion");
    }
    if !analysis.campaign.plan.refusals.is_empty() {
        let n = number::count(analysis.campaign.plan.refusals.len(), "cell");
        let _ = write!(caption, "; {n} cannot run here and have no row");
    }
    caption
}

/// A comment ends with its line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A label for references.
fn name(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Escape text; a pair of backticks is set as code. A character without a LaTeX glyph of its own is written by code point.
fn escape(text: &str) -> String {
    let mut out = String::new();
    let (in_pairs, mut is_code) = (text.matches('`').count().is_multiple_of(2), false);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            // Quotes of the encoding that is there without a package.
            '"' => out.push_str("{''}"),
            '`' if in_pairs => {
                out.push_str(if is_code { "}" } else { "\\texttt{" });
                is_code = !is_code;
            }
            '`' => out.push_str("{`}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            // Two hyphens are a dash to TeX, and a bracket after a row's end its argument.
            '-' if out.ends_with('-') => out.push_str("{}-"),
            '[' | ']' => {
                let _ = write!(out, "{{{c}}}");
            }
            '×' => out.push_str("$\\times$"),
            '÷' => out.push_str("$\\div$"),
            '±' => out.push_str("$\\pm$"),
            'Σ' => out.push_str("$\\Sigma$"),
            'µ' | 'μ' => out.push_str("$\\mu$"),
            '≤' => out.push_str("$\\leq$"),
            '≥' => out.push_str("$\\geq$"),
            '°' => out.push_str("$^{\\circ}$"),
            '–' => out.push_str("--"),
            '—' => out.push_str("---"),
            '…' => out.push_str("\\ldots{}"),
            c if c.is_control() || c.is_whitespace() => out.push(' '),
            c if c.is_ascii() => out.push(c),
            // Latin letters with their accents; the others of that range need another encoding.
            'À'..='ÿ' if !"ÐÞðþ".contains(c) => out.push(c),
            c => {
                let _ = write!(out, "U+{:04X}", c as u32);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_become_a_command() {
        assert_eq!(
            escape("\\input{x} 50 % $a_1$ #&~^"),
            "\\textbackslash{}input\\{x\\} 50 \\% \\$a\\_1\\$ \\#\\&\\textasciitilde{}\\textasciicircum{}"
        );
        assert_eq!(escape("tiny×2 mps:25,25"), "tiny$\\times$2 mps:25,25");
        assert_eq!(escape("a\r\nb 中 é"), "a  b U+4E2D é");
        assert_eq!(escape("[2cm] a-b ---"), "{[}2cm{]} a-b -{}-{}-");
        assert_eq!(escape("\"`ð"), "{''}{`}U+00F0");
        assert_eq!(escape("by `limit_batches`"), "by \\texttt{limit\\_batches}");
    }

    #[test]
    fn a_number_keeps_the_digits_of_its_interval() {
        let q = Quantity { estimate: 26.83, low: Some(26.33), high: Some(27.33), n: 3, df: Some(9.0) };
        assert_eq!(value(&q, 1.0), "$26.8 \\pm 0.5$");
        let one = Quantity { estimate: 1500.0, low: None, high: None, n: 1, df: None };
        assert_eq!(value(&one, 1e-3), "1.50 (1 run)");
    }
}
