//! What a policy sees of a card.

use crate::task::CardId;

/// A card: readings and promises, nothing of the future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardView {
    pub card: CardId,
    pub node: u32,
    /// Its memory less the reserve.
    pub usable_bytes: u64,
    /// As last read, less the reserve and less what has settled since.
    pub free_bytes: u64,
    /// To attempts that no reading counts yet.
    pub promised_bytes: u64,
    pub residents: u32,
    /// Of these, who has not settled.
    pub unsettled: u32,
    /// The utilisation that its residents are believed to have, added up. One of whom nothing is believed counts as a whole card.
    pub believed_permille: u32,
    pub sm_permille: Option<u32>,
    pub occupancy_permille: Option<u32>,
    pub dram_permille: Option<u32>,
    /// When it was read; `None` if it never was.
    pub read_ns: Option<u64>,
    /// Somebody on it is being watched in isolation.
    pub profiled: bool,
    pub lost: bool,
}

impl CardView {
    pub fn is_idle(&self) -> bool {
        self.residents == 0
    }

    /// What a newcomer may count on.
    pub fn unpromised_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.promised_bytes)
    }
}
