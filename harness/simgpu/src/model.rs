//! The interference model: how fast everybody on a card gets on, and what the card does meanwhile. Pure; nothing here knows a clock.
//!
//! In: the [`Load`]s that train on one card at one moment. Out: [`Moment`], each one's pace beside its solo pace on the whole card, and
//! the card's activity, traffic and power. A pace of 0.5 is half as fast as alone.
//!
//! A load needs the GPU for the share `u` of its solo time, and then fills the share `a` of the SMs and `m` of the DRAM bandwidth.
//! Processes without MPS take turns; those of one MPS server run side by side until the SMs or the bandwidth are full; instances of
//! MIG are cards of their own, whose waves fill them worse the smaller they are. Threads of one process with a stream each run side by
//! side as clients of MPS do, without what MPS costs, and take turns at Python's lock for a part of the rest of their time ([`lock`]).

use serde::{Deserialize, Serialize};

use crate::card::Card;

pub mod lock;

/// Share of the SMs that can be filled at most by kernels of several clients.
const SM_CEILING: f64 = 0.95;
/// Share of the bandwidth that can be reached.
const DRAM_CEILING: f64 = 0.85;
/// What a small instance costs: waves of blocks do not fill it well.
const KAPPA: f64 = 1.4;
/// Pace under time slicing with company: switching contexts.
const SWITCHING: f64 = 0.99;
/// Pace as a client of MPS with company.
const SERVED: f64 = 0.98;
/// More PCIe traffic per further client of MPS.
const LAUNCH_TRAFFIC: f64 = 0.05;
/// Power of a card on which anybody trains, and per activity of SMs and of DRAM, of the range between idle and limit. With DRAM half as
/// active as SMs, as in AEGIS' solo profiles, an A100 then draws 132 W + 204 W × SMACT: the line through AEGIS' means of whole traces on
/// that card, 218 W at SMACT .42 and 263 W at .64.
const FLOOR_POWER: f64 = 0.223;
const SM_POWER: f64 = 0.466;
const DRAM_POWER: f64 = 0.25;
/// Share of that power under MIG, floor included: chosen so that slices that fit need the least energy, which the collocation study says
/// without a figure.
const MIG_POWER: f64 = 0.55;
/// Shares of the SM activity that show as other activity, unless a load knows better: nobody's measurement, only plausible.
const OCCUPANCY: f64 = 0.45;
const TENSOR: f64 = 0.15;

/// A workload while it trains, in shares of the card it is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    pub u: f64,
    pub a: f64,
    pub m: f64,
    /// Bytes over PCIe per second of solo time.
    pub pcie: f64,
    /// Share of the places for warps that it takes on the SMs it is active on; none: as usual.
    pub occupancy: Option<f64>,
    /// The share of SMs that its MPS limit leaves it.
    pub cap: Option<f64>,
    /// The MPS server that it is a client of.
    pub server: Option<u32>,
    /// The process that it is a thread of, with others.
    pub process: Option<Process>,
    pub slice: Option<Slice>,
    /// Noise: its own factor on the pace.
    pub pace: f64,
}

/// One process whose threads train, each on a stream of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Python's lock is in force.
    pub lock: bool,
}

/// Whose kernels run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Of all clients of an MPS server.
    Server(u32),
    /// Of a process with several threads.
    Process(u32),
}

/// Where under MIG.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    pub gpu_instance: u32,
    pub compute_instance: u32,
    /// Shares of the card.
    pub sms: f64,
    pub memory: f64,
}

/// What engines do; shares of whatever they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    pub graphics: f64,
    pub sm: f64,
    pub occupancy: f64,
    pub tensor: f64,
    pub dram: f64,
    /// Bytes per second to the card and from it.
    pub pcie_rx: f64,
    pub pcie_tx: f64,
}

/// A card at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// In the order of the loads.
    pub paces: Vec<f64>,
    /// Of the whole card.
    pub card: Activity,
    /// Of every GPU instance that anything trains on, in shares of the instance.
    pub instances: Vec<(u32, Activity)>,
    pub power_w: f64,
}

impl Activity {
    pub fn plus(self, other: Activity, weight: f64) -> Activity {
        Activity {
            graphics: self.graphics + other.graphics * weight,
            sm: self.sm + other.sm * weight,
            occupancy: self.occupancy + other.occupancy * weight,
            tensor: self.tensor + other.tensor * weight,
            dram: self.dram + other.dram * weight,
            pcie_rx: self.pcie_rx + other.pcie_rx * weight,
            pcie_tx: self.pcie_tx + other.pcie_tx * weight,
        }
    }
}

