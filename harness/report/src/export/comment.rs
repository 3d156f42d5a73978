//! The report as one comment below a pull request or an issue. In: a report. Out: Markdown of fewer than [`LIMIT`] characters,
//! whatever the campaign: what the first screen of the page shows, the matrix of gains, and as many cells as fit, folded.
//!
//! GitHub refuses longer ones: "body is too long (maximum is 65536 characters)".

use collo_figures::document::markdown;

use crate::overview::cells;
use crate::report::Report;
use crate::sections;

/// Characters of a comment at most; the rest up to GitHub's limit is left to whoever adds a line of their own.
pub const LIMIT: usize = 60_000;
/// Rows of the table of cells at most: a comment is read on one screen.
const CELLS: usize = 100;
/// A line of the head that is longer is cut.
const LINE: usize = 8_000;

/// The comment.
pub fn report(report: &Report) -> String {
    let analysis = &report.analysis;
    let mut document = sections::shortened(report);
    document.sections.retain(|s| sections::OPEN.contains(&s.id));
    document.left_out = String::new();
    let all = format!(
        "`collo report {}` writes the rest: figures, every cell, and how the numbers were measured.\n",
        analysis.campaign.id
    );
    let head = cut(&markdown::document(&document), LIMIT - 2_000 - characters(&all));
    let mut rows = CELLS.min(analysis.cells.len());
    loop {
        let said = how_many(rows, analysis.cells.len());
        let cells = match cells::brief(analysis, rows) {
            Some(table) => {
                let table = markdown::block(&table);
                format!("<details><summary>{said}</summary>\n\n{}\n\n</details>\n\n", table.trim_end())
            }
            None => format!("{said}.\n\n"),
        };
        let text = format!("{head}\n{cells}{all}");
        if characters(&text) < LIMIT || rows == 0 {
            return text;
        }
        rows /= 2;
    }
}

fn how_many(rows: usize, all: usize) -> String {
    let cells = collo_quantity::number::count(all, "cell");
    match rows {
        _ if rows >= all => cells,
        0 => format!("0 of {cells}: they are too long for a comment"),
        _ => format!("{rows} of {cells}: those that failed, then those furthest from running in turn"),
    }
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

/// The lines that fit, none longer than [`LINE`], with the number of those left out.
fn cut(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut used = 0;
    for (i, line) in lines.iter().enumerate() {
        let line: String = match characters(line) {
            n if n > LINE => line.chars().take(LINE).chain(" …".chars()).collect(),
            _ => (*line).to_string(),
        };
        used += characters(&line) + 1;
        if used > most {
            out += &format!("\n… left out: {}.\n", collo_quantity::number::count(lines.len() - i, "line"));
            break;
        }
        out += &line;
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_is_too_long_is_cut_at_a_line_and_says_so() {
        assert_eq!(cut("a\nb\n", 100), "a\nb\n");
        assert_eq!(cut("aa\nbb\ncc\n", 6), "aa\nbb\n\n… left out: 1 line.\n");
        let long = cut(&"x".repeat(LINE + 5), LIMIT);
        assert_eq!((characters(&long), long.ends_with("x …\n")), (LINE + 3, true));
    }
}
