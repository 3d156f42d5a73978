//! Which task goes where, and when. Pure: no process, no clock, no file, no printing.
//!
//! In: tasks with what is known of them, cards, a policy. Out: who starts where. The same books serve a body of processes and a body of
//! events: `project` of the example `hotcloud20` plays tasks on paper, and how long everything would take is *projected*.
//!
//! ```text
//! trace ──▶ Task ──▶ Ledger (queue, policy, recovery) ──Act──▶ a body: processes and cards, or `project`: a heap of events
//!                      ▲────────────────Happened───────────────────────┘
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod account;
mod cards;
mod decided;
mod event;
mod ledger;
pub mod policy;
mod queue;
mod recovery;
mod replay;
mod rules;
mod task;
pub mod trace;
mod view;

pub use account::{AttemptAccount, Ended, State, TaskAccount};
pub use cards::Resident;
pub use decided::{Decided, Decision, Seen, WhyNot};
pub use event::{Act, Happened, HowEnded, Reading, Why};
pub use ledger::{Ledger, Site};
pub use queue::Discipline;
pub use recovery::Recovery;
pub use replay::{Replayed, replay};
pub use rules::{DEFAULT_ATTEMPTS, DEFAULT_WINDOW_NS, Keeps, Rules, SiteCard};
pub use task::{Attempt, AttemptId, CardId, Task, TaskId};
pub use view::CardView;

/// The whole of something in per mille, as utilisation is counted.
pub const WHOLE_PERMILLE: u32 = 1000;
