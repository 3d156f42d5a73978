//! A member: it comes to a card, holds memory there, trains at the pace that the card gives it, and tells the harness.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cards::{self, Cards};
use super::channel::Channel;
use super::epoch_length::{self, EpochLength, Shortening};
use super::epoch_plan::EpochPlan;
use super::host::Hosted;
use super::noise;
use super::options::Options;
use super::profiler::Profiler;
use super::queue::Work;
use super::serve::Serving;
use super::variables::Variables;
use crate::clock;
use crate::log::{Actor, Arrival, Event};
use crate::mps::client::{Client, Fate};
use crate::scenario::Who;
use crate::sim::Sim;
use crate::visible::Place;
use crate::workload::{Fit, Workload};

pub(super) const MIB: u64 = 1 << 20;
/// How much more a member takes that grows, unless the scenario says otherwise.
const GROWS_MIB: f64 = 1024.0;
const EPOCHS_BY_HAND: u64 = 2;
/// How often a member looks at the card.
pub const TICK: Duration = Duration::from_millis(20);
/// What it burns each time, so that it shows on the CPU.
const SPIN: Duration = Duration::from_micros(250);
const WARM_UP_S: f64 = 0.08;
const ILLEGAL_ACCESS: &str = "an illegal memory access was encountered";

/// Why a member ends.
#[derive(Debug)]
pub enum End {
    Done,
    Stopped,
    /// What it tells the harness, and the last line of its traceback.
    Failed {
        kind: &'static str,
        message: String,
    },
}

pub fn failed(kind: &'static str, message: impl Into<String>) -> End {
    End::Failed { kind, message: message.into() }
}

pub(super) fn cuda_error(what: &str) -> End {
    failed("other", format!("CUDA error: {what}"))
}

/// What a member is given.
pub struct Seat {
    /// The name of the folder of its workload.
    pub folder: String,
    pub variables: Variables,
    /// It is a thread of a process with others; none if it is a process.
    pub hosted: Option<Hosted>,
}

/// Where and what this member is.
pub struct Member {
    pub(super) sim: Sim,
    pub(super) channel: Channel,
    pub(super) variables: Variables,
    pub(super) hosted: Option<Hosted>,
    /// Whose doing the driver says it is.
    pub(super) actor: Actor,
    pub(super) who: Who,
    /// Its card, and those that it spreads its batches to.
    pub(super) places: Vec<Place>,
    pub(super) client: Option<Client>,
    /// The share of threads that MPS leaves it.
    pub(super) cap: Option<f64>,
    /// By place: the memory that MPS leaves it there.
    pub(super) limits_bytes: Vec<Option<u64>>,
    pub(super) workload: Workload,
    /// Beyond what the workload takes.
    pub(super) grown_mib: u64,
    /// When it began to train.
    trains_since: Option<Instant>,
    pub(super) fit: Fit,
    /// Noise: its factor on the pace.
    pub(super) own_pace: f64,
    /// How it is asked; none if it trains.
    pub(super) serving: Option<Serving>,
    /// Of an epoch, and of the whole data.
    pub(super) items: u64,
    pub(super) whole: u64,
    /// Of an epoch that is cut short.
    pub(super) batches: Option<u64>,
}

/// Be a member of the workload in a folder of that name.
pub fn main(folder: &str, options: Options) -> ExitCode {
    let channel = match Channel::join() {
        Ok(channel) => channel,
        Err(why) => {
            eprintln!("error: {why}\nhint: unset it to train by hand");
            return ExitCode::FAILURE;
        }
    };
    let seat = Seat { folder: folder.into(), variables: Variables::default(), hosted: None };
    ExitCode::from(train(seat, &options, channel).0)
}

