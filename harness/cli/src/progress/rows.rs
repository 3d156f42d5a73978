//! What a run looks like on the screen: a line for the run, one for its card, one for each member; of a trace its tasks and cards.

use collo_measure::observe::{ManagedView, MemberView, Phase, View};
use collo_sample::LatestValues;
use collo_store::{Campaign, CellRecord, DeviceRecord, PlannedRun};
use collo_text::units::{clock, gib};

use super::words;
use super::words::MeasuringGoal;

/// Where the time that a run took ends, if the screen is so wide.
const LINE: usize = 86;

/// The run of one card.
pub struct Running {
    pub name: String,
    pub cell: CellRecord,
    pub planned: PlannedRun,
    pub view: Option<View>,
}

impl Running {
    /// In so many lines: the run, how long it takes so far, its card, its members. `only` if no other card has a run.
    pub fn lines(&self, campaign: &Campaign, took_s: f64, room: usize, only: bool) -> Vec<String> {
        let Some(view) = &self.view else { return Vec::new() };
        let (cell, device) = (&self.cell, &campaign.device);
        if let Some(managed) = &view.managed {
            return managed_lines(&self.name, managed, room);
        }
        let skew = view.skew_ns.map(|ns| format!(" · skew {:.1} ms", ns as f64 / 1e6)).unwrap_or_default();
        let attested = match view.attested {
            Some(true) => format!(" · attested {0}/{0}", cell.degree),
            Some(false) => " · not attested".into(),
            None => String::new(),
        };
        let phase = view.members.iter().map(|m| m.phase).min().map_or("", long_word);
        let state = format!("{phase}{attested}{skew}");
        let took = clock(took_s);
        let mut lines = vec![run_line('▸', &self.name, &state, &took, screen_width())];
        let on_card = device.kind == "gpu";
        if on_card {
            lines.push(card_line(device, view.card));
        }
        let wide = cell.members.iter().map(|m| m.workload.len()).max().unwrap_or(0).max("workload".len());
        let on_gpu = if on_card { "  gpu memory" } else { "" };
        let goal = MeasuringGoal::of(&campaign.plan);
        if let Some((shown, more)) = fitting(&view.members, room.saturating_sub(lines.len() + 1), only) {
            lines.push(format!("    member  {:<wide$}  phase    epoch  s/epoch    cpu      memory{on_gpu}  loss", "workload"));
            let line = |m: &usize| member_line(*m, &cell.members[*m].workload, &view.members[*m], goal, (wide, on_card));
            lines.extend(shown.iter().map(line));
            lines.extend(more);
        }
        lines
    }
}

/// A trace: how its tasks stand, and a line for each card that there is room for.
fn managed_lines(name: &str, managed: &ManagedView, room: usize) -> Vec<String> {
    let ManagedView { tasks, arrived, waiting, running, done, failed, elapsed_s, cards } = managed;
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let state = format!("{done} of {tasks} done{failed}, {running} running, {waiting} waiting, {} to come", tasks - arrived);
    let mut lines = vec![run_line('▸', name, &state, &clock(*elapsed_s), screen_width())];
    lines.push("    card  residents  busy  free memory".into());
    let card = |(number, (residents, busy, free)): (usize, &(usize, Option<f64>, Option<u64>))| {
        let busy = busy.map_or("–".into(), |busy| format!("{:.0} %", busy * 100.0));
        let free = free.map_or("–".into(), gib);
        format!("    {number:>4}  {residents:>9}  {busy:>4}  {free:>11}")
    };
    lines.extend(cards.iter().enumerate().map(card).take(room.saturating_sub(2)));
    lines
}

/// A run, what is said of it, and on the right its time; where space is short without gaps between them.
pub fn run_line(mark: impl std::fmt::Display, name: &str, said: &str, took: &str, width: usize) -> String {
    let wide = format!("  {mark} {name:<24} {said}");
    let room = width.saturating_sub(1).min(LINE);
    let gap = room.checked_sub(wide.chars().count() + took.chars().count()).filter(|gap| *gap > 0);
    match gap {
        Some(gap) => format!("{wide}{}{took}", " ".repeat(gap)),
        None => format!("  {mark} {name} {said} {took}"),
    }
}

