//! Whether the epochs of a run kept their length. In: a cell with its repetitions. Out: a sentence, if they grew or fell steadily in most
//! of them: then their mean depends on how long one measured. Reported, never left out.
//!
//! A run changed steadily if the mean of its second half differs from that of the first by more than the threshold, and Kendall's
//! rank correlation of epochs and time (Mann, Econometrica 13(3), 1945) is strong: a single slow epoch is noise.

use collo_quantity::number;
use collo_store::AfterMeasured;

use super::Cell;

/// Fewer measured epochs show no trend.
const EPOCHS: usize = 4;
/// A smaller change is not worth reporting.
const CHANGE: f64 = 0.10;
/// The least correlation: of four epochs at most one pair is out of order.
const CORRELATION: f64 = 0.6;

/// The sentence about a cell.
pub fn change(cell: &Cell) -> Option<String> {
    // Where members exit, the others go on in less company: their epochs become shorter by design.
    if cell.record.after_measured == AfterMeasured::Exit && cell.record.degree > 1 {
        return None;
    }
    let runs: Vec<Option<f64>> = cell
        .counted()
        .map(|r| {
            let trains = |member: usize| r.record().members.get(member).is_some_and(|m| m.serving.is_none());
            let of = |member: usize| {
                let own = r.epochs.iter().filter(|e| e.measured && e.member as usize == member && e.end_ns > e.start_ns);
                steady_change(&own.map(|e| (e.end_ns - e.start_ns) as f64 * 1e-9).collect::<Vec<f64>>())
            };
            let members: Vec<Option<f64>> = (0..cell.members.len()).filter(|m| trains(*m)).map(of).collect();
            most(&members)
        })
        .collect();
    let ratio = most(&runs)?;
    let same = runs.iter().flatten().filter(|r| (**r > 1.0) == (ratio > 1.0)).count();
    let word = if ratio > 1.0 { "longer" } else { "shorter" };
    Some(format!(
        "epochs became steadily {word} within {same} of {}, by {} from the first half to the second: it was not in its steady state",
        number::runs(runs.len()),
        number::percent((ratio - 1.0).abs())
    ))
}

impl Cell {
    /// The sentence about it, where its epochs did not keep their length.
    pub fn unsteady(&self) -> Option<String> {
        change(self)
    }
}

/// The mean change of those that changed in one direction, if they are more than half of all.
fn most(changes: &[Option<f64>]) -> Option<f64> {
    [true, false].into_iter().find_map(|grew| {
        let alike: Vec<f64> = changes.iter().flatten().copied().filter(|r| (*r > 1.0) == grew).collect();
        (alike.len() * 2 > changes.len()).then(|| (alike.iter().map(|r| r.ln()).sum::<f64>() / alike.len() as f64).exp())
    })
}

/// The mean of the second half ÷ that of the first, if the epochs of one member changed steadily. Of an odd number the middle one is in
/// neither.
fn steady_change(times_s: &[f64]) -> Option<f64> {
    let n = times_s.len();
    if n < EPOCHS {
        return None;
    }
    let mean = |half: &[f64]| half.iter().sum::<f64>() / half.len() as f64;
    let ratio = mean(&times_s[n - n / 2..]) / mean(&times_s[..n / 2]);
    let mut score = 0i64;
    for (i, earlier) in times_s.iter().enumerate() {
        score += times_s[i + 1..].iter().map(|later| i64::from(later > earlier) - i64::from(later < earlier)).sum::<i64>();
    }
    let correlation = score as f64 / (n * (n - 1) / 2) as f64;
    let far = !(1.0 / (1.0 + CHANGE)..=1.0 + CHANGE).contains(&ratio);
    (far && correlation * (ratio - 1.0).signum() >= CORRELATION).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_that_grow_or_fall_steadily_are_found_and_noise_is_none() {
        let ratio = steady_change(&[0.30, 0.55, 0.95, 1.35]).unwrap();
        assert!((ratio - 2.30 / 0.85).abs() < 1e-12, "{ratio}");
        assert!(steady_change(&[1.3, 1.1, 1.2, 1.0, 0.9]).unwrap() < 0.85);
        for calm in
            [&[1.0, 1.02, 1.01, 1.03][..], &[1.0, 1.0, 1.0, 3.0, 1.0, 1.0], &[1.0, 2.0, 4.0], &[1.0, 1.0, 1.3, 1.0, 1.3, 1.0]]
        {
            assert_eq!(steady_change(calm), None, "{calm:?}");
        }
    }

    #[test]
    fn one_run_of_three_is_no_habit_of_the_cell() {
        assert_eq!(most(&[Some(1.5), None, None]), None);
        assert_eq!(most(&[Some(1.5), Some(0.5), None]), None);
        assert_eq!(most(&[Some(4.0), Some(1.0001), None]).map(|r| r > 1.9), Some(true));
        assert_eq!(most(&[]), None);
    }
}