/// Be a member, from its first word but one to its last: the code with which its script ends, and the channel, on which nothing more is
/// said of training.
pub fn train(seat: Seat, options: &Options, channel: Channel) -> (u8, Channel) {
    // A channel that outlives an error still has to hear of it.
    let (end, channel) = match Member::arrive(seat, options, channel) {
        Ok(mut member) => {
            let end = member.live(options);
            if member.hosted.is_some() {
                // The process stays; what was the thread's goes with it.
                let _ = member.log(Event::End);
            }
            (end, member.channel)
        }
        Err((why, channel)) => (Err(why), channel),
    };
    match end.err().unwrap_or(End::Done) {
        End::Done | End::Stopped => (0, channel),
        End::Failed { kind, message } => {
            channel.say("error", json!({ "kind": kind, "message": message }));
            let name = if kind == "out_of_memory" { "torch.OutOfMemoryError" } else { "RuntimeError" };
            eprintln!("Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n{name}: {message}");
            (1, channel)
        }
    }
}

impl Member {
    fn arrive(seat: Seat, options: &Options, channel: Channel) -> Result<Member, (End, Channel)> {
        let Seat { folder, variables, hosted } = seat;
        let parts = || -> Result<_, End> {
            let other = |why: String| failed("other", why);
            let sim = Sim::open().map_err(other)?;
            let workload = Workload::find(&folder, &options.0).map_err(other)?;
            let member = variables.number("COLLO_MEMBER");
            let who = Who { member, folder: folder.clone(), model: options.0.get("model").cloned() };
            let cards = cards::of(&sim, &who, options)?;
            Ok((sim, workload, who, cards))
        };
        let (sim, workload, who, Cards { places, client }) = match parts() {
            Ok(parts) => parts,
            Err(why) => return Err((why, channel)),
        };
        let fit = workload.on(&sim.cards[places[0].card]);
        let work = workload.batch_items.map(|batch_items| Work { item_s: fit.item_s, batch_items });
        let serving = match work.map(|work| Serving::read(options, work)).transpose() {
            Ok(serving) => serving,
            Err(why) => return Err((why, channel)),
        };
        let whole = workload.items(&options.0);
        let batch = options.number("batch_size").unwrap_or(1).max(1);
        let shortening = Shortening::from_variables(&variables);
        let serving = serving.map(|s| s.within(shortening.serving_s()));
        // Of all its cards, each of which has a batch of that size.
        let step_items = batch * places.len() as u64;
        let EpochLength { batches, is_cut } =
            epoch_length::of(&options.0, whole / step_items, fit.item_s * batch as f64, shortening);
        let items = batches * step_items;
        let batches = is_cut.then_some(batches);
        let percent = |name: &str| std::env::var(name).ok().and_then(|p| p.parse::<f64>().ok());
        let own = percent("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE").unwrap_or(100.0);
        let cap = client.as_ref().map(|c| c.percent.min(own)).filter(|p| *p < 100.0).map(|p| p / 100.0);
        let own_limits = std::env::var("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").unwrap_or_default();
        let limit = |(nth, place): (usize, &Place)| {
            let client = client.as_ref()?;
            [client.limit_bytes(&place.uuid), crate::mps::limit_of(&own_limits, nth)].into_iter().flatten().min()
        };
        let limits_bytes = places.iter().enumerate().map(limit).collect();
        let own_pace =
            noise::pace(&sim, who.member) / places.iter().map(|place| sim.scenario.slower(place.card)).fold(1.0, f64::max);
        let actor = hosted.as_ref().map_or(std::process::id().into(), Hosted::actor);
        Ok(Member {
            sim,
            channel,
            variables,
            hosted,
            actor,
            who,
            places,
            client,
            cap,
            limits_bytes,
            workload,
            grown_mib: 0,
            trains_since: None,
            fit,
            own_pace,
            serving,
            items,
            whole,
            batches,
        })
    }