/// Columns of the terminal.
pub fn screen_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(100, |(w, _)| usize::from(w.0))
}

/// Lines for each of so many runs, beside the campaign's own.
pub fn room(runs: usize) -> usize {
    let height = terminal_size::terminal_size_of(std::io::stderr()).map_or(24, |(_, h)| usize::from(h.0));
    height.saturating_sub(4) / runs.max(1)
}

fn long_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Start => "starting",
        Phase::SetUp => "setting up",
        Phase::WarmUp => "warming up",
        Phase::Ready => "ready",
        Phase::Measure => "measuring",
        Phase::Tail => "in the tail",
        Phase::Ended => "ending",
    }
}

/// The members that fit into so many lines: all, or the slowest, with a line about the rest. None where there is no room, unless they
/// are the only ones.
fn fitting(members: &[MemberView], room: usize, only: bool) -> Option<(Vec<usize>, Option<String>)> {
    if room < 2 && !only && room < members.len() {
        return None;
    }
    let room = room.max(2);
    if members.len() <= room {
        return Some(((0..members.len()).collect(), None));
    }
    let mut order: Vec<usize> = (0..members.len()).collect();
    let slowness = |&m: &usize| (members[m].measured, -members[m].last_epoch_s.unwrap_or(0.0));
    order.sort_by(|a, b| slowness(a).partial_cmp(&slowness(b)).unwrap_or(std::cmp::Ordering::Equal));
    let rest = order.split_off(room - 1);
    order.sort_unstable();
    let times: Vec<f64> =
        rest.iter().map(|&m| &members[m]).filter(|m| m.served.is_none()).filter_map(|m| m.last_epoch_s).collect();
    let low = times.iter().copied().reduce(f64::min);
    let high = times.iter().copied().reduce(f64::max);
    let span = low.zip(high).map(|(l, h)| format!(", {l:.2}–{h:.2} s per epoch")).unwrap_or_default();
    Some((order, Some(format!("    … {} more{span}", rest.len()))))
}

/// `GPU   SMACT 93 %   318 W   7.9 of 40.0 GiB   58 °C   1410 MHz   simulated`; unknown values are `–`.
fn card_line(device: &DeviceRecord, card: Option<LatestValues>) -> String {
    let card = card.unwrap_or_default();
    let number = |value: Option<f64>, unit: &str| value.map_or(format!("– {unit}"), |v| format!("{v:.0} {unit}"));
    let gib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 30));
    let used = card.memory_used_bytes.map_or("–".into(), gib);
    let all = device.memory_bytes.map_or(String::new(), |b| format!(" of {}", gib(b as f64)));
    let smact = number(card.sm_active_ratio.map(|r| r * 100.0), "%");
    let power = number(card.power_w, "W");
    let (warm, clock) = (number(card.temperature_c, "°C"), number(card.sm_clock_mhz, "MHz"));
    let simulated = if device.simulated { "   simulated" } else { "" };
    format!("    GPU     SMACT {smact}   {power}   {used}{all} GiB   {warm}   {clock}{simulated}")
}

