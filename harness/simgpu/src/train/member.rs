//! A member: it comes to a card, holds memory there, trains at the pace that the card gives it, and tells the harness.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::channel::Channel;
use super::epoch_plan::EpochPlan;
use super::noise;
use super::options::Options;
use super::queue::Work;
use super::serve::Serving;
use crate::clock;
use crate::log::{Arrival, Event};
use crate::mps::client::{Answer, Client, Fate, attach};
use crate::sim::Sim;
use crate::state::{EXCLUSIVE_PROCESS, PROHIBITED};
use crate::train::{PYTHON, TORCH, torch_cuda};
use crate::visible::{Place, places};
use crate::workload::{Fit, Workload};

const MIB: u64 = 1 << 20;
/// What a CUDA context takes.
const CONTEXT_MIB: u64 = 400;
/// What `cudaErrorDevicesUnavailable` says.
const UNAVAILABLE: &str = "CUDA-capable device(s) is/are busy or unavailable";
/// How long an epoch takes alone, about.
const EPOCH_S: f64 = 1.5;
const EPOCHS_BY_HAND: u64 = 2;
/// How often a member looks at the card.
pub const TICK: Duration = Duration::from_millis(20);
/// What it burns each time, so that it shows on the CPU.
const SPIN: Duration = Duration::from_micros(250);
const WARM_UP_S: f64 = 0.08;

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

fn cuda_error(what: &str) -> End {
    failed("other", format!("CUDA error: {what}"))
}

