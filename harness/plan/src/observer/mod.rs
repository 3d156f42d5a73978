//! Observers: programs that watch a training, and what the experiment asks of them.
//!
//! In: the files of `observers/`, and a word such as `top:10Hz`. Out: an [`Observe`], the words to run, or why they cannot run here.
//! Nothing is started here: `observe/watching.rs` runs them.
//!
//! To add an observer: a file in `observers/` (`docs/guide/observers.md`); what was published of it, in
//! `reports/published/watching.json`. No code changes.

mod keys;
mod read;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_store::{COLLO_SAMPLES, MONITOR, NOBODY_WATCHES};
use collo_text::{Diagnostic, Diagnostics, nearest, quoted};
use fs_err as fs;

use crate::facts::{DeviceFacts, DeviceKind};
use crate::sharing::Refusal;
use crate::workload::{Workload, WorkloadPython};

pub use keys::{Observer, Place, Stop};
pub use read::is_name;
pub use tool::ObserverRoom;

/// Who watches the members of a cell, as an experiment asks.
#[derive(Debug, Clone)]
pub struct Observe {
    pub by: ObservedBy,
    /// Readings per second, if the experiment says so.
    rate_hz: Option<f64>,
}

/// Who that is.
#[derive(Debug, Clone)]
pub enum ObservedBy {
    /// Nobody, not even collo: no time series is recorded.
    Nobody,
    /// Collo's own sampling, and nothing else.
    Collo,
    /// A program, and not collo.
    Tool(Arc<Observer>),
}

impl PartialEq for Observe {
    fn eq(&self, other: &Observe) -> bool {
        self.label() == other.label()
    }
}

impl Observe {
    /// Nobody: what everything else is compared with.
    pub fn nobody() -> Observe {
        Observe { by: ObservedBy::Nobody, rate_hz: None }
    }

    /// `none`, `collo`, `collo:100Hz`, `top`, `top:10Hz`.
    pub fn parse(text: &str, observers: &Observers) -> Result<Observe, Diagnostics> {
        let (name, rate) = text.split_once(':').map_or((text, None), |(name, rate)| (name, Some(rate)));
        let rate_hz = match rate {
            None => None,
            Some(rate) => match rate.strip_suffix("Hz").and_then(|n| n.parse::<f64>().ok()) {
                Some(hz) if (0.001..=10_000.0).contains(&hz) => Some(hz),
                _ => {
                    let what = format!("invalid rate {} of `{name}`", quoted(rate));
                    return Err(Diagnostic::new(what).note(format!("as in `{name}:10Hz`")).into());
                }
            },
        };
        let by = match name {
            NOBODY_WATCHES if rate_hz.is_some() => {
                return Err(Diagnostic::new("`none` reads nothing, so it has no rate").note("`collo:1Hz` does").into());
            }
            NOBODY_WATCHES => ObservedBy::Nobody,
            COLLO_SAMPLES if rate_hz.is_some_and(|hz| hz > 1000.0) => {
                return Err(Diagnostic::new("collo samples at most 1000 times a second").note("as in `collo:100Hz`").into());
            }
            COLLO_SAMPLES => ObservedBy::Collo,
            name => {
                let tool = observers.find(name)?;
                if rate_hz.is_some() && !tool.has_rate() {
                    let what = format!("the command of `{name}` has no rate, so `{text}` would change nothing");
                    return Err(Diagnostic::new(what)
                        .note(format!("`{{rate_hz}}` or `{{interval_s}}` in observers/{name}.toml"))
                        .into());
                }
                ObservedBy::Tool(tool.clone())
            }
        };
        Ok(Observe { by, rate_hz })
    }

    /// As it is written in experiments, labels and records.
    pub fn label(&self) -> String {
        let name = match &self.by {
            ObservedBy::Nobody => NOBODY_WATCHES,
            ObservedBy::Collo => COLLO_SAMPLES,
            ObservedBy::Tool(tool) => &tool.name,
        };
        self.rate_hz.map_or_else(|| name.to_string(), |hz| format!("{name}:{hz}Hz"))
    }

    /// True for what everything else is compared with.
    pub fn is_nobody(&self) -> bool {
        matches!(self.by, ObservedBy::Nobody)
    }

