//! How much is measured in the time that may be spent. In: what the first looks found, and a time. Out: repetitions, epochs, and for how
//! long a run measures.

use std::time::Duration;

use super::files::Script;
use super::look::FirstLook;

/// What the experiment asks for.
#[derive(Debug, PartialEq)]
pub struct BudgetPlan {
    pub repetitions: u32,
    /// Epochs of each run, of which the first is a warm-up.
    pub epochs: u32,
    /// Whole epochs for at least so long; absent if one epoch is enough, or all that there is time for.
    pub measure_for_s: Option<f64>,
}

/// Solo runs are repeated so many times as often as groups.
const SOLO: f64 = 2.0;
/// Between two runs, and for the processes of one to start and end, seconds.
const BETWEEN_S: f64 = 2.0;
/// The part of its epochs that a script which ends by itself is to show.
const SHOWN: f64 = 0.7;
/// Longest time that a run measures, seconds.
const LONGEST_S: f64 = 10.0;

/// A run measures as many epochs as fit into [`SEVERAL_S`], and at most so many for that reason: one alone may have rare work in it, such as
/// an evaluation before the first step.
const SEVERAL: f64 = 5.0;
const SEVERAL_S: f64 = 2.0;

/// Libraries take long to import; a look ends once it has found something.
const SHORTEST_LOOK: Duration = Duration::from_secs(20);

/// How long a first look may take: together a fourth of all the time, but enough for imports.
pub fn first_look(total: Duration, scripts: usize) -> Duration {
    (total / (4 * scripts.max(1) as u32)).max(SHORTEST_LOOK)
}

/// How long a command goes on after its first line of progress: as long as a run may measure, because it may end by itself before.
pub fn going_on(total: Duration) -> Duration {
    (total / 10).min(Duration::from_secs_f64(LONGEST_S))
}

/// The plan for commands in so many modes, within the time that is left.
pub fn plan(looks: &[FirstLook], scripts: &[Script], modes: u32, left: Duration) -> BudgetPlan {
    let degree: f64 = scripts.iter().map(|script| f64::from(script.count)).sum();
    let unit_s = looks.iter().map(FirstLook::epoch_s).fold(0.0, f64::max);
    let set_up_s: f64 = looks.iter().map(|look| look.set_up_s + look.epoch_s()).sum();
    let slowest_set_up_s = looks.iter().map(|look| look.set_up_s + look.epoch_s()).fold(0.0, f64::max);
    let count = looks.len() as f64;
    let needs_s = |repetitions: f64, measure_s: f64| {
        let alone = SOLO * (set_up_s + count * (measure_s + BETWEEN_S));
        // At worst, members that share a device take as long as in turn.
        let together = f64::from(modes) * (degree * (slowest_set_up_s + measure_s) + BETWEEN_S);
        repetitions * (alone + together)
    };
    // The longest run of most repetitions that fits; if none does, the shortest.
    let candidates = [(3.0, LONGEST_S), (3.0, 5.0), (2.0, 5.0), (3.0, 2.0), (2.0, 2.0), (2.0, 1.0)];
    // What ends by itself can show no more than it has, and less beside others that begin later.
    let shown = |look: &FirstLook| SHOWN * look.progress.epochs_s.len() as f64;
    let most = looks.iter().filter(|look| look.has_ended).map(shown).fold(SEVERAL, f64::min);
    let measured = (SEVERAL_S / unit_s).min(most).floor().max(1.0);
    let fits =
        |(repetitions, measure_s): &&(f64, f64)| needs_s(*repetitions, measure_s.max(measured * unit_s)) <= left.as_secs_f64();
    let (repetitions, measure_s) = candidates.iter().find(fits).copied().unwrap_or((2.0, 0.0));
    let own_end_s = looks.iter().filter(|look| look.has_ended).map(|look| SHOWN * look.progress.epochs_s.iter().sum::<f64>());
    let measure_s = own_end_s.fold(measure_s, |least, own_s| least.min((own_s * 10.0).round() / 10.0));
    let measure_for_s = Some(measure_s).filter(|s| *s > measured * unit_s);
    BudgetPlan { repetitions: repetitions as u32, epochs: 1 + measured as u32, measure_for_s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_launch::FoundProgress;

    fn look(set_up_s: f64, epochs_s: &[f64], ends: bool) -> FirstLook {
        let progress = FoundProgress {
            pattern: "^".into(),
            preset: None,
            names_epochs: true,
            lines: Vec::new(),
            first_s: 0.0,
            last_s: 0.0,
            epochs_s: epochs_s.to_vec(),
        };
        FirstLook { progress, set_up_s, has_ended: ends, is_repeated: false }
    }

    fn script(count: u32) -> Script {
        Script { name: "a".into(), text: "python a.py".into(), count }
    }

    #[test]
    fn short_epochs_are_measured_for_long_and_often_and_long_ones_as_the_time_allows() {
        let of = |epoch_s: f64, left_s: u64| {
            let plan = plan(&[look(1.0, &[epoch_s; 3], false)], &[script(2)], 1, Duration::from_secs(left_s));
            (plan.repetitions, plan.epochs, plan.measure_for_s)
        };
        assert_eq!(of(0.5, 170), (3, 5, Some(10.0)));
        assert_eq!(of(0.5, 100), (3, 5, Some(5.0)));
        assert_eq!(of(0.1, 40), (2, 6, Some(2.0)));
        assert_eq!(of(8.0, 30), (2, 2, None), "the least that is a result, whatever it takes");
    }

    #[test]
    fn a_script_that_ends_by_itself_is_not_asked_for_more_than_it_shows() {
        let of = |looks: &[FirstLook]| plan(looks, &[script(1), script(1)], 1, Duration::from_secs(600)).measure_for_s;
        assert_eq!(of(&[look(0.1, &[1.0; 10], true)]), Some(7.0));
        assert_eq!(of(&[look(0.1, &[1.0; 50], true)]), Some(10.0));
        assert_eq!(of(&[look(0.1, &[1.0], true)]), None);
        // Beside one with other epochs, which does not end.
        assert_eq!(of(&[look(0.1, &[0.1; 100], true), look(0.1, &[2.0; 3], false)]), Some(7.0));
    }

    #[test]
    fn no_run_measures_for_longer_than_a_command_was_looked_at() {
        for total in [20, 30, 53, 60, 100, 140, 180, 600].map(Duration::from_secs) {
            let plan = plan(&[look(0.0, &[0.1; 3], false)], &[script(2)], 1, total);
            let measured_s = plan.measure_for_s.unwrap_or_default();
            assert!(measured_s <= going_on(total).as_secs_f64(), "{measured_s} s of {total:?}");
        }
    }

    #[test]
    fn looks_share_a_fourth_of_the_time() {
        assert_eq!(first_look(Duration::from_secs(180), 1), Duration::from_secs(45));
        assert_eq!(first_look(Duration::from_secs(180), 2), Duration::from_millis(22_500));
        assert_eq!(first_look(Duration::from_secs(10), 3), SHORTEST_LOOK);
    }
}
