//! The case study of HotCloud'20 on paper: what its three schedulers would do with a hundred jobs, and what a useless predictor would.
//!
//! The paper gives its results, not its jobs. They are drawn here from what it says of them; what it does not say is assumed, and
//! `assumptions` tells readers what.

mod arm;
mod figures;
mod jobs;
mod law;
mod published;

pub use arm::Arm;
pub use figures::{CaseStudy, Holds, Quantity, Range};
pub use law::Law;
pub use published::{HotCloud20, PublishedArm, Spread, published};

/// What was assumed, for readers.
pub fn assumptions(law: Law) -> Vec<String> {
    let says = published();
    jobs::assumptions(says).into_iter().chain(arm::assumptions(says)).chain([law.assumption(says)]).collect()
}
