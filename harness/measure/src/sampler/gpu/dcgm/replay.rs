//! A text that a `dcgmi` printed somewhere, read as the sampler reads it while it runs: for texts that were brought home from real cards.

use super::discovery::Hierarchy;
use super::dmon::Parser;

/// What was understood of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Understood {
    /// Rows with values.
    pub rows: usize,
    /// Numbers in them; cells without one do not count.
    pub values: usize,
    /// Lines that are not read and should be, with the reason.
    pub unread: Vec<String>,
}

/// What `dcgmi dmon` printed on stdout.
pub fn dmon(text: &str) -> Understood {
    let mut understood = Understood::default();
    let mut parser = Parser::default();
    for line in text.lines() {
        match parser.line(line) {
            Ok(row) => {
                understood.rows += 1;
                understood.values += row.values.iter().filter(|(_, value)| value.is_some()).count();
            }
            Err(why) if why.is_expected() => {}
            Err(why) => understood.unread.push(format!("{why:?}: {line}")),
        }
    }
    understood
}

/// Whether what `dcgmi discovery -c` printed knows this card, by its UUID.
pub fn hierarchy_has(text: &str, uuid: &str) -> bool {
    Hierarchy::parse(text).gpu(uuid).is_some()
}
