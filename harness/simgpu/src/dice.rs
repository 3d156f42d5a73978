//! Numbers that look random and are not: every one follows from a seed.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// From texts and numbers, in their order.
    pub fn of(parts: &[&str]) -> Dice {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in parts.iter().flat_map(|p| p.bytes().chain([0xff])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Dice(hash)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, never 0.
    pub fn share(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    /// `xxxxxxxx-xxxx-5xxx-xxxx-xxxxxxxxxxxx`
    pub fn uuid(&mut self) -> String {
        let (a, b) = (self.word(), self.word());
        format!(
            "{:08x}-{:04x}-5{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | (b >> 48) & 0x3fff,
            b & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        assert_eq!(Dice::of(&["a", "b"]).word(), Dice::of(&["a", "b"]).word());
        assert_ne!(Dice::of(&["a", "b"]).word(), Dice::of(&["ab"]).word());
        assert_eq!(Dice::new(1).uuid().len(), 36);
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut dice = Dice::new(3);
        let all: Vec<f64> = (0..20_000).map(|_| dice.normal()).collect();
        let mean = all.iter().sum::<f64>() / 20_000.0;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
