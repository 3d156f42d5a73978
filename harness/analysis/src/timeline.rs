//! The members of one run over time, with their resource usage. In: cells and their repetitions. Out: for a few sets of members,
//! one run of each sharing mode: spans and thinned series, in seconds from `go`, at most sixty points a line.

use std::cmp::Reverse;
use std::sync::Arc;

use collo_store::{PROCESS_SCOPE, member_scope};

use crate::cell::Cell;
use crate::reading::repetition::Repetition;
use crate::reading::samples::{self, Window};

/// Points per line.
const POINTS: u32 = 60;
/// Sets of equal members whose runs are drawn, at most.
const SETS: usize = 6;
/// Sharing modes of one set, at most.
const MODES: usize = 6;

/// A line: `(seconds from go, value)`.
pub type Curve = Vec<(f64, f64)>;

/// One run, drawn along time.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The cell, or the members run in turn.
    pub cell: String,
    /// `solo` also if several members run one after the other.
    pub sharing: String,
    /// The members, without the sharing mode: runs of one set are shown together.
    pub set: String,
    /// The workload of equal members, named as its solo cell.
    pub workload: Option<String>,
    /// True if the members' lives are worth drawing, false if only the GPU's series are.
    pub lives_shown: bool,
    /// True for solo runs of the members, concatenated.
    pub in_turn: bool,
    pub repetition: u32,
    /// From the first start of training to the last end, seconds from `go`.
    pub start_s: f64,
    pub end_s: f64,
    pub lives: Vec<Life>,
    /// CPU of each member, or of the process that they share, cores.
    pub cpu: Vec<Curve>,
    /// Memory of the same, bytes.
    pub memory: Vec<Curve>,
    /// Of the GPU as a whole; empty if not reported.
    pub sm_active_ratio: Curve,
    pub power_w: Curve,
    pub pcie_rx_bytes_per_s: Curve,
}

/// One member's epochs: `(start, end, measured)`, seconds from `go`.
#[derive(Debug, Clone)]
pub struct Life {
    pub workload: String,
    pub epochs: Vec<(f64, f64, bool)>,
}

/// Cells with the same members, in the order of the plan.
struct Set<'a> {
    cells: Vec<&'a Cell>,
}

impl Set<'_> {
    fn first(&self) -> Option<&Cell> {
        self.cells.first().copied()
    }

    /// `small×7 b32`, `small+large`.
    fn name(&self) -> String {
        self.first().map_or_else(String::new, |cell| collo_store::without_mode(cell.name()))
    }

    fn kinds(&self) -> usize {
        let mut solos: Vec<&str> =
            self.first().map_or_else(Vec::new, |c| c.record.members.iter().map(|m| m.solo.as_str()).collect());
        solos.sort_unstable();
        solos.dedup();
        solos.len()
    }

    fn degree(&self) -> u32 {
        self.first().map_or(0, |c| c.record.degree)
    }

    /// Its cells, each with the run that is drawn.
    fn drawn(&self) -> impl Iterator<Item = (&Cell, &Repetition)> {
        self.cells.iter().take(MODES).filter_map(|c| Some((*c, c.counted().next()?)))
    }

    /// Where all its drawn runs were measured; `None` if that is not one place.
    fn device(&self) -> Option<usize> {
        let mut origins = self.drawn().map(|(_, r)| r.device);
        let first = origins.next()?;
        origins.all(|o| o == first).then_some(first)
    }
}

