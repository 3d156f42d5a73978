//! The cost of a campaign beside its members: a part of `study-uniform` on a simulated GPU, by the command itself, its total time
//! minus the time with a member running.

use anyhow::{Context, Result, ensure};
use collo_store::{Outcome, Runs, StoredRun, monotonic_ns};
use fs_err as fs;
use serde_json::Value as Json;

use super::Effort;
use crate::figure::{Figure, Statistic};
use crate::scratch_project::ScratchProject;
use crate::simulated::SimMachine;

/// In every mode, at every degree and batch size.
const PART: &str = r#"workload == "small""#;
const SMOKE: &str = r#"workload == "small" && batch_size == 32 && degree == 2 && sharing == "mps""#;
const EPOCH_S: &str = "0.2";
const MOST_S: f64 = 0.5;
const NAME: &str = "a run's cost outside its members";

pub fn run(ground: &ScratchProject, effort: Effort) -> Result<Vec<Figure>> {
    let found = SimMachine::new(ground, "orchestration", "a100-40gb").and_then(|room| Ok((room.collo()?, room)));
    let (collo, room) = match found {
        Ok(found) => found,
        Err(why) => return Ok(vec![Figure::absent(NAME, format!("{why:#}"))]),
    };
    write_experiment(ground)?;
    let part = if effort.smoke { SMOKE } else { PART };
    let words = ["run", "study-uniform", "--where", part, "--new", "--no-report", "--quiet"].map(std::ffi::OsStr::new);
    let words = [std::ffi::OsStr::new("-C"), ground.path().as_os_str()].into_iter().chain(words);
    let command = room.command(&collo, words).env("COLLO_SIM_EPOCH_S", EPOCH_S).stdout_null().stderr_capture();
    let begun_ns = monotonic_ns();
    let output = command.run()?;
    let ended_ns = monotonic_ns();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`collo run` ended with {}: {}", output.status, said.trim());
    let campaign = Runs::at(ground.path().join("runs")).find("study-uniform/last")?;
    let plan = &campaign.manifest().plan;
    let (runs, foreign) = campaign.runs()?;
    ensure!(foreign.is_empty() && runs.len() == plan.order.len(), "not every run was stored");
    ensure!(plan.refusals.is_empty(), "`{}` was refused", plan.refusals.first().map_or("", |r| &r.cell));
    let mut lives = runs.values().map(life).collect::<Result<Vec<_>>>()?;
    lives.sort_by_key(|life| life.begun_ns);
    Ok(figures(begun_ns, &lives, ended_ns, plan.cells.len()))
}

/// The study as it is, but with one repetition of each cell, and no pauses.
fn write_experiment(ground: &ScratchProject) -> Result<()> {
    let text = fs::read_to_string(ground.checkout().experiments().join("study-uniform.toml"))?;
    let line = |line: &str| match line.split('=').next().map(str::trim) {
        Some("repetitions") => "repetitions = 1".to_string(),
        Some("cooldown") => "cooldown = \"0s\"".to_string(),
        _ => line.to_string(),
    };
    let text: Vec<String> = text.lines().map(line).collect();
    fs::write(ground.path().join("experiments/study-uniform.toml"), text.join("\n") + "\n")?;
    Ok(())
}

/// When members of a run lived, and how much of it they waited for collo.
#[derive(Debug, Clone, PartialEq)]
struct Life {
    cell: String,
    begun_ns: u64,
    ended_ns: u64,
    /// From the last measured epoch until the last member's exit.
    farewell_s: Option<f64>,
}

fn life(run: &StoredRun) -> Result<Life> {
    let cell = run.record.cell.cell.clone();
    ensure!(run.record.outcome == Outcome::Completed, "`{cell}` ended as {}", run.record.outcome.text());
    let events = fs::read_to_string(run.path.join("events.jsonl"))?;
    let (begun_ns, ended_ns) = lived(&events).with_context(|| format!("`{cell}` has no member that began and ended"))?;
    let farewell_s = run.record.timeline.done_ns.map(|done_ns| ended_ns.saturating_sub(done_ns) as f64 / 1e9);
    Ok(Life { cell, begun_ns, ended_ns, farewell_s })
}

