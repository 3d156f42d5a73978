//! Simulated cards: collo killed under faults, journals damaged, control programs of MPS that behave like none. Whatever happens, the next
//! collo puts the card back, or says what it cannot read and keeps it.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::hostile::case::{Case, Check, case, end_of, ended, hold};
use crate::hostile::scene::{Live, Scene};
use crate::hostile::signals_to::until;

const KIND: &str = "simulated cards";

pub const MPS: &str = "[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n";
pub const MIG: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×1g.5gb\"\ndegree = 2\n";
const ALL: &str = "[axes]\nworkload = \"small\"\nsharing = [\"naive\", \"mps\", \"mig:2×3g.20gb+mps\"]\ndegree = 2\n";
pub const FOUND: &str = "a100-40gb,mig=2×3g.20gb";

/// Wait until the card is changed.
fn is_changed(scene: &Scene, live: &mut Live) -> Check {
    until(live, "the card was changed", || scene.card().journals().iter().any(|_| Some(scene.card().cards()) != scene.found))
}

/// Wait until a daemon is written down.
fn has_a_daemon(scene: &Scene, live: &mut Live) -> Check {
    until(live, "a daemon was started", || !scene.card().pipes().is_empty())
}

/// Signalled when a daemon runs, under a fault.
fn struck(name: &str, words: &str, signal: Signal, codes: &[i32]) -> Case {
    case(KIND, name).on(words).of(MPS).exits(codes).meanwhile(move |scene, live| {
        has_a_daemon(scene, live)?;
        std::thread::sleep(Duration::from_millis(200));
        live.signal(signal);
        Ok(())
    })
}

/// Killed while the card is changed; what was written down of it.
pub fn left_changed(scene: &Scene) -> Result<PathBuf, String> {
    let mut live = scene.start(&["run", "x", "--no-report"]);
    is_changed(scene, &mut live)?;
    live.signal(Signal::SIGKILL);
    live.ends(Duration::from_secs(20))?;
    scene.nothing_is_left(Duration::from_secs(60))?;
    the_journal(scene)
}

fn the_journal(scene: &Scene) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(scene.card().state()).map_err(|e| e.to_string())?.flatten();
    let mut files = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    files.next().ok_or_else(|| "no journal was written".into())
}

/// Killed while the card is changed, and the journal damaged: it is kept, everybody says so, and with it back again the card is put right.
fn damaged(name: &str, damage: impl Fn(&PathBuf) + Send + Sync + 'static) -> Case {
    case(KIND, name).on(FOUND).of(MPS).act(move |scene| {
        let journal = left_changed(scene)?;
        let text = fs_err::read(&journal).map_err(|e| e.to_string())?;
        damage(&journal);
        let changed = scene.card().cards();
        for arguments in [&["run", "x", "--no-report"][..], &["restore"]] {
            let said = scene.collo(arguments, Duration::from_secs(40))?;
            let called = format!("`collo {}`", arguments.join(" "));
            ended(&said).map_err(|e| format!("{called}: {e}"))?;
            hold(said.code == 3, || format!("{called} ended with {}, not 3\n{}", said.code, end_of(&said)))?;
            hold(journal.symlink_metadata().is_ok(), || format!("{called} removed a journal that it could not read"))?;
            hold(scene.card().cards() == changed, || {
                format!("{called} changed a card of which it does not know how it was found")
            })?;
        }
        let said = scene.collo(&["status"], Duration::from_secs(40))?;
        hold(format!("{}{}", said.stdout, said.stderr).contains("journal"), || {
            format!("`collo status` does not tell\n{}", said.stdout)
        })?;
        if journal.is_dir() { fs_err::remove_dir_all(&journal) } else { fs_err::remove_file(&journal) }
            .map_err(|e| e.to_string())?;
        fs_err::write(&journal, text).map_err(|e| e.to_string())?;
        let said = scene.collo(&["restore"], Duration::from_secs(40))?;
        hold(said.code == 0, || format!("`collo restore` of the journal as it was ended with {}\n{}", said.code, end_of(&said)))
    })
}

/// Another program is found first as `nvidia-cuda-mps-control`; the simulated one is `$REAL`.
fn control(name: &str, script: &str) -> Case {
    let script = format!("#!/bin/sh\nREAL={}\n{script}\n", crate::sim::program("nvidia-cuda-mps-control").display());
    case(KIND, name).on("a100-40gb").of(MPS).exits(&[0, 1]).within(90).under("PATH=\"$ASIDE/bin:$PATH\"; export PATH").before(
        move |scene| {
            let program = scene.aside("bin/nvidia-cuda-mps-control");
            fs_err::create_dir_all(scene.aside("bin")).map_err(|e| e.to_string())?;
            fs_err::write(&program, &script).map_err(|e| e.to_string())?;
            fs_err::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(|e| e.to_string())
        },
    )
}

