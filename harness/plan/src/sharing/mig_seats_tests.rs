use super::*;
use crate::facts::{DeviceFacts, Gpu};
use crate::fixture::{models, planned};
use crate::sharing::{Each, MODES, limits, parse};
use collo_store::Sharing;

fn facts(card: &str) -> DeviceFacts {
    planned(vec![Gpu::planned(models().find(card).expect("known"))])
}

fn members(names: &[&str]) -> Vec<MemberSpec> {
    let spec = |name: &&str| MemberSpec {
        workload: name.to_string(),
        batch_size: None,
        settings: BTreeMap::new(),
        solo: format!("{name} solo"),
    };
    names.iter().map(spec).collect()
}

fn slots(label: &str, degree: usize) -> String {
    slots_on("a100-40gb", label, degree)
}

/// The slots of `degree` equal members, or why not.
fn slots_on(card: &str, label: &str, degree: usize) -> String {
    let members = members(&vec!["small"; degree]);
    match parse(label).expect("a mode").seat(&facts(card), &members, &Each::default()) {
        Ok(seating) => seating.to_string(),
        Err(refusal) => format!("{} · {}", refusal.reason, refusal.hint.unwrap_or_default()),
    }
}

/// Parsing a stored label must give the sharing that was planned under it.
#[test]
fn every_label_says_of_the_sharing_what_its_seating_does() {
    let limits = BTreeMap::from([("small", "50%"), ("medium", "mem=4GB")].map(|(w, l)| (w.into(), limits(l).expect("limits"))));
    let slices = BTreeMap::from([("small", "1g.5gb"), ("medium", "2g.10gb")].map(|(w, p)| (w.to_string(), p.to_string())));
    let each = Each { slices, limits };
    let more = ["mig:7×1g.5gb", "mig+mps", "mig:1g.5gb+me", "mig:sevenths+mps", "mig:7g.40gb"];
    for label in MODES.iter().flat_map(|family| family.examples).chain(&more) {
        let mode = parse(label).expect("a mode");
        // The widest group that it takes.
        let seating = [["small", "medium"].as_slice(), &["small", "small"], &["small"]].into_iter();
        let mut fitting = seating.filter_map(|names| mode.seat(&facts("a100-40gb"), &members(names), &each).ok());
        let seating = fitting.next().unwrap_or_else(|| panic!("`{label}` takes nobody"));
        assert_eq!(seating.sharing(mode.family()), Sharing::of_label(label), "{label}");
    }
}

#[test]
fn mig_alone_gives_each_member_the_largest_equal_instance() {
    let of: Vec<String> = (1..=7).map(|n| slots("mig", n)).collect();
    assert_eq!(of, ["7g.40gb", "2×3g.20gb", "3×2g.10gb", "4×1g.5gb", "5×1g.5gb", "6×1g.5gb", "7×1g.5gb"]);
    insta::assert_snapshot!(
        slots("mig", 8),
        @"a100-40gb cannot be partitioned into 8 equal instances · `degree` up to 7 fits; more share an instance with `mig+mps`"
    );
    assert_eq!(slots("mig+mps", 8), "6×1g.5gb + 1g.5gb of 2");
}

#[test]
fn a_profile_is_given_as_often_as_there_are_members_or_as_counted() {
    assert_eq!(slots("mig:1g.5gb", 3), "3×1g.5gb");
    assert_eq!(slots("mig:3×1g.5gb", 2), "2×1g.5gb");
    assert_eq!(slots("mig:3g.20gb+mps", 4), "2×3g.20gb of 2");
    insta::assert_snapshot!(
        slots("mig:2×3g.20gb", 3),
        @"3 members need an instance each, `2×3g.20gb` has 2 · `mig:2×3g.20gb+mps` lets several share one"
    );
    assert!(slots("mig:3g.20gb", 3).starts_with("`3×3g.20gb` does not fit a100-40gb"), "{}", slots("mig:3g.20gb", 3));
    assert!(slots("mig:3g.40gb", 1).contains("unknown profile `3g.40gb`"));
}

#[test]
fn no_more_members_share_an_instance_than_its_mps_server_has_clients() {
    // A seventh of 48 each.
    assert_eq!(slots("mig:1×1g.5gb+mps", 6), "1g.5gb of 6");
    assert_eq!(slots("mig:2×1g.5gb+mps", 12), "2×1g.5gb of 6");
    assert_eq!(slots("mig:1×7g.40gb+mps", 48), "7g.40gb of 48");
    assert_eq!(
        slots("mig:1×1g.5gb+mps", 7),
        "7 members are more than the 6 clients of the MPS server of one `1g.5gb` · a smaller `degree`, more instances, or larger ones"
    );
    assert!(slots("mig:2×1g.5gb+mps", 13).starts_with("7 members are more than the 6 clients"));
    assert!(slots("mig:1×7g.40gb+mps", 49).starts_with("49 members are more than the 48 clients"));
}