/// From the first member's start to the last one's end.
fn lived(events: &str) -> Option<(u64, u64)> {
    let events: Vec<Json> = events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let at = |what: &'static str| events.iter().filter(move |e| e.get(what).is_some()).filter_map(|e| e["at_ns"].as_u64());
    at("started").min().zip(at("ended").max())
}

/// `lives` in chronological order.
fn figures(begun_ns: u64, lives: &[Life], ended_ns: u64, cells: usize) -> Vec<Figure> {
    let s = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let Some((first, last)) = lives.first().zip(lives.last()) else { return vec![Figure::absent(NAME, "no run was stored")] };
    let (before_s, after_s) = (s(begun_ns, first.begun_ns), s(last.ended_ns, ended_ns));
    let between: Vec<(f64, &str)> = lives.windows(2).map(|w| (s(w[0].ended_ns, w[1].begun_ns), w[1].cell.as_str())).collect();
    let between_s: Vec<f64> = between.iter().map(|(s, _)| *s).collect();
    let all_s = before_s + after_s + between_s.iter().sum::<f64>();
    let largest = between.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let farewells_s: Vec<f64> = lives.iter().filter_map(|life| life.farewell_s).collect();
    let told = |name: &str, seconds: &[f64], note: String| Figure { note: Some(note), ..Figure::of_seconds(name, seconds) };
    vec![
        Figure {
            name: NAME.into(),
            value: Some(all_s / lives.len() as f64),
            count: lives.len(),
            limit: Some((MOST_S, Statistic::Value)),
            note: Some(format!(
                "mean of {} runs of {cells} cells of `study-uniform` (`small` alone, one repetition, epochs of about {EPOCH_S} s), {:.1} s in all; \
                 before the first {before_s:.2} s, after the last {after_s:.2} s, which more runs would share",
                lives.len(),
                s(begun_ns, ended_ns)
            )),
            ..Figure::default()
        },
        told(
            "from one run's members to the next",
            &between_s,
            largest.map_or("there was one run".into(), |(s, cell)| format!("median; the largest {s:.3} s, before `{cell}`")),
        ),
        told(
            "from the last epoch until no process is left",
            &farewells_s,
            "median; members are asked to stop and exit: inside their lives, so not in the figures above".into(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn life(cell: &str, begun_s: u64, ended_s: u64) -> Life {
        Life { cell: cell.into(), begun_ns: begun_s * S, ended_ns: ended_s * S, farewell_s: None }
    }

    #[test]
    fn what_no_member_lived_through_is_the_cost_of_the_campaign() {
        let found = figures(10 * S, &[life("a", 11, 15), life("b", 18, 20), life("c", 21, 25)], 27 * S, 3);
        // 17 s in all, of which members lived 4 + 2 + 4.
        assert_eq!(found[0].value, Some(7.0 / 3.0));
        assert_eq!((found[1].value, found[1].p99), (Some(2.0), Some(3.0)));
        assert!(found[1].note.as_deref().is_some_and(|n| n.contains("the largest 3.000 s, before `b`")));
        assert_eq!((found[2].value, figures(0, &[], 9, 0)[0].value), (None, None));
    }

    #[test]
    fn a_run_is_lived_from_the_first_start_to_the_last_end() {
        let events = [
            r#"{"at_ns": 5, "member": 1, "started": {"pid": 2}}"#,
            r#"{"at_ns": 4, "member": 0, "started": {"pid": 1}}"#,
            r#"{"at_ns": 6, "member": 0, "said": {"event": "ready"}}"#,
            r#"{"at_ns": 9, "member": 0, "ended": "exited with 0", "orphans": []}"#,
            r#"{"at_ns": 8, "member": 1, "ended": "exited with 0", "orphans": []}"#,
            "half a li",
        ];
        assert_eq!(lived(&events.join("\n")), Some((4, 9)));
        assert_eq!(lived(&events[..3].join("\n")), None);
    }
}
