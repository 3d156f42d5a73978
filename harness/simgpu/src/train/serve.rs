//! A member that answers requests on the simulated card, as the workload `serve` does on a real one.
//!
//! While it serves it is on the card with the load that it has on average, because the card sees it come and go too quickly to be
//! told each time. Its pace while it answers follows from the pace that the card gives that load.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::epoch_plan::EpochPlan;
use super::member::{End, Member, TICK, failed};
use super::options::Options;
use super::queue::{Queue, Request, Work, poisson};
use crate::clock;
use crate::dice::Dice;
use crate::model::Load;

/// Nearer to its capacity the queue of an open loop is as long as the run.
const FULL: f64 = 0.95;
/// So many times its capacity is no rate that a busy machine cannot serve, but a mistake.
const HOPELESS: f64 = 10.0;

/// How a member is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Serving {
    rate_per_s: f64,
    batch_size: usize,
    slo_s: Option<f64>,
    window_s: f64,
    seed: String,
    work: Work,
    /// The share of its time in which it answers, alone.
    busy: f64,
}

/// `50ms` in seconds.
fn seconds(text: &str) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let unit = match &text[at..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    text[..at].trim().parse::<f64>().ok().map(|n| n * unit).filter(|s| *s > 0.0)
}

impl Serving {
    /// From the options of its script; what the script refuses is refused here, too.
    pub fn read(options: &Options, work: Work) -> Result<Serving, End> {
        let setting = |why: String| failed("setting", why);
        let text = |name: &str, default: &str| options.0.get(name).cloned().unwrap_or_else(|| default.to_string());
        let (slo, window, rate) = (text("slo", "50ms"), text("window", "10s"), text("rate", "20.0"));
        let unit = |name: &str, said: &str| {
            setting(format!("`{name}` is `{said}`: it is a time above 0 with its unit, as in `50ms` or `2s`"))
        };
        let slo_s = match slo.as_str() {
            "" => None,
            said => Some(seconds(said).ok_or_else(|| unit("slo", said))?),
        };
        let window_s = seconds(&window).ok_or_else(|| unit("window", &window))?;
        let above_0 = rate.parse::<f64>().ok().filter(|r| r.is_finite() && *r > 0.0);
        let rate_per_s = above_0.ok_or_else(|| setting(format!("`rate` is {rate}: it is above 0")))?;
        let batch_size = options.number("batch_size").unwrap_or(4).max(1) as usize;
        let busy = (rate_per_s * work.batch_s(1)).min(1.0);
        Ok(Serving { rate_per_s, batch_size, slo_s, window_s, seed: text("seed", "1"), work, busy })
    }

    /// The same in epochs of so long at most: a simulation is to be over soon.
    pub fn within(self, most_s: f64) -> Serving {
        Serving { window_s: self.window_s.min(most_s), ..self }
    }

    /// What its hello says of it.
    pub fn hello(&self) -> Value {
        json!({ "rate_per_s": self.rate_per_s, "batch_size": self.batch_size, "slo_s": self.slo_s })
    }

    /// The load of a member that answers, spread over the time in which it is idle.
    pub fn spread(&self, load: &Load) -> Load {
        Load { u: load.u * self.busy, pcie: load.pcie * self.busy, ..load.clone() }
    }

    /// Its pace while it answers, where the card gives its spread load this one: the stretch of its GPU work is the same for both.
    fn pace(&self, load: &Load, spread_pace: f64) -> f64 {
        let own = load.pace;
        let u = load.u * self.busy;
        if spread_pace <= 0.0 || own <= 0.0 || u <= 0.0 {
            return 0.0;
        }
        let stretch = ((own / spread_pace - (1.0 - u)) / u).max(0.0);
        own / ((1.0 - load.u) + load.u * stretch)
    }
}

impl Member {
    /// Alone on its part of the card, as it warms up: what it can answer, unless that is much less than it will be asked.
    pub fn tell_capacity(&mut self, serving: &Serving) -> Result<(), End> {
        let pace = self.answering(serving);
        let per_s = |count: usize| count as f64 / serving.work.batch_s(count) * pace;
        let capacity_per_s = per_s(serving.batch_size);
        let told = json!({ "requests_per_s": capacity_per_s, "one_by_one_per_s": per_s(1) });
        self.channel.say("capacity", told);
        // Less than it is asked for is a result, unless it is so much less that the rate must be a mistake.
        if serving.rate_per_s <= HOPELESS * capacity_per_s {
            return Ok(());
        }
        let (rate, batch, most) = (serving.rate_per_s, serving.batch_size, FULL * capacity_per_s);
        Err(failed(
            "setting",
            format!(
                "`rate` is {rate} a second, this device answers {capacity_per_s:.1} a second alone, {batch} at a time: lower \
                 `rate` to {most:.1}, or raise `batch_size`"
            ),
        ))
    }

    /// The pace at which it answers at this moment.
    fn answering(&mut self, serving: &Serving) -> f64 {
        let now = self.sim.refresh();
        let pace = self.progress_s(now).1;
        serving.pace(&Load { pace: self.own_pace, ..self.fit.load.clone() }, pace)
    }