/// Where and what this member is.
pub struct Member {
    pub(super) sim: Sim,
    pub(super) channel: Channel,
    pub(super) number: Option<u32>,
    place: Place,
    client: Option<Client>,
    /// The share of threads that MPS leaves it.
    cap: Option<f64>,
    limit_bytes: Option<u64>,
    workload: Workload,
    pub(super) fit: Fit,
    /// Noise: its factor on the pace.
    pub(super) own_pace: f64,
    /// How it is asked; none if it trains.
    serving: Option<Serving>,
    /// Of an epoch, and of the whole data.
    items: u64,
    whole: u64,
    batches: Option<u64>,
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
    // A channel that outlives an error still has to hear of it.
    let (end, channel) = match Member::arrive(folder, &options, channel) {
        Ok(mut member) => (member.live(&options), member.channel),
        Err((why, channel)) => (Err(why), channel),
    };
    match end.err().unwrap_or(End::Done) {
        End::Done | End::Stopped => ExitCode::SUCCESS,
        End::Failed { kind, message } => {
            channel.say("error", json!({ "kind": kind, "message": message }));
            let name = if kind == "out_of_memory" { "torch.OutOfMemoryError" } else { "RuntimeError" };
            eprintln!("Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

impl Member {
    fn arrive(folder: &str, options: &Options, channel: Channel) -> Result<Member, (End, Channel)> {
        let parts = || -> Result<_, End> {
            let other = |why: String| failed("other", why);
            let sim = Sim::open().map_err(other)?;
            let workload = Workload::find(folder, &options.0).map_err(other)?;
            let number = std::env::var("COLLO_MEMBER").ok().and_then(|n| n.parse().ok());
            let (place, client) = device(&sim, number)?;
            Ok((sim, workload, number, place, client))
        };
        let (sim, workload, number, place, client) = match parts() {
            Ok(parts) => parts,
            Err(why) => return Err((why, channel)),
        };
        let fit = workload.on(&sim.cards[place.card]);
        let work = workload.batch_items.map(|batch_items| Work { item_s: fit.item_s, batch_items });
        let serving = match work.map(|work| Serving::read(options, work)).transpose() {
            Ok(serving) => serving,
            Err(why) => return Err((why, channel)),
        };
        let whole = workload.items(&options.0);
        let batch = options.number("batch_size").unwrap_or(1).max(1);
        let wished_s = std::env::var("COLLO_SIM_EPOCH_S").ok().and_then(|s| s.parse().ok()).unwrap_or(EPOCH_S);
        let serving = serving.map(|s| s.within(wished_s));
        let asked = options.number("limit_batches").filter(|n| *n > 0);
        let short = ((wished_s / (fit.item_s * batch as f64)).round() as u64).max(1);
        let batches = Some(asked.unwrap_or(short).min(short)).filter(|b| b * batch < whole);
        let items = batches.map_or((whole / batch).max(1) * batch, |b| b * batch);
        let percent = |name: &str| std::env::var(name).ok().and_then(|p| p.parse::<f64>().ok());
        let own = percent("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE").unwrap_or(100.0);
        let cap = client.as_ref().map(|c| c.percent.min(own)).filter(|p| *p < 100.0).map(|p| p / 100.0);
        let own_limit = || crate::mps::limit_of(&std::env::var("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT").ok()?, 0);
        let limit_bytes = client.as_ref().and_then(|c| [c.limit_bytes, own_limit()].into_iter().flatten().min());
        let own_pace = noise::pace(&sim, number);
        Ok(Member {
            sim,
            channel,
            number,
            place,
            client,
            cap,
            limit_bytes,
            workload,
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
        let (gi, ci) = self.place.mig.unzip();
        let arrival = Arrival {
            born: clock::born(std::process::id()).unwrap_or(0),
            card: self.place.card,
            gi,
            ci,
            sms: self.place.sm_share,
            memory: self.place.memory_share,
            server: self.client.as_ref().map(|c| c.server),
            serves: false,
            bytes: CONTEXT_MIB * MIB,
            u: load.u,
            a: load.a,
            m: load.m,
            pcie: load.pcie,
            cap: self.cap,
            pace: self.own_pace,
        };
        self.hold(CONTEXT_MIB * MIB, Event::Start(arrival))?;
        self.hello(options);
        self.wait_for("warm_up")?;
        if self.sim.scenario.has("oom") && self.sim.scenario.means_member("oom", self.number) {
            return Err(self.out_of_memory(20 * MIB, 12 * MIB));
        }
        if self.sim.scenario.has("host-oom") && self.sim.scenario.means_member("host-oom", self.number) {
            // As torch's allocator on the CPU says it.
            return Err(failed(
                "out_of_memory",
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate 16911433728 bytes",
            ));
        }
        let held = (CONTEXT_MIB + self.workload.memory_mib) * MIB;
        self.hold(held, Event::Memory(held))?;
        self.log(Event::Warm)?;
        self.rest(Duration::from_secs_f64(WARM_UP_S))?;
        let serving = self.serving.clone();
        if let Some(serving) = &serving {
            self.tell_capacity(serving)?;
        }
        self.log(Event::Idle)?;
        while self.sim.scenario.has("silent") && self.sim.scenario.means_member("silent", self.number) {
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
        match &serving {
            Some(serving) => self.serve(serving, plan)?,
            None => self.train(plan)?,
        }
        let _ = self.log(Event::End);
        Ok(())
    }

    fn train(&mut self, mut plan: EpochPlan) -> Result<(), End> {
        let work_s = self.items as f64 * self.fit.item_s;
        let mut start_ns = clock::now_ns();
        let now = self.sim.refresh();
        let mut done_s = self.progress_s(now).0;
        while plan.goes_on() {
            let index = plan.index;
            let end_ns = self.until(done_s + work_s, start_ns)?;
            done_s += work_s;
            let loss = 2.3 / (1.0 + 0.2 * index as f64);
            let measured = plan.measures();
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

    pub(super) fn tell_memory(&self) {
        let allocated = self.workload.memory_mib * MIB * 9 / 10;
        let memory = json!({ "allocated_bytes": allocated, "reserved_bytes": self.workload.memory_mib * MIB });
        self.channel.say("memory", memory);
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
        history.guest(std::process::id()).map_or((0.0, 0.0), |g| (history.progress_s(g, now), g.pace))
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
        if self.sim.is_on("lost") {
            return Err(cuda_error("unspecified launch failure: the GPU is lost"));
        }
        if self.sim.is_on("crash") && self.sim.scenario.means_member("crash", self.number) {
            return Err(cuda_error("an illegal memory access was encountered"));
        }
        match self.client.as_ref().and_then(Client::fate) {
            None => Ok(now),
            Some(Fate::Fault) => Err(cuda_error("unspecified launch failure: a fatal fault on the MPS server")),
            Some(Fate::Terminated) => Err(cuda_error("the MPS client has been terminated (810)")),
            Some(Fate::Left) => Err(cuda_error("the connection to the MPS server failed (805)")),
        }
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
        self.sim.append(|_| vec![(std::process::id(), event)]).map_err(|why| failed("other", why))
    }

    /// Hold so many bytes, all told, if there is room for them.
    fn hold(&mut self, bytes: u64, event: Event) -> Result<(), End> {
        let me = std::process::id();
        let (place, limit) = (self.place.clone(), self.limit_bytes);
        let foreign = place.card == self.sim.first_card() && place.mig.is_none() && crate::nvml::foreign(&self.sim).is_some();
        let client = self.client.is_some();
        let begins = matches!(event, Event::Start(_));
        let foreign_bytes = if foreign { crate::nvml::foreign_bytes(&self.sim) } else { 0 };
        let refused = self.sim.append_if(|sim| {
            // Looked at under the lock: of two that come at the same moment one is the second.
            let exclusive = begins && !client && sim.state().cards[place.card].compute_mode == EXCLUSIVE_PROCESS;
            let is_there = |g: &crate::history::Guest| g.here.card == place.card && clock::lives(g.pid, g.here.born);
            if exclusive && sim.history().guests.iter().any(is_there) {
                return Err(NoRoom::Taken);
            }
            let gi = place.mig.map(|(gi, _)| gi);
            let here = sim.history().guests.iter().filter(|g| g.here.card == place.card && g.here.gi == gi && g.pid != me);
            let others: u64 = here.map(|g| g.bytes).sum::<u64>() + foreign_bytes;
            let own = limit.unwrap_or(u64::MAX);
            let free = place.memory_bytes.saturating_sub(others).min(own);
            if bytes > free { Err(NoRoom::Bytes(free)) } else { Ok(vec![(me, event)]) }
        });
        match refused {
            Ok(()) => Ok(()),
            Err(NoRoom::Bytes(free)) => Err(self.out_of_memory(bytes, free)),
            Err(NoRoom::Taken) => Err(cuda_error(UNAVAILABLE)),
            Err(NoRoom::Folder(why)) => Err(failed("other", why)),
        }
    }

    fn out_of_memory(&self, asked: u64, free: u64) -> End {
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        let missing = asked.saturating_sub(free).max(20 * MIB) as f64 / MIB as f64;
        let (capacity, free) = (gib(self.place.memory_bytes), free as f64 / MIB as f64);
        let free = free.min(missing);
        let words = format!(
            "CUDA out of memory. Tried to allocate {missing:.2} MiB. GPU 0 has a total capacity of {capacity:.2} GiB of which \
             {free:.2} MiB is free."
        );
        failed("out_of_memory", words)
    }

    fn hello(&self, options: &Options) {
        let scenario = &self.sim.scenario;
        let wrong = |word: &str| scenario.has(word) && scenario.means_member(word, self.number);
        let sms = self.cap.map_or(self.place.sms, |cap| ((f64::from(self.place.sms) * cap) as u32 / 2 * 2).max(2));
        let device = match () {
            () if wrong("wrong-device") => "GPU-00000000-0000-5000-8000-000000000000",
            () if wrong("no-cuda") => "cpu",
            () => &self.place.uuid,
        };
        let sms = if wrong("wrong-sm") { sms + 2 } else { sms };
        let sms = (!wrong("no-cuda")).then_some(sms);
        let text = |name: &str, other: &str| options.0.get(name).cloned().unwrap_or_else(|| other.to_string());
        let threads = std::env::var("COLLO_THREADS").ok().and_then(|t| t.parse::<u32>().ok()).unwrap_or(1);
        let mut hello = json!({
            "protocol": 1,
            "pid": std::process::id(),
            "device": device,
            "sm_count": sms,
            "memory_bytes": self.place.memory_bytes,
            "threads": threads,
            "versions": { "python": PYTHON, "torch": TORCH },
            "model": { "name": text("model", "simulated"), "parameters": self.workload.parameters },
            "dataset": { "name": text("dataset", "simulated"), "synthetic": true, "items": self.whole },
            "limit_batches": self.batches,
            "regime": regime(options),
            "precision": text("precision", "fp32"),
            "allocator": "native",
        });
        if let (Some(serving), Some(said)) = (&self.serving, hello.as_object_mut()) {
            // There is no data set, and an epoch is as long as it is.
            said.remove("dataset");
            said.remove("limit_batches");
            said.insert("serving".into(), serving.hello());
        }
        if self.channel.by_hand() {
            println!("simulated; device {device}, {} SMs, {} items an epoch", sms.unwrap_or(0), self.items);
        }
        self.channel.say("hello", hello);
    }
}

/// What a hello tells of the regime, as workloads/collo_torch.py does: of the settings that were given.
fn regime(options: &Options) -> serde_json::Map<String, Value> {
    const NAMES: [&str; 14] = [
        "recipe",
        "precision",
        "read_loss",
        "workers",
        "keep_cache",
        "augmentation",
        "crop",
        "validate",
        "optimiser",
        "nesterov",
        "weight_decay",
        "label_smoothing",
        "schedule",
        "schedule_epochs",
    ];
    let typed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
    NAMES.into_iter().filter_map(|name| Some((name.to_string(), typed(options.0.get(name)?)))).collect()
}

enum NoRoom {
    /// The card takes one process at a time, and another has it.
    Taken,
    Bytes(u64),
    Folder(String),
}

impl From<String> for NoRoom {
    fn from(why: String) -> NoRoom {
        NoRoom::Folder(why)
    }
}

/// The device that CUDA gives this process, and the MPS server that it is a client of.
fn device(sim: &Sim, number: Option<u32>) -> Result<(Place, Option<Client>), End> {
    if sim.is_on("lost") {
        return Err(failed("other", "No CUDA GPUs are available"));
    }
    let (_, brings) = sim.driver();
    if torch_cuda().split('.').next().and_then(|major| major.parse().ok()).is_some_and(|major: i32| major > brings / 1000) {
        let words = "The NVIDIA driver on your system is too old";
        return Err(failed("other", format!("{words} (found version {brings}). Please update your GPU driver")));
    }
    let variable = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let none = || failed("other", "No CUDA GPUs are available");
    let alone = sim.scenario.has("mps-no-attach") && sim.scenario.means_member("mps-no-attach", number);
    let answer = if alone { Answer::Nobody } else { attach() };
    let client = match answer {
        Answer::Nobody => None,
        Answer::Served(client) => Some(client),
        Answer::Refused(code) => return Err(cuda_error(&format!("the MPS server is not ready to accept new clients ({code})"))),
    };
    let place = match &client {
        None => places(sim, variable.as_deref()).into_iter().next().ok_or_else(none)?,
        Some(client) => {
            // A server counts its own devices from 0.
            let first = variable.as_deref().map_or("0", |v| v.split(',').next().unwrap_or(""));
            let by_uuid = |uuid: &&String| first.len() > 4 && uuid.starts_with(first);
            let uuid = match first.parse::<usize>() {
                Ok(index) => client.devices.get(index),
                Err(_) => client.devices.iter().find(by_uuid),
            };
            places(sim, Some(uuid.ok_or_else(none)?)).into_iter().next().ok_or_else(none)?
        }
    };
    if sim.state().cards[place.card].compute_mode == PROHIBITED {
        return Err(cuda_error(UNAVAILABLE));
    }
    Ok((place, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regime_is_that_of_the_settings_and_of_no_others() {
        let words =
            ["--model=resnet26", "--recipe=timm", "--precision=tf32", "--workers=4", "--validate=true", "--weight-decay=0.00002"];
        let told = regime(&Options::read(&words.map(str::to_string)));
        let expected = json!({ "recipe": "timm", "precision": "tf32", "workers": 4, "validate": true, "weight_decay": 2e-5 });
        assert_eq!(Value::Object(told), expected);
    }
}
