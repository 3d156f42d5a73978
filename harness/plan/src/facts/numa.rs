//! Where the memory of members is to be.

/// Where members allocate their memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NumaMemory {
    /// The system decides.
    #[default]
    System,
    /// On the nodes of the member's cores, and nowhere else.
    Local,
}

impl NumaMemory {
    pub const WORDS: &'static [&'static str] = &["system", "local"];

    pub fn parse(word: &str) -> Option<NumaMemory> {
        match word {
            "system" => Some(NumaMemory::System),
            "local" => Some(NumaMemory::Local),
            _ => None,
        }
    }
}
