//! `sim-train`: what stands where Python stands.
//!
//! In: the arguments that Python would get. Out: what the training script would do, as far as anyone outside can tell: answers to `-c`
//! and to a `prepare` command, a description of its step, a member that trains on the simulated card, or a process whose threads are
//! members ([`host`]).

use std::process::ExitCode;

pub mod cards;
pub mod channel;
pub mod describe;
pub mod epoch_length;
pub mod epoch_plan;
pub mod hello;
pub mod host;
pub mod member;
pub mod memory;
pub mod noise;
pub mod options;
pub mod profiler;
pub mod queue;
pub mod serve;
pub mod variables;

use options::Options;

pub const PYTHON: &str = "3.11.9";
/// What a member's script is called; others prepare data.
const SCRIPTS: [&str; 2] = ["train.py", "serve.py"];
pub const TORCH: &str = "2.14.1+simulated";

/// Be the program.
pub fn main(arguments: &[String]) -> ExitCode {
    if arguments.iter().any(|a| a == "-c") {
        say(&versions().to_string());
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|a| a == "--version" || a == "-V") {
        say(&format!("Python {PYTHON}"));
        return ExitCode::SUCCESS;
    }
    let script = arguments.iter().position(|a| !a.starts_with('-'));
    let hosts = script.is_some_and(|i| arguments[i].ends_with(host::SCRIPT));
    if let (true, Ok(orders)) = (hosts, std::env::var(host::ORDERS)) {
        return host::main(&orders);
    }
    let trains =
        !arguments.iter().any(|a| a == "-m") && script.is_some_and(|i| SCRIPTS.iter().any(|s| arguments[i].ends_with(s)));
    if !trains {
        return prepare(arguments);
    }
    let folder = std::env::current_dir().ok().and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
    let options = Options::read(&arguments[script.map_or(0, |i| i + 1)..]);
    if let Some(to) = describe::asked() {
        return match describe::write(&to, &folder.unwrap_or_default(), &options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                use std::io::Write;
                let _ = writeln!(std::io::stderr(), "error: {why}");
                ExitCode::FAILURE
            }
        };
    }
    member::main(&folder.unwrap_or_default(), options)
}

/// The CUDA that torch was built for; `COLLO_SIM_TORCH_CUDA` says another.
pub fn torch_cuda() -> String {
    std::env::var("COLLO_SIM_TORCH_CUDA").ok().filter(|v| !v.is_empty()).unwrap_or("13.0".into())
}

/// What the harness asks of a Python: no code is run, so every answer is this one.
fn versions() -> serde_json::Value {
    serde_json::json!({
        "python": PYTHON,
        "torch": TORCH,
        "torchvision": "0.29.1+simulated",
        "timm": "1.0.26",
        "transformers": "5.3.0",
        "numpy": "2.3.5",
        "torch_cuda": torch_cuda(),
    })
}

/// Every data set is there, as a synthetic stand-in of its size.
fn prepare(arguments: &[String]) -> ExitCode {
    let name = arguments.iter().rev().find(|a| !a.starts_with('-')).map_or("", String::as_str);
    let items = crate::workload::items_of(name).unwrap_or(50_000);
    let answer = serde_json::json!({ "dataset": name, "synthetic": true, "items": items, "where": null });
    say(&answer.to_string());
    ExitCode::SUCCESS
}

fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
