//! The list of all keys of a `workload.toml`: the reader, the JSON Schema and the hints are all derived from it.
//!
//! To add a key: its line here, its field in `Workload`, its reading in `read.rs`.

use super::adapters;
use collo_text::fields::{Key, Shape, ValueKind};

const HELP: &str = "collo schema workload";

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

/// Possible requirements of a workload.
pub const REQUIREMENTS: &[&str] = &["cuda"];

const fn key(name: &'static str, kind: ValueKind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, kind, default, about, former: None }
}

const DESCRIPTION: Key = key("description", ValueKind::Text, None, "one sentence for lists and reports");
const REQUIRES: Key =
    key("requires", ValueKind::Choice(REQUIREMENTS), None, "what the device must have; cells on others are refused");
const FORECASTS: Key = key("forecast", ValueKind::Table(&FORECAST), None, "what one member alone needs, for the plan");

pub static WORKLOAD: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        DESCRIPTION,
        key(
            "command",
            ValueKind::List(&ValueKind::Text),
            None,
            "program and arguments, run in the workload's folder; `python` is the chosen interpreter, `{name}` a setting, \
             `{settings}` every other setting as `--name=value`",
        ),
        key(
            "environment",
            ValueKind::Text,
            Some("\"torch\""),
            "`torch`: the Python environment that collo provides; `system`: the system's `python3`; or the path of one of your own",
        ),
        key(
            "packages",
            ValueKind::Text,
            None,
            "a requirements file with hashes: what this workload needs beyond the provided environment",
        ),
        REQUIRES,
        key(
            "prepare",
            ValueKind::List(&ValueKind::Text),
            None,
            "run before a campaign, to provide or check the data; `{name}` is a setting",
        ),
        key("prepare_timeout", ValueKind::Duration, Some("\"2h\""), "how long `prepare` may take"),
        key(
            "outputs",
            ValueKind::List(&ValueKind::Text),
            None,
            "files and folders of the workload's folder that its runs write: never ingredients, whatever their names",
        ),
        key(
            "settings",
            ValueKind::Table(&SETTINGS),
            None,
            "the settings with their defaults; each is a placeholder in `command`",
        ),
        key("variables", ValueKind::Table(&VARIABLES), None, "environment variables of its processes; `{name}` is a setting"),
        FORECASTS,
        key("epochs", ValueKind::Table(&EPOCHS), None, "how to read epochs from the output of a script without the protocol"),
        key(
            "recipes",
            ValueKind::Table(&RECIPES),
            None,
            "named values for many settings: `recipe = \"NAME\"`; a preset's or an experiment's own values win",
        ),
        key("presets", ValueKind::Table(&PRESETS), None, "further workloads: this one under another name, with other settings"),
    ],
};

pub static SETTINGS: Shape = Shape { help: HELP, others: Some(&ValueKind::Setting), keys: &[] };

pub static RECIPES: Shape = Shape { help: HELP, others: Some(&ValueKind::Table(&SETTINGS)), keys: &[] };

pub static VARIABLES: Shape = Shape { help: HELP, others: Some(&ValueKind::Text), keys: &[] };

pub static PRESETS: Shape = Shape { help: HELP, others: Some(&ValueKind::Table(&PRESET)), keys: &[] };

pub static PRESET: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[DESCRIPTION, key("settings", ValueKind::Table(&SETTINGS), None, "the settings that differ"), REQUIRES, FORECASTS],
};

pub static FORECAST: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("cpu", ValueKind::Table(&FORECAST_CPU), None, "on one core of a CPU"),
        key("gpu", ValueKind::Table(&FORECAST_GPU), None, "on a GPU"),
    ],
};

const NOT_NEGATIVE: ValueKind = ValueKind::Number { from: 0.0, to: f64::INFINITY };

pub static FORECAST_CPU: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("set_up_s", NOT_NEGATIVE, None, "seconds until it is ready"),
        key("epoch_s", NOT_NEGATIVE, None, "seconds per epoch at the default settings"),
        key(
            "items",
            ValueKind::Whole { from: 1, to: u64::MAX },
            None,
            "items of that epoch, so that `limit_batches` can be forecast",
        ),
        key("memory_bytes", ValueKind::Whole { from: 0, to: u64::MAX }, None, "memory of one member"),
    ],
};

pub static FORECAST_GPU: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[key(
        "host_memory_bytes",
        ValueKind::Whole { from: 0, to: u64::MAX },
        None,
        "host memory that one member needs for itself, besides the GPU's; what members share does not count",
    )],
};

pub static EPOCHS: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key(
            "pattern",
            ValueKind::Text,
            None,
            "a regular expression over lines, with the named group `epoch`, and `seconds` if the line has them",
        ),
        key("preset", ValueKind::Choice(&ADAPTERS), None, "a pattern for the output of this library, instead of `pattern`"),
        key("items", ValueKind::Whole { from: 1, to: u64::MAX }, None, "items per epoch"),
    ],
};