pub fn cases() -> Vec<Case> {
    let kill = |name: &str, words: &str| struck(name, words, Signal::SIGKILL, &[-9]).within(60);
    let streams = |name: &str, shell: &str| case(KIND, name).on(FOUND).of(MPS).under(shell).exits(&[0, 3]);
    vec![
        kill("killed_beside_a_daemon", "a100-40gb").sample(),
        kill("killed_beside_a_daemon_that_hangs", "a100-40gb,mps-hang"),
        kill("killed_beside_a_daemon_that_is_slow", "a100-40gb,mps-slow=800ms"),
        kill("killed_beside_a_slow_control_program", "a100-40gb,slow-control=400ms"),
        kill("killed_on_a_card_that_was_cut", FOUND),
        kill("killed_on_a_card_with_instances_in_use", &format!("{FOUND},gi-busy=2")),
        struck("terminated_beside_a_daemon", FOUND, Signal::SIGTERM, &[4]),
        struck("hung_up_beside_a_daemon", FOUND, Signal::SIGHUP, &[4]),
        struck("interrupted_beside_a_daemon", FOUND, Signal::SIGINT, &[130]),
        struck("broken_pipe_beside_a_daemon", FOUND, Signal::SIGPIPE, &[0]),
        case(KIND, "terminated_while_the_card_is_cut").on("a100-40gb").of(MIG).exits(&[4]).meanwhile(|scene, live| {
            is_changed(scene, live)?;
            live.signal(Signal::SIGTERM);
            Ok(())
        }),
        damaged("journal_of_the_card_truncated", |j| {
            let bytes = fs_err::read(j).unwrap();
            fs_err::write(j, &bytes[..bytes.len() / 2]).unwrap();
        }),
        damaged("journal_of_the_card_emptied", |j| fs_err::write(j, "").unwrap()),
        damaged("journal_of_the_card_is_noise", |j| fs_err::write(j, [0xff; 500]).unwrap()),
        damaged("journal_of_the_card_is_a_dangling_link", |j| {
            fs_err::remove_file(j).unwrap();
            std::os::unix::fs::symlink("nowhere", j).unwrap();
        }),
        damaged("journal_of_the_card_is_of_the_future", |j| {
            let text = fs_err::read_to_string(j).unwrap();
            fs_err::write(j, text.replace("\"schema\": 1", "\"schema\": 999")).unwrap();
        })
        .sample(),
        damaged("journal_of_the_card_is_a_folder", |j| {
            fs_err::remove_file(j).unwrap();
            fs_err::create_dir(j).unwrap();
        }),
        damaged("journal_of_the_card_is_a_fifo", |j| {
            fs_err::remove_file(j).unwrap();
            nix::unistd::mkfifo(j, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        control("control_that_ends_at_once", "exit 0"),
        control("control_that_fails_at_once", "exit 1"),
        control("control_that_never_answers", "sleep 600"),
        control("control_that_says_too_much", "yes"),
        control(
            "control_that_ends_unread_without_a_daemon",
            "[ \"$1\" = -d ] || [ -e \"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\" ] || { echo 'Cannot find MPS control daemon process'; exit 1; }\nexec \"$REAL\" \"$@\"",
        ),
        control("control_with_a_child_that_holds_its_output", "setsid sleep 600 &\nexec \"$REAL\" \"$@\""),
        case(KIND, "exclusive_and_naive").on("a100-40gb").of(ALL).with(&["--exclusive"]).ends("completed"),
        case(KIND, "killed_while_exclusive").on("a100-40gb").of(ALL).with(&["--exclusive"]).exits(&[-9]).meanwhile(
            |scene, live| {
                until(live, "the card was exclusive", || scene.card().cards()["cards"][0]["compute_mode"] != 0)?;
                live.signal(Signal::SIGKILL);
                Ok(())
            },
        ),
        streams("standard_error_is_full_on_a_card", "exec 2>/dev/full"),
        streams(
            "both_go_to_a_reader_that_ends_on_a_card",
            "mkfifo \"$ASIDE/p\"; head -1 < \"$ASIDE/p\" >/dev/null & exec > \"$ASIDE/p\" 2>&1",
        ),
        case(KIND, "lost_while_members_train").on("a100-40gb,lost@1s").of(MPS).exits(&[1, 4]).act(|scene| {
            // It stays lost: the same machine after it was switched on again has another card for us.
            let said = scene.collo(&["run", "x", "--no-report"], Duration::from_secs(60))?;
            ended(&said)?;
            hold(matches!(said.code, 1 | 4), || format!("it ended with {}\n{}", said.code, end_of(&said)))?;
            for journal in std::fs::read_dir(scene.card().state()).into_iter().flatten().flatten() {
                let _ = std::fs::remove_file(journal.path());
            }
            fs_err::remove_dir_all(scene.at("runs/x")).map_err(|e| e.to_string())
        }),
    ]
}
