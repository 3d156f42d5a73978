//! Predictions as classes: whether estimate and measurement are in one bin of memory. In: scored rows, the width of a bin. Out: shares.
//!
//! In the thesis (chapter 5) and its public code (itu-rad/GPUMemNet, `Ensemble/dataloaders`) "GB" are 1000 MiB: bins of 1000 MiB from
//! 1000 to 5000 and beyond for MLPs, of 8000 MiB from 0 to 50,000 for the others, each with its lower end. Here they go on as far as
//! memory does, which is the same for what a card of 40 GB held.

use crate::evaluate::Scored;
use crate::published::MIB;

/// How many rows are put into their bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinScore {
    /// With an estimate.
    pub rows: usize,
    pub right: usize,
    /// Put into a lower bin than their own: a scheduler that trusts it runs out of memory.
    pub below: usize,
}

/// The bin that most measurements are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommonestBin {
    pub from_mib: u64,
    pub rows: usize,
    /// All of them, in any bin.
    pub of: usize,
}

/// The number of the bin of a measurement.
fn bin(bytes: f64, width_mib: u32) -> u64 {
    (bytes / MIB / f64::from(width_mib.max(1))).floor() as u64
}

/// The number of the bin of an estimate. On a border it is the bin below: who estimates in bins names their upper ends.
fn estimated_bin(bytes: f64, width_mib: u32) -> u64 {
    // What is estimated below nothing becomes 0.
    ((bytes / MIB / f64::from(width_mib.max(1))).ceil() - 1.0) as u64
}

impl BinScore {
    /// None: no row has an estimate.
    pub fn of(rows: &[Scored], width_mib: u32) -> Option<BinScore> {
        let mut score = BinScore { rows: 0, right: 0, below: 0 };
        for row in rows {
            let Some(estimate) = row.estimate_bytes.filter(|bytes| bytes.is_finite()) else { continue };
            let (measured, estimated) = (bin(row.measured_bytes, width_mib), estimated_bin(estimate, width_mib));
            score.rows += 1;
            score.right += usize::from(estimated == measured);
            score.below += usize::from(estimated < measured);
        }
        (score.rows > 0).then_some(score)
    }

    pub fn share_right(&self) -> f64 {
        self.right as f64 / self.rows as f64
    }

    pub fn share_below(&self) -> f64 {
        self.below as f64 / self.rows as f64
    }
}

impl CommonestBin {
    /// Who always names it is right as often as `share`. Of several the lowest; None: there are no rows.
    pub fn of(measured_bytes: &[f64], width_mib: u32) -> Option<CommonestBin> {
        let mut counts = std::collections::BTreeMap::<u64, usize>::new();
        for bytes in measured_bytes {
            *counts.entry(bin(*bytes, width_mib)).or_default() += 1;
        }
        let (bin, rows) = counts.into_iter().rev().max_by_key(|(_, rows)| *rows)?;
        Some(CommonestBin { from_mib: bin * u64::from(width_mib), rows, of: measured_bytes.len() })
    }

    pub fn share(&self) -> f64 {
        self.rows as f64 / self.of as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured_mib: f64, estimate_mib: Option<f64>) -> Scored {
        let estimate_bytes = estimate_mib.map(|mib| mib * MIB);
        Scored { label: String::new(), measured_bytes: measured_mib * MIB, estimate_bytes, bounds: None }
    }

    #[test]
    fn a_bin_has_its_lower_end_and_not_its_upper_one() {
        let right = |measured, estimate| BinScore::of(&[row(measured, Some(estimate))], 1000).expect("one").right;
        assert_eq!([right(1000.0, 1999.9), right(1000.0, 2000.1), right(999.9, 1000.1), right(500.0, 0.0)], [1, 0, 0, 1]);
        assert_eq!(right(12_345.0, 12_999.0), 1, "beyond the last bin of the thesis, too");
    }

    #[test]
    fn who_estimates_in_bins_names_their_upper_ends() {
        let published = [row(6684.0, Some(8000.0)), row(8222.0, Some(16_000.0)), row(24_408.0, Some(24_000.0))];
        assert_eq!(BinScore::of(&published, 8000), Some(BinScore { rows: 3, right: 2, below: 1 }));
    }

    #[test]
    fn what_is_too_low_is_told_from_what_is_too_high_and_rows_without_an_estimate_are_in_neither() {
        let rows = [row(9000.0, Some(7000.0)), row(9000.0, Some(17_000.0)), row(9000.0, Some(8500.0)), row(9000.0, None)];
        let score = BinScore::of(&rows, 8000).expect("estimates");
        assert_eq!(score, BinScore { rows: 3, right: 1, below: 1 });
        assert_eq!(BinScore::of(&rows[3..], 8000), None);
        assert_eq!(BinScore::of(&[row(9000.0, Some(f64::NAN))], 8000), None);
        assert_eq!(BinScore::of(&[row(500.0, Some(-3000.0))], 8000).map(|s| s.right), Some(1), "nothing is below the first");
    }

    #[test]
    fn who_always_names_the_commonest_bin_is_right_as_often_as_it_is_common() {
        let measured = [700.0, 1500.0, 1700.0, 2500.0].map(|mib| mib * MIB);
        let found = CommonestBin::of(&measured, 1000).expect("rows");
        assert_eq!((found.from_mib, found.rows, found.share()), (1000, 2, 0.5));
        assert_eq!(CommonestBin::of(&measured, 8000).map(|c| c.share()), Some(1.0));
        assert_eq!(CommonestBin::of(&[measured[3], measured[0]], 1000).map(|c| c.from_mib), Some(0), "of two the lower");
        assert_eq!(CommonestBin::of(&[], 1000), None);
    }
}