    fn live(&mut self, options: &Options) -> Result<(), End> {
        let load = self.serving.as_ref().map_or_else(|| self.fit.load.clone(), |s| s.spread(&self.fit.load));
        let born = clock::born(self.actor.pid).unwrap_or(0);
        let arrival = |place: &Place| Arrival {
            born,
            card: place.card,
            gi: place.mig.map(|(gi, _)| gi),
            ci: place.mig.map(|(_, ci)| ci),
            sms: place.sm_share,
            memory: place.memory_share,
            server: self.client.as_ref().map(|c| c.server),
            lock: self.hosted.as_ref().map(|hosted| hosted.lock),
            serves: false,
            bytes: self.context_mib() * MIB,
            u: load.u,
            a: load.a,
            m: load.m,
            pcie: load.pcie,
            occupancy: load.occupancy,
            cap: self.cap,
            pace: self.own_pace,
        };
        self.come(self.places.iter().map(arrival).collect())?;
        self.hello(options);
        self.wait_for("warm_up")?;
        if self.sim.scenario.has("oom") && self.sim.scenario.means_member("oom", self.who.member) {
            return Err(self.out_of_memory(0, 20 * MIB, 12 * MIB));
        }
        if self.sim.scenario.means("never-fits", &self.who) {
            let capacity = self.places[0].memory_bytes;
            return Err(self.out_of_memory(0, capacity + 20 * MIB, capacity));
        }
        if self.sim.scenario.has("host-oom") && self.sim.scenario.means_member("host-oom", self.who.member) {
            // As torch's allocator on the CPU says it.
            return Err(failed(
                "out_of_memory",
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 16911433728 bytes",
            ));
        }
        self.hold_training(0)?;
        self.log(Event::Warm)?;
        self.rest(Duration::from_secs_f64(WARM_UP_S))?;
        let serving = self.serving.clone();
        if let Some(serving) = &serving {
            self.tell_capacity(serving)?;
        }
        self.log(Event::Idle)?;
        while self.sim.scenario.has("silent") && self.sim.scenario.means_member("silent", self.who.member) {
            self.rest(TICK)?;
        }
        self.channel.say("ready", json!({}));
        let go = self.wait_for("go")?;
        let plan = match go {
            Some(go) => EpochPlan::new(
                go["epochs"].as_u64().unwrap_or(EPOCHS_BY_HAND),
                go["measure_for_ns"].as_u64().unwrap_or(0),
                go["after_measured"] == "keep-running",
            ),
            None => EpochPlan::new(options.number("epochs").unwrap_or(EPOCHS_BY_HAND), 0, false),
        };
        self.log(Event::Train)?;
        self.trains_since = Some(Instant::now());
        match &serving {
            Some(serving) => self.serve(serving, plan)?,
            None => self.train(plan)?,
        }
        let _ = self.log(Event::End);
        Ok(())
    }

    fn train(&mut self, mut plan: EpochPlan) -> Result<(), End> {
        let work_s = self.items as f64 * self.fit.item_s / self.places.len() as f64;
        let mut start_ns = clock::now_ns();
        let now = self.sim.refresh();
        let mut done_s = self.progress_s(now).0;
        let profiler = Profiler::asked(&self.variables);
        while plan.goes_on() {
            let index = plan.index;
            let mut end_ns = self.until(done_s + work_s, start_ns)?;
            done_s += work_s;
            let loss = 2.3 / (1.0 + 0.2 * index as f64);
            let measured = plan.measures();
            if let Some(profiler) = profiler.as_ref().filter(|_| measured) {
                self.rest(profiler.extra(start_ns, end_ns))?;
                end_ns = clock::now_ns();
                let wrote = profiler.write(index, Duration::from_nanos(end_ns - start_ns));
                wrote.map_err(|why| failed("other", why.to_string()))?;
                let now = self.sim.refresh();
                done_s = self.progress_s(now).0;
            }
            let what = json!({
                "index": index, "measured": measured, "items": self.items,
                "start_ns": start_ns, "end_ns": end_ns, "loss": loss,
            });
            self.channel.say("epoch", what);
            if self.channel.by_hand() {
                println!("epoch {index} took {:.4} s, loss {loss:.4}", (end_ns - start_ns) as f64 / 1e9);
            }
            self.tell_memory();
            let is_done = plan.ends(start_ns, end_ns);
            start_ns = end_ns;
            if is_done {
                self.channel.say("done", json!({}));
            }
        }
        Ok(())
    }

