//! Names of types. In: a package. Out: the names that more than one of its production files, or modules, gives to a type.
//!
//! Counted are `struct`, `enum`, `union`, `trait` and `type` at the level of modules: an associated type in an `impl`, or a type inside
//! a function, has no name outside of it.

use std::collections::BTreeMap;

use crate::checkout::Package;
use crate::production::group_end;
use crate::ratchet::{Count, Counts};
use crate::tokens::{Kind, Token};

const WORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// The types of a file, with their lines.
pub fn types<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let token = &code[at];
        let next = code.get(at + 1).filter(|t| t.kind == Kind::Word);
        if WORDS.iter().any(|w| token.is(w))
            && let Some(name) = next
        {
            found.push((name.text, name.line));
            at += 2;
        } else if token.is("mod") && next.is_some() {
            // What is in a module's braces is at the level of a module too.
            at += 3;
        } else if token.is("!") && code.get(at + 1).is_some_and(|t| t.is("{")) {
            // A macro that is called there is given items, as `keys!` is.
            at += 2;
        } else if token.is("{") {
            at = group_end(code, at);
        } else {
            at += 1;
        }
    }
    found
}

/// Names that stand for more than one type, by `package: Name`.
pub fn counts(packages: &[Package]) -> Counts {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        for (file, production) in package.production() {
            for (name, line) in types(&production.code) {
                places.entry(format!("{}: {name}", package.name)).or_default().push(format!("{}:{line}", package.place(file)));
            }
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated.map(|(name, places)| (name, Count { number: places.len(), places })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(texts: &[(&str, &str)]) -> Counts {
        let texts = texts.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        counts(&[Package::of("p", &texts)])
    }

    #[test]
    fn a_name_of_two_types_is_found_with_its_places() {
        let counts = counted(&[("a.rs", "pub struct Row<'a>(&'a str);\n"), ("b/c.rs", "\nmod inner {\n    enum Row { A }\n}\n")]);
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["p: Row"]);
        assert_eq!(counts["p: Row"].places, ["harness/p/src/a.rs:1", "harness/p/src/b/c.rs:3"]);
    }

    #[test]
    fn types_of_impls_functions_macros_and_tests_have_no_name_of_their_own() {
        let counts = counted(&[
            (
                "a.rs",
                "type Row = u8;\nimpl Iterator for A { type Row = u8; }\nfn f() { struct Row; }\nmacro_rules! m { () => { struct Row; } }\n",
            ),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    struct Row;\n}\nfn g(r#type: u8) -> &'static str { \"struct Row\" }\n"),
            ("tests.rs", "struct Row;"),
        ]);
        assert!(counts.is_empty());
    }

    #[test]
    fn one_name_in_two_packages_is_no_problem() {
        let texts = [("a.rs".to_string(), "struct Row;".to_string())].into();
        assert!(counts(&[Package::of("p", &texts), Package::of("q", &texts)]).is_empty());
    }
}
