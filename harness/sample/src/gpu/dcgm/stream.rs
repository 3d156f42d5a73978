//! One `dcgmi dmon`: the entities of one level, read by one thread until sampling stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use collo_store::{Sample, SamplingQuality, monotonic_ns};

use super::super::gpm_metrics::{Level, PCIE_TX, Profiled};
use super::super::handle::Turn;
use super::EVERY;
use super::command::{self, Running};
use super::dmon::{NotARow, Parser, Row};
use super::refusal::{explained, falling, is_hopeless};
use crate::account::{Account, SourceResult};
use crate::latest::Outlet;
use crate::quality::Movement;
use crate::ticker::thread_cpu_ns;

/// An entity of DCGM's and its wanted metrics.
pub struct DcgmTarget {
    pub entity: u32,
    pub scope: Arc<str>,
    pub metrics: Vec<&'static Profiled>,
    pub pcie: Arc<Turn>,
    /// Set when it gives a number.
    pub tells: Arc<AtomicBool>,
}

/// The first readings of an entity are 0 or nothing: DCGM has no mean yet.
const DROPPED_ROWS: u64 = 2;

/// A GPU without PCIe traffic in this many rows reports none.
const PCIE_ROWS: u64 = 20;

/// Time limit for the first row.
const FIRST_ROW_NS: u64 = 6_000_000_000;

/// Maximum number of restarts of a broken stream.
const RESTARTS: u32 = 3;

/// The stream is restarted if an entity's shares are 0 in this many consecutive rows, after they were not.
const ZERO_ROWS: u64 = 30;

/// Why a `dcgmi` is no longer read.
enum StreamEnd {
    Stopped,
    /// It reads 0 where it did not.
    Zero,
    /// It gave rows, and then ended.
    Broke(String),
    /// It gave none.
    Refused(String),
}

/// Reads one level.
pub struct Stream {
    program: String,
    level: Level,
    targets: Vec<DcgmTarget>,
    /// Rows seen of each entity since dcgmi was started.
    rows: BTreeMap<u32, u64>,
    /// For entities whose shares were not 0, rows since then.
    zeros: BTreeMap<u32, u64>,
    /// It was restarted because of zeros.
    zeroed: bool,
    /// CPU time of the programs that it read, once they were ended.
    program_cpu_ns: u64,
    stop: Arc<AtomicBool>,
    outlet: Outlet,
    account: Account,
    movement: Movement,
    pending: Vec<Sample>,
    handed_ns: u64,
    beat: Beat,
    unread_lines: u64,
}

/// The arrival times of one entity's rows.
#[derive(Default)]
struct Beat {
    entity: Option<u32>,
    first_ns: u64,
    last_ns: u64,
    ticks: u64,
    missed: u64,
    longest_gap_ns: u64,
}

impl Beat {
    /// Record the arrival of a row; only those of the first entity count.
    fn see(&mut self, entity: u32, at_ns: u64) {
        if *self.entity.get_or_insert(entity) != entity {
            return;
        }
        if self.ticks == 0 {
            self.first_ns = at_ns;
        } else {
            let gap_ns = at_ns - self.last_ns;
            self.longest_gap_ns = self.longest_gap_ns.max(gap_ns);
            self.missed += (gap_ns as f64 / EVERY.as_nanos() as f64).round().max(1.0) as u64 - 1;
        }
        self.last_ns = at_ns;
        self.ticks += 1;
    }
}

impl Stream {
    pub fn of(program: &str, level: Level, targets: Vec<DcgmTarget>, stop: Arc<AtomicBool>, outlet: Outlet) -> Stream {
        Stream {
            program: program.into(),
            level,
            targets,
            rows: BTreeMap::new(),
            zeros: BTreeMap::new(),
            zeroed: false,
            program_cpu_ns: 0,
            stop,
            outlet,
            account: Account::default(),
            movement: Movement::default(),
            pending: Vec::new(),
            handed_ns: 0,
            beat: Beat::default(),
            unread_lines: 0,
        }
    }

