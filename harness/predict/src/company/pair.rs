//! Slowdowns while both trained. In: how long two members took alone, and how long together; or the speeds of both. Out: the slowdown of
//! each while the other trained.
//!
//! The shorter member had company all the time. The longer one went on alone, at its speed alone, once the other had ended; so while
//! both ran it did what was left: its speed was (solo − (longer − shorter)) ÷ shorter.

/// Seconds of whole runs of two members that began together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairTimes {
    pub solo_s: [f64; 2],
    pub pair_s: [f64; 2],
}

/// Of both members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// While both trained.
    pub slowdown: [f64; 2],
    /// Over the whole runs, of which the longer member trained a part alone.
    pub whole: [f64; 2],
}

/// Why no two such runs can have been.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Impossible {
    #[error("a time is not a number of seconds above 0")]
    NotATime,
    #[error("a speed is not a number above 0")]
    NotASpeed,
    #[error(
        "the longer run went on for {alone_s:.0} s after the other had ended, and takes {solo_s:.0} s alone: it would have done nothing before"
    )]
    NothingTogether { alone_s: f64, solo_s: f64 },
    #[error("a member of the pair was {times:.1} × as fast as alone")]
    FasterThanAlone { times: f64 },
}

/// A member ÷ its speed alone: repeats of one run differ by some percent, and a member may gain a little from caches that another has
/// warmed; more is a mistake.
const MOST_SPEED: f64 = 2.0;

/// Whether all are numbers above 0.
fn are_positive<'a>(mut all: impl Iterator<Item = &'a f64>) -> bool {
    all.all(|number| *number > 0.0 && number.is_finite())
}

impl PairTimes {
    /// The longer run's time alone taken out.
    pub fn together(&self) -> Result<Together, Impossible> {
        if !are_positive(self.solo_s.iter().chain(&self.pair_s)) {
            return Err(Impossible::NotATime);
        }
        let whole = [self.pair_s[0] / self.solo_s[0], self.pair_s[1] / self.solo_s[1]];
        let longer = usize::from(self.pair_s[1] > self.pair_s[0]);
        let both_s = self.pair_s[1 - longer];
        let alone_s = self.pair_s[longer] - both_s;
        let done_s = self.solo_s[longer] - alone_s;
        if done_s <= 0.0 {
            return Err(Impossible::NothingTogether { alone_s, solo_s: self.solo_s[longer] });
        }
        let mut slowdown = whole;
        slowdown[longer] = both_s / done_s;
        Together { slowdown, whole }.checked()
    }
}

impl Together {
    /// Of members that trained together all the time. `speed`: of each, as a share of its speed alone.
    pub fn of_speeds(speed: [f64; 2]) -> Result<Together, Impossible> {
        if !are_positive(speed.iter()) {
            return Err(Impossible::NotASpeed);
        }
        let slowdown = speed.map(|share| 1.0 / share);
        Together { slowdown, whole: slowdown }.checked()
    }

    fn checked(self) -> Result<Together, Impossible> {
        let fastest = 1.0 / self.slowdown[0].min(self.slowdown[1]);
        if fastest > MOST_SPEED {
            return Err(Impossible::FasterThanAlone { times: fastest });
        }
        Ok(self)
    }

    /// By which share of itself the slowdown of the longer member changed.
    pub fn change(&self) -> f64 {
        let of = |member: usize| (self.slowdown[member] / self.whole[member] - 1.0).abs();
        of(0).max(of(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(solo_s: [f64; 2], pair_s: [f64; 2]) -> PairTimes {
        PairTimes { solo_s, pair_s }
    }

    #[test]
    fn the_time_in_which_the_longer_trained_alone_is_taken_out() {
        // Both at half their speed: 100 s of work in 200 s; the longer has 50 s of work left then, alone.
        let found = pair([150.0, 100.0], [250.0, 200.0]).together().expect("possible");
        assert_eq!(found.slowdown, [2.0, 2.0]);
        assert!((found.change() - 0.2).abs() < 1e-12, "{found:?}");
        // The order of the members is nothing to it.
        assert_eq!(pair([100.0, 150.0], [200.0, 250.0]).together().expect("possible").slowdown, [2.0, 2.0]);
    }

    #[test]
    fn runs_that_ended_together_stay_as_they_are() {
        let found = pair([100.0, 80.0], [120.0, 120.0]).together().expect("possible");
        assert_eq!((found.slowdown, found.change()), ([1.2, 1.5], 0.0));
    }

    #[test]
    fn speeds_are_slowdowns_of_which_nothing_is_taken_out() {
        let found = Together::of_speeds([0.5, 0.8]).expect("possible");
        assert_eq!((found.slowdown, found.whole, found.change()), ([2.0, 1.25], [2.0, 1.25], 0.0));
        assert_eq!(Together::of_speeds([0.5, 4.0]), Err(Impossible::FasterThanAlone { times: 4.0 }));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Together::of_speeds([0.5, wrong]), Err(Impossible::NotASpeed));
        }
    }

    #[test]
    fn what_cannot_have_been_is_refused() {
        let nothing = pair([100.0, 50.0], [200.0, 60.0]).together().expect_err("more alone than it takes");
        assert_eq!(nothing, Impossible::NothingTogether { alone_s: 140.0, solo_s: 100.0 });
        assert_eq!(pair([100.0, 50.0], [40.0, 60.0]).together(), Err(Impossible::FasterThanAlone { times: 2.5 }));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(pair([100.0, wrong], [40.0, 60.0]).together(), Err(Impossible::NotATime));
        }
    }
}