#[test]
fn a_share_is_the_profile_with_the_least_memory_of_each_gpu_model() {
    let of = |label: &str, degree: usize| ["a100-40gb", "h100-80gb", "b200"].map(|card| slots_on(card, label, degree));
    assert_eq!(of("mig:1g", 7), ["7×1g.5gb", "7×1g.10gb", "7×1g.23gb"]);
    assert_eq!(of("mig:3/7", 2), ["2×3g.20gb", "2×3g.40gb", "2×3g.90gb"]);
    assert_eq!(of("mig:2×3g+mps", 4), ["2×3g.20gb of 2", "2×3g.40gb of 2", "2×3g.90gb of 2"]);
    assert_eq!(of("mig:2×3c.7g", 2), ["2×3c in one 7g.40gb", "2×3c in one 7g.80gb", "2×3c in one 7g.180gb"]);
    assert_eq!((slots_on("a30-24gb", "mig:1/2", 2), slots_on("a30-24gb", "mig:4g", 1)), ("2×2g.12gb".into(), "4g.24gb".into()));
    insta::assert_snapshot!(
        slots_on("a30-24gb", "mig:1/7", 1),
        @"a30-24gb has no instance of `1/7`: it has 4 compute slices · its instances are `1/4`, `2/4` and `4/4`"
    );
    insta::assert_snapshot!(
        slots("mig:5g", 1),
        @"a100-40gb has no instance of `5g`: it has 7 compute slices · its instances are `1g`, `2g`, `3g`, `4g` and `7g`"
    );
    let slices = [("small", "1/7"), ("medium", "2g"), ("large", "4g.20gb")];
    assert_eq!(mixed(&slices, &["large", "medium", "small"]).expect("fits").to_string(), "1g.5gb + 2g.10gb + 4g.20gb");
}

#[test]
fn a_label_with_a_share_is_resolved_and_others_are_left_as_they_are() {
    let facts = facts("h100-80gb");
    let h100 = facts.gpus[0].card.as_ref().expect("it has MIG");
    let pairs = [
        ("mig:1/7", "mig:1g.10gb"),
        ("mig:2x3g+mps", "mig:2×3g.40gb+mps"),
        ("mig:2×3c.7g", "mig:2×3c.7g.80gb"),
        ("small×7 mig:1g b32", "small×7 mig:1g.10gb b32"),
    ];
    for (label, with_profile) in pairs {
        assert_eq!(crate::sharing::resolve_shares(label, h100), with_profile);
    }
    for other in ["mig", "mig+mps", "mig:sevenths", "mig:5g", "mig:1g.5gb", "naive", "mps:50%", "mig-net mig:9/9x b32"] {
        assert_eq!(crate::sharing::resolve_shares(other, h100), other);
    }
}

#[test]
fn compute_instances_share_one_gpu_instance() {
    assert_eq!(slots("mig:2×1c.3g.20gb", 2), "2×1c in one 3g.20gb");
    assert_eq!(slots("mig:3c.7g.40gb", 2), "2×3c in one 7g.40gb");
    insta::assert_snapshot!(
        slots("mig:2c.3g.20gb", 2),
        @"2 compute instances of 2 slices do not fit `3g.20gb`, which has 3 · 1 of them fit"
    );
}

#[test]
fn a_layout_seats_equal_members_in_the_order_of_its_places() {
    assert_eq!(slots("mig:sevenths", 7), "7×1g.5gb");
    assert_eq!(slots("mig:balanced", 2), "1g.5gb + 2g.10gb");
    assert!(slots("mig:balanced", 5).starts_with("5 members need an instance each, `balanced` on a100-40gb has 4"));
    assert!(slots("mig:nothing", 2).contains("unknown layout `nothing`"));
}

fn mixed(slices: &[(&str, &str)], names: &[&str]) -> Result<Seating, Refusal> {
    let slices: BTreeMap<String, String> = slices.iter().map(|(w, p)| (w.to_string(), p.to_string())).collect();
    parse("mig").expect("a mode").seat(&facts("a100-40gb"), &members(names), &Each { slices, ..Each::default() })
}

