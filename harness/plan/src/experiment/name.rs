//! Valid names of experiments: they become a folder below `runs/` and `reports/`, and a word of the command line.

use collo_text::{Diagnostic, quoted};

/// The error of an invalid name.
pub fn wrong(name: &str) -> Option<Diagnostic> {
    let note = if means_something_else(name) {
        "campaigns and files are named so on the command line"
    } else if !is_plain(name) {
        "letters, digits, `-`, `_` and `.`, at most 80"
    } else {
        return None;
    };
    Some(Diagnostic::new(format!("invalid experiment name {}", quoted(name))).note(note))
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && name.len() <= 80
}

/// `last`, `last-2`, `20261120-1842-7f3a`, `x.toml`: what every verb interprets as a campaign, or as a path.
fn means_something_else(name: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.chars().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = name.split('-').collect();
    let is_campaign = match parts[..] {
        ["last"] => true,
        ["last", back] => !back.is_empty() && digits(back, back.len()),
        [day, time, tail] => digits(day, 8) && digits(time, 4) && tail.len() == 4,
        _ => false,
    };
    is_campaign || name.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_folder_and_no_campaign() {
        for good in ["small", "small-7way-mps", "last-year", "lasting", "v1.2_b", "2026-11-20", "7f3a"] {
            assert!(wrong(good).is_none(), "{good}");
        }
        for bad in
            ["", ".", "..", "a/b", "-x", "ä", "last", "last-1", "20261120-1842-7f3a", "x.toml", "my-x.toml", &"a".repeat(81)]
        {
            assert!(wrong(bad).is_some(), "{bad}");
        }
    }
}
