//! What a user may read and change, drivers that cannot be read, who is on a card without being listed, and whose card it is.

use std::time::Instant;

use collo_store::Verdict;

use super::{BLOCKED, HALVES, MIG, MPS, NAIVE, SERIAL, two};
use crate::gpu_faults::others::{Somebody, only_indicative};
use crate::gpu_faults::row::{Row, Scenario, all, all_of, hold, row};
use crate::sim::Machine;
use crate::support::Answer;

const USER: &str = "a100-40gb,user";
const CUT: &str = "a100-40gb,user,mig=2×3g.20gb";
const UNEQUAL: &str = "a100-40gb,user,mig=3g.20gb/2g.10gb/1g.5gb/1g.5gb";

/// Small members on the smallest slice, medium ones on the next.
const MIXED: &str = "slices = { small = \"1g.5gb\", medium = \"2g.10gb\" }\n[[group]]\n\
    members = [{ workload = \"small\" }, { workload = \"medium\" }]\nsharing = \"mig\"";

fn answers(
    name: &'static str,
    words: &str,
    arguments: &'static [&'static str],
    check: fn(&Answer) -> Result<(), String>,
) -> Scenario {
    let own = words.to_string();
    let act = move || {
        let machine = Machine::new(&own, NAIVE);
        let answer = machine.collo(arguments);
        check(&answer).map_err(|e| format!("{e}: {answer:?}"))
    };
    Scenario { name, words: words.into(), act: Box::new(act) }
}

fn says(answer: &Answer, code: i32, texts: &[&str]) -> Result<(), String> {
    hold(answer.code == Some(code), || format!("it exits with {:?}, not {code}", answer.code))?;
    let all = format!("{}{}", answer.stdout, answer.stderr);
    texts.iter().try_for_each(|text| hold(all.contains(text), || format!("nobody says `{text}`")))
}

fn four(sharing: &str) -> String {
    two(sharing).replace("degree = 2", "degree = 4")
}

