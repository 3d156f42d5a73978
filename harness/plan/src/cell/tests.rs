use super::*;
use crate::fixture::workloads;
use crate::sharing;
use proptest::prelude::*;
use serde_json::json;

fn cell(text: &str) -> Cell {
    Cell::parse(text, &workloads()).unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
}

fn member(workload: &str, given: &[(&str, Json)]) -> Arc<Member> {
    let all = workloads();
    Arc::new(Member::new(all.get(workload).expect("known"), given.iter().cloned()).expect("right"))
}

#[test]
fn labels_are_as_the_house_writes_them() {
    for label in [
        "tiny solo b32",
        "small×7 mps b32",
        "small+tiny×3 mig b128",
        "small:b32+tiny:b128×3 mps:50%,mem=4GB",
        "small mig:1g.5gb b32",
        "small+tiny mig:2×1c.3g.20gb b32",
        "small×2 naive b32 amp=bf16 rate=0.5",
        "sleep solo",
        "sleep+tiny:b32 naive",
        "small:amp=bf16+tiny×2 naive b32",
        "sleep×2 naive seconds=2.5",
    ] {
        assert_eq!(cell(label).label(), label);
    }
}

#[test]
fn typed_input_may_be_lazy() {
    assert_eq!(cell("tinyx2 streams").label(), "tiny×2 naive b32");
    assert_eq!(cell("  tiny+small×1   naive b32 ").label(), "small+tiny naive b32");
    assert_eq!(cell("tiny+tiny naive b32").label(), "tiny×2 naive b32");
    assert_eq!(cell("tiny naive b32").label(), "tiny solo b32");
    assert_eq!(cell("small solo b32 rate=1").label(), "small solo b32 rate=1.0");
}

#[test]
fn folders_are_a_readable_slug_and_a_hash() {
    let slug = |label: &str| cell(label).slug().split('~').next().unwrap_or_default().to_string();
    assert_eq!(slug("tiny×2 naive b32"), "tinyx2_naive_b32");
    assert_eq!(slug("small:b32+tiny:b128×3 mps:50%,mem=4GB"), "small.b32+tiny.b128x3_mps.50pct.mem-4gb");
    assert_eq!(
        slug("small+tiny mig:2×1c.3g.20gb b32 amp=bf16".replace(" amp=bf16", "").as_str()),
        "small+tiny_mig.2x1c.3g.20gb_b32"
    );
    // The whole name is pinned: a stored campaign is found by it.
    assert_eq!(cell("tiny×2 naive b32").slug(), "tinyx2_naive_b32~075d");
}

#[test]
fn what_the_label_leaves_out_is_in_the_hash() {
    let all = workloads();
    let tiny = all.get("tiny").expect("known");
    let mut other = (**tiny).clone();
    other.settings.insert("images".into(), json!(2048));
    let one = Cell::solo(&Arc::new(Member::new(tiny, []).expect("right")), None);
    let two = Cell::solo(&Arc::new(Member::new(&Arc::new(other), []).expect("right")), None);
    assert_eq!(one.label(), two.label());
    assert_ne!(one.slug(), two.slug());
}

#[test]
fn naive_at_degree_one_is_solo_and_its_own_baseline() {
    let solo = Cell::new([(member("tiny", &[]), 1)], sharing::parse("naive").expect("known"), None);
    assert!(solo.is_baseline());
    let record = solo.record(6);
    assert_eq!((record.cell.as_str(), record.sharing.as_str(), record.against.len()), ("tiny solo b32", "solo", 0));
    assert_eq!(record.members[0].solo, "tiny solo b32");
    assert!(!Cell::new([(member("tiny", &[]), 1)], sharing::parse("mig:1g.5gb").expect("known"), None).is_baseline());
}

#[test]
fn a_mixed_group_is_held_against_each_of_its_members_alone() {
    let record = cell("small:b32+tiny:b128×3 naive").record(3);
    assert_eq!((record.degree, record.members.len(), record.after_measured), (4, 4, AfterMeasured::Exit));
    assert_eq!(record.against, ["small solo b32", "tiny solo b128"]);
    assert_eq!(record.axis("workload"), Some(json!("small+tiny")));
    assert_eq!(record.axis("batch_size"), None);
}

