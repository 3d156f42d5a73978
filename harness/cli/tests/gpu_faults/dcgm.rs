//! SM activity through DCGM and GPM: every version's `dcgmi`, with MIG off and on, and everything that it can get wrong. A solo, naive or MPS
//! cell has it, or a reason that is true; what cannot be believed is in no number, and in the samples as it was said.

use collo_analysis::campaign::Analysis;
use collo_quantity::Key;
use collo_store::StoredRun;

use super::{HALVES, MIG, MPS, NAIVE, two};
use crate::gpu_faults::looks::{absent, as_true, is_told};
use crate::gpu_faults::row::{Look, Row, Scenario, all, all_of, hold, row};
use crate::sim::Machine;
use crate::support::Answer;

const ACTIVITY: &str = "sm_active_ratio";
/// Instances of a quarter and of two.
const UNEQUAL: &str = "slices = { small = \"1g.5gb\", medium = \"2g.10gb\" }\n[[group]]\n\
    members = [{ workload = \"small\" }, { workload = \"medium\" }]\nsharing = \"mig\"";

fn a100(name: &'static str, words: &str, toml: &str) -> Row {
    row(name, format!("a100-40gb,noise=0,seed=1,{words}"), toml).env("COLLO_SIM_EPOCH_S", "0.5")
}

fn h100(name: &'static str, words: &str, toml: &str) -> Row {
    row(name, format!("h100-80gb,noise=0,seed=1,{words}"), toml).env("COLLO_SIM_EPOCH_S", "0.5")
}

fn analysed(machine: &Machine) -> Result<Analysis, String> {
    let report = collo_report::Report::of(&machine.bench.campaign()).map_err(|e| e.to_string())?;
    Ok(report.analysis)
}

/// Why SM activity of the card was absent in each run, as stored.
fn reason(run: &StoredRun) -> String {
    let of_it = |key: &str| key.starts_with(ACTIVITY);
    let dcgm = run.record.sampling.iter().filter(|q| q.source.starts_with("dcgm"));
    dcgm.flat_map(|q| &q.absent).filter(|(key, _)| of_it(key)).map(|(key, why)| format!("{key}: {why}\n")).collect()
}

/// A run that was over before DCGM answered, as on a busy machine, which shows nothing of the answer.
fn was_too_short(reason: &str) -> bool {
    let is_of_the_end = |line: &str| ["sampling ended before", "dcgmi printed no row of it"].iter().any(|it| line.contains(it));
    !reason.is_empty() && reason.lines().all(is_of_the_end)
}

/// Each run that DCGM answered has these words, and some run was answered.
fn each_says(machine: &Machine, words: &[&str]) -> Result<(), String> {
    let runs = machine.bench.runs();
    let answered: Vec<(&String, String)> =
        runs.iter().map(|(folder, run)| (folder, reason(run))).filter(|(_, reason)| !was_too_short(reason)).collect();
    hold(!answered.is_empty(), || "every run was over before DCGM answered".into())?;
    let other = answered.iter().find(|(_, reason)| !words.iter().all(|word| reason.contains(word)));
    hold(other.is_none(), || format!("of activity: {other:?}"))
}

fn raw(run: &StoredRun) -> Vec<f64> {
    let read = collo_store::read_samples(&run.path.join("samples.parquet"), |s, _, m| s == "dcgm" && m == ACTIVITY);
    read.expect("readable").into_values().flatten().filter_map(|r| r.2).collect()
}

/// No source is said to have ended before the run did.
fn nothing_ended_early(machine: &Machine, _: &Answer) -> Result<(), String> {
    machine.bench.runs().iter().try_for_each(|(folder, run)| {
        let early: Vec<_> =
            run.record.sampling.iter().flat_map(|q| &q.absent).filter(|(_, why)| why.contains("ended early")).collect();
        hold(early.is_empty(), || format!("{folder}: {early:?}"))
    })
}

/// The version of `dcgmi` is on record.
fn names_3_3_9(machine: &Machine, _: &Answer) -> Result<(), String> {
    machine.bench.runs().iter().try_for_each(|(folder, run)| {
        let versions: Vec<_> = run.record.sampling.iter().filter_map(|q| q.instrument.as_ref()?.version.clone()).collect();
        hold(versions.iter().all(|v| v == "3.3.9") && !versions.is_empty(), || format!("{folder}: {versions:?}"))
    })
}

