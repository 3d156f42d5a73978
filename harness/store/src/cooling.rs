//! The wait for a GPU to cool down before a run.

use serde::{Deserialize, Serialize};

/// What a thermal gate found; temperatures are absent where they could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cooling {
    /// Before the campaign.
    pub idle_c: Option<f64>,
    /// A run was to begin at this temperature or below.
    pub limit_c: Option<f64>,
    /// When the wait began, and when it ended.
    pub from_c: Option<f64>,
    pub to_c: Option<f64>,
    pub waited_s: f64,
}

impl Cooling {
    /// The GPU was as cool as it had to be.
    pub fn is_reached(&self) -> bool {
        self.to_c.zip(self.limit_c).is_some_and(|(to_c, limit_c)| to_c <= limit_c)
    }

    /// Why the run that followed is not as requested; `None` if it is.
    pub fn shortfall(&self) -> Option<String> {
        let waited_s = self.waited_s;
        match (self.to_c, self.idle_c) {
            _ if self.is_reached() => None,
            (Some(to_c), Some(idle_c)) => Some(format!(
                "the GPU was at {to_c} °C when it began, {} °C above idle, after a cooldown of {waited_s:.0} s",
                to_c - idle_c
            )),
            _ => Some("the GPU's temperature could not be read before it began, so the cooldown did not wait".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_began_too_warm_says_by_how_much() {
        let cooling = |to_c| Cooling { idle_c: Some(30.0), limit_c: Some(35.0), from_c: Some(60.0), to_c, waited_s: 300.2 };
        assert_eq!(cooling(Some(35.0)).shortfall(), None);
        let said = "the GPU was at 41 °C when it began, 11 °C above idle, after a cooldown of 300 s";
        assert_eq!(cooling(Some(41.0)).shortfall().as_deref(), Some(said));
        assert!(cooling(None).shortfall().is_some_and(|said| said.contains("could not be read")));
    }
}
