//! The rules of the house, each on this checkout. What is above its general ceiling today stands in `ceilings.toml`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use collo_house::ceilings::Ceilings;
use collo_house::checkout::{Checkout, Texts};
use collo_house::{features, named, rules, words};

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::here().expect("the checkout can be read"));
static CHECKOUT: LazyLock<Checkout> = LazyLock::new(|| Checkout::of(&TEXTS));
static CEILINGS: LazyLock<Ceilings> = LazyLock::new(|| Ceilings::read(include_str!("../ceilings.toml")).expect("is valid"));

#[track_caller]
fn keeps(section: &str) {
    let rule = rules::rule(section).expect("there is such a rule");
    none(&rules::problems(rule, &CHECKOUT, &CEILINGS));
}

#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n\n{}\n", problems.join("\n\n"));
}

#[test]
fn packages_are_below_their_ceilings() {
    keeps("packages");
}

#[test]
fn rooms_are_below_their_ceilings() {
    keeps("rooms");
}

#[test]
fn files_are_below_their_ceilings() {
    keeps("files");
}

#[test]
fn no_rooms_import_each_other_in_a_circle() {
    keeps("circles");
}

#[test]
fn names_of_types_are_unique_in_their_package() {
    keeps("types");
}

#[test]
fn quantities_and_models_have_one_list() {
    keeps("lists");
}

#[test]
fn files_are_read_within_limits() {
    keeps("reads");
}

#[test]
fn words_that_the_style_forbids_become_fewer() {
    keeps("words");
}

#[test]
fn files_that_the_architecture_names_exist() {
    let paths = named::paths(&TEXTS.root).expect("the checkout can be read");
    none(&named::missing(&TEXTS.documents["docs/architecture.md"], "docs", &paths));
}

#[test]
fn every_feature_has_a_test_that_runs() {
    let features = features::read(include_str!("../features.toml")).expect("is valid");
    none(&features::problems(&features, &TEXTS.tests));
}

#[test]
fn every_row_of_the_styles_words_is_counted_or_left_out_on_purpose() {
    let rows = TEXTS.documents["docs/style.md"].lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells.len() == 4 && cells[2] != "not" && !cells[2].starts_with("---")).then(|| cells[2].to_string())
    });
    let known = words::TABLE.iter().map(|(not, _)| *not).chain([words::OF_SENTENCES]).map(str::to_string);
    assert_eq!(rows.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
}

#[test]
fn every_section_of_the_ceilings_belongs_to_a_rule() {
    let strange: Vec<&str> = CEILINGS.sections().filter(|section| rules::rule(section).is_none()).collect();
    assert!(strange.is_empty(), "no rule of {strange:?}");
}
