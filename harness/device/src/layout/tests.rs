use std::path::Path;

use proptest::prelude::*;

use super::*;
use collo_gpus::mig::Cards;
use collo_plan::facts::Address;

fn cards() -> Cards {
    Cards::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles")).expect("the cards are there")
}

fn gpu(index: u32, model: &str) -> Gpu {
    let at = Address { index, uuid: format!("GPU-{index}"), pci: format!("00000000:{:02X}:00.0", 0x36 + index) };
    Gpu { at: Some(at), ..Gpu::planned(cards().find(model).expect("it is known")) }
}

fn a100() -> Gpu {
    gpu(0, "a100-40gb")
}

fn slice(profile: &str, start: u32, compute: &[u32]) -> Slice {
    Slice { profile: profile.into(), start: Some(start), compute: compute.to_vec() }
}

fn of_words(text: &str) -> Result<WantedPartition, Diagnostic> {
    words(text, &a100())
}

fn toml_of(text: &str) -> Result<Vec<(u32, WantedPartition)>, Diagnostic> {
    let file = toml::LayoutFile::read(&Source::file("l.toml", text), None)?;
    on(&RequestedLayout::Collo(file), &[a100(), gpu(1, "a100-40gb")], false)
}

fn parted_of(text: &str, gpus: &[Gpu]) -> Result<Vec<(u32, WantedPartition)>, Diagnostic> {
    let config = mig_parted::Config::read(&Source::file("c.yaml", text), None)?;
    on(&RequestedLayout::MigParted(config), gpus, false)
}

fn on(layout: &RequestedLayout, gpus: &[Gpu], chosen: bool) -> Result<Vec<(u32, WantedPartition)>, Diagnostic> {
    let all = layout.on(gpus, chosen, &|_| Some(0x20B0_10DE))?;
    Ok(all.into_iter().map(|(gpu, wanted)| (gpu.at.as_ref().expect("it has one").index, wanted)).collect())
}

/// Every set of instances that fits the GPU, from one instance to a full GPU.
fn every_set(card: &GpuModel, plain: &[&str]) -> Vec<Partition> {
    let mut all = Vec::new();
    let mut open: Vec<(usize, Vec<Arc<Profile>>)> = vec![(0, Vec::new())];
    while let Some((from, set)) = open.pop() {
        for (at, name) in plain.iter().enumerate().skip(from) {
            let mut larger = set.clone();
            larger.push(Arc::clone(card.profile(name).expect("it has it")));
            if let Ok(instances) = card.place(&larger, &[]) {
                all.push(Partition::of(&instances));
                open.push((at, larger));
            }
        }
    }
    all
}

#[test]
fn all_37_sets_of_instances_are_read_as_they_were_written_in_every_form() {
    let gpu = a100();
    let card = gpu.card.as_ref().expect("it has MIG");
    let sets = every_set(card, &["7g.40gb", "4g.20gb", "3g.20gb", "2g.10gb", "1g.5gb"]);
    assert_eq!(sets.len(), 37);
    for set in sets.iter().chain([&Partition::off()]) {
        let exactly = WantedPartition { partition: set.clone(), placed: true };
        assert_eq!(of_words(&cut_text(set)).expect("read"), exactly);
        assert_eq!(toml_of(&toml_text([(&gpu, set)])).expect("read"), [(0, exactly)]);
        let parted = parted_of(&parted_text([(&gpu, set)]), std::slice::from_ref(&gpu)).expect("read");
        assert!(parted[0].1.is_met_by(set), "{set}: {parted:?}");
        if set.mig {
            assert!(of_words(&set.to_string()).expect("read").is_met_by(set), "{set}");
        }
    }
}

proptest! {
    #[test]
    fn a_state_is_read_as_it_was_written_whatever_is_in_its_instances(
        cut in prop::sample::subsequence(vec![0_u32, 2, 4], 0..=3),
        compute in prop::collection::vec(prop::collection::vec(1_u32..=2, 0..=2), 3),
        mig in any::<bool>(),
    ) {
        let fits = |c: &Vec<u32>| if c.iter().sum::<u32>() > 2 { vec![2] } else { c.clone() };
        let slices = cut.iter().zip(&compute).map(|(start, c)| slice("2g.10gb", *start, &fits(c))).collect();
        let state = if mig { Partition::on(slices) } else { Partition::off() };
        let gpu = a100();
        let read = toml_of(&toml_text([(&gpu, &state)])).expect("read");
        prop_assert_eq!(&read[0].1, &WantedPartition { partition: state.clone(), placed: true });
        prop_assert_eq!(of_words(&cut_text(&state)).expect("read").partition, state);
    }

    #[test]
    fn no_text_is_a_panic(text in "[0-9a-z.@+×x \\[\\]\"=:{}-]{0,60}") {
        let _ = of_words(&text);
        let _ = typed::read(&text, a100().card.as_ref().expect("it has MIG"));
        let _ = toml_of(&text);
        let _ = toml_of(&format!("[layout.gpu0]\ncut = [\"{}\"]", text.replace(['"', '\\'], "")));
        let _ = parted_of(&text, &[a100()]);
        let _ = parted_of(&format!("version: v1\nmig-configs: {{ a: {text} }}"), &[a100()]);
    }
}

