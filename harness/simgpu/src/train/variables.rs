//! The variables that a member finds: its own, and those of its process.

use std::collections::BTreeMap;

/// What a thread of a process has to itself of the environment; for a member that is a process there is nothing else but its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(pub BTreeMap<String, Option<String>>);

impl Variables {
    /// The member's own, before that of the process.
    pub fn get(&self, name: &str) -> Option<String> {
        match self.0.get(name) {
            Some(own) => own.clone(),
            None => std::env::var(name).ok(),
        }
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_members_own_variable_comes_before_that_of_the_process_also_if_it_is_unset() {
        let own = [("COLLO_MEMBER", Some("3")), ("PATH", None)];
        let own = Variables(own.map(|(name, value)| (name.to_string(), value.map(str::to_string))).into());
        assert_eq!((own.number("COLLO_MEMBER"), own.get("PATH")), (Some(3), None));
        assert!(Variables::default().get("PATH").is_some());
    }
}
