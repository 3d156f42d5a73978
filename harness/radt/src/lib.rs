//! From radT, the Resource-Aware Data systems Tracker, to collo: a schedule becomes an experiment with its workloads, tracked runs
//! become a report.
//!
//! In: radT's CSV table, or the MLflow store that it tracks to, files or a database. Out: files of a project, or a `report.json` that has on its
//! face that collo measured none of it. What cannot be carried is a [`Leftover`], never dropped without a word. Nothing is written
//! or printed here: both are the caller's.
//!
//! [`schedule`] reads the table, a row with its options; [`experiment`] writes what collo can measure of it as files of a project.
//! [`tracking`] reads the runs of the MLflow store, their letters and metrics; [`report`] puts those of a group together as the cells
//! of a report.
//!
//! The witness for both formats is radT itself, github.com/Resource-Aware-Data-systems-RAD/radt; its files are named beside the code.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod experiment;
mod letter;
pub mod metrics;
mod options;
pub mod report;
pub mod schedule;
#[cfg(test)]
#[path = "../../store/tests/support/skip.rs"]
mod skip;
pub mod tracking;

use collo_plan::workload::is_name;

/// What is not carried over, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Leftover {
    /// Where it is: `line 4`, `run 1f2e…`.
    pub place: String,
    pub reason: String,
}

impl Leftover {
    /// `line 4: its Devices are …`.
    pub fn text(&self) -> String {
        format!("{}: {}", self.place, self.reason)
    }
}

/// All of them, as the cause of an error.
pub fn all_of(leftovers: &[Leftover]) -> String {
    const SHOWN: usize = 20;
    let mut lines: Vec<String> = leftovers.iter().take(SHOWN).map(Leftover::text).collect();
    if leftovers.len() > SHOWN {
        lines.push(format!("… and {} more", leftovers.len() - SHOWN));
    }
    lines.join("\n")
}

/// How radT collocates the runs of a group, by the words of its column `Collocation`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collocation {
    Naive,
    Mps,
    /// An instance of this profile for the run.
    Mig(String),
}

impl Collocation {
    /// `-`, nothing and `nan` are none; `MPS` in any case; what contains a `g` is a MIG profile: `start_schedule` and `make_mps` in
    /// radt/schedule/schedule.py.
    pub fn parse(text: &str) -> Result<Collocation, String> {
        match text.trim() {
            "" | "-" | "nan" => Ok(Collocation::Naive),
            mps if mps.eq_ignore_ascii_case("mps") => Ok(Collocation::Mps),
            // With a count it cannot be the name of a layout.
            profile if is_mode(&format!("mig:1×{profile}")) => Ok(Collocation::Mig(profile.into())),
            other => Err(format!("unknown Collocation {}", collo_text::quoted(other))),
        }
    }

    /// The sharing mode in which all members of a group are: `None` if they differ in more than their profiles. Different profiles
    /// are given by workload, in `slices`.
    pub fn together(all: &[Collocation]) -> Option<String> {
        let mig = |c: &Collocation| matches!(c, Collocation::Mig(_));
        match all {
            [first, rest @ ..] if rest.iter().all(|c| c == first) => Some(match first {
                Collocation::Naive => "naive".into(),
                Collocation::Mps => "mps".into(),
                Collocation::Mig(profile) => format!("mig:{profile}"),
            }),
            all if all.iter().all(mig) && !all.is_empty() => Some("mig".into()),
            _ => None,
        }
    }
}

fn is_mode(label: &str) -> bool {
    collo_plan::sharing::parse(label).is_ok()
}

/// The name of the workload of a script: `cifar10.py` is `cifar10`.
pub fn workload_name(script: &str) -> String {
    let stem = std::path::Path::new(script).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(16).collect();
    name = name.trim_matches('-').to_string();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name = format!("script-{name}").trim_end_matches('-').into();
    }
    // `max2` would read as two of `ma`.
    if is_name(&name) { name } else { format!("{name}-script") }
}

/// The preset that has an instance of this profile, in a group with instances of several.
pub fn on_profile(workload: &str, profile: &str) -> String {
    let profile: String = profile.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{workload}-{}", profile.trim_matches('-'))
}

/// A name as part of a file's.
pub fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radts_words_for_a_mode_are_those_of_its_schedule() {
        let mode = |words: &[&str]| {
            let all: Result<Vec<Collocation>, String> = words.iter().map(|w| Collocation::parse(w)).collect();
            Collocation::together(&all.unwrap())
        };
        assert_eq!(mode(&["-", "", "nan"]).as_deref(), Some("naive"));
        assert_eq!(mode(&["MPS", "mps"]).as_deref(), Some("mps"));
        assert_eq!(mode(&["3g.20gb", "3g.20gb"]).as_deref(), Some("mig:3g.20gb"));
        assert_eq!(mode(&["1g.5gb", "3g.20gb"]).as_deref(), Some("mig"));
        assert_eq!((mode(&["-", "MPS"]), mode(&["MPS", "1g.5gb"])), (None, None));
        assert!(
            Collocation::parse("balanced").is_err() && Collocation::parse("streams").is_err() && Collocation::parse("2").is_err()
        );
    }

    #[test]
    fn every_script_has_a_name_that_a_workload_may_have() {
        let names = ["cifar10.py", "../a/Train_Net.py", "max2.py", "7way.py", "ä.py"].map(workload_name);
        assert_eq!(names, ["cifar10", "train-net", "max2-script", "script-7way", "script"]);
        assert!(names.iter().all(|name| is_name(name)));
        assert!(is_name(&on_profile("cifar10", "1g.10gb+me")));
    }
}
