//! The report as LaTeX for a paper: booktabs, nothing else. In: an analysis. Out: for each workload a table of its gains by mode
//! and degree, then all cells, at most forty rows in a float, then the policies of traces, and the same numbers as macros for the text. Every
//! table is divided by columns where a page is too narrow for it; captions give the device, the campaign and caveats about the numbers.

mod macros;
mod matrix;
mod policies;
mod text;
mod width;

use std::fmt::Write;
use std::ops::Range;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::cell::quantities::GainBy;
use collo_analysis::words;
use collo_figures::draw::latex::escape;
use collo_figures::modes::mode_label;
use collo_quantity::stats::Quantity;
use collo_quantity::{Key, number};
use collo_store::without_mode;

use super::caveats;
use crate::parts::notes;
use crate::parts::panels::called;

pub use macros::macros;
use text::{comment, name, value};

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
fn columns(analysis: &Analysis) -> Vec<LatexColumn> {
    let (factor, unit) = words::energy_unit(analysis.cells.iter().filter_map(|c| c.get(Key::EnergyPerEpoch)));
    let all = [
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
        column(Key::EnergyPerEpoch, unit, factor),
    ];
    let has = |column: &LatexColumn| analysis.cells.iter().any(|cell| column.of(cell).is_some());
    all.into_iter().enumerate().filter(|(i, c)| *i < 3 || has(c)).map(|(_, c)| c).collect()
}

impl LatexColumn {
    fn of<'a>(&self, cell: &'a Cell) -> Option<&'a Quantity> {
        // Elsewhere the makespan is epochs and warm-up once more.
        let told = self.key != Key::Makespan || GainBy::of(&cell.record) == GainBy::Makespan;
        cell.reading(self.key).filter(|_| told)
    }

    fn head(&self) -> String {
        if self.unit.is_empty() { self.key.head().into() } else { format!("{} ({})", self.key.head(), self.unit) }
    }
}

/// All tables, with the packages that the preamble needs.
pub fn tables(analysis: &Analysis) -> String {
    let c = &analysis.campaign;
    let columns = columns(analysis);
    let mut out = String::from("% needs \\usepackage{booktabs}\n");
    for said in caveats::sentences(analysis) {
        let _ = writeln!(out, "% {}", comment(&said));
    }
    out.push_str(&matrix::tables(analysis));
    let pages: Vec<&[Cell]> = if analysis.cells.is_empty() { vec![&[]] } else { analysis.cells.chunks(ROWS).collect() };
    let whole = lines(analysis, &analysis.cells, &columns);
    let divided = width::divided(&width::widths_pt(whole.iter().map(String::as_str)), KEPT);
    let parts: Vec<(&[Cell], &[LatexColumn])> =
        pages.iter().flat_map(|cells| divided.iter().map(|of| (*cells, &columns[of.clone()]))).collect();
    for (i, (cells, columns)) in parts.iter().enumerate() {
        let lines = lines(analysis, cells, columns);
        let tabular = tabular(KEPT - 1, columns.len() + 1, &lines);
        out.push_str(&float(&caption(analysis, columns), &name(&c.experiment), (i, parts.len()), &tabular));
    }
    out.push_str(&policies::tables(analysis));
    out
}

/// Widths at 10 pt beyond which texts are set in several lines, so that a column of numbers has room beside them: that of a table with
/// one text, and workload, mode and outcome in the table of cells.
const LABEL_PT: f64 = 200.0;
const WORKLOAD_PT: f64 = 130.0;
const MODE_PT: f64 = 100.0;
const OUTCOME_PT: f64 = 100.0;

/// Columns that every part of the table has: workload, mode and members.
const KEPT: usize = 3;

/// The head of a table of cells, and its rows.
fn lines(analysis: &Analysis, cells: &[Cell], columns: &[LatexColumn]) -> Vec<String> {
    let heads: Vec<String> = columns.iter().map(|c| escape(&c.head())).collect();
    let mut lines = vec![format!("workload & mode & members & {} \\\\\n", heads.join(" & "))];
    let mut before = None;
    for cell in cells {
        // One workload's rows stand together.
        let workload = cell.workload();
        if before.is_some_and(|b| b != workload) {
            lines.push("\\addlinespace\n".into());
        }
        lines.push(row(analysis, cell, columns, before == Some(workload) && workload.is_some()));
        before = Some(workload);
    }
    lines
}

/// A table of rows, the first of which is its head, each a text and the fields behind it: in as many floats as the width of its columns
/// needs. All of them have the texts.
fn floats(caption: &str, label: &str, rows: Vec<(String, Vec<String>)>) -> String {
    let rows: Vec<_> = rows.into_iter().map(|(text, fields)| (width::wrapped(text, LABEL_PT), fields)).collect();
    let lines = |of: Option<&Range<usize>>| -> Vec<String> {
        let line = |(text, fields): &(String, Vec<String>)| {
            let fields = of.map_or(&fields[..], |of| &fields[of.clone()]);
            format!("{} \\\\\n", [std::slice::from_ref(text), fields].concat().join(" & "))
        };
        rows.iter().map(line).collect()
    };
    let mut parts = width::divided(&width::widths_pt(lines(None).iter().map(String::as_str)), 1);
    if parts.is_empty() {
        parts.push(0..0);
    }
    let part = |(i, of): (usize, &Range<usize>)| float(caption, label, (i, parts.len()), &tabular(1, of.len(), &lines(Some(of))));
    parts.iter().enumerate().map(part).collect()
}

