use std::path::Path;
use std::sync::OnceLock;

use collo_text::Source;

use super::*;

/// The GPU models of the checkout.
pub fn cards() -> &'static Cards {
    static CARDS: OnceLock<Cards> = OnceLock::new();
    CARDS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mig-profiles");
        Cards::load(&folder).unwrap_or_else(|mistake| panic!("{mistake}"))
    })
}

pub fn card(name: &str) -> GpuModel {
    cards().find(name).unwrap_or_else(|mistakes| panic!("{mistakes}")).clone()
}

/// `"3g.20gb 1g.5gb"`
pub fn profiles(card: &GpuModel, names: &str) -> Vec<Arc<Profile>> {
    names.split_whitespace().map(|name| Arc::clone(card.profile(name).unwrap_or_else(|m| panic!("{m}")))).collect()
}

fn why(name: &str, wanted: &str, beside: &str) -> String {
    let card = card(name);
    let beside: Vec<Instance> = beside
        .split_whitespace()
        .map(|text| {
            let (profile, start) = text.split_once('@').expect("a place");
            Instance { profile: Arc::clone(card.profile(profile).expect("known")), start: start.parse().expect("a number") }
        })
        .collect();
    card.place(&profiles(&card, wanted), &beside).expect_err("it does not fit").to_string()
}

fn equal(name: &str) -> Vec<Option<String>> {
    let card = card(name);
    (0..=8).map(|members| card.equal(members).map(|p| p.name.clone())).collect()
}

const SMALL: &str = r#"
compute_slices = 2
memory_units = 2
profiles = [
  { name = "1g.1gb", starts = [0, 1], units = 1 },
  { name = "2g.2gb", starts = [0], units = 2 },
]
"#;

fn wrong(text: &str) -> String {
    read::parse("mine", &Source::file("mig-profiles/mine.toml", text)).expect_err("it is wrong").to_string()
}

#[test]
fn mig_alone_gives_each_member_the_largest_equal_instance() {
    let some = |names: [&str; 7]| [None].into_iter().chain(names.map(|n| Some(n.to_string()))).chain([None]).collect::<Vec<_>>();
    let (one, two, three, seven) = ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb");
    assert_eq!(equal("a100-40gb"), some([seven, three, two, one, one, one, one]));
    assert_eq!(equal("h100-80gb")[2..5], [Some("3g.40gb".into()), Some("2g.20gb".into()), Some("1g.10gb".into())]);
    for (name, one, two, four) in
        [("a30-24gb", "1g.6gb", "2g.12gb", "4g.24gb"), ("rtx-pro-6000", "1g.24gb", "2g.48gb", "4g.96gb")]
    {
        let names = [four, two, one, one].map(|n| Some(n.to_string()));
        assert_eq!(equal(name)[1..5], names, "{name}");
        assert_eq!(equal(name)[5..], [const { None }; 4], "{name}");
    }
    // Nothing can be said where placements are unknown.
    assert_eq!(equal("gh200"), [const { None }; 9]);
}

