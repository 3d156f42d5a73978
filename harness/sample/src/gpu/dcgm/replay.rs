//! Recorded `dcgmi` output, parsed as the sampler does while it runs: for texts collected from real GPUs.

use super::discovery::Hierarchy;
use super::dmon::Parser;
use super::inventory::Inventory;

/// The parsed content of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Understood {
    /// Rows with values.
    pub rows: usize,
    /// Numbers in them; cells without one do not count.
    pub values: usize,
    /// Lines that should be understood but are not, with the reason.
    pub unread: Vec<String>,
}

/// Parse the stdout of `dcgmi dmon`.
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

/// Whether the output of `dcgmi discovery -c` has this GPU, by its UUID.
pub fn hierarchy_has(text: &str, uuid: &str) -> bool {
    Hierarchy::parse(text).gpu(uuid).is_some()
}

/// The entity of a GPU in the output of `dcgmi discovery -l`, by its UUID: DCGM's own number, which is not always the driver's index.
pub fn entity(text: &str, uuid: &str) -> Option<u32> {
    Inventory::parse(text).card(uuid)
}

/// The entities of a GPU and of its GPU instances in the output of `dcgmi discovery -c`, by its UUID; `None` if it is not there, as without
/// instances.
pub fn parts(text: &str, uuid: &str) -> Option<(u32, Vec<u32>)> {
    let hierarchy = Hierarchy::parse(text);
    let gpu = hierarchy.gpu(uuid)?;
    let parts = hierarchy.instances.iter().filter(|instance| instance.gpu == gpu.index).map(|instance| instance.entity);
    Some((gpu.entity, parts.collect()))
}
