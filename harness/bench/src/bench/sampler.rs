//! The cost of sampling 16 members, and its punctuality: they sleep, so that the machine is idle but for the sampler.

use anyhow::{Context, Result};
use collo_measure::observe::{Phase, View};
use collo_quantity::stats::nearest_rank;
use collo_store::monotonic_ns;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::Effort;
use crate::figure::{Figure, Statistic, Unit};
use crate::scratch_project::{Moment, ScratchProject};

const MEMBERS: u32 = 16;

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (rate_hz, most) in [(10, 0.005), (100, 0.02)] {
        figures.extend(at(ground, effort, rate_hz, most)?);
    }
    Ok(figures)
}

fn at(ground: &ScratchProject, effort: Effort, rate_hz: u32, most: f64) -> Result<Vec<Figure>> {
    let seconds = if effort.smoke { 1.0 } else { 30.0 };
    let name = format!("sampler-{rate_hz}");
    let lines = format!(
        "repetitions = 1\nepochs = 1\n[axes]\nworkload = \"ballast\"\nmegabytes = 64\nseconds = {seconds:?}\ndegree = {MEMBERS}\n\
         [sampling]\nrate_hz = {rate_hz}"
    );
    ground.write_experiment(&name, &lines)?;
    let bare_p99_s = nearest_rank(&mut bare_lateness_s(rate_hz, seconds)?, 0.99);
    let mut window = Window::default();
    let runs = ground.measure(&name, |cell| cell.degree == MEMBERS, &mut |moment| {
        if let Moment::Stands(view) = moment {
            window.see(view);
        }
        Ok(())
    })?;
    let quality = &runs.first().context("one run")?.run.record.sampling;
    let of = |source: &str| quality.iter().find(|q| q.source == source).with_context(|| format!("no sampling by `{source}`"));
    let (fast, slow) = (of("proc")?, of("host")?);
    let ms = |s: Option<f64>| s.map_or("–".into(), |s| format!("{:.3} ms", s * 1e3));
    let harness = window.ratio().map_or("–".into(), |r| format!("{:.3} %", 100.0 * r));
    Ok(vec![
        Figure {
            name: format!("sampling threads, {MEMBERS} members, {rate_hz} Hz"),
            unit: Unit::Share,
            value: fast.cpu_ratio.zip(slow.cpu_ratio).map(|(f, s)| f + s),
            count: fast.ticks as usize,
            limit: Some((most, Statistic::Value)),
            note: fast.cpu_ratio.zip(slow.cpu_ratio).map(|(f, s)| {
                format!(
                    "fast {:.3} %, slow {:.3} %, launch included; all threads of the harness while members train {harness}",
                    100.0 * f,
                    100.0 * s
                )
            }),
            ..Figure::default()
        },
        Figure {
            name: format!("lateness of a tick, {rate_hz} Hz"),
            value: fast.lateness_p50_s,
            p99: fast.lateness_p99_s,
            count: fast.ticks as usize,
            limit: Some((1e-3, Statistic::P99)),
            floor: bare_p99_s,
            note: Some(format!(
                "median; the largest {}, {} of {} ticks missed; a timer alone, before: p99 {}",
                ms(fast.lateness_max_s),
                fast.missed,
                fast.ticks,
                ms(bare_p99_s)
            )),
            ..Figure::default()
        },
    ])
}

/// How late this machine wakes an otherwise idle thread without any members: a lower bound for the sampler here.
fn bare_lateness_s(rate_hz: u32, seconds: f64) -> Result<Vec<f64>> {
    let ticks = (seconds * f64::from(rate_hz)) as u64;
    let timer = std::thread::spawn(move || -> nix::Result<Vec<f64>> {
        nix::sys::prctl::set_timerslack(1)?;
        let begin_ns = monotonic_ns();
        let late = |tick: u64| {
            let due_ns = begin_ns + tick * 1_000_000_000 / u64::from(rate_hz);
            let due = TimeSpec::new((due_ns / 1_000_000_000) as i64, (due_ns % 1_000_000_000) as i64);
            clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &due)?;
            Ok((monotonic_ns() - due_ns) as f64 / 1e9)
        };
        (1..=ticks).map(late).collect()
    });
    Ok(timer.join().map_err(|_| anyhow::anyhow!("the timer's thread ended early"))??)
}

/// CPU time of this whole process between the first and the last view with all members training.
#[derive(Default)]
struct Window {
    first: Option<(u64, i64)>,
    last: Option<(u64, i64)>,
}

impl Window {
    fn see(&mut self, view: &View) {
        if !view.members.iter().all(|m| m.phase == Phase::Measure) {
            return;
        }
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return };
        let now = (monotonic_ns(), (usage.user_time() + usage.system_time()).num_microseconds());
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn ratio(&self) -> Option<f64> {
        let ((begin_ns, before_us), (end_ns, after_us)) = self.first.zip(self.last)?;
        (end_ns > begin_ns).then(|| (after_us - before_us) as f64 * 1e3 / (end_ns - begin_ns) as f64)
    }
}
