//! Switching MIG mode beside the services of a DGX, what a switch forgets, and putting everything back.

use std::time::Duration;

use collo_store::{Outcome, StoredRun};
use nix::sys::signal::Signal;

use super::{BLOCKED, CUT, HALVES, MIG, MPS, NAIVE};
use crate::gpu_faults::looks::is_told;
use crate::gpu_faults::row::{Scenario, all, all_of, hold, honest, nothing_lies_about, row, watched};
use crate::sim::Machine;
use crate::support::{Answer, wait_for};

/// Two alike, on the whole card in two ways and on instances.
const MIXED: &str = "[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\", \"mig:2×2g.10gb\"]\ndegree = 2";
const STOP: &[&str] = &["--services", "stop"];
const HOLDERS: &str = "`nvidia-dcgm`, `nvsm` and `dcgm-exporter` use the GPU";

fn of(sharing: &str) -> impl Fn(&&StoredRun) -> bool {
    move |run| run.record.cell.sharing.starts_with(sharing)
}

/// What needs the switch is written down as refused, with the way out; all the rest was measured.
fn mig_is_refused(machine: &Machine, _: &Answer) -> Result<(), String> {
    let campaign = machine.bench.campaign();
    let plan = &campaign.manifest().plan;
    let refused: Vec<&str> = plan.refusals.iter().map(|r| r.sharing.as_str()).collect();
    hold(!refused.is_empty() && refused.iter().all(|s| s.starts_with("mig")), || format!("refused: {refused:?}"))?;
    let hints = plan.refusals.iter().filter_map(|r| r.hint.as_deref());
    let way = |hint: &str| {
        // Where something would be lost nobody's right helps.
        let first = hint.starts_with("restore the default");
        let right = hint.contains("sudo collo mig apply") && hint.contains("--as-found");
        first || (right && hint.contains("sudo collo run x --services stop"))
    };
    let mut hints = hints.peekable();
    hold(hints.peek().is_some() && hints.all(way), || "the way out is not told".into())?;
    let runs = machine.bench.runs();
    hold(runs.values().all(|r| !r.record.cell.sharing.starts_with("mig")), || "a cell that is refused was run".into())?;
    for mode in ["naive", "mps", "solo"] {
        hold(runs.values().any(|r| of(mode)(&r)), || format!("no run of {mode}"))?;
    }
    let shown = machine.collo(&["report", "--json"]).exits(0).json();
    hold(shown["refusals"].as_array().is_some_and(|r| !r.is_empty()), || "the report does not say it".into())
}

/// Of one repetition, every run with MIG off came before every run with MIG on, and the mode was turned there and back.
fn turned_once(machine: &Machine, _: &Answer) -> Result<(), String> {
    let campaign = machine.bench.campaign();
    let plan = &campaign.manifest().plan;
    let on: Vec<bool> = plan.order.iter().map(|run| plan.cells[run.cell].sharing.starts_with("mig")).collect();
    hold(on.windows(2).filter(|w| w[0] != w[1]).count() == 1, || format!("blocks are mixed: {on:?}"))?;
    hold(machine.turns() == 2, || format!("the mode was turned {} times", machine.turns()))
}

fn services_were_restarted(machine: &Machine, _: &Answer) -> Result<(), String> {
    let units = machine.restarted();
    hold(units == ["nvidia-dcgm", "nvsm", "dcgm-exporter"], || format!("restarted: {units:?}"))
}

/// The same where DCGM is of version 2.
fn old_services_were_restarted(machine: &Machine, _: &Answer) -> Result<(), String> {
    let units = machine.restarted();
    hold(units == ["dcgm", "nvsm", "dcgm-exporter"], || format!("restarted: {units:?}"))
}

fn no_service_was_touched(machine: &Machine, _: &Answer) -> Result<(), String> {
    hold(machine.restarted().is_empty(), || format!("restarted: {:?}", machine.restarted()))
}

/// Whatever the mode, members ran on the SM clock that was found.
fn on_the_clock_that_was_found(machine: &Machine, _: &Answer) -> Result<(), String> {
    for (folder, run) in machine.bench.runs() {
        let all = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, m| m == "sm_clock_mhz").expect("readable");
        let most = all.values().flatten().filter_map(|r| r.2).fold(0.0, f64::max);
        hold(most == 1095.0, || format!("{folder} ran at up to {most} MHz"))?;
    }
    Ok(())
}