/// A part of a table, with its number behind the caption if there are several. The first has the label alone: no name has a full stop.
fn float(caption: &str, label: &str, (part, parts): (usize, usize), tabular: &str) -> String {
    // Floats that wait for their place are limited in number.
    let (clear, suffix) = if part > 0 { ("\\clearpage\n", format!(".{}", part + 1)) } else { ("", String::new()) };
    let which = if parts > 1 { format!("; part {} of {parts}", part + 1) } else { String::new() };
    format!(
        "{clear}\\begin{{table}}\n\\centering\n\\caption{{{caption}{which}}}\n\\label{{tab:{label}{suffix}}}\n{tabular}\\end{{table}}\n"
    )
}

/// A table of lines, the first of which is its head, in a size that fits the page. Its first columns are texts, the others numbers.
fn tabular(texts: usize, numbers: usize, lines: &[String]) -> String {
    let rows = lines.iter().map(String::as_str).filter(|line| !line.starts_with("\\addlinespace"));
    let size = width::size(&width::widths_pt(rows)).commands;
    let (head, body) = lines.split_first().map_or(("", &[][..]), |(head, body)| (head.as_str(), body));
    let columns = format!("{}{}", "l".repeat(texts), "r".repeat(numbers));
    format!(
        "{size}\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n",
        body.concat()
    )
}

/// A workload as people call it: with its settings only if it runs with several.
fn name_of(analysis: &Analysis, workload: &str) -> String {
    let bare = |label| Some(analysis.of_workload(label).next()?.record.members[0].workload.as_str());
    let all = analysis.workloads();
    match bare(workload) {
        Some(name) => called(workload, name, all.into_iter().filter_map(bare)),
        None => without_mode(workload),
    }
}

/// A workload is named once, in the first of its rows.
fn row(analysis: &Analysis, cell: &Cell, columns: &[LatexColumn], again: bool) -> String {
    let who = match cell.workload() {
        Some(_) if again => String::new(),
        Some(workload) => escape(&name_of(analysis, workload)),
        None => escape(&without_mode(cell.name())),
    };
    let (who, mode) = (width::wrapped(who, WORKLOAD_PT), width::wrapped(escape(&mode_label(&cell.record.sharing)), MODE_PT));
    let mut name = format!("{who} & {mode} & {}", cell.record.degree);
    if cell.counts() && !cell.is_valid() {
        name.push_str("\\textsuperscript{i}");
    }
    if !cell.counts() {
        let how = match cell.outcome() {
            "completed" => "no usable run",
            word => &words::outcome(word),
        };
        let how = width::wrapped(escape(how), OUTCOME_PT);
        return format!("{name} & \\multicolumn{{{}}}{{l}}{{{how}}} \\\\\n", columns.len());
    }
    let fields: Vec<String> = columns.iter().map(|c| c.of(cell).map_or("--".into(), |q| value(q, c.factor))).collect();
    format!("{name} & {} \\\\\n", fields.join(" & "))
}

fn caption(analysis: &Analysis, columns: &[LatexColumn]) -> String {
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
    let indicative: Vec<&Cell> = analysis.cells.iter().filter(|c| c.counts() && !c.is_valid()).collect();
    let mut caption = said.iter().map(|s| escape(s)).collect::<Vec<_>>().join("; ");
    if !indicative.is_empty() {
        caption.push_str("; \\textsuperscript{i} indicative: shown, supports no conclusion");
    }
    if !analysis.campaign.plan.refusals.is_empty() {
        let n = number::count(analysis.campaign.plan.refusals.len(), "cell");
        let _ = write!(caption, "; {n} cannot run here and have no row");
    }
    caption
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_wide_table_fits_a_page_and_all_of_them_have_its_columns_once() {
        let row = |name: &str, field: &dyn Fn(usize) -> String| (name.to_string(), (0..20).map(field).collect::<Vec<String>>());
        let rows = vec![
            row("policy", &|i| format!("time {i} (s)")),
            row("magm", &|i| format!("${i}.97 \\pm 0.02$")),
            row("lug", &|_| "--".into()),
        ];
        let tex = floats("caption", "label", rows.clone());
        let tables: Vec<&str> = tex.split("\\begin{table}\n").skip(1).collect();
        let mut heads = Vec::new();
        for table in &tables {
            let lines: Vec<&str> = table.lines().filter(|line| line.ends_with("\\\\")).collect();
            let widths = width::widths_pt(lines.iter().copied());
            assert!(width::size(&widths).fits(&widths), "{table}");
            let fields: Vec<Vec<&str>> = lines.iter().map(|line| line.trim_end_matches(" \\\\").split(" & ").collect()).collect();
            assert_eq!(fields.iter().map(|row| row[0]).collect::<Vec<_>>(), ["policy", "magm", "lug"]);
            assert!(fields.iter().all(|row| row.len() == fields[0].len()), "{table}");
            heads.extend_from_slice(&fields[0][1..]);
        }
        assert!(tables.len() > 2, "{tex}");
        assert_eq!(heads, rows[0].1);
        assert_eq!(tex.matches("\\clearpage\n\\begin{table}").count(), tables.len() - 1);
        assert!(
            tex.contains("{caption; part 1 of ") && tex.contains("\\label{tab:label}") && tex.contains("\\label{tab:label.2}")
        );
    }

    #[test]
    fn a_table_that_fits_is_in_one_float_with_its_caption_alone() {
        let rows = vec![("mode".to_string(), vec!["2".to_string()]), ("naive".to_string(), vec!["1.97".to_string()])];
        let tex = floats("caption", "label", rows.clone());
        assert!(tex.starts_with("\\begin{table}\n\\centering\n\\caption{caption}\n\\label{tab:label}\n"), "{tex}");
        assert_eq!(tex.matches("\\begin{table}").count(), 1);
        let without = floats("caption", "label", vec![("policy".into(), Vec::new()), ("magm".into(), Vec::new())]);
        assert!(without.contains("\\toprule\npolicy \\\\\n\\midrule\nmagm \\\\\n"), "{without}");
    }
}
