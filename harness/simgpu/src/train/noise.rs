//! Why two runs of the same thing differ: log-normal noise per run, a slow drift of the machine, and now and then a straggler.

use crate::dice::Dice;
use crate::sim::Sim;

/// Standard deviation of the logarithm of the pace, unless the scenario says another.
const USUAL: f64 = 0.01;
const DRIFT_PERIOD_S: f64 = 1200.0;
/// One run in so many lags, by so many standard deviations.
const STRAGGLERS: f64 = 150.0;
const LAG: f64 = 5.0;

/// The factor on the pace of a run that begins now.
pub fn pace(sim: &Sim, member: Option<u32>) -> f64 {
    let sigma = sim.scenario.number("noise").unwrap_or(USUAL);
    if sigma <= 0.0 {
        return 1.0;
    }
    let who = member.map_or(String::new(), |m| m.to_string());
    let mut dice = match sim.scenario.value("seed") {
        // Runs follow each other, so how many members have left tells them apart.
        Some(seed) => Dice::of(&[seed, &who, &sim.history().ended.to_string()]),
        None => Dice::of(&[&who, &std::process::id().to_string(), &crate::clock::now_ns().to_string()]),
    };
    let run = sigma * dice.normal();
    let lag = if dice.share() < 1.0 / STRAGGLERS { LAG * sigma } else { 0.0 };
    let drift = match sim.scenario.has("seed") {
        true => 0.0,
        false => 0.5 * sigma * (std::f64::consts::TAU * sim.elapsed_s().unwrap_or(0.0) / DRIFT_PERIOD_S).sin(),
    };
    (run + drift - lag).exp()
}
