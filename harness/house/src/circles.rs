//! Circles between rooms. In: a package. Out: the sets of rooms that can each be reached from the others, and the lines that tie them.
//!
//! An arrow leads from the room of a file to the room of every path from the crate's root in it, production only. What the root
//! exports under a name of its own (`pub use cell::Cell`, then `crate::Cell`) is an arrow to the room it comes from. Programs in
//! `src/bin` are crates of their own.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkout::Package;
use crate::paths::{aliases, depth, root_names};
use crate::ratchet::{Count, Counts};

/// From a room to a room: the lines that make it.
pub type Arrows = BTreeMap<(String, String), Vec<String>>;

pub fn arrows(package: &Package) -> Arrows {
    let rooms: BTreeSet<&str> = package.production().filter_map(|(file, _)| file.room()).filter(|r| *r != "bin").collect();
    let roots = package.production().filter(|(file, _)| depth(file.path) == 0);
    let aliases: BTreeMap<&str, &str> = roots.flat_map(|(_, production)| aliases(&production.code)).collect();
    let mut arrows = Arrows::new();
    for (file, production) in package.production() {
        let Some(from) = file.room().filter(|room| rooms.contains(room)) else { continue };
        for (name, line) in root_names(&production.code, depth(file.path)) {
            let to = if rooms.contains(name) { Some(name) } else { aliases.get(name).copied().filter(|to| rooms.contains(to)) };
            if let Some(to) = to.filter(|to| *to != from) {
                let origin = if to == name { String::new() } else { format!(", of `{to}`") };
                let place = format!("{}:{line} (`crate::{name}`{origin})", package.place(file));
                arrows.entry((from.to_string(), to.to_string())).or_default().push(place);
            }
        }
    }
    arrows
}

/// The rooms that can be reached from each other, more than one of them, by name.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let rooms: BTreeSet<&String> = arrows.keys().flat_map(|(from, to)| [from, to]).collect();
    let reached: BTreeMap<&String, BTreeSet<&String>> = rooms.iter().map(|room| (*room, reachable(arrows, room))).collect();
    let circle = |room: &String| -> BTreeSet<String> {
        reached[room].iter().filter(|other| reached[*other].contains(room)).map(|other| other.to_string()).collect()
    };
    let found: BTreeSet<BTreeSet<String>> = rooms.iter().map(|room| circle(room)).filter(|circle| circle.len() > 1).collect();
    found.into_iter().collect()
}

fn reachable<'a>(arrows: &'a Arrows, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = vec![from];
    while let Some(room) = next.pop() {
        for (_, to) in arrows.keys().filter(|(a, _)| a == room) {
            if found.insert(to) {
                next.push(to);
            }
        }
    }
    found
}

/// The number of floors of a package, where every arrow leads to a lower one but for those within a circle.
pub fn floors(arrows: &Arrows) -> usize {
    let circles = circles(arrows);
    let mut floors: BTreeMap<&str, usize> = arrows.keys().flat_map(|(from, to)| [(from.as_str(), 1), (to.as_str(), 1)]).collect();
    let is_within = |from: &String, to: &String| circles.iter().any(|circle| circle.contains(from) && circle.contains(to));
    loop {
        let before = floors.clone();
        for (from, to) in arrows.keys() {
            let step = usize::from(!is_within(from, to));
            let floor = floors[from.as_str()].max(floors[to.as_str()] + step);
            floors.insert(from, floor);
        }
        if floors == before {
            return floors.values().copied().max().unwrap_or(1);
        }
    }
}

/// The circles of all packages by `package: rooms`, with the number of their rooms, and with the lines of their arrows, of the arrows
/// with the fewest lines first. Arrows within a circle that is known are left out: they did not close a larger one.
pub fn counts<'a>(packages: &[Package], known: impl Iterator<Item = &'a str>) -> Counts {
    let known: Vec<(&str, BTreeSet<&str>)> = known.map(parts).collect();
    let mut counts = Counts::new();
    for package in packages {
        let arrows = arrows(package);
        for circle in circles(&arrows) {
            let is_known =
                |from: &str, to: &str| known.iter().any(|(of, k)| *of == package.name && k.contains(from) && k.contains(to));
            let mut inside: Vec<_> = arrows.iter().filter(|((a, b), _)| circle.contains(a) && circle.contains(b)).collect();
            inside.retain(|((from, to), _)| !is_known(from, to));
            inside.sort_by_key(|(_, places)| places.len());
            let places = inside.into_iter().map(|((from, to), places)| described(from, to, places)).collect();
            let rooms: Vec<&str> = circle.iter().map(String::as_str).collect();
            counts.insert(format!("{}: {}", package.name, rooms.join(" ")), Count { number: circle.len(), places });
        }
    }
    counts
}

