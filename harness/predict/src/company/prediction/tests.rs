use super::*;

#[test]
fn gain_antt_and_fairness_are_the_reports() {
    let GroupQuantities { gain, antt, fairness } = GroupQuantities::of(&[1.25, 2.0]);
    assert!((gain - 1.3).abs() < 1e-12 && (antt - 1.625).abs() < 1e-12 && (fairness - 0.625).abs() < 1e-12);
    let undisturbed = GroupQuantities::of(&[1.0; 3]);
    assert_eq!((undisturbed.gain, undisturbed.antt, undisturbed.fairness), (3.0, 1.0, 1.0));
}

#[test]
fn of_one_set_of_families_nothing_can_be_told() {
    let alone = Widths::of([("a + b", &[1.2, 1.3][..], &[1.2, 1.3][..])]);
    assert_eq!(alone, Widths::PUBLISHED);
    let sets: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let of_thirty = Widths::of(sets.iter().map(|set| (set.as_str(), &[1.2, 1.3][..], &[1.2, 1.3][..])));
    assert_eq!(of_thirty.each().map(|width| width.above_log), [0.0; 4], "it never errs");
}

#[test]
fn what_was_assumed_is_said() {
    let said = Extrapolated { measured: 2, asked: 7 }.to_string();
    assert_eq!(said, "extrapolated: measured with up to 2 members, here are 7");
    assert!(Assumed::ModeUnrecorded(CompanyMode::Mps).to_string().contains("used for mps: intervals are wider"));
}
