//! Which epochs a member trains, and which of them it measures: the rule of `go`, as the Python half has it.

/// The epochs of one member, one after another.
#[derive(Debug, Clone, Copy, Default)]
pub struct EpochPlan {
    /// At least so many, with two or more the first unmeasured.
    epochs: u64,
    /// At least so long from the start of the first measured one.
    measure_for_ns: u64,
    keep_running: bool,
    /// The next one.
    pub index: u64,
    measured_from_ns: Option<u64>,
    is_done: bool,
}

impl EpochPlan {
    pub fn new(epochs: u64, measure_for_ns: u64, keep_running: bool) -> Self {
        EpochPlan { epochs, measure_for_ns, keep_running, ..EpochPlan::default() }
    }

    /// True if there is a next epoch.
    pub fn goes_on(&self) -> bool {
        !self.is_done || self.keep_running
    }

    /// True if the next epoch is measured.
    pub fn measures(&self) -> bool {
        !self.is_done && (self.index > 0 || self.epochs == 1)
    }

    /// An epoch ended. True if it was the last measured one.
    pub fn ends(&mut self, start_ns: u64, end_ns: u64) -> bool {
        if self.measures() {
            self.measured_from_ns.get_or_insert(start_ns);
        }
        self.index += 1;
        let is_long = self.measured_from_ns.is_some_and(|from| end_ns - from >= self.measure_for_ns);
        let is_last = !self.is_done && self.index >= self.epochs && is_long;
        self.is_done |= is_last;
        is_last
    }
}
