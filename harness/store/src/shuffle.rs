//! What a seed stands for, for ever: SplitMix64 and Fisher–Yates, written out, so that no library update reorders a plan or draws other
//! tasks.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Shuffle {
    state: u64,
}

impl Shuffle {
    pub fn seeded(seed: u64) -> Shuffle {
        Shuffle { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.share(), self.share());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Put items into a random order, all orders equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // The high half of the product is uniform to one part in 2⁶⁴ / length.
            let other = (u128::from(self.next()) * (last as u128 + 1)) >> 64;
            items.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_are_the_published_ones() {
        let mut shuffle = Shuffle::seeded(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| shuffle.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_order_of_three_comes_equally_often() {
        let mut counts = std::collections::BTreeMap::new();
        let mut shuffle = Shuffle::seeded(7);
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            shuffle.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Five standard deviations around 1000.
        assert!(counts.values().all(|n| n.abs_diff(1000) < 145), "{counts:?}");
    }

    #[test]
    fn shares_are_uniform_and_normal_numbers_normal() {
        let mut shuffle = Shuffle::seeded(3);
        let shares: Vec<f64> = (0..20_000).map(|_| shuffle.share()).collect();
        for tenth in 0..10 {
            let within = shares.iter().filter(|share| (**share * 10.0) as u32 == tenth).count();
            // Five standard deviations around 2000.
            assert!(within.abs_diff(2000) < 213, "{tenth}: {within}");
        }
        let normal: Vec<f64> = (0..20_000).map(|_| shuffle.normal()).collect();
        let mean = normal.iter().sum::<f64>() / 20_000.0;
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        let beyond = normal.iter().filter(|x| x.abs() > 1.96).count();
        assert!(mean.abs() < 0.036 && (variance - 1.0).abs() < 0.05 && beyond.abs_diff(1000) < 155, "{mean} {variance} {beyond}");
    }
}