#[test]
fn beside_services_only_what_needs_the_switch_is_refused() {
    let on = |name, words: &str, toml: &str| row(name, words.to_string(), toml.to_string());
    all(vec![
        on("naive beside services", "a100-40gb,services", NAIVE)
            .once_dcgm_prints()
            .env("COLLO_SIM_EPOCH_S", "0.5")
            .looks(no_service_was_touched)
            .looks(is_told),
        on("MPS beside services", "a100-40gb,services", MPS).looks(no_service_was_touched),
        on("instances beside services", "a100-40gb,services", MIG).exits(BLOCKED).says(HOLDERS).says("--services stop"),
        on("instances beside services, left pending", "a100-40gb,services,services-pending", MIG)
            .exits(BLOCKED)
            .says("stays off")
            .says(HOLDERS),
        on("all modes beside services", "a100-40gb,services", MIXED).says(HOLDERS).looks(mig_is_refused),
        on("all modes beside services, left pending", "a100-40gb,services,services-pending", MIXED)
            .says(HOLDERS)
            .looks(mig_is_refused),
        on("a user and all modes", "a100-40gb,user", MIXED).says("this user may not partition it").looks(mig_is_refused),
        on("a user and all modes beside services", "a100-40gb,services,user", MIXED)
            .says("this user may not partition it")
            .looks(mig_is_refused),
        on("a user and instances", "a100-40gb,services,user", MIG)
            .exits(3)
            .says("this user may not partition it")
            .says("sudo collo mig apply"),
        on("a user on a Hopper", "h100-80gb,services,user", &MIXED.replace("2g.10gb", "2g.20gb"))
            .says("this user may not partition it")
            .looks(mig_is_refused),
        on("a Hopper switches beside services", "h100-80gb,services", &MIXED.replace("2g.10gb", "2g.20gb"))
            .looks(no_service_was_touched)
            .looks(turned_once),
        on("layouts change beside services", "a100-40gb,services,mig=2×3g.20gb", MIG)
            .says(HOLDERS)
            .says("small solo b32 is refused")
            .looks(no_service_was_touched),
        on("instances as found beside services", "a100-40gb,services,mig=2×2g.10gb", MIG)
            .with(&["--as-found"])
            .looks(no_service_was_touched),
    ]);
}

#[test]
fn services_are_stopped_for_the_switch_alone_where_that_was_asked_for() {
    let on = |name, words: &str, toml: &str| row(name, words.to_string(), toml.to_string()).with(STOP);
    all(vec![
        on("instances", "a100-40gb,services", MIG).looks(services_were_restarted),
        on("all modes, and one switch", "a100-40gb,services", MIXED).looks(services_were_restarted).looks(turned_once),
        on("all modes, left pending otherwise", "a100-40gb,services,services-pending", MIXED)
            .looks(services_were_restarted)
            .looks(turned_once),
        on("activity of instances is there after it", "a100-40gb,services,noise=0", HALVES)
            .once_dcgm_prints()
            .env("COLLO_SIM_EPOCH_S", "0.5")
            .looks(is_told),
        on("the engine answers later than its service is active", "a100-40gb,services,engine-slow=4s,noise=0", HALVES)
            .once_dcgm_prints()
            .env("COLLO_SIM_EPOCH_S", "0.5")
            .looks(is_told),
        on("DCGM 2's unit has another name, and is stopped", "a100-40gb,services,dcgm=2.4", MIG)
            .looks(old_services_were_restarted),
        on("MIG was found on", "a100-40gb,services,mig=2×3g.20gb", MIXED).looks(services_were_restarted).looks(turned_once),
        on("where nothing needs it nothing is stopped", "a100-40gb,services", NAIVE).looks(no_service_was_touched),
        on("a Hopper needs it not", "h100-80gb,services", &MIXED.replace("2g.10gb", "2g.20gb")).looks(no_service_was_touched),
        on("without services", "a100-40gb", MIXED).looks(turned_once),
        on("a user may not", "a100-40gb,services,user", MIXED).exits(3).says("Interactive authentication required"),
        on("a user may not, in other words", "a100-40gb,services,user=denied", MIXED).exits(3).says("Access denied"),
        on("no systemctl, so no service is known", "a100-40gb,services", MIXED)
            .without("systemctl")
            .exits(1)
            .ends(CUT, "not_staged")
            .ends("mig:2g.10gb", "not_staged")
            .says("something uses the GPU"),
        on("one does not start again", "a100-40gb,services,service-fails=nvsm", MIG)
            .exits(BLOCKED)
            .says("cannot be restarted")
            .leaves_what_restore_puts_right("a100-40gb,services"),
    ]);
}

