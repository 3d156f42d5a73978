//! How a run ended, in words, the same in every display and in `collo show`.

use collo_launch::advice_for_failure;
use collo_measure::observe::{MemberView, ServingStats};
use collo_store::{Campaign, EpochRecord, Outcome, PlanRecord, PlannedRun, RequestRecord, StoredRun, XidError};
use collo_text::units::gib;

use collo_text::shown;

/// `tiny×2 naive b32 2/3`
pub fn name(run: &StoredRun) -> String {
    let r = &run.record;
    format!("{} {}/{}", r.cell.cell, r.repetition, r.cell.repetitions)
}

/// A planned run, with its card in a campaign on several: `GPU 1 tiny×2 naive b32 2/3`.
pub fn planned(campaign: &Campaign, planned: &PlannedRun) -> String {
    let cell = &campaign.plan.cells[planned.cell];
    let card = campaign.card_of(planned.block).map(|gpu| format!("GPU {} ", gpu.index)).unwrap_or_default();
    format!("{card}{} {}/{}", cell.cell, planned.repetition, cell.repetitions)
}

/// The mark of an outcome: done, a result, or failed.
pub fn mark(outcome: &Outcome) -> char {
    match outcome {
        Outcome::Completed => '✓',
        Outcome::OutOfMemory { .. } => '○',
        Outcome::Interrupted => '–',
        _ => '✗',
    }
}

/// An outcome in half a line.
pub fn outcome(run: &StoredRun) -> String {
    if let Some(failure) = run.record.failure() {
        return failure;
    }
    let parts: Vec<String> = epoch_s(run)
        .map(|s| format!("{s:.2} s per epoch"))
        .into_iter()
        .chain(p99_s(run).map(|s| format!("99 % answered within {}", latency(s))))
        .collect();
    if parts.is_empty() { "completed".into() } else { parts.join(", ") }
}

/// The lines of a failed run: what happened, the end of the log, and its path.
pub fn failed(run: &StoredRun) -> Vec<String> {
    let mut lines = vec![format!("{} {}   {}", mark(&run.record.outcome), name(run), outcome(run))];
    lines.extend(run.record.expectation().map(|said| format!("      {said}")));
    lines.extend(trace(run));
    lines
}

/// A run that did not complete in full: what happened, the ends of its members, the last lines of the log, the run's folder.
pub fn post_mortem(run: &StoredRun) -> Vec<String> {
    let mut lines = vec![format!("{} {}   {}", mark(&run.record.outcome), name(run), outcome(run))];
    for (index, member) in run.record.members.iter().enumerate() {
        let pid = member.pid.map(|p| format!(" (pid {p})")).unwrap_or_default();
        let exit = member.exit.as_deref().unwrap_or("did not start");
        lines.push(format!("      member {index}: `{}`{pid} {exit}, {}", member.spec.workload, phase(run, index)));
    }
    lines.extend(trace(run));
    lines.push(format!("      run: {}", shown(&run.path)));
    lines
}

/// What the driver reported of the GPU meanwhile.
fn xids(run: &StoredRun) -> Option<String> {
    let texts: Vec<String> = run.record.xids().into_iter().map(XidError::text).collect();
    (!texts.is_empty()).then(|| format!("      the driver reported {}", texts.join(", ")))
}

/// How far a member came.
fn phase(run: &StoredRun, index: usize) -> &'static str {
    let member = &run.record.members[index];
    match member {
        m if m.training_start_ns.is_some() => "in training",
        m if m.ready_ns.is_some() => "ready to train",
        m if m.hello.is_some() => "in warm-up or set-up, after its hello",
        m if m.pid.is_some() => "in set-up, before a hello",
        _ => "never launched",
    }
}