/// The package and the rooms of a circle's name.
fn parts(name: &str) -> (&str, BTreeSet<&str>) {
    let (package, rooms) = name.split_once(": ").unwrap_or((name, ""));
    (package, rooms.split(' ').filter(|room| !room.is_empty()).collect())
}

fn described(from: &str, to: &str, places: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = places.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{from} → {to}: {}{more}", places[..places.len().min(SHOWN)].join(", "))
}

/// Whether a circle is part of another, or the same rooms in another package.
pub fn is_part(new: &str, old: &str) -> bool {
    parts(new).1.is_subset(&parts(old).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(texts: &[(&str, &str)]) -> Counts {
        let texts = texts.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        counts(&[Package::of("p", &texts)], [].into_iter())
    }

    fn names(texts: &[(&str, &str)]) -> Vec<String> {
        counted(texts).into_keys().collect()
    }

    #[test]
    fn two_rooms_that_import_each_other_are_a_circle_with_its_lines() {
        let texts = [("lib.rs", "mod a; mod b;"), ("a/x.rs", "use crate::b::B;"), ("b.rs", "\nfn f() { crate::a::x::f() }")];
        let counts = counted(&texts);
        assert_eq!(counts["p: a b"].number, 2);
        let places = ["a → b: harness/p/src/a/x.rs:1 (`crate::b`)", "b → a: harness/p/src/b.rs:2 (`crate::a`)"];
        assert_eq!(counts["p: a b"].places, places);
    }

    #[test]
    fn a_circle_can_go_through_three_rooms_groups_supers_and_exports() {
        let texts = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use b::{self as bee, B as Bee};"),
            ("a/x.rs", "use crate::{\n    d,\n    Bee,\n};"),
            ("b.rs", "use super::c::C;"),
            ("c/mod.rs", "use super::a;"),
            ("d.rs", ""),
        ];
        assert_eq!(names(&texts), ["p: a b c"]);
        assert!(counted(&texts)["p: a b c"].places[0].contains("harness/p/src/a/x.rs:3 (`crate::Bee`, of `b`)"));
    }

    #[test]
    fn one_way_arrows_tests_and_programs_make_no_circle() {
        let texts = [
            ("lib.rs", "mod a; mod b; use a::A; use b::B;"),
            ("a.rs", "use crate::b::B;\nuse crate::a::Other;"),
            ("b.rs", "use collo_a::a;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
            ("b/b_tests.rs", "use crate::a::A;"),
            ("bin/x.rs", "use crate::a::A; fn b() { crate::b() }"),
        ];
        assert!(names(&texts).is_empty());
    }

    #[test]
    fn two_circles_are_two() {
        let texts = [
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::a; use crate::c;"),
            ("c.rs", "use crate::d;"),
            ("d.rs", "use crate::c;"),
        ];
        assert_eq!(names(&texts), ["p: a b", "p: c d"]);
    }

    #[test]
    fn floors_are_counted_over_circles() {
        let texts =
            [("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::{b, d};"), ("d.rs", ""), ("e.rs", "")];
        let texts = texts.map(|(path, text)| (path.to_string(), text.to_string())).into();
        assert_eq!(floors(&arrows(&Package::of("p", &texts))), 3);
        assert_eq!(floors(&Arrows::new()), 1);
    }

    #[test]
    fn a_circle_that_grew_shows_the_arrows_that_are_new() {
        let texts = [("a.rs", "use crate::b;"), ("b.rs", "use crate::a;\nuse crate::c;"), ("c.rs", "use crate::b;")];
        let texts = texts.map(|(path, text)| (path.to_string(), text.to_string())).into();
        let counts = counts(&[Package::of("p", &texts)], ["p: a b"].into_iter());
        let places = ["b → c: harness/p/src/b.rs:2 (`crate::c`)", "c → b: harness/p/src/c.rs:1 (`crate::b`)"];
        assert_eq!(counts["p: a b c"].places, places);
    }

    #[test]
    fn a_smaller_circle_is_part_of_the_one_it_was_cut_from() {
        assert!(is_part("p: a b", "p: a b c") && is_part("q: a b", "p: a b"));
        assert!(!is_part("p: a d", "p: a b c") && !is_part("p: a b c", "p: a b"));
    }
}
