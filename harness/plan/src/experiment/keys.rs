//! An experiment, a row for each key; what is wrong with several of them is checked in `read.rs` and below `read/`.
//!
//! To add a key: its row here, and a line in `experiments/quickstart.toml`, where a test looks for every key.

use std::path::PathBuf;
use std::time::Duration;

use collo_quantity::key::NAMES_OF_CELLS;
use collo_store::{AfterMeasured, Outcome, Reference, Thresholds, WantedWidth};
use collo_text::fields::ValueKind::{
    self, Axis, Choice, DurationOr, List, Map, Number, OneOrMore, Ratio, Setting, Table, Text, Whole,
};
use collo_text::fields::{KeyType, Value};

use super::{Axes, ExpectedFailure, Layers, MixedGroup, RetryBudget, SourceChoice, ThermalGate, TracePlan};
use crate::cell::MOST_MEMBERS;
use crate::facts::{Cores, NumaMemory};
use crate::select::Expression;
use crate::sharing::Each;

const ANY: ValueKind = Whole(0..=u64::MAX);
const BATCH: ValueKind = Whole(1..=1_000_000);
const DEGREE: ValueKind = Whole(1..=MOST_MEMBERS);
/// Who estimates the memory of tasks: nobody, their own published measurement, the published estimators, collo's own predictor.
const ESTIMATES: ValueKind = Choice(&["none", "measured", "horus", "faketensor", "gpumemnet", "predicted"]);
const SHARING: ValueKind = Axis(&Text, "for baselines alone: `[\"solo\"]`");
const THE_DEFAULT: &str = "leave the key out for the workload's default";

collo_text::keys! { "collo schema experiment";
    /// One experiment, as read.
    #[derive(Debug, Clone)]
    pub struct Experiment {
        schema [Whole(1..=u64::MAX)] = 1, "the version of this format";
        name [Text], "the name of the experiment and of its file; by default the file's";
        description: Option<String>, "one sentence for lists and reports";
        include [List(&Text)],
            "files, relative to this one, whose keys hold where this one does not give them; of several the last";
        tags: Vec<String> = [], "words to select experiments by, as in `--tag quick`";
        device: DeviceChoice = "auto", "the device to train on; `auto` is a GPU if there is one, else the CPU";
        repetitions: u32 [Whole(1..=1000)] = 3, "how often each cell is run; solo baselines run twice as often";
        epochs: u32 [Whole(1..=10_000)] = 2, "epochs per run; the first is warm-up if there are two or more";
        measure_for: Option<Duration>,
            "measure whole epochs for at least so long, and at least `epochs`; members then keep running";
        seed: u64 = 42, "shuffles the order of cells within each block";
        after_measured: Option<AfterMeasured>,
            "what a finished member does while others still measure: `keep-running` (the default of uniform groups) or `exit` \
             (of mixed ones)";
        timeout: Duration = "30m", "the longest a whole run may take";
        set_up_timeout: Duration = "5m",
            "the longest until every member is ready; by default 1m more for each further member if they tune on a GPU or \
             compile, which they do in turn";
        stall_timeout: Duration = "10m", "the longest an epoch may take";
        cooldown: Duration [DurationOr("until")] = "1s",
            "the pause between two runs; or `until 5C above idle, at most 10m`: until the GPU is nearly as cool as before the \
             campaign";
        member_failure: FailureRule = "end-group", "the fate of the others when a member dies";
        retries [Table(&RETRIES)], "how often failed runs are measured again; none without it";
        threads: u32 [Whole(1..=1024)] = 1, "threads each member computes with";
        cores [OneOrMore(&Text)] = "shared",
            "`shared`: the system decides; `spread`: each member has its own; `gpu-local`: those near the GPU, which \
             `gpu-local-spread` divides; a list for all such as `0-3,8`, or a list for each member: `[\"0-3\", \"4-7\"]`";
        numa_memory: NumaMemory = "system",
            "`local`: each member's memory is bound to the NUMA nodes of its cores; `system`: the system decides";
        limits [Map(&Text)],
            "the limits of each workload in mixed groups under `mps:each`, as in `small = \"20%,mem=4GB\"`";
        slices [Map(&Text)], "the MIG profile of each workload in mixed groups, or its share, as in `small = \"1g\"`";
        search: bool [Choice(&["largest-degree"])],
            "`largest-degree`: find the largest degree that fits, between the least and the largest of the degree axis";
        axes [Table(&AXES)], "what is varied: the cells are all combinations";
        zip [List(&Table(&ZIP))], "axes that step together: lists of equal length, crossed with the other axes";
        exclude [List(&Table(&EXCLUDE))], "cells to leave out";
        expect [List(&Table(&EXPECT))], "cells that are expected to fail, and how";
        group [List(&Table(&GROUP))], "a mixed group, in addition to the matrix of the axes";
        trace [Table(&TRACE)], "tasks that arrive one after another, instead of groups that start together";
        manager [Table(&MANAGER)], "how the manager of a trace works";
        sampling: SamplingRates, "how often readings are taken";
        thresholds [Table(&THRESHOLDS)], "what counts as relevant";
        until [Table(&UNTIL)], "repeat cells whose interval is wider, after the planned repetitions";
        reference [List(&Table(&REFERENCE))],
            "a value expected of a cell, with its tolerance, for the report and `collo verify`";
    } and {
        pub path: PathBuf,
        /// The texts that it was read from.
        pub layers: Layers,
        pub name: String,
        /// Additional set-up time for each further member that takes its turn to tune or compile; zero if the file sets the timeout.
        pub set_up_turn: Duration,
        /// Besides the pause.
        pub thermal_gate: Option<ThermalGate>,
        pub retries: RetryBudget,
        pub cores: Cores,
        /// Settings of individual workloads in mixed groups.
        pub each: Each,
        pub axes: Axes,
        pub exclude: Vec<Expression>,
        pub expect: Vec<ExpectedFailure>,
        pub groups: Vec<MixedGroup>,
        /// Tasks that arrive one after another, instead of groups that start together.
        pub trace: Option<TracePlan>,
        pub thresholds: Thresholds,
        /// Values that the report compares with.
        pub references: Vec<Reference>,
        /// Cells are repeated until their intervals are so narrow.
        pub until: Option<WantedWidth>,
        /// Unusual but valid settings, for the user.
        pub warnings: Vec<String>,
    }

    /// Sampling rates.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct SamplingRates {
        recording: bool [Choice(&["on", "off"])] = "on",
            "`off` records no time series, so that its cost can be measured: power, energy, activity and the like are then \
             absent";
        rate_hz: f64 [Number(0.1..=1000.0)] = 10, "readings per second of cheap sources";
        slow_rate_hz: f64 [Number(0.01..=100.0)] = 1, "readings per second of slow sources";
        sm_source: SourceChoice = "auto",
            "source of a GPU's SM activity: `gpm` (Hopper and later), `dcgm`, `dcgm-pipes` with the FP64 and FP16 pipes of \
             older GPUs, `both` side by side; `auto` takes the first that responds";
        pss_every: Duration = "30s", "between two readings of proportional memory, which walks the page tables";
    }
}

