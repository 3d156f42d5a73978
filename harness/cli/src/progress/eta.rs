//! Time left in a campaign: from runs of the same cell that have finished, else from the forecast, else at least what a member of the
//! cell took in other cells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use collo_store::{CampaignFolder, CellRecord, JournalEntry, PlannedRun, utc_seconds};
use collo_text::units::{about, clock};

/// The card of a run, absent on one device.
type Card = Option<u32>;

/// Seconds left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Left {
    About(f64),
    /// Of some cells no run of that kind has finished yet, and there is no forecast.
    AtLeast(f64),
}

impl Left {
    /// `about 4:23`, `at least 4:23`.
    pub fn to_text(self) -> String {
        match self {
            Left::About(seconds) => format!("about {}", clock(seconds)),
            Left::AtLeast(seconds) => format!("at least {}", clock(seconds)),
        }
    }

    /// `about 4 min`, no more precise than a forecast of a whole campaign is.
    pub fn in_a_sentence(self) -> String {
        match self {
            Left::About(seconds) => format!("about {}", about(seconds)),
            Left::AtLeast(seconds) => format!("at least {}", about(seconds)),
        }
    }

    /// The same where there is little room.
    pub fn to_short_text(self) -> String {
        match self {
            Left::About(seconds) => clock(seconds),
            Left::AtLeast(seconds) => format!("≥ {}", clock(seconds)),
        }
    }
}

/// What a run of a cell takes, as far as is known; 0 where nothing is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Expected {
    seconds: f64,
    is_bound: bool,
}

/// Records the durations of runs.
#[derive(Default)]
pub struct Eta {
    /// The cells of the plan, by which a run is known to be at least as long as another.
    cells: Vec<CellRecord>,
    /// One run of each cell.
    forecast_s: Vec<Option<f64>>,
    cooldown_s: f64,
    /// By card, which are measured at the same time.
    left: BTreeMap<Card, Vec<usize>>,
    took: BTreeMap<usize, Vec<f64>>,
    current: BTreeMap<Card, (usize, Instant)>,
}

impl Eta {
    /// At the start, with these runs of these cells to do.
    pub fn new(cells: &[CellRecord], forecast_s: &[Option<f64>], cooldown: Duration, todo: &[PlannedRun]) -> Self {
        let mut left: BTreeMap<Card, Vec<usize>> = BTreeMap::new();
        todo.iter().for_each(|p| left.entry(p.card).or_default().push(p.cell));
        let (cells, forecast_s) = (cells.to_vec(), forecast_s.to_vec());
        Eta { cells, forecast_s, cooldown_s: cooldown.as_secs_f64(), left, ..Eta::default() }
    }

    /// As far as the journal of a campaign has it: the pauses are those between the runs so far, and there is no forecast.
    pub fn of_history(campaign: &CampaignFolder) -> collo_store::Result<Eta> {
        let plan = &campaign.manifest().plan;
        let planned: BTreeMap<String, &PlannedRun> = plan.order.iter().map(|p| (plan.folder(p), p)).collect();
        let (mut begun, mut ended, mut pauses) = (BTreeMap::new(), BTreeMap::<Card, u64>::new(), Vec::new());
        let (mut took, mut stored) = (BTreeMap::<usize, Vec<f64>>::new(), BTreeSet::new());
        for entry in campaign.history()? {
            match entry {
                // Nothing was measured while no collo ran.
                JournalEntry::Opened { .. } => ended.clear(),
                JournalEntry::Began { folder, at_utc } => {
                    let (Some(p), Some(at)) = (planned.get(&folder), utc_seconds(&at_utc)) else { continue };
                    begun.insert(p.card, at);
                    pauses.extend(ended.get(&p.card).map(|ended| at.saturating_sub(*ended) as f64));
                }
                JournalEntry::Recorded { folder, at_utc, outcome, .. } => {
                    let (Some(p), Some(at)) = (planned.get(&folder), utc_seconds(&at_utc)) else { continue };
                    ended.insert(p.card, at);
                    if outcome != "interrupted" {
                        took.entry(p.cell).or_default().extend(begun.get(&p.card).map(|begun| at.saturating_sub(*begun) as f64));
                        stored.insert(folder);
                    }
                }
                _ => {}
            }
        }
        let todo: Vec<PlannedRun> = plan.order.iter().filter(|p| !stored.contains(&plan.folder(p))).cloned().collect();
        let pause_s = pauses.iter().sum::<f64>() / pauses.len().max(1) as f64;
        let eta = Eta::new(&plan.cells, &[], Duration::from_secs_f64(pause_s.max(0.0)), &todo);
        Ok(Eta { took, ..eta })
    }

