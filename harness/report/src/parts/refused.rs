//! Refusals of a workload's groups. A refused cell is none of the plan, so that its label tells what it was.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_store::{RefusalRecord, without_mode};

/// A refused group of one workload.
pub struct Refused<'a> {
    pub degree: u32,
    pub sharing: &'a str,
    pub reason: &'a str,
}

/// The refused groups of equal members of a workload, which has these cells.
pub fn of_workload<'a>(analysis: &'a Analysis, workload: &str, cells: &[&Cell]) -> Vec<Refused<'a>> {
    let bare = without_mode(workload);
    let name = cells.first().map_or("", |c| c.record.members[0].workload.as_str());
    let degree_of = |label: &str| {
        let rest = label.strip_prefix(name)?.strip_prefix('×')?;
        let (degree, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let settings = bare.strip_prefix(name)?.trim();
        rest.ends_with(settings).then(|| degree.parse::<u32>().ok())?
    };
    let of = |r: &'a RefusalRecord| Some(Refused { degree: degree_of(&r.cell)?, sharing: &r.sharing, reason: &r.reason });
    analysis.campaign.plan.refusals.iter().filter_map(of).collect()
}
