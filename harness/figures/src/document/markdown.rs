//! Renders a document as Markdown, for a repository or a message. Labels cannot become markup.

use std::fmt::Write;

use super::model::{Advice, Badge, Block, DOUBTS, Document, Fact, FactLine, Table, TableCell};

/// The whole document.
pub fn document(d: &Document) -> String {
    let mut out = format!("# {}\n\n", escape(&d.title));
    let mut paragraph = |text: String| {
        // An empty text leaves no gap.
        if !text.trim().is_empty() {
            let _ = writeln!(out, "{}\n", text.trim_end());
        }
    };
    if let Some(what) = &d.simulated {
        paragraph(format!("**SIMULATED:** {}", escape(what)));
    }
    paragraph(escape(&d.subtitle));
    paragraph(d.facts.iter().map(fact).collect());
    paragraph(escape(&d.alone));
    for warning in &d.warnings {
        paragraph(format!("> **Warning:** {}.", escape(warning)));
    }
    for section in &d.sections {
        paragraph(format!("## {}", escape(section.title)));
        let chip = section.chip.as_ref().map_or_else(String::new, |c| format!("**{}** · ", escape(&c.text)));
        paragraph(format!("{chip}{}", escape(&section.finding)));
        section.blocks.iter().for_each(|b| paragraph(block_of(b, d.plots.as_deref())));
    }
    paragraph(escape(&d.left_out));
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn fact(fact: &Fact) -> String {
    let line = |l: &FactLine| match l {
        FactLine::Text(text) | FactLine::Link(text, _) => Some(escape(text)),
        FactLine::Code(text) => Some(format!("`{}`", code(text))),
        FactLine::Strip(..) => None,
    };
    format!("- {}: {}\n", escape(&fact.name), fact.lines.iter().filter_map(line).collect::<Vec<_>>().join("; "))
}

/// One block, on its own.
pub fn block(block: &Block) -> String {
    block_of(block, None)
}

fn block_of(block: &Block, plots: Option<&str>) -> String {
    match block {
        Block::Figure(f) => {
            let title = tagged(&f.title, &f.tags);
            // A link to a file that is not beside it would lead nowhere.
            let head = plots.map_or_else(|| format!("**{title}**"), |folder| format!("![{title}]({folder}{}.svg)", f.id));
            [head, escape(&f.caption), table(&f.values)]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("\n\n")
        }
        Block::Table(t) => table(t),
        Block::Text(text) | Block::Remark(text) => escape(text),
        Block::Notes(notes) => notes.iter().map(|n| format!("- {}\n", escape(n))).collect(),
        Block::Facts(facts) => facts.iter().map(|(k, v)| format!("- {}: {}\n", escape(k), escape(v))).collect(),
        Block::Terms(terms) => terms.iter().map(|[_, k, v]| format!("- {}: {}\n", escape(k), escape(v))).collect(),
        Block::Verbatim(name, text) => {
            // A fence longer than any in the text cannot be closed by it.
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            format!("{}:\n\n{fence}toml\n{}\n{fence}", escape(name), text.trim_end())
        }
        Block::Chips(chips) => chips.iter().map(|c| escape(&c.to_text())).collect::<Vec<_>>().join(" · "),
        Block::Command(what, command) => format!("{what}: `{}`", code(command)),
        Block::Advice(advice) => self::advice(advice),
        Block::Answer(answer) => {
            let doubts = answer.doubts.iter().map(|d| format!("- **{}**: {}\n", escape(&d.name), escape(&d.text)));
            let doubts: String = doubts.collect();
            let doubts = Some(format!("{DOUBTS}:\n\n{doubts}")).filter(|_| !answer.doubts.is_empty());
            answer.paragraphs.iter().map(|text| escape(text)).chain(doubts).collect::<Vec<_>>().join("\n\n")
        }
        Block::Folded(title, blocks) => {
            let inner: Vec<String> = blocks.iter().map(|b| block_of(b, plots)).collect();
            format!("{}:\n\n{}", escape(title), inner.join("\n\n"))
        }
    }
}

fn advice(advice: &[Advice]) -> String {
    let mut out = String::from(
        "| holds here? | agrees with the study? | guideline | here, 95 % interval | published |\n|---|---|---|---|---|\n",
    );
    for a in advice {
        let key = a
            .key
            .as_ref()
            .map_or_else(|| "–".to_string(), |[value, bounds, cell]| format!("{value} {bounds} (`{}`)", code(cell)));
        let command = a.command.as_ref().map_or_else(String::new, |c| format!(" Next: `{}`", code(c)));
        let [holds, agrees, statement, finding, scope, published] =
            [&a.holds.text, &a.agrees.text, &a.statement, &a.finding, &a.scope, &a.published].map(|t| escape(t));
        let texts =
            [format!("**{statement}**"), finding, scope].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "| {holds} | {agrees} | {texts}{command} | {key} | {published} |");
    }
    out
}

