//! `ceilings.toml`: what is above the general ceilings today. In: its text. Out: rows by section, and the text again.
//!
//! A row is `name = number`, or `name = "reason"` where a rule asks for a reason; lines that begin with `#` and blank ones are
//! written again with each section. It is read by hand: this package has no dependencies.

use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ceiling {
    Number(usize),
    Reason(String),
}

/// By name.
pub type Rows = BTreeMap<String, Ceiling>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceilings {
    sections: BTreeMap<String, Rows>,
}

impl Ceilings {
    pub fn read(text: &str) -> Result<Ceilings, String> {
        let mut ceilings = Ceilings::default();
        let mut section = None;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |why: &str| format!("ceilings.toml:{}: {why}: `{line}`", at + 1);
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = Some(name.to_string());
                continue;
            }
            let rows = section.clone().ok_or_else(|| refuse("a row before the first [section]"))?;
            let (name, ceiling) = row(line).ok_or_else(|| refuse("not `name = number` or `name = \"reason\"`"))?;
            if ceilings.sections.entry(rows).or_default().insert(name, ceiling).is_some() {
                return Err(refuse("a second row of this name"));
            }
        }
        Ok(ceilings)
    }

    pub fn rows(&self, section: &str) -> Rows {
        self.sections.get(section).cloned().unwrap_or_default()
    }

    pub fn set(&mut self, section: &str, rows: Rows) {
        self.sections.insert(section.to_string(), rows);
    }

    /// The names of its sections.
    pub fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }

    /// The text of the file: these sections in this order, each with what stands above it.
    pub fn text(&self, head: &str, sections: &[(&str, &str)]) -> String {
        let mut text = comment(head);
        for (section, about) in sections {
            text.push('\n');
            text += &comment(about);
            let _ = writeln!(text, "[{section}]");
            for (name, ceiling) in self.rows(section) {
                let _ = match ceiling {
                    Ceiling::Number(number) => writeln!(text, "{} = {number}", key(&name)),
                    Ceiling::Reason(reason) => writeln!(text, "{} = \"{reason}\"", key(&name)),
                };
            }
        }
        text
    }
}

fn row(line: &str) -> Option<(String, Ceiling)> {
    let (name, value) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(name, rest)| (name, rest.trim_start().strip_prefix('=')))?,
        None => line.split_once('=').map(|(name, rest)| (name.trim_end(), Some(rest)))?,
    };
    let value = value?.trim();
    let ceiling = match value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) {
        Some(reason) if !reason.trim().is_empty() => Ceiling::Reason(reason.to_string()),
        Some(_) => return None,
        None => Ceiling::Number(value.replace('_', "").parse().ok()?),
    };
    Some((name.to_string(), ceiling))
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_string() } else { format!("\"{name}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Head.\n\n# Lines.\n[rooms]\n\"measure/device\" = 5100\nplan = 3_050\n\n# Lists.\n[lists]\n\"a B\" = \"of another kind\"\n";

    #[test]
    fn a_file_is_read_and_written_again() {
        let ceilings = Ceilings::read(TEXT).expect("is valid");
        assert_eq!(ceilings.rows("rooms")["measure/device"], Ceiling::Number(5100));
        assert_eq!(ceilings.rows("lists")["a B"], Ceiling::Reason("of another kind".into()));
        assert!(ceilings.rows("types").is_empty());
        let written = ceilings.text("Head.", &[("rooms", "Lines."), ("lists", "Lists.")]);
        assert_eq!(written, TEXT.replace("3_050", "3050"));
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        let refused = |text: &str| Ceilings::read(text).expect_err("is invalid");
        assert_eq!(refused("a = 1"), "ceilings.toml:1: a row before the first [section]: `a = 1`");
        assert!(refused("[x]\na = many").starts_with("ceilings.toml:2: not `name = number`"));
        assert!(refused("[x]\na = \"\"").starts_with("ceilings.toml:2: not `name = number`"));
        assert!(refused("[x]\na = 1\na = 2").starts_with("ceilings.toml:3: a second row of this name"));
    }
}
