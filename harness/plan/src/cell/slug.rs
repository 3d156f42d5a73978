//! The folder name of a cell: its label in characters valid on every file system, and digits of its hash.

use collo_store::sha256_text;

use super::Cell;

const LONGEST: usize = 100;

pub fn of(cell: &Cell, digits: usize) -> String {
    let label = cell.label();
    let mut readable = String::new();
    for c in label.to_lowercase().chars() {
        match c {
            '×' => readable.push('x'),
            ':' | ',' => readable.push('.'),
            '=' => readable.push('-'),
            '%' => readable.push_str("pct"),
            c if c.is_ascii_alphanumeric() || "._+-".contains(c) => readable.push(c),
            _ => readable.push('_'),
        }
    }
    readable.truncate(LONGEST);
    // The hash covers what the label leaves out, so that a workload's new default is another folder.
    let mut identity = format!("{label}\n{}", cell.after_measured.digest_word());
    if let Some(trace) = cell.trace() {
        identity.push_str(&format!("\n{}", trace.identity()));
    }
    for term in &cell.terms {
        identity.push_str(&format!("\n{} {}", term.count, term.member.key));
    }
    format!("{readable}~{}", &sha256_text(&identity)[..digits.min(64)])
}
