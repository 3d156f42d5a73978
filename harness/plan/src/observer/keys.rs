//! The list of all keys of an `observers/NAME.toml`: the reader, the JSON Schema and the hints are all derived from it.
//!
//! To add a key: its line here, its field in `Observer`, its reading in `read.rs`.

use collo_store::{MONITOR, PROFILER};

use collo_text::fields::{Key, Shape, ValueKind};

const HELP: &str = "collo schema observer";

/// Where an observer runs.
pub const PLACES: &[&str] = &["beside", "around", "inside"];
/// What it is to the members.
pub const KINDS: &[&str] = &[MONITOR, PROFILER];
/// Signals that ask it to end.
pub const STOPS: &[&str] = &["interrupt", "terminate"];

const fn key(name: &'static str, kind: ValueKind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, kind, default, about, former: None }
}

pub static OBSERVER: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("about", ValueKind::Text, None, "one sentence for lists and reports"),
        key(
            "runs",
            ValueKind::Choice(PLACES),
            Some("\"beside\""),
            "`beside` the members, `around` the command of each, or `inside` each, by variables that its script obeys",
        ),
        key(
            "kind",
            ValueKind::Choice(KINDS),
            None,
            "`monitor` reads from outside; `profiler` instruments, stops or runs the members, and is expected to slow them. What runs \
             beside is a monitor unless it says otherwise, all else a profiler",
        ),
        key(
            "command",
            ValueKind::List(&ValueKind::Text),
            None,
            "program and arguments; `{pids}` the members' processes, `{pid}` one of them (then it runs once for each), `{folder}` where \
             it writes, `{member}`, `{rate_hz}`, `{interval_s}`, `{interval_ms}`, `{packages}`; around, `{command}` is the member's",
        ),
        key(
            "variables",
            ValueKind::Table(&VARIABLES),
            None,
            "environment variables of the observer; around and inside, of the members, too",
        ),
        key(
            "needs",
            ValueKind::List(&ValueKind::Text),
            None,
            "programs that must be on the PATH, and `gpu`; without them its cells are refused",
        ),
        key(
            "packages",
            ValueKind::Text,
            None,
            "a requirements file with hashes beside this one: installed apart from the workloads' own, as `{packages}`",
        ),
        key(
            "rate_hz",
            ValueKind::Number { from: 0.001, to: 10_000.0 },
            Some("1"),
            "readings per second, unless the experiment says otherwise",
        ),
        key("stop", ValueKind::Choice(STOPS), Some("\"interrupt\""), "the signal that asks it to end: SIGINT, or SIGTERM"),
        key("stop_timeout", ValueKind::Duration, Some("\"10s\""), "how long it may take to end before it is killed"),
        key("most", ValueKind::Text, Some("\"4GB\""), "the most that it may write in a run"),
        key("writes", ValueKind::Text, None, "what it writes"),
        key(
            "daemons",
            ValueKind::List(&ValueKind::Text),
            None,
            "services that work for it, by process name: their CPU time is told as well",
        ),
        key("disturbs", ValueKind::Text, None, "whom else it disturbs, in a sentence"),
        key("hint", ValueKind::Text, None, "how to get it, for those who lack it"),
        key("source", ValueKind::Text, None, "where its options are documented"),
    ],
};

pub static VARIABLES: Shape = Shape { help: HELP, others: Some(&ValueKind::Text), keys: &[] };
