//! Something else in the place of every file that a verb reads: it refuses it, or reads it, and neither waits, nor panics, nor fills the
//! memory.
//!
//! To add a file: its line in [`READ`], with a verb that reads it. To add what can lie there: its line in [`STRAYS`].

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::unistd::mkfifo;

use super::stores::SEEN;
use super::stray::{KIND, MODE, verb};
use crate::hostile::case::{Case, case};
use crate::hostile::scene::{Scene, run_folders};
use crate::support::checkout;

/// What lies in the place of a file.
struct Stray {
    name: &'static str,
    /// Whether every reader refuses it; what is empty or half there may be read.
    refused: bool,
    put: fn(&Path, real: &[u8]),
}

const fn stray(name: &'static str, refused: bool, put: fn(&Path, &[u8])) -> Stray {
    Stray { name, refused, put }
}

fn write(place: &Path, bytes: &[u8]) {
    fs_err::write(place, bytes).expect("written");
}

const STRAYS: [Stray; 12] = [
    stray("a_fifo", true, |place, _| mkfifo(place, MODE).expect("a pipe")),
    stray("endless", true, |place, _| symlink("/dev/zero", place).expect("a link")),
    stray("a_terabyte", true, |place, _| {
        fs_err::File::create(place).and_then(|f| f.set_len(1 << 40)).expect("a file with a hole")
    }),
    stray("a_folder", true, |place, _| fs_err::create_dir(place).expect("a folder")),
    stray("a_link_to_itself", true, |place, _| symlink(place.file_name().expect("a name"), place).expect("a link")),
    stray("noise", true, |place, _| write(place, &noise())),
    stray("not_utf8", true, |place, _| write(place, b"a = \"\xff\xfe\xc3\"\n")),
    stray("nul_bytes", true, |place, _| write(place, &[0; 4096])),
    stray("nested_without_end", true, |place, _| {
        let key: &[u8] = if place.extension().is_some_and(|e| e == "toml") { b"x = " } else { b"" };
        write(place, &[key, &b"[".repeat(100_000)].concat());
    }),
    stray("a_line_of_50_mb", true, |place, _| write(place, &b"a".repeat(50_000_000))),
    stray("empty", false, |place, _| write(place, b"")),
    stray("half_of_one", false, |place, real| write(place, &real[..real.len() / 2])),
];

/// Bytes of every value, the same ones always.
fn noise() -> Vec<u8> {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Some((*state >> 56) as u8)
    };
    std::iter::repeat_n((), 1 << 16).scan(7, |state, ()| next(state)).collect()
}

/// A file that a verb reads.
struct ReadFile {
    what: &'static str,
    /// Its place in the project; `CAMPAIGN` and `RUN` are those of the campaign that may be damaged.
    place: &'static str,
    verb: &'static [&'static str],
    /// A real one: a path from the root of the checkout, or a text.
    real: &'static str,
    /// On a simulated card with these words.
    card: Option<&'static str>,
    /// What the verb ends with where every reader refuses what lies there.
    codes: &'static [i32],
    /// The same of what is empty or half there.
    half_codes: &'static [i32],
    /// Another file that leads to it.
    leads: Option<(&'static str, &'static str)>,
}

/// A refusal: wrong input, or something that the machine has.
const REFUSED: &[i32] = &[2, 3];
/// What a verb may end with that reads what it can.
const READ_OR_REFUSED: &[i32] = &[0, 1, 2, 3, 4];

const fn read(what: &'static str, place: &'static str, verb: &'static [&'static str], real: &'static str) -> ReadFile {
    ReadFile { what, place, verb, real, card: None, codes: REFUSED, half_codes: READ_OR_REFUSED, leads: None }
}

/// A part of a stored campaign that has a digest: whatever else lies there, `verify` finds it.
const fn stored(what: &'static str, place: &'static str) -> ReadFile {
    read(what, place, &["verify", "damaged/last"], place).ends(SEEN)
}

/// One of the two tables of pairs.
const fn of_pairs((place, real): (&'static str, &'static str), what: &'static str) -> ReadFile {
    read(what, place, &["predict", "evaluate", "pairs.csv", "profiles.csv", "--quantity", "company"], real)
}

/// A file of an MLflow store that `import radt` reads.
const fn of_mlflow((place, real): (&'static str, &'static str), what: &'static str) -> ReadFile {
    read(what, place, &["import", "radt", "mlruns/7"], real)
}

