//! The list of all keys of an experiment: the reader, the JSON Schema and the hints are all derived from it.
//!
//! To add a key: its line here, its field in `Experiment`, its reading in `read.rs` or below `read/`, and a line in
//! `experiments/quickstart.toml`, where a test looks for every key.

use collo_store::Outcome;

use super::SourceChoice;
use crate::cell::MOST_MEMBERS;
use crate::facts::NumaMemory;
use collo_quantity::key::NAMES_OF_CELLS;
use collo_store::AfterMeasured;
use collo_text::fields::{Key, Shape, ValueKind};

const fn key(name: &'static str, kind: ValueKind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, default: Some(default), about, former: None }
}

const fn bare(name: &'static str, kind: ValueKind, about: &'static str) -> Key {
    Key { name, kind, default: None, about, former: None }
}

const HELP: &str = "collo schema experiment";

pub const SEARCHES: &[&str] = &["largest-degree"];
pub const RECORDING: &[&str] = &["on", "off"];
pub const DEVICES: &[&str] = &["auto", "cpu", "gpu"];
pub const FAILURE_RULES: &[&str] = &["end-group", "keep-survivors"];

const SHARING: ValueKind = ValueKind::Axis { of: &ValueKind::Text, empty: "for baselines alone: `[\"solo\"]`" };
const BATCH: ValueKind = ValueKind::Whole { from: 1, to: 1_000_000 };

pub static EXPERIMENT: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("schema", ValueKind::Whole { from: 1, to: u64::MAX }, "1", "the version of this format"),
        bare("name", ValueKind::Text, "the name of the experiment and of its file; by default the file's"),
        bare("description", ValueKind::Text, "one sentence for lists and reports"),
        bare(
            "include",
            ValueKind::List(&ValueKind::Text),
            "files, relative to this one, whose keys hold where this one does not give them; of several the last",
        ),
        key("tags", ValueKind::List(&ValueKind::Text), "[]", "words to select experiments by, as in `--tag quick`"),
        key(
            "device",
            ValueKind::Choice(DEVICES),
            "\"auto\"",
            "the device to train on; `auto` is a GPU if there is one, else the CPU",
        ),
        key(
            "repetitions",
            ValueKind::Whole { from: 1, to: 1000 },
            "3",
            "how often each cell is run; solo baselines run twice as often",
        ),
        key(
            "epochs",
            ValueKind::Whole { from: 1, to: 10_000 },
            "2",
            "epochs per run; the first is warm-up if there are two or more",
        ),
        bare(
            "measure_for",
            ValueKind::Duration,
            "measure whole epochs for at least so long, and at least `epochs`; members then keep running",
        ),
        key("seed", ValueKind::Whole { from: 0, to: u64::MAX }, "42", "shuffles the order of cells within each block"),
        bare(
            "after_measured",
            ValueKind::Choice(AfterMeasured::WORDS),
            "what a finished member does while others still measure: `keep-running` (the default of uniform groups) or `exit` (of mixed ones)",
        )
        .formerly("tail", AfterMeasured::FORMER),
        key("timeout", ValueKind::Duration, "\"30m\"", "the longest a whole run may take"),
        key(
            "set_up_timeout",
            ValueKind::Duration,
            "\"5m\"",
            "the longest until every member is ready; by default 1m more for each further member if they tune on a GPU or \
             compile, which they do in turn",
        ),
        key("stall_timeout", ValueKind::Duration, "\"10m\"", "the longest an epoch may take"),
        key(
            "cooldown",
            ValueKind::Pause,
            "\"1s\"",
            "the pause between two runs; or `until 5C above idle, at most 10m`: until the GPU is nearly as cool as before the campaign",
        ),
        key("member_failure", ValueKind::Choice(FAILURE_RULES), "\"end-group\"", "the fate of the others when a member dies"),
        bare("retries", ValueKind::Table(&RETRIES), "how often failed runs are measured again; none without it"),
        key("threads", ValueKind::Whole { from: 1, to: 1024 }, "1", "threads each member computes with"),
        key(
            "cores",
            ValueKind::OneOrMore(&ValueKind::Text),
            "\"shared\"",
            "`shared`: the system decides; `spread`: each member has its own; `gpu-local`: those near the GPU, which `gpu-local-spread` divides; a list for all such as `0-3,8`, or a list for each member: `[\"0-3\", \"4-7\"]`",
        ),
        key(
            "numa_memory",
            ValueKind::Choice(NumaMemory::WORDS),
            "\"system\"",
            "`local`: each member's memory is bound to the NUMA nodes of its cores; `system`: the system decides",
        ),
        bare(
            "limits",
            ValueKind::Table(&SLICES),
            "the limits of each workload in mixed groups under `mps:each`, as in `small = \"20%,mem=4GB\"`",
        ),
        bare("slices", ValueKind::Table(&SLICES), "the MIG profile of each workload in mixed groups, or its share, as in `small = \"1g\"`"),
        bare(
            "search",
            ValueKind::Choice(SEARCHES),
            "`largest-degree`: find the largest degree that fits, between the least and the largest of the degree axis",
        ),
        bare("axes", ValueKind::Table(&AXES), "what is varied: the cells are all combinations"),
        bare("zip", ValueKind::Tables(&ZIP), "axes that step together: lists of equal length, crossed with the other axes"),
        bare("exclude", ValueKind::Tables(&EXCLUDE), "cells to leave out"),
        bare("expect", ValueKind::Tables(&EXPECT), "cells that are expected to fail, and how"),
        bare("group", ValueKind::Tables(&GROUP), "a mixed group, in addition to the matrix of the axes"),
        bare("trace", ValueKind::Table(&TRACE), "tasks that arrive one after another, instead of groups that start together"),
        bare("manager", ValueKind::Table(&MANAGER), "how the manager of a trace works"),
        bare("sampling", ValueKind::Table(&SAMPLING), "how often readings are taken"),
        bare("thresholds", ValueKind::Table(&THRESHOLDS), "what counts as relevant"),
        bare("until", ValueKind::Table(&UNTIL), "repeat cells whose interval is wider, after the planned repetitions"),
        bare("reference", ValueKind::Tables(&REFERENCE), "a value expected of a cell, with its tolerance, for the report and `collo verify`"),
    ],
};