    /// A run begins.
    pub fn begins(&mut self, planned: &PlannedRun) {
        self.current.insert(planned.card, (planned.cell, Instant::now()));
    }

    /// It has ended; returns the seconds that it took.
    pub fn ends(&mut self, planned: &PlannedRun) -> f64 {
        let Some((cell, begun)) = self.current.remove(&planned.card) else { return 0.0 };
        let seconds = begun.elapsed().as_secs_f64();
        self.took.entry(cell).or_default().push(seconds);
        let left = self.left.entry(planned.card).or_default();
        if let Some(at) = left.iter().position(|&c| c == cell) {
            left.remove(at);
        }
        seconds
    }

    /// A run is to be measured once more.
    pub fn again(&mut self, planned: &PlannedRun) {
        self.left.entry(planned.card).or_default().push(planned.cell);
    }

    /// Seconds since the current run of a card began.
    pub fn current_s(&self, card: Card) -> f64 {
        self.current.get(&card).map_or(0.0, |(_, begun)| begun.elapsed().as_secs_f64())
    }

    /// Estimated time left, of the card that takes longest; `None` before anything is known of its runs.
    pub fn left(&self) -> Option<Left> {
        let cards: Vec<Expected> = self.left.iter().map(|(card, left)| self.on(*card, left)).collect::<Option<_>>()?;
        let seconds = cards.iter().map(|card| card.seconds).fold(0.0, f64::max);
        Some(if cards.iter().any(|card| card.is_bound) { Left::AtLeast(seconds) } else { Left::About(seconds) })
    }

    /// The runs that one card has to do.
    fn on(&self, card: Card, left: &[usize]) -> Option<Expected> {
        let each: Vec<Expected> = left.iter().map(|&cell| self.one(cell)).collect();
        if !each.is_empty() && each.iter().all(|one| *one == Expected { seconds: 0.0, is_bound: true }) {
            return None;
        }
        let pauses = left.len().saturating_sub(1) as f64 * self.cooldown_s;
        // A run that takes longer than expected takes nothing from those after it.
        let current = self.current.get(&card).map_or(0.0, |(cell, _)| self.current_s(card).min(self.one(*cell).seconds));
        let seconds = each.iter().map(|one| one.seconds).sum::<f64>() + pauses - current;
        Some(Expected { seconds: seconds.max(0.0), is_bound: each.iter().any(|one| one.is_bound) })
    }

    fn one(&self, cell: usize) -> Expected {
        if let Some(siblings) = self.took.get(&cell) {
            return Expected { seconds: siblings.iter().sum::<f64>() / siblings.len() as f64, is_bound: false };
        }
        let forecast = |cell: usize| self.forecast_s.get(cell).copied().flatten();
        // The forecast knows the shape of the matrix better than this machine's speed: finished runs of other cells scale it.
        let (mut real, mut expected) = (0.0, 0.0);
        for (&other, took) in &self.took {
            if let Some(each) = forecast(other) {
                real += took.iter().sum::<f64>();
                expected += each * took.len() as f64;
            }
        }
        let scale = if expected > 0.0 { real / expected } else { 1.0 };
        match forecast(cell) {
            Some(each) => Expected { seconds: each * scale, is_bound: false },
            None => Expected { seconds: self.least_s(cell), is_bound: true },
        }
    }

