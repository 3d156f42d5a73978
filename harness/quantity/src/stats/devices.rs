//! Several devices in one campaign: how much each differs from the others, and what a difference means for the interval of a mean.
//!
//! In: the values of cells, each with the device and the block that it was measured in. Out: the ratio of each device to the others
//! with its interval; moments of a cell over devices that differ. A block lies on one device, and what changes between blocks is
//! noise: two devices differ only if they do so by more than blocks of one device.

use std::collections::{BTreeMap, BTreeSet};

use super::{Quantity, Term, Variance, holm, t_p, t_quantile};

/// One repetition of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceValue {
    pub device: usize,
    pub block: u32,
    pub value: f64,
}

/// How many times a quantity on one device is that on the others, in the cells that they have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceRatio {
    pub device: usize,
    /// Its `n` are the blocks of the device.
    pub ratio: Quantity,
    /// That all devices are alike; of the tests of one call by themselves.
    pub p: f64,
}

/// A difference is told if the devices are alike with less than this probability, after the correction for all of them.
pub const DIFFERS: f64 = 0.05;

/// The ratio of each device to the median of the others. None where no device has two blocks: then a device cannot be told from its
/// hour.
pub fn ratios(cells: &[Vec<DeviceValue>]) -> Vec<DeviceRatio> {
    let mut blocks: BTreeMap<(usize, u32), DeviceBlock> = BTreeMap::new();
    for (cell, values) in cells.iter().enumerate() {
        let Some(means) = means(values) else { continue };
        for v in values {
            let others = means.iter().filter(|(device, _)| **device != v.device).map(|(_, mean)| *mean);
            let Some(others) = super::median(&mut others.collect::<Vec<_>>()) else { continue };
            let block = blocks.entry((v.device, v.block)).or_default();
            block.cells.insert(cell);
            block.differences.push(v.value.ln() - others);
            block.residuals.push(v.value.ln() - means[&v.device]);
        }
    }
    let devices: BTreeSet<usize> = blocks.keys().map(|(device, _)| *device).collect();
    let of = |device: usize| blocks.range((device, 0)..=(device, u32::MAX)).map(|(_, block)| block).collect::<Vec<_>>();
    let df: usize = devices.iter().map(|device| of(*device).len() - groups(&of(*device))).sum();
    if df == 0 || devices.len() < 2 {
        return Vec::new();
    }
    let s2 = blocks.values().map(|block| mean(&block.residuals).powi(2)).sum::<f64>() / df as f64;
    let one = |device: usize| {
        let own = of(device);
        let estimate = mean(&own.iter().map(|block| mean(&block.differences)).collect::<Vec<_>>());
        let others = (blocks.len() - own.len()) as f64;
        // The variance of a median of several is up to π/2 that of their mean.
        let wider = if devices.len() > 3 { std::f64::consts::FRAC_PI_2 } else { 1.0 };
        let se = (s2 * (1.0 / own.len() as f64 + wider / others)).sqrt();
        let half = t_quantile(0.975, df as f64) * se;
        let p = match se > 0.0 {
            true => t_p(estimate / se, df as f64),
            false => f64::from(u8::from(estimate == 0.0)),
        };
        let (low, high) = (Some((estimate - half).exp()), Some((estimate + half).exp()));
        let ratio = Quantity { estimate: estimate.exp(), low, high, n: own.len(), df: Some(df as f64) };
        DeviceRatio { device, ratio, p }
    };
    devices.iter().map(|device| one(*device)).collect()
}

/// For each of many quantities whether any device differs, corrected for all quantities and devices: the ratios that do.
pub fn differing(quantities: &[Vec<DeviceRatio>]) -> Vec<Vec<DeviceRatio>> {
    // Of two devices each is what the other is not: one test.
    let tests = |ratios: &Vec<DeviceRatio>| if ratios.len() == 2 { 1 } else { ratios.len() };
    let all: Vec<f64> = quantities.iter().flat_map(|ratios| ratios.iter().take(tests(ratios)).map(|r| r.p)).collect();
    let mut adjusted = holm(&all).into_iter();
    let kept = |ratios: &Vec<DeviceRatio>| {
        let mut own: Vec<f64> = adjusted.by_ref().take(tests(ratios)).collect();
        own.resize(ratios.len(), own.first().copied().unwrap_or(1.0));
        let differs = |(ratio, p): (&DeviceRatio, f64)| (p < DIFFERS).then(|| DeviceRatio { p, ..ratio.clone() });
        ratios.iter().zip(own).filter_map(differs).collect()
    };
    quantities.iter().map(kept).collect()
}

