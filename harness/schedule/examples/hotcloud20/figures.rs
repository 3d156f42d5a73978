//! Many seeds: medians, ranges, and ratios within each seed.

use std::collections::BTreeMap;

use crate::project::Projection;
use collo_quantity::stats::quantile;

use crate::arm::Arm;
use crate::jobs::drawn;
use crate::law::Law;

/// What is reported of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    Utilisation,
    UtilisationInUse,
    UsefulInUse,
    MakespanS,
    ExecutionS,
    CompletionS,
    OutOfMemory,
}

impl Quantity {
    pub const ALL: [Quantity; 7] = [
        Quantity::Utilisation,
        Quantity::UtilisationInUse,
        Quantity::UsefulInUse,
        Quantity::MakespanS,
        Quantity::ExecutionS,
        Quantity::CompletionS,
        Quantity::OutOfMemory,
    ];

    /// For programs.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Utilisation => "utilisation",
            Quantity::UtilisationInUse => "utilisation_in_use",
            Quantity::UsefulInUse => "useful_in_use",
            Quantity::MakespanS => "makespan_s",
            Quantity::ExecutionS => "mean_execution_s",
            Quantity::CompletionS => "mean_completion_s",
            Quantity::OutOfMemory => "out_of_memory",
        }
    }

    fn of(self, projection: &Projection) -> Option<f64> {
        match self {
            Quantity::Utilisation => projection.utilisation(),
            Quantity::UtilisationInUse => projection.utilisation_in_use(),
            Quantity::UsefulInUse => projection.useful_in_use(),
            Quantity::MakespanS => Some(projection.makespan_s()),
            Quantity::ExecutionS => projection.mean_execution_s(),
            Quantity::CompletionS => projection.mean_completion_s(),
            Quantity::OutOfMemory => Some(projection.out_of_memory() as f64),
        }
    }
}

/// A median over seeds, with the range of 95 % of them; of few seeds that is nearly all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// `None`: no values.
    fn of(values: &[f64]) -> Option<Range> {
        let at = |share: f64| quantile(values.to_vec(), share);
        Some(Range { median: at(0.5)?, low: at(0.025)?, high: at(0.975)? })
    }
}

/// In how many seeds something holds, and in which it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    pub seeds: usize,
    pub not_in: Vec<u64>,
}

type Values = BTreeMap<(Arm, Quantity), f64>;

/// Every scheduler on the jobs of each seed, under one law.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseStudy {
    seeds: BTreeMap<u64, Values>,
}

impl CaseStudy {
    /// Project it.
    pub fn of(seeds: impl IntoIterator<Item = u64>, law: Law) -> CaseStudy {
        CaseStudy { seeds: seeds.into_iter().map(|seed| (seed, one(seed, law))).collect() }
    }

    /// Over the seeds.
    pub fn range(&self, arm: Arm, quantity: Quantity) -> Option<Range> {
        Range::of(&self.seeds.values().filter_map(|values| values.get(&(arm, quantity)).copied()).collect::<Vec<_>>())
    }

    /// The same divided by the slot-based scheduler's of the same seed; none where that is 0.
    pub fn ratios_to_slots(&self, arm: Arm, quantity: Quantity) -> Vec<f64> {
        let ratio = |values: &Values| {
            let slots = values.get(&(Arm::SlotBased, quantity)).filter(|slots| **slots > 0.0)?;
            Some(values.get(&(arm, quantity))? / slots)
        };
        self.seeds.values().filter_map(ratio).collect()
    }

    /// Their median and range.
    pub fn against_slots(&self, arm: Arm, quantity: Quantity) -> Option<Range> {
        Range::of(&self.ratios_to_slots(arm, quantity))
    }

    /// In how many seeds each of these schedulers has more of a quantity than the next.
    pub fn decreasing(&self, quantity: Quantity, arms: &[Arm]) -> Holds {
        let holds = |values: &Values| {
            let of_each: Option<Vec<f64>> = arms.iter().map(|arm| values.get(&(*arm, quantity)).copied()).collect();
            of_each.is_some_and(|of_each| of_each.is_sorted_by(|before, after| before > after))
        };
        let not_in: Vec<u64> = self.seeds.iter().filter(|(_, values)| !holds(values)).map(|(seed, _)| *seed).collect();
        Holds { seeds: self.seeds.len() - not_in.len(), not_in }
    }