    /// What a run of a cell takes at the least: its slowest member is no faster than alone on the whole device, nor than among fewer
    /// members under the same mode.
    fn least_s(&self, cell: usize) -> f64 {
        let Some(cell) = self.cells.get(cell).filter(|cell| cell.trace.is_none()) else { return 0.0 };
        let fastest = |member: &collo_store::MemberSpec| {
            let with = |&(&other, _): &(&usize, &Vec<f64>)| {
                let other = self.cells.get(other).filter(|other| other.trace.is_none());
                let is_lighter =
                    |of: &&CellRecord| of.is_solo() || (of.sharing == cell.sharing && of.members.len() <= cell.members.len());
                other.filter(is_lighter).is_some_and(|other| other.members.iter().any(|m| m.is_same(member)))
            };
            let times = self.took.iter().filter(with).flat_map(|(_, took)| took).copied();
            times.reduce(f64::min).unwrap_or(0.0)
        };
        cell.members.iter().map(fastest).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use collo_store::MemberSpec;

    use super::*;

    fn cell(workloads: &[&str]) -> CellRecord {
        let member = |workload: &&str| MemberSpec {
            workload: (*workload).to_string(),
            batch_size: None,
            settings: BTreeMap::new(),
            solo: String::new(),
        };
        CellRecord { members: workloads.iter().map(member).collect(), ..CellRecord::default() }
    }

    fn eta() -> Eta {
        let cells = [cell(&["a"]), cell(&["a", "a"]), cell(&["b", "a"])];
        Eta::new(&cells, &[Some(10.0), Some(20.0), None], Duration::from_secs(1), &[])
    }

    #[test]
    fn a_finished_sibling_is_believed_more_than_the_forecast() {
        let mut e = eta();
        e.left = [(None, vec![0, 0, 1])].into();
        assert_eq!(e.left(), Some(Left::About(42.0)));
        e.took.insert(0, vec![30.0]);
        // Three times slower than forecast, so the cell that has not run yet will be, too.
        assert_eq!(e.left(), Some(Left::About(30.0 + 30.0 + 60.0 + 2.0)));
    }

    #[test]
    fn cards_are_measured_at_the_same_time_and_the_longest_decides() {
        let mut e = eta();
        e.left = [(Some(0), vec![0, 1]), (Some(1), vec![0])].into();
        assert_eq!(e.left(), Some(Left::About(31.0)));
        let ended = PlannedRun { block: 1, cell: 1, repetition: 1, edge: None, card: Some(0) };
        e.begins(&ended);
        e.ends(&ended);
        assert_eq!(e.left[&Some(0)], [0]);
    }

    #[test]
    fn without_a_forecast_the_first_run_gives_a_bound_for_every_cell_with_its_member() {
        let mut e = eta();
        e.forecast_s = vec![None; 3];
        e.left = [(None, vec![0, 1, 2, 2])].into();
        assert_eq!(e.left(), None, "nothing is known");
        e.took.insert(0, vec![5.0, 7.0]);
        assert_eq!(e.left(), Some(Left::AtLeast(6.0 + 5.0 + 5.0 + 5.0 + 3.0)), "`b` may take longer than `a`");
        e.took.insert(2, vec![40.0]);
        assert_eq!(e.left(), Some(Left::AtLeast(6.0 + 5.0 + 40.0 + 40.0 + 3.0)));
        e.took.insert(1, vec![9.0]);
        assert_eq!(e.left(), Some(Left::About(6.0 + 9.0 + 40.0 + 40.0 + 3.0)));
        assert_eq!(Left::AtLeast(63.0).to_text(), "at least 1:03");
        assert_eq!(Left::AtLeast(63.0).to_short_text(), "≥ 1:03");
    }

    #[test]
    fn a_group_gives_no_bound_for_its_member_alone() {
        let mut e = Eta::new(&[cell(&["a"]), cell(&["a", "b"])], &[None, None], Duration::ZERO, &[]);
        e.left = [(None, vec![0])].into();
        e.took.insert(1, vec![40.0]);
        assert_eq!(e.left(), None);
    }

    #[test]
    fn a_slice_gives_no_bound_for_the_whole_device_nor_one_mode_for_another() {
        // The label of a solo cell is that of its member, which these have none of.
        let under = |sharing: &str, workloads: &[&str]| {
            let label = if sharing == "solo" { "" } else { sharing };
            CellRecord { cell: label.into(), sharing: sharing.into(), ..cell(workloads) }
        };
        let cells = [under("mig:1g.5gb", &["a"]), under("solo", &["a"]), under("mps", &["a", "a"]), under("naive", &["a", "a"])];
        let mut e = Eta::new(&cells, &[None; 4], Duration::ZERO, &[]);
        e.left = [(None, vec![1, 2])].into();
        e.took.insert(0, vec![70.0]);
        e.took.insert(3, vec![30.0]);
        assert_eq!(e.left(), None, "both may be slower than what is left");
        e.took.insert(1, vec![10.0]);
        assert_eq!(e.left(), Some(Left::AtLeast(20.0)));
    }

    #[test]
    fn cells_that_nothing_is_known_of_add_nothing_to_the_bound() {
        let mut e = Eta::new(&[cell(&["a"]), cell(&["z"])], &[None, None], Duration::ZERO, &[]);
        e.left = [(None, vec![0, 1])].into();
        e.took.insert(0, vec![5.0]);
        assert_eq!(e.left(), Some(Left::AtLeast(5.0)));
        e.left = [(None, vec![1])].into();
        assert_eq!(e.left(), None);
    }
}