/// Each member sees the SMs of the slice that its record names: a user's instances have the order of their ids, not of their places.
fn members_are_on_their_slices(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let group = runs.values().find(|run| run.record.cell.degree == 4).ok_or("no group ran")?;
    let mut slices = Vec::new();
    for (number, member) in group.record.members.iter().enumerate() {
        let slice = member.slice.clone().ok_or("a member without a slice")?;
        let sees = |check: &&collo_store::Check| check.what == "SMs as it sees them" && check.member == Some(number as u32);
        let sms = group.record.attestation.checks.iter().find(sees).and_then(|check| check.found.clone());
        let expected = match slice.as_str() {
            "1g.5gb" => "14",
            "2g.10gb" => "28",
            _ => "42",
        };
        hold(sms.as_deref() == Some(expected), || format!("member {number} is said to be on {slice} and sees {sms:?} SMs"))?;
        slices.push(slice);
    }
    slices.sort();
    hold(slices == ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"], || format!("the slices are {slices:?}"))
}

#[test]
fn a_user_measures_what_needs_no_right_and_is_told_the_way_to_the_rest() {
    all(vec![
        row("naive, MIG off", USER, NAIVE),
        row("MPS, MIG off", USER, MPS),
        row("as found, MIG off", USER, NAIVE).with(&["--as-found"]),
        row("instances of a card that is not cut", USER, MIG)
            .exits(3)
            .says("this user may not partition it")
            .says("`sudo collo mig apply thirds")
            .says(" --as-found --gpu 0`"),
        row("instances as found of a card that is not cut", USER, MIG).with(&["--as-found"]).exits(3).says("is used as found"),
        row("naive and instances: what can run does", USER, two("naive").replace("\"naive\"", "[\"naive\", \"mig:2×2g.10gb\"]"))
            .says("this user may not partition it"),
        row("exclusive MPS takes a right", USER, MPS)
            .with(&["--exclusive"])
            .exits(1)
            .ends("mps", "not_staged")
            .says("this requires root"),
        row("the card is cut as needed", CUT, HALVES),
        row("the card is cut as needed, as found", CUT, HALVES).with(&["--as-found"]),
        row("MPS in the instances that are there", CUT, two("mig:2×3g.20gb+mps").replace("degree = 2", "degree = 4")),
        row("one of two instances", CUT, two("mig:3g.20gb").replace("degree = 2", "degree = 1")),
        row("another layout is there", CUT, MIG)
            .exits(3)
            .says("this needs 2×2g.10gb, GPU 0 has 2×3g.20gb, and this user may not partition it"),
        row("another layout is there, as found", CUT, MIG).with(&["--as-found"]).exits(3).says("is used as found, 2×3g.20gb"),
        row("the card is cut, and naive needs it whole", CUT, NAIVE)
            .exits(3)
            .says("this needs MIG off")
            .says("`sudo collo mig apply off"),
        row("the card is cut, and MPS needs it whole", CUT, MPS).exits(3).says("this needs MIG off"),
        row("unequal instances", UNEQUAL, MIXED),
        row("unequal instances, as found", UNEQUAL, MIXED).with(&["--as-found"]),
        row("members of one kind on all of them", UNEQUAL, four("mig:balanced")).looks(members_are_on_their_slices),
        row("two of four instances", UNEQUAL, two("mig:2×1g.5gb")),
        row("an instance that is there once", UNEQUAL, HALVES).exits(3).says("this needs 2×3g.20gb, GPU 0 has"),
        row("MIG is on and nothing is cut", "a100-40gb,user,mig=none", HALVES).exits(3).says("GPU 0 has MIG on, no instance"),
        row("nobody tells attributes", format!("{CUT},nvml:nvmlDeviceGetAttributes_v2=4"), HALVES),
        row("a Hopper", "h100-80gb,user,no-dcgm", NAIVE),
        row("a Hopper that is cut", "h100-80gb,user,mig=2×3g.40gb", two("mig:2×3g.40gb")).with(&["--as-found"]),
    ]);
}

#[test]
fn a_user_is_told_how_a_card_is_cut_and_never_that_it_has_no_mig() {
    all_of(vec![
        answers("doctor, MIG off", USER, &["doctor"], |a| {
            says(a, 0, &["MIG off", "no permission to change GPU 0: the driver does not permit it", "Cannot: mig"])?;
            hold(!a.stdout.contains("no MIG"), || "it says that there is no MIG".into())
        }),
        answers("doctor, cut", CUT, &["doctor"], |a| {
            says(a, 0, &["MIG on (2×3g.20gb)", "mig on GPU 0 as found", "`--as-found`"])
        }),
        answers("doctor asks for MIG", USER, &["doctor", "--require", "mig"], |a| says(a, 3, &["missing requirements: mig"])),
        answers("doctor asks for MIG of root", "a100-40gb", &["doctor", "--require", "mig"], |a| {
            says(a, 0, &["can be partitioned by"])
        }),
        answers("export", CUT, &["mig", "export"], |a| says(a, 0, &["cut = [\"3g.20gb\", \"3g.20gb\"]"])),
        answers("export for mig-parted", CUT, &["mig", "export", "--format", "mig-parted"], |a| says(a, 0, &["\"3g.20gb\": 2"])),
        answers("assert what is", CUT, &["mig", "assert", "halves"], |a| says(a, 0, &["has layout `halves`"])),
        answers("assert with places", CUT, &["mig", "assert", "3g.20gb@0+3g.20gb@4"], |a| {
            says(a, 0, &["has layout", "the driver reports no places on GPU 0 to this user: sizes were compared"])
        }),
        answers("assert what is not", CUT, &["mig", "assert", "sevenths"], |a| says(a, 1, &["asked 7×1g.5gb, found 2×3g.20gb"])),
        answers("apply what is", CUT, &["mig", "apply", "halves"], |a| says(a, 0, &["nothing was changed"])),
        answers("apply takes a right", USER, &["mig", "apply", "halves"], |a| says(a, 3, &["no permission"])),
        answers("plan says what to type next", "a100-40gb,gpus=2", &["plan", "x", "--gpu", "1"], |a| {
            says(a, 0, &["next: collo run x --gpu 1"])
        }),
        answers("plan", CUT, &["plan", "x", "--gpu", "0"], |a| says(a, 3, &["this needs MIG off"])),
    ]);
}

#[test]
fn a_driver_whose_lists_cannot_be_read_is_refused_before_they_are() {
    let refused = |name, version: &str| {
        row(name, format!("a100-40gb,driver={version}"), NAIVE)
            .exits(3)
            .says("writes its process lists in a withdrawn format")
            .says("update the driver to 535.104.05 or later")
    };
    all(vec![
        refused("the first with wide entries", "535.43.02"),
        refused("of CUDA 12.2.0", "535.54.03"),
        refused("the last with wide entries", "535.86.10"),
        refused("without any list", "535.98"),
        row("the first that is right again", "a100-40gb,driver=535.104.05", NAIVE).exits(3).says("built for CUDA 13.0"),
        row("one before them", "a100-40gb,driver=530.41.03", NAIVE).exits(3),
    ]);
    all_of(vec![answers("doctor says so", "a100-40gb,driver=535.54.03", &["doctor"], |a| {
        says(a, 0, &["driver 535.54.03 writes its process lists", "update the driver to 535.104.05"])
    })]);
}

/// A container's machine on which somebody is whom its driver does not list.
fn beside(somebody: &Somebody, words: &str) -> String {
    somebody.on(format!("a100-40gb,pid-namespace,{words}").trim_end_matches(','))
}

fn groups_are_indicative(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let mut groups = runs.values().filter(|run| run.record.cell.degree > 1).peekable();
    hold(groups.peek().is_some(), || "no group ran".into())?;
    let told = |run: &&collo_store::StoredRun| {
        let why = &run.record.validity;
        why.verdict == Verdict::Indicative && why.reasons.iter().any(|r| r.contains("the driver does not list"))
    };
    hold(groups.all(|run| told(&run)), || "a group is not indicative, or for another reason".into())
}

fn valid(machine: &Machine, _: &Answer) -> Result<(), String> {
    let runs = machine.bench.runs();
    let stray = runs.iter().find(|(_, run)| run.record.validity.verdict != Verdict::Valid);
    hold(stray.is_none(), || format!("not valid: {stray:?}"))
}

/// As in a container.
fn inner(name: &'static str, words: &str, toml: &str) -> Row {
    row(name, words, toml).env("COLLO_PID_NAMESPACE", "inner")
}

#[test]
fn whoever_is_not_listed_is_seen_by_what_is_used() {
    let somebody = Somebody::new();
    let hidden = beside(&somebody, "");
    let later = format!("a100-40gb,pid-namespace,foreign@200ms={}", somebody.pid());
    let blocked = |name, words: &str, toml: &str| row(name, words, toml).exits(BLOCKED).says("the driver does not list");
    all(vec![
        blocked("in another container", &hidden, NAIVE).says("2.0 GiB used"),
        blocked("in another container, MPS", &hidden, MPS),
        blocked("in another container, instances", &hidden, MIG),
        blocked("little memory, and busy", &beside(&somebody, "foreign-mib=200,foreign-load=60,"), NAIVE).says("60 % busy"),
        row("little memory, and idle", beside(&somebody, "foreign-mib=200,"), NAIVE),
        inner("somebody may", &hidden, NAIVE).with(&["--foreign", "allow"]).looks(only_indicative),
        inner("somebody may, MPS", &hidden, MPS).with(&["--foreign", "allow"]).looks(only_indicative),
        row("another card is free", beside(&somebody, "gpus=2,"), MIG).says("GPU 1 is as it was found"),
        inner("they come while members train", &later, NAIVE).once_opened().looks(groups_are_indicative),
        inner("they come while members train, MPS", &later, MPS).once_opened().looks(groups_are_indicative),
        inner("they come while members train, and may", &later, NAIVE).with(&["--foreign", "allow"]).once_opened(),
        inner("nobody is there", "a100-40gb,pid-namespace", NAIVE).looks(valid),
        inner("nobody is there, MPS", "a100-40gb,pid-namespace", MPS).looks(valid),
        inner("nobody is there, instances", "a100-40gb,pid-namespace", MIG).looks(valid),
        row(
            "they come to an instance of nobody's, as a user",
            format!("{UNEQUAL},foreign-gi=1,foreign@200ms={}", somebody.pid()),
            MIXED,
        )
        .with(&["--as-found"])
        .exits(1)
        .ends("mig", "mode_lost")
        .ends("mig:1g.5gb", "completed|mode_lost")
        .ends("mig:2g.10gb", "completed|mode_lost")
        .says("others on the GPU: asked none, found `sleep` (pid "),
        inner("nobody is there, as a user on instances", &format!("{CUT},pid-namespace"), HALVES).looks(valid),
        row("where all are listed the driver's own memory is nobody", "a100-40gb,unexplained-mib=1500", MPS)
            .env("COLLO_PID_NAMESPACE", "first")
            .looks(valid),
    ]);
}

#[test]
fn an_allocation_is_kept_to_and_named_where_it_is_in_the_way() {
    let of = |name, cards: &str, variable, value: &str| row(name, format!("a100-40gb,gpus={cards}"), MIG).env(variable, value);
    let on = |row: Row, text| row.says(text);
    // Each has cards of its own, and the serial number is told by what is asked for.
    let uuid = |card: usize, serial: &str| simgpu::state::card_uuid("a100-40gb", card, serial);
    all(vec![
        on(of("CUDA's second card", "3", "CUDA_VISIBLE_DEVICES", "1"), "GPU 1 is as it was found"),
        on(
            of("CUDA's card by its UUID", "3", "CUDA_VISIBLE_DEVICES", &uuid(2, "cuda")).env(SERIAL, "cuda"),
            "GPU 2 is as it was found",
        ),
        on(of("what Slurm gave the job", "3", "SLURM_JOB_GPUS", "2"), "GPU 2 is as it was found"),
        on(of("Slurm shows the job's cards only", "1", "SLURM_JOB_GPUS", "5"), "GPU 0 is as it was found"),
        on(
            of("what Slurm gave the step", "3", "SLURM_JOB_GPUS", "0,1,2").env("SLURM_STEP_GPUS", "1"),
            "GPU 1 is as it was found",
        ),
        on(of("the numbers of a container are the host's", "1", "NVIDIA_VISIBLE_DEVICES", "6"), "GPU 0 is as it was found"),
        on(
            of("a card of a container by its UUID", "2", "NVIDIA_VISIBLE_DEVICES", &uuid(1, "container"))
                .env(SERIAL, "container"),
            "GPU 1 is as it was found",
        ),
        of("a card that is not ours", "2", "CUDA_VISIBLE_DEVICES", "1")
            .with(&["--gpu", "0"])
            .exits(3)
            .says("GPU 0 is not allocated to this process: `CUDA_VISIBLE_DEVICES=1`"),
        of("no card is ours", "2", "CUDA_VISIBLE_DEVICES", "").exits(3).says("no GPU of this machine is allocated"),
        of("a job without a card", "2", "CUDA_VISIBLE_DEVICES", "NoDevFiles").exits(3).says("CUDA_VISIBLE_DEVICES=NoDevFiles"),
        of("two that do not agree", "2", "NVIDIA_VISIBLE_DEVICES", &uuid(1, "disagree"))
            .env(SERIAL, "disagree")
            .env("CUDA_VISIBLE_DEVICES", "0")
            .exits(3)
            .says("no GPU of this machine is allocated"),
    ]);
}

/// What is allocated stands in doctor's answer.
fn doctors_allocation() -> Result<(), String> {
    let machine = Machine::new("a100-40gb,gpus=3", NAIVE);
    let with = |value: &str| {
        let mut command = machine.bench.command(&["doctor"]);
        command.env("CUDA_VISIBLE_DEVICES", value);
        command.output().map(Answer::from).map_err(|e| e.to_string())
    };
    says(&with("1,2")?, 0, &["`CUDA_VISIBLE_DEVICES=1,2`: GPUs 1 and 2 may be used"])?;
    says(&with("-1")?, 0, &["no GPU of this machine is allocated to this process: `CUDA_VISIBLE_DEVICES=-1`"])
}

/// A driver that starts its cards anew takes its time, and nothing is misjudged by it.
fn slow_driver() -> Result<(), String> {
    let machine = Machine::new("a100-40gb", NAIVE).under("a100-40gb,slow-init=4s");
    let began = Instant::now();
    let answer = machine.collo(&["doctor"]);
    says(&answer, 0, &["waiting for the NVIDIA driver", "NVIDIA A100-SXM4-40GB; MIG off", "naive, mps, mig on GPU 0"])?;
    hold(began.elapsed().as_secs() < 12, || format!("it begins again and again: {:?}", began.elapsed()))
}

/// One card of two is gone, and is listed all the same.
fn a_lost_card() -> Result<(), String> {
    let machine = Machine::new("a100-40gb,gpus=2,lost-card=0", NAIVE);
    says(&machine.collo(&["doctor"]), 0, &["GPU 0 does not respond", "mig on GPU 1"])?;
    says(&machine.collo(&["doctor", "--require", "gpu"]), 3, &["missing requirements: gpu"])?;
    says(&machine.collo(&["plan", "x", "--gpu", "0"]), 3, &["GPU 0 does not respond"])
}

/// A card with MIG that no file is about, whose driver tells no profile while MIG is off.
fn unknown_profiles() -> Result<(), String> {
    let machine = Machine::new("a100-40gb,no-profiles-off", MIG);
    std::fs::remove_file(machine.bench.at("mig-profiles/a100-40gb.toml")).map_err(|e| e.to_string())?;
    let doctor = machine.collo(&["doctor"]);
    says(&doctor, 0, &["MIG off, its profiles are known once it is on", "the possible partitions of GPU 0 are unknown"])?;
    hold(!doctor.stdout.contains("no MIG"), || "it says that there is no MIG".into())?;
    says(&machine.run(&[]), 3, &["`sudo collo mig apply on --gpu 0`"])?;
    says(&machine.collo(&["mig", "apply", "halves"]), 3, &["its profiles are known once it is on"])?;
    says(&machine.collo(&["mig", "apply", "on"]), 0, &["MIG mode   off → on"])?;
    says(&machine.run(&[]), 0, &[])
}

#[test]
fn a_slow_driver_a_lost_card_and_an_unknown_one_are_told_apart() {
    let of = |name, act: fn() -> Result<(), String>| Scenario { name, words: String::new(), act: Box::new(act) };
    all_of(vec![
        of("doctor tells what is allocated", doctors_allocation),
        of("a driver that begins slowly", slow_driver),
        of("a card of two that is lost", a_lost_card),
        of("a card that no file is about", unknown_profiles),
    ]);
}