collo_text::keys! { "collo schema experiment";
    pub static AXES [Axis(&Setting, THE_DEFAULT)] {
        workload [Axis(&Text, "all: `collo list workloads`")], "folders of `workloads/`";
        batch_size [Axis(&BATCH, THE_DEFAULT)], "items per step";
        sharing [SHARING] = ["naive"], "sharing modes; all: `collo list modes`";
        degree [Axis(&DEGREE, "for baselines alone: `[1]`")] = [1], "members training together";
        observe [Axis(&Text, "for nobody: `[\"none\"]`")],
            "who watches the members: `none`, `collo` (its own sampling, at a rate: `collo:100Hz`), or a file of \
             `observers/`, such as `top` or `top:10Hz`; each is compared with `none`";
        policy [Axis(&Text, "all: `collo list policies`")], "of a trace: who decides where a task goes";
        estimate [Axis(&ESTIMATES, "without estimates: `[\"none\"]`")],
            "of a trace: who estimates the memory of a task before it runs; `none` unless given";
    }

    pub static TRACE {
        name [Text], "a file of `traces/`; all: `collo list traces`";
        orders [Axis(&ANY, "as in `[1, 2, 3]`")] = [1],
            "seeds, one for each order of its tasks; policies are compared within an order";
        scale [Text] = "1:1", "`1:300` divides arrivals, epochs (then batches) and the manager's times by 300";
        cards [Whole(1..=4096)],
            "cards of the site: as many GPUs, or as many equal sets of CPU cores; by default those of `--gpu`, or two sets";
    }

    pub static MANAGER {
        window [ValueKind::Duration] = "90s", "readings of a card are means over so long";
        settle [DurationOr("ready")] = "ready",
            "when readings contain a newcomer: once it is `ready`, or a duration after its launch for scripts without the \
             protocol";
        queue [Text] = "fifo",
            "`fifo`, or `fifo:pass=3`: a task may be passed so often by later ones that fit; or `fifo:one`: one task at each \
             decision";
        recovery [Text] = "exclusive",
            "where a task that ran out of memory goes: an idle card (`exclusive`), one with so much more free (`step:5GB`), \
             nowhere (`none`)";
        recovery_keeps [Choice(&["card", "all"])] = "card",
            "what a recovery that waits keeps from others: one card, or `all` as in the study's code";
        attempts [Whole(1..=100)] = 4, "attempts at a task that runs out of memory";
        idle_first [Choice(&["yes", "no"])] = "yes", "`yes`: idle cards go first, whatever the policy's order";
        decide [ValueKind::Duration], "decide at most so often; by default whenever something happens";
    }

    pub static ZIP [List(&Setting)] {
        workload [List(&Text)], "a workload for each step";
        batch_size [List(&BATCH)], "items per step of training, for each";
        sharing [List(&Text)], "a sharing mode for each";
        degree [List(&DEGREE)], "a number of members for each";
        observe [List(&Text)], "who watches each";
        policy [List(&Text)], "of a trace: a policy for each";
        estimate [List(&ESTIMATES)], "of a trace: an estimate for each";
    }

    pub static EXCLUDE {
        condition ("where") [Text], "an expression over the axes, as in `degree > 4 && workload == \"small\"`";
    }

    pub static EXPECT {
        condition ("where") [Text], "an expression over the axes, as in `degree == 7 && sharing == \"naive\"`";
        outcome [Choice(Outcome::EXPECTABLE)], "the outcome of every run of these cells; any other is reported as a failure";
        reason [Text], "why, in a sentence for the report";
    }

    pub static REFERENCE {
        cell [Text], "the label of a cell, as `collo plan` prints it";
        quantity [Choice(&NAMES_OF_CELLS)], "the quantity of the cell, as in report.json";
        value [Number(-1e18..=1e18)], "its value, in the unit of the quantity's name";
        tolerance [Ratio], "the largest distance from it, as a share of it: `\"5%\"`";
        device [Text], "only on GPUs whose name contains this; by default on all";
    }

    pub static UNTIL {
        quantity [Choice(&NAMES_OF_CELLS)] = "throughput_gain", "the quantity whose interval counts";
        width [Ratio], "the largest width of its 95 % interval, from end to end, as a share of it: `\"5%\"`";
        at_most [Whole(1..=1000)] = 10, "repetitions of a cell at most";
    }

    pub static RETRIES {
        each [Whole(0..=100)], "further attempts at one run; 1 unless given";
        total [Whole(0..=100_000)], "further attempts in the whole campaign; 5 unless given";
    }

    pub static GROUP {
        members [List(&Table(&MEMBER))], "its members";
        sharing [SHARING], "sharing modes of this group; by default those of the axes";
        after_measured [Choice(AfterMeasured::WORDS)], "the same, for this group";
    }

    pub static MEMBER [Setting] {
        workload [Text], "a folder of `workloads/`";
        count [DEGREE] = 1, "copies of it";
        batch_size [BATCH], "items per step; by default the workload's";
    }

    pub static THRESHOLDS {
        relevant [Ratio] = "5%", "a difference of this share is worth acting on";
        slowdown [Number(1.0..=1000.0)] = 1.1, "the slowest member's slowdown that is still acceptable";
        overlap [Ratio] = "95%", "an epoch counts if all members trained during this share of it";
        start_skew [ValueKind::Duration] = "100ms", "spread of the members' starts above which a run is indicative only";
        baseline_drift [Ratio] = "10%", "drift of a block's baselines from which on it is reported; it widens the intervals";
    }
}

collo_text::words! {
    pub enum DeviceChoice {
        #[default]
        Auto = "auto",
        Cpu = "cpu",
        Gpu = "gpu",
    }
}

collo_text::words! {
    /// What happens to the others when a member dies.
    pub enum FailureRule {
        #[default]
        EndGroup = "end-group",
        KeepSurvivors = "keep-survivors",
    }
}

impl KeyType for SourceChoice {
    const KIND: ValueKind = Choice(SourceChoice::OF_EXPERIMENTS);
    fn of(value: &Value) -> Option<SourceChoice> {
        if let Value::Text(word) = value { SourceChoice::named(word) } else { None }
    }
}