/// The runs of one block on its device.
#[derive(Debug, Default)]
struct DeviceBlock {
    cells: BTreeSet<usize>,
    /// Logarithms, less those of the other devices.
    differences: Vec<f64>,
    /// Less those of the same device.
    residuals: Vec<f64>,
}

/// Mean logarithm on each device; `None` on one device, and for values without a logarithm.
fn means(values: &[DeviceValue]) -> Option<BTreeMap<usize, f64>> {
    if values.iter().any(|v| !v.value.is_finite() || v.value <= 0.0) {
        return None;
    }
    let mut logs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    values.iter().for_each(|v| logs.entry(v.device).or_default().push(v.value.ln()));
    (logs.len() > 1).then(|| logs.into_iter().map(|(device, logs)| (device, mean(&logs))).collect())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How many sets of blocks have no cell in common: the means of each take a degree of freedom.
fn groups(blocks: &[&DeviceBlock]) -> usize {
    let mut groups: Vec<BTreeSet<usize>> = Vec::new();
    for block in blocks {
        let (joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| !group.is_disjoint(&block.cells));
        groups = apart;
        groups.push(joined.into_iter().flatten().chain(block.cells.iter().copied()).collect());
    }
    groups.len()
}

/// A cell over devices that differ: each counts alike, however many repetitions it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceMoments {
    pub log_mean: f64,
    /// Of repetitions on the same device.
    pub within: Variance,
    /// Factor by which the standard error of the mean exceeds that of as many repetitions, because devices have unequal numbers.
    pub weight: f64,
    /// Variance between the devices, with the noise of their means.
    pub between: f64,
}

impl DeviceMoments {
    /// The sources of uncertainty of so many repetitions, with the variance within a device after shrinking. The variance between
    /// devices is not divided by their number: the interval contains what a device takes, not only their mean.
    pub fn terms(&self, within: Variance, n: usize) -> Vec<Term> {
        let between = Variance { s2: self.between * n as f64, df: f64::INFINITY };
        vec![Term { weight: self.weight, variance: within, n }, Term { weight: 1.0, variance: between, n }]
    }
}