#[test]
fn every_version_tells_sm_activity_of_a_card_with_mig_off() {
    let told =
        |name, words, toml| a100(name, words, toml).once_dcgm_prints().looks(is_told).looks(as_true).looks(nothing_ended_early);
    all(vec![
        told("DCGM 2.3", "dcgm=2.3", NAIVE),
        told("DCGM 2.4", "dcgm=2.4", NAIVE),
        told("DCGM 3.1", "dcgm=3.1", NAIVE),
        told("DCGM 3.3", "dcgm=3.3", NAIVE).looks(names_3_3_9),
        told("DCGM 4.0", "dcgm=4.0", NAIVE),
        told("DCGM 4.2", "dcgm=4.2", NAIVE),
        told("DCGM 4.4", "dcgm=4.4", NAIVE),
        told("DCGM 4.6", "dcgm=4.6", NAIVE),
        told("DCGM 3.3 and MPS", "dcgm=3.3", MPS),
        told("DCGM 4.6 and MPS", "dcgm=4.6", MPS),
        told("the host engine's numbers are not NVML's", "gpus=2,dcgm-renumbered", NAIVE),
        told("beside a display GPU", "display", NAIVE),
        told("no list of switches", "dcgm-no-switches", NAIVE),
        told("no list of switches in 3.3", "dcgm-no-switches,dcgm=3.3", NAIVE),
        told("CUDA_VISIBLE_DEVICES is none of dcgmi's business", "", NAIVE).env("CUDA_VISIBLE_DEVICES", "0"),
    ]);
}

#[test]
fn every_version_tells_sm_activity_of_equal_instances() {
    let told =
        |name, words| a100(name, words, HALVES).once_dcgm_prints().looks(is_told).looks(as_true).looks(nothing_ended_early);
    all(vec![
        told("DCGM 2.3", "dcgm=2.3"),
        told("DCGM 2.4", "dcgm=2.4"),
        told("DCGM 3.1", "dcgm=3.1"),
        told("DCGM 4.2", "dcgm=4.2"),
        told("DCGM 4.4", "dcgm=4.4"),
        told("numbers of cards that are not NVML's", "gpus=2,dcgm-renumbered"),
    ]);
}

/// Above 1 is in the samples and in no number.
fn above_one_is_left_out(machine: &Machine, _: &Answer) -> Result<(), String> {
    let seen: Vec<f64> = machine.bench.runs().values().flat_map(raw).collect();
    hold(seen.contains(&1.294), || "the raw value is not kept".into())?;
    let analysis = analysed(machine)?;
    for cell in analysis.cells.iter() {
        let mean = cell.metrics.get(ACTIVITY).map(|q| q.estimate);
        hold(mean.is_some_and(|m| m > 0.05 && m <= 1.0), || format!("{}: {mean:?} of {seen:?}", cell.name()))?;
        let peak = cell.metrics.get("sm_active_p95_ratio").map(|q| q.estimate);
        hold(peak.is_none_or(|p| p <= 1.0), || format!("{}: {peak:?}", cell.name()))?;
        hold(cell.metrics.contains_key("graphics_active_ratio"), || "what stood beside it went, too".into())?;
        let said = cell.suspicious.iter().any(|s| s.contains("above 1"));
        hold(said, || format!("{}: {:?}", cell.name(), cell.suspicious))?;
    }
    Ok(())
}

/// Cells whose SM activity is in no number for a reason with these words, and is told of the others.
fn cells_lack(machine: &Machine, which: fn(&str) -> bool, words: &str) -> Result<(), String> {
    let analysis = analysed(machine)?;
    hold(analysis.cells.iter().any(|c| which(&c.record.sharing)), || "no such cell".into())?;
    for cell in &analysis.cells {
        let (mean, why) = (cell.metric(Key::SmActive), cell.absent.get(&Key::SmActive));
        let is_right = match which(&cell.record.sharing) {
            true => mean.is_none() && why.is_some_and(|why| why.contains(words)),
            false => mean.is_some(),
        };
        hold(is_right, || format!("{}: {mean:?} {why:?}", cell.name()))?;
    }
    Ok(())
}

fn any(_: &str) -> bool {
    true
}

fn unequal_is_left_out(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let mixed = runs.values().find(|r| r.record.cell.members.len() == 2).ok_or("no run of both")?;
    hold(raw(mixed).iter().any(|v| *v > 0.0), || "the raw values are not kept".into())?;
    let analysis = analysed(machine)?;
    for cell in &analysis.cells {
        let both = cell.record.members.len() == 2;
        let (mean, why) = (cell.metric(Key::SmActive), cell.absent.get(&Key::SmActive));
        let is_right = match both {
            true => mean.is_none() && why.is_some_and(|w| w.contains("1g and 2g")) && !cell.suspicious.is_empty(),
            false => mean.is_some(),
        };
        hold(is_right, || format!("{}: {mean:?} {why:?} {:?}", cell.name(), cell.suspicious))?;
        // What is not of SMs is its own.
        hold(cell.metrics.contains_key("pcie_rx_bytes_per_s"), || "its traffic is gone, too".into())?;
    }
    Ok(())
}

