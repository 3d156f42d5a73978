//! What happens to a task that ran out of memory: it is tried again, and asks for more.

use std::fmt;

use collo_text::{Diagnostic, Source, nearest, quoted, units};

use crate::decided::WhyNot;
use crate::view::CardView;

/// The rule for further attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// On an idle card.
    Exclusive,
    /// On a card with so much more free than where it ran out of memory, in its last attempt on an idle one.
    Step(u64),
    /// Never.
    None,
}

const NAMES: [&str; 3] = ["exclusive", "step", "none"];

/// What a task that ran out of memory asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asks {
    free_bytes: u64,
    idle: bool,
}

impl Recovery {
    /// `exclusive`, `step:5GB`, `none`.
    pub fn parse(text: &str) -> Result<Recovery, Diagnostic> {
        let source = Source::argument("recovery", text);
        let name = text.split(':').next().unwrap_or_default();
        match (text, text.strip_prefix("step:")) {
            ("exclusive", _) => Ok(Recovery::Exclusive),
            ("none", _) => Ok(Recovery::None),
            (_, Some(size)) => units::size_bytes(size).filter(|bytes| *bytes > 0).map(Recovery::Step).ok_or_else(|| {
                let wrong = Diagnostic::new(format!("{} is no size of a step", quoted(size))).at(&source, 5..text.len());
                wrong.note(format!("write `step:5GB`; {}", units::SIZE_HELP))
            }),
            _ => {
                let near = nearest(name, NAMES).filter(|near| *near != name);
                let note = near.map_or("one of `exclusive`, `step:5GB` or `none`".into(), |near| match near {
                    "step" => "did you mean `step:5GB`?".into(),
                    near => format!("did you mean `{near}`?"),
                });
                Err(Diagnostic::new(format!("unknown recovery {}", quoted(text))).at(&source, 0..text.len()).note(note))
            }
        }
    }

    /// What the next of so many attempts asks for, after `ran_out` of them, the last with so much left free by the others; `None`: there
    /// is none.
    pub(crate) fn after(self, ran_out: u32, attempts: u32, free_bytes: u64) -> Option<Asks> {
        let last = ran_out + 1 >= attempts;
        let asks = match self {
            Recovery::None => return None,
            Recovery::Exclusive => Asks { free_bytes: 0, idle: true },
            Recovery::Step(bytes) => Asks { free_bytes: free_bytes.saturating_add(bytes), idle: last },
        };
        (ran_out < attempts).then_some(asks)
    }
}

impl Asks {
    /// Of cards with somebody on them, only those whose readings are final.
    pub fn refuses(&self, card: &CardView) -> Option<WhyNot> {
        match self {
            Asks { idle: true, .. } => Some(WhyNot::NotIdle),
            _ if card.unsettled > 0 => Some(WhyNot::Unsettled),
            _ => (card.free_bytes < self.free_bytes).then_some(WhyNot::NoBetter),
        }
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recovery::Exclusive => f.write_str("exclusive"),
            Recovery::Step(bytes) => write!(f, "step:{}", units::size_text(*bytes)),
            Recovery::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::CardId;

    fn card(free_bytes: u64, unsettled: u32) -> CardView {
        CardView {
            card: CardId(0),
            node: 0,
            usable_bytes: 8,
            free_bytes,
            promised_bytes: 0,
            residents: 1,
            unsettled,
            believed_permille: 0,
            sm_permille: None,
            occupancy_permille: None,
            dram_permille: None,
            read_ns: None,
            profiled: false,
            lost: false,
        }
    }

    #[test]
    fn a_further_attempt_asks_for_more_and_the_last_for_an_idle_card() {
        let second = Recovery::Step(2).after(1, 3, 3).expect("another");
        assert_eq!(second.refuses(&card(5, 0)), None);
        assert_eq!(second.refuses(&card(4, 0)), Some(WhyNot::NoBetter));
        assert_eq!(second.refuses(&card(5, 1)), Some(WhyNot::Unsettled), "what has not settled is in no reading");
        let third = Recovery::Step(2).after(2, 3, 3).expect("another");
        assert_eq!(third.refuses(&card(7, 0)), Some(WhyNot::NotIdle));
        assert_eq!(Recovery::Step(2).after(3, 3, 3), None);
    }

    #[test]
    fn without_a_rule_there_is_no_further_attempt_and_the_study_s_asks_for_an_idle_card() {
        assert_eq!(Recovery::None.after(1, 9, 3), None);
        assert_eq!(Recovery::Exclusive.after(1, 9, 3).expect("another").refuses(&card(8, 0)), Some(WhyNot::NotIdle));
    }

    #[test]
    fn a_recovery_reads_back_as_it_is_written_and_a_slip_finds_its_word() {
        for text in ["exclusive", "step:5GB", "step:1GiB", "none"] {
            assert_eq!(Recovery::parse(text).expect("known").to_string(), text);
        }
        let hint = |text| Recovery::parse(text).expect_err("unknown").way_out().map(str::to_string);
        assert_eq!(hint("exklusive").as_deref(), Some("did you mean `exclusive`?"));
        assert_eq!(hint("step").as_deref(), Some("one of `exclusive`, `step:5GB` or `none`"));
        for wrong in ["step:", "step:5", "step:0B", "none:1", ""] {
            assert!(Recovery::parse(wrong).is_err(), "{wrong}");
        }
    }
}