#[test]
fn a_name_that_is_none_says_what_is_missing() {
    let said = |text: &str| Cell::parse(text, &workloads()).expect_err("no cell").to_string();
    insta::assert_snapshot!(said("tiny"), @"
    error: invalid cell name `tiny`: members first, then a sharing mode
    hint: as in `tiny×2 naive b32`
    ");
    insta::assert_snapshot!(said("tinny solo b32"), @r"
    error: unknown workload `tinny`
    hint: all: `collo list workloads`
    ");
    insta::assert_snapshot!(said("tiny solo 32"), @"
    error: invalid cell name `tiny solo 32`: a setting is `b32` or `key=value`
    hint: as in `tiny×2 naive b32`
    ");
    insta::assert_snapshot!(said("tiny×2 solo"), @"
    error: invalid cell name `tiny×2 solo`: `solo` is one member, not 2
    hint: as in `tiny×2 naive b32`
    ");
    insta::assert_snapshot!(said("tiny solo images=many"), @"
    error: invalid value `many` for `images` of `tiny`
    hint: its default is `1024`
    ");
    insta::assert_snapshot!(said("tiny×99999999999 naive"), @"
    error: invalid cell name `tiny×99999999999 naive`: invalid member `tiny×99999999999`
    hint: as in `tiny×2 naive b32`
    ");
}

fn any_member() -> impl Strategy<Value = Arc<Member>> {
    let batch = prop_oneof![Just(None), (1u32..300).prop_map(Some)];
    let text = "[a-z0-9]{1,6}|x2|\\PC{0,6}|true|1";
    let small = (batch.clone(), proptest::option::of(text), proptest::option::of(-1e9f64..1e9), any::<bool>()).prop_map(
        |(b, amp, rate, nesterov)| {
            let mut given: Vec<(&str, Json)> = vec![("nesterov", nesterov.into())];
            given.extend(b.map(|b| ("batch_size", b.into())));
            given.extend(amp.map(|a: String| ("amp", a.into())));
            given.extend(rate.map(|r| ("rate", r.into())));
            ("small", given)
        },
    );
    let tiny = (batch, proptest::option::of(any::<i64>())).prop_map(|(b, images)| {
        let images = images.map(|i| ("images", Json::from(i)));
        ("tiny", b.map(|b| ("batch_size", Json::from(b))).into_iter().chain(images).collect())
    });
    let sleep = (0.0f64..1e6).prop_map(|s| ("sleep", vec![("seconds", Json::from(s))]));
    let limit = prop_oneof![any::<u32>().prop_map(Json::from), (1e-9f64..0.999_999).prop_map(Json::from)];
    let net = limit.prop_map(|limit| ("net", vec![("limit_batches", limit)]));
    prop_oneof![small, tiny, sleep, net].prop_map(|(workload, given)| member(workload, &given))
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let modes = prop::sample::select(vec!["naive", "mps", "mps:50%,mem=4GB", "mig:2×3g.20gb", "mig:balanced+mps"]);
    (proptest::collection::vec((any_member(), 1u32..5), 1..4), modes)
        .prop_map(|(members, mode)| Cell::new(members, sharing::parse(mode).expect("known"), None))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_label_of_a_cell_reads_back_as_the_cell(cell in any_cell()) {
        let label = cell.label();
        let read = Cell::parse(&label, &workloads()).map_err(|m| TestCaseError::fail(format!("{label}: {m}")))?;
        prop_assert_eq!(read.label(), label);
        prop_assert_eq!(read, cell);
    }

    #[test]
    fn two_cells_never_share_a_folder(a in any_cell(), b in any_cell()) {
        prop_assert_eq!(a == b, a.slug() == b.slug(), "{} {}", a.label(), b.label());
        let slug = a.slug();
        prop_assert!(slug.len() <= 105 && slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._+-~".contains(c)), "{}", slug);
    }

    #[test]
    fn no_text_breaks_the_reading_of_labels(text in "\\PC*|(tiny|small|×|x|[0-9]{1,3}|\\+|:| |naive|mps|b|images|=|%){0,12}") {
        if let Ok(cell) = Cell::parse(&text, &workloads()) {
            prop_assert!(Cell::parse(&cell.label(), &workloads()).is_ok());
        }
    }
}

#[test]
fn a_label_names_its_recipe_and_leaves_out_what_the_recipe_sets() {
    for label in [
        "cooked solo b32",
        "cooked×7 mps b32 recipe=timm",
        "cooked×7 mps b32 recipe=timm workers=2",
        "cooked:recipe=timm+tiny×2 naive b32",
        "cooked+cooked-table naive b32 recipe=timm",
        "cooked-table solo b32 recipe=own",
    ] {
        assert_eq!(cell(label).label(), label);
    }
    let settings = |label: &str| {
        let cell = cell(label);
        let spec = cell.terms()[0].member.spec();
        format!("{} {} {}", spec.settings["recipe"], spec.settings["precision"], spec.settings["workers"])
    };
    assert_eq!(settings("cooked solo b32 recipe=timm"), r#""timm" "tf32" 4"#, "what is in force is stored");
    assert_eq!(settings("cooked solo b32 workers=2 recipe=timm"), r#""timm" "tf32" 2"#, "in whatever order");
    assert_eq!(settings("cooked-table solo b32"), r#""timm" "tf32" 8"#);
    let unknown = Cell::parse("cooked solo b32 recipe=tim", &workloads()).expect_err("unknown").to_string();
    assert_eq!(unknown, "error: workload `cooked` has no recipe `tim`\nhint: did you mean `timm`?");
}
