//! Second lists. In: packages, and the names that have a table of their own. Out: constants that list three or more of these names, and
//! lists of strings that are all in another constant.
//!
//! The table of quantities is the one invocation of `quantities!`; GPU models are the files of `mig-profiles/`, by their own names and
//! by those of their drivers. What a test can see is a `const` or a `static` with such names, as strings or as `Key::Name`; a list
//! that is a function or a `match` is not seen. A list that has to be is in `ceilings.toml` with its reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkout::Package;
use crate::production::group_end;
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
    let files = packages.iter().flat_map(|p| p.production().map(move |(file, production)| (p.place(file), &production.code)));
    let mut tables = files.filter_map(|(place, code)| {
        let at = code.windows(3).position(|w| w[0].is("quantities") && w[1].is("!") && w[2].is("{"))?;
        let rows = &code[at..group_end(code, at + 2)];
        let rows = rows.windows(3).filter(|w| w[0].kind == Kind::Word && w[1].is(":") && w[2].kind == Kind::Text);
        let is_row = |w: &&[Token]| w[0].text.starts_with(char::is_uppercase);
        let (keys, names) = rows.filter(is_row).map(|w| (w[0].text.to_string(), w[2].text.to_string())).unzip();
        Some(Table { of: "quantities", names, keys, home: Some(place) })
    });
    tables.next().filter(|_| tables.next().is_none())
}

/// The table of GPU models, of the files by their names.
pub fn models(files: &BTreeMap<String, String>) -> Table {
    let product_names = |text: &String| -> Vec<String> {
        let text: String = text.lines().filter(|l| !l.trim_start().starts_with('#')).map(|l| format!("{l}\n")).collect();
        let tokens = tokens(&text);
        let Some(at) = tokens.iter().position(|t| t.is("product_names")) else { return Vec::new() };
        let list = &tokens[at + 2..group_end(&tokens, at + 2)];
        list.iter().filter(|t| t.kind == Kind::Text).map(|t| t.text.to_string()).collect()
    };
    let names = files.keys().cloned().chain(files.values().flat_map(product_names)).collect();
    Table { of: "GPU models", names, ..Table::default() }
}

/// A `const` or a `static`.
#[derive(Debug, Clone)]
struct Constant {
    /// `package/src/path NAME`.
    key: String,
    /// With its line.
    place: String,
    file: String,
    /// Its strings.
    texts: BTreeSet<String>,
    /// What stands behind `Key::`.
    keys: BTreeSet<String>,
    /// Whether it is a list of strings and nothing else.
    is_bare: bool,
}

/// Constants that list names of a table, or a part of another constant, by `package/src/path NAME`.
pub fn counts(packages: &[Package], tables: &[Table]) -> Counts {
    let constants: Vec<Constant> = packages.iter().flat_map(constants).collect();
    let mut counts = Counts::new();
    for (at, constant) in constants.iter().enumerate() {
        let found = of_table(constant, tables).or_else(|| part_of(at, &constants));
        if let Some(count) = found {
            counts.insert(constant.key.clone(), count);
        }
    }
    counts
}

fn of_table(constant: &Constant, tables: &[Table]) -> Option<Count> {
    let tables = tables.iter().filter(|table| table.home.as_ref() != Some(&constant.file));
    tables.into_iter().find_map(|table| {
        let listed = constant.texts.intersection(&table.names).chain(constant.keys.intersection(&table.keys));
        let listed: Vec<&str> = listed.map(String::as_str).collect();
        let place = format!("{}: {} are {}", constant.place, listed.join(", "), table.of);
        (listed.len() >= LIST).then(|| Count { number: listed.len(), places: vec![place] })
    })
}

/// The constant that has all strings of a bare list; of two equal lists the second is part of the first.
fn part_of(at: usize, constants: &[Constant]) -> Option<Count> {
    let part = &constants[at];
    let (texts, is_list) = (&part.texts, part.is_bare && part.texts.len() >= LIST);
    let is_whole = |(other, whole): &(usize, &Constant)| {
        let is_equal = whole.texts.len() == texts.len() && whole.is_bare;
        *other != at && texts.is_subset(&whole.texts) && (!is_equal || *other < at)
    };
    let (_, whole) = constants.iter().enumerate().filter(|_| is_list).find(is_whole)?;
    Some(Count { number: texts.len(), places: vec![format!("{}: all are in {}", part.place, whole.place)] })
}

