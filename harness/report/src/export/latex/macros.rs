//! Numbers for running text: a macro for each, and one for its interval. In: an analysis. Out: `\newcommand`s to be read in a
//! preamble. The name of a macro has letters only (TeX ends a control word at the first other character): digits are spelled.

use std::collections::BTreeSet;
use std::fmt::Write;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_figures::draw::latex::escape;
use collo_figures::modes::mode_label;
use collo_quantity::number;
use collo_quantity::stats::Quantity;
use collo_store::without_mode;

use super::text::comment;
use super::{LatexColumn, columns, name_of};
use crate::export::caveats;

/// Every number of the tables.
pub fn macros(analysis: &Analysis) -> String {
    let mut out =
        String::from("% \\input this in the preamble; \\colloGain… is the number, with Interval at its end its 95 % interval\n");
    for said in caveats::sentences(analysis) {
        let _ = writeln!(out, "% {}", comment(&said));
    }
    let campaign = &analysis.campaign;
    let mut taken = BTreeSet::new();
    for (what, text) in [
        ("Campaign", campaign.id.clone()),
        ("Device", campaign.device.text()),
        ("Caveats", caveats::sentences(analysis).join("; ")),
    ] {
        taken.insert(what.to_string());
        define(&mut out, what, &escape(&text));
    }
    for column in columns(analysis) {
        for cell in &analysis.cells {
            let Some(q) = column.of(cell).filter(|q| q.estimate.is_finite() && cell.counts()) else { continue };
            let name = free(&format!("{}{}", letters(column.key.head()), subject(analysis, cell)), &mut taken);
            let indicative = if cell.is_valid() { "" } else { ", indicative" };
            let _ = writeln!(out, "% {}: {}{indicative}", comment(&column.head()), comment(cell.name()));
            numbers(&mut out, &name, q, &column);
        }
    }
    out
}

fn numbers(out: &mut String, name: &str, q: &Quantity, column: &LatexColumn) {
    let scaled = Quantity {
        estimate: q.estimate * column.factor,
        low: q.low.map(|x| x * column.factor),
        high: q.high.map(|x| x * column.factor),
        ..q.clone()
    };
    define(out, name, &escape(&number::estimate(&scaled)));
    define(out, &format!("{name}Interval"), &escape(&number::bounds(&scaled)));
}

fn define(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "\\newcommand{{\\collo{name}}}{{{text}}}");
}

/// `SmallSevenMps`; with its settings if the workload runs with several.
fn subject(analysis: &Analysis, cell: &Cell) -> String {
    let degree = number::word(cell.record.degree);
    let mode = letters(&mode_label(&cell.record.sharing).to_lowercase());
    let who = match cell.workload() {
        Some(workload) => letters(&name_of(analysis, workload)),
        // Its label counts its members.
        None => return format!("{}{mode}", letters(&without_mode(cell.name()))),
    };
    format!("{who}{}{mode}", letters(&degree))
}

/// A name that no macro has: `…AgainOne`, `…AgainTwo` for labels that differ in what is no letter.
fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut found = name.to_string();
    let mut again = 0u32;
    while taken.contains(&found) || taken.contains(&format!("{found}Interval")) {
        again += 1;
        found = format!("{name}{}", letters(&format!("again {again}")));
    }
    taken.insert(found.clone());
    taken.insert(format!("{found}Interval"));
    found
}

/// Words and digits in letters: `resnet50 b32` is `ResnetFiveZeroBThreeTwo`.
fn letters(text: &str) -> String {
    let mut out = String::new();
    let mut begins = true;
    for c in text.chars() {
        match c.to_digit(10) {
            Some(0) => out.push_str("Zero"),
            Some(digit) => out.push_str(&letters(&number::word(digit))),
            None if c.is_ascii_alphabetic() && begins => out.push(c.to_ascii_uppercase()),
            None if c.is_ascii_alphabetic() => out.push(c),
            None => {}
        }
        begins = !c.is_ascii_alphabetic();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_only_and_none_is_given_twice() {
        assert_eq!(letters("resnet50 b32"), "ResnetFiveZeroBThreeTwo");
        assert_eq!(letters("MIG 2g.10gb"), "MIGTwoGOneZeroGb");
        assert_eq!(letters("p99 ÷ alone 中"), "PNineNineAlone");
        let mut taken = BTreeSet::new();
        assert_eq!(["A", "A", "A"].map(|n| free(n, &mut taken)), ["A", "AAgainOne", "AAgainTwo"]);
    }
}
