//! What runs before the first member: `prepare` commands, and interpreters that are looked at.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::hostile::case::{Case, case, hold};
use crate::hostile::scene::Scene;
use crate::hostile::signals_to::until;

const KIND: &str = "preparing data, looking at Python";
const X: &str = "[axes]\nworkload = \"prepared\"\n";

/// A workload whose `prepare` command is this shell, once; when all is well it prepares.
fn prepared(name: &str, shell: &str) -> Case {
    let script =
        format!("if [ -z \"$HOSTILE_CALM\" ]; then\n{shell}\nfi\necho '{{\"dataset\":\"d\",\"synthetic\":true,\"items\":1}}'\n");
    case(KIND, name).of(X).before(move |scene| {
        scene.write("workloads/prepared/workload.toml", WORKLOAD);
        scene.write("workloads/prepared/prepare.sh", &script);
        fs_err::copy(scene.at("workloads/sleep/train.py"), scene.at("workloads/prepared/train.py")).map_err(|e| e.to_string())?;
        Ok(())
    })
}

const WORKLOAD: &str = "command = [\"python\", \"train.py\", \"--seconds\", \"0.1\"]
prepare = [\"sh\", \"prepare.sh\"]
environment = \"system\"\n";

/// A daemon and a command that never ends; the file says that both are there.
const HANGS: &str =
    "setsid sh -c 'trap \"\" TERM INT HUP; sleep 600; :' & touch \"$ASIDE/there\"; trap '' TERM INT HUP; sleep 600; :";

/// Strike while it prepares.
fn struck(name: &str, signal: Signal, codes: &[i32]) -> Case {
    prepared(name, HANGS).exits(codes).meanwhile(move |scene, live| {
        until(live, "data was prepared", || scene.aside("there").exists())?;
        live.signal(signal);
        Ok(())
    })
}

/// A virtual environment of its own whose interpreter never answers.
fn interpreter(name: &str, shell: &'static str) -> Case {
    case(KIND, name).of("[axes]\nworkload = \"own\"\n").before(move |scene: &Scene| {
        scene.write(
            "workloads/own/workload.toml",
            "command = [\"python\", \"train.py\", \"--seconds\", \"0.1\"]\nenvironment = \"./own.sh\"\n",
        );
        let script = format!("#!/bin/sh\n[ -n \"$HOSTILE_CALM\" ] && exec python3 \"$@\"\n{shell}\n");
        scene.write("workloads/own/own.sh", &script);
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs_err::set_permissions(scene.at("workloads/own/own.sh"), rights).map_err(|e| e.to_string())?;
        fs_err::copy(scene.at("workloads/sleep/train.py"), scene.at("workloads/own/train.py")).map_err(|e| e.to_string())?;
        Ok(())
    })
}

pub fn cases() -> Vec<Case> {
    let probed = |name, signal, codes: &[i32]| {
        interpreter(name, HANGS).exits(codes).meanwhile(move |scene, live| {
            until(live, "Python was looked at", || scene.aside("there").exists())?;
            live.signal(signal);
            Ok(())
        })
    };
    vec![
        struck("killed_while_data_is_prepared", Signal::SIGKILL, &[-9]).sample(),
        struck("terminated_while_data_is_prepared", Signal::SIGTERM, &[4]),
        struck("hung_up_while_data_is_prepared", Signal::SIGHUP, &[4]),
        struck("ctrl_c_while_data_is_prepared", Signal::SIGINT, &[130]),
        probed("killed_while_python_is_looked_at", Signal::SIGKILL, &[-9]),
        probed("terminated_while_python_is_looked_at", Signal::SIGTERM, &[4]),
        probed("ctrl_c_while_python_is_looked_at", Signal::SIGINT, &[130]),
        interpreter("an_interpreter_that_never_answers", "sleep 600").exits(&[2, 3]).within(90),
        interpreter("an_interpreter_that_answers_nonsense", "echo hello").exits(&[2, 3]),
        interpreter("an_interpreter_that_says_too_much", "yes").exits(&[2, 3]).within(90),
        prepared("prepare_leaves_a_daemon_on_its_output", "setsid sleep 600 &").within(30),
        prepared("prepare_says_too_much", "head -c 200000000 /dev/zero | tr '\\0' x; echo").exits(&[0, 3]),
        prepared("prepare_says_nothing", "exit 0").exits(&[3]),
        prepared("prepare_fails", "echo oh >&2; exit 7").exits(&[3]).says("oh"),
        prepared("prepare_says_escapes", r#"printf '{"dataset":"\\u001b]0;owned\\u0007","synthetic":true,"items":1}\n'; exit 0"#)
            .looks(|_, said| hold(!said.stderr.contains("\x1b]"), || "an escape sequence reached the terminal".into())),
        prepared("prepare_is_killed", "kill -9 $$").exits(&[3]),
        prepared("prepare_kills_its_parent", "sleep 600 & kill -9 $PPID; wait")
            .exits(&[3, -9])
            .within(Duration::from_secs(30).as_secs()),
    ]
}
