//! How fast tasks go that share a card.

use super::Work;
use collo_schedule::WHOLE_PERMILLE;

/// The pace of a task alone on a card. Paces are in parts per million of it.
pub const ALONE_PPM: u32 = 1_000_000;

/// What says how fast tasks go in company.
pub trait Paces {
    /// The pace of each resident of a card, in their order; at least 1 and at most `ALONE_PPM`.
    fn paces(&self, residents: &[Work]) -> Vec<u32>;
}

/// The sum of the utilisations that residents have alone, 1 for a whole card.
fn summed(residents: &[Work]) -> f64 {
    residents.iter().map(|work| f64::from(work.utilisation_permille)).sum::<f64>() / f64::from(WHOLE_PERMILLE)
}

fn at_stretch(stretch: f64, residents: usize) -> Vec<u32> {
    let pace = (f64::from(ALONE_PPM) / stretch).round().clamp(1.0, f64::from(ALONE_PPM)) as u32;
    vec![pace; residents]
}

/// Company costs every resident the same factor as long as a card is not over-allocated, and a power of the over-allocation beyond:
/// `stretch = least · max(1, S)^exponent`, with the summed utilisation S.
#[derive(Debug, Clone, Copy)]
pub struct OverAllocation {
    pub least: f64,
    pub exponent: f64,
}

impl OverAllocation {
    /// The one that goes through the greatest stretch at a summed utilisation of more than 1.
    pub fn through(least: f64, greatest: f64, at_sum: f64) -> OverAllocation {
        OverAllocation { least, exponent: (greatest / least).ln() / at_sum.ln() }
    }
}

impl Paces for OverAllocation {
    fn paces(&self, residents: &[Work]) -> Vec<u32> {
        let stretch = if residents.len() < 2 { 1.0 } else { self.least * summed(residents).max(1.0).powf(self.exponent) };
        at_stretch(stretch, residents.len())
    }
}

/// Company costs more with every point of summed utilisation: a straight line through two points of sum and stretch, never below 1.
#[derive(Debug, Clone, Copy)]
pub struct Straight {
    pub from: (f64, f64),
    pub to: (f64, f64),
}

impl Paces for Straight {
    fn paces(&self, residents: &[Work]) -> Vec<u32> {
        let ((least_sum, least), (greatest_sum, greatest)) = (self.from, self.to);
        let on_line = least + (summed(residents) - least_sum) * (greatest - least) / (greatest_sum - least_sum);
        at_stretch(if residents.len() < 2 { 1.0 } else { on_line.max(1.0) }, residents.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(paces: &dyn Paces, permille: &[u32]) -> f64 {
        let works: Vec<Work> = permille.iter().map(|p| Work { solo_ns: 1, utilisation_permille: *p, memory_bytes: 1 }).collect();
        let of_each = paces.paces(&works);
        assert_eq!(of_each.len(), works.len());
        assert!(of_each.iter().all(|pace| *pace == of_each[0]));
        f64::from(ALONE_PPM) / f64::from(of_each[0])
    }

    #[test]
    fn over_allocation_goes_through_both_ends_and_costs_nothing_alone() {
        let law = OverAllocation::through(1.1, 3.0, 1.8);
        let near = |permille: &[u32], expected: f64| {
            let is = stretch(&law, permille);
            assert!((is - expected).abs() < 1e-4, "{permille:?}: {is}, not {expected}");
        };
        near(&[900], 1.0);
        near(&[200, 200], 1.1);
        near(&[500, 500], 1.1);
        near(&[900, 900], 3.0);
        assert!(stretch(&law, &[900, 900, 900]) > 3.0);
    }

    #[test]
    fn a_straight_line_goes_through_both_ends_and_never_makes_faster() {
        let law = Straight { from: (0.4, 1.1), to: (1.8, 3.0) };
        assert!((stretch(&law, &[200, 200]) - 1.1).abs() < 1e-5 && (stretch(&law, &[900, 900]) - 3.0).abs() < 1e-5);
        assert!((stretch(&law, &[550, 550]) - 2.05).abs() < 1e-4);
        assert_eq!(stretch(&law, &[900]), 1.0);
        assert_eq!(stretch(&law, &[10, 10]), 1.0);
    }
}
