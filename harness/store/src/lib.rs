//! The format of stored runs, and how they are written: to a temporary folder, flushed, renamed, so a folder that exists is
//! complete.
//!
//! In: what `plan` planned and `measure` observed. Out: campaigns, runs and tables for `analysis`. This package is the border between
//! measuring and reporting: it knows nothing of processes, statistics or plots, and touches no GPU.
//!
//! ```text
//! runs/EXPERIMENT/CAMPAIGN/
//!   campaign.json      the experiment as read, the plan with its seed, the machine, the ingredients
//!   comments.jsonl     what people wrote about it, no part of what was measured
//!   journal.jsonl      what happened, a line each, with the digest of the manifest and of every recorded run
//!   CELL~HASH-REP/     one run: run.json, epochs.parquet, samples.parquet, events.jsonl, member-N.log;
//!                      requests.parquet where a member serves; of a trace tasks.parquet, attempts.parquet,
//!                      decisions.parquet, happened.jsonl
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod archive;
mod caught;
mod clock;
mod comments;
mod cooling;
mod digest;
mod error;
mod folder;
mod intact;
mod journal;
mod lender;
mod lock;
mod machine;
mod measured_at;
mod merge;
mod names;
mod observed;
mod order;
mod outcome;
mod place;
mod progress;
mod record;
mod recorded;
mod reference;
mod runs;
mod scope;
mod shape;
mod shard;
mod sharing;
mod shuffle;
mod surroundings;
mod tables;
mod trace;
mod verify;
mod wanted_width;
mod xid;

pub use caught::caught;
pub use clock::{monotonic_ns, utc_id, utc_now, utc_seconds, utc_text};
pub use comments::Comment;
pub use cooling::Cooling;
pub use digest::{sha256_file, sha256_of, sha256_text};
pub use error::{Error, Result};
pub use folder::{CampaignFolder, Foreign, StoredRun};
pub use intact::copies;
pub use journal::{Journal, JournalEntry};
pub use lender::{LendsNothing, lender, lends};
pub use lock::CampaignLock;
pub use machine::{DeviceRecord, GpuRecord, Machine};
pub use measured_at::{Devices, MeasuredAt};
pub use merge::{MergeDifference, MergeScope, differences, merge};
pub use names::{is_plain, last_part};
pub use observed::{
    COLLO_SAMPLES, DaemonCost, MONITOR, NOBODY_WATCHES, ObserverOutcome, ObserverRecord, PROFILER, observer_name,
};
pub use outcome::{Attestation, AttestationVerdict, Check, DEVICE_SEEN, Outcome, Validity, Verdict};
pub use place::{place_file, replace_file, sweep};
pub use progress::Progress;
pub use record::campaign::{
    AfterMeasured, BlockEdge, Campaign, CellRecord, Filing, Ingredient, MemberSpec, PlanRecord, PlannedRun, RefusalRecord,
    SIMULATED_MODEL, Thresholds, cell_number, command, without_mode,
};
pub use record::expectation::{Expectation, Standing};
pub use record::predicted::{
    AloneFrom, GraphNumbers, MarkedCell, Predicted, PredictedAlone, PredictedCell, PredictedCompany, PredictedMember,
    PredictedMemory, PredictedValue, PredictorRecord,
};
pub use record::run::{
    CpuThrottling, Features, Instrument, MemberRecord, PROCESS_LOG, ProcessRecord, ReadCard, RunDraft, RunRecord, SAMPLING_OFF,
    SamplingQuality, Serving, StoredFile, Timeline,
};
pub use recorded::Recorded;
pub use reference::Reference;
pub use runs::{Runs, UnreadCampaign};
pub use scope::{PROCESS_SCOPE, is_scope_of_a_part, member_of_scope, member_scope};
pub use shard::{Origin, Shard};
pub use sharing::Sharing;
pub use shuffle::Shuffle;
pub use surroundings::{Scheduling, Surroundings};
pub use tables::{
    BoundedFile, EpochRecord, Readings, RequestRecord, Sample, SampleSeries, SampleWriter, read_epochs, read_requests,
    read_samples, read_series, write_epochs, write_requests,
};
pub use trace::{
    AttemptRecord, DecisionRecord, HAPPENED, SeenCard, TaskEnd, TaskRecord, TaskTimes, TraceCard, TraceCell, TraceNumbers,
    TraceRecord, read_attempts, read_decisions, read_tasks, write_trace,
};
pub use verify::{Finding, Level, verify};
pub use wanted_width::WantedWidth;
pub use xid::XidError;

/// The schema of `campaign.json` and `run.json` that this build writes, and the newest that it reads.
pub const SCHEMA: u32 = 2;