#[test]
fn whoever_is_in_the_way_of_a_switch_is_waited_for_named_or_gone_round() {
    let leaks = "a100-40gb,services,dcgm-leaks,mig=2×3g.20gb";
    all(vec![
        row("somebody lets go in time", "a100-40gb,busy-for=3", MIG),
        row("the module for displays uses the GPU", "a100-40gb,nvidia-drm", MIG).exits(BLOCKED).says("nvidia_drm"),
        row("the module for displays, and naive is measured", "a100-40gb,nvidia-drm", MIXED)
            .exits(1)
            .ends(CUT, "not_staged")
            .ends("mig:2g.10gb", "not_staged")
            .says("nvidia_drm"),
        row("DCGM never lets go of instances", leaks, MIG)
            .exits(BLOCKED)
            .says("3g.20gb@0 of GPU 0 cannot be destroyed")
            .says(HOLDERS)
            .says("--services stop"),
        row("DCGM lets go when it is stopped", leaks, MIG).with(STOP).looks(services_were_restarted),
        row("DCGM never lets go, and nothing was there before", "a100-40gb,services,dcgm-leaks", MIXED).with(STOP),
    ]);
}

#[test]
fn what_a_reset_forgets_is_set_again() {
    let set = "a100-40gb,power-limit=300,application-clocks=1095";
    let refused = |name, toml: &str| row(name, "a100-40gb,power-limit=300,power-fixed", toml);
    all(vec![
        row("limit and clocks of instances", set, MIG).looks(on_the_clock_that_was_found),
        row("limit and clocks of all modes", set, MIXED).looks(on_the_clock_that_was_found).looks(turned_once),
        row("limit and clocks beside services", format!("{set},services"), MIXED).with(STOP).looks(on_the_clock_that_was_found),
        row("MIG was found on", format!("{set},mig=2×3g.20gb"), MIXED).looks(on_the_clock_that_was_found),
        refused("a limit that cannot be set again", MIG).exits(3).says("its reset clears a power limit of 300 W"),
        refused("a limit that cannot be set again, all modes", MIXED)
            .says("its reset clears a power limit of 300 W")
            .looks(mig_is_refused),
    ]);
}

#[test]
fn after_exclusive_mps_a_naive_group_shares_the_card_again() {
    let both = "repetitions = 2\n[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\"]\ndegree = 2";
    all(vec![
        row("naive and MPS by turns", "a100-40gb", both).with(&["--exclusive"]),
        row("all modes", "a100-40gb", MIXED).with(&["--exclusive"]),
    ]);
}

/// Killed at a moment, a collo leaves behind what the next one, or `collo restore`, puts right: the card, its settings, the services.
fn killed(words: &str, arguments: &[&str], by_hand: bool, when: fn(&Machine) -> bool) -> Result<(), String> {
    let machine = Machine::new(words, MIXED);
    let found = machine.cards();
    let mut running = machine.start(arguments);
    wait_for("the moment", || when(&machine).then_some(()));
    running.signal(Signal::SIGKILL);
    running.ends();
    machine.bench.nothing_is_left(Duration::from_secs(60));
    hold(machine.journals().len() == 1, || "no journal tells what was found".into())?;
    if by_hand {
        machine.collo(&["restore"]).exits(0);
        nothing_lies_about(&machine, &found, &[])?;
    }
    let (answer, pipes) = watched(&machine, || machine.run(arguments));
    hold(answer.code == Some(0), || format!("the run that repairs: {answer:?}"))?;
    let runs = machine.bench.runs();
    hold(runs.values().all(|r| r.record.outcome == Outcome::Completed), || format!("{:?}", runs.keys()))?;
    runs.values().try_for_each(honest)?;
    nothing_lies_about(&machine, &found, &pipes)
}

fn a_service_is_stopped(machine: &Machine) -> bool {
    machine.cards()["services"].as_array().is_some_and(|all| all.iter().any(|s| s[1] == false))
}

fn mig_is_on(machine: &Machine) -> bool {
    machine.cards()["cards"][0]["mig"] == true && !a_service_is_stopped(machine)
}