/// The constants of a package. Those of development tools are left out: they repeat what they imitate.
fn constants(package: &Package) -> Vec<Constant> {
    let mut found = Vec::new();
    for (file, production) in package.production().filter(|_| !package.is_tool()) {
        let code = &production.code;
        for (at, token) in code.iter().enumerate() {
            let is_constant = token.is("const") || token.is("static");
            let Some(name) = code.get(at + 1).filter(|t| t.kind == Kind::Word && is_constant) else { continue };
            let Some(value) = value(&code[at..]) else { continue };
            let texts = value.iter().filter(|t| t.kind == Kind::Text);
            let keys = value.windows(3).filter(|w| w[0].is("Key") && w[1].is("::"));
            found.push(Constant {
                key: format!("{}/src/{} {}", package.name, file.path, name.text),
                place: format!("{}:{} {}", package.place(file), name.line, name.text),
                file: package.place(file),
                texts: texts.map(|t| t.text.to_string()).collect(),
                keys: keys.map(|w| w[2].text.to_string()).collect(),
                is_bare: value.iter().all(|t| t.kind == Kind::Text || ["&", "[", "]", ","].iter().any(|mark| t.is(mark))),
            });
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
        let texts = [("table.rs", TABLE), ("a.rs", source)].map(|(path, text)| (path.into(), text.into())).into();
        let packages = [Package::of("p", &texts)];
        let table = quantities(&packages).expect("one table");
        counts(&packages, &[table]).into_iter().map(|(name, count)| format!("{name}: {}", count.number)).collect()
    }

    #[test]
    fn the_table_has_names_and_keys() {
        let texts = [("table.rs".to_string(), TABLE.to_string())].into();
        let package = Package::of("p", &texts);
        let table = quantities(std::slice::from_ref(&package)).expect("one table");
        assert_eq!(table.names.iter().collect::<Vec<_>>(), ["power_w", "speed_m", "time_s"]);
        assert_eq!(table.keys.iter().collect::<Vec<_>>(), ["Power", "Speed", "Time"]);
        assert_eq!(quantities(&[package.clone(), package]), None);
    }

    #[test]
    fn models_have_the_names_of_their_files_and_those_of_drivers() {
        let file = "# of \"sheets\"\nproduct_names = [\n  \"NVIDIA A30\",\n]\npci_devices = [\"20b7\"]\n";
        let table = models(&[("a30-24gb".to_string(), file.to_string())].into());
        assert_eq!(table.names.iter().collect::<Vec<_>>(), ["NVIDIA A30", "a30-24gb"]);
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
    fn a_list_that_is_part_of_another_is_a_second_list() {
        assert_eq!(
            found("const A: [&str; 4] = [\"a\", \"b\", \"c\", \"d\"];\nconst B: &[&str] = &[\"c\", \"b\", \"a\"];"),
            ["p/src/a.rs B: 3"]
        );
        assert_eq!(
            found("const A: [&str; 3] = [\"a\", \"b\", \"c\"];\nconst B: &[&str] = &[\"c\", \"b\", \"a\"];"),
            ["p/src/a.rs B: 3"]
        );
        assert!(found("const A: [&str; 3] = [\"a\", \"b\", \"c\"];\nconst B: &[&str] = &[\"c\", \"b\", \"d\"];").is_empty());
    }

    #[test]
    fn fewer_names_other_names_tests_and_functions_are_none() {
        assert!(found("const A: [&str; 4] = [\"speed_m\", \"power_w\", \"speed_m\", \"other\"];").is_empty());
        assert!(found("const fn f() -> u8 { 1 }\nfn g() { [\"speed_m\", \"power_w\", \"time_s\"]; }").is_empty());
        assert!(found("#[cfg(test)]\nconst A: [&str; 3] = [\"speed_m\", \"power_w\", \"time_s\"];").is_empty());
    }
}
