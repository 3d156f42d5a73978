//! `dcgmi dmon`: rows of fields, again and again.
//!
//! In: `-e FIELDS -i ENTITIES -d MS -c TIMES`. Out: rows; the host engine measures activity over windows of at least 100 ms.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::field::{Cell, Fault, Field, find, value};
use super::table::Layout;
use super::version::Version;
use super::{Entity, card_number, compute_instances, fails_at_work, fails_with, instances, say};
use crate::history::Totals;
use crate::sim::Sim;

const UPDATE: Duration = Duration::from_millis(100);
/// Iterations between two headers (`MAX_PRINT_HEADER_COUNT`).
const PAGE: u64 = 14;

struct Monitor {
    fields: Vec<Field>,
    /// What was asked for; wildcards are resolved each time.
    entities: String,
    interval: Duration,
    times: u64,
    version: Version,
}

pub fn main(mut sim: Sim, version: Version, options: &[&str]) -> ExitCode {
    let monitor = match Monitor::read(version, options) {
        Ok(monitor) => monitor,
        Err(why) => return fails_with(&why, 255),
    };
    say(&Layout::of(version).header(&monitor.fields));
    if let Some((result, why)) = monitor.refused(&sim) {
        let number = if version.errs_on_stderr() { format!("{result}: ") } else { String::new() };
        return fails_at_work(version, &format!("Error setting watches. Result: {number}{why}"), result);
    }
    if monitor.resolve(&sim).is_empty() {
        let why = match version.errs_on_stderr() {
            true => "No data returned from the hostengine.",
            false => "Error: The field group or entity group is empty.",
        };
        return fails_at_work(version, why, -14);
    }
    monitor.watch(&mut sim)
}

impl Monitor {
    fn read(version: Version, options: &[&str]) -> Result<Monitor, String> {
        let after = |name: &str| options.iter().position(|o| *o == name).and_then(|i| options.get(i + 1)).copied();
        let listed = after("-e").ok_or("Error: PARSE ERROR: one of -e, -f is required")?;
        let mut fields = Vec::new();
        for id in listed.split(',') {
            let number = id.trim().parse().ok().and_then(find);
            fields.push(number.ok_or_else(|| format!("Unknown Field ID: {id}"))?);
        }
        let number =
            |name: &str, usual: u64| after(name).map_or(Ok(usual), str::parse).map_err(|e| format!("Error: {name}: {e}"));
        Ok(Monitor {
            fields,
            entities: after("-i").unwrap_or("*").to_string(),
            interval: Duration::from_millis(number("-d", 1000)?.max(1)),
            times: number("-c", 0)?,
            version,
        })
    }

    /// Why the fields cannot be watched, with what the library returns.
    fn refused(&self, sim: &Sim) -> Option<(i8, &'static str)> {
        if !self.fields.iter().any(|f| f.id >= 1001) {
            return None;
        }
        if sim.scenario.has("dcgm-no-profiling") {
            return Some((-33, "This request is serviced by a module of DCGM that is not currently loaded"));
        }
        // Before Hopper the counters have one owner on the whole machine.
        let owned = sim.is_on("profiler-owned") && sim.cards.iter().any(|card| !card.has_gpm());
        owned.then_some((-37, "The third-party Profiling module returned an unrecoverable error"))
    }