fn mig_is_pending(machine: &Machine) -> bool {
    machine.cards()["cards"][0]["pending"] == true
}

/// A change of MIG mode that the driver left pending would come with the next reset, though the current mode is the one found.
fn killed_while_a_change_is_pending() -> Result<(), String> {
    let machine = Machine::new("a100-40gb,mig-in-use,slow-init=1s", MIG);
    let found = machine.cards();
    let mut running = machine.start(&[]);
    wait_for("a pending change", || mig_is_pending(&machine).then_some(()));
    running.signal(Signal::SIGKILL);
    running.ends();
    machine.bench.nothing_is_left(Duration::from_secs(60));
    hold(mig_is_pending(&machine), || "it was undone before the kill".into())?;
    let machine = machine.under("a100-40gb");
    machine.collo(&["restore"]).exits(0);
    nothing_lies_about(&machine, &found, &[])
}

/// What somebody else has made pending is not lost: the mode is not changed, and what needs no change is measured.
fn a_change_of_somebody_else_is_pending() -> Result<(), String> {
    let machine = Machine::new("a100-40gb,mig-in-use", MIXED);
    let state = machine.sim().join("state.json");
    let text = fs_err::read_to_string(&state).map_err(|e| e.to_string())?;
    fs_err::write(&state, text.replace("\"mig_pending\": false", "\"mig_pending\": true")).map_err(|e| e.to_string())?;
    let found = machine.cards();
    hold(mig_is_pending(&machine), || format!("nothing is pending: {found}"))?;
    let machine = machine.under("a100-40gb");
    let (answer, pipes) = watched(&machine, || machine.run(&[]));
    let said = answer.stderr.contains("MIG on of GPU 0 is pending until its next reset, and would be lost");
    hold(said, || format!("nobody says that a change is pending: {answer:?}"))?;
    hold(!machine.bench.runs().is_empty(), || "what needs no change was not measured".into())?;
    nothing_lies_about(&machine, &found, &pipes)
}

#[test]
fn a_pending_change_of_the_mig_mode_is_undone_if_it_is_ours_and_kept_if_it_is_not() {
    let of = |name, act: fn() -> Result<(), String>| Scenario { name, words: String::new(), act: Box::new(act) };
    all_of(vec![
        of("killed while a change is pending", killed_while_a_change_is_pending),
        of("somebody else's", a_change_of_somebody_else_is_pending),
    ]);
}

#[test]
fn killed_in_the_middle_of_a_switch_services_card_and_settings_come_back() {
    let scenario =
        |name, words: &str, act: Box<dyn Fn() -> Result<(), String> + Send + Sync>| Scenario { name, words: words.into(), act };
    let set = "a100-40gb,services,power-limit=300,application-clocks=1095";
    all_of(vec![
        scenario(
            "while services are stopped, and the next run",
            set,
            Box::new(move || killed(set, STOP, false, a_service_is_stopped)),
        ),
        scenario("while services are stopped, and restore", set, Box::new(move || killed(set, STOP, true, a_service_is_stopped))),
        scenario("while instances are there, and the next run", set, Box::new(move || killed(set, STOP, false, mig_is_on))),
        scenario("while instances are there, and restore", set, Box::new(move || killed(set, STOP, true, mig_is_on))),
    ]);
}

/// Begun by an administrator and continued by somebody who may not cut the card: what is left to do is done or has its reason.
fn continued_without_the_right(toml: &str) -> Result<(), String> {
    let machine = Machine::new("a100-40gb,services", toml);
    let found = machine.cards();
    let begun = machine.run(&[STOP, &["--for", "1ms"]].concat());
    hold(begun.code == Some(4), || format!("{begun:?}"))?;
    let machine = machine.under("a100-40gb,services,user");
    let (answer, pipes) = watched(&machine, || machine.run(&[]));
    hold(answer.code == Some(1), || format!("{answer:?}"))?;
    let (runs, planned) = (machine.bench.runs(), machine.bench.campaign().manifest().plan.order.len());
    hold(runs.len() == planned && machine.bench.campaigns() == 1, || format!("{} of {planned} runs: {answer:?}", runs.len()))?;
    for (folder, run) in &runs {
        let wanted = if of("mig")(&run) { "not_staged" } else { "completed" };
        hold(run.record.outcome.as_str() == wanted, || format!("{folder}: {:?}", run.record.outcome))?;
    }
    runs.values().try_for_each(honest)?;
    nothing_lies_about(&machine, &found, &pipes)?;
    let machine = machine.under("a100-40gb,services");
    let again = machine.run(&[STOP, &["--only", "failed"]].concat());
    hold(again.code == Some(0), || format!("{again:?}"))?;
    nothing_lies_about(&machine, &found, &pipes)
}