/// The runs worth drawing: of each workload the largest set that ran in the most modes, of the mixed ones the most informative;
/// each mode's first counting run, preceded by the same members alone.
pub fn of(cells: &[Cell]) -> Vec<Timeline> {
    let mut sets: Vec<Set> = Vec::new();
    for cell in cells.iter().filter(|c| !c.is_solo() && c.record.degree > 1 && !c.counted.is_empty()) {
        let same = |s: &&mut Set| {
            s.first().is_some_and(|f| f.record.members.iter().map(|m| &m.solo).eq(cell.record.members.iter().map(|m| &m.solo)))
        };
        match sets.iter_mut().find(same) {
            Some(set) => set.cells.push(cell),
            None => sets.push(Set { cells: vec![cell] }),
        }
    }
    let (mut uniform, mixed): (Vec<Set>, Vec<Set>) = sets.into_iter().partition(|s| s.kinds() == 1);
    let best = mixed.into_iter().min_by_key(|s| Reverse((s.cells.len(), s.kinds(), Reverse(s.degree()))));
    // Of each workload one set, in the order of the plan.
    let order: Vec<Option<String>> = cells.iter().map(|c| c.workload().map(str::to_string)).collect();
    let place = |s: &Set| order.iter().position(|w| w.as_deref() == s.first().and_then(Cell::workload));
    uniform.sort_by_key(|s| (place(s), Reverse((s.cells.len(), s.degree()))));
    uniform.dedup_by_key(|s| place(s));
    let shown = uniform.iter().enumerate().max_by_key(|(i, s)| (s.cells.len(), s.degree(), Reverse(*i))).map(|(i, _)| i);
    uniform.truncate(SETS.max(shown.map_or(0, |i| i + 1)));
    let mut found = Vec::new();
    if let Some(set) = &best {
        found.extend(in_turn(cells, set));
        found.extend(runs(set, true));
    }
    for (i, set) in uniform.iter().enumerate() {
        let lives_shown = Some(i) == shown;
        let solo = set.first().and_then(|c| cells.iter().find(|s| s.is_solo() && s.name() == c.record.members[0].solo));
        let alone = solo.zip(set.device()).and_then(|(s, origin)| timeline(s, s.counted().find(|r| r.device == origin)?));
        found.extend(alone.map(|t| Timeline { set: set.name(), lives_shown, ..t }));
        found.extend(runs(set, lives_shown));
    }
    if found.is_empty() {
        let solo = cells.iter().find(|c| c.is_solo() && !c.counted.is_empty());
        found.extend(solo.and_then(|s| timeline(s, s.counted().next()?)));
    }
    found
}

fn runs(set: &Set, lives_shown: bool) -> Vec<Timeline> {
    set.drawn().filter_map(|(c, r)| timeline(c, r)).map(|t| Timeline { set: set.name(), lives_shown, ..t }).collect()
}

/// The solo runs of a set's members, one after the other; `None` if one of them was not measured where the set was, or serves and
/// never finishes.
fn in_turn(cells: &[Cell], set: &Set) -> Option<Timeline> {
    let members = &set.first().filter(|c| !c.serves())?.record.members;
    let solo = |label: &str| cells.iter().find(|c| c.is_solo() && c.name() == label);
    let beside = set.device()?;
    let alone = |s: &Cell| timeline(s, s.counted().find(|r| r.device == beside)?);
    let each: Vec<Timeline> = members.iter().map(|m| solo(&m.solo).and_then(alone)).collect::<Option<_>>()?;
    let later = |line: &Curve, by: f64| line.iter().map(|(t, v)| (t + by, *v)).collect::<Curve>();
    let mut at = 0.0;
    let mut whole = Timeline {
        cell: format!("{} in turn", set.name()),
        sharing: "solo".into(),
        set: set.name(),
        workload: None,
        lives_shown: true,
        in_turn: true,
        repetition: 1,
        start_s: 0.0,
        end_s: 0.0,
        lives: Vec::new(),
        cpu: Vec::new(),
        memory: Vec::new(),
        sm_active_ratio: Vec::new(),
        power_w: Vec::new(),
        pcie_rx_bytes_per_s: Vec::new(),
    };
    for t in each {
        let by = at - t.start_s.min(0.0);
        let moved = |life: &Life| Life {
            workload: life.workload.clone(),
            epochs: life.epochs.iter().map(|(a, b, m)| (a + by, b + by, *m)).collect(),
        };
        whole.lives.extend(t.lives.iter().map(moved));
        whole.cpu.extend(t.cpu.iter().map(|l| later(l, by)));
        whole.memory.extend(t.memory.iter().map(|l| later(l, by)));
        whole.sm_active_ratio.extend(later(&t.sm_active_ratio, by));
        whole.power_w.extend(later(&t.power_w, by));
        whole.pcie_rx_bytes_per_s.extend(later(&t.pcie_rx_bytes_per_s, by));
        at = t.end_s + by;
    }
    whole.end_s = at;
    Some(whole)
}

