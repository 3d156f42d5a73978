//! The conditions behind a published figure compared with those of a cell: precision, loader processes, optimiser and the rest of
//! the regime. In: a source's conditions, and those in our members' hello. Out: differences, by name, and unknown ones.

use collo_analysis::cell::Regime;
use serde_json::{Value, json};

/// A condition that differs here.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionDifference {
    pub workload: String,
    pub name: String,
    pub here: Value,
    pub published: Value,
}

/// The compared conditions of a cell and a figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    pub differ: Vec<ConditionDifference>,
    /// Names of published conditions that a member did not report.
    pub not_told: Vec<String>,
}

impl Conditions {
    /// Compare one member's regime with a published one.
    pub fn hold(&mut self, workload: &str, published: &Regime, here: Option<&Regime>) {
        for (name, value) in published {
            match here.and_then(|regime| regime.get(name)) {
                None => self.not_told.push(name.clone()),
                // It has no meaning beside another condition, which is told: Nesterov's momentum beside Adam.
                Some(Value::Null) => {}
                Some(ours) if same(ours, value) => {}
                Some(ours) => {
                    let (workload, name) = (workload.to_string(), name.clone());
                    let one = ConditionDifference { workload, name, here: ours.clone(), published: value.clone() };
                    if !self.differ.contains(&one) {
                        self.differ.push(one);
                    }
                }
            }
        }
        self.not_told.sort();
        self.not_told.dedup();
    }

    /// `precision fp32, published with tf32; loss read each epoch, published each step`; empty if nothing differs. In a mixed
    /// group each names its workload.
    pub fn text(&self, mixed: bool) -> String {
        let one = |d: &ConditionDifference| if mixed { format!("{}: {}", d.workload, d.text()) } else { d.text() };
        self.differ.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// As JSON has it.
    pub fn json(&self) -> Value {
        let one = |d: &ConditionDifference| json!({ "workload": d.workload, "name": d.name, "here": d.here, "published": d.published, "text": d.text() });
        json!({ "differ": self.differ.iter().map(one).collect::<Vec<_>>(), "not_told": self.not_told })
    }
}

impl ConditionDifference {
    fn text(&self) -> String {
        let plain = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
        let (here, published) = (plain(&self.here), plain(&self.published));
        match (self.name.as_str(), &self.published) {
            ("read_loss", _) => format!("loss read each {here}, published each {published}"),
            ("validate", Value::Bool(true)) => "no validation, published with one".into(),
            ("validate", _) => "with a validation, published without".into(),
            ("workers", _) => format!("workers {here}, published with {published}"),
            (name, _) => format!("{} {here}, published with {published}", name.replace('_', " ")),
        }
    }
}

/// Numbers are compared by value: `4` and `4.0` are the same.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regime(value: Value) -> Regime {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_differs_is_named_and_what_nobody_told_is_not_taken_for_the_same() {
        let published =
            regime(json!({ "precision": "tf32", "workers": 4, "read_loss": "step", "validate": true, "weight_decay": 2e-5 }));
        let here = regime(json!({ "precision": "fp32", "workers": 4.0, "read_loss": "epoch", "validate": false, "seed": 1 }));
        let mut found = Conditions::default();
        for _ in 0..7 {
            found.hold("small", &published, Some(&here));
        }
        let said =
            "precision fp32, published with tf32; loss read each epoch, published each step; no validation, published with one";
        assert_eq!((found.text(false).as_str(), found.differ.len()), (said, 3), "once, not for each of seven");
        assert_eq!(found.not_told, ["weight_decay"]);
        let mut found = Conditions::default();
        found.hold("small", &published, Some(&published));
        assert_eq!(found, Conditions::default());
        found.hold("small", &published, None);
        assert!(found.differ.is_empty() && found.not_told.len() == 5, "an older run told nothing");
    }

    #[test]
    fn in_a_mixed_group_each_difference_is_said_of_its_workload() {
        let mut found = Conditions::default();
        found.hold("large", &regime(json!({ "workers": 4 })), Some(&regime(json!({ "workers": 0 }))));
        assert_eq!(found.text(true), "large: workers 0, published with 4");
    }
}
