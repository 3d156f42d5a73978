//! What may be said of measured groups. In: cells of an analysis. Out: answers that count what could not be judged, rankings with
//! their ties, the scope of a sentence, agreement with published figures, and the command that would decide. Guidelines, the table
//! of what to run, figures and the terminal take their verdicts from here.

mod agreement;
mod answer;
mod cause;
mod groups;
mod next;
mod ranking;
mod scope;

pub use agreement::equivalence;
pub use agreement::{Agreement, of_figures, of_statement, where_possible};
pub use answer::{Holds, of_all, of_some};
pub use cause::Cause;
pub use groups::Groups;
pub use next::{Next, next};
pub use ranking::{Ranking, rank};
pub use scope::{Scope, unfinished};