pub static SLICES: Shape = Shape { help: HELP, others: Some(&ValueKind::Text), keys: &[] };

pub static AXES: Shape = Shape {
    help: HELP,
    others: Some(&ValueKind::Axis { of: &ValueKind::Setting, empty: "leave the key out for the workload's default" }),
    keys: &[
        bare(
            "workload",
            ValueKind::Axis { of: &ValueKind::Text, empty: "all: `collo list workloads`" },
            "folders of `workloads/`",
        ),
        bare(
            "batch_size",
            ValueKind::Axis { of: &BATCH, empty: "leave the key out for the workload's default" },
            "items per step",
        ),
        key("sharing", SHARING, "[\"naive\"]", "sharing modes; all: `collo list modes`"),
        key(
            "degree",
            ValueKind::Axis { of: &ValueKind::Whole { from: 1, to: MOST_MEMBERS }, empty: "for baselines alone: `[1]`" },
            "[1]",
            "members training together",
        ),
        bare(
            "observe",
            ValueKind::Axis { of: &ValueKind::Text, empty: "for nobody: `[\"none\"]`" },
            "who watches the members: `none`, `collo` (its own sampling, at a rate: `collo:100Hz`), or a file of `observers/`, such as `top` or `top:10Hz`; each is compared with `none`",
        ),
        bare(
            "policy",
            ValueKind::Axis { of: &ValueKind::Text, empty: "all: `collo list policies`" },
            "of a trace: who decides where a task goes",
        ),
        bare(
            "estimate",
            ValueKind::Axis { of: &ValueKind::Choice(ESTIMATES), empty: "without estimates: `[\"none\"]`" },
            "of a trace: who estimates the memory of a task before it runs; `none` unless given",
        ),
    ],
};

