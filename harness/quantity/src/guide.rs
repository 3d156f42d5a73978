//! The tables of `docs/guide/metrics.md`, generated from the definitions and compared with the file.

use crate::{Better, Key, Subject, Trait};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/metrics.md");

fn table(subject: Subject) -> String {
    let mut out = String::from("| name | in words | unit | better | definition | source |\n|---|---|---|---|---|---|\n");
    for key in Key::ALL.iter().filter(|key| key.subject == subject) {
        let words = if key.short.is_empty() { key.label.into() } else { format!("{}; {}", key.label, key.short) };
        let better = match key.better {
            Better::Larger => "more",
            Better::Smaller => "less",
            Better::Neither => "",
        };
        let unit = if key.has(Trait::OneCard) { format!("{} †", key.unit.symbol) } else { key.unit.symbol.into() };
        let fields = [&format!("`{}`", key.name), &words, unit.trim(), better, key.definition, key.source];
        out.push_str(&format!("| {} |\n", fields.join(" | ")));
    }
    out
}

/// The guide with its generated tables.
fn written(guide: &str) -> String {
    let mut out = guide.to_string();
    let tables =
        [("training", Subject::Training), ("requests", Subject::Requests), ("card", Subject::Card), ("trace", Subject::Trace)];
    for (name, subject) in tables {
        let begin = format!("<!-- quantities: {name} -->\n");
        let (before, rest) = out.split_once(&begin).unwrap_or_else(|| panic!("the guide has no `{}`", begin.trim()));
        let (_, after) = rest.split_once("<!-- end -->").expect("a table that ends");
        out = format!("{before}{begin}{}<!-- end -->{after}", table(subject));
    }
    out
}

#[test]
fn the_guide_lists_every_quantity_as_it_is_defined() {
    let guide = fs_err::read_to_string(GUIDE).unwrap();
    let written = written(&guide);
    if std::env::var_os("COLLO_BLESS").is_some() {
        fs_err::write(GUIDE, &written).unwrap();
    } else if guide != written {
        let first = written.lines().find(|line| !guide.contains(line)).unwrap_or_default();
        panic!("docs/guide/metrics.md is not what the table says: run this test with COLLO_BLESS=1 to write it\n{first}");
    }
}

#[test]
fn names_are_there_once_and_end_in_their_units() {
    let mut names: Vec<&str> = Key::ALL.iter().map(|key| key.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Key::ALL.len());
    for key in Key::ALL {
        assert!(key.name.contains(key.unit.suffix), "{} in {}", key.name, key.unit.symbol);
        assert!(!key.label.is_empty() && !key.definition.is_empty(), "{}", key.name);
        assert_eq!(Key::find(key.name), Some(*key));
    }
}
