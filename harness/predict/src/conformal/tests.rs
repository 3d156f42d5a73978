use super::*;

fn residual(family: usize, log_ratio: f64) -> Residual {
    Residual { family: format!("family {family}"), log_ratio }
}

#[test]
fn of_a_hundred_single_rows_the_bound_is_the_ninety_sixth() {
    let residuals: Vec<Residual> = (0..100).map(|i| residual(i, i as f64 / 1000.0)).collect();
    let width = Width::by_family(&residuals).unwrap();
    // ⌈0.95 · 101⌉ = 96.
    assert!((width.upper_log - 0.095).abs() < 1e-12);
    assert_eq!((width.families, width.rows, width.from), (100, 100, WidthFrom::Families));
}

#[test]
fn a_family_with_many_rows_weighs_as_one() {
    let mut residuals: Vec<Residual> = (0..50).map(|i| residual(i, 0.01)).collect();
    residuals.extend((0..1000).map(|_| residual(50, 2.0)));
    assert!((Width::by_family(&residuals).unwrap().upper_log - 0.01).abs() < 1e-12);
}

#[test]
fn few_families_have_the_published_width() {
    let residuals: Vec<Residual> = (0..500).map(|i| residual(i % 19, 0.0)).collect();
    assert_eq!(Width::by_family(&residuals), None);
    let width = Width::of(&residuals);
    assert_eq!((width.upper_log, width.from), (Width::PUBLISHED.upper_log, WidthFrom::Published));
    assert_eq!((width.families, width.rows), (19, 500));
}

#[test]
fn few_families_with_larger_errors_than_published_have_their_own() {
    let residuals: Vec<Residual> = (0..15).map(|i| residual(i % 5, 0.1 * (1 + i % 5) as f64)).collect();
    let width = Width::of(&residuals);
    assert!((width.upper_log - 0.5).abs() < 1e-12 && (width.above_log - 0.5).abs() < 1e-12);
    assert_eq!(Width::of(&[]), Width { families: 0, rows: 0, ..Width::PUBLISHED });
}

#[test]
fn an_upper_bound_is_never_below_its_estimate() {
    let residuals: Vec<Residual> = (0..40).map(|i| residual(i, -0.2)).collect();
    let width = Width::by_family(&residuals).unwrap();
    assert_eq!(width.upper_log, 0.0);
    assert!((width.below_log - 0.2).abs() < 1e-12 && width.above_log == 0.0, "{width:?}");
}

/// The fault before: seven rows that were families of their own made an interval of × 1.1 one of × 1.9.
#[test]
fn a_row_that_is_a_family_of_its_own_weighs_no_more_than_a_row() {
    let mut residuals: Vec<Residual> = (0..50).flat_map(|family| (0..10).map(move |_| residual(family, 0.05))).collect();
    let usual = Width::by_family(&residuals).unwrap();
    residuals.extend((50..57).map(|family| residual(family, -0.6)));
    let width = Width::by_family(&residuals).unwrap();
    assert_eq!((width.above_log, width.below_log), (usual.above_log, usual.below_log), "7 of 507 rows are 1.4 %");
}

#[test]
fn a_row_that_is_a_family_of_its_own_weighs_no_more_than_a_row_in_the_spread_of_few_families_either() {
    let mut residuals: Vec<Residual> = (0..9).flat_map(|family| (0..10).map(move |_| residual(family, 0.1))).collect();
    let usual = Width::of_spread(&residuals).unwrap();
    residuals.push(residual(9, 0.4));
    let width = Width::of_spread(&residuals).unwrap();
    // The mean square is (9 · 0.01 + 0.1 · 0.16) / 9.1, and as a whole family it would be (9 · 0.01 + 0.16) / 10.
    assert!(width.above_log < 1.1 * usual.above_log, "{width:?} after {usual:?}");
}

#[test]
fn each_end_of_an_interval_is_a_quantile_of_its_own() {
    // Of every twentieth family the rows are far below.
    let residuals: Vec<Residual> = (0..200).map(|family| residual(family, if family % 20 == 0 { -0.9 } else { 0.05 })).collect();
    let width = Width::by_family(&residuals).unwrap();
    assert_eq!((width.below_log, width.above_log), (0.9, 0.05));
    let ratios: Vec<f64> = residuals.iter().map(|one| one.log_ratio).collect();
    let decided = width.decided_by(&ratios);
    assert_eq!((decided[0], decided.len()), (0, 200), "all others are at the upper end");
    let within = Width { above_log: 0.1, ..width };
    assert_eq!(within.decided_by(&ratios), [0, 20, 40, 60, 80, 100, 120, 140, 160, 180]);
}

/// Uniform numbers from a seed, so that the test is the same every time.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Nearly normal, with standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Families err together, so a row of a family to come is not like the rows seen.
#[test]
fn the_bounds_cover_what_they_say_in_two_thousand_simulated_campaigns() {
    let mut random = Uniform(7);
    let (mut below, mut within) = (0, 0);
    const CAMPAIGNS: usize = 4_000;
    for campaign in 0..CAMPAIGNS {
        // Up to forty families an interval is as wide to either side.
        let families = if campaign % 2 == 0 { 39 } else { 80 };
        let mut family_of = |family: usize, rows: usize| -> Vec<Residual> {
            let common = 0.03 * random.normal();
            (0..rows).map(|_| residual(family, common + 0.02 * random.normal())).collect()
        };
        let seen: Vec<Residual> = (0..families).flat_map(|family| family_of(family, 1 + family % 5)).collect();
        let new = family_of(families, 1).remove(0).log_ratio;
        let width = Width::of(&seen);
        below += usize::from(new <= width.upper_log);
        within += usize::from((-width.below_log..=width.above_log).contains(&new));
    }
    for covered in [below, within] {
        let share = covered as f64 / CAMPAIGNS as f64;
        assert!((0.93..=0.97).contains(&share), "{share}");
    }
}

#[test]
fn the_probability_of_more_than_a_limit_is_half_at_the_estimate_and_a_fortieth_at_the_end_of_the_interval() {
    let interval = Interval { estimate: 100.0, low: 80.0, high: 110.0 };
    let above = |limit: f64| probability_above(interval, limit);
    assert!((above(100.0) - 0.5).abs() < 1e-9);
    assert!((above(110.0) - 0.025).abs() < 1e-4 && (above(80.0) - 0.975).abs() < 1e-4);
    let exact = Interval { low: 100.0, high: 100.0, ..interval };
    assert_eq!((above(0.0), above(1e9), probability_above(exact, 99.0)), (1.0, 0.0, 1.0));
}

#[test]
fn few_families_have_the_interval_of_their_spread_and_one_has_none() {
    let residual = |family: usize, log_ratio: f64| Residual { family: family.to_string(), log_ratio };
    let few: Vec<Residual> = (0..5).flat_map(|family| [residual(family, 0.1), residual(family, -0.1)]).collect();
    let width = Width::of_spread(&few).expect("five families");
    // Of four degrees of freedom 97.5 % of Student's t are below 2.776.
    assert!((width.above_log - 0.2776).abs() < 1e-3, "{width:?}");
    assert_eq!((width.from, width.families, width.rows), (WidthFrom::Spread, 5, 10));
    assert!(width.upper_log < width.above_log && width.below_log == width.above_log);
    assert_eq!(Width::of_spread(&few[..2]), None);
    let many: Vec<Residual> = (0..30).map(|family| residual(family, 0.1)).collect();
    assert_eq!(Width::of_spread(&many).map(|width| width.from), Some(WidthFrom::Families));
}