    /// Read until sampling stops, or DCGM gives up; returns the result.
    pub fn run(mut self) -> SourceResult {
        let (began_ns, cpu_before_ns) = (monotonic_ns(), thread_cpu_ns());
        let sets = falling(&self.fields());
        let mut restarts = 0;
        let mut set = 0;
        let mut why = String::new();
        while let Some(fields) = sets.get(set) {
            match self.read(fields) {
                StreamEnd::Stopped => {
                    self.lack_what_is_left_out(fields, &why);
                    break;
                }
                // The same fields once more, watched anew.
                StreamEnd::Zero => self.zeroed = true,
                // The same fields gave rows before: it is not they that were refused, unless it comes to nothing again and again.
                StreamEnd::Broke(reason) | StreamEnd::Refused(reason) if self.beat.ticks > 0 => {
                    why = reason;
                    restarts += 1;
                    if restarts > RESTARTS || !self.pause(Duration::from_secs(1)) {
                        self.give_up(&why);
                        break;
                    }
                }
                StreamEnd::Broke(reason) | StreamEnd::Refused(reason) => {
                    why = reason;
                    set = if is_hopeless(&why) { sets.len() } else { set + 1 };
                    if set == sets.len() {
                        self.give_up(&why);
                    }
                }
            }
        }
        self.hand_over();
        self.finished(began_ns, cpu_before_ns)
    }

