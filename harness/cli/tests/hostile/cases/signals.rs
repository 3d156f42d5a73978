//! Signals to collo itself, and a terminal that goes away: what was started ends, what is stored stays, and the campaign goes on.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::hostile::case::{Case, case, end_of, ended, hold, one};
use crate::hostile::signals_to::{has_read_it, logs, long_to_plan, plans, stop, struck, trains, until, was_heard};

const KIND: &str = "signals to collo";

pub fn cases() -> Vec<Case> {
    let sent = |name: &str, signal: Signal, codes: &[i32]| {
        case(KIND, name).of(one("hostile", "daemon")).exits(codes).meanwhile(struck(signal)).within(20)
    };
    let mut cases = vec![
        sent("interrupted", Signal::SIGINT, &[130]),
        sent("terminated", Signal::SIGTERM, &[4]).sample(),
        sent("hung_up", Signal::SIGHUP, &[4]),
        sent("quit", Signal::SIGQUIT, &[4, 130, -3]),
        sent("killed", Signal::SIGKILL, &[-9]),
        sent("aborted", Signal::SIGABRT, &[-6]),
        sent("faulted", Signal::SIGSEGV, &[0, -11]),
        sent("signalled_by_a_batch_system", Signal::SIGUSR1, &[4]),
        sent("signalled_by_a_batch_system_otherwise", Signal::SIGUSR2, &[4]),
        sent("out_of_time", Signal::SIGALRM, &[4]),
        sent("out_of_cpu_time", Signal::SIGXCPU, &[4]),
        sent("out_of_virtual_time", Signal::SIGVTALRM, &[4]),
        sent("broken_pipe", Signal::SIGPIPE, &[0]),
        sent("resized", Signal::SIGWINCH, &[0]),
        sent("a_child_that_is_none", Signal::SIGCHLD, &[0]),
        case(KIND, "interrupted_twice").of(one("hostile", "deaf")).exits(&[130]).within(20).meanwhile(|scene, live| {
            trains(scene, live)?;
            live.signal(Signal::SIGINT);
            logs(scene, live, "stays")?;
            live.signal(Signal::SIGINT);
            Ok(())
        }),
        case(KIND, "signals_without_end").exits(&[4, 130]).within(20).meanwhile(|scene, live| {
            trains(scene, live)?;
            let began = Instant::now();
            while !live.has_ended() && began.elapsed() < Duration::from_secs(10) {
                live.signal(Signal::SIGTERM);
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }),
        case(KIND, "stopped_for_longer_than_an_epoch_may_take")
            .of(one("hostile", "trains_long"))
            .within(60)
            .ends("completed")
            .meanwhile(|scene, live| {
                was_heard(scene, live, "epoch")?;
                stop(live)?;
                // Longer than `stall_timeout`, which is a time.
                std::thread::sleep(Duration::from_secs(8));
                live.signal(Signal::SIGCONT);
                Ok(())
            }),
        case(KIND, "stopped_and_killed").of(one("hostile", "daemon")).exits(&[-9]).meanwhile(|scene, live| {
            trains(scene, live)?;
            stop(live)?;
            live.signal(Signal::SIGKILL);
            Ok(())
        }),
        killed_in("killed_in_the_report", &["report", "good/last"]),
        killed_in("killed_while_it_prunes", &["prune", "--experiment", "damaged", "--older-than", "0s", "--yes"]),
        terminal("terminal_that_goes_away", "HUP"),
        terminal("terminal_that_is_killed", "KILL"),
    ];
    for (name, signal, code) in ENDING {
        cases.extend(MOMENTS.map(|moment| while_it_plans(name, signal, code, moment)));
    }
    cases
}

/// The signals that ask collo to end, each with its exit code.
const ENDING: [(&str, Signal, i32); 8] = [
    ("interrupted", Signal::SIGINT, 130),
    ("terminated", Signal::SIGTERM, 4),
    ("hung_up", Signal::SIGHUP, 4),
    ("signalled", Signal::SIGUSR1, 4),
    ("signalled_otherwise", Signal::SIGUSR2, 4),
    ("out_of_time", Signal::SIGALRM, 4),
    ("out_of_cpu_time", Signal::SIGXCPU, 4),
    ("out_of_virtual_time", Signal::SIGVTALRM, 4),
];

/// A moment of `collo plan`, how it is noticed, and whether the signal may still end the process by itself.
type Moment = (&'static str, fn(u32) -> bool, bool);

const MOMENTS: [Moment; 4] = [
    ("as_it_starts", |pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("collo")), true),
    ("before_it_has_read", |pid| processor_ticks(pid) >= 1, true),
    ("when_it_has_read", has_read_it, false),
    ("as_it_plans", plans, false),
];

/// Ticks of the processor that a process took, a hundredth of a second each (proc(5), `utime`).
fn processor_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_whitespace().nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Sent at a moment of a plan that takes long: it ends with the code of that signal, and soon.
fn while_it_plans(name: &str, signal: Signal, code: i32, (when, has_come, is_early): Moment) -> Case {
    case(KIND, format!("{name}_{when}")).of(long_to_plan()).act(move |scene| {
        let mut live = scene.start(&["plan", "x"]);
        let pid = live.pid();
        until(&mut live, when, || has_come(pid))?;
        live.signal(signal);
        let said = live.ends(Duration::from_secs(10))?;
        ended(&said)?;
        let by_itself = is_early && said.code == -(signal as i32);
        hold(said.code == code || by_itself, || format!("it ended with {}, not {code}\n{}", said.code, end_of(&said)))
    })
}

/// Killed at several moments of another verb: what is stored is whole, or gone as asked.
fn killed_in(name: &str, arguments: &'static [&'static str]) -> Case {
    case(KIND, name).act(|scene| {
        for millis in [1, 5, 20, 60, 150, 400] {
            let live = scene.start(arguments);
            std::thread::sleep(Duration::from_millis(millis));
            live.signal(Signal::SIGKILL);
            live.ends(Duration::from_secs(10))?;
        }
        let said = scene.collo(&["list"], Duration::from_secs(20))?;
        hold(said.code == 0 && !said.stderr.contains("warning"), || format!("`collo list` afterwards:\n{}", said.stderr))
    })
}

/// In a terminal of `script`, which ends by this signal.
fn terminal(name: &str, signal: &'static str) -> Case {
    // `script` gives its child a terminal; when it is gone the child's terminal hangs up.
    let under = "exec script -qec 'exec \"$COLLO\" run x --no-report' /dev/null";
    case(KIND, name).of(one("hostile", "daemon")).under(under).exits(&[0, 1, 4, -1, -9]).meanwhile(move |scene, live| {
        trains(scene, live)?;
        live.signal(if signal == "HUP" { Signal::SIGHUP } else { Signal::SIGKILL });
        // collo itself stores what there is, and ends.
        scene.nothing_is_left(Duration::from_secs(20))
    })
}
