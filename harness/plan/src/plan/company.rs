//! What company is expected to give and to cost: as measured here, else as predicted.

use super::{Basis, ForecastSource, Seated};
use collo_store::AfterMeasured;

/// Work per second relative to running in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GainForecast {
    pub estimate: f64,
    /// 95 % of measurements are meant to be between these; absent of a measured one.
    pub bounds: Option<(f64, f64)>,
    pub source: ForecastSource,
}

/// Of a group that was measured here, else of one of which it is predicted.
pub(super) fn gain(seated: Seated<'_>, basis: &Basis<'_>) -> Option<GainForecast> {
    let record = seated.record;
    if record.members.len() < 2 {
        return None;
    }
    let measured = basis.prior.measured.of(record).and_then(|cell| cell.throughput_gain);
    if let Some(estimate) = measured {
        return Some(GainForecast { estimate, bounds: None, source: ForecastSource::Measured });
    }
    let gain = basis.prior.useful_company_of(record)?.throughput_gain?;
    Some(GainForecast { estimate: gain.estimate, bounds: Some((gain.low, gain.high)), source: ForecastSource::Predicted })
}

/// The time until every member has trained an epoch, from their epochs alone and their slowdowns while all of them train.
pub fn in_company_s(after_measured: AfterMeasured, alone_s: &[f64], slowdowns: &[f64]) -> f64 {
    let in_company = || alone_s.iter().zip(slowdowns).map(|(alone_s, slowdown)| alone_s * slowdown);
    match after_measured {
        AfterMeasured::KeepRunning => in_company().fold(0.0, f64::max),
        AfterMeasured::Exit => until_all_left_s(alone_s, slowdowns),
    }
}

/// Members leave when they are done. What company costs is taken to fall in proportion to those who have left.
fn until_all_left_s(alone_s: &[f64], slowdowns: &[f64]) -> f64 {
    let others = slowdowns.len().saturating_sub(1).max(1) as f64;
    let mut left: Vec<(f64, f64)> = alone_s.iter().copied().zip(slowdowns.iter().copied()).collect();
    let mut passed_s = 0.0;
    while !left.is_empty() {
        let company = (left.len() - 1) as f64 / others;
        let slowed = |slowdown: f64| 1.0 + (slowdown - 1.0) * company;
        let next_s = left.iter().map(|(work_s, slowdown)| work_s * slowed(*slowdown)).fold(f64::INFINITY, f64::min);
        passed_s += next_s;
        left.iter_mut().for_each(|(work_s, slowdown)| *work_s -= next_s / slowed(*slowdown));
        left.retain(|(work_s, _)| *work_s > 1e-9);
    }
    passed_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_running_is_slowed_down_to_the_end_of_the_slowest() {
        assert_eq!(in_company_s(AfterMeasured::KeepRunning, &[2.0, 3.0], &[2.0, 1.5]), 4.5);
    }

    #[test]
    fn who_is_left_alone_trains_as_fast_as_alone() {
        // The first is done after 4 s; of the other's 10 s are then 10 − 4 ÷ 2 left.
        assert_eq!(in_company_s(AfterMeasured::Exit, &[2.0, 10.0], &[2.0, 2.0]), 12.0);
        // Two of three leave together: half of the excess is of one other.
        let seconds = in_company_s(AfterMeasured::Exit, &[1.0, 2.0, 3.0], &[3.0, 3.0, 3.0]);
        assert!((seconds - (3.0 + 2.0 + 1.0)).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn nobody_gains_from_members_that_cost_nothing() {
        assert_eq!(in_company_s(AfterMeasured::Exit, &[2.0, 10.0], &[1.0, 1.0]), 10.0);
    }
}
