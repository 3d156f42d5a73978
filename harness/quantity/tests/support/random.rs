//! Noise, and damage to bytes, that come back with their seed.

/// Seeded noise: splitmix64 and Box–Muller.
pub struct Random(u64);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random(seed)
    }

    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-18
    }

    /// Exponential with so many events per unit of time.
    pub fn exponential(&mut self, rate: f64) -> f64 {
        -self.uniform().ln() / rate
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Log-normal around 1.
    pub fn log_normal(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal()).exp()
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.uniform() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Damage bytes whatever their format: a few flips, cuts, and bytes that come twice or from elsewhere; near the end more often, where
    /// Parquet has its table of contents.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let near_end = self.below(10) < 6;
            let from = if near_end { bytes.len().saturating_sub(900) } else { 0 };
            let at = from + self.below(bytes.len() - from);
            match self.below(8) {
                0 | 1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => bytes.truncate(at),
                4 => {
                    let end = (at + 1 + self.below(40)).min(bytes.len());
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
                5 => drop(bytes.drain(at..(at + 1 + self.below(40)).min(bytes.len()))),
                6 => {
                    let end = (at + 8).min(bytes.len());
                    bytes[at..end].fill([0, 0xff, 0x7f][self.below(3)]);
                }
                _ => drop(bytes.splice(at..at, std::iter::repeat_n(0xff, self.below(20)))),
            }
        }
    }
}