#[test]
fn a_layout_is_a_name_a_cut_or_off() {
    let sevenths: Vec<Slice> = (0..7).map(|n| slice("1g.5gb", n, &[1])).collect();
    for text in ["sevenths", "7×1g.5gb", "7x1g.5gb", "1g.5gb+6×1g.5gb"] {
        assert_eq!(of_words(text).expect("read").partition.instances, sevenths, "{text}");
    }
    let partition = |text: &str| of_words(text).expect("read").partition;
    assert_eq!(partition("off"), Partition::off());
    assert_eq!(partition("3g.20gb + 2×2g.10gb").to_string(), "3g.20gb + 2×2g.10gb");
    assert_eq!(partition("1g.5gb+me+2g.10gb").to_string(), "2g.10gb + 1g.5gb+me");
    // Four of them need two instances, the second half empty.
    assert_eq!(partition("2×1c.3g.20gb").instances, [slice("3g.20gb", 0, &[1, 1])]);
    assert_eq!(partition("4×1c.3g.20gb").instances, [slice("3g.20gb", 0, &[1, 1, 1]), slice("3g.20gb", 4, &[1])]);
    assert_eq!(partition("3g.20gb@4").instances, [slice("3g.20gb", 4, &[3])]);
}

#[test]
fn a_share_is_the_profile_of_the_gpu_at_hand() {
    let of = |text: &str| of_words(text).map(|wanted| wanted.partition.to_string());
    for (share, profile) in
        [("7×1g", "7×1g.5gb"), ("3/7 + 2×2g", "3g.20gb+2×2g.10gb"), ("2×1c.3g", "2×1c.3g.20gb"), ("3g@4", "3g.20gb@4")]
    {
        assert_eq!(of(share).expect("read"), of(profile).expect("read"), "{share}");
    }
    assert!(of("5g").expect_err("none has five slices").to_string().contains("a100-40gb has no instance of `5g`"));
}

#[test]
fn places_count_only_where_they_were_asked_for() {
    let found = Partition::on(vec![slice("3g.20gb", 4, &[3])]);
    assert!(of_words("3g.20gb").expect("read").is_met_by(&found));
    assert!(!of_words("3g.20gb@0").expect("read").is_met_by(&found));
    assert!(!of_words("off").expect("read").is_met_by(&found));
    assert!(!of_words("2×1c.3g.20gb").expect("read").is_met_by(&found));
}

