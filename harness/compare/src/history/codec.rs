//! A night as JSON: the summary that outlives its campaign. In: a night. Out: an object; and back.

use serde::{Deserialize, Serialize};

use super::night::NightlyRun;

/// The version of a kept night.
const SCHEMA: u32 = 1;

/// A night with the stamp of its source.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    schema: u32,
    pub stamp: String,
    #[serde(flatten)]
    pub night: NightlyRun,
}

impl Kept {
    pub fn new(stamp: String, night: NightlyRun) -> Kept {
        Kept { schema: SCHEMA, stamp, night }
    }

    /// From its text; `None` if malformed or of another version.
    pub fn read(text: &str) -> Option<Kept> {
        serde_json::from_str(text).ok().filter(|kept: &Kept| kept.schema == SCHEMA)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::night::{CellNight, Mean};
    use super::*;

    #[test]
    fn a_kept_night_comes_back_as_it_was() {
        let mean = Mean { log_mean: 0.1 + 0.2, n: 3, variance: Some(1e-4) };
        let cell = CellNight {
            cell: "<b>×2".into(),
            first: Some(mean),
            again: None,
            outcome: "completed".into(),
            ..CellNight::default()
        };
        let night = NightlyRun {
            id: "n".into(),
            incomplete: Some("cut".into()),
            environment: BTreeMap::from([("driver".into(), "570".into())]),
            cells: vec![cell],
            ..NightlyRun::default()
        };
        let kept = Kept::new("s".into(), night);
        let text = serde_json::to_string(&kept).unwrap();
        insta::assert_snapshot!(text, @r#"{"schema":1,"stamp":"s","id":"n","created_utc":"","place":"","device":"","simulated":false,"incomplete":"cut","environment":{"driver":"570"},"cells":[{"cell":"<b>×2","sharing":"","content":"","quantity":"","outcome":"completed","against":[],"first":[0.30000000000000004,3,0.0001],"again":null}]}"#);
        assert_eq!(Kept::read(&text), Some(kept));
    }

    #[test]
    fn what_is_half_written_or_newer_is_none() {
        let text = serde_json::to_string(&Kept::new("s".into(), NightlyRun::default())).unwrap();
        assert!(Kept::read(&text).is_some());
        for other in ["{}", "[1]", &text[..text.len() / 2], &text.replace(r#""schema":1"#, r#""schema":2"#)] {
            assert_eq!(Kept::read(other), None, "{other}");
        }
    }
}
