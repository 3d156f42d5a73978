//! Tests the solver against an independent search: all sets of instances that can exist on a GPU, grown one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use proptest::prelude::*;

use super::tests::{card, profiles};
use super::*;

/// Instances at their places.
type Set = BTreeSet<(String, u32)>;

/// Whether these can coexist, by the rules of the MIG user guide, without bit sums on a grid.
fn can_exist(card: &GpuModel, set: &Set) -> bool {
    let all: Vec<(&Arc<Profile>, u32)> = set.iter().map(|(name, start)| (card.profile(name).expect("known"), *start)).collect();
    let mut units: Vec<u32> = Vec::new();
    for (profile, start) in &all {
        let places = profile.places.as_ref().expect("placed");
        if !places.starts.contains(start) {
            return false;
        }
        units.extend(*start..*start + places.units);
    }
    let count = units.len();
    units.sort_unstable();
    units.dedup();
    let too_many = |p: &Arc<Profile>| {
        p.most.is_some_and(|most| all.iter().filter(|(other, _)| other.name == p.name).count() > most as usize)
    };
    let engine = |of: fn(&Engines) -> Option<u32>| {
        let whole = card.profiles.iter().find(|p| Some(p.slices) == card.compute_slices).and_then(|p| of(&p.engines));
        whole.is_none_or(|there| all.iter().filter_map(|(p, _)| of(&p.engines)).sum::<u32>() <= there)
    };
    units.len() == count
        && units.iter().all(|unit| *unit < card.memory_units.expect("a grid"))
        && all.iter().map(|(p, _)| p.slices).sum::<u32>() <= card.compute_slices.unwrap_or(0)
        && !all.iter().any(|(p, _)| too_many(p))
        && [engine(|e| e.copy), engine(|e| e.decode), engine(|e| e.encode), engine(|e| e.jpeg), engine(|e| e.ofa)] == [true; 5]
}

/// Every possible set. Every subset of a possible set is possible, so growing finds all.
fn all_sets(card: &GpuModel) -> BTreeSet<Set> {
    let mut found = BTreeSet::from([Set::new()]);
    let mut new = found.clone();
    while !new.is_empty() {
        let mut grown = BTreeSet::new();
        for set in &new {
            for profile in &card.profiles {
                for start in profile.places.iter().flat_map(|p| &p.starts) {
                    let mut larger = set.clone();
                    if larger.insert((profile.name.clone(), *start)) && can_exist(card, &larger) {
                        grown.insert(larger);
                    }
                }
            }
        }
        found.extend(grown.iter().cloned());
        new = grown;
    }
    found
}

/// The same for every GPU model with a grid, searched once for all tests.
fn searched() -> &'static BTreeMap<String, Vec<Set>> {
    static FOUND: OnceLock<BTreeMap<String, Vec<Set>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        // Cards of one shape have the same sets but for the names.
        let shapes = ["a100-40gb", "a30-24gb", "rtx-pro-6000", "h100-nvl-94gb"];
        shapes.iter().map(|name| (name.to_string(), all_sets(&card(name)).into_iter().collect())).collect()
    })
}

