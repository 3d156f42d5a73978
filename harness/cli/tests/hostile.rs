//! Everything that members, files, machines and people can do to collo, and what must hold whatever they do.
//!
//! A case is a row in `hostile/cases/`, a file for each subject; a misbehaving member is a few lines of Python in `hostile/members/`.
//! `just torture hostile` tries all of them, `just torture hostile NAME` one.
//!
//! To add another user's attack on a GPU: `gpu_faults/strangers.rs`.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on ends here")]

mod case;
mod cases;
pub mod scene;
pub mod signals_to;
mod table;

#[test]
fn a_sample_of_attacks_does_no_harm() {
    table::all(cases::all().into_iter().filter(|c| c.in_sample).collect());
}

#[test]
#[ignore = "minutes; `just torture hostile` runs it"]
fn no_attack_does_harm() {
    // Names, or beginnings of names or of kinds.
    let asked = std::env::var("COLLO_HOSTILE").unwrap_or_default();
    let asked: Vec<&str> = asked.split_whitespace().collect();
    let is_asked = |case: &case::Case| asked.is_empty() || asked.iter().any(|a| case.name == *a || case.kind.starts_with(a));
    table::all(cases::all().into_iter().filter(is_asked).collect());
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<String> = cases::all().into_iter().map(|c| c.name).collect();
    let all = names.len();
    println!("{all} cases");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')), "a shell takes each as it is");
}