#[test]
fn a_profile_that_there_is_too_often_is_named_with_what_would_fit() {
    insta::assert_snapshot!(why("a100-40gb", "3g.20gb 3g.20gb 3g.20gb", ""), @"
    error: `3×3g.20gb` does not fit a100-40gb
      caused by: `3g.20gb` can be created at most 2 times on a100-40gb
    hint: `3×2g.10gb` or `2×3g.20gb` would fit
    ");
    insta::assert_snapshot!(why("a100-40gb", "4g.20gb 4g.20gb", ""), @"
    error: `2×4g.20gb` does not fit a100-40gb
      caused by: `4g.20gb` can be created at most once on a100-40gb
    hint: `2×3g.20gb` or `4g.20gb + 3g.20gb` would fit
    ");
    insta::assert_snapshot!(why("a100-40gb", "1g.5gb+me 1g.5gb+me", ""), @"
    error: `2×1g.5gb+me` does not fit a100-40gb
      caused by: `1g.5gb+me` can be created at most once on a100-40gb
    hint: `1g.5gb + 1g.5gb+me` would fit
    ");
}

#[test]
fn the_eighth_memory_unit_is_no_place_for_an_instance() {
    insta::assert_snapshot!(why("a100-40gb", "1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb 1g.5gb", ""), @"
    error: `8×1g.5gb` does not fit a100-40gb
      caused by: `1g.5gb` can be created at most 7 times on a100-40gb
    hint: `7×1g.5gb` would fit
    ");
    insta::assert_snapshot!(why("a100-40gb", "1g.5gb", "3g.20gb@0 1g.5gb@4 1g.5gb@5 1g.5gb@6"), @"
    error: `1g.5gb` does not fit a100-40gb next to `3g.20gb@0` and `1g.5gb@4` and `1g.5gb@5` and `1g.5gb@6`
      caused by: no place for `1g.5gb`: it needs a free memory unit from 0, 1, 2, 3, 4, 5 or 6 on
    hint: a100-40gb has room for it if nothing else is there
    ");
}

#[test]
fn a_3g_at_the_front_shuts_out_what_it_would_leave_room_for_at_the_back() {
    let a100 = card("a100-40gb");
    let placed = a100.place(&profiles(&a100, "3g.20gb 2g.10gb 2g.10gb"), &[]).expect("there is room");
    assert_eq!(placed.iter().map(Instance::to_string).collect::<Vec<_>>(), ["2g.10gb@0", "2g.10gb@2", "3g.20gb@4"]);
    insta::assert_snapshot!(why("a100-40gb", "2g.10gb 2g.10gb", "3g.20gb@0"), @"
    error: `2×2g.10gb` does not fit a100-40gb next to `3g.20gb@0`
      caused by: no place for `2g.10gb`: it needs 2 free memory units from 0, 2 or 4 on
    hint: a100-40gb has room for it if nothing else is there
    ");
}

#[test]
fn three_slices_take_four_units_so_two_such_leave_no_room_for_a_seventh_slice() {
    insta::assert_snapshot!(why("a100-40gb", "3g.20gb 1g.5gb 3g.20gb", ""), @"
    error: `2×3g.20gb + 1g.5gb` does not fit a100-40gb
      caused by: together they need 9 memory units, a100-40gb has 8
    hint: `2×3g.20gb` would fit
    ");
}

#[test]
fn a_mix_of_the_study_that_an_a100_cannot_have_says_so() {
    insta::assert_snapshot!(why("a100-40gb", "2g.10gb 2g.10gb 4g.20gb", ""), @"
    error: `4g.20gb + 2×2g.10gb` does not fit a100-40gb
      caused by: together they need 8 compute slices, a100-40gb has 7
    hint: `4g.20gb + 2g.10gb + 1g.10gb` would fit
    ");
}

#[test]
fn the_media_engines_of_a_card_are_given_once() {
    insta::assert_snapshot!(why("a30-24gb", "2g.12gb+me 1g.6gb+me", ""), @"
    error: `2g.12gb+me + 1g.6gb+me` does not fit a30-24gb
      caused by: together they need 2 JPEG engines, a30-24gb has 1
    hint: `2g.12gb+me + 1g.6gb` would fit
    ");
}

#[test]
fn what_is_there_already_may_be_what_is_in_the_way() {
    insta::assert_snapshot!(why("a100-40gb", "4g.20gb", "3g.20gb@0"), @"
    error: `4g.20gb` does not fit a100-40gb next to `3g.20gb@0`
      caused by: no place for `4g.20gb`: it needs 4 free memory units from 0 on
    hint: a100-40gb has room for it if nothing else is there
    ");
    insta::assert_snapshot!(why("a100-40gb", "3g.20gb 2g.10gb", "1g.5gb@0 1g.5gb@5"), @"
    error: `3g.20gb + 2g.10gb` does not fit a100-40gb next to `1g.5gb@0` and `1g.5gb@5`
      caused by: no place for `3g.20gb`: it needs 4 free memory units from 0 or 4 on
    hint: a100-40gb has room for it if nothing else is there
    ");
}

#[test]
fn a_card_whose_placements_nobody_wrote_down_says_where_they_go() {
    insta::assert_snapshot!(why("gb200", "1g.23gb", ""), @"
    error: whether `1g.23gb` can be placed on gb200 is not known
      caused by: mig-profiles/gb200.toml has no places of instances, which the driver reports once MIG is on
    hint: `sudo collo mig apply on`, then plan again; or add `memory_units`, `starts` and `units`, as `nvidia-smi mig -lgipp` prints them, to mig-profiles/gb200.toml
    ");
}

#[test]
fn names_that_are_nearly_right_are_recognised() {
    let a100 = card("a100-40gb");
    insta::assert_snapshot!(cards().find("a100-40").expect_err("unknown"), @"
    error: unknown GPU `a100-40`
    hint: did you mean `a100-40gb`? All: `collo list gpus`
    ");
    insta::assert_snapshot!(cards().find("voodoo").expect_err("unknown"), @"
    error: unknown GPU `voodoo`
    hint: all: `collo list gpus`
    ");
    insta::assert_snapshot!(a100.profile("3g.40gb").expect_err("unknown"), @"
    error: unknown profile `3g.40gb`
    hint: on a100-40gb it is `3g.20gb`
    ");
    // By spelling `1g.20gb` would be nearer.
    assert!(card("h100-80gb").profile("4g.20gb").expect_err("unknown").to_string().contains("on h100-80gb it is `4g.40gb`"));
    assert!(card("h100-80gb").profile("1g.5gb").expect_err("unknown").to_string().contains("it is `1g.10gb`"));
    insta::assert_snapshot!(a100.layout("balance").expect_err("unknown"), @"
    error: unknown layout `balance`
    hint: did you mean `balanced`?
    ");
    insta::assert_snapshot!(a100.layout("everything").expect_err("unknown"), @"
    error: unknown layout `everything`
    hint: a100-40gb has `balanced`, `halves`, `thirds`, `sevenths`, `study-mixed`
    ");
    assert_eq!(a100.layout("halves").expect("known").instances.len(), 2);
}

#[test]
fn a_right_file_gives_its_profiles_and_places_its_layouts() {
    let text = format!("{SMALL}[layouts]\nboth = [\"1g.1gb\", \"1g.1gb\"]\n");
    let card = read::parse("mine", &Source::file("f", text)).unwrap_or_else(|m| panic!("{m}"));
    assert_eq!(card.layouts[0].instances.iter().map(Instance::to_string).collect::<Vec<_>>(), ["1g.1gb@0", "1g.1gb@1"]);
    assert_eq!((card.memory_gb, card.profiles[0].id, card.profiles[0].engines.ofa), (None, None, None));
}

#[test]
fn layouts_that_cannot_be_are_shown_where_they_stand() {
    let text = format!("{SMALL}[layouts]\nfull = [\"2g.2gb\", \"1g.1gb\"]\ntypo = [\"1g.1g\"]\nNone = []\n");
    insta::assert_snapshot!(wrong(&text), @r#"
    error: `2g.2gb + 1g.1gb` does not fit mine at mig-profiles/mine.toml:9:8
     9 | full = ["2g.2gb", "1g.1gb"]
       |        ^^^^^^^^^^^^^^^^^^^^
      caused by: together they need 3 compute slices, mine has 2
    hint: `2g.2gb` would fit
    error: unknown profile `1g.1g` at mig-profiles/mine.toml:10:9
    10 | typo = ["1g.1g"]
       |         ^^^^^^^ did you mean `1g.1gb`?
    error: invalid layout name `None` at mig-profiles/mine.toml:11:1
    11 | None = []
       | ^^^^ a letter, then letters, digits and `-`, at most 40
    error: layout `None` has no instance at mig-profiles/mine.toml:11:8
    11 | None = []
       |        ^^
    "#);
}

#[test]
fn profiles_must_lie_on_the_grid_and_say_all_of_their_places() {
    let text = r#"
compute_slices = 2
memory_units = 2
profiles = [
  { name = "1g.1gb", starts = [0, 2], units = 1 },
  { name = "1g.1gb", starts = [0] },
  { name = "big" },
  { name = "3g.1gb", units = 1 },
  { id = 3 },
]
"#;
    insta::assert_snapshot!(wrong(text), @r#"
    error: `1g.1gb` from unit 2 occupies 1, the grid has 2, at mig-profiles/mine.toml:5:35
     5 |   { name = "1g.1gb", starts = [0, 2], units = 1 },
       |                                   ^
    error: duplicate profile `1g.1gb` at mig-profiles/mine.toml:6:12
     6 |   { name = "1g.1gb", starts = [0] },
       |            ^^^^^^^^ leave one out
    error: `starts` is useless without `units` at mig-profiles/mine.toml:6:22
     6 |   { name = "1g.1gb", starts = [0] },
       |                      ^^^^^^
    error: invalid profile name `big` at mig-profiles/mine.toml:7:12
     7 |   { name = "big" },
       |            ^^^^^ as in `3g.20gb` or `1g.5gb+me`
    error: `3g.1gb` has 3 compute slices, the GPU has 2, at mig-profiles/mine.toml:8:12
     8 |   { name = "3g.1gb", units = 1 },
       |            ^^^^^^^^
    error: `units` is useless without `starts` at mig-profiles/mine.toml:8:22
     8 |   { name = "3g.1gb", units = 1 },
       |                      ^^^^^
    error: `name` is missing in this profile at mig-profiles/mine.toml:9:3
     9 |   { id = 3 },
       |   ^ as in `name = "3g.20gb"`
    "#);
    insta::assert_snapshot!(wrong("compute_slices = 1\nprofiles = [{ name = \"1g.1gb\", starts = [0], units = 1 }]"), @r#"
    error: `starts` are places on a grid at mig-profiles/mine.toml:2:32
     2 | profiles = [{ name = "1g.1gb", starts = [0], units = 1 }]
       |                                ^^^^^^ add its length: `memory_units = 8`
    "#);
    insta::assert_snapshot!(wrong("compute_slices = 7\nmemory_units = 8"), @"
    error: `profiles` is missing at mig-profiles/mine.toml:1:1
     1 | compute_slices = 7
       | ^^^^^^^^^^^^^^
    hint: a GPU without MIG has none of the two, no `memory_units` and no layout; all keys: `collo schema gpu`
    ");
}

#[test]
fn peaks_are_those_of_a_project_s_file_before_those_that_come_with_collo() {
    let file = |text: &str| Cards::of([("mine".to_string(), Source::file("mig-profiles/mine.toml", text))]);
    let own = file("product_names = [\"NVIDIA L4\"]\n[[peaks]]\nmemory_gb_per_s = 299\nl2_mib = 48\nfp32_tflops = 30.3\n");
    let bandwidth = |cards: &Cards, product: &str| cards.peaks_of(product).map(|peaks| peaks.memory_gb_per_s);
    assert_eq!((bandwidth(&own, "NVIDIA L4"), bandwidth(&own, "NVIDIA L40S")), (Some(299.0), Some(864.0)));
    let without = file("product_names = [\"NVIDIA L4\"]\n");
    assert_eq!((bandwidth(&without, "NVIDIA L4"), bandwidth(&without, "Voodoo 2")), (Some(300.0), None));
}

#[test]
fn peaks_lack_nothing_that_predictions_need_and_are_of_boards_of_their_file_once() {
    let text = r#"
product_names = ["A", "B"]
[[peaks]]
product_names = ["A"]
fp32_tflops = 1
[[peaks]]
memory_gb_per_s = 1
l2_mib = 1
fp32_tflops = 1
[[peaks]]
product_names = ["C"]
memory_gb_per_s = 1
l2_mib = 1
fp32_tflops = 1
"#;
    insta::assert_snapshot!(wrong(text), @r#"
    error: `memory_gb_per_s` is missing in these peaks at mig-profiles/mine.toml:3:1
     3 | [[peaks]]
       | ^
    error: `l2_mib` is missing in these peaks at mig-profiles/mine.toml:3:1
     3 | [[peaks]]
       | ^
    error: `A` has peaks twice at mig-profiles/mine.toml:6:1
     6 | [[peaks]]
       | ^ `product_names` of each names its boards
    error: `C` is none of the file's `product_names` at mig-profiles/mine.toml:11:1
    11 | product_names = ["C"]
       | ^^^^^^^^^^^^^
    "#);
    let text = "[[peaks]]\nmemory_gb_per_s = 0\nl2_mib = 1\nfp32_tflops = 1\nhalf_tflop = 2\n";
    insta::assert_snapshot!(wrong(text), @r"
    error: memory_gb_per_s 0 is not between 0.1 and 10000000 at mig-profiles/mine.toml:2:19
     2 | memory_gb_per_s = 0
       |                   ^
    error: unknown key `half_tflop` at mig-profiles/mine.toml:5:1
     5 | half_tflop = 2
       | ^^^^^^^^^^ did you mean `half_tflops`?
    ");
    let right = "product_names = [\"A\", \"B\"]\n[[peaks]]\nmemory_gb_per_s = 1\nl2_mib = 1\nfp32_tflops = 1\n";
    let card = read::parse("mine", &Source::file("f", right)).unwrap_or_else(|m| panic!("{m}"));
    assert_eq!((card.peaks.len(), &card.peaks[0].product_names, card.peaks[0].half_tflops), (1, &card.product_names, None));
}

#[test]
fn a_broken_file_is_kept_with_its_mistakes_and_hides_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("good.toml", SMALL), ("bad.toml", "colour = 3"), ("notes.md", "#")] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let cards = Cards::load(folder.path()).expect("readable");
    assert_eq!(cards.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(cards.broken().keys().collect::<Vec<_>>(), ["bad"]);
    assert!(cards.find("bad").expect_err("broken").to_string().starts_with("error: unknown key `colour` at "));
}

#[test]
fn a_project_without_the_folder_says_how_it_gets_one() {
    let mistake = Cards::load(Path::new("there/mig-profiles")).expect_err("not there");
    insta::assert_snapshot!(mistake, @"
    error: no `mig-profiles/` in there, so no GPU model is known
    hint: `collo init there` writes it, overwriting nothing
    ");
}

#[test]
fn a_project_s_folder_says_what_is_built_in_where_nobody_has_changed_it() {
    let read: Vec<GpuModel> = cards().iter().cloned().collect();
    let built_in = crate::known();
    assert_eq!(read, built_in);
}

#[test]
fn every_card_has_a_product_name_and_is_known_by_it() {
    for card in cards().iter() {
        assert!(!card.product_names.is_empty(), "{}", card.name);
        let bytes = card.memory_gb.map(|gb| u64::from(gb) << 30);
        for product in &card.product_names {
            assert_eq!(cards().of_device(product, 0, bytes).map(|c| &c.name), Some(&card.name));
        }
    }
}

#[test]
fn a_card_that_is_known_by_its_id_alone_has_the_memory_that_it_is_sold_with() {
    let of = |product: &str, id: u32, gib: Option<u64>| {
        cards().of_device(product, id, gib.map(|gib| gib << 30)).map(|c| c.name.as_str())
    };
    assert_eq!(of("GH100", 0x2330, Some(79)), Some("h100-80gb"));
    assert_eq!(of("GH100", 0x2331, Some(79)), Some("h100-pcie-80gb"));
    // A GB200 whose id is that of an H100, as in NVIDIA's mock.
    assert_eq!(of("NVIDIA GB200", 0x2330, Some(192)), Some("gb200"));
    assert_eq!(of("some other card", 0x2330, Some(192)), None);
    // In MIG mode a normal user is not told the memory.
    assert_eq!(of("some other card", 0x2330, None), Some("h100-80gb"));
    assert_eq!(of("NVIDIA H100 80GB HBM3", 0x2330, None), Some("h100-80gb"));
}
