//! Which task goes where, and when. Pure: no process, no clock, no file, no printing.
//!
//! In: tasks with what is known of them, cards, a policy. Out: who starts where. The same books serve a body of processes and a body of
//! events; `project` is the second: it plays tasks on paper and says how long everything would take. What it says is *projected*.
//!
//! ```text
//! Task ──▶ Ledger (queue, policy, recovery) ──Act──▶ project: a heap of events ──▶ Projection
//!             ▲────────────Happened─────────────────────────┘   ▲
//!                                                             Paces
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod hotcloud20;
mod ledger;
pub mod policy;
pub mod project;
mod queue;
mod recovery;
mod task;
mod view;

pub use ledger::{Act, Happened, Ledger, State};
pub use queue::Order;
pub use recovery::Recovery;
pub use task::{Attempt, AttemptId, CardId, HowEnded, Task, TaskId};
pub use view::{CardView, Resident, View};

/// The whole of something in per mille, as utilisation is counted.
pub const WHOLE_PERMILLE: u32 = 1000;
