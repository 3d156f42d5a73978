//! An observer of one run: what it is started with, and what members are started with because of it.

use std::path::PathBuf;

use collo_launch::MemberLaunch;
use collo_plan::observer::{Observe, ObservedBy, Observer, ObserverRoom, Place};

/// The folder of a run in which an observer writes, until it has been measured.
pub const OBSERVER_FOLDER: &str = "observer";

/// Who watches a run, and with what.
#[derive(Debug, Clone)]
pub struct ObserverSpec {
    pub observe: Observe,
    /// Where it writes; measured in bytes and removed at the end of the run.
    pub folder: PathBuf,
    /// Of its packages.
    pub packages: Option<PathBuf>,
    /// The interpreter that the word `python` stands for.
    pub python: Option<PathBuf>,
}

impl ObserverSpec {
    /// Whether collo samples: only where it is the one who watches, so that others are measured alone.
    pub fn is_sampled_by_collo(&self) -> bool {
        matches!(self.observe.by, ObservedBy::Collo)
    }

    /// The program, if it runs in this place.
    pub fn tool_at(&self, place: Place) -> Option<&Observer> {
        self.observe.tool().filter(|tool| tool.place == place).map(AsRef::as_ref)
    }

    /// What its placeholders stand for.
    pub fn room<'a>(&'a self, pids: &'a [u32], member: Option<usize>) -> ObserverRoom<'a> {
        let rate_hz = self.observe.rate_hz().unwrap_or(1.0);
        ObserverRoom { folder: &self.folder, rate_hz, pids, member, packages: self.packages.as_deref() }
    }

    /// The words to start it with beside the members.
    pub fn command(&self, tool: &Observer, room: &ObserverRoom<'_>) -> Vec<String> {
        self.with_python(tool.command_in(room))
    }

    /// Those around members change their commands, those inside their variables.
    pub fn put_on(&self, launches: &mut [MemberLaunch]) {
        for (member, launch) in launches.iter_mut().enumerate() {
            let room = self.room(&[], Some(member));
            if let Some(tool) = self.tool_at(Place::Around) {
                launch.command = self.with_python(tool.around(&launch.command, &room));
                launch.env.extend(tool.variables_in(&room));
            }
            if let Some(tool) = self.tool_at(Place::Inside) {
                launch.env.extend(tool.variables_in(&room));
            }
        }
    }

    fn with_python(&self, mut command: Vec<String>) -> Vec<String> {
        if let (Some(word), Some(python)) = (command.first_mut(), &self.python)
            && word == "python"
        {
            *word = python.display().to_string();
        }
        command
    }
}
