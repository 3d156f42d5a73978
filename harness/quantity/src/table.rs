//! The table.
//!
//! To add a quantity: its row here, at its place in `report.json`; its value, under its key, in `analysis/src/cell/quantities.rs`, or of
//! traces in `analysis/src/trace`. One that comes from time series also has the trait `Sampled`, unless it is of the GPU. JSON, exports,
//! comparison, words and the table of `docs/guide/metrics.md` follow.

use crate::definition::Better::{Larger, Neither, Smaller};
use crate::definition::Trait::*;
use crate::definition::{Definition, Subject};
use crate::unit::*;

const TRAINING: Definition = Definition {
    name: "",
    label: "",
    short: "",
    unit: RATIO,
    better: Neither,
    subject: Subject::Training,
    traits: &[],
    absent: "it was not recorded",
    definition: "",
    source: "",
};
const REQUESTS: Definition = Definition { subject: Subject::Requests, ..TRAINING };
const CARD: Definition = Definition { subject: Subject::Card, ..TRAINING };
const TRACE: Definition = Definition { subject: Subject::Trace, ..TRAINING };

macro_rules! quantities {
    ($($key:ident: $name:literal, $label:literal, $unit:ident, $better:ident, $subject:ident { $($rest:tt)* })*) => {
        /// A quantity. It has the fields of its definition: `Key::Stp.label`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Key {
            $($key,)*
        }

        impl Key {
            /// Every quantity, in the order of `report.json`.
            pub const ALL: &[Key] = &[$(Key::$key,)*];

            pub const fn definition(self) -> &'static Definition {
                match self {
                    $(Key::$key => {
                        const { &Definition { name: $name, label: $label, unit: $unit, better: $better, $($rest)* ..$subject } }
                    })*
                }
            }
        }
    };
}