fn names(set: &Set) -> Vec<String> {
    let mut names: Vec<String> = set.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

fn set_of(instances: &[Instance]) -> Set {
    instances.iter().map(|i| (i.profile.name.clone(), i.start)).collect()
}

/// The GPU model with only the plain profiles of least memory, the classes 7g, 4g, 3g, 2g, 1g.
fn classes(name: &str) -> GpuModel {
    let mut model = card(name);
    let plain =
        ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1g.6gb", "2g.12gb", "4g.24gb", "1g.24gb", "2g.48gb", "4g.96gb"];
    model.profiles.retain(|p| plain.contains(&p.name.as_str()));
    model
}

/// All combinations of profiles that can exist, with the place of each, the largest last.
fn combinations(card: &GpuModel) -> BTreeMap<Vec<String>, Vec<Instance>> {
    let mut found = BTreeMap::new();
    let mut counts = vec![0u32; card.profiles.len()];
    // An odometer over the counts: at most as many of each as there are slices.
    loop {
        let wanted: Vec<Arc<Profile>> =
            card.profiles.iter().zip(&counts).flat_map(|(p, n)| vec![Arc::clone(p); *n as usize]).collect();
        if let Ok(placed) = card.place(&wanted, &[]) {
            found.insert(names(&set_of(&placed)), placed);
        }
        let Some(at) = counts.iter().position(|n| *n < card.compute_slices.unwrap_or(0)) else { break };
        counts[..at].fill(0);
        counts[at] += 1;
    }
    found.remove(&Vec::new());
    found
}

fn maximal(combinations: &BTreeMap<Vec<String>, Vec<Instance>>) -> Vec<String> {
    let fits_in = |small: &Vec<String>, large: &Vec<String>| {
        small.len() < large.len()
            && small.iter().all(|name| small.iter().filter(|n| *n == name).count() <= large.iter().filter(|n| *n == name).count())
    };
    let all = combinations.iter().filter(|(names, _)| !combinations.keys().any(|other| fits_in(names, other)));
    let mut shown: Vec<String> =
        all.map(|(_, placed)| placed.iter().map(Instance::to_string).collect::<Vec<_>>().join(" ")).collect();
    shown.sort();
    shown
}

#[test]
fn an_a100_has_37_combinations_of_its_five_sizes_and_12_of_them_are_full() {
    let found = combinations(&classes("a100-40gb"));
    assert_eq!(found.len(), 37);
    insta::assert_snapshot!(maximal(&found).join("\n"), @"
    1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
    1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 3g.20gb@4
    2g.10gb@0 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6
    2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4
    2g.10gb@0 2g.10gb@2 1g.5gb@4 1g.5gb@5 1g.5gb@6
    2g.10gb@0 2g.10gb@2 2g.10gb@4 1g.5gb@6
    2g.10gb@0 2g.10gb@2 3g.20gb@4
    3g.20gb@0 3g.20gb@4
    4g.20gb@0 1g.5gb@4 1g.5gb@5 1g.5gb@6
    4g.20gb@0 2g.10gb@4 1g.5gb@6
    4g.20gb@0 3g.20gb@4
    7g.40gb@0
    ");
}

#[test]
fn an_a30_and_an_rtx_pro_6000_have_the_same_combinations_on_grids_of_4_and_12() {
    let (a30, rtx) = (combinations(&classes("a30-24gb")), combinations(&classes("rtx-pro-6000")));
    insta::assert_snapshot!(maximal(&a30).join("\n"), @"
    1g.6gb@0 1g.6gb@1 1g.6gb@2 1g.6gb@3
    2g.12gb@0 1g.6gb@2 1g.6gb@3
    2g.12gb@0 2g.12gb@2
    4g.24gb@0
    ");
    insta::assert_snapshot!(maximal(&rtx).join("\n"), @"
    1g.24gb@0 1g.24gb@3 1g.24gb@6 1g.24gb@9
    2g.48gb@0 1g.24gb@6 1g.24gb@9
    2g.48gb@0 2g.48gb@6
    4g.96gb@0
    ");
    assert_eq!((a30.len(), rtx.len()), (9, 9));
}

#[test]
fn every_combination_that_can_exist_is_found_and_no_other() {
    for name in ["a100-40gb", "a30-24gb", "rtx-pro-6000"] {
        let card = classes(name);
        let there: BTreeSet<Vec<String>> = all_sets(&card).iter().map(names).filter(|names| !names.is_empty()).collect();
        let found: BTreeSet<Vec<String>> = combinations(&card).into_keys().collect();
        assert_eq!(found, there, "{name}");
    }
}

#[test]
fn the_double_memory_1g_is_placed_as_the_facts_have_it() {
    let card = card("a100-40gb");
    for fits in [
        "1g.10gb 1g.10gb 1g.10gb 1g.10gb",
        "2g.10gb 1g.10gb 1g.10gb 1g.10gb",
        "3g.20gb 1g.10gb 1g.10gb",
        "4g.20gb 1g.10gb 1g.10gb",
        "3g.20gb 2g.10gb 1g.10gb",
    ] {
        assert!(card.place(&profiles(&card, fits), &[]).is_ok(), "{fits}");
    }
    for does_not in
        ["4g.20gb 4g.20gb", "7g.40gb 1g.5gb", "1g.5gb+me 1g.5gb+me", "4g.20gb 2g.10gb 2g.10gb", "3g.20gb 3g.20gb 1g.5gb"]
    {
        assert!(card.place(&profiles(&card, does_not), &[]).is_err(), "{does_not}");
    }
}

/// A GPU model, a possible set on it, of which a part exists already, and a few profiles.
fn any_case() -> impl Strategy<Value = (&'static str, Set, Vec<String>)> {
    let names: Vec<&'static str> = searched().keys().map(String::as_str).collect();
    prop::sample::select(names).prop_flat_map(|name| {
        let there = prop::sample::select(searched()[name].clone());
        let few = there.clone().prop_flat_map(|set| {
            let all: Vec<_> = set.into_iter().collect();
            let most = all.len().min(3);
            prop::sample::subsequence(all, 0..=most).prop_map(|some| some.into_iter().collect::<Set>())
        });
        let every: Vec<String> = card(name).profiles.iter().map(|p| p.name.clone()).collect();
        // Half of the time what is left of a set that can exist, so that many fit.
        let wanted =
            prop_oneof![prop::collection::vec(prop::sample::select(every), 0..6), there.prop_map(|set| self::names(&set))];
        (Just(name), few, wanted)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn beside_what_is_there_exactly_that_is_placed_for_which_there_is_room((name, there, wanted) in any_case()) {
        let card = card(name);
        let beside: Vec<Instance> =
            there.iter().map(|(name, start)| Instance { profile: Arc::clone(card.profile(name).expect("known")), start: *start }).collect();
        let mut wanted_names = wanted.clone();
        wanted_names.sort();
        let exists = searched()[name].iter().any(|set| {
            there.is_subset(set) && names(&set.difference(&there).cloned().collect()) == wanted_names
        });
        match card.place(&profiles(&card, &wanted.join(" ")), &beside) {
            Ok(placed) => {
                prop_assert!(exists, "placed {placed:?}");
                let new = set_of(&placed);
                prop_assert_eq!(names(&new), wanted_names);
                prop_assert!(new.is_disjoint(&there) && can_exist(&card, &new.union(&there).cloned().collect()), "{placed:?}");
                prop_assert!(placed.is_sorted_by_key(|i| i.start));
            }
            Err(mistake) => {
                prop_assert!(!exists, "{mistake}");
                let text = mistake.to_string();
                prop_assert!(text.contains("caused by: ") && !text.contains("caused by: \n"), "{text}");
            }
        }
    }

    #[test]
    fn the_order_of_the_wish_changes_nothing((name, _, wanted) in any_case()) {
        let card = card(name);
        let forth = profiles(&card, &wanted.join(" "));
        let back: Vec<_> = forth.iter().rev().cloned().collect();
        prop_assert_eq!(card.place(&forth, &[]).map_err(|m| m.to_string()), card.place(&back, &[]).map_err(|m| m.to_string()));
    }

    #[test]
    fn what_a_hint_says_would_fit_does_fit((name, there, wanted) in any_case()) {
        let card = card(name);
        let beside: Vec<Instance> =
            there.iter().map(|(name, start)| Instance { profile: Arc::clone(card.profile(name).expect("known")), start: *start }).collect();
        let Err(mistake) = card.place(&profiles(&card, &wanted.join(" ")), &beside) else { return Ok(()) };
        let text = mistake.to_string();
        let Some(hint) = text.lines().find_map(|l| l.strip_prefix("hint: ")?.strip_suffix(" would fit")) else { return Ok(()) };
        for combination in hint.split('`').skip(1).step_by(2) {
            let each = combination.split(" + ").flat_map(|part| {
                let (count, name) = part.split_once('×').unwrap_or(("1", part));
                vec![name.to_string(); count.parse().expect("a count")]
            });
            let each: Vec<String> = each.collect();
            prop_assert!(card.place(&profiles(&card, &each.join(" ")), &beside).is_ok(), "{text}");
        }
    }
}