fn timeline(cell: &Cell, r: &Repetition) -> Option<Timeline> {
    let window = r.any_training()?;
    let zero = r.record().timeline.go_ns.unwrap_or(window.start_ns);
    let since = |ns: u64| (ns as f64 - zero as f64) * 1e-9;
    // PSS is read too rarely for a line; RSS has the same shape. On a GPU the memory of the host stands for nothing.
    let memory_metric = if r.record().device.kind == "gpu" { "gpu_memory_bytes" } else { "rss_bytes" };
    let series = RunSeries::read(r, window, since(window.start_ns), &["cpu_ratio", memory_metric]);
    let members = 0..r.record().members.len();
    let scopes: Vec<Arc<str>> =
        if r.process.is_some() { vec![PROCESS_SCOPE.into()] } else { members.clone().map(member_scope).collect() };
    let of_scopes = |metric: &str| scopes.iter().map(|scope| series.of(scope, metric)).collect::<Vec<Curve>>();
    let lives = members.map(|i| Life {
        workload: r.record().members[i].spec.workload.clone(),
        epochs: r
            .epochs
            .iter()
            .filter(|e| e.member as usize == i && e.end_ns > e.start_ns)
            .map(|e| (since(e.start_ns), since(e.end_ns), e.measured))
            .collect(),
    });
    Some(Timeline {
        cell: cell.record.cell.clone(),
        sharing: cell.record.sharing.clone(),
        set: cell.record.cell.clone(),
        workload: cell.workload().map(str::to_string),
        lives_shown: true,
        in_turn: false,
        repetition: r.record().repetition,
        start_s: since(window.start_ns),
        end_s: since(window.end_ns),
        lives: lives.collect(),
        cpu: of_scopes("cpu_ratio"),
        memory: of_scopes(memory_metric),
        sm_active_ratio: series.of_card("sm_active_ratio"),
        power_w: series.of_card("power_w"),
        pcie_rx_bytes_per_s: series.of_card("pcie_rx_bytes_per_s"),
    })
}

/// Thinned samples of one run, relative to `go` in seconds.
struct RunSeries {
    found: samples::BinnedSeries,
    from_s: f64,
    bin_s: f64,
}

impl RunSeries {
    /// A run with unreadable samples has no line: its validity already says so.
    fn read(r: &Repetition, window: Window, from_s: f64, of_members: &[&str]) -> Self {
        let metrics = [of_members, &["sm_active_ratio", "power_w", "pcie_rx_bytes_per_s"]].concat();
        let read = |path: std::path::PathBuf| samples::thin(&path, window, POINTS, &metrics, &r.trust).ok();
        let found = r.run.table("samples.parquet").and_then(read).unwrap_or_default();
        RunSeries { found, from_s, bin_s: window.seconds() / f64::from(POINTS) }
    }

    fn of(&self, scope: &str, metric: &str) -> Curve {
        let points = self.found.get(&(scope.to_string(), metric.to_string()));
        let place = |(bin, value): &(u32, f64)| (self.from_s + (f64::from(*bin) + 0.5) * self.bin_s, *value);
        points.map_or_else(Vec::new, |p| p.iter().map(place).collect())
    }

    /// The line of the whole GPU; `None` if only its instances are reported.
    fn of_card(&self, metric: &str) -> Curve {
        let scope = self.found.keys().find(|(scope, m)| m == metric && scope.starts_with("gpu:"));
        scope.map_or_else(Vec::new, |(scope, _)| self.of(scope, metric))
    }
}