#[test]
fn what_cannot_be_is_refused_with_the_way_out() {
    let said = |text: &str| of_words(text).expect_err("refused").to_string();
    insta::assert_snapshot!(said("seventh"), @"
    error: unknown layout `seventh`
    hint: did you mean `sevenths`?
    hint: or a file, or a partition such as `3g.20gb+2×2g.10gb`
    ");
    insta::assert_snapshot!(said("8×1g.5gb"), @"
    error: `8×1g.5gb` does not fit a100-40gb
      caused by: `1g.5gb` can be created at most 7 times on a100-40gb
    hint: `7×1g.5gb` would fit
    ");
    insta::assert_snapshot!(said("99×1g.5gb"), @"
    error: invalid number of instances `99`
    hint: from 1 to 64
    ");
    insta::assert_snapshot!(said("3g.20gb@2"), @"
    error: `3g.20gb` cannot start at unit 2 of a100-40gb
    hint: it can start at 0, 4
    ");
    insta::assert_snapshot!(said("3g.20gb@0+2g.10gb@2"), @"error: `2g.10gb@2` overlaps another instance");
    insta::assert_snapshot!(said("3g.20gb@0+2g.10gb"), @"
    error: `3g.20gb@0+2g.10gb` gives places to some instances
    hint: to all of them, or to none
    ");
    insta::assert_snapshot!(said("4c.3g.20gb"), @"error: `4c.3g.20gb` is impossible: 3g.20gb has 3 compute slices");
    // Together one more than fits in 32 bits, where that would be 3.
    insta::assert_snapshot!(said("4294967295c+4c.3g.20gb@4"), @"error: `4294967295c+4c.3g.20gb@4` is impossible: 3g.20gb has 3 compute slices");
}

#[test]
fn a_card_that_cannot_be_cut_or_is_not_named_is_said() {
    let two = [a100(), gpu(1, "a100-40gb")];
    insta::assert_snapshot!(on(&RequestedLayout::Words("off".into()), &two, false).expect_err("which").to_string(), @"
    error: 2 GPUs can be partitioned, and none is named
    hint: name one, as in `--gpu 0`, or several: `--gpu 0,1`
    ");
    assert_eq!(on(&RequestedLayout::Words("off".into()), &two, true).expect("both").len(), 2);
    let none = [Gpu { card: None, has_mig: false, ..a100() }];
    let refused = on(&RequestedLayout::Words("off".into()), &none, true).expect_err("no MIG");
    insta::assert_snapshot!(refused.to_string(), @"
    error: GPU 0 (NVIDIA A100-SXM4-40GB) has no MIG, so it cannot be partitioned
    hint: GPUs that have it: `collo list gpus`
    ");
    assert_eq!(refused.class(), collo_text::ExitClass::Machine);
    // Beside one that has, it is not meant.
    assert_eq!(on(&RequestedLayout::Words("off".into()), &[none[0].clone(), two[1].clone()], false).expect("one")[0].0, 1);
}

#[test]
fn a_file_of_several_cards_gives_each_its_own() {
    let (one, two) = (Partition::off(), Partition::on(vec![slice("7g.40gb", 0, &[7])]));
    let (a, b) = (a100(), gpu(1, "a100-40gb"));
    let text = toml_text([(&a, &one), (&b, &two)]);
    insta::assert_snapshot!(text, @r#"
    [layout.gpu0]
    gpu = "a100-40gb"
    mig = false

    [layout.gpu1]
    gpu = "a100-40gb"
    cut = ["7g.40gb@0"]
    "#);
    let read: Vec<Partition> = toml_of(&text).expect("read").into_iter().map(|(_, w)| w.partition).collect();
    assert_eq!(read, [one, two]);
}

#[test]
fn a_state_without_places_is_written_and_read_by_sizes() {
    let there = |profile: &str, compute: &[u32]| Slice { start: None, ..slice(profile, 0, compute) };
    let state = Partition::on(vec![there("3g.20gb", &[1, 2]), there("2g.10gb", &[2])]);
    let gpu = a100();
    let text = toml_text([(&gpu, &state)]);
    assert!(text.contains("cut = [\"1c+2c.3g.20gb\", \"2g.10gb\"]"), "{text}");
    let read = &toml_of(&text).expect("read")[0].1;
    assert!(!read.placed && read.is_met_by(&state) && read.partition.has_places());
    // Where places are asked for and nobody tells them, sizes decide.
    assert!(of_words("1c+2c.3g.20gb@4+2g.10gb@0").expect("read").is_met_by(&state));
    assert!(!of_words("3g.20gb@4+2g.10gb@0").expect("read").is_met_by(&state));
}

#[test]
fn a_layout_file_that_is_wrong_shows_where() {
    let said = |text: &str| toml_of(text).expect_err("refused").to_string();
    insta::assert_snapshot!(said("[layout.gpu0]\ngpu = \"h100-80gb\"\ncut = []"), @r#"
    error: layout `gpu0` is for h100-80gb, but GPU 0 is a100-40gb, at l.toml:2:7
     2 | gpu = "h100-80gb"
       |       ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(said("[layout.gpu0]\ncut = [\"3g.20gb@x\"]"), @r#"
    error: invalid placed instance `3g.20gb@x` at l.toml:2:8
     2 | cut = ["3g.20gb@x"]
       |        ^^^^^^^^^^^ as in `3g.20gb@4` or `1c+1c.3g.20gb@0`
    "#);
    assert!(said("[layout.gpu0]\ncut = [\"3g.20gb@4\", \"2g.10gb\"]").contains("some instances have places, others do not"));
    insta::assert_snapshot!(said("[layout.a]\ncut = []\n[layout.b]\ncut = []"), @"
    error: l.toml has several layouts: `a`, `b`
    hint: name one, as in `l.toml:a`
    ");
    assert!(said("[layout.gpu0]\ncuts = []").contains("unknown field `cuts`"));
    assert!(said("[layout.gpu0]\n").contains("has no `cut`"));
}

const PARTED: &str = "version: v1
mig-configs:
  half:
    - devices: [0]
      mig-enabled: false
    - device-filter: [\"0x233010DE\", \"0x20B010DE\"]
      devices: [1]
      mig-enabled: true
      mig-devices:
        \"1g.5gb+me\": 1
        2g.10gb: 2
";

#[test]
fn a_configuration_of_mig_parted_is_read_with_cards_filters_and_counts() {
    let two = [a100(), gpu(1, "a100-40gb")];
    let read = parted_of(PARTED, &two).expect("read");
    let words: Vec<(u32, String)> = read.iter().map(|(index, w)| (*index, w.partition.to_string())).collect();
    assert_eq!(words, [(0, "MIG off".into()), (1, "2×2g.10gb + 1g.5gb+me".into())]);
    // One filter as a text, and one that is about another card.
    let of_all = |filter: &str| {
        format!(
            "version: v1\nmig-configs:\n  a:\n  - devices: all\n    device-filter: {filter}\n    mig-enabled: true\n    mig-devices: {{ \"3g.20gb\": 2 }}\n"
        )
    };
    assert_eq!(parted_of(&of_all("\"0x20b010de\""), &two).expect("read").len(), 2);
    insta::assert_snapshot!(parted_of(&of_all("\"0x233010DE\""), &two).expect_err("none").to_string(), @"
    error: the layout covers none of these GPUs
    hint: `devices` and `device-filter` decide; GPUs here: `collo doctor`
    ");
    // Compute instances of a slice each fill an instance before the next is made.
    let divided = of_all("\"0x20B010DE\"").replace("3g.20gb", "1c.3g.20gb");
    assert_eq!(parted_of(&divided, &two[..1]).expect("read")[0].1.partition.instances, [slice("3g.20gb", 0, &[1, 1])]);
}

#[test]
fn a_configuration_that_is_wrong_is_refused() {
    let said = |from: &str, to: &str| parted_of(&PARTED.replace(from, to), &[a100()]).expect_err("refused").to_string();
    assert_eq!(said("version: v1", "version: v2"), "error: c.yaml has version `v2`; only `v1` is supported");
    assert!(said("devices: [0]", "devices: none").contains("`devices` is `all` or a list of indices, not `none`"));
    assert!(
        said("devices: [0]", "devices: 1").ends_with("`half` of c.yaml: `devices` is `all` or a list of indices: `[1]`, not `1`")
    );
    assert!(said("devices: [0]", "devices: [a]").contains("`devices` is `all` or a list of indices, not `"));
    assert!(said("[\"0x233010DE\", \"0x20B010DE\"]", "0x20B010DE").contains("in quotes, as in `\"0x20B010DE\"`"));
    assert!(
        said("mig-enabled: false", "mig-enabled: false\n      mig-devices: {1g.5gb: 1}").contains("requires `mig-enabled: true`")
    );
    assert!(said("0x233010DE", "2330").contains("invalid PCI device id `2330`"));
    assert!(said("2g.10gb: 2", "2g.10gb: 2000000000").contains("more than 64 instances"));
    assert!(said("mig-enabled: false", "mig-enable: false").contains("at c.yaml:"));
    assert!(said("half:", "a: []\n  half:").contains("has several configurations: `a`, `half`"));
    let differ = PARTED.replace("devices: [1]", "devices: all");
    assert!(parted_of(&differ, &[a100()]).expect_err("which").to_string().contains("two entries of `half`"));
}

#[test]
fn a_config_map_is_named_with_the_part_of_it_that_is_a_configuration() {
    let inner: String = PARTED.lines().map(|line| format!("    {line}\n")).collect();
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\ndata:\n  my-config.yaml: |\n{inner}");
    insta::assert_snapshot!(parted_of(&map, &[a100()]).expect_err("refused").to_string(), @"
    error: c.yaml is a `ConfigMap` of Kubernetes, not a configuration of mig-parted
    hint: write the part under `my-config.yaml: |` into a file of its own
    ");
    assert!(
        parted_of("apiVersion: v1\nkind: Pod\n", &[a100()])
            .expect_err("refused")
            .to_string()
            .contains("is a `Pod` of Kubernetes")
    );
}

#[test]
fn a_file_may_name_which_of_its_layouts() {
    assert_eq!(file_and_name("a/b.yaml:half"), Some(("a/b.yaml".into(), Some("half".into()))));
    assert_eq!(file_and_name("l.toml"), Some(("l.toml".into(), None)));
    assert_eq!(file_and_name("7×1g.5gb"), None);
    let text = "[layout.a]\ncut = []\n[layout.b]\nmig = false";
    let source = Source::file("l.toml", text);
    let file = toml::LayoutFile::read(&source, Some("b")).expect("it is there");
    assert_eq!(on(&RequestedLayout::Collo(file), &[a100()], true).expect("read")[0].1.partition, Partition::off());
    insta::assert_snapshot!(toml::LayoutFile::read(&source, Some("c")).expect_err("none").to_string(), @"
    error: no layout `c` in l.toml
    hint: it has `a`, `b`
    ");
}