fn member_line(index: usize, workload: &str, m: &MemberView, goal: MeasuringGoal, (wide, on_card): (usize, bool)) -> String {
    let epoch = match m.phase {
        Phase::Measure | Phase::Tail => goal.reached(m),
        _ => "–".into(),
    };
    // An epoch of a member that serves is as long as its settings say.
    let seconds = m.last_epoch_s.filter(|_| m.served.is_none()).map_or("–".into(), |s| format!("{s:.2}"));
    let cpu = m.watched.cpu_ratio.map_or("–".into(), |r| format!("{:.0} %", r * 100.0));
    let memory = words::memory(m.watched.rss_bytes);
    let on_gpu = if on_card { format!("  {:>10}", words::memory(m.watched.gpu_memory_bytes)) } else { String::new() };
    let loss = match &m.served {
        Some(served) => words::served(served),
        None => m.loss.map_or("–".into(), |l| format!("{l:.2}")),
    };
    format!(
        "    {index:<6}  {workload:<wide$}  {:<7}  {epoch:>5}  {seconds:>7}  {cpu:>5}  {memory:>10}{on_gpu}  {loss}",
        m.phase.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_measure::observe::ServingStats;

    #[test]
    fn a_trace_shows_its_tasks_and_its_cards() {
        let cards = vec![(2, Some(0.83), Some(12_884_901_888)), (0, None, None)];
        let managed = ManagedView { tasks: 12, arrived: 7, waiting: 1, running: 2, done: 3, failed: 1, elapsed_s: 75.0, cards };
        let lines = managed_lines("tiny-12/1 rr naive ×2 1/1", &managed, 9).join("\n");
        assert!(lines.contains("3 of 12 done, 1 failed, 2 running, 1 waiting, 5 to come"), "{lines}");
        assert!(
            lines.contains("       0          2  83 %     12.0 GiB") && lines.contains("       1          0     –            –"),
            "{lines}"
        );
    }

    #[test]
    fn the_time_of_a_run_stays_on_its_line() {
        let line = |said, width| run_line('✓', "tiny×2 naive b32 1/3", said, "0:22", width);
        assert_eq!(line("epoch 0.78 s", 80), format!("  ✓ tiny×2 naive b32 1/3     epoch 0.78 s{}0:22", " ".repeat(34)));
        assert_eq!(line("epoch 0.78 s", 80).chars().count(), 79);
        assert_eq!(line("epoch 0.78 s", 200).chars().count(), LINE);
        let long = "epoch 0.78 s, member 1 crashed in warm-up";
        assert_eq!(line(long, 72), format!("  ✓ tiny×2 naive b32 1/3 {long} 0:22"));
    }

    fn member(last_epoch_s: f64) -> MemberView {
        let watched =
            LatestValues { cpu_ratio: Some(0.66), rss_bytes: Some(0.74 * f64::from(1 << 30)), ..LatestValues::default() };
        MemberView {
            phase: Phase::Measure,
            measured: 1,
            measured_s: 0.0,
            last_epoch_s: Some(last_epoch_s),
            loss: Some(1.83),
            served: None,
            shortfall: None,
            watched,
        }
    }

    #[test]
    fn the_card_has_a_line_of_its_own_and_says_that_it_is_simulated() {
        let device = DeviceRecord {
            name: "A100".into(),
            kind: "gpu".into(),
            simulated: true,
            memory_bytes: Some(40 << 30),
            cores: None,
            quota_cores: None,
            persistence: None,
        };
        let card = LatestValues { sm_active_ratio: Some(0.93), power_w: Some(318.2), ..LatestValues::default() };
        let line = card_line(&device, Some(card));
        assert_eq!(line, "    GPU     SMACT 93 %   318 W   – of 40.0 GiB   – °C   – MHz   simulated");
    }

    #[test]
    fn who_serves_shows_its_requests_and_no_epoch_time() {
        let served = Some(ServingStats { answered: 1204, p99_s: Some(0.0183) });
        let serves = MemberView { served, loss: None, ..member(10.0) };
        let line = |index, workload, m: &MemberView| member_line(index, workload, m, MeasuringGoal::epochs(3), (5, false));
        assert_eq!(
            line(0, "serve", &serves),
            "    0       serve  measure    1/2        –   66 %    0.74 GiB  1204 answered, p99 18.3 ms"
        );
        assert_eq!(line(1, "tiny", &member(10.0)), "    1       tiny   measure    1/2    10.00   66 %    0.74 GiB  1.83");
    }

    #[test]
    fn when_members_do_not_fit_the_slowest_stay() {
        let members: Vec<MemberView> = (0..40).map(|i| member(f64::from(i))).collect();
        let (shown, more) = fitting(&members, 10, true).unwrap();
        assert!(shown.contains(&39) && !shown.contains(&0));
        assert!(more.unwrap().contains("more, 0.00–"));
        assert_eq!(fitting(&members, 1, false), None, "the runs of eight cards leave no room for their members");
        assert_eq!(fitting(&members[..1], 1, false), Some((vec![0], None)));
    }
}