#[test]
fn a_campaign_goes_on_as_far_as_the_rights_go() {
    all_of(vec![Scenario {
        name: "an administrator begins, a user goes on",
        words: "a100-40gb,services".into(),
        act: Box::new(|| continued_without_the_right(MIXED)),
    }]);
}

#[test]
fn an_administrator_cuts_a_card_beside_services_by_one_command() {
    let apply = |words: &'static str, arguments: &'static [&'static str], code: i32, says: &'static str| {
        move || {
            let machine = Machine::new(words, NAIVE);
            let found = machine.cards();
            let answer = machine.collo(&[&["mig", "apply", "sevenths"], arguments].concat());
            hold(answer.code == Some(code) && format!("{answer:?}").contains(says), || format!("{answer:?}"))?;
            if code != 0 {
                return nothing_lies_about(&machine, &found, &[]);
            }
            hold(machine.journals().is_empty(), || "a journal is left".into())?;
            machine.collo(&["mig", "assert", "sevenths"]).exits(0);
            hold(machine.cards()["services"] == found["services"], || format!("{}", machine.cards()))?;
            let settings =
                |v: &serde_json::Value| [v["cards"][0]["power_limit_w"].clone(), v["cards"][0]["application_mhz"].clone()];
            hold(settings(&machine.cards()) == settings(&found), || format!("{}", machine.cards()))?;
            machine.collo(&[&["mig", "clear"], arguments].concat()).exits(0);
            nothing_lies_about(&machine, &found, &[])
        }
    };
    let scenario = |name, act| Scenario { name, words: String::new(), act };
    all_of(vec![
        scenario("services are in the way", Box::new(apply("a100-40gb,services", &[], 3, HOLDERS)) as Box<_>),
        scenario("services are stopped", Box::new(apply("a100-40gb,services,power-limit=300", STOP, 0, ""))),
        scenario("a user may not", Box::new(apply("a100-40gb,services,user", STOP, 3, "cannot be stopped"))),
        scenario("a Hopper", Box::new(apply("h100-80gb,services,application-clocks=1095", &[], 0, ""))),
    ]);
}

#[test]
fn cells_on_instances_are_measured_between_runs_of_their_baseline_and_the_mode_is_put_back() {
    let machine = Machine::new("a100-40gb", &format!("repetitions = 2\n{MIXED}"));
    let found = machine.cards();
    machine.run(&[]).exits(0);
    let campaign = machine.bench.campaign();
    let plan = &campaign.manifest().plan;
    let is_on = |run: &collo_store::PlannedRun| plan.cells[run.cell].sharing.starts_with("mig");
    let on: Vec<bool> = plan.order.iter().map(is_on).collect();
    assert_eq!(on.windows(2).filter(|w| w[0] != w[1]).count(), 2, "{on:?}");
    let started = |wanted: &dyn Fn(&StoredRun) -> bool| {
        let mut at: Vec<u64> =
            machine.bench.runs().values().filter(|r| wanted(r)).map(|r| r.record.timeline.launched_ns).collect();
        at.sort_unstable();
        at
    };
    let (instances, baselines) = (started(&|r| r.record.cell.mode.partitioned), started(&|r| r.record.cell.baseline));
    assert_eq!(baselines.len(), 4);
    assert!(baselines[1] < instances[0] && instances[instances.len() - 1] < baselines[2]);
    assert_eq!(machine.turns(), 2, "the second change is the one that would restore the mode");
    assert_eq!((machine.cards(), machine.journals().len()), (found, 0), "as found");
    let report = machine.collo(&["report", "--json"]).exits(0).json();
    let cells = report["cells"].as_array().expect("cells");
    let mig = cells.iter().find(|c| c["degree"] == 2 && c["sharing"] == "mig:2×2g.10gb").expect("measured");
    assert!(mig["throughput_gain"]["low"].is_number() && mig["throughput_gain"]["repetitions"] == 2, "{mig:#}");
}
