//! What an observer runs: its words, with their placeholders filled in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use super::{Observer, Place, Stop};
use crate::workload::Workload;

impl Stop {
    pub fn signal(self) -> Signal {
        match self {
            Stop::Interrupt => Signal::SIGINT,
            Stop::Terminate => Signal::SIGTERM,
        }
    }
}

/// What its placeholders stand for.
#[derive(Debug, Clone)]
pub struct ObserverRoom<'a> {
    /// Where it writes.
    pub folder: &'a Path,
    pub rate_hz: f64,
    /// The processes of the members that it watches.
    pub pids: &'a [u32],
    /// The member that it is for, if it is one for each.
    pub member: Option<usize>,
    /// Of its packages.
    pub packages: Option<&'a Path>,
}

/// All placeholders of a word; `{command}` is a whole word of its own.
pub(super) const PLACEHOLDERS: &[&str] =
    &["pids", "pid", "folder", "member", "rate_hz", "interval_s", "interval_ms", "packages", "command"];
pub(super) const COMMAND: &str = "{command}";

impl Observer {
    /// True if a word of it depends on the rate.
    pub fn has_rate(&self) -> bool {
        ["rate_hz", "interval_s", "interval_ms"].iter().any(|name| self.says(name))
    }

    /// True if it runs once for each member.
    pub fn is_for_each(&self) -> bool {
        self.place == Place::Beside && (self.says("pid") || self.says("member"))
    }

    /// What the names of its files of a member begin with, if its command or its variables name some for each: `FOLDER/member-0`.
    pub fn files_of_member(&self, room: &ObserverRoom<'_>) -> Option<PathBuf> {
        const START: &str = "{folder}/";
        const NUMBER: &str = "{member}";
        // Up to the number: an ending is the program's own.
        let path = |word: &String| {
            let begin = word.find(START)?;
            let end = begin + word[begin..].find(NUMBER)? + NUMBER.len();
            Some(PathBuf::from(room.fill(&word[begin..end])))
        };
        self.command.iter().chain(self.variables.values()).find_map(path)
    }

    fn says(&self, name: &str) -> bool {
        let placeholder = format!("{{{name}}}");
        self.command.iter().chain(self.variables.values()).any(|word| word.contains(&placeholder))
    }

    /// The words to run beside members.
    pub fn command_in(&self, room: &ObserverRoom<'_>) -> Vec<String> {
        self.command.iter().map(|word| room.fill(word)).collect()
    }

    /// The words to run a member's command in.
    pub fn around(&self, command: &[String], room: &ObserverRoom<'_>) -> Vec<String> {
        let words = self.command.iter();
        words.flat_map(|word| if word == COMMAND { command.to_vec() } else { vec![room.fill(word)] }).collect()
    }

    /// Its variables.
    pub fn variables_in(&self, room: &ObserverRoom<'_>) -> BTreeMap<String, Option<String>> {
        self.variables.iter().map(|(name, text)| (name.clone(), Some(room.fill(text)))).collect()
    }
}

impl ObserverRoom<'_> {
    fn fill(&self, word: &str) -> String {
        let interval_s = 1.0 / self.rate_hz;
        // The whole set of pids first: its name begins like that of one.
        let joined = self.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let or = |text: String, unknown: &str| if text.is_empty() { unknown.to_string() } else { text };
        let values = [
            ("{pids}", or(joined, "<pids>")),
            ("{pid}", or(self.pids.first().map(u32::to_string).unwrap_or_default(), "<pid>")),
            ("{folder}", self.folder.display().to_string()),
            ("{member}", or(self.member.map(|m| m.to_string()).unwrap_or_default(), "<member>")),
            ("{rate_hz}", self.rate_hz.to_string()),
            ("{interval_s}", interval_s.to_string()),
            ("{interval_ms}", ((interval_s * 1000.0).round().max(1.0) as u64).to_string()),
            ("{packages}", or(self.packages.map(|p| p.display().to_string()).unwrap_or_default(), "<packages>")),
        ];
        values.iter().fold(word.to_string(), |word, (name, value)| word.replace(name, value))
    }
}

impl Observer {
    /// What provides its packages: as those of a workload of the same name. `None` if it needs none.
    pub fn as_workload(&self) -> Option<Workload> {
        Some(Workload {
            name: format!("observer {}", self.name),
            folder: self.file.parent().unwrap_or(Path::new("")).to_path_buf(),
            packages: Some(self.packages.clone()?),
            ..Workload::default()
        })
    }
}