fn tagged(text: &str, tags: &[String]) -> String {
    if tags.is_empty() { escape(text) } else { escape(&format!("{text} ({})", tags.join(", "))) }
}

fn table(t: &Table) -> String {
    if t.rows.is_empty() {
        return escape(&t.caption);
    }
    let mut out = String::new();
    if !t.caption.is_empty() {
        let _ = writeln!(out, "{}\n", tagged(&t.caption, &t.tags));
    }
    // What is drawn has no text here.
    let shown: Vec<usize> =
        (0..t.columns.len()).filter(|&i| t.rows.iter().all(|r| r.cells.get(i).is_none_or(|c| c.drawing.is_none()))).collect();
    let heads: Vec<String> = shown.iter().map(|&i| escape(&t.columns[i].name)).collect();
    let rule: Vec<&str> = shown.iter().map(|&i| if t.columns[i].is_numeric() { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", heads.join(" | "), rule.join("|"));
    for row in t.shown_rows() {
        let cells: Vec<String> = shown.iter().filter_map(|&i| row.cells.get(i)).map(cell).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

fn cell(c: &TableCell) -> String {
    let chip = c.chip.iter().map(Badge::to_text);
    let mut out = String::new();
    for text in chip.chain([c.text.clone(), c.note.clone()]).filter(|t| !t.is_empty()) {
        // A sentence has its own end.
        out.push_str(if out.is_empty() || out.ends_with('.') { " " } else { ": " });
        out.push_str(&escape(&text));
    }
    out.trim_start().to_string()
}

/// Escape text: what would begin a tag, a link, a cell or emphasis; a pair of backticks stays code.
fn escape(text: &str) -> String {
    let text = collo_text::quoting::line(&text.replace(['\n', '\r'], " ")).into_owned();
    let mut out = String::new();
    // A run of several is not a pair of single ones: what is between them would not be code.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    let mut in_code = false;
    for c in text.chars() {
        match c {
            '`' if is_paired => {
                in_code = !in_code;
                out.push(c);
            }
            '|' => out.push_str("\\|"),
            '<' if !in_code => out.push_str("&lt;"),
            '[' | ']' | '*' | '_' | '\\' | '`' if !in_code => {
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
    collo_text::quoting::line(text).replace('`', "'").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    #[test]
    fn labels_cannot_become_markup() {
        assert_eq!(super::escape("<b> [x](y) a|b"), "&lt;b> \\[x\\](y) a\\|b");
        assert_eq!(super::escape("`tiny×2 <naive>` is *fast*"), "`tiny×2 <naive>` is \\*fast\\*");
        assert_eq!(super::escape("a ` <b>"), "a \\` &lt;b>");
        assert_eq!(super::escape("`<b>``, `<b>``"), "\\`&lt;b>\\`\\`, \\`&lt;b>\\`\\`", "names that end in a backtick");
        assert_eq!(super::escape("_a_\n\u{1b}[2J"), "\\_a\\_ \\\\x1b\\[2J", "and nothing is left that a terminal would obey");
    }
}
