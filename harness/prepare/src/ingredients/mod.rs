//! What the numbers of a campaign depend on, by content: if one of these changes, old and new numbers cannot be combined.

mod digests;
mod kind;
mod walk;
mod watch;

use std::collections::BTreeMap;

use collo_store::{Ingredient, sha256_text};

pub use walk::Places;
pub use watch::{AfterRun, IngredientWatch};

/// An ingredient that changed since the campaign began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: String,
    pub before: String,
    pub after: String,
}

/// A text by its content, with an optional version.
pub fn text(content: &str, version: Option<String>) -> Ingredient {
    Ingredient { sha256: sha256_text(content), version }
}

/// All ingredients of a campaign, the files among them watched.
#[derive(Debug, Default)]
pub struct Ingredients {
    pub all: BTreeMap<String, Ingredient>,
    pub files: IngredientWatch,
}

impl Ingredients {
    /// The files; everything else is added to them.
    pub fn of(files: IngredientWatch) -> Ingredients {
        Ingredients { all: files.ingredients().collect(), files }
    }

    /// The differences from those of an earlier campaign, except files that its runs have written since.
    pub fn changes_since(&self, before: &BTreeMap<String, Ingredient>) -> Vec<Change> {
        let inputs = |(name, _): &(&String, &Ingredient)| !self.files.is_output(name);
        let before: BTreeMap<_, _> = before.iter().filter(inputs).map(|(n, i)| (n.clone(), i.clone())).collect();
        let new = self.files.new_since(&before);
        let now = self.all.iter().filter(|(name, _)| !new.contains(*name)).map(|(n, i)| (n.clone(), i.clone())).collect();
        changes(&before, &now)
    }

    /// From now on use those of that campaign.
    pub fn continue_from(&mut self, before: &BTreeMap<String, Ingredient>) {
        let new = self.files.new_since(before);
        self.all.retain(|name, _| !new.contains(name));
        self.files.forget(&new);
    }
}

/// The word for an ingredient that a campaign does not have.
pub const ABSENT: &str = "absent";

/// The differences by name, including added and removed ingredients.
pub fn changes(before: &BTreeMap<String, Ingredient>, now: &BTreeMap<String, Ingredient>) -> Vec<Change> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let word = |i: Option<&Ingredient>, other: Option<&Ingredient>| match i {
        None => ABSENT.to_string(),
        Some(i) => match &i.version {
            // The same word for two contents (an edit on top of an edit) would say nothing.
            Some(v) if other.and_then(|o| o.version.as_ref()) != Some(v) => v.clone(),
            _ => i.sha256[..8].to_string(),
        },
    };
    let changed = |name: &&String| before.get(*name).map(|i| &i.sha256) != now.get(*name).map(|i| &i.sha256);
    let change = |name: &String| {
        let (b, a) = (before.get(name), now.get(name));
        Change { name: name.clone(), before: word(b, a), after: word(a, b) }
    };
    names.into_iter().filter(changed).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_named_by_version_where_that_tells_them_apart() {
        let version = |v: &str| Some(v.to_string());
        let before = BTreeMap::from([("a".to_string(), text("1", version("git 4e1a9c2"))), ("b".to_string(), text("1", None))]);
        let now = BTreeMap::from([("a".to_string(), text("2", version("git 7d20b11"))), ("c".to_string(), text("1", None))]);
        let found = changes(&before, &now);
        let shown: Vec<_> = found.iter().map(|c| format!("{} {} → {}", c.name, c.before, c.after)).collect();
        assert_eq!(shown, ["a git 4e1a9c2 → git 7d20b11", "b 6b86b273 → absent", "c absent → 6b86b273"]);
        assert!(changes(&before, &before).is_empty());
    }
}