/// On Hopper every cell has it.
fn all_have_it(machine: &Machine, _: &Answer) -> Result<(), String> {
    cells_lack_none(&analysed(machine)?)
}

fn cells_lack_none(analysis: &Analysis) -> Result<(), String> {
    let without = analysis.cells.iter().find(|c| !c.metrics.contains_key(ACTIVITY));
    hold(without.is_none(), || format!("{:?}", without.map(|c| (c.name(), &c.absent))))
}

#[test]
fn what_dcgm_gets_wrong_is_in_the_samples_and_in_no_number() {
    let zero: Look = |m, _| cells_lack(m, any, "DCGM reported 0 for the GPU throughout");
    let mixed = UNEQUAL.replace("1g.5gb", "1g.10gb").replace("2g.10gb", "2g.20gb");
    all(vec![
        a100("shares above 1", "sm-over-one", NAIVE).once_dcgm_prints().looks(above_one_is_left_out),
        a100("shares above 1 of instances", "sm-over-one", HALVES).once_dcgm_prints().looks(above_one_is_left_out),
        a100("shares above 1 in 3.3", "sm-over-one,dcgm=3.3", NAIVE).once_dcgm_prints().looks(above_one_is_left_out),
        a100("unequal instances", "", UNEQUAL).once_dcgm_prints().looks(unequal_is_left_out),
        a100("unequal instances in 3.3", "dcgm=3.3", UNEQUAL).once_dcgm_prints().looks(unequal_is_left_out),
        h100("unequal instances by GPM", "", &mixed).looks(all_have_it),
        h100("unequal instances of a Hopper by DCGM", "no-gpm", &mixed).once_dcgm_prints().looks(all_have_it),
        a100("zeros from the beginning", "dcgm-zero", NAIVE).once_dcgm_prints().looks(zero),
        a100("zeros from the beginning, MPS", "dcgm-zero", MPS).once_dcgm_prints().looks(zero),
        a100("zeros where there is nothing", "dcgm-blank,dcgm=3.3", NAIVE).once_dcgm_prints().looks(zero),
        a100("zeros where there is nothing, just before it says so", "dcgm-blank,dcgm=4.4.1", NAIVE)
            .once_dcgm_prints()
            .looks(zero),
        a100("zeros of instances", "dcgm-zero", HALVES).once_dcgm_prints().looks(|m, _| {
            // With MIG on NVML has no utilisation to hold against it: it is enough that members trained.
            cells_lack(m, any, "DCGM reported 0 for the GPU throughout")
        }),
        a100("nothing where there is nothing", "dcgm-blank,dcgm=4.4", NAIVE).looks(absent),
    ]);
}

/// A long solo run whose readings fall to zero, until its fields are watched anew.
fn falls_silent(toml: &str) -> Result<(), String> {
    let machine = Machine::new("a100-40gb,noise=0,seed=1,dcgm-zero@1s=until-watched", toml).env("COLLO_SIM_EPOCH_S", "4");
    let answer = machine.run(&["--where", "degree == 1"]);
    hold(answer.code == Some(0), || format!("{answer:?}"))?;
    let runs = machine.bench.runs();
    let first = runs.values().next().ok_or("no run")?;
    let again = first.record.sampling.iter().flat_map(|q| &q.remarks).filter(|r| r.contains("restarted once")).count();
    hold(again == 1, || format!("{again} times, {:?}", first.record.sampling))?;
    let values = raw(first);
    let zeros = values.iter().filter(|v| **v == 0.0).count();
    let last = values.last().copied().unwrap_or(0.0);
    hold((20..60).contains(&zeros) && last > 0.0, || format!("{zeros} zeros, at last {last}: {values:?}"))?;
    let analysis = analysed(&machine)?;
    let cell = &analysis.cells[0];
    let mean = cell.metrics.get(ACTIVITY).map_or(0.0, |q| q.estimate);
    let busy: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
    let truth = busy.iter().sum::<f64>() / busy.len() as f64;
    hold((mean / truth - 1.0).abs() < 0.1, || format!("{mean} of {truth}: {:?}", cell.suspicious))?;
    hold(cell.suspicious.iter().any(|s| s.contains("DCGM reported 0")), || format!("{:?}", cell.suspicious))
}

