//! The rules that have ceilings: what each counts, and how it is compared. In: a checkout. Out: the counts of each rule.

use std::collections::BTreeMap;

use crate::ceilings::{Ceilings, Rows};
use crate::checkout::Checkout;
use crate::ratchet::{Counts, Ratchet};
use crate::{circles, lines, lists, reads, types, words};

#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub ratchet: Ratchet,
    /// What stands above the section in `ceilings.toml`.
    pub about: &'static str,
    /// With the rows of its section, for what is known already.
    pub counts: fn(&Checkout, &Rows) -> Result<Counts, String>,
}

/// What stands at the top of `ceilings.toml`.
pub const HEAD: &str = "What is above the general ceilings of the house today. Rows may only fall: `cargo run -p collo-house -- lower` \
lowers them.\nRaising one by hand needs a sentence in the commit.";

/// In the order of the file.
pub const RULES: [Rule; 8] = [
    Rule {
        ratchet: Ratchet {
            section: "packages",
            unit: "lines of production code",
            general: 12_000,
            step: 50,
            slack: 150,
            way_out: "delete lines, or divide the package",
            moved: same,
        },
        about: "Production lines of a package; the general ceiling is 12,000.",
        counts: |checkout, _| Ok(lines::counts(&lines::lines(&checkout.packages).packages)),
    },
    Rule {
        ratchet: Ratchet {
            section: "rooms",
            unit: "lines of production code",
            general: 3_000,
            step: 50,
            slack: 150,
            way_out: "delete lines, or divide the room",
            moved: below_package,
        },
        about: "Production lines of a room, which is a folder or a file at the top of a package's `src`; the general ceiling is 3,000.",
        counts: |checkout, _| Ok(lines::counts(&lines::lines(&checkout.packages).rooms)),
    },
    Rule {
        ratchet: Ratchet {
            section: "files",
            unit: "lines of production code",
            general: 500,
            step: 10,
            slack: 30,
            way_out: "look for the noun in it, and give that a file",
            moved: below_package,
        },
        about: "Production lines of a file; the general ceiling is 500, and past 400 it is time to look.",
        counts: |checkout, _| Ok(lines::counts(&lines::lines(&checkout.packages).files)),
    },
    Rule {
        ratchet: Ratchet {
            section: "circles",
            unit: "rooms that import each other in a circle",
            general: 0,
            step: 1,
            slack: 0,
            way_out: "cut one of these arrows, by moving what both need below both",
            moved: circles::is_part,
        },
        about: "Circles of rooms that import each other, with the number of rooms. There should be none.",
        counts: |checkout, rows| Ok(circles::counts(&checkout.packages, rows.keys().map(String::as_str))),
    },
    Rule {
        ratchet: Ratchet {
            section: "types",
            unit: "types of this name in one package",
            general: 1,
            step: 1,
            slack: 0,
            way_out: "name each after what it is",
            moved: below_package,
        },
        about: "Names that several types of a package have, with their number. There should be none.",
        counts: |checkout, _| Ok(types::counts(&checkout.packages)),
    },
    Rule {
        ratchet: Ratchet {
            section: "lists",
            unit: "names that another list has",
            general: 0,
            step: 1,
            slack: 0,
            way_out: "ask that list, which can have a column for it; or add a row with the reason why this is another",
            moved: lists::is_same,
        },
        about: "Constants that list three or more quantities or GPU models beside their one table, or a part of another constant: each with \
its reason.",
        counts: second_lists,
    },
    Rule {
        ratchet: Ratchet {
            section: "reads",
            unit: "files opened for reading without limits",
            general: 0,
            step: 1,
            slack: 0,
            way_out: "read it by a function of `text/src/regular.rs`; or add a row with the reason why only the kernel or collo writes it",
            moved: lists::is_same,
        },
        about: "Functions that open files for reading outside of `text/src/regular.rs`, the home of bounded reading: each with its reason.",
        counts: |checkout, _| Ok(reads::counts(&checkout.packages)),
    },
    Rule {
        ratchet: Ratchet {
            section: "words",
            unit: "uses of words that docs/style.md forbids",
            general: 0,
            step: 1,
            slack: 10,
            way_out: "write it as its table shows; `cargo run -p collo-house -- words NAME` lists the places",
            moved: words::moved,
        },
        about: "Words that `docs/style.md` forbids, in comments and strings of a package, and in README, CHANGELOG and docs.",
        counts: |checkout, _| Ok(words::counts(checkout)),
    },
];

fn second_lists(checkout: &Checkout, _: &Rows) -> Result<Counts, String> {
    let quantities = lists::quantities(&checkout.packages).ok_or("there is not one `quantities!` table of quantities")?;
    Ok(lists::counts(&checkout.packages, &[quantities, lists::models(&checkout.texts.models)]))
}

fn same(new: &str, old: &str) -> bool {
    new == old
}

/// Whether two names are equal but for their package, as in `measure/device` and `measure: Row`.
fn below_package(new: &str, old: &str) -> bool {
    let rest = |name: &str| name.split_once(['/', ':']).map(|(_, rest)| rest.to_string());
    rest(new) == rest(old)
}

/// The rule of a section.
pub fn rule(section: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.ratchet.section == section)
}

/// What is not as a rule demands.
pub fn problems(rule: &Rule, checkout: &Checkout, ceilings: &Ceilings) -> Vec<String> {
    let rows = ceilings.rows(rule.ratchet.section);
    match (rule.counts)(checkout, &rows) {
        Ok(counts) => rule.ratchet.problems(&counts, &rows),
        Err(problem) => vec![problem],
    }
}

/// The text of a lowered file, and the problems that lowering does not solve.
pub fn lowered(checkout: &Checkout, ceilings: &Ceilings) -> Result<(String, Vec<String>), String> {
    let mut lower = ceilings.clone();
    let mut problems = Vec::new();
    for rule in &RULES {
        let rows = ceilings.rows(rule.ratchet.section);
        let (rows, left) = rule.ratchet.lowered(&(rule.counts)(checkout, &rows)?, &rows);
        problems.extend(left);
        lower.set(rule.ratchet.section, rows);
    }
    let sections: Vec<(&str, &str)> = RULES.iter().map(|rule| (rule.ratchet.section, rule.about)).collect();
    Ok((lower.text(HEAD, &sections), problems))
}

/// The counts of every rule, by section.
pub fn counted(checkout: &Checkout) -> Result<BTreeMap<&'static str, Counts>, String> {
    RULES.iter().map(|rule| Ok((rule.ratchet.section, (rule.counts)(checkout, &Rows::new())?))).collect()
}
