//! The numbers of a cell that can be compared, and what it was measured with. In: a cell as it was read. Nothing here depends on whether a
//! campaign was just analysed or its `report.json` was copied from another machine.

use collo_quantity::Key;
use collo_quantity::definition::Subject;
use collo_quantity::stats::Quantity;

use super::{CellJson, Ordered};

impl CellJson {
    /// A quantity of the cell, or a mean of the GPU; `None` if not positive, as it has no logarithm.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        let of = |all: &Ordered<Option<Quantity>>| comparable(all.get(name)?.as_ref()?);
        of(&self.quantities).or_else(|| of(&self.metrics).filter(|_| is_of_gpu(name)))
    }

    /// A quantity of one member.
    pub fn of_member(&self, index: usize, name: &str) -> Option<Quantity> {
        comparable(self.members.get(index)?.quantities.get(name)?.as_ref()?)
    }

    /// The names of all numbers of the cell.
    pub fn names(&self) -> Vec<&str> {
        let all = self.quantities.iter().chain(self.metrics.iter().filter(|(name, _)| is_of_gpu(name)));
        all.filter(|(_, q)| q.as_ref().and_then(comparable).is_some()).map(|(name, _)| name).collect()
    }

    /// True if one of its members serves.
    pub fn serves(&self) -> bool {
        self.members.iter().any(|m| m.serving.is_some())
    }

    /// The load of each of its serving members: rate, maximum batch, limit.
    pub fn served(&self) -> Vec<(f64, u64, Option<f64>)> {
        self.members.iter().filter_map(|m| m.serving.as_ref()).map(|s| (s.rate_per_s, s.batch_size, s.slo_s)).collect()
    }

    /// Why the cell is not valid.
    pub fn reasons(&self) -> String {
        self.reasons.join("; ")
    }

    /// True for a workload alone on the whole device.
    pub fn is_solo(&self) -> bool {
        matches!(&self.members[..], [only] if only.solo == self.label)
    }

    /// The workloads of its members, each with its batch size, in their order: `small b32`.
    pub fn workload(&self) -> String {
        let mut parts: Vec<(String, usize)> = Vec::new();
        for member in &self.members {
            let name = member.batch_size.map_or_else(|| member.workload.clone(), |b| format!("{} b{b}", member.workload));
            match parts.last_mut() {
                Some((last, n)) if *last == name => *n += 1,
                _ => parts.push((name, 1)),
            }
        }
        let uniform = parts.len() == 1;
        let said = parts.into_iter().map(|(name, n)| if n == 1 || uniform { name } else { format!("{n} {name}") });
        said.collect::<Vec<_>>().join(" + ")
    }
}

/// A quantity whose logarithm can be compared. An interval without degrees of freedom exists by definition.
/// False for metrics of the host that have the name of a members' quantity, as `cpu_ratio` has.
fn is_of_gpu(metric: &str) -> bool {
    Key::find(metric).is_none_or(|key| key.subject == Subject::Card)
}

fn comparable(q: &Quantity) -> Option<Quantity> {
    let positive = |x: Option<f64>| x.filter(|x| x.is_finite() && *x > 0.0);
    let estimate = positive(Some(q.estimate))?;
    let bounds = positive(q.low).zip(positive(q.high)).filter(|(low, high)| *low <= estimate && estimate <= *high);
    Some(Quantity { estimate, low: bounds.map(|b| b.0), high: bounds.map(|b| b.1), n: q.n, df: positive(q.df) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ReportJson;
    use super::*;

    #[test]
    fn numbers_that_cannot_be_are_none() {
        let q = |estimate: f64, low: f64, high: f64| {
            comparable(&Quantity { estimate, low: Some(low), high: Some(high), n: 3, df: Some(4.0) })
        };
        assert_eq!(q(2.0, 1.0, 3.0).unwrap().low, Some(1.0));
        assert_eq!(q(2.0, 3.0, 4.0).unwrap().low, None, "an interval that leaves its estimate out is none");
        assert!(q(-1.0, -2.0, 0.0).is_none() && q(f64::INFINITY, 1.0, 2.0).is_none());
    }

    #[test]
    fn the_load_of_the_host_is_no_quantity_of_the_members() {
        let reading = json!({ "estimate": 0.5, "low": null, "high": null, "repetitions": 1, "df": null });
        let cell = json!({ "cell": "a", "metrics": { "cpu_ratio": reading, "power_w": reading, "warmth": reading } });
        let report = json!({ "schema": 2, "campaign": "c", "device": { "name": "d" }, "cells": [cell] });
        let cell = &ReportJson::of(report, "x").unwrap().cells[0];
        assert_eq!((cell.get("cpu_ratio"), cell.names()), (None, vec!["power_w", "warmth"]));
        assert!(cell.get("power_w").is_some());
    }
}