#[test]
fn a_source_that_falls_to_zero_is_begun_again_once_and_the_zeros_are_no_readings() {
    all_of(vec![Scenario { name: "zeros after an Xid", words: String::new(), act: Box::new(|| falls_silent(NAIVE)) }]);
}

#[test]
fn what_dcgm_cannot_tell_has_its_reason_and_the_way_out() {
    let stale: Look = |m, _| {
        let cut = |run: &StoredRun| run.record.cell.sharing.starts_with("mig");
        let runs = m.bench.runs();
        let said: Vec<String> = runs.values().filter(|r| cut(r)).map(reason).filter(|r| !was_too_short(r)).collect();
        let is_right = said.iter().all(|s| s.contains("has not detected") && s.contains("restart nvidia-dcgm"));
        hold(is_right && !said.is_empty(), || format!("{said:?}"))
    };
    let owner: Look = |m, _| each_says(m, &["third-party Profiling module", "nsys", "dcgmi profile --pause"]);
    let module: Look = |m, _| each_says(m, &["not currently loaded", "datacenter-gpu-manager-4-proprietary"]);
    let engine: Look = |m, _| each_says(m, &["connect to host engine", "systemctl start nvidia-dcgm"]);
    let other: Look = |m, _| each_says(m, &["`dcgmi` 3.3.9 shows no unpartitioned GPU", "GPU 1 is"]);
    let other_2: Look = |m, _| each_says(m, &["`dcgmi` 2.4.7 shows no unpartitioned GPU", "GPU 1 is"]);
    all(vec![
        a100("somebody else has the counters", "profiler-owned", NAIVE).looks(absent).looks(owner),
        a100("somebody else has the counters, 2.3", "profiler-owned,dcgm=2.3", NAIVE).looks(absent).looks(owner),
        a100("somebody else has the counters, instances", "profiler-owned", HALVES).looks(absent).looks(owner),
        a100("no profiling module", "dcgm-no-profiling", NAIVE).looks(absent).looks(module),
        a100("no profiling module, 3.3", "dcgm-no-profiling,dcgm=3.3", MPS).looks(absent).looks(module),
        a100("no host engine", "no-dcgm", NAIVE).looks(absent).looks(engine),
        a100("instances are not noticed", "dcgm-stale", MIG).looks(stale),
        a100("another card is cut, 3.3", "gpus=2,mig=2×3g.20gb,dcgm=3.3", NAIVE).looks(absent).looks(other),
        a100("another card is cut, 2.4", "gpus=2,mig=2×3g.20gb,dcgm=2.4", NAIVE).looks(absent).looks(other_2),
        a100("another card is cut, 2.3", "gpus=2,mig=2×3g.20gb,dcgm=2.3", NAIVE).once_dcgm_prints().looks(is_told).looks(as_true),
        a100("another card is cut, 4.0", "gpus=2,mig=2×3g.20gb,dcgm=4.0", NAIVE).once_dcgm_prints().looks(is_told).looks(as_true),
        h100("nobody owns what Hopper has by GPM", "profiler-owned", NAIVE).looks(is_told).looks(as_true),
        h100("GPM is not permitted", "nvml:nvmlGpmSampleGet=4", NAIVE).once_dcgm_prints().looks(is_told).looks(as_true),
        h100("GPM is not permitted, and no DCGM", "nvml:nvmlGpmSampleGet=4,no-dcgm", NAIVE).looks(absent).looks(engine),
    ]);
}

/// The pipes that share counters with SM activity are left out, and it is said.
fn pipes_are_left_out(machine: &Machine, _: &Answer) -> Result<(), String> {
    machine.bench.runs().iter().try_for_each(|(folder, run)| {
        let all: Vec<String> =
            run.record.sampling.iter().flat_map(|q| &q.absent).map(|(key, why)| format!("{key}: {why}")).collect();
        let said = |pipe: &str| all.iter().any(|a| a.starts_with(pipe) && a.contains("alternate it with"));
        hold(said("fp64_active_ratio") && said("fp16_active_ratio"), || format!("{folder}: {all:?}"))?;
        hold(pipes(run) == 0, || "they are read".into())
    })
}

fn pipes_are_read(machine: &Machine, _: &Answer) -> Result<(), String> {
    machine.bench.runs().iter().try_for_each(|(folder, run)| hold(pipes(run) > 0, || format!("{folder}: they are not read")))
}

