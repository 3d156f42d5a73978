//! The findings, in one or two sentences: for each workload the mode that gains most.

use collo_store::without_mode;

use crate::analysis::Analysis;
use crate::guideline::{Knee, capital, knees};
use crate::number;
use crate::quantity::Key;

/// The findings as remarks; the last says how many more there are.
pub fn remarks(analysis: &Analysis) -> Vec<String> {
    let knees = knees(analysis);
    let gain = |k: &&Knee| k.cell().get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate);
    let best = analysis.workloads().into_iter().filter_map(|w| {
        let here = knees.iter().filter(|k| k.workload == w);
        here.max_by(|a, b| gain(a).total_cmp(&gain(b)))
    });
    let best: Vec<&Knee> = best.collect();
    let several = knees.len() > 1;
    let mut found: Vec<String> = best
        .iter()
        .filter_map(|k| {
            let valid = k.groups.iter().all(|c| c.is_valid());
            let sentence = format!("{}{}", k.sentence()?, if valid { "" } else { " (indicative)" });
            Some(if several { format!("`{}` under {}: {sentence}", without_mode(k.workload), k.sharing) } else { sentence })
        })
        .collect();
    let more = found.len().saturating_sub(2);
    found.truncate(2);
    if more > 0 {
        found.push(format!("… {} in the report", number::count(more, "more finding")));
    }
    found
}

/// The findings as sentences, for pages.
pub fn sentences(analysis: &Analysis) -> Vec<String> {
    remarks(analysis).iter().filter(|s| !s.starts_with('…')).map(|s| format!("{}.", capital(s))).collect()
}