/// `None` on one device, where none has two repetitions, and for values without a logarithm.
pub fn log_moments_by_device(values: &[DeviceValue]) -> Option<DeviceMoments> {
    let means = means(values)?;
    let (n, devices) = (values.len(), means.len() as f64);
    let df = (n - means.len()) as f64;
    if df < 1.0 {
        return None;
    }
    let log_mean = means.values().sum::<f64>() / devices;
    let s2 = values.iter().map(|v| (v.value.ln() - means[&v.device]).powi(2)).sum::<f64>() / df;
    let counts = means.keys().map(|device| values.iter().filter(|v| v.device == *device).count() as f64);
    let unequal = counts.map(|count| 1.0 / count).sum::<f64>() * n as f64 / devices.powi(2);
    let between = means.values().map(|mean| (mean - log_mean).powi(2)).sum::<f64>() / (devices - 1.0);
    Some(DeviceMoments { log_mean, within: Variance { s2, df }, weight: unequal.sqrt(), between })
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::super::{Pool, log_moments, quantity};
    use super::*;

    /// Cells on cards of these logarithmic paces, which go around them block by block; a block has noise of its own, as a run has.
    fn campaign(paces: &[f64], cells: usize, repetitions: usize, random: &mut Random) -> Vec<Vec<DeviceValue>> {
        let blocks: Vec<f64> = (0..repetitions).map(|_| 0.004 * random.normal()).collect();
        let run = |block: usize, random: &mut Random| {
            let device = block % paces.len();
            let value = (paces[device] + blocks[block] + 0.01 * random.normal()).exp();
            DeviceValue { device, block: block as u32, value }
        };
        (0..cells).map(|_| (0..repetitions).map(|block| run(block, random)).collect()).collect()
    }

    /// How often, of so many campaigns: a difference is told, its interval has the truth, and the cells' intervals have that of the
    /// mean and that of the slow card.
    fn rates(paces: &[f64], repetitions: usize) -> [f64; 4] {
        let (campaigns, cells) = (400, 6);
        let mut random = Random::seeded(20_261_123 + repetitions as u64);
        let others = super::super::median(&mut paces[..paces.len() - 1].to_vec()).expect("others");
        let (slow, middle) = (paces[paces.len() - 1], mean(paces));
        let [mut told, mut right, mut of_mean, mut of_slow] = [0.0; 4];
        for _ in 0..campaigns {
            let all = campaign(paces, cells, repetitions, &mut random);
            let found = ratios(&all);
            let has =
                |q: &Quantity, log: f64| q.low.expect("an interval") <= log.exp() && log.exp() <= q.high.expect("an interval");
            let differs = differing(std::slice::from_ref(&found)).concat().iter().any(|r| r.device == paces.len() - 1);
            told += f64::from(u8::from(differs));
            right += f64::from(u8::from(has(&found[paces.len() - 1].ratio, slow - others)));
            let moments: Vec<_> = all
                .iter()
                .map(|cell| match differs {
                    true => log_moments_by_device(cell).expect("two repetitions on a card"),
                    false => {
                        let (log_mean, own) = log_moments(&cell.iter().map(|v| v.value).collect::<Vec<_>>()).expect("positive");
                        DeviceMoments { log_mean, within: own.expect("several"), weight: 1.0, between: 0.0 }
                    }
                })
                .collect();
            let pool = Pool::fit(&moments.iter().map(|m| m.within).collect::<Vec<_>>()).expect("cells");
            for m in &moments {
                let q = quantity(m.log_mean, repetitions, &m.terms(pool.shrink(m.within), repetitions));
                of_mean += f64::from(u8::from(has(&q, middle))) / cells as f64;
                of_slow += f64::from(u8::from(has(&q, slow))) / cells as f64;
            }
        }
        [told, right, of_mean, of_slow].map(|count| count / f64::from(campaigns))
    }

    #[test]
    fn of_two_cards_the_slower_is_told_and_intervals_contain_what_it_takes() {
        for repetitions in [4, 5, 8] {
            let [told, right, of_mean, of_slow] = rates(&[0.0, 0.05], repetitions);
            println!("{repetitions} repetitions: told {told}, difference {right}, mean {of_mean}, slow card {of_slow}");
            assert!(right > 0.93 && right < 0.98, "{repetitions} repetitions: the difference is covered at {right}");
            assert!(
                of_mean > 0.93 && of_slow > 0.90,
                "{repetitions} repetitions: {of_mean} of the mean, {of_slow} of the slow card"
            );
            assert!(told > 0.9, "{repetitions} repetitions: told in {told}");
            let [told, right, of_mean, _] = rates(&[0.0, 0.01], repetitions);
            println!("the same of 1 %: told {told}, difference {right}, mean {of_mean}");
            assert!(
                right > 0.93 && of_mean > 0.93,
                "{repetitions} repetitions, a difference as large as the noise: {right} {of_mean}"
            );
        }
    }

    #[test]
    fn one_slow_card_of_eight_is_told_and_the_mean_is_covered() {
        let [told, right, of_mean, _] = rates(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05], 16);
        assert!(told > 0.95 && right > 0.93 && of_mean > 0.95, "{told} {right} {of_mean}");
    }

    #[test]
    fn equal_cards_are_seldom_told_to_differ() {
        for (cards, repetitions) in [(2, 4), (2, 8), (4, 8)] {
            let [told, right, of_mean, _] = rates(&vec![0.0; cards], repetitions);
            println!("{cards} cards, {repetitions} repetitions: told {told}, ratio {right}, mean {of_mean}");
            assert!(told < 0.07 && right > 0.93, "{cards} cards, {repetitions} repetitions: {told} {right}");
        }
    }

    #[test]
    fn a_card_with_one_block_cannot_be_told_from_its_hour() {
        let mut random = Random::seeded(1);
        assert_eq!(ratios(&campaign(&[0.0, 0.05], 6, 2, &mut random)), []);
        assert_eq!(ratios(&campaign(&[0.0], 6, 4, &mut random)), [], "and one card from no other");
    }

    #[test]
    fn each_card_counts_alike_in_the_mean_of_cards_that_differ() {
        let value = |device, value: f64| DeviceValue { device, block: 0, value };
        let m = log_moments_by_device(&[value(0, 1.0), value(0, 1.0), value(1, 4.0)]).unwrap();
        assert!((m.log_mean.exp() - 2.0).abs() < 1e-12);
        // ¼·(1/2 + 1/1)·3 = 9/8.
        assert!((m.weight.powi(2) - 1.125).abs() < 1e-12);
        assert!((m.between - 2.0 * 2f64.ln().powi(2)).abs() < 1e-12);
    }
}
