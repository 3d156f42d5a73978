//! Prints what the test of the house counts; lowers its ceilings.
//!
//! In: a word, or none. Out: tables on standard output; with `lower`, `ceilings.toml`; with `words NAME`, a line for each place;
//! with `features`, each feature with its tests, and the commands that run them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use collo_house::ceilings::Ceilings;
use collo_house::checkout::{Checkout, Package, Texts};
use collo_house::ratchet::Counts;
use collo_house::{circles, features, rules, words};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match words.as_slice() {
        [] => tables(),
        ["features"] => features(),
        ["lower"] => lower(),
        ["words", name] => places(name),
        _ => Err("usage: cargo run -p collo-house [-- features | -- lower | -- words NAME]".to_string()),
    };
    match answer {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn texts() -> Result<Texts, String> {
    Texts::here().map_err(|e| format!("the checkout cannot be read: {e}"))
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("ceilings.toml")
}

/// Every count, the largest first; of lines, what the product has and what its tools have.
fn tables() -> Result<String, String> {
    let texts = texts()?;
    let checkout = Checkout::of(&texts);
    let counted = rules::counted(&checkout)?;
    let mut text = String::new();
    for rule in &rules::RULES {
        let section = rule.ratchet.section;
        let counts = &counted[section];
        let _ = writeln!(text, "{section}: {}\n", rule.about);
        let shown = |number: usize| section != "files" || number > 400;
        let mut rows: Vec<_> = counts.iter().filter(|(_, count)| shown(count.number)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(count.number));
        for (name, count) in rows {
            let _ = writeln!(text, "{:>8}  {name}{}", count.number, of_words(section, &count.places));
        }
        if section == "packages" {
            text += &totals(&checkout, counts);
        } else if section == "circles" {
            text += &floors(&checkout);
        }
        text.push('\n');
    }
    Ok(text)
}

fn of_words(section: &str, places: &[String]) -> String {
    if section == "words" { format!("  ({})", places.join("; ")) } else { String::new() }
}

fn totals(checkout: &Checkout, counts: &Counts) -> String {
    let sum = |tools: bool| -> usize {
        let of_kind = checkout.packages.iter().filter(|p| p.is_tool() == tools);
        of_kind.filter_map(|p| counts.get(p.name)).map(|c| c.number).sum()
    };
    format!("{:>8}  in all, without development tools\n{:>8}  in development tools\n", sum(false), sum(true))
}

/// How the rooms of each package stand on each other.
fn floors(checkout: &Checkout) -> String {
    let of_package = |package: &Package| {
        let arrows = circles::arrows(package);
        let rooms = package.production().filter_map(|(file, _)| file.room()).collect::<BTreeSet<_>>().len();
        format!("{:>8}  floors of {}: {rooms} rooms, {} arrows\n", circles::floors(&arrows), package.name, arrows.len())
    };
    checkout.packages.iter().map(of_package).collect()
}

fn lower() -> Result<String, String> {
    let refuse = |e: std::io::Error| format!("{}: {e}", file().display());
    let before = std::fs::read_to_string(file()).map_err(refuse)?;
    let (text, problems) = rules::lowered(&Checkout::of(&texts()?), &Ceilings::read(&before)?)?;
    if !problems.is_empty() {
        let problems: String = problems.iter().map(|p| format!("\n  {p}")).collect();
        return Err(format!(
            "nothing was lowered: first cut down what is above its ceiling, or add its row by hand, with a sentence in the commit{problems}"
        ));
    }
    if text == before {
        return Ok("every ceiling is as low as it can be\n".to_string());
    }
    std::fs::write(file(), text).map_err(refuse)?;
    Ok(format!("lowered {}\n", file().display()))
}

fn features() -> Result<String, String> {
    Ok(features::table(&features::read(include_str!("../features.toml"))?, &texts()?.tests))
}

fn places(name: &str) -> Result<String, String> {
    let uses = words::uses(&Checkout::of(&texts()?));
    let of_name = uses.get(name).ok_or_else(|| {
        let names: Vec<&str> = uses.keys().map(String::as_str).collect();
        format!("there is no `{name}`: it is one of {}", names.join(", "))
    })?;
    Ok(of_name.iter().map(|found| format!("{}:{}: {}\n", found.place, found.line, found.word)).collect())
}