quantities! {
    EpochTime: "epoch_time_s", "epoch time", SECOND, Smaller, TRAINING {
        short: "epoch",
        traits: &[Cell, Member, Baseline, Uniform, PerEpoch, EpochLength, OneCard, Speed],
        absent: "no epoch had all members training",
        definition: "mean of *eᵢ* over members; null for mixed groups, whose members are listed one by one",
    }
    Slowdown: "slowdown", "slowdown", RATIO, Smaller, TRAINING {
        traits: &[Cell, Member, NeedsBaseline, OneAlone, PerEpoch],
        absent: "no epoch had all members training",
        definition: "mean of *eᵢ ÷ bᵢ*. Per member: *eᵢ ÷ bᵢ*",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008",
    }
    SlowdownOnSlice: "slowdown_on_slice", "slowdown on its slice", RATIO, Smaller, TRAINING {
        short: "slice slowdown",
        traits: &[Cell, Member, PerEpoch, Unmissed],
        absent: "its members were not measured alone on such slices",
        definition: "mean of *eᵢ ÷ sᵢ*, where *sᵢ* is the epoch time of the same workload alone on a slice of the same size: what the \
            neighbours cost. Per member: *eᵢ ÷ sᵢ*. *sᵢ ÷ bᵢ*, the slowdown of that other cell, is what the smaller slice costs. Null \
            without slices",
    }
    ThroughputGain: "throughput_gain", "throughput gain", RATIO, Larger, TRAINING {
        short: "gain",
        traits: &[Cell, NeedsBaseline, OneAlone, PerEpoch],
        definition: "work per second relative to running in turn, by one of the three definitions below, named by `throughput_gain_by`",
    }
    Stp: "stp", "STP", RATIO, Larger, TRAINING {
        traits: &[Cell, NeedsBaseline, OneAlone, PerEpoch],
        absent: "no epoch had all members training",
        definition: "Σ *pᵢ*: system throughput, in units of one undisturbed member",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008",
    }
    Antt: "antt", "ANTT", RATIO, Smaller, TRAINING {
        traits: &[Cell, NeedsBaseline, OneAlone, PerEpoch],
        absent: "no epoch had all members training",
        definition: "average normalised turnaround time: the literature's name for the slowdown",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008",
    }
    Fairness: "fairness", "fairness", RATIO, Larger, TRAINING {
        traits: &[Cell, NeedsBaseline, Company, PerEpoch, AtMostOne],
        absent: "no epoch had all members training",
        definition: "least ÷ largest *pᵢ*; equal members need no baseline, it cancels",
        source: "Eyerman and Eeckhout, IEEE Micro 28(3), 2008 (min/max progress)",
    }
    Overlap: "overlap_ratio", "overlap", SHARE, Neither, TRAINING {
        traits: &[Cell, Company, AtMostOne],
        definition: "mean over measured epochs of the share of the epoch in which all members trained",
    }
    StartSkew: "start_skew_s", "start skew", SECOND, Smaller, TRAINING {
        traits: &[Cell, Company],
        definition: "last less first start of training",
    }
    Makespan: "makespan_s", "makespan", SECOND, Smaller, TRAINING {
        traits: &[Cell, Baseline, PerEpoch, EpochLength, OneCard, Speed],
        definition: "`go` until the last measured epoch ended, warm-up epoch included",
    }
    Memory: "memory_bytes", "memory", BYTE, Smaller, TRAINING {
        traits: &[Cell, Member, Baseline, Sampled],
        absent: "no sample was taken",
        definition: "sum of the members' peaks while they trained, read as described below: an upper bound of their simultaneous use; of threads of one process the peak of that process",
    }
    MemoryOfSolo: "memory_of_solo", "memory ÷ sum of solo", RATIO, Smaller, TRAINING {
        short: "memory ÷ solo",
        traits: &[Cell, NeedsBaseline, OneAlone, Sampled],
        absent: "no sample was taken",
        definition: "`memory_bytes` ÷ Σ of the members' solo footprints, both read the same way",
    }
    MemoryHeadroom: "memory_headroom_bytes", "free memory", BYTE, Larger, TRAINING {
        traits: &[Cell, Unmissed],
        definition: "memory that further members could use: on a whole GPU its memory − the larger of `memory_bytes` and the largest reading of its `memory_used_bytes` while members trained, which contains contexts, the MPS server, the driver and other processes; on instances the memory of those that the members have − `memory_bytes`, without what belongs to no member's instance; on a CPU the machine's memory − `memory_bytes`; null if a repetition leaves none",
    }
    Cpu: "cpu_ratio", "CPU", CORES, Neither, TRAINING {
        short: "cpu",
        traits: &[Cell, Member, Sampled],
        absent: "no sample was taken",
        definition: "sum over members of the mean CPU, in cores; a member counts with its threads and descendants; of threads of one process the CPU of that process",
    }
    Items: "items_per_s", "items per second", PER_S, Larger, TRAINING {
        short: "items",
        traits: &[Cell, Member, PerEpoch, OneCard, Speed],
        absent: "the workload does not report its items",
        definition: "sum over members of items ÷ time of the measured epochs",
    }
    EnergyPerEpoch: "energy_j_per_epoch", "energy per epoch", JOULE_PER_EPOCH, Smaller, TRAINING {
        traits: &[Cell, Baseline, PerEpoch, EpochLength, OneCard, Sampled],
        absent: "no readable counter",
        definition: "growth of the energy counter per second × length of the measured window ÷ epochs finished in it (Σ window ÷ \
            *eᵢ*): joules of the whole device per member and epoch",
    }
    EnergyPerEpochAboveIdle: "energy_j_per_epoch_above_idle", "energy above idle per epoch", JOULE_PER_EPOCH, Smaller, TRAINING {
        traits: &[Cell, PerEpoch, EpochLength, OneCard, Sampled, Unmissed],
        absent: "no readable counter",
        definition: "the same less the GPU's idle power (see below), which is treated as known",
    }
    EnergyPerItem: "energy_j_per_item", "energy per item", JOULE_PER_ITEM, Smaller, TRAINING {
        traits: &[Cell, PerEpoch, OneCard, Sampled, Unmissed],
        absent: "no readable counter",
        definition: "growth of the counter per second ÷ `items_per_s`",
    }
    EnergyOfSolo: "energy_of_solo", "energy ÷ in turn", RATIO, Smaller, TRAINING {
        traits: &[Cell, NeedsBaseline, OneAlone, PerEpoch, Sampled, Unmissed],
        absent: "no readable counter",
        definition: "joules of the group ÷ joules of the same work in turn: *P* ÷ Σ *(Eᵢ ÷ eᵢ)*, with the group's power *P* from the \
            counter and *Eᵢ* the joules of an epoch of member *i* alone; below 1 the group saves energy",
    }
    SoloSmActiveSum: "solo_sm_active_sum_ratio", "sum of solo SMACT", SHARE, Neither, TRAINING {
        traits: &[Cell, NeedsBaseline, Sampled, Unmissed, MayExceedOne],
        absent: "the SM activity of its baselines was not read",
        definition: "Σ of the members' solo SMACT; `sm_active_ratio` is what was achieved",
    }
    PcieRxPerItem: "pcie_rx_bytes_per_item", "PCIe in per item", BYTE_PER_ITEM, Neither, TRAINING {
        traits: &[Cell, Baseline, PerEpoch, Sampled, Unmissed],
        absent: "the traffic or the items were not recorded",
        definition: "traffic into the GPU ÷ `items_per_s`",
    }
    PcieTxPerItem: "pcie_tx_bytes_per_item", "PCIe out per item", BYTE_PER_ITEM, Neither, TRAINING {
        traits: &[Cell, PerEpoch, Sampled, Unmissed],
        absent: "the traffic or the items were not recorded",
        definition: "traffic out of the GPU ÷ `items_per_s`",
    }
    PcieRxOfSolo: "pcie_rx_of_solo", "PCIe in per item ÷ solo", RATIO, Neither, TRAINING {
        short: "PCIe in ÷ solo",
        traits: &[Cell, NeedsBaseline, OneAlone, Uniform, PerEpoch, Sampled, Unmissed],
        absent: "the traffic or the items were not recorded",
        definition: "`pcie_rx_bytes_per_item` ÷ that of the workload alone: its growth with the degree; null for mixed groups",
    }
    Throttled: "throttled_ratio", "throttled share", SHARE, Smaller, TRAINING {
        short: "throttled",
        traits: &[Cell, Sampled, Unmissed],
        definition: "share of the readings of NVML's throttle reasons with one that reduces the clocks: power cap, hardware \
            slowdown, sync boost, thermal slowdown by hardware or software, power brake. Idle and set clocks do not count",
        source: "NVML",
    }
    ReadRate: "read_bytes_per_s", "read", BYTE_PER_S, Neither, TRAINING {
        traits: &[Member],
        definition: "of a member: bytes that it and its descendants read from disks per second",
        source: "`/proc/PID/io`",
    }
    InvoluntarySwitches: "involuntary_switches_per_s", "involuntary switches", PER_S, Smaller, TRAINING {
        traits: &[Member],
        definition: "of a member: context switches per second that it did not ask for, because a core was taken away",
        source: "`/proc/PID/status`",
    }
    LatencyP50: "latency_p50_s", "p50 latency", SECOND, Smaller, REQUESTS {
        short: "p50",
        traits: &[Cell, Member, OneCard],
        definition: "quantile of the latency by nearest rank: the smallest that a share *p* of the requests does not exceed. A \
            request that was never answered is later than any other; a quantile that falls among them is null; so is every quantile of a run whose \
            server is below its rate. One that is null in one repetition is null for the cell",
        source: "Hyndman and Fan, The American Statistician 50(4), 1996, definition 1",
    }
    LatencyP95: "latency_p95_s", "p95 latency", SECOND, Smaller, REQUESTS {
        short: "p95",
        traits: &[Cell, Member, OneCard],
        definition: "the same",
        source: "Hyndman and Fan, The American Statistician 50(4), 1996, definition 1",
    }
    LatencyP99: "latency_p99_s", "p99 latency", SECOND, Smaller, REQUESTS {
        short: "p99",
        traits: &[Cell, Member, Baseline, OneCard, Speed],
        definition: "the same",
        source: "Hyndman and Fan, The American Statistician 50(4), 1996, definition 1",
    }
    LatencyP99OfSolo: "latency_p99_of_solo", "p99 ÷ alone", RATIO, Smaller, REQUESTS {
        traits: &[Cell, Member, OneAlone],
        definition: "p99 ÷ p99 of the same workload alone, at the same rate",
    }
    WithinSlo: "within_slo_ratio", "share within the SLO", SHARE, Larger, REQUESTS {
        short: "in time",
        traits: &[Cell, Member, OneCard, AtMostOne],
        definition: "share of the requests, unanswered ones included, that were answered within the limit (`slo`); 0 in a run whose server is below its rate. Null without a limit",
    }
    Goodput: "goodput_per_s", "goodput", PER_S, Larger, REQUESTS {
        traits: &[Cell, Member, OneCard],
        definition: "requests answered within the limit ÷ length of the measured epochs; null without a limit",
    }
    Offered: "offered_per_s", "requests due per second", PER_S, Neither, REQUESTS {
        short: "due",
        traits: &[Cell, Member, OneCard],
        definition: "requests due ÷ length of the measured epochs",
    }
    Answered: "answered_per_s", "answers per second", PER_S, Larger, REQUESTS {
        short: "answered",
        traits: &[Cell, Member, OneCard],
        definition: "answers in the measured epochs ÷ their length, whenever the requests were due; as long as it is below `offered_per_s`, the queue grows",
    }
    Capacity: "capacity_per_s", "capacity", PER_S, Larger, REQUESTS {
        traits: &[Member, OneCard],
        definition: "of a member: requests per second that it answers when none waits, as it measured before the start",
    }
    SmActive: "sm_active_ratio", "SMACT", SHARE, Neither, CARD {
        traits: &[Baseline],
        definition: "SMACT: share of the GPU's SMs with at least one warp, mean over the measured window; under MIG of all its SMs",
        source: "GPM on Hopper and later; else DCGM field 1002",
    }
    SmActiveP95: "sm_active_p95_ratio", "SMACT p95", SHARE, Neither, CARD {
        definition: "95th percentile of the readings of `sm_active_ratio` wholly in the window (linear interpolation)",
    }
    GpuUtilization: "gpu_utilization_ratio", "GPU utilisation", SHARE, Neither, CARD {
        definition: "share of the time in which at least one kernel ran, on however many SMs",
        source: "NVML",
    }
    GraphicsActive: "graphics_active_ratio", "GRACT", SHARE, Neither, CARD {
        definition: "GRACT: share of the time in which any part of the graphics or compute engines was active, on however many SMs",
        source: "GPM; DCGM 1001",
    }
    SmOccupancy: "sm_occupancy_ratio", "SMOCC", SHARE, Neither, CARD {
        definition: "SMOCC: warps on the SMs ÷ the most they can hold",
        source: "GPM; DCGM 1003",
    }
    SmOccupancyP95: "sm_occupancy_p95_ratio", "SMOCC p95", SHARE, Neither, CARD {
        definition: "95th percentile of the readings of `sm_occupancy_ratio` wholly in the window (linear interpolation)",
    }
    DramActive: "dram_active_ratio", "DRAMA", SHARE, Neither, CARD {
        definition: "DRAMA: share of cycles in which the memory interface moved data",
        source: "GPM; DCGM 1005",
    }
    DramActiveP95: "dram_active_p95_ratio", "DRAMA p95", SHARE, Neither, CARD {
        definition: "95th percentile of the readings of `dram_active_ratio` wholly in the window (linear interpolation)",
    }
    PcieRx: "pcie_rx_bytes_per_s", "PCIe in", BYTE_PER_S, Neither, CARD {
        definition: "traffic into the GPU",
        source: "GPM; DCGM 1010; NVML's counters; last the driver's 20 ms sample",
    }
    PcieTx: "pcie_tx_bytes_per_s", "PCIe out", BYTE_PER_S, Neither, CARD {
        definition: "traffic out of the GPU",
        source: "GPM; DCGM 1009; NVML's counters; last the driver's 20 ms sample",
    }
    Power: "power_w", "power", WATT, Neither, CARD {
        traits: &[OneCard],
        definition: "board power",
        source: "NVML field 186 where available (instantaneous); else the driver's mean over a second",
    }
    DramPower: "dram_power_w", "memory power", WATT, Neither, CARD {
        definition: "power of the host's memory modules: growth of the `dram` counters of RAPL per second of the measured window, over \
            all packages. No other energy or power includes it",
        source: "RAPL",
    }
    SmClock: "sm_clock_mhz", "SM clock", MEGAHERTZ, Neither, CARD {
        definition: "clock of the SMs",
        source: "NVML",
    }
    SmClockDrift: "sm_clock_drift_ratio", "SM clock drift", SHARE, Neither, CARD {
        traits: &[MayExceedOne],
        definition: "mean of the second half of the window ÷ mean of the first",
        source: "NVML",
    }
    Temperature: "temperature_c", "temperature", CELSIUS, Neither, CARD {
        definition: "of the GPU",
        source: "NVML",
    }
    TemperatureDrift: "temperature_drift_c", "temperature drift", CELSIUS, Neither, CARD {
        definition: "mean of the second half of the window − mean of the first",
        source: "NVML",
    }
    Total: "total_s", "total time", SECOND, Smaller, TRACE {
        short: "total",
        traits: &[OneCard],
        definition: "from the first arrival that was due until the last attempt ended",
        source: "thesis, section 6.3.4: first task queued until all retired",
    }
    WaitMean: "wait_mean_s", "mean wait", SECOND, Smaller, TRACE {
        short: "wait",
        traits: &[OneCard],
        definition: "mean over the tasks that were done of the time in a queue: completion − execution",
    }
    WaitMedian: "wait_median_s", "median wait", SECOND, Smaller, TRACE {
        traits: &[OneCard],
        definition: "the same, median by nearest rank",
    }
    WaitP95: "wait_p95_s", "p95 wait", SECOND, Smaller, TRACE {
        traits: &[OneCard],
        definition: "the same, 95th percentile by nearest rank",
    }
    ExecutionMean: "execution_mean_s", "mean execution", SECOND, Smaller, TRACE {
        short: "execution",
        traits: &[OneCard],
        definition: "mean over the tasks that were done of the time from launch until nothing was left, of all attempts",
    }
    CompletionMean: "completion_mean_s", "mean completion", SECOND, Smaller, TRACE {
        short: "completion",
        traits: &[OneCard],
        definition: "mean over the tasks that were done of the time from when a task was due until it was done: wait + execution, to the nanosecond",
        source: "the literature's JCT",
    }
    CompletionP95: "completion_p95_s", "p95 completion", SECOND, Smaller, TRACE {
        traits: &[OneCard],
        definition: "the same, 95th percentile by nearest rank",
    }
    StretchMean: "stretch", "mean stretch", RATIO, Smaller, TRACE {
        short: "stretch",
        absent: "no task has a baseline alone on this device",
        definition: "mean over tasks of execution of the attempt that completed ÷ (median epoch alone × epochs); starting up and warm-up included; absent on an instance, or on fewer cores than a member has threads, where the baseline had more",
    }
    StretchP95: "stretch_p95", "p95 stretch", RATIO, Smaller, TRACE {
        absent: "no task has a baseline alone on this device",
        definition: "the same, 95th percentile by nearest rank",
    }
    TasksDone: "tasks_done", "tasks done", COUNT, Larger, TRACE {
        short: "done",
        definition: "tasks of which an attempt completed",
    }
    OutOfMemory: "out_of_memory", "out of memory", COUNT, Smaller, TRACE {
        short: "OOM",
        definition: "attempts that ran out of memory",
    }
    OutOfMemoryNewcomers: "out_of_memory_newcomers", "newcomers out of memory", COUNT, Smaller, TRACE {
        short: "OOM, newcomer",
        definition: "attempts that ran out of memory before they had all of theirs, or had come last, or had nobody beside them",
    }
    OutOfMemoryResidents: "out_of_memory_residents", "residents out of memory", COUNT, Smaller, TRACE {
        short: "OOM, resident",
        definition: "attempts that had all their memory, and ran out when others had come after them",
    }
    Recoveries: "recoveries", "recoveries", COUNT, Smaller, TRACE {
        definition: "attempts at tasks that had run out of memory",
    }
    RecoveryWait: "recovery_wait_s", "wait for recovery", SECOND, Smaller, TRACE {
        traits: &[OneCard],
        definition: "sum over recoveries of the time between running out of memory and the next launch",
    }
    Lost: "lost_s", "lost time", SECOND, Smaller, TRACE {
        short: "lost",
        traits: &[OneCard],
        definition: "time of the attempts that did not complete, each counted once",
    }
    Blocked: "blocked_s", "blocked time", SECOND, Smaller, TRACE {
        short: "blocked",
        traits: &[OneCard],
        definition: "time in which the first of the queue waited and a later task would have fit",
    }
    SiteEnergy: "site_energy_j", "energy of all cards", JOULE, Smaller, TRACE {
        short: "energy",
        traits: &[OneCard],
        absent: "the energy counter of a card was not readable over the whole run",
        definition: "energy of all cards in the total time, idle ones included: growth of each counter from its first to its last reading inside ÷ the time between these two × the total time; null if they are less than 95 % of it apart, a counter fell, or one card has none. On a CPU the counters of its packages",
        source: "NVML; RAPL",
    }
    SiteActive: "site_active_ratio", "activity of the cards", SHARE, Larger, TRACE {
        short: "activity",
        absent: "the activity of a card was not read",
        definition: "SM activity of each card over the total time, weighted by time, mean over cards; times without a reading that counts are left out; of a set of CPU cores its busy ones, by all processes, ÷ those that can be busy at a time: its cores, or its even part of a CPU quota if that is less; at most 1",
        source: "GPM; DCGM 1002; `/proc/stat`",
    }
    SiteMemory: "site_memory_ratio", "memory of the cards", SHARE, Neither, TRACE {
        short: "memory",
        absent: "the memory of a card was not read",
        definition: "memory in use ÷ capacity of each card over the total time, weighted by time, mean over cards",
    }
    QueueLength: "queue_length", "tasks in the queue", COUNT, Smaller, TRACE {
        short: "queue",
        definition: "tasks that waited, for a first attempt or for another, mean over the total time",
    }
    DecisionsPerS: "decisions_per_s", "decisions per second", PER_S, Neither, TRACE {
        definition: "decisions about the first task of the queue ÷ total time",
    }
    ReadingAge: "reading_age_p95_s", "age of readings at decisions, p95", SECOND, Smaller, TRACE {
        absent: "no decision saw a reading",
        definition: "time since a card was read at a decision that saw it, over all such readings, 95th percentile by nearest rank",
    }
    ArrivalLateness: "arrival_lateness_max_s", "latest arrival", SECOND, Smaller, TRACE {
        definition: "how late the policy was told of an arrival, at most",
    }
}
