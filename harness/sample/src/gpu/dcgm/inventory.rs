//! Parses `dcgmi discovery -l`: which entity of DCGM's is which GPU.
//!
//! Every GPU is listed, partitioned or not (DCGM 2.1.4 to 4.6.0, dcgmi/Query.cpp, `DisplayDiscoveredDevices`): its GPU ID is the
//! number of its entity. Lines before the table count the GPUs; tables of switches, network cards and processors follow.

use super::dmon::whole;

/// The GPUs that the host engine knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Entity and UUID.
    cards: Vec<(u32, String)>,
}

impl Inventory {
    /// Read the table of GPUs; lines that are not understood are left out, as is a number or a UUID of two GPUs.
    pub fn parse(text: &str) -> Inventory {
        let mut cards: Vec<(u32, String)> = Vec::new();
        let mut entity = None;
        for line in text.lines() {
            let line = line.trim();
            // A line between two cards, or around a table: what comes next is of no card before.
            if line.starts_with('+') {
                entity = None;
            }
            let Some((number, about)) = cells(line) else { continue };
            if !number.is_empty() {
                entity = whole(number);
            }
            let uuid = about.strip_prefix("Device UUID:").map(str::trim).filter(|u| u.starts_with("GPU-"));
            cards.extend(entity.zip(uuid).map(|(entity, uuid)| (entity, uuid.to_string())));
        }
        let claims = |card: &(u32, String)| cards.iter().filter(|c| c.0 == card.0 || c.1 == card.1).count();
        Inventory { cards: cards.iter().filter(|card| claims(card) == 1).cloned().collect() }
    }

    /// The entity of a GPU.
    pub fn card(&self, uuid: &str) -> Option<u32> {
        self.cards.iter().find(|(_, own)| own == uuid).map(|(entity, _)| *entity)
    }
}

/// `| 0      | Name: NVIDIA A100-SXM4-40GB      |`
fn cells(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|');
    let (number, about) = (cells.next()?.trim(), cells.next()?.trim());
    cells.next().is_none().then_some((number, about))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rules of DCGM 4.6.0: columns of 8 and 70, a line after each GPU, further tables.
    const TABLE: &str = "\
2 GPUs found (Active).
Note: Use -a flag to show all GPUs, including those that are not active.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 3      | Name: NVIDIA A100-SXM4-40GB                                          |
|        | PCI Bus ID: 00000000:07:00.0                                         |
|        | Device UUID: GPU-5a1c                                                |
+--------+----------------------------------------------------------------------+
| 4      | Error: Cannot get device attributes for GPU.                         |
|        | Return: GPU is lost                                                  |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA A100-SXM4-40GB                                          |
|        | PCI Bus ID: 00000000:0F:00.0                                         |
|        | Device UUID: GPU-77fe                                                |
+--------+----------------------------------------------------------------------+
Error: Cannot get NvSwitch list from remote node. Return: This request is serviced by a module of DCGM that is not currently loaded
";

    #[test]
    fn a_card_is_known_by_its_uuid_wherever_it_stands() {
        let all = Inventory::parse(TABLE);
        assert_eq!((all.card("GPU-5a1c"), all.card("GPU-77fe"), all.card("GPU-0000")), (Some(3), Some(0), None));
    }

    #[test]
    fn a_uuid_without_a_number_of_its_own_is_of_no_card() {
        let cut = TABLE.replace("| 0      | Name: NVIDIA A100-SXM4-40GB  ", "| ?      | Name: NVIDIA A100-SXM4-40GB  ");
        assert_eq!(Inventory::parse(&cut).card("GPU-77fe"), None);
        let twice = TABLE.replace("GPU-77fe", "GPU-5a1c");
        assert_eq!(Inventory::parse(&twice).card("GPU-5a1c"), None);
    }

    #[test]
    fn lines_that_are_cut_short_say_nothing_wrong() {
        let whole = Inventory::parse(TABLE);
        for cut in 0..TABLE.len() {
            let part = Inventory::parse(&TABLE[..cut]);
            assert!(part.cards.iter().all(|c| whole.cards.contains(c)), "{part:?}");
        }
    }
}
