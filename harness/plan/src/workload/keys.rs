//! A `workload.toml`, a row for each key; what is wrong with several of them is checked in `read.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use collo_text::fields::KeyType;
use collo_text::fields::ValueKind::{self, Choice, List, Map, Table, Text, Whole};
use serde_json::Value as Json;

use super::{EpochsAdapter, WorkloadPython, adapters};

/// The names of the presets of adapters.
const ADAPTERS: [&str; adapters::PRESETS.len()] = {
    let mut names = [""; adapters::PRESETS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = adapters::PRESETS[at].name;
        at += 1;
    }
    names
};

const WORDS: ValueKind = List(&Text);
const SETTINGS: ValueKind = BTreeMap::<String, Json>::KIND;

collo_text::keys! { "collo schema workload";
    /// One workload: a training script with its settings.
    #[derive(Debug, Clone)]
    pub struct Workload {
        description: Option<String>, "one sentence for lists and reports";
        command: Vec<String>,
            "program and arguments, run in the workload's folder; `python` is the chosen interpreter, `{name}` a setting, \
             `{settings}` every other setting as `--name=value`";
        environment [Text] = "torch",
            "`torch`: the Python environment that collo provides; `system`: the system's `python3`; or the path of one of \
             your own, `~/` for your home";
        packages [Text], "a requirements file with hashes: what this workload needs beyond the provided environment";
        requires: Option<Requirement>, "what the device must have; cells on others are refused";
        prepare [WORDS], "run before a campaign, to provide or check the data; `{name}` is a setting";
        prepare_timeout: Duration = "2h", "how long `prepare` may take";
        outputs [WORDS],
            "files and folders of the workload's folder that its runs write: never ingredients, whatever their names";
        settings: BTreeMap<String, Json>, "the settings with their defaults; each is a placeholder in `command`";
        variables: BTreeMap<String, String>, "environment variables of its processes; `{name}` is a setting";
        forecast: WorkloadForecast, "what one member alone needs, for the plan";
        epochs [Table(&EPOCHS)], "how to read epochs from the output of a script without the protocol";
        recipes [Map(&SETTINGS)],
            "named values for many settings: `recipe = \"NAME\"`; a preset's or an experiment's own values win";
        presets [Map(&Table(WorkloadPreset::KEYS))], "further workloads: this one under another name, with other settings";
    } and {
        pub name: String,
        pub folder: PathBuf,
        /// The workload that this is a preset of.
        pub preset_of: Option<String>,
        pub environment: WorkloadPython,
        /// Pins of its packages beyond the provided environment.
        pub packages: Option<PathBuf>,
        /// Words with placeholders; see [`Workload::prepare_for`].
        pub prepare: Option<Vec<String>>,
        /// Files that its runs write in its folder.
        pub outputs: Vec<String>,
        /// All settings under each recipe, including that of the defaults; empty if the workload has no recipes.
        pub recipes: BTreeMap<String, BTreeMap<String, Json>>,
        pub epochs: Option<EpochsAdapter>,
    }

    /// What differs in a preset.
    pub struct WorkloadPreset {
        description: Option<String>, "one sentence for lists and reports";
        settings [SETTINGS], "the settings that differ";
        requires: Option<Requirement>, "what the device must have; cells on others are refused";
        forecast: WorkloadForecast, "what one member alone needs, for the plan";
    }

    /// Requirements of one member alone, at the default settings; each is absent if not measured.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct WorkloadForecast {
        cpu: CpuForecast, "on one core of a CPU";
        gpu: GpuForecast, "on a GPU";
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct CpuForecast {
        set_up_s: Option<f64>, "seconds until it is ready";
        epoch_s: Option<f64>, "seconds per epoch at the default settings";
        items: Option<u64> [Whole(1..=u64::MAX)], "items of that epoch, so that `limit_batches` can be forecast";
        memory_bytes: Option<u64>, "memory of one member";
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct GpuForecast {
        host_memory_bytes: Option<u64>,
            "host memory that one member needs for itself, besides the GPU's; what members share does not count";
    }
}

collo_text::keys! { "collo schema workload";
    pub static EPOCHS {
        pattern [Text], "a regular expression over output lines; its groups `epoch` or `step`, `seconds`, `minutes`, `milliseconds`, `hours` and `loss` are optional";
        preset [Choice(&ADAPTERS)], "a pattern for the output of this library, instead of `pattern`";
        items [Whole(1..=u64::MAX)], "items per epoch";
    }
}

collo_text::words! {
    /// A requirement of a workload for its device.
    pub enum Requirement {
        #[default]
        Cuda = "cuda",
    }
}
