//! How a campaign was measured: its blocks, what happens in a run, and how a number comes from it; with one block as a picture.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_analysis::reading::repetition::Repetition;
use collo_analysis::words;
use collo_figures::chart::{BlockRun, BlockRuns};
use collo_figures::document::{Block, Figure, Section, Table, TableCell};
use collo_figures::draw::Panel;
use collo_quantity::number;
use collo_store::{AfterMeasured, BlockEdge, PlannedRun};

use crate::parts::figure::{figure, legend_of, tags};
use crate::parts::notes;
use crate::report::Report;

/// A block with a longer pause, and longer than all its runs took, was interrupted: the pause would be most of the picture.
const PAUSE_S: f64 = 60.0;

/// True if the campaign ran groups that start together, by a plan that is known.
pub fn is_known(report: &Report) -> bool {
    report.analysis.traces.is_empty()
        && !report.analysis.campaign.plan.order.is_empty()
        && report.analysis.cells.iter().any(|c| c.ran())
}

pub fn section(analysis: &Analysis) -> Section {
    let plan = &analysis.campaign.plan;
    let blocks: Vec<u32> = plan.order.iter().map(|run| run.block).collect();
    let (count, edges) = (blocks.iter().max().copied().unwrap_or(1), plan.order.iter().any(|run| run.edge.is_some()));
    let mut lines = vec![format!(
        "{} in {}: a block has one repetition of its cells, in an order shuffled by seed {}{}.",
        number::runs(plan.order.len()),
        number::count(count as usize, "block"),
        plan.seed,
        if edges { ", the groups of a workload between two runs of their baseline, which show drift" } else { "" }
    )];
    let devices = if analysis.campaign.device.kind == "gpu" { "GPU" } else { "machine" };
    let members = if analysis.cells.iter().any(|c| c.record.mode.one_process) {
        "members are processes, or threads of one where the mode says so"
    } else {
        "each is a process of its own"
    };
    lines
        .push(format!("All members of a run are started, wait until each of them is ready, and begin at one signal; {members}."));
    let records = || analysis.cells.iter().flat_map(|c| &c.repetitions).flat_map(|r| &r.record().members);
    lines.extend(records().any(|m| !m.barrier).then(|| {
        "A script without the protocol cannot wait: it begins when it is launched, and only epochs beside all other members count.".into()
    }));
    let trains = match plan.epochs {
        0 | 1 => "Each member trains one epoch, which is measured: it contains the warm-up.".to_string(),
        epochs => format!(
            "Each member trains one warm-up epoch, which is left out, and then {} measured{}.",
            if epochs == 2 { "one that is".to_string() } else { format!("{} that are", number::word(epochs - 1)) },
            plan.measure_for_s
                .map_or_else(String::new, |s| format!(", and further ones until {} were measured", number::duration(s)))
        ),
    };
    let is_training = |c: &Cell| c.members.iter().any(|m| m.serving.is_none());
    lines.extend(analysis.cells.iter().any(is_training).then_some(trains));
    lines.extend(analysis.cells.iter().any(Cell::serves).then(|| {
        "A serving member answers requests that arrive by a schedule, whether or not it keeps up, for a fixed window; a latency counts \
         from when the request was due."
            .into()
    }));
    let keeps = |wanted: AfterMeasured| analysis.cells.iter().any(|c| c.record.degree > 1 && c.record.after_measured == wanted);
    lines.extend(keeps(AfterMeasured::KeepRunning).then(|| "A member that has finished its measured epochs trains on until the others have finished theirs, so that no epoch is measured beside an idle neighbour.".into()));
    lines.extend(keeps(AfterMeasured::Exit).then(|| {
        format!(
            "Where members exit when they have finished, an epoch counts only if all trained during {} of it.",
            number::percent_as_written(analysis.campaign.thresholds.overlap_ratio)
        )
    }));
    lines.push(format!("The measured window of a run is the time in which all members train past their warm-up: activity, traffic, power and energy are of that window, and of the whole {devices}."));
    lines.push(format!("Slowdown: epoch time in the group ÷ epoch time alone on the whole {devices}. Throughput gain: work per second of the group ÷ that of the same work in turn."));
    lines.extend(notes::method(analysis).map(|method| {
        format!(
            "{}, on logarithms of one number per repetition; pooled below eight cells, moderated from there; p-values by Holm over all groups.",
            words::capital(&method)
        )
    }));
    let t = &analysis.campaign.thresholds;
    lines.push(format!(
        "Differences below {} count as none; a slowdown of up to {} is accepted.",
        number::percent_as_written(t.relevant_ratio),
        number::percent_as_written(t.slowdown - 1.0)
    ));
    lines.push("A run is valid if it was made in the stated mode (attested by what the driver and the members report, not by what was asked for), its members started together, and nothing disturbed it. The numbers of a cell come from its valid runs; a cell without one decides nothing.".into());
    let blocks = drawn(analysis).map(Block::Figure).into_iter().chain([Block::Notes(lines)]).collect();
    Section { finding: notes::title(analysis) + ".", blocks, ..Section::default() }
}