fn pipes(run: &StoredRun) -> usize {
    let is_pipe = |m: &str| ["fp64_active_ratio", "fp16_active_ratio"].contains(&m);
    let read = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, m| is_pipe(m)).expect("readable");
    read.values().flatten().filter(|r| r.2.is_some()).count()
}

#[test]
fn before_hopper_no_pipe_that_shares_counters_with_sm_activity_is_read_unless_asked_for() {
    let asked = format!("{}\n[sampling]\nsm_source = \"dcgm-pipes\"", two("naive"));
    all(vec![
        a100("left out", "", NAIVE).looks(pipes_are_left_out),
        a100("asked for", "", &asked).once_dcgm_prints().looks(pipes_are_read).looks(is_told),
        h100("on Hopper there is room", "no-gpm", NAIVE).looks(pipes_are_read),
    ]);
}

/// What the doctor says of SM activity, and whether he is content.
fn doctor(words: &str, code: i32, texts: &[&str]) -> Result<(), String> {
    let machine = Machine::new(words, NAIVE);
    let answer = machine.collo(&["doctor", "--require", "smact"]);
    hold(answer.code == Some(code), || format!("{answer:?}"))?;
    let missing = texts.iter().find(|t| !answer.stdout.contains(**t));
    hold(missing.is_none(), || format!("nobody says `{missing:?}`: {}", answer.stdout))
}

#[test]
fn the_doctor_believes_in_sm_activity_when_numbers_come() {
    let of = |name, words: &str, code, texts: &'static [&'static str]| {
        let (own, words) = (words.to_string(), words.to_string());
        Scenario { name, words, act: Box::new(move || doctor(&own, code, texts)) }
    };
    all_of(vec![
        of("an A100", "a100-40gb", 0, &["✓ smact", "dcgm 4.6.0: ", " Hz per GPU"]),
        of("an A100 with DCGM 3.3", "a100-40gb,dcgm=3.3", 0, &["✓ smact", "dcgm 3.3.9"]),
        of("an H100", "h100-80gb", 0, &["✓ smact", "gpm of the driver"]),
        of("no host engine", "a100-40gb,no-dcgm", 3, &["✗ smact", "`sudo systemctl start nvidia-dcgm`"]),
        of(
            "no profiling module",
            "a100-40gb,dcgm-no-profiling",
            3,
            &["✗ smact", "`Profiling` as: failed to load", "-4-proprietary"],
        ),
        of("the counters are somebody else's", "a100-40gb,profiler-owned", 3, &["✗ smact", "nsys"]),
        of("every field is blank", "a100-40gb,dcgm-blank", 3, &["✗ smact", "prints no value"]),
        of("GPM is not permitted", "h100-80gb,nvml:nvmlGpmSampleGet=4,no-dcgm", 3, &["✗ smact", "permission"]),
        of("a driver without GPM", "h100-80gb,nvml:nvmlGpmQueryDeviceSupport=13,no-dcgm", 3, &["✗ smact", "driver is too old"]),
        of("zeros where there is nothing", "a100-40gb,dcgm-blank,dcgm=3.3", 0, &["✓ smact", "the number is constant"]),
        of("the oldest", "a100-40gb,dcgm=2.3", 0, &["✓ smact", "dcgm 2.3.4"]),
        of("no switches", "a100-40gb,dcgm-no-switches", 0, &["✓ smact"]),
        Scenario {
            name: "one card is cut, and DCGM 3.3 is silent of the other",
            words: "a100-40gb,gpus=2,dcgm=3.3".into(),
            act: Box::new(|| {
                let machine = Machine::new("a100-40gb,gpus=2,dcgm=3.3", NAIVE);
                let cut = machine.collo(&["mig", "apply", "2×3g.20gb", "--gpu", "1"]);
                hold(cut.code == Some(0), || format!("{cut:?}"))?;
                let answer = machine.collo(&["doctor", "--require", "smact"]);
                let said = ["✗ smact", "of GPU 0", "shows no unpartitioned GPU", "and GPU 1 is"];
                let missing = said.iter().find(|t| !answer.stdout.contains(**t));
                hold(answer.code == Some(3) && missing.is_none(), || format!("{missing:?}: {answer:?}"))
            }),
        },
    ]);
}

#[test]
fn the_end_of_a_run_does_not_kill_what_samples_it() {
    let many = format!("repetitions = 4\n{NAIVE}");
    all(vec![
        a100("many runs", "", &many).env("COLLO_SIM_EPOCH_S", "0.2").looks(nothing_ended_early),
        a100("many runs, 2.3", "dcgm=2.3", &many).env("COLLO_SIM_EPOCH_S", "0.2").looks(nothing_ended_early),
    ]);
}