/// What happens on `card` while exactly these train, everybody slowed by `throttle` (1: not at all).
pub fn moment(card: &Card, loads: &[Load], throttle: f64) -> Moment {
    let mut paces = vec![0.0; loads.len()];
    for members in partitions(loads) {
        let there: Vec<&Load> = members.iter().map(|&i| &loads[i]).collect();
        for (&i, pace) in members.iter().zip(partition_paces(&there)) {
            paces[i] = pace * loads[i].pace * throttle;
        }
    }
    let mut moment = Moment { paces, ..Moment::default() };
    for (indices, slice) in scopes(loads) {
        let activity = activity(loads, &indices, &moment.paces, slice);
        match slice {
            None => moment.card = activity,
            Some(slice) => {
                moment.card = moment.card.plus(scaled(activity, slice), 1.0);
                moment.instances.push((slice.gpu_instance, activity));
            }
        }
    }
    moment.card.graphics = moment.card.graphics.min(1.0);
    let rest = if loads.iter().any(|l| l.slice.is_some()) { MIG_POWER } else { 1.0 };
    let range = card.extra.limit_w - card.extra.idle_w;
    let floor = if loads.is_empty() { 0.0 } else { FLOOR_POWER };
    let share = rest * (floor + SM_POWER * moment.card.sm + DRAM_POWER * moment.card.dram);
    moment.power_w = card.extra.idle_w + range * share.min(1.0);
    moment
}

/// Those that compete for SMs: everybody on a card without MIG; everybody in one GPU instance otherwise.
fn partitions(loads: &[Load]) -> Vec<Vec<usize>> {
    let mut all: Vec<(Option<u32>, Vec<usize>)> = Vec::new();
    for (i, load) in loads.iter().enumerate() {
        let key = load.slice.map(|s| s.gpu_instance);
        match all.iter_mut().find(|(k, _)| *k == key) {
            Some((_, members)) => members.push(i),
            None => all.push((key, vec![i])),
        }
    }
    all.into_iter().map(|(_, members)| members).collect()
}

/// The same, with the whole GPU instance as the slice.
fn scopes(loads: &[Load]) -> Vec<(Vec<usize>, Option<Slice>)> {
    let whole = |members: &Vec<usize>| {
        let first = loads[members[0]].slice?;
        let mut seen: Vec<u32> = Vec::new();
        let mut sms = 0.0;
        for slice in members.iter().filter_map(|&i| loads[i].slice) {
            if !seen.contains(&slice.compute_instance) {
                seen.push(slice.compute_instance);
                sms += slice.sms;
            }
        }
        Some(Slice { sms, ..first })
    };
    partitions(loads).into_iter().map(|members| (members.clone(), whole(&members))).collect()
}

/// A load in shares of the compute instance that it is on.
struct Fitted {
    u: f64,
    a: f64,
    m: f64,
    /// Pace there alone.
    pace: f64,
    cap: Option<f64>,
    /// Shared with others; none is one of its own.
    context: Option<Context>,
    /// The process whose lock it has to wait for.
    lock: Option<u32>,
    unit: u32,
}

fn fitted(load: &Load) -> Fitted {
    let (sms, memory, unit) = load.slice.map_or((1.0, 1.0, 0), |s| (s.sms, s.memory, s.compute_instance));
    let stretch = if load.slice.is_some() { 1.0_f64.max((load.a / sms).powf(KAPPA)).max(load.m / memory) } else { 1.0 };
    let time = (1.0 - load.u) + load.u * stretch;
    Fitted {
        u: load.u * stretch / time,
        a: load.a / (sms * stretch),
        m: load.m / (memory * stretch),
        pace: 1.0 / time,
        cap: load.cap,
        context: load.server.map(Context::Server).or(load.process.map(|p| Context::Process(p.pid))),
        lock: load.process.filter(|p| p.lock).map(|p| p.pid),
        unit,
    }
}

fn partition_paces(loads: &[&Load]) -> Vec<f64> {
    let all: Vec<Fitted> = loads.iter().map(|l| fitted(l)).collect();
    let mut stretches = vec![1.0; all.len()];
    let mut costs = vec![1.0; all.len()];
    let mut units: Vec<u32> = all.iter().map(|f| f.unit).collect();
    units.sort_unstable();
    units.dedup();
    for unit in units.iter() {
        let members: Vec<usize> = (0..all.len()).filter(|&i| all[i].unit == *unit).collect();
        share_sms(&all, &members, &mut stretches, &mut costs);
    }
    if units.len() > 1 {
        // Compute instances of one GPU instance have SMs of their own and share its bandwidth.
        let asked = |extra: f64| {
            let stretches: Vec<f64> = stretches.iter().map(|s| s * extra).collect();
            sum(all.iter().zip(lock::rates(&all, &stretches)).map(|(f, rate)| f.m * f.u * rate))
        };
        let extra = smallest(|extra| asked(extra) <= DRAM_CEILING);
        stretches.iter_mut().for_each(|s| *s *= extra);
    }
    all.iter().zip(lock::rates(&all, &stretches)).zip(&costs).map(|((f, rate), c)| f.pace * rate * c).collect()
}