/// A file of layouts, on a card.
const fn layouts(what: &'static str, place: &'static str, verb: &'static [&'static str], real: &'static str) -> ReadFile {
    ReadFile { card: Some("a100-40gb"), ..read(what, place, verb, real) }
}

impl ReadFile {
    /// The verb ends with one of these, whatever lies there.
    const fn ends(self, codes: &'static [i32]) -> ReadFile {
        ReadFile { codes, half_codes: codes, ..self }
    }

    /// This file leads to it.
    const fn behind(self, file: (&'static str, &'static str)) -> ReadFile {
        ReadFile { leads: Some(file), ..self }
    }

    /// Experiment `y` leads to it.
    const fn behind_experiment(self, text: &'static str) -> ReadFile {
        self.behind((EXPERIMENT, text))
    }
}

const EXPERIMENT: &str = "experiments/y.toml";
const PROFILES: (&str, &str) = ("profiles.csv", "key,solo_s,sm_active_ratio,gpu_utilisation_percent\na,10,0.4,80\nb,20,0.7,99\n");
const PAIRS: (&str, &str) = ("pairs.csv", "a,b,solo_a_s,solo_b_s,pair_a_s,pair_b_s\na,b,10,20,14,25\n");
const MLFLOW_EXPERIMENT: (&str, &str) = ("mlruns/7/meta.yaml", "name: nets\nexperiment_id: '7'\n");
const MLFLOW_RUN: (&str, &str) = ("mlruns/7/a/meta.yaml", "lifecycle_stage: active\nstart_time: 1700000000000\nstatus: 3\n");

const READ: &[ReadFile] = &[
    // A script is only replaced as `collo slurm` wrote it.
    read("slurm_script", "slurm/x/array.sh", &["slurm", "x"], "#!/bin/sh\n#SBATCH --array=1-2\n").ends(REFUSED),
    read("table_to_evaluate", "rows.csv", &["predict", "evaluate", "rows.csv"], "harness/fuzz/corpus/table/memory.csv"),
    read("table_to_fit", "rows.csv", &["predict", "fit", "rows.csv", "--to", "fit.json"], "harness/fuzz/corpus/table/memory.csv"),
    read("parquet_table", "rows.parquet", &["predict", "evaluate", "rows.parquet"], "harness/fuzz/corpus/epochs/sleep.parquet"),
    of_pairs(PAIRS, "table_of_pairs").behind(PROFILES),
    of_pairs(PROFILES, "table_of_profiles").behind(PAIRS),
    read("compared_report", "report.json", &["compare", "report.json", "report.json"], "reports/published/square.json"),
    read("mailed_report", "report.json", &["report", "report.json"], "reports/published/square.json"),
    read("bundle", "x.tar.gz", &["verify", "x.tar.gz"], "harness/fuzz/corpus/bundle/sleep.tar.gz"),
    read("bundle_to_run", "x.tar.gz", &["run", "x.tar.gz", "--no-report"], "harness/fuzz/corpus/bundle/sleep.tar.gz"),
    read("named_experiment", EXPERIMENT, &["plan", "y"], "experiments/quickstart.toml"),
    read("included_file", "experiments/common.toml", &["plan", "y"], "device = \"cpu\"\nrepetitions = 2\n")
        .behind_experiment("include = [\"common.toml\"]\n[axes]\nworkload = \"sleep\"\n"),
    read("named_workload", "workloads/y/workload.toml", &["workload", "show", "y"], "workloads/sleep/workload.toml"),
    read("observer", "observers/y.toml", &["plan", "y"], "observers/nsys.toml")
        .behind_experiment("device = \"cpu\"\n[axes]\nworkload = \"sleep\"\nobserve = [\"none\", \"y\"]\n"),
    read("host_file", "collo.toml", &["plan", "x"], "price_per_hour = 2.5\ncurrency = \"EUR\"\n"),
    read("predictor", "predictors/y.json", &["predict", "show", "y"], "predictors/published-a100.json"),
    read("predictor_by_its_path", "mine.json", &["predict", "show", "mine.json"], "predictors/published-a100-company.json"),
    read("trace", "traces/y.toml", &["trace", "show", "y"], "traces/tiny-12.toml"),
    read("trace_of_an_experiment", "traces/y.toml", &["plan", "y"], "traces/tiny-12.toml")
        .behind_experiment("device = \"cpu\"\n[trace]\nname = \"y\"\ncards = 1\n[axes]\npolicy = \"exclusive\"\n"),
    read("trace_table", "tasks.csv", &["trace", "import", "y", "tasks.csv"], "submit_time_s,task\n0,sleep 3e\n12.5,sleep 1e\n"),
    read("trace_script", "submit.sh", &["trace", "import", "y", "submit.sh"], "submit a.rad\nsleep 73\nsubmit b.rad\n"),
    read("task_file", "a.rad", &["trace", "import", "y", "submit.sh"], "harness/fuzz/corpus/rad/task.rad")
        .behind(("submit.sh", "submit a.rad\n")),
    read(
        "philly_log",
        "jobs",
        &["trace", "make", "y", "--from", "philly", "--log", "jobs", "--class", "1=sleep 1e"],
        "harness/fuzz/corpus/philly/jobs.json",
    ),
    read(
        "helios_log",
        "log.csv",
        &["trace", "make", "y", "--from", "helios", "--log", "log.csv", "--class", "1=sleep 1e"],
        "harness/fuzz/corpus/helios/log.csv",
    ),
    read("gpu_model", "mig-profiles/y.toml", &["plan", "x", "--gpu", "y"], "mig-profiles/a100-40gb.toml"),
    layouts("layout", "mine.toml", &["mig", "assert", "mine.toml"], "harness/fuzz/corpus/layout/half.toml"),
    layouts("mig_parted_file", "mine.yaml", &["mig", "assert", "mine.yaml:half"], "harness/fuzz/corpus/mig-parted/half.yaml"),
    read("radt_schedule", "schedule.csv", &["import", "radt", "schedule.csv"], "harness/fuzz/corpus/radt-schedule/schedule.csv"),
    of_mlflow(MLFLOW_EXPERIMENT, "mlflow_experiment").behind(MLFLOW_RUN),
    of_mlflow(MLFLOW_RUN, "mlflow_run").behind(MLFLOW_EXPERIMENT),
    stored("stored_campaign", "CAMPAIGN/campaign.json"),
    stored("stored_journal", "CAMPAIGN/journal.jsonl"),
    // No part of what was measured: no digest has them, and a campaign whose comments cannot be read is shown without them.
    read(
        "stored_comments",
        "CAMPAIGN/comments.jsonl",
        &["show", "damaged/last"],
        "{\"at_utc\":\"2026-01-01T00:00:00Z\",\"text\":\"quiet\"}\n",
    )
    .ends(&[0]),
    stored("stored_run", "RUN/run.json"),
    stored("stored_epochs", "RUN/epochs.parquet"),
    stored("stored_samples", "RUN/samples.parquet"),
    stored("stored_events", "RUN/events.jsonl"),
];