    /// Rows in NVML's order, with the groups and numbers that the host engine gives them.
    fn resolve(&self, sim: &Sim) -> Vec<(Entity, &'static str, u32)> {
        let cards: Vec<(Entity, u32)> = (0..sim.cards.len()).map(|i| (Entity::Card(i), card_number(sim, i))).collect();
        let (gpu, compute) = (instances(sim), compute_instances(sim));
        let mut wanted: Vec<(Entity, u32)> = Vec::new();
        for word in self.entities.split(',').map(str::trim) {
            let (kind, path) = word.split_once(':').unwrap_or(("", word));
            let all = match kind {
                "i" | "instance" | "gpu-i" => select_numbered(&gpu, path),
                "c" | "ci" | "compute_instance" => select_numbered(&compute, path),
                "gpu" | "g" => select_numbered(&cards, path),
                _ => select_by_path(&cards, &gpu, &compute, path),
            };
            wanted.extend(all);
        }
        if sim.scenario.has("dcgm-mixed") {
            wanted.extend(cards);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let named = |(entity, number): (Entity, u32)| {
            let group = match entity {
                Entity::Card(_) => "GPU",
                Entity::Instance(..) => "GPU-I",
                Entity::Compute(..) => "GPU-CI",
            };
            (entity, group, number)
        };
        wanted.into_iter().map(named).collect()
    }

    fn watch(&self, sim: &mut Sim) -> ExitCode {
        let began = Instant::now();
        let mut before: BTreeMap<usize, Totals> = BTreeMap::new();
        let mut window: BTreeMap<usize, (Totals, Totals)> = BTreeMap::new();
        let mut out = std::io::stdout().lock();
        let layout = Layout::of(self.version);
        let zero_before = sim.is_on("dcgm-zero");
        for round in 0_u64.. {
            let now = sim.refresh();
            if sim.is_on("dcgm-dies") {
                let number = if self.version.errs_on_stderr() { " Return -21: " } else { "Return: " };
                let why = format!("Error getting values information.{number}Host engine connection invalid/disconnected");
                drop(out);
                return fails_at_work(self.version, &why, -21);
            }
            for card in 0..sim.cards.len() {
                let totals = sim.history().totals(card, now);
                let due = before.get(&card).is_none_or(|b| now.saturating_sub(b.at_ns) as u128 >= UPDATE.as_nanos());
                if due && let Some(old) = before.insert(card, totals.clone()) {
                    window.insert(card, (old, totals));
                }
            }
            let mut text = String::new();
            // The first page has one row more.
            if round > PAGE && (round - 1) % PAGE == 0 {
                // Of the oldest layout a blank line before.
                text.push_str(if layout == Layout::Right { "\n" } else { "" });
                text.push_str(&layout.header(&self.fields));
                text.push('\n');
            }
            // What only lasts until the fields are watched anew does not touch a watch that came after it.
            let lasts = sim.scenario.value("dcgm-zero") != Some("until-watched") || !zero_before;
            let zero = sim.is_on("dcgm-zero") && lasts;
            let over = sim.scenario.has("sm-over-one") && round % 3 == 2;
            let fault = match (zero, over) {
                (true, _) => Fault::Zero,
                (_, true) => Fault::OverOne,
                _ => Fault::None,
            };
            let mut rows = self.resolve(sim);
            if self.version.silences_whole_cards() {
                let cut: Vec<usize> = instances(sim).iter().map(|(entity, _)| entity.card()).collect();
                rows.retain(|(entity, ..)| cut.is_empty() || cut.contains(&entity.card()));
            }
            if sim.scenario.has("dcgm-reordered") && !rows.is_empty() {
                let by = (round as usize + 1) % rows.len();
                rows.rotate_left(by);
            }
            for (entity, group, number) in rows {
                let own = window.get(&entity.card()).map(|(a, b)| (a, b));
                let cells: Vec<(Field, Cell)> =
                    self.fields.iter().map(|f| (*f, value(sim, *f, entity, own, now, fault))).collect();
                text.push_str(&layout.row(group, number, &cells));
                text.push('\n');
            }
            if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
                return ExitCode::FAILURE;
            }
            if self.times > 0 && round + 1 >= self.times {
                break;
            }
            let next = began + self.interval * (round as u32 + 1);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        ExitCode::SUCCESS
    }
}

/// By the host engine's number.
fn select_numbered(all: &[(Entity, u32)], path: &str) -> Vec<(Entity, u32)> {
    all.iter().copied().filter(|(_, number)| path == "*" || path.parse() == Ok(*number)).collect()
}

/// By `GPU`, `GPU/GI` or `GPU/GI/CI` in NVML's numbers, where `*` is any.
fn select_by_path(cards: &[(Entity, u32)], gpu: &[(Entity, u32)], compute: &[(Entity, u32)], path: &str) -> Vec<(Entity, u32)> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |part: &str, number: u32| part == "*" || part.parse() == Ok(number);
    let chosen = |entity: &Entity| match (*entity, &parts[..]) {
        (Entity::Card(card), [c]) => fits(c, card as u32),
        (Entity::Instance(card, gi), [c, g]) => fits(c, card as u32) && fits(g, gi),
        (Entity::Compute(card, gi, ci), [c, g, i]) => fits(c, card as u32) && fits(g, gi) && fits(i, ci),
        _ => false,
    };
    cards.iter().chain(gpu).chain(compute).copied().filter(|(entity, _)| chosen(entity)).collect()
}