    /// The program, unless it is nobody or collo.
    pub fn tool(&self) -> Option<&Arc<Observer>> {
        match &self.by {
            ObservedBy::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// What it is to the members: collo reads from outside, a program is what its file says.
    pub fn kind(&self) -> Option<&str> {
        match &self.by {
            ObservedBy::Nobody => None,
            ObservedBy::Collo => Some(MONITOR),
            ObservedBy::Tool(tool) => Some(&tool.kind),
        }
    }

    /// Readings per second that collo is asked for, if it watches and the experiment says how often.
    pub fn collo_hz(&self) -> Option<f64> {
        self.rate_hz.filter(|_| matches!(self.by, ObservedBy::Collo))
    }

    /// Readings per second of a program.
    pub fn rate_hz(&self) -> Option<f64> {
        let tool = self.tool()?;
        Some(self.rate_hz.unwrap_or(tool.rate_hz))
    }

    /// Why it cannot watch members of these workloads here, and the way out. One beside them is started by collo, one around or inside
    /// them where they are: of another machine, that is not known.
    pub fn lacking<'a>(&self, facts: &DeviceFacts, workloads: impl IntoIterator<Item = &'a Arc<Workload>>) -> Option<Refusal> {
        let tool = self.tool()?;
        if tool.packages.is_some() && facts.python.is_own {
            let reason =
                format!("observer `{}` needs packages, which collo does not install beside a Python of your own", tool.name);
            return Some(Refusal { reason, hint: Some("without `--python` it provides both".into()) });
        }
        let reason = if tool.needs_gpu && facts.kind == DeviceKind::Cpu {
            format!("observer `{}` needs an NVIDIA GPU, this device is a CPU", tool.name)
        } else if tool.place == Place::Beside {
            format!("observer `{}` needs `{}`, which is not on the PATH", tool.name, tool.lacks.as_ref()?)
        } else {
            let lacks = |workload: &Workload, program: &String| {
                facts.python.missing_around.contains(&(workload.name.clone(), program.clone()))
            };
            let first =
                |workload: &'a Arc<Workload>| Some((workload, tool.programs.iter().find(|program| lacks(workload, program))?));
            let (workload, program) = workloads.into_iter().find_map(first)?;
            let place = match workload.environment {
                WorkloadPython::System => "not on the PATH".to_string(),
                _ => format!("neither in `bin` of the Python of `{}` nor on the PATH", workload.name),
            };
            format!("observer `{}` needs `{program}`, which is {place}", tool.name)
        };
        Some(Refusal { reason, hint: tool.hint.clone() })
    }
}

/// All observers of a project, by name.
#[derive(Debug, Clone, Default)]
pub struct Observers {
    all: BTreeMap<String, Arc<Observer>>,
    broken: BTreeMap<String, Diagnostics>,
}

impl Observers {
    /// Read every `NAME.toml` of a folder; without the folder there are none. A broken one is kept with its mistakes: they matter only if
    /// it is requested.
    pub fn load(folder: &Path) -> Observers {
        let mut observers = Observers::default();
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).map(|entries| entries.flatten().map(|e| e.path()).collect()).unwrap_or_default();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml") && path.is_file()) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match read::read(&name, &path) {
                Ok(observer) => drop(observers.all.insert(name, Arc::new(observer))),
                Err(mistakes) => drop(observers.broken.insert(name, mistakes)),
            }
        }
        observers
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Observer>> {
        self.all.values()
    }

    /// Files with mistakes, by name.
    pub fn broken(&self) -> &BTreeMap<String, Diagnostics> {
        &self.broken
    }

    /// The observer of this name, or the error: unknown, or broken.
    pub fn find(&self, name: &str) -> Result<&Arc<Observer>, Diagnostics> {
        if let Some(observer) = self.all.get(name) {
            return Ok(observer);
        }
        if let Some(mistakes) = self.broken.get(name) {
            return Err(mistakes.clone());
        }
        let known = [NOBODY_WATCHES, COLLO_SAMPLES].into_iter().chain(self.all.keys().map(String::as_str));
        let note = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`? All: `collo list observers`"),
            None => "all: `collo list observers`".into(),
        };
        Err(Diagnostic::new(format!("unknown observer {}", quoted(name))).note(note).into())
    }
}

#[cfg(test)]
mod tests;