    /// Train until so much work is done; the moment at which it was.
    fn until(&mut self, target_s: f64, start_ns: u64) -> Result<u64, End> {
        let mut before = (start_ns, None);
        loop {
            let now = self.look()?;
            let (progress, pace) = self.progress_s(now);
            if progress >= target_s {
                let exact = match before {
                    // The pace may have changed since: the line between two looks is near enough.
                    (then, Some(had)) if progress > had => {
                        then as f64 + (now - then) as f64 * (target_s - had) / (progress - had)
                    }
                    _ => now as f64,
                };
                return Ok((exact as u64).clamp(start_ns + 1, now));
            }
            before = (now, Some(progress));
            let rest = if pace > 0.0 { Duration::from_secs_f64((target_s - progress) / pace) } else { TICK };
            std::thread::sleep(rest.clamp(Duration::from_micros(200), TICK));
        }
    }

    /// Solo seconds of work done by now, and the pace.
    pub(super) fn progress_s(&self, now: u64) -> (f64, f64) {
        let history = self.sim.history();
        history.guest(self.actor).map_or((0.0, 0.0), |g| (history.progress_s(g, now), g.pace))
    }

    /// See what happened meanwhile, and end if it ends this member.
    pub(super) fn look(&mut self) -> Result<u64, End> {
        let now = self.sim.refresh();
        let until = Instant::now() + SPIN;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        if self.channel.is_stopped() {
            let _ = self.log(Event::End);
            return Err(End::Stopped);
        }
        if self.places.iter().any(|place| self.sim.is_lost(place.card)) {
            return Err(cuda_error("unspecified launch failure: the GPU is lost"));
        }
        if self.sim.is_on("crash") && self.sim.scenario.means_member("crash", self.who.member) {
            return Err(self.broken(ILLEGAL_ACCESS));
        }
        if let Some(how) = self.hosted.as_ref().and_then(|hosted| hosted.broken.get()) {
            return Err(cuda_error(how));
        }
        self.meet_its_fate()?;
        match self.client.as_ref().and_then(Client::fate) {
            None => Ok(now),
            Some(Fate::Fault) => Err(cuda_error("unspecified launch failure: a fatal fault on the MPS server")),
            Some(Fate::Terminated) => Err(cuda_error("the MPS client has been terminated (810)")),
            Some(Fate::Left) => Err(cuda_error("the connection to the MPS server failed (805)")),
        }
    }

    /// What the scenario has for this member so long after it began to train.
    fn meet_its_fate(&mut self) -> Result<(), End> {
        let Some(since) = self.trains_since else { return Ok(()) };
        let scenario = &self.sim.scenario;
        let is_due =
            |word: &str| scenario.means(word, &self.who) && since.elapsed().as_secs_f64() >= scenario.at_s(word).unwrap_or(0.0);
        if is_due("crashes") {
            return Err(self.broken(ILLEGAL_ACCESS));
        }
        if is_due("grows") && self.grown_mib == 0 {
            let more_mib = scenario.number("grows-mib").unwrap_or(GROWS_MIB) as u64;
            self.hold_training(more_mib.max(1))?;
        }
        Ok(())
    }

    /// An error after which no thread of the process can use CUDA: "this leaves the process in an inconsistent state and any further CUDA
    /// work will return the same error" (CUDA Runtime API, `cudaErrorIllegalAddress`).
    fn broken(&self, how: &str) -> End {
        if let Some(hosted) = &self.hosted {
            let _ = hosted.broken.set(how.to_string());
        }
        cuda_error(how)
    }

    fn rest(&mut self, whole: Duration) -> Result<(), End> {
        let until = Instant::now() + whole;
        loop {
            self.look()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// Wait for a command; by hand there is none.
    fn wait_for(&mut self, command: &str) -> Result<Option<Value>, End> {
        while !self.channel.by_hand() {
            self.look()?;
            if let Some(message) = self.channel.command(TICK).filter(|m| m["command"] == command) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn log(&mut self, event: Event) -> Result<(), End> {
        let actor = self.actor;
        self.sim.append(|_| vec![(actor, event)]).map_err(|why| failed("other", why))
    }
}