/// Who estimates the memory of tasks: nobody, their own published measurement, the published estimators, collo's own predictor.
pub const ESTIMATES: &[&str] = &["none", "measured", "horus", "faketensor", "gpumemnet", "predicted"];
pub const RECOVERY_KEEPS: &[&str] = &["card", "all"];

pub static TRACE: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        bare("name", ValueKind::Text, "a file of `traces/`; all: `collo list traces`"),
        key(
            "orders",
            ValueKind::Axis { of: &ValueKind::Whole { from: 0, to: u64::MAX }, empty: "as in `[1, 2, 3]`" },
            "[1]",
            "seeds, one for each order of its tasks; policies are compared within an order",
        ),
        key(
            "scale",
            ValueKind::Text,
            "\"1:1\"",
            "`1:300` divides arrivals, epochs (then batches) and the manager's times by 300",
        ),
        bare(
            "cards",
            ValueKind::Whole { from: 1, to: 4096 },
            "cards of the site: as many GPUs, or as many equal sets of CPU cores; by default those of `--gpu`, or two sets",
        ),
    ],
};

pub static MANAGER: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("window", ValueKind::Duration, "\"90s\"", "readings of a card are means over so long"),
        key(
            "settle",
            ValueKind::Pause,
            "\"ready\"",
            "when readings contain a newcomer: once it is `ready`, or a duration after its launch for scripts without the protocol",
        ),
        key(
            "queue",
            ValueKind::Text,
            "\"fifo\"",
            "`fifo`, or `fifo:pass=3`: a task may be passed so often by later ones that fit",
        ),
        key(
            "recovery",
            ValueKind::Text,
            "\"exclusive\"",
            "where a task that ran out of memory goes: an idle card (`exclusive`), one with so much more free (`step:5GB`), nowhere (`none`)",
        ),
        key(
            "recovery_keeps",
            ValueKind::Choice(RECOVERY_KEEPS),
            "\"card\"",
            "what a recovery that waits keeps from others: one card, or `all` as in the study's code",
        ),
        key("attempts", ValueKind::Whole { from: 1, to: 100 }, "4", "attempts at a task that runs out of memory"),
        key("idle_first", ValueKind::Choice(YES_NO), "\"yes\"", "`yes`: idle cards go first, whatever the policy's order"),
        bare("decide", ValueKind::Duration, "decide at most so often; by default whenever something happens"),
    ],
};

pub const YES_NO: &[&str] = &["yes", "no"];

const STEPS: &ValueKind = &ValueKind::List(&ValueKind::Setting);

pub static ZIP: Shape = Shape {
    help: HELP,
    others: Some(STEPS),
    keys: &[
        bare("workload", ValueKind::List(&ValueKind::Text), "a workload for each step"),
        bare("batch_size", ValueKind::List(&BATCH), "items per step of training, for each"),
        bare("sharing", ValueKind::List(&ValueKind::Text), "a sharing mode for each"),
        bare("degree", ValueKind::List(&ValueKind::Whole { from: 1, to: MOST_MEMBERS }), "a number of members for each"),
        bare("observe", ValueKind::List(&ValueKind::Text), "who watches each"),
        bare("policy", ValueKind::List(&ValueKind::Text), "of a trace: a policy for each"),
        bare("estimate", ValueKind::List(&ValueKind::Choice(ESTIMATES)), "of a trace: an estimate for each"),
    ],
};

pub static EXCLUDE: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[bare("where", ValueKind::Text, "an expression over the axes, as in `degree > 4 && workload == \"small\"`")],
};

pub static EXPECT: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        bare("where", ValueKind::Text, "an expression over the axes, as in `degree == 7 && sharing == \"naive\"`"),
        bare(
            "outcome",
            ValueKind::Choice(Outcome::EXPECTABLE),
            "the outcome of every run of these cells; any other is reported as a failure",
        ),
        bare("reason", ValueKind::Text, "why, in a sentence for the report"),
    ],
};

