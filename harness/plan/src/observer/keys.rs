//! An `observers/NAME.toml`, a row for each key; what is wrong with several of them is checked in `read.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use collo_store::{MONITOR, PROFILER};
use collo_text::fields::ValueKind::{Choice, List, Number, Size, Text};

collo_text::keys! { "collo schema observer";
    /// One observer, as its file describes it.
    #[derive(Debug, Clone)]
    pub struct Observer {
        about: Option<String>, "one sentence for lists and reports";
        place ("runs"): Place = "beside",
            "`beside` the members, `around` the command of each, or `inside` each, by variables that its script obeys";
        kind: String [Choice(&[MONITOR, PROFILER])],
            "`monitor` reads from outside; `profiler` instruments, stops or runs the members, and is expected to slow them. \
             What runs beside is by default a monitor, all else a profiler";
        command: Vec<String>,
            "program and arguments; `{pids}` the members' processes, `{pid}` one of them (then it runs once for each), \
             `{folder}` where it writes (never inside a script of `sh -c`), `{member}`, `{rate_hz}`, `{interval_s}`, `{interval_ms}`, `{packages}`; around, \
             `{command}` is the member's";
        variables: BTreeMap<String, String>, "environment variables of the observer; around and inside, of the members, too";
        needs [List(&Text)], "programs that must be there where it is started, and `gpu`; without them its cells are refused";
        packages [Text],
            "a requirements file with hashes beside this one: installed apart from the workloads' own, as `{packages}`";
        rate_hz: f64 [Number(0.001..=10_000.0)] = 1, "readings per second, unless the experiment sets another rate";
        stop: Stop = "interrupt", "the signal that asks it to end: SIGINT, or SIGTERM";
        stop_timeout: Duration = "10s", "how long it may take to end before it is killed";
        most_bytes ("most"): u64 [Size] = "4GB", "the most that it may write in a run";
        writes: Option<String>, "what it writes";
        daemons: Vec<String>, "services that work for it, by process name: their CPU time is reported as well";
        disturbs: Option<String>, "whom else it disturbs, in a sentence";
        hint: Option<String>, "how to get it, for those who lack it";
        source: Option<String>, "where its options are documented";
    } and {
        pub name: String,
        pub file: PathBuf,
        /// Programs that it needs.
        pub programs: Vec<String>,
        pub needs_gpu: bool,
        /// The first of the programs that is not on the PATH.
        pub lacks: Option<String>,
        /// Pins of its Python packages.
        pub packages: Option<PathBuf>,
    }
}

collo_text::words! {
    /// Where it runs.
    pub enum Place {
        /// Beside the members, as a process of its own.
        #[default]
        Beside = "beside",
        /// Around the command of each member.
        Around = "around",
        /// Inside each member, whose script obeys its variables.
        Inside = "inside",
    }
}

collo_text::words! {
    /// The signal that asks it to end.
    pub enum Stop {
        #[default]
        Interrupt = "interrupt",
        Terminate = "terminate",
    }
}
