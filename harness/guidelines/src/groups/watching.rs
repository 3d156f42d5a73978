//! Does watching change what is measured?

use collo_analysis::campaign::Analysis;
use collo_analysis::watching::WatchedCost;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::evidence::Evidence;
use crate::rule::{Claim, Guideline, is_undecided, not_judged};
use crate::verdict::{self, Next};

const PUBLISHED: Published = Published::new(
    "Monitoring with top, nvidia-smi or dcgm changes the epoch time by at most 1 %; nsys by 3 to 6 %, the PyTorch profiler by 42 % \
                (no tool 9.61 s, top 9.66, nvidia-smi 9.61, dcgm 9.68, nsys 9.88, PyTorch profiler 13.65 s).",
    "monitors ≤ 1 %, nsys 3–6 %, PyTorch profiler 42 %",
    "RAD-RM, PhD thesis, chapter 3",
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let groups = &analysis.watching.groups;
    if groups.is_empty() {
        return None;
    }
    let rows: Vec<_> =
        groups.iter().flat_map(|g| g.rows.iter().map(move |row| (g, row))).filter(|(_, row)| !row.is_nobody()).collect();
    let verdict = |row: &WatchedCost| row.test.as_ref().map(|test| test.verdict);
    // What is not known to profile may be a monitor, and what has no number may slow its members.
    let monitors: Vec<&WatchedCost> = rows.iter().map(|(_, row)| *row).filter(|row| row.profiles != Some(true)).collect();
    let (mut same, mut slower, mut open) = (0, 0, 0);
    for row in &monitors {
        match (row.profiles, verdict(row)) {
            (Some(false), Some(RatioVerdict::Better)) => slower += 1,
            (Some(false), Some(RatioVerdict::Same)) => same += 1,
            // Whatever it is, it does not slow them.
            (None, Some(RatioVerdict::Same)) => {}
            _ => open += 1,
        }
    }
    let holds = verdict::of_all(same, slower, open);
    let unread: Vec<&WatchedCost> = monitors.iter().copied().filter(|row| row.test.is_none()).collect();
    let evidence: Vec<Evidence> = rows
        .iter()
        .filter(|(_, row)| row.test.is_some())
        .filter_map(|(group, row)| {
            let cells = &analysis.watching.cells;
            let nobody = group.rows.iter().find(|row| row.is_nobody())?;
            Some(Evidence::between(&cells[row.cell], &cells[nobody.cell], Key::EpochTime, row.ratio.clone()?))
        })
        .collect();
    let key = evidence.iter().max_by(|a, b| a.value.estimate.total_cmp(&b.value.estimate)).cloned();
    let within = number::percent_as_written(analysis.campaign.thresholds.relevant_ratio);
    let finding = match &key {
        None => "No valid cell was measured under an observer and under nobody in two blocks.".into(),
        Some(key) => {
            let costly = rows
                .iter()
                .filter(|(_, row)| verdict(row) == Some(RatioVerdict::Better))
                .map(|(_, row)| format!("`{}`", row.observer));
            let costly: Vec<String> = costly.collect();
            let slows = if costly.is_empty() {
                "no observer certainly slows its members".into()
            } else {
                let verb = if costly.len() == 1 { "slows its" } else { "slow their" };
                format!("{} {verb} members", costly.join(", "))
            };
            format!(
                "Of {}, {slows}; the largest ratio is {} (`{}`).{}",
                number::count(evidence.len(), "watched cell"),
                key.to_text(),
                key.cell,
                not_judged(unread.iter().map(|row| row.label.clone()))
            )
        }
    };
    let tests = monitors.iter().filter_map(|row| row.test.as_ref()).filter(|test| is_undecided(test));
    // One repetition decides nothing, and says nothing of how many would.
    let once = evidence.is_empty() || unread.iter().any(|row| row.runs == 1);
    let more = if once { Some(2) } else { collo_quantity::stats::repetitions_to_decide(tests) };
    let lost = unread.iter().find_map(|row| Some(format!("`{}` lost its observer: {}.", row.label, row.why_lost.as_ref()?)));
    let name = &analysis.campaign.experiment;
    let command = match (analysis.count("missing") + analysis.count("interrupted") > 0, more) {
        _ if analysis.campaign.is_merged() => None,
        (true, _) => Some(format!("collo run {name}")),
        (false, more) => more.map(|more| format!("collo run {name} --more {more}")),
    };
    Some(
        Claim {
            id: "watching",
            question: "Can members be monitored without slowing them?",
            advice: "Monitor while you measure: it does not change the times.".into(),
            otherwise: "measure times without what slows the members, and watch them in runs of their own.".into(),
            finding,
            key,
            tested: format!(
                "epoch time under each monitor ÷ that without an observer within the same block, within {within} of 1 by the whole interval"
            ),
            holds,
            agrees: verdict::of_statement(analysis, holds),
            evidence,
            published: Some(PUBLISHED),
            scope: None,
            next: Next { command, before: lost },
        }
        .conclude(),
    )
}
