use super::*;
use crate::sharing::mig::{Cut, Mig};
use crate::sharing::mps::Mps;
use crate::sharing::naive::Naive;
use proptest::prelude::*;

fn any_mode() -> impl Strategy<Value = Arc<dyn SharingMode>> {
    let mps = (proptest::option::of(1u8..=100), proptest::option::of(1u64..1_000_000_000_000)).prop_map(
        |(active_thread_percent, memory_bytes)| {
            Arc::new(Mps::Alike(Limits { active_thread_percent, memory_bytes })) as Arc<dyn SharingMode>
        },
    );
    let profile = "([1-7]c\\.)?([1-7]g|[1-3]/[4-7]|[1-7]g\\.[1-9][0-9]{0,2}gb(\\+me|-me|\\+me\\.all)?)";
    let cut = prop_oneof![
        Just(Cut::Equal),
        (proptest::option::of(1u32..=64), profile).prop_map(|(count, profile)| Cut::Profile { count, profile }),
        "[a-z][a-z0-9-]{0,20}".prop_map(Cut::Layout),
    ];
    let mig = (cut, any::<bool>()).prop_map(|(cut, mps)| Arc::new(Mig { cut, mps }) as Arc<dyn SharingMode>);
    prop_oneof![Just(Arc::new(Naive) as Arc<dyn SharingMode>), mps, mig]
}

proptest! {
    #[test]
    fn every_mode_reads_its_own_label(mode in any_mode()) {
        let read = parse(&mode.label()).expect("a label is a mode");
        prop_assert_eq!(format!("{read:?}"), format!("{mode:?}"));
    }

    #[test]
    fn no_text_breaks_the_reading_of_modes(text in "\\PC*|(mps|mig|naive)[:+]\\PC*") {
        if let Ok(mode) = parse(&text) {
            prop_assert!(parse(&mode.label()).is_ok());
        }
    }
}

#[test]
fn every_example_of_every_family_is_a_mode_of_that_family() {
    for family in MODES {
        for example in family.examples {
            let mode = parse(example).expect("an example is a mode");
            assert_eq!((mode.family(), mode.label()), (family.name, example.to_string()));
        }
    }
}

#[test]
fn the_studys_word_for_naive_and_a_typed_x_are_understood() {
    assert_eq!(parse("streams").expect("known").label(), "naive");
    assert_eq!(parse("mig:2x1c.3g.20gb").expect("known").label(), "mig:2×1c.3g.20gb");
}

#[test]
fn a_mistyped_mode_gets_its_neighbour_and_a_wrong_limit_its_rule() {
    let said = |label: &str| parse(label).expect_err("unknown").to_string();
    insta::assert_snapshot!(said("msp:50%"), @r"
    error: unknown sharing mode `msp:50%`
    hint: did you mean `mps:50%`? All: `collo list modes`
    ");
    insta::assert_snapshot!(said("mps:150%"), @r"
    error: unknown sharing mode `mps:150%`
    hint: the share of threads is between `1%` and `100%`, as in `mps:50%`
    ");
    insta::assert_snapshot!(said("mig:8/7"), @r"
    error: unknown sharing mode `mig:8/7`
    hint: a share such as `3g`, `3/7` or `2×3g`, a profile such as `3g.20gb`, or the name of a layout
    ");
    insta::assert_snapshot!(said("timeslice"), @r"
    error: unknown sharing mode `timeslice`
    hint: all: `collo list modes`
    ");
}

#[test]
fn on_a_cpu_naive_runs_and_the_others_say_why_not() {
    let cpu = DeviceFacts::of_cpu(2, 24 << 30);
    assert!(parse("naive").expect("known").seat(&cpu, &[], &Each::default()).is_ok());
    let refusal = parse("mps:50%").expect("known").seat(&cpu, &[], &Each::default()).expect_err("refused");
    assert_eq!(refusal.reason, "`mps` needs an NVIDIA GPU, this is a cpu");
    assert_eq!(refusal.hint.as_deref(), Some("on a CPU: `naive`, `threads`"));
    assert!(parse("mig:1g.5gb+mps").expect("known").seat(&cpu, &[], &Each::default()).is_err());
}

#[test]
fn every_layout_can_be_asked_for_by_its_name_in_an_experiment() {
    for card in crate::fixture::models().iter() {
        for layout in &card.layouts {
            let mode = parse(&format!("mig:{}", layout.name)).unwrap_or_else(|m| panic!("{m}"));
            assert_eq!(mode.label(), format!("mig:{}", layout.name));
        }
    }
}
