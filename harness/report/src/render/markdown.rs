//! `report.md`: the same sections for a repository or a message. In: sections. Out: Markdown whose labels cannot become markup.

use std::fmt::Write;

use crate::Report;
use crate::guideline::Guideline;
use crate::section::{Block, Section, Table, notes};

/// The report as Markdown; `prefix` leads from the file to the folder that holds `plots/`.
pub fn report(report: &Report, sections: &[Section], prefix: &str) -> String {
    let analysis = &report.analysis;
    let c = &analysis.campaign;
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("# {}\n", escape(&super::html::title(analysis))));
    if c.device.simulated {
        line("**SIMULATED: nothing here was measured; the numbers come from a documented interference model.**\n".into());
    }
    line(format!(
        "{}. Campaign `{}` on {}, {}.\n",
        escape(&notes::title(analysis)),
        code(&c.id),
        escape(&c.device.text()),
        escape(&c.created_utc)
    ));
    for note in notes::notes(analysis) {
        line(format!("- {}", escape(&note)));
    }
    for section in sections {
        line(format!("\n## {}\n", section.title));
        if section.id == "summary" {
            line(guidelines(&report.guidelines));
        }
        if !section.finding.is_empty() {
            let chip = section.chip.map_or_else(String::new, |v| format!("**{}** · ", v.text()));
            line(format!("{chip}{}\n", escape(&section.finding)));
        }
        for block in &section.blocks {
            line(self::block(block, prefix));
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn guidelines(guidelines: &[Guideline]) -> String {
    let mut out = String::from("| verdict | guideline | here, 95 % interval | published |\n|---|---|---|---|\n");
    for g in guidelines {
        let key =
            g.key.as_ref().map_or_else(|| "–".to_string(), |k| format!("{} {} (`{}`)", k.said(), k.bounds(), code(&k.name())));
        let published = g.published.map_or("not studied", |p| p.short);
        let command = g.command.as_ref().map_or_else(String::new, |c| format!(" Next: `{}`", code(c)));
        let (verdict, statement, finding) = (g.verdict.text(), escape(&g.statement), escape(&g.finding));
        let _ = writeln!(out, "| {verdict} | **{statement}** {finding}{command} | {key} | {} |", escape(published));
    }
    out
}

fn block(block: &Block, prefix: &str) -> String {
    match block {
        Block::Figure(f) => {
            let tags = if f.tags.is_empty() { String::new() } else { format!(" ({})", f.tags.join(", ")) };
            let title = format!("{}{tags}", f.title);
            format!("![{}]({prefix}plots/{}.svg)\n\n{}\n\n{}", escape(&title), f.id, escape(&f.caption), table(&f.values))
        }
        Block::Table(t) => table(t),
        Block::Notes(notes) => notes.iter().map(|n| format!("- {}\n", escape(n))).collect(),
        Block::Facts(facts) => facts.iter().map(|(k, v)| format!("- {}: {}\n", escape(k), escape(v))).collect(),
        Block::Verbatim(name, text) => {
            // A fence longer than any in the text cannot be closed by it.
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            format!("{}:\n\n{fence}toml\n{}\n{fence}\n", escape(name), text.trim_end())
        }
    }
}

fn table(t: &Table) -> String {
    let mut out = String::new();
    if !t.caption.is_empty() {
        let tags = if t.tags.is_empty() { String::new() } else { format!(" ({})", t.tags.join(", ")) };
        let _ = writeln!(out, "{}{tags}\n", escape(&t.caption));
    }
    let heads: Vec<String> = t.columns.iter().map(|c| escape(&c.name)).collect();
    let rule: Vec<&str> = t.columns.iter().map(|c| if c.numeric { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", heads.join(" | "), rule.join("|"));
    for row in &t.rows {
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|c| if c.note.is_empty() { escape(&c.text) } else { format!("{}: {}", escape(&c.text), escape(&c.note)) })
            .collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// Text that is no markup: what would begin a tag, a link, a cell or emphasis is escaped; a pair of backticks stays code.
fn escape(text: &str) -> String {
    let mut out = String::new();
    let ticks = text.matches('`').count();
    let mut in_code = false;
    for c in text.chars() {
        match c {
            '`' if ticks.is_multiple_of(2) => {
                in_code = !in_code;
                out.push(c);
            }
            '|' => out.push_str("\\|"),
            '\n' | '\r' => out.push(' '),
            c if c.is_control() => {
                let _ = write!(out, "\\\\x{:02x}", c as u32);
            }
            '<' if !in_code => out.push_str("&lt;"),
            '[' | ']' | '*' | '\\' | '`' if !in_code => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text for a pair of backticks.
fn code(text: &str) -> String {
    text.replace('`', "'").replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_cannot_become_markup() {
        assert_eq!(super::escape("<b> [x](y) a|b"), "&lt;b> \\[x\\](y) a\\|b");
        assert_eq!(super::escape("`tiny×2 <naive>` is *fast*"), "`tiny×2 <naive>` is \\*fast\\*");
        assert_eq!(super::escape("a ` <b>"), "a \\` &lt;b>");
    }
}
