//! The one list of what a `workload.toml` may say: the reader, the JSON Schema and the hints all come from it.

use crate::fields::{Key, Kind, Shape};

const HELP: &str = "collo schema workload";

pub const ENVIRONMENTS: &[&str] = &["torch", "system"];

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, kind, default, about }
}

pub static WORKLOAD: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("description", Kind::Text, None, "one sentence for lists and reports"),
        key(
            "command",
            Kind::List(&Kind::Text),
            None,
            "program and arguments, run in the workload's folder; `python` is the chosen interpreter, `{name}` a setting",
        ),
        key(
            "environment",
            Kind::Choice(ENVIRONMENTS),
            Some("\"torch\""),
            "`torch`: the Python environment that collo provides; `system`: the system's `python3`",
        ),
        key("prepare", Kind::List(&Kind::Text), None, "run once before a campaign, to provide the data"),
        key("settings", Kind::Table(&SETTINGS), None, "the settings with their defaults; each is a placeholder in `command`"),
        key("forecast", Kind::Table(&FORECAST), None, "what one member alone needs, for the plan"),
        key(
            "epochs",
            Kind::Table(&EPOCHS),
            None,
            "how to read epochs from the output of a script that does not speak the protocol",
        ),
    ],
};

pub static SETTINGS: Shape = Shape { help: HELP, others: Some(&Kind::Setting), keys: &[] };

pub static FORECAST: Shape =
    Shape { help: HELP, others: None, keys: &[key("cpu", Kind::Table(&FORECAST_CPU), None, "on one core of a CPU")] };

const NOT_NEGATIVE: Kind = Kind::Number { from: 0.0, to: f64::INFINITY };

pub static FORECAST_CPU: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("set_up_s", NOT_NEGATIVE, None, "seconds until it is ready"),
        key("epoch_s", NOT_NEGATIVE, None, "seconds per epoch at the default settings"),
        key("memory_bytes", Kind::Whole { from: 0, to: u64::MAX }, None, "memory of one member"),
    ],
};

pub static EPOCHS: Shape = Shape {
    help: HELP,
    others: None,
    keys: &[
        key("pattern", Kind::Text, None, "a regular expression over lines, with the named groups `epoch` and `seconds`"),
        key("items", Kind::Whole { from: 1, to: u64::MAX }, None, "items per epoch"),
    ],
};
