//! Second lists. In: packages, and the names that have a table of their own. Out: constants that list three or more of these names.
//!
//! The table of quantities is the one invocation of `quantities!`; GPU models are the files of `mig-profiles/`, by their own names and
//! by those of their drivers. What a test can see is a `const` or a `static` with such names, as strings or as `Key::Name`; a list
//! that is a function or a `match` is not seen. A list that has to be is in `ceilings.toml` with its reason.

use std::collections::BTreeSet;

use crate::checkout::{Checkout, Package};
use crate::production::{group_end, production};
use crate::ratchet::{Count, Counts};
use crate::tokens::{Kind, Token, tokens};

/// So many names make a list.
pub const LIST: usize = 3;

/// The names of a table, and what one of its names is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    pub of: &'static str,
    /// As strings.
    pub names: BTreeSet<String>,
    /// As `Key::Name`.
    pub keys: BTreeSet<String>,
    /// The place of the table, which is no second list.
    pub home: Option<String>,
}

/// The table of quantities; `None` if there is not exactly one.
pub fn quantities(packages: &[Package]) -> Option<Table> {
    let files = packages.iter().flat_map(|p| p.production().map(move |f| (p.place(f), f)));
    let mut tables = files.filter_map(|(place, file)| {
        let code = production(&file.text).code();
        let at = code.windows(3).position(|w| w[0].is("quantities") && w[1].is("!") && w[2].is("{"))?;
        let rows = &code[at..group_end(&code, at + 2)];
        let rows = rows.windows(3).filter(|w| w[0].kind == Kind::Word && w[1].is(":") && w[2].kind == Kind::Text);
        let is_row = |w: &&[Token]| w[0].text.starts_with(char::is_uppercase);
        let (keys, names) = rows.filter(is_row).map(|w| (w[0].text.to_string(), w[2].text.to_string())).unzip();
        Some(Table { of: "quantities", names, keys, home: Some(place) })
    });
    tables.next().filter(|_| tables.next().is_none())
}

/// The table of GPU models.
pub fn models(checkout: &Checkout) -> Table {
    let product_names = |text: &String| -> Vec<String> {
        let text: String = text.lines().filter(|l| !l.trim_start().starts_with('#')).map(|l| format!("{l}\n")).collect();
        let tokens = tokens(&text);
        let Some(at) = tokens.iter().position(|t| t.is("product_names")) else { return Vec::new() };
        let list = &tokens[at + 2..group_end(&tokens, at + 2)];
        list.iter().filter(|t| t.kind == Kind::Text).map(|t| t.text.to_string()).collect()
    };
    let names = checkout.models.keys().cloned().chain(checkout.models.values().flat_map(product_names)).collect();
    Table { of: "GPU models", names, ..Table::default() }
}

/// Constants that list names of a table, by `package/src/path NAME`.
pub fn counts(packages: &[Package], tables: &[Table]) -> Counts {
    let mut counts = Counts::new();
    for package in packages {
        for file in package.production() {
            let place = package.place(file);
            for (name, line, names) in second_lists(&production(&file.text).code(), &place, tables) {
                let place = format!("{place}:{line}: {}", names.join(", "));
                let key = format!("{}/src/{} {name}", package.name, file.path);
                counts.insert(key, Count { number: names.len(), places: vec![place] });
            }
        }
    }
    counts
}

/// Constants with their line and what they list of a table.
fn second_lists<'a>(code: &[Token<'a>], place: &str, tables: &[Table]) -> Vec<(&'a str, usize, Vec<&'a str>)> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let Some(name) = code.get(at + 1).filter(|t| t.kind == Kind::Word && (token.is("const") || token.is("static"))) else {
            continue;
        };
        let Some(value) = value(&code[at..]) else { continue };
        for table in tables.iter().filter(|t| t.home.as_deref() != Some(place)) {
            let listed = listed(value, table);
            if listed.len() >= LIST {
                found.push((name.text, name.line, listed));
            }
        }
    }
    found
}

/// What stands between the `=` and the `;` of a constant.
fn value<'t, 'a>(code: &'t [Token<'a>]) -> Option<&'t [Token<'a>]> {
    let (mut at, mut from) = (0, None);
    while at < code.len() {
        let token = &code[at];
        if token.is(";") {
            return from.map(|from| &code[from..at]);
        } else if token.is("{") && from.is_none() {
            return None;
        } else if ["(", "[", "{"].iter().any(|open| token.is(open)) {
            at = group_end(code, at);
            continue;
        } else if token.is("=") && from.is_none() {
            from = Some(at + 1);
        }
        at += 1;
    }
    None
}

/// The names of a table in a value, each once, in their order.
fn listed<'a>(value: &[Token<'a>], table: &Table) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for (at, token) in value.iter().enumerate() {
        let is_key = at >= 2 && value[at - 1].is("::") && value[at - 2].is("Key") && table.keys.contains(token.text);
        let is_name = token.kind == Kind::Text && table.names.contains(token.text);
        if (is_key || is_name) && !found.contains(&token.text) {
            found.push(token.text);
        }
    }
    found
}

/// Whether a list is the same constant in another file.
pub fn is_same(new: &str, old: &str) -> bool {
    new.rsplit(' ').next() == old.rsplit(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "macro_rules! quantities { () => {} }\nquantities! {\n    Speed: \"speed_m\", \"speed\", RATIO { absent: \"x\" }\n    \
        Power: \"power_w\", \"power\", WATT { short: \"p\" }\n    Time: \"time_s\", \"time\", SECOND { }\n}\n";

    fn found(source: &str) -> Vec<String> {
        let texts = [("table.rs", TABLE), ("a.rs", source)].map(|(path, text)| (path.into(), text.into()));
        let packages = [Package::of("p", texts.into())];
        let table = quantities(&packages).expect("one table");
        counts(&packages, &[table]).into_iter().map(|(name, count)| format!("{name}: {}", count.number)).collect()
    }

    #[test]
    fn the_table_has_names_and_keys() {
        let package = Package::of("p", [("table.rs".to_string(), TABLE.to_string())].into());
        let table = quantities(std::slice::from_ref(&package)).expect("one table");
        assert_eq!(table.names.iter().collect::<Vec<_>>(), ["power_w", "speed_m", "time_s"]);
        assert_eq!(table.keys.iter().collect::<Vec<_>>(), ["Power", "Speed", "Time"]);
        assert_eq!(quantities(&[package.clone(), package]), None);
    }

    #[test]
    fn constants_of_strings_or_keys_are_second_lists() {
        assert_eq!(found("pub const ALL: [&str; 3] = [\"speed_m\", \"power_w\", \"time_s\"];"), ["p/src/a.rs ALL: 3"]);
        assert_eq!(found("const K: &[Key] = &[Key::Speed, Key::Power, Key::Time];"), ["p/src/a.rs K: 3"]);
        assert_eq!(
            found("static R: [Row; 3] = [Row { n: \"speed_m\" }, row(\"power_w\"), Row { n: \"time_s\" }];"),
            ["p/src/a.rs R: 3"]
        );
    }

    #[test]
    fn fewer_names_other_names_tests_and_functions_are_none() {
        assert!(found("const A: [&str; 4] = [\"speed_m\", \"power_w\", \"speed_m\", \"other\"];").is_empty());
        assert!(found("const fn f() -> u8 { 1 }\nfn g() { [\"speed_m\", \"power_w\", \"time_s\"]; }").is_empty());
        assert!(found("#[cfg(test)]\nconst A: [&str; 3] = [\"speed_m\", \"power_w\", \"time_s\"];").is_empty());
    }
}
