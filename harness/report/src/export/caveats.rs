//! Caveats about the numbers of a campaign, the same in every export. In: an analysis. Out: words, and one sentence.

use collo_analysis::campaign::Analysis;

use crate::parts::figure::measured_by;
pub use crate::parts::figure::tags;
use crate::parts::notes;

/// The tags in full: one sentence each, without its stop.
pub fn sentences(analysis: &Analysis) -> Vec<String> {
    let mut said = Vec::new();
    if analysis.campaign.device.simulated {
        said.push("SIMULATED: nothing here was measured; the numbers come from a documented interference model".to_string());
    }
    said.extend(notes::synthetic(analysis).map(|text| format!("data: {text}")));
    said.extend(notes::shortened(analysis));
    said.extend(measured_by(analysis).map(|program| format!("measured by {program}, imported")));
    said.extend(analysis.campaign.indicative.iter().map(|why| format!("indicative: {why}")));
    said
}

/// `quickstart`, or `quickstart (simulated, synthetic data)`.
pub fn name(analysis: &Analysis) -> String {
    let (experiment, tags) = (&analysis.campaign.experiment, tags(analysis));
    if tags.is_empty() { experiment.clone() } else { format!("{experiment} ({})", tags.join(", ")) }
}

/// `tiny: 4 batches` for each workload whose epochs were cut short.
pub fn shortened(analysis: &Analysis) -> Vec<String> {
    analysis.shortened.iter().map(|s| format!("{}: {} batches", s.workload, s.limit_batches)).collect()
}