    /// Answer requests, in epochs.
    pub fn serve(&mut self, serving: &Serving, plan: EpochPlan) -> Result<(), End> {
        // As the script: copies in a group draw their own times, and so does each repetition.
        let told = |name: &str| self.variables.get(name).unwrap_or_default();
        let dice = Dice::of(&["requests", &serving.seed, &told("COLLO_REPETITION"), &told("COLLO_COPY")]);
        let mut queue = Queue::new(serving.work, serving.batch_size, poisson(serving.rate_per_s, dice));
        let begun_ns = clock::now_ns();
        let served = self.serve_epochs(serving, &mut queue, begun_ns, plan);
        // However it ends, what came and was not answered belongs to the truth.
        let rest = queue.close();
        self.tell(begun_ns, &rest);
        served
    }

    fn serve_epochs(&mut self, serving: &Serving, queue: &mut Queue, begun_ns: u64, mut plan: EpochPlan) -> Result<(), End> {
        let window_ns = (serving.window_s * 1e9) as u64;
        let mut start_ns = begun_ns;
        let mut pace = self.answering(serving);
        let mut told = Instant::now();
        while plan.goes_on() {
            let index = plan.index;
            let end_ns = start_ns + window_ns;
            let mut answered = 0;
            loop {
                let now = self.look()?;
                queue.go_on(now.min(end_ns).saturating_sub(begun_ns) as f64 / 1e9, pace);
                pace = self.answering(serving);
                if now >= end_ns || told.elapsed() >= Duration::from_secs(1) {
                    told = Instant::now();
                    let over = queue.over();
                    answered += over.iter().filter(|r| r.end_s.is_some()).count();
                    self.tell(begun_ns, &over);
                }
                if now >= end_ns {
                    break;
                }
                std::thread::sleep(Duration::from_nanos(end_ns - now).min(TICK));
            }
            let measured = plan.measures();
            let what = json!({
                "index": index, "measured": measured, "items": answered,
                "start_ns": start_ns, "end_ns": end_ns, "loss": null,
            });
            self.channel.say("epoch", what);
            if self.channel.by_hand() {
                println!("epoch {index} took {:.4} s, {answered} requests answered", serving.window_s);
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

    fn tell(&self, begun_ns: u64, requests: &[Request]) {
        // A line has an end long before the harness stops reading it.
        for some in requests.chunks(2000) {
            let ns = |s: f64| begun_ns + (s * 1e9) as u64;
            let arrivals: Vec<u64> = some.iter().map(|r| ns(r.arrival_s)).collect();
            let starts: Vec<Option<u64>> = some.iter().map(|r| r.start_s.map(ns)).collect();
            let ends: Vec<Option<u64>> = some.iter().map(|r| r.end_s.map(ns)).collect();
            self.channel.say("requests", json!({ "arrival_ns": arrivals, "start_ns": starts, "end_ns": ends }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Card;
    use crate::model::moment;

    fn load(u: f64) -> Load {
        Load { u, a: 0.5, m: 0.2, pcie: 0.0, occupancy: None, cap: None, server: None, process: None, slice: None, pace: 1.0 }
    }

    fn serving(rate: &str) -> Serving {
        let options = Options([("rate".to_string(), rate.to_string())].into());
        let work = Work { item_s: 1e-3, batch_items: 7.0 };
        Serving::read(&options, work).unwrap_or_else(|_| panic!("{rate} can be had"))
    }

    #[test]
    fn alone_it_answers_at_full_pace_however_seldom_it_is_asked() {
        let card = Card::find("a100-40gb").unwrap();
        for rate in ["1", "20", "100"] {
            let serving = serving(rate);
            let pace = moment(&card, &[serving.spread(&load(0.9))], 1.0).paces[0];
            assert!((serving.pace(&load(0.9), pace) - 1.0).abs() < 1e-9, "{rate}: {pace}");
        }
    }

    #[test]
    fn beside_one_that_trains_an_answer_takes_about_twice_as_long_under_time_slicing() {
        let card = Card::find("a100-40gb").unwrap();
        let serving = serving("20");
        let paces = moment(&card, &[serving.spread(&load(0.9)), load(0.98)], 1.0).paces;
        let pace = serving.pace(&load(0.9), paces[0]);
        assert!((0.45..0.62).contains(&pace), "{pace}");
        assert!(paces[1] > 0.75, "who serves is idle most of the time: {}", paces[1]);
    }

    #[test]
    fn what_the_script_refuses_is_refused() {
        let said = |name: &str, value: &str| {
            let options = Options([(name.to_string(), value.to_string())].into());
            match Serving::read(&options, Work { item_s: 1e-3, batch_items: 7.0 }) {
                Err(End::Failed { kind: "setting", message }) => message,
                _ => panic!("{name}={value} was taken"),
            }
        };
        assert!(said("slo", "50").starts_with("`slo` is `50`: it is a time above 0 with its unit"));
        assert!(said("window", "").starts_with("`window` is ``"));
        assert!(said("rate", "0").starts_with("`rate` is 0: it is above 0"));
        assert!(said("rate", "often").starts_with("`rate` is often"));
    }
}