impl ReadFile {
    fn place(&self, scene: &Scene) -> PathBuf {
        let campaign = || scene.damaged();
        match self.place.split_once('/') {
            Some(("CAMPAIGN", name)) => campaign().join(name),
            Some(("RUN", name)) => run_folders(&campaign())[0].join(name),
            _ => scene.at(self.place),
        }
    }

    fn real(&self, place: &Path) -> Vec<u8> {
        let stored = place.is_file().then(|| fs_err::read(place).expect("read"));
        let checkout = checkout().join(self.real);
        let of_checkout = || checkout.is_file().then(|| fs_err::read(checkout).expect("read"));
        stored.or_else(of_checkout).unwrap_or_else(|| self.real.into())
    }

    fn case(&'static self, stray: &'static Stray) -> Case {
        let case = case(KIND, format!("{}_is_{}", self.what, stray.name)).act(move |scene| {
            let place = self.place(scene);
            fs_err::create_dir_all(place.parent().expect("in the project")).map_err(|e| e.to_string())?;
            if let Some((name, text)) = self.leads {
                scene.write(name, text);
            }
            let real = self.real(&place);
            if place.exists() {
                fs_err::remove_file(&place).map_err(|e| e.to_string())?;
            }
            (stray.put)(&place, &real);
            verb(scene, self.verb, if stray.refused { self.codes } else { self.half_codes })?;
            // Whatever it is, it is in the way of no other; but a link in place of `collo.toml` makes it a project that is not trusted.
            verb(scene, &["list"], if self.place == "collo.toml" { &[0, 3, 4] } else { &[0, 4] })
        });
        match self.card {
            Some(words) => case.on(words),
            None => case,
        }
    }
}

pub fn cases() -> Vec<Case> {
    READ.iter().flat_map(|file| STRAYS.iter().map(|stray| file.case(stray))).collect()
}