/// Time slicing between contexts, where all clients of one MPS server are one context, and all threads of one process.
fn share_sms(all: &[Fitted], members: &[usize], stretches: &mut [f64], costs: &mut [f64]) {
    let mut contexts: Vec<(Option<Context>, Vec<usize>)> = Vec::new();
    for &i in members {
        match contexts.iter_mut().find(|(context, _)| context.is_some() && *context == all[i].context) {
            Some((_, clients)) => clients.push(i),
            None => contexts.push((all[i].context, vec![i])),
        }
    }
    let mut beside = vec![1.0; all.len()];
    for (context, clients) in &contexts {
        if context.is_some() {
            side_by_side(all, clients, &mut beside);
        }
        if matches!(context, Some(Context::Server(_))) && clients.len() > 1 {
            clients.iter().for_each(|&i| costs[i] *= SERVED);
        }
    }
    if contexts.len() > 1 {
        members.iter().for_each(|&i| costs[i] *= SWITCHING);
    }
    let mut waits = vec![1.0; contexts.len()];
    for _ in 0..200 {
        let mut stretched = beside.clone();
        for ((_, clients), wait) in contexts.iter().zip(&waits) {
            clients.iter().for_each(|&i| stretched[i] *= wait);
        }
        let rates = lock::rates(all, &stretched);
        // Share of the time in which somebody of a context wants the GPU.
        let wants = |(_, clients): &(Option<Context>, Vec<usize>)| {
            1.0 - clients.iter().map(|&i| 1.0 - all[i].u * stretched[i] * rates[i]).product::<f64>()
        };
        let wants: Vec<f64> = contexts.iter().map(wants).collect();
        let total: f64 = sum(wants.iter().copied());
        let next: Vec<f64> = wants.iter().map(|own| 1.0 + total - own).collect();
        let moved = next.iter().zip(&waits).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        waits = next;
        if moved < 1e-9 {
            break;
        }
    }
    for ((_, clients), wait) in contexts.iter().zip(&waits) {
        clients.iter().for_each(|&i| stretches[i] = beside[i] * wait);
    }
}

/// One stretch for all clients, the smallest with which SMs and bandwidth suffice; a limit stretches its client further.
fn side_by_side(all: &[Fitted], clients: &[usize], stretches: &mut [f64]) {
    let own = |i: usize, common: f64| all[i].cap.map_or(common, |cap| common.max(all[i].a / cap.max(0.01)));
    let asked = |common: f64, what: fn(&Fitted) -> f64| {
        let stretches: Vec<f64> = (0..all.len()).map(|i| own(i, common)).collect();
        let rates = lock::rates(all, &stretches);
        sum(clients.iter().map(|&i| what(&all[i]) * all[i].u * rates[i]))
    };
    let common = if clients.len() > 1 {
        smallest(|common| asked(common, |f| f.a) <= SM_CEILING && asked(common, |f| f.m) <= DRAM_CEILING)
    } else {
        1.0
    };
    clients.iter().for_each(|&i| stretches[i] = own(i, common));
}

/// The smallest stretch from 1 on that suffices, by bisection.
fn smallest(suffices: impl Fn(f64) -> bool) -> f64 {
    if suffices(1.0) {
        return 1.0;
    }
    let (mut low, mut high) = (1.0, 2.0);
    while !suffices(high) && high < 1e6 {
        low = high;
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if suffices(middle) { high = middle } else { low = middle }
    }
    high
}

fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |a, b| a + b)
}

/// Activity of the members of one scope, in shares of it.
fn activity(loads: &[Load], members: &[usize], paces: &[f64], slice: Option<Slice>) -> Activity {
    let (sms, memory) = slice.map_or((1.0, 1.0), |s| (s.sms.max(1e-6), s.memory.max(1e-6)));
    let mut sum = Activity::default();
    let mut idle = 1.0;
    for &i in members {
        let (load, pace) = (&loads[i], paces[i]);
        let sm = pace * load.u * load.a / sms;
        sum.sm += sm;
        sum.occupancy += sm * load.occupancy.unwrap_or(OCCUPANCY);
        sum.dram += pace * load.u * load.m / memory;
        let beside = members.iter().filter(|&&j| load.server.is_some() && loads[j].server == load.server).count();
        let traffic = pace * load.pcie * (1.0 + LAUNCH_TRAFFIC * beside.saturating_sub(1) as f64);
        sum.pcie_rx += 0.9 * traffic;
        sum.pcie_tx += 0.1 * traffic;
        let stretch = load.slice.map_or(1.0, |s| 1.0_f64.max((load.a / s.sms).powf(KAPPA)).max(load.m / s.memory));
        idle *= 1.0 - (pace * load.u * stretch).clamp(0.0, 1.0);
    }
    sum.occupancy /= sum.sm.max(1.0);
    sum.sm = sum.sm.min(1.0);
    sum.dram = sum.dram.min(1.0);
    sum.graphics = (1.0 - idle).max(sum.sm).min(1.0);
    sum.tensor = TENSOR * sum.sm;
    sum
}

/// What an instance adds to its card.
fn scaled(a: Activity, slice: Slice) -> Activity {
    Activity {
        graphics: a.graphics * slice.sms,
        sm: a.sm * slice.sms,
        occupancy: a.occupancy * slice.sms,
        tensor: a.tensor * slice.sms,
        dram: a.dram * slice.memory,
        pcie_rx: a.pcie_rx,
        pcie_tx: a.pcie_tx,
    }
}

#[cfg(test)]
mod tests;
