//! The permanent order for a seed: SplitMix64 and Fisher–Yates, written out, so that no library update reorders a plan.

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
}
