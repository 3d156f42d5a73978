//! How long an epoch of a simulated member is, in batches. Pure.
//!
//! Unless somebody asks for more, epochs are cut to about `COLLO_SIM_EPOCH_S` whatever the workload, so that matrices are over soon. Where
//! times have to be in proportion, as in a trace, `limit_batches` is a share of the epoch, which takes its true time, or
//! `COLLO_SIM_SCALE` divides every whole epoch by the same number.

use std::collections::BTreeMap;

use super::variables::Variables;

/// How long an epoch takes alone, about.
const EPOCH_S: f64 = 1.5;

/// What epochs without a share are cut to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shortening {
    /// About so many seconds alone, or a whole epoch if that is shorter.
    Seconds(f64),
    /// That part of a whole one.
    Scale(f64),
}

impl Shortening {
    /// `COLLO_SIM_SCALE`, else `COLLO_SIM_EPOCH_S`.
    pub fn from_variables(variables: &Variables) -> Shortening {
        let number = |name: &str| variables.number(name).filter(|n: &f64| n.is_finite() && *n > 0.0);
        match number("COLLO_SIM_SCALE") {
            Some(scale) => Shortening::Scale(scale.max(1.0)),
            None => Shortening::Seconds(number("COLLO_SIM_EPOCH_S").unwrap_or(EPOCH_S)),
        }
    }

    /// The longest that somebody may serve for an epoch.
    pub fn serving_s(self) -> f64 {
        match self {
            Shortening::Seconds(seconds) => seconds,
            Shortening::Scale(_) => EPOCH_S,
        }
    }
}

/// Batches of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochLength {
    pub batches: u64,
    /// They are fewer than the data have.
    pub is_cut: bool,
}

/// The epoch of a member with these options, whose data have so many batches of so many seconds each.
pub fn of(options: &BTreeMap<String, String>, whole: u64, batch_s: f64, shortening: Shortening) -> EpochLength {
    let whole = whole.max(1);
    let limit = options.get("limit_batches").and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let short = match shortening {
        Shortening::Seconds(seconds) => seconds / batch_s,
        Shortening::Scale(scale) => whole as f64 / scale,
    };
    let short = (short.round() as u64).clamp(1, whole);
    let batches = match limit {
        // As `batches_left` of `collo_loader.py`.
        share if share > 0.0 && share < 1.0 => ((share * whole as f64) as u64).max(1),
        asked if asked >= 1.0 => short.min(asked as u64),
        _ => short,
    };
    EpochLength { batches, is_cut: batches < whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(limit: &str, shortening: Shortening) -> u64 {
        let options = BTreeMap::from([("limit_batches".to_string(), limit.to_string())]);
        let length = of(&options, 1000, 0.1, shortening);
        assert_eq!(length.is_cut, length.batches < 1000);
        length.batches
    }

    #[test]
    fn epochs_are_about_as_long_as_asked_and_a_number_of_batches_shortens_them_further() {
        let short = Shortening::Seconds(1.5);
        assert_eq!(["0", "4", "40"].map(|limit| batches(limit, short)), [15, 4, 15]);
        assert_eq!((batches("0", Shortening::Seconds(1e9)), batches("0", Shortening::Seconds(1e-9))), (1000, 1));
    }

    #[test]
    fn a_share_of_an_epoch_takes_its_true_time_whatever_the_others_are_cut_to() {
        for shortening in [Shortening::Seconds(0.3), Shortening::Scale(60.0)] {
            assert_eq!(["0.5", "0.25", "0.00001"].map(|limit| batches(limit, shortening)), [500, 250, 1]);
        }
    }

    #[test]
    fn a_scale_divides_whole_epochs() {
        let scale = Shortening::Scale(60.0);
        assert_eq!(["0", "4", "40"].map(|limit| batches(limit, scale)), [17, 4, 17]);
        assert_eq!(batches("0", Shortening::Scale(1.0)), 1000);
    }
}