pub static REFERENCE: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        bare("cell", ValueKind::Text, "the label of a cell, as `collo plan` prints it"),
        bare("quantity", ValueKind::Choice(&NAMES_OF_CELLS), "the quantity of the cell, as in report.json"),
        bare("value", ValueKind::Number { from: -1e18, to: 1e18 }, "its value, in the unit of the quantity's name"),
        bare("tolerance", ValueKind::Ratio, "the largest distance from it, as a share of it: `\"5%\"`"),
        bare("device", ValueKind::Text, "only on GPUs whose name contains this; by default on all"),
    ],
};

pub static UNTIL: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("quantity", ValueKind::Choice(&NAMES_OF_CELLS), "\"throughput_gain\"", "the quantity whose interval counts"),
        bare("width", ValueKind::Ratio, "the largest width of its 95 % interval, from end to end, as a share of it: `\"5%\"`"),
        key("at_most", ValueKind::Whole { from: 1, to: 1000 }, "10", "repetitions of a cell at most"),
    ],
};

pub static RETRIES: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        bare("each", ValueKind::Whole { from: 0, to: 100 }, "further attempts at one run; 1 unless given"),
        bare("total", ValueKind::Whole { from: 0, to: 100_000 }, "further attempts in the whole campaign; 5 unless given"),
    ],
};

pub static GROUP: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        bare("members", ValueKind::Tables(&MEMBER), "its members"),
        bare("sharing", SHARING, "sharing modes of this group; by default those of the axes"),
        bare("after_measured", ValueKind::Choice(AfterMeasured::WORDS), "the same, for this group")
            .formerly("tail", AfterMeasured::FORMER),
    ],
};

pub static MEMBER: Shape = Shape {
    help: HELP,
    others: Some(&ValueKind::Setting),
    keys: &[
        bare("workload", ValueKind::Text, "a folder of `workloads/`"),
        key("count", ValueKind::Whole { from: 1, to: MOST_MEMBERS }, "1", "copies of it"),
        bare("batch_size", BATCH, "items per step; by default the workload's"),
    ],
};

pub static SAMPLING: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key(
            "recording",
            ValueKind::Choice(RECORDING),
            "\"on\"",
            "`off` records no time series, so that its cost can be measured: power, energy, activity and the like are then absent",
        ),
        key("rate_hz", ValueKind::Number { from: 0.1, to: 1000.0 }, "10", "readings per second of cheap sources"),
        key("slow_rate_hz", ValueKind::Number { from: 0.01, to: 100.0 }, "1", "readings per second of slow sources"),
        key(
            "sm_source",
            ValueKind::Choice(SourceChoice::OF_EXPERIMENTS),
            "\"auto\"",
            "source of a GPU's SM activity: `gpm` (Hopper and later), `dcgm`, `dcgm-pipes` with the FP64 and FP16 pipes of older GPUs, `both` side by side; `auto` takes the first that responds",
        ),
        key(
            "pss_every",
            ValueKind::Duration,
            "\"30s\"",
            "between two readings of proportional memory, which walks the page tables",
        ),
    ],
};

pub static THRESHOLDS: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("relevant", ValueKind::Ratio, "\"5%\"", "a difference of this share is worth acting on"),
        key(
            "slowdown",
            ValueKind::Number { from: 1.0, to: 1000.0 },
            "1.1",
            "the slowest member's slowdown that is still acceptable",
        ),
        key("overlap", ValueKind::Ratio, "\"95%\"", "an epoch counts if all members trained during this share of it"),
        key("start_skew", ValueKind::Duration, "\"100ms\"", "spread of the members' starts above which a run is indicative only"),
        key(
            "baseline_drift",
            ValueKind::Ratio,
            "\"10%\"",
            "drift of a block's baselines from which on it is reported; it widens the intervals",
        ),
    ],
};