    /// The value of one seed.
    pub fn value(&self, seed: u64, arm: Arm, quantity: Quantity) -> Option<f64> {
        self.seeds.get(&seed)?.get(&(arm, quantity)).copied()
    }

    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        self.seeds.keys().copied()
    }
}

fn one(seed: u64, law: Law) -> Values {
    let jobs = drawn(seed);
    let of_arm = |arm: Arm| {
        let projection = arm.projected(&jobs, seed, law);
        Quantity::ALL.into_iter().filter_map(move |quantity| Some(((arm, quantity), quantity.of(&projection)?)))
    };
    Arm::ALL.into_iter().flat_map(of_arm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_few_values_is_between_them() {
        let range = Range::of(&(0..=40).map(f64::from).collect::<Vec<_>>()).expect("values");
        assert_eq!(range, Range { median: 20.0, low: 1.0, high: 39.0 });
        assert_eq!(Range::of(&[3.0]), Some(Range { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Range::of(&[]), None);
    }

    /// The seeds that are taken by default.
    fn twenty(law: Law) -> CaseStudy {
        CaseStudy::of(1..=20, law)
    }

    #[test]
    fn in_use_cards_are_used_best_proactively_then_reactively_then_by_slots_in_every_seed() {
        let study = twenty(Law::Knee);
        let order = [Arm::Proactive, Arm::Reactive, Arm::SlotBased];
        // Also until the last job is done, where idle cards count.
        for quantity in [Quantity::UtilisationInUse, Quantity::UsefulInUse, Quantity::Utilisation] {
            assert_eq!(study.decreasing(quantity, &order).not_in, [0; 0], "{}", quantity.key());
        }
    }

    #[test]
    fn a_useless_predictor_loses_the_advantage() {
        let study = twenty(Law::Knee);
        let every = |quantity, arms: &[Arm]| assert_eq!(study.decreasing(quantity, arms).not_in, [0; 0], "{}", quantity.key());
        every(Quantity::UsefulInUse, &[Arm::Proactive, Arm::Shuffled]);
        every(Quantity::ExecutionS, &[Arm::Shuffled, Arm::Proactive, Arm::SlotBased]);
        let median = |arm| study.against_slots(arm, Quantity::MakespanS).expect("seeds").median;
        assert!(1.0 - median(Arm::Shuffled) < 0.5 * (1.0 - median(Arm::Proactive)), "less than half of the time saved is left");
        let useful = |arm| study.range(arm, Quantity::UsefulInUse).expect("seeds").median;
        assert!(useful(Arm::Shuffled) < useful(Arm::Reactive), "worse than waiting for a profile");
    }

    #[test]
    fn a_seed_gives_the_same_in_any_company() {
        let (some, others) = (CaseStudy::of(3..=4, Law::Knee), CaseStudy::of([4, 9], Law::Knee));
        let values = |study: &CaseStudy, seed| Arm::ALL.map(|arm| study.value(seed, arm, Quantity::MakespanS));
        assert_eq!(values(&some, 4), values(&others, 4));
        assert_ne!(values(&some, 3), values(&some, 4));
        assert_eq!(some.value(9, Arm::Exact, Quantity::MakespanS), None);
        assert_ne!(some, CaseStudy::of(3..=4, Law::Line), "the law matters");
    }

    #[test]
    fn ratios_are_made_within_seeds() {
        let study = CaseStudy::of(1..=3, Law::Knee);
        let of = |arm, seed| study.value(seed, arm, Quantity::MakespanS).expect("there");
        let ratios: Vec<f64> = (1..=3).map(|seed| of(Arm::Exact, seed) / of(Arm::SlotBased, seed)).collect();
        assert_eq!(study.ratios_to_slots(Arm::Exact, Quantity::MakespanS), ratios);
        let range = study.against_slots(Arm::Exact, Quantity::MakespanS).expect("seeds");
        assert!(ratios.contains(&range.median) && range.low < range.median && range.median < range.high);
        assert_eq!(study.against_slots(Arm::Exact, Quantity::OutOfMemory), None, "by slots nothing runs out");
    }
}
