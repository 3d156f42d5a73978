//! The levels of the procedure, tuned by the simulation in `tests/history.rs`. In: nothing. Out: numbers.

/// Windows of nights that are compared with the nights before.
pub const WINDOWS: [usize; 3] = [1, 2, 3];
/// Nights before a cell is judged for the first time.
pub const NIGHTS_TO_LEARN: usize = 5;
/// Nights after an accepted step before the cell is judged again; the spread is known from before.
pub const NIGHTS_AFTER_STEP: usize = 2;
/// The newest nights among which a confirmed step began.
pub const NIGHTS_OF_A_STEP: usize = 10;
/// Nights that a level and a spread are learnt from: the most recent ones.
pub const NIGHTS_BACK: usize = 40;
/// A night whose cells scatter by this factor more than usual is disturbed.
pub const DISTURBED: f64 = 1.5;

/// The levels of the procedure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Below this ratio − 1 a step is not reported.
    pub relevance: f64,
    /// Level per cell and window at which a cell is measured again.
    pub lenient: f64,
    /// Level of a night, divided by the suspicious cells, at which added repetitions confirm a step.
    pub confirm: f64,
    /// The share of that level for each window.
    pub shares: [f64; 3],
    /// Level of a night, divided by cells × windows, at which a step is reported without re-measurement.
    pub strict: f64,
    /// Repetitions added to a suspicious cell.
    pub more: usize,
    /// False if nothing is re-measured.
    pub again: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { relevance: 0.02, lenient: 0.01, confirm: 0.005, shares: [0.2, 0.4, 0.4], strict: 0.05, more: 9, again: true }
    }
}