    /// The fields that any of the entities wants.
    fn fields(&self) -> Vec<u16> {
        let mut fields: Vec<u16> = self.targets.iter().flat_map(|t| &t.metrics).map(|p| p.dcgm).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    fn arguments(&self, fields: &[u16]) -> Vec<String> {
        let kind = match self.level {
            Level::Gpu => "gpu",
            Level::GpuInstance => "i",
            Level::ComputeInstance => "c",
        };
        let entities: Vec<String> = self.targets.iter().map(|t| format!("{kind}:{}", t.entity)).collect();
        let fields: Vec<String> = fields.iter().map(u16::to_string).collect();
        let every_ms = EVERY.as_millis().to_string();
        ["dmon", "-e", &fields.join(","), "-i", &entities.join(","), "-d", &every_ms].map(str::to_string).into()
    }

    /// Run one dcgmi to its end, or to the end of sampling.
    fn read(&mut self, fields: &[u16]) -> StreamEnd {
        let mut running = match Running::start(&self.program, self.arguments(fields)) {
            Ok(running) => running,
            Err(why) => return StreamEnd::Refused(why),
        };
        let began_ns = monotonic_ns();
        let mut parser = Parser::default();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        self.rows.clear();
        while !self.stop.load(Ordering::Relaxed) {
            let printed = running.wait(Duration::from_millis(50));
            let at_ns = monotonic_ns();
            for line in printed.out {
                match parser.line(&line) {
                    Ok(row) => self.take(row, at_ns),
                    Err(not_a_row) if not_a_row.is_expected() => {}
                    Err(not_a_row) => {
                        self.unread_lines += 1;
                        if not_a_row == NotARow::Other && out.len() < 3 {
                            out.push(line);
                        }
                    }
                }
            }
            err.extend(printed.err.into_iter().filter(|l| !l.trim().is_empty()).take(3));
            if at_ns.saturating_sub(self.handed_ns) >= self.outlet.every_ns() {
                self.hand_over();
            }
            if !self.zeroed && self.zeros.values().any(|rows| *rows >= ZERO_ROWS) {
                self.end(running);
                return StreamEnd::Zero;
            }
            let gave = !self.rows.is_empty();
            if printed.ended {
                self.hand_over();
                let why = command::reason(&err, &out, running.finish());
                return if gave { StreamEnd::Broke(why) } else { StreamEnd::Refused(why) };
            }
            if !gave && at_ns > began_ns + FIRST_ROW_NS {
                let silent = "dcgmi prints no row".to_string();
                return StreamEnd::Refused(if err.is_empty() && out.is_empty() {
                    silent
                } else {
                    command::reason(&err, &out, None)
                });
            }
        }
        self.end(running);
        StreamEnd::Stopped
    }

    /// End the program; what it took is part of what these readings cost.
    fn end(&mut self, mut running: Running) {
        self.program_cpu_ns += running.cpu_time_ns().unwrap_or_default();
        running.end();
    }

    fn take(&mut self, row: Row, at_ns: u64) {
        // A row of something that was not asked for is not guessed to be something that was.
        let ours = |t: &&DcgmTarget| t.entity == row.entity && row.level == self.level;
        let Some(target) = self.targets.iter().find(ours) else {
            self.unread_lines += 1;
            return;
        };
        let seen = self.rows.entry(row.entity).or_default();
        *seen += 1;
        self.beat.see(row.entity, at_ns);
        if *seen <= DROPPED_ROWS {
            return;
        }
        let shares = || row.values.iter().filter(|(p, _)| p.is_ratio).filter_map(|(_, value)| *value);
        if shares().any(|share| share > 0.0) {
            self.zeros.insert(row.entity, 0);
        } else if let Some(rows) = self.zeros.get_mut(&row.entity) {
            *rows += 1;
        }
        let before = self.pending.len();
        for (profiled, value) in row.values {
            if !target.metrics.contains(&profiled) {
                continue;
            }
            match value {
                Some(_) => {
                    target.tells.store(true, Ordering::Relaxed);
                    self.account.gave(profiled.metric, &target.scope);
                }
                None => self.account.lacks(profiled.metric, &target.scope, "dcgmi prints no value"),
            }
            if profiled.metric == PCIE_TX && self.level == Level::Gpu {
                match value {
                    Some(_) => target.pcie.dcgm_tells(),
                    None if *seen == PCIE_ROWS && !self.account.has(PCIE_TX, &target.scope) => target.pcie.dcgm_does_not(),
                    None => {}
                }
            }
            let (window_ns, scope) = (EVERY.as_nanos() as u64, target.scope.clone());
            self.pending.push(Sample { at_ns, window_ns, source: "dcgm", scope, metric: profiled.metric, value });
        }
        self.movement.see(&self.pending[before..]);
    }

    fn hand_over(&mut self) {
        self.handed_ns = monotonic_ns();
        // The writer that is gone has said why.
        let _ = self.outlet.send(std::mem::take(&mut self.pending));
    }

    /// Pause; false if sampling stopped.
    fn pause(&self, time: Duration) -> bool {
        let until = monotonic_ns() + time.as_nanos() as u64;
        while monotonic_ns() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        !self.stop.load(Ordering::Relaxed)
    }

    /// DCGM reports nothing, or nothing more.
    fn give_up(&mut self, why: &str) {
        let why = &explained(why);
        for target in &self.targets {
            target.metrics.iter().for_each(|p| self.account.ended(p.metric, &target.scope, why));
            if self.level == Level::Gpu {
                target.pcie.dcgm_does_not();
            }
        }
    }

    fn lack_what_is_left_out(&mut self, fields: &[u16], why: &str) {
        for target in &self.targets {
            for p in target.metrics.iter().filter(|p| !fields.contains(&p.dcgm)) {
                self.account.lacks(p.metric, &target.scope, &format!("dcgmi rejects a set of fields with it: {why}"));
            }
            for p in target.metrics.iter().filter(|p| fields.contains(&p.dcgm)) {
                // A reason that is known already stays.
                if self.account.has(p.metric, &target.scope) {
                    continue;
                }
                match self.rows.get(&target.entity) {
                    None => self.account.lacks(p.metric, &target.scope, "dcgmi printed no row of it"),
                    Some(rows) if *rows <= DROPPED_ROWS => {
                        let why = format!("dcgmi printed {rows} rows of it, which start with no mean, and then none");
                        self.account.lacks(p.metric, &target.scope, &why);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn finished(self, began_ns: u64, cpu_before_ns: u64) -> SourceResult {
        let name = match self.level {
            Level::Gpu => "dcgm",
            Level::GpuInstance => "dcgm (GPU instances)",
            Level::ComputeInstance => "dcgm (compute instances)",
        };
        let beat = &self.beat;
        let span_s = (beat.last_ns - beat.first_ns) as f64 / 1e9;
        let lived_s = (monotonic_ns() - began_ns) as f64 / 1e9;
        // An Xid of one process leaves the others' counters at 0 until their fields are watched anew, or the host engine restarts (DCGM #303,
        // dcgm-exporter #662). A pause of the members looks the same: beginning again costs them two rows.
        let again = || format!("restarted once, because its shares read 0 for {} s after being nonzero", ZERO_ROWS / 10);
        let remarks = self.zeroed.then(again).into_iter().collect();
        let finished = SourceResult::without_reading(name, 1.0 / EVERY.as_secs_f64(), self.account);
        let quality = SamplingQuality {
            achieved_hz: (beat.ticks > 1 && span_s > 0.0).then(|| (beat.ticks - 1) as f64 / span_s),
            ticks: beat.ticks,
            missed: beat.missed,
            longest_gap_s: (beat.ticks > 1).then_some(beat.longest_gap_ns as f64 / 1e9),
            cpu_ratio: (lived_s > 0.0).then(|| (thread_cpu_ns() - cpu_before_ns + self.program_cpu_ns) as f64 / 1e9 / lived_s),
            moved_ratio: self.movement.ratios(),
            unread_lines: self.unread_lines,
            remarks,
            ..finished.quality
        };
        SourceResult { quality, ..finished }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
