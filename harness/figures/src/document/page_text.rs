//! Pages written in Markdown as lines of a terminal: what the pages of the guide use of it.
//!
//! In: Markdown. Out: lines, no wider than the screen where words allow it; commands and other code stay as they are.

use super::model::{Block, Table};
use super::terminal::{self, LONGEST_LINE};

/// Indent of code.
const INDENT: &str = "    ";
const FENCE: &str = "```";

/// A page as text.
pub fn page_text(markdown: &str, width: usize) -> String {
    let width = width.min(LONGEST_LINE);
    let mut text = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(first) = lines.next() {
        if is_fence(first) {
            for line in lines.by_ref().take_while(|line| !is_fence(line)) {
                text += format!("{INDENT}{line}").trim_end();
                text.push('\n');
            }
            continue;
        }
        let mut part = vec![first];
        while let Some(next) = lines.next_if(|next| continues(first, next)) {
            part.push(next);
        }
        text += &match first {
            "" => "\n".to_string(),
            heading if heading.starts_with('#') => underlined(heading),
            row if is_row(row) => table(&part, width),
            item if is_item(item) => wrapped(&joined(&part), width),
            _ => wrapped(&joined(&part), width).replace("\n  ", "\n"),
        };
    }
    text
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with(FENCE)
}

fn is_row(line: &str) -> bool {
    line.starts_with('|')
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))
}

/// Whether a line belongs to the part that begins with `first`.
fn continues(first: &str, next: &str) -> bool {
    let begins = next.is_empty() || next.starts_with('#') || is_fence(next);
    !begins && !first.is_empty() && !first.starts_with('#') && is_row(first) == is_row(next) && !is_item(next)
}

fn underlined(heading: &str) -> String {
    let title = inline(heading.trim_start_matches('#').trim_start());
    let rule = if heading.starts_with("# ") { "=" } else { "-" };
    format!("{title}\n{}\n", rule.repeat(title.chars().count()))
}

/// The lines of a paragraph or an item as one, with the indent of the first.
fn joined(part: &[&str]) -> String {
    let first = part.first().copied().unwrap_or_default();
    let indent = &first[..first.len() - first.trim_start().len()];
    let words: Vec<&str> = part.iter().map(|line| line.trim().trim_start_matches("> ")).collect();
    format!("{indent}{}", inline(&words.join(" ")))
}

fn wrapped(text: &str, width: usize) -> String {
    terminal::text(&[Block::Text(text.to_string())], width)
}

/// A table as one where it has room; else below each other, for each row its first cell and then the others.
fn table(rows: &[&str], width: usize) -> String {
    let [head, _, rows @ ..] = rows else { return wrapped(&rows.join(" "), width) };
    let (head, rows) = (cells(head), rows.iter().map(|row| cells(row)).collect::<Vec<_>>());
    let heads: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&heads, heads.len());
    rows.iter().for_each(|row| table.values(row.iter().cloned().map(Some)));
    // Nothing is ever left out of it: it is as wide as its longest texts.
    let whole = table.render(usize::MAX / 2);
    if whole.lines().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let beneath = |row: &Vec<String>| {
        let first = wrapped(row.first().map_or("", String::as_str), width);
        let others = row.iter().zip(&heads).skip(1).filter(|(cell, _)| !cell.is_empty());
        let named = |(cell, head): (&String, &&str)| match heads.len() {
            2 => wrapped(&format!("{INDENT}{cell}"), width),
            _ => wrapped(&format!("{INDENT}{head}: {cell}"), width),
        };
        first + &others.map(named).collect::<String>()
    };
    rows.iter().map(beneath).collect()
}

/// The cells of a row; `\|` is a bar in one.
fn cells(row: &str) -> Vec<String> {
    const BAR: &str = "\u{0}";
    let row = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", BAR);
    row.split('|').map(|cell| inline(cell.trim()).replace(BAR, "|")).collect()
}

/// Without the marks of bold text and of links.
fn inline(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        plain += &rest[..at];
        rest = &rest[at..];
        rest = match code(rest).or_else(|| link(rest)) {
            Some((shown, after)) => {
                plain += &shown;
                after
            }
            None if rest.starts_with("**") => &rest[2..],
            None => {
                plain += &rest[..1];
                &rest[1..]
            }
        };
    }
    plain + rest
}

/// Code with its backticks, as it is.
fn code(text: &str) -> Option<(String, &str)> {
    let end = text.strip_prefix('`')?.find('`')? + 2;
    Some((text[..end].to_string(), &text[end..]))
}

/// The words of a link; its target too if that is a command, which has spaces.
fn link(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](").filter(|(name, _)| !name.contains('['))?;
    let (target, after) = rest.split_once(')')?;
    let command = if target.contains(' ') { format!(" (`{target}`)") } else { String::new() };
    Some((format!("{}{command}", inline(name)), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_words_and_its_code_and_loses_its_marks() {
        let page = "# A page\n\nOne **bold** sentence with `a * b [c]`, see\n[the nightly](collo help nights), and [a law](../x.md).\n\n\
                    - an item that goes\n  on\n- another\n\n```sh\ncollo run x   # a comment\n```\n\n\
                    | key | meaning |\n|---|---|\n| `a` | this \\| that |\n";
        insta::assert_snapshot!(page_text(page, 60), @"
        A page
        ======

        One bold sentence with `a * b [c]`, see the nightly (`collo
        help nights`), and a law.

        - an item that goes on
        - another

            collo run x   # a comment

        key  meaning
        `a`  this | that
        ");
    }

    #[test]
    fn a_table_without_room_becomes_a_list_that_loses_no_word() {
        let page = "| key | default | meaning |\n|---|---|---|\n| `degree` | 1 | how many members share the device |\n";
        insta::assert_snapshot!(page_text(page, 30), @"
        `degree`
            default: 1
            meaning: how many members
              share the device
        ");
    }
}
