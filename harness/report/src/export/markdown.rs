//! `report.md` without its figures: what is printed stands alone, and a link to a file that is not beside it would lead nowhere. Each
//! figure's values stand in their table.

use crate::Report;
use crate::render::markdown;
use crate::section;

/// The report's text.
pub fn report(report: &Report) -> String {
    let text = markdown::report(report, &section::all(report), "");
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line.strip_prefix("![").and_then(|l| l.split_once("](plots/")).filter(|(_, link)| link.ends_with(".svg)")) {
            Some((title, _)) => out.push_str(&format!("**{title}**")),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}
