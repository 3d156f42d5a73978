//! The rules of a site: what a run stores, so that its decisions can be replayed.

use collo_text::Diagnostic;
use serde::{Deserialize, Serialize};

/// The mean over this window is what a reading of utilisation says: 90 s in the study, and 30 s were found to be enough.
pub const DEFAULT_WINDOW_NS: u64 = 90_000_000_000;
/// Attempts that may run out of memory, the last of them alone on a card.
pub const DEFAULT_ATTEMPTS: u32 = 4;

/// Everything that decides, apart from what happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The label of a policy: `magm:sm=80%,free=5GB`.
    pub policy: String,
    /// `fifo`, `fifo:pass=K`, `fifo:one` or `decreasing`.
    #[serde(default = "fifo")]
    pub queue: String,
    /// `exclusive`, `step:5GB` or `none`.
    #[serde(default = "exclusive")]
    pub recovery: String,
    #[serde(default)]
    pub recovery_keeps: Keeps,
    /// So many attempts at a task may run out of memory.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// Readings older than this do not count.
    pub window_ns: u64,
    /// Decide at whole multiples of this time alone; `None`: at every event.
    #[serde(default)]
    pub decide_every_ns: Option<u64>,
    /// Idle cards come before all others, whatever the order of the policy.
    #[serde(default = "yes")]
    pub idle_first: bool,
    /// So many tasks will arrive; when all have ended it is over. `None`: nobody knows how many.
    #[serde(default)]
    pub expects: Option<u32>,
    pub cards: Vec<SiteCard>,
}

/// A card of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteCard {
    pub capacity_bytes: u64,
    /// Kept free for what drivers and contexts hold outside of any estimate.
    #[serde(default)]
    pub reserve_bytes: u64,
    #[serde(default)]
    pub node: u32,
}

/// What is kept free of newcomers while a task that ran out of memory waits for a card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// As many cards as it needs.
    #[default]
    Card,
    /// Every card that is not idle, as in the study's code: nobody is collocated meanwhile.
    All,
    /// No card: later tasks may take what it waits for.
    Nothing,
}

fn fifo() -> String {
    "fifo".into()
}

fn exclusive() -> String {
    "exclusive".into()
}

fn attempts() -> u32 {
    DEFAULT_ATTEMPTS
}

fn yes() -> bool {
    true
}

impl Rules {
    /// The rules of a policy over these cards, with every default.
    pub fn of(policy: impl Into<String>, cards: Vec<SiteCard>) -> Rules {
        Rules {
            policy: policy.into(),
            queue: fifo(),
            recovery: exclusive(),
            recovery_keeps: Keeps::default(),
            attempts: DEFAULT_ATTEMPTS,
            window_ns: DEFAULT_WINDOW_NS,
            decide_every_ns: None,
            idle_first: true,
            expects: None,
            cards,
        }
    }

    /// Refuses what no site can be.
    pub(crate) fn checked(&self) -> Result<(), Diagnostic> {
        if self.cards.is_empty() {
            return Err(Diagnostic::new("a site without cards has nothing to decide").hint("give at least one card"));
        }
        if let Some((card, of)) = (0..).zip(&self.cards).find(|(_, of): &(u32, _)| of.reserve_bytes >= of.capacity_bytes) {
            let what =
                format!("the reserve of card {card}, {} bytes, leaves nothing of its {}", of.reserve_bytes, of.capacity_bytes);
            return Err(Diagnostic::new(what).hint("lower the reserve"));
        }
        if self.window_ns == 0 {
            return Err(Diagnostic::new("a window of 0 makes every reading too old").hint("write at least 1 s"));
        }
        if self.attempts == 0 {
            return Err(Diagnostic::new("`attempts` 0 allows no task to start").hint("write 1 or more"));
        }
        if self.decide_every_ns == Some(0) {
            return Err(Diagnostic::new("a cadence of 0 decides for ever").hint("leave `decide` out to decide at every event"));
        }
        Ok(())
    }
}