const STUDY: [(&str, &str); 3] = [("small", "1g.5gb"), ("medium", "2g.10gb"), ("large", "4g.20gb")];

#[test]
fn the_studys_mixed_groups_sit_on_the_slices_of_their_workloads() {
    let seating = mixed(&STUDY, &["large", "medium", "small"]).expect("fits");
    assert_eq!(seating.to_string(), "1g.5gb + 2g.10gb + 4g.20gb");
    let own: Vec<String> = (0..3).filter_map(|m| seating.slice(m)).collect();
    assert_eq!(own, ["4g.20gb", "2g.10gb", "1g.5gb"], "each member its own");
}

#[test]
fn the_three_groups_that_are_impossible_on_an_a100_are_refused_with_what_would_fit() {
    let why = |names: &[&str]| {
        let refusal = mixed(&STUDY, names).expect_err("too many slices");
        format!("{}\n{}", refusal.reason, refusal.hint.unwrap_or_default())
    };
    insta::assert_snapshot!(why(&["large", "medium", "medium"]), @r#"
    `4g.20gb + 2×2g.10gb` does not fit a100-40gb: together they need 8 compute slices, a100-40gb has 7
    `large = "3g.20gb"` in `slices` fits: 2g@0 2g@2 3g@4
    "#);
    insta::assert_snapshot!(why(&["large", "medium", "small", "small", "small"]), @r#"
    `4g.20gb + 2g.10gb + 3×1g.5gb` does not fit a100-40gb: together they need 9 compute slices, a100-40gb has 7
    `large = "2g.10gb"` in `slices` fits: 2g@0 2g@2 1g@4 1g@5 1g@6
    "#);
}

#[test]
fn a_workload_without_a_slice_is_named() {
    let refusal = mixed(&[("small", "1g.5gb")], &["small", "medium"]).expect_err("no word of medium");
    assert_eq!(refusal.reason, "`slices` has no profile for `medium`");
}

#[test]
fn a_card_for_one_process_at_a_time_refuses_naive_groups_and_not_mps() {
    let mut facts = facts("a100-40gb");
    facts.gpus[0].compute_mode = Some("ExclusiveProcess".into());
    let seat = |label: &str, degree: usize| {
        parse(label).expect("a mode").seat(&facts, &members(&vec!["small"; degree]), &Each::default())
    };
    assert!(seat("naive", 2).expect_err("one at a time").reason.contains("compute mode ExclusiveProcess"));
    assert!(seat("naive", 1).is_ok() && seat("mps", 2).is_ok());
}

#[test]
fn a_card_without_known_places_refuses_every_cut() {
    let refusal =
        parse("mig:1g.18gb").expect("a mode").seat(&facts("gh200"), &members(&["small"]), &Each::default()).expect_err("unknown");
    assert_eq!(
        (refusal.reason.as_str(), refusal.hint.is_some()),
        (
            "whether `1g.18gb` can be placed on gh200 is not known: mig-profiles/gh200.toml has no places of instances, which the driver reports once MIG is on",
            true
        )
    );
    for label in ["mig", "mig+mps", "mig:1g", "mig:4/7"] {
        let said = slots_on("gb200", label, 1);
        assert!(said.starts_with("whether ") && said.contains(" can be placed on gb200 is not known: "), "{label}: {said}");
        assert!(
            said.contains("`sudo collo mig apply on`") && said.contains("`memory_units`, `starts` and `units`"),
            "{label}: {said}"
        );
    }
    // What no placement would help is impossible.
    assert!(
        slots_on("gb200", "mig:1g", 8).starts_with("`8×1g.23gb` does not fit gb200: `1g.23gb` can be created at most 7 times")
    );
    assert!(slots_on("gb200", "mig", 8).starts_with("gb200 cannot be partitioned into 8 equal instances"));
}

#[test]
fn a_gpu_without_mig_refuses_instances_and_nothing_else() {
    let seat = |label: &str| parse(label).expect("a mode").seat(&facts("l40s"), &members(&["small"; 2]), &Each::default());
    let refusal = seat("mig:1g.5gb").expect_err("no MIG");
    assert_eq!(
        (refusal.reason.as_str(), refusal.hint.as_deref()),
        ("NVIDIA L40S cannot be partitioned: it has no MIG", Some("`naive` and `mps` share it"))
    );
    assert!(["naive", "mps", "mps:50%", "threads"].iter().all(|label| seat(label).is_ok_and(|seats| seats.partition.is_none())));
}