/// One run of the plan as it was measured, if it has been.
fn measured<'a>(analysis: &'a Analysis, run: &PlannedRun) -> Option<&'a Repetition> {
    let cell = analysis.campaign.plan.cells.get(run.cell)?;
    let found = analysis.cells.iter().find(|c| c.record.slug == cell.slug)?;
    found.repetitions.iter().find(|r| r.record().repetition == run.repetition)
}

/// The first block that was measured as a whole and without a long pause.
fn drawn(analysis: &Analysis) -> Option<Figure> {
    let order = &analysis.campaign.plan.order;
    if analysis.campaign.is_merged() || analysis.devices.are_several() {
        return None;
    }
    let last = order.iter().map(|run| run.block).max()?;
    let (block, runs) = (1..=last).find_map(|block| {
        let planned: Vec<&PlannedRun> = order.iter().filter(|run| run.block == block).collect();
        let runs: Option<Vec<(&PlannedRun, &Repetition)>> =
            planned.into_iter().map(|run| Some((run, measured(analysis, run)?))).collect();
        Some((block, runs.filter(|runs| is_continuous(runs))?))
    })?;
    let from_ns = runs.first()?.1.record().timeline.launched_ns;
    let seconds = |ns: u64| ns.saturating_sub(from_ns) as f64 * 1e-9;
    let mut values = Table::with(&["#run", "cell", "in the block", "#launched s", "#trains from s", "#ended s"]);
    let mut all = Vec::new();
    for (place, (planned, run)) in runs.iter().enumerate() {
        let (record, t) = (run.record(), &run.record().timeline);
        let role = match planned.edge {
            Some(BlockEdge::Opens) => "opens it",
            Some(BlockEdge::Closes) => "closes it",
            None => "",
        };
        let (launched_s, ended_s) = (seconds(t.launched_ns), seconds(t.ended_ns));
        let name = &record.cell.cell;
        all.push(BlockRun {
            sharing: record.cell.sharing.clone(),
            launched_s,
            ended_s,
            measured_s: run.measured.map(|w| (seconds(w.start_ns), seconds(w.end_ns))),
            title: format!("{}. {name}\n{} in all", place + 1, number::duration(ended_s - launched_s)),
        });
        let number = |s: f64| TableCell::number(number::fixed(s, 1), s);
        values.row(vec![
            TableCell::text((place + 1).to_string()),
            TableCell::text(name.clone()),
            TableCell::text(role),
            number(launched_s),
            t.go_ns.map_or_else(TableCell::default, |ns| number(seconds(ns))),
            number(ended_s),
        ]);
    }
    let caption = "Outlined: a run from the launch of its members to the end of the last; filled: the window in which all of them train past their warm-up, of which activity, traffic, power and energy are.";
    let drawing = BlockRuns { runs: &all }.draw();
    let title = format!("block {block}");
    let panel = Panel { title, subtitle: format!("of {last}"), label: format!("the runs of block {block} over time"), drawing };
    values.tags = tags(analysis);
    let mut fig = figure(analysis, "block", "One block", vec![panel], caption.into(), values);
    let modes: Vec<&str> = all.iter().map(|run| run.sharing.as_str()).collect();
    fig.legend = legend_of(modes.into_iter());
    Some(fig)
}

/// True if the runs followed each other on one clock, without a long pause.
fn is_continuous(runs: &[(&PlannedRun, &Repetition)]) -> bool {
    let times: Vec<(u64, u64)> =
        runs.iter().map(|(_, r)| (r.record().timeline.launched_ns, r.record().timeline.ended_ns)).collect();
    let in_order = times.windows(2).all(|pair| pair[0].1 <= pair[1].0) && times.iter().all(|(from, until)| from < until);
    let busy_ns: u64 = times.iter().map(|(from, until)| until.saturating_sub(*from)).sum();
    let longest_ns = times.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].1)).max().unwrap_or(0);
    in_order && longest_ns as f64 <= (busy_ns as f64).max(PAUSE_S * 1e9)
}