/// What the driver reported, the end of the log of the member that failed, and its path.
pub fn trace(run: &StoredRun) -> Vec<String> {
    // Whoever is to blame for the end of a process that members share wrote to the log of them all.
    let blamed = match run.record.outcome {
        Outcome::ProcessEnded { .. } => Some(0),
        _ => run.record.outcome.member(),
    };
    let mut lines: Vec<String> = xids(run).into_iter().collect();
    let Some(blamed) = blamed.map(|member| member as usize) else { return lines };
    let Some(member) = run.record.members.get(blamed) else { return lines };
    lines.extend(member.log_tail.iter().map(|l| format!("      │ {l}")));
    let log = run.path.join(run.record.log_of(blamed));
    // A member may have written, or put there, anything at all.
    let text = collo_text::read_small(&log, 1 << 26);
    match text.map(|text| String::from_utf8_lossy(&text).lines().count()).ok() {
        Some(0) => {}
        None if log.is_file() => lines.push(format!("      log: {}", shown(&log))),
        None => {}
        Some(1) => lines.push(format!("      log: {} (1 line)", shown(&log))),
        Some(n) => lines.push(format!("      log: {} ({n} lines)", shown(&log))),
    }
    let advice = advice_for_failure(member.log_tail.iter().map(String::as_str));
    lines.extend(advice.map(|advice| format!("      hint: {advice}")));
    if let Outcome::TimedOut { phase, .. } = &run.record.outcome
        && phase == "set-up"
        && member.hello.is_none()
    {
        let workload = &member.spec.workload;
        lines.push(format!("      hint: `import collo` in it, or give `workloads/{workload}/workload.toml` an `[epochs]` table"));
    }
    lines
}

/// Mean measured epoch of all training members, seconds: approximate, without interval.
pub fn epoch_s(run: &StoredRun) -> Option<f64> {
    let epochs = collo_store::read_epochs(&run.path.join("epochs.parquet")).ok()?;
    // An epoch of a member that serves is as long as its settings say.
    let trains = |e: &EpochRecord| run.record.members.get(e.member as usize).is_none_or(|m| m.serving.is_none());
    let times: Vec<f64> = epochs
        .iter()
        .filter(|e| e.measured && trains(e) && e.end_ns > e.start_ns)
        .map(|e| (e.end_ns - e.start_ns) as f64 / 1e9)
        .collect();
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

/// The 99th percentile of the latencies of all serving members, in their measured epochs, seconds: approximate, and `None` if
/// more than one request in a hundred was never answered.
pub fn p99_s(run: &StoredRun) -> Option<f64> {
    run.record.members.iter().find(|m| m.serving.is_some())?;
    let epochs = collo_store::read_epochs(&run.path.join("epochs.parquet")).ok()?;
    let mut spans: Vec<(u32, u64, u64)> =
        epochs.iter().filter(|e| e.measured).map(|e| (e.member, e.start_ns, e.end_ns)).collect();
    spans.sort_unstable();
    let within = |r: &RequestRecord| {
        let begun = spans.partition_point(|s| (s.0, s.1) <= (r.member, r.arrival_ns));
        begun > 0 && spans[begun - 1].0 == r.member && r.arrival_ns < spans[begun - 1].2
    };
    let requests = collo_store::read_requests(&run.path.join("requests.parquet")).ok()?;
    // Who was never answered waited longest.
    let mut latencies_ns: Vec<u64> = requests
        .iter()
        .filter(|r| within(r))
        .map(|r| r.end_ns.map_or(u64::MAX, |end| end.saturating_sub(r.arrival_ns)))
        .collect();
    latencies_ns.sort_unstable();
    let rank = (0.99 * latencies_ns.len() as f64).ceil() as usize;
    rank.checked_sub(1).map(|at| latencies_ns[at]).filter(|ns| *ns < u64::MAX).map(|ns| ns as f64 / 1e9)
}

/// Request counts of a member: `1204 answered, p99 18.3 ms`.
pub fn served(served: &ServingStats) -> String {
    let p99 = served.p99_s.map(|s| format!(", p99 {}", latency(s))).unwrap_or_default();
    format!("{} answered{p99}", served.answered)
}

/// `18.3 ms`, `2.41 s`.
pub fn latency(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// Bytes for the member table.
pub fn memory(bytes: Option<f64>) -> String {
    bytes.map_or("–".into(), |b| gib(b as u64))
}

/// How much of its measuring a member has done: `1/2` epochs, or `7/10s`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeasuringGoal {
    epochs: u32,
    measure_for_s: Option<f64>,
}

impl MeasuringGoal {
    pub fn of(plan: &PlanRecord) -> Self {
        MeasuringGoal { epochs: plan.epochs, measure_for_s: plan.measure_for_s }
    }

    /// So many epochs.
    #[cfg(test)]
    pub fn epochs(epochs: u32) -> Self {
        MeasuringGoal { epochs, measure_for_s: None }
    }

    pub fn reached(self, m: &MemberView) -> String {
        let epochs = self.epochs.saturating_sub(1).max(1);
        match self.measure_for_s {
            Some(least) if m.measured >= epochs => format!("{:.0}/{least:.0}s", m.measured_s.min(least)),
            _ => format!("{}/{epochs}", m.measured.min(epochs)),
        }
    }
}
