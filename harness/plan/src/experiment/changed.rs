//! Which keys of an experiment differ from an earlier version of its file.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_text::{Source, shown};

use super::{Experiment, Origin, explain, layers};

/// A key with another value than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedKey {
    /// `repetitions`, `axes.degree`.
    pub key: String,
    /// As written, or the default; absent if the key had, or has, neither.
    pub before: Option<String>,
    pub after: Option<String>,
    /// `experiments/mine.toml:4`; absent where the key is not written now.
    pub place: Option<String>,
}

impl Experiment {
    /// The keys that differ from an earlier text of the file; none if only comments and layout do.
    pub fn keys_changed_since(&self, earlier: &str) -> Vec<ChangedKey> {
        let now = Source::file(shown(&self.path), self.layers.own());
        changed(&Source::file("before", layers::own_part(earlier)), explain::of(&now))
    }
}

fn changed(earlier: &Arc<Source>, now: Vec<Origin>) -> Vec<ChangedKey> {
    let mut before: BTreeMap<String, String> = explain::of(earlier).into_iter().map(|o| (o.key, o.value)).collect();
    let mut found = Vec::new();
    for Origin { key, value, place } in now {
        let old = before.remove(&key);
        if old.as_ref() != Some(&value) {
            found.push(ChangedKey { key, before: old, after: Some(value), place });
        }
    }
    // What is left is written, and has a default, nowhere now.
    found.extend(before.into_iter().map(|(key, old)| ChangedKey { key, before: Some(old), after: None, place: None }));
    found
}

#[cfg(test)]
mod tests {
    use crate::fixture::experiment;

    #[test]
    fn every_key_that_changed_is_named_with_both_values_and_its_line() {
        let now = experiment("repetitions = 5\n[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n");
        let changed = |earlier: &str| -> Vec<String> {
            let text = |value: Option<String>| value.unwrap_or_else(|| "–".into());
            let line =
                |place: Option<String>| place.and_then(|p| Some(format!(" :{}", p.rsplit_once(':')?.1))).unwrap_or_default();
            let of = |c: super::ChangedKey| format!("{} {} → {}{}", c.key, text(c.before), text(c.after), line(c.place));
            now.keys_changed_since(earlier).into_iter().map(of).collect()
        };
        let earlier = now.layers.own().replace("repetitions = 5", "cooldown = \"2s\"").replace("[1, 2]", "[1, 2, 3]");
        let lines = changed(&earlier);
        let at = |key: &str| 1 + now.layers.own().lines().position(|line| line.starts_with(key)).expect("written");
        assert_eq!(
            lines,
            [
                format!("repetitions 3 → 5 :{}", at("repetitions")),
                "cooldown \"2s\" → \"1s\"".into(),
                format!("axes.degree [1, 2, 3] → [1, 2] :{}", at("degree")),
            ]
        );
        assert_eq!(changed(&format!("# a comment\n{}", now.layers.own())), [""; 0]);
        let grouped = format!("{}[[exclude]]\nwhere = \"degree == 2\"\n", now.layers.own());
        assert_eq!(changed(&grouped), ["exclude[0].where \"degree == 2\" → –"]);
    }
}
