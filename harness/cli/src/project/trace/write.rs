//! `collo trace make` and `collo trace import`: logs, tables and scripts of others become a file of `traces/`.
//!
//! What is written has been read back first, so that whatever is there can be planned, as far as its workloads are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use collo_plan::experiment::wrong_name;
use collo_plan::traces;
use collo_plan::workload::Workloads;
use collo_quantity::number;
use collo_schedule::trace::import::{self, Rad};
use collo_schedule::trace::make::{self, Class, Window};
use collo_schedule::trace::names::NameMap;
use collo_schedule::trace::{LARGEST, Trace};
use collo_text::units::clock;
use collo_text::{Diagnostic, Diagnostics, Source, quoted, shown};
use fs_err as fs;
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::TraceVerb;
use crate::context::Context;
use crate::output;

/// The largest log that is read, in bytes: the published ones have some hundred megabytes.
const LARGEST_LOG: u64 = 2_000_000_000;
/// The ending of a task file.
const RAD: &str = "rad";

/// A window of a log.
pub fn make(context: &Context<'_>, what: &TraceVerb) -> Answered {
    let TraceVerb::Make { name, from, log, after, window, tasks, classes, force } = what else { return Ok(Answer::default()) };
    let place = Place::of(context, name, *force)?;
    let classes: Vec<Class> = classes.iter().map(|text| class(text)).collect::<Result<_, _>>()?;
    let source = read(&context.folder()?.join(log), LARGEST_LOG)?;
    let submissions_s = from.0.submissions_s(&source)?;
    let window = Window {
        from_s: after.map_or(0, |after| after.as_secs()),
        length_s: window.as_ref().map(Duration::as_secs),
        tasks: tasks.map(|tasks| tasks as usize),
    };
    let text = make::make(from.0, &submissions_s, window, &classes)?;
    let (trace, workloads) = (place.readable(&text)?, place.workloads()?);
    // They were typed, and can be typed again.
    let mut wrong = Diagnostics::default();
    traces::wrong_tasks(&trace, &workloads).into_iter().for_each(|mistakes| wrong.extend(mistakes));
    wrong.into_result(())?;
    place.write(&text, &trace)
}

/// `65=resnet18:b32 20e, resnet34:b64 20e`.
fn class(text: &str) -> Result<Class, Diagnostic> {
    let source = Source::argument("--class", text);
    let wrong = |what: String, span| {
        let note = "write a share and its tasks, as in `65=resnet18:b32 20e, resnet34:b64 20e`";
        Diagnostic::new(what).at(&source, span).note(note)
    };
    let Some((share, tasks)) = text.split_once('=') else {
        return Err(wrong("a class without its share".into(), 0..text.len()));
    };
    let Ok(number) = share.trim().parse() else {
        return Err(wrong(format!("{} is no share: a whole number, in any unit", quoted(share)), 0..share.len()));
    };
    let one_of: Vec<String> = tasks.split(',').map(|task| task.trim().to_string()).filter(|task| !task.is_empty()).collect();
    if one_of.is_empty() {
        return Err(wrong("a class without tasks".into(), share.len()..text.len()));
    }
    Ok(Class { share: number, one_of })
}

/// A table, or a script with its task files.
pub fn import(context: &Context<'_>, what: &TraceVerb) -> Answered {
    let TraceVerb::Import { name, files, map, force } = what else { return Ok(Answer::default()) };
    let place = Place::of(context, name, *force)?;
    let mut names = NameMap::parse("--map", map.iter().map(String::as_str))?;
    let folder = context.folder()?;
    let is_rad = |path: &&PathBuf| path.extension().is_some_and(|end| end == RAD);
    let (rads, others): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(is_rad);
    let [main] = others[..] else {
        let what =
            if others.is_empty() { "task files alone do not say when they arrive" } else { "more than one table or script" };
        return Err(Diagnostic::new(what).hint("give one table or script, and behind it the .rad files that it submits").into());
    };
    let main = folder.join(main);
    let source = read(&main, LARGEST)?;
    let is_table = main.extension().is_some_and(|end| end == "csv")
        || source.text().trim_start_matches('\u{feff}').starts_with("submit_time");
    let text = match is_table {
        true => import::table(&source, &mut names)?,
        false => {
            let named: Vec<PathBuf> = rads.into_iter().map(|path| folder.join(path)).collect();
            let tasks = task_files(&source, &main, &named)?;
            tasks.values().filter_map(of_each_card).for_each(output::warning);
            import::script(&source, &tasks, &mut names)?
        }
    };
    let (trace, workloads) = (place.readable(&text)?, place.workloads()?);
    // They were typed, and can be typed again.
    if let Some(name) = names.unused() {
        return Err(Diagnostic::new(format!("no task of {} is named {}", shown(&main), quoted(name)))
            .hint("leave this `--map` out, or correct its name: a .rad file's without its ending; an earlier one may have all of its tasks")
            .into());
    }
    for workload in names.workloads() {
        workloads.find(workload)?;
    }
    // Other names are those of the files: what they are here can be written into the trace.
    for mistake in traces::wrong_tasks(&trace, &workloads).iter().flat_map(Diagnostics::iter) {
        let way_out = mistake.way_out().map(|way_out| format!(": {way_out}")).unwrap_or_default();
        output::warning(format!("{}, {}{way_out}", shown(&place.path), mistake.what()));
    }
    place.write(&text, &trace)
}

/// What a task on several cards is taken to be: its file does not say whether its batch is that of each of them.
fn of_each_card(task: &Rad) -> Option<String> {
    let (batch, cards) = (task.batch_size, task.cards);
    let doubt = "where its script splits one batch among them, as DataParallel does";
    (cards > 1).then(|| {
        format!(
            "{}: its batch of {batch} is taken to be that of each of its {cards} cards; {doubt}, write `batch_size = {}` into the trace",
            quoted(&task.name),
            (batch / cards).max(1)
        )
    })
}

/// The task files that a script submits, by their paths as it has them: the named ones by their file names, the others where they are found.
fn task_files(script: &Arc<Source>, at: &Path, named: &[PathBuf]) -> Result<BTreeMap<String, Rad>, Diagnostics> {
    let folder = at.parent().map(Path::to_path_buf).unwrap_or_default();
    // A folder is above the script only where no `..` is left.
    let folder = folder.canonicalize().unwrap_or(folder);
    let mut files = BTreeMap::new();
    for word in import::submitted(script) {
        let file = Path::new(word).file_name();
        let path = named.iter().find(|path| path.file_name() == file).cloned().or_else(|| found(&folder, Path::new(word)));
        if let (Some(path), Entry::Vacant(new)) = (path, files.entry(word.to_string())) {
            new.insert(import::rad(&read(&path, LARGEST)?)?);
        }
    }
    Ok(files)
}

/// A task file in the script's folder or the nearest above it, under the path that the script has, or the longest end of it: scripts of
/// itu-rad/CARMA name files relative to the repository, or to a folder of their author's.
fn found(folder: &Path, path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path.components().collect();
    let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
    let candidates = ends.flat_map(|end| folder.ancestors().map(move |folder| folder.join(&end)).collect::<Vec<_>>());
    candidates.into_iter().find(|path| path.is_file())
}

fn read(path: &Path, limit_bytes: u64) -> Result<Arc<Source>, Diagnostic> {
    let text = collo_text::read_small_text(path, limit_bytes)
        .map_err(|e| Diagnostic::new(format!("{} cannot be read", shown(path))).caused_by(e))?;
    Ok(Source::file(shown(path), text))
}

/// Where a trace of a name is written.
struct Place {
    path: PathBuf,
    workloads: PathBuf,
    name: String,
}

impl Place {
    fn of(context: &Context<'_>, name: &str, force: bool) -> Result<Place, Diagnostic> {
        if wrong_name(name).is_some() {
            let what = Diagnostic::new(format!("invalid trace name {}", quoted(name)));
            return Err(what.hint("letters, digits, `-`, `_` and `.`, at most 80, without the ending `.toml`"));
        }
        let project = context.project()?;
        let path = project.traces().join(format!("{name}.toml"));
        if path.symlink_metadata().is_ok() && !force {
            let there = Diagnostic::new(format!("{} exists already", shown(&path)));
            return Err(there.hint("give another name, or replace it with `--force`"));
        }
        Ok(Place { path, workloads: project.workloads(), name: name.into() })
    }

    fn workloads(&self) -> Result<Workloads, Diagnostics> {
        Workloads::load(&self.workloads)
    }

    /// The trace as it will be read.
    fn readable(&self, text: &str) -> Result<Trace, Diagnostics> {
        if text.len() as u64 > LARGEST {
            let what =
                format!("the trace would have {} MB, and at most {} MB are read", text.len() / 1_000_000, LARGEST / 1_000_000);
            return Err(Diagnostic::new(what).hint("take a window of it: fewer tasks").into());
        }
        Trace::read(&Source::file(shown(&self.path), text))
    }

    fn write(&self, text: &str, trace: &Trace) -> Answered {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        collo_store::place_file(&self.path, text.as_bytes())?;
        let last_s = trace.arrivals_ns().last().copied().unwrap_or_default() as f64 / 1e9;
        let keys = json!({"trace": self.name, "file": self.path, "tasks": trace.tasks(), "last_arrival_s": last_s});
        let mut answer = Answer::of(keys);
        let tasks = number::count(trace.tasks(), "task");
        answer.line(format!("{}: {tasks} within {}", shown(&self.path), clock(last_s)));
        answer.note(format!("next: collo trace show {}", self.name));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_of_a_task_on_several_cards_is_doubted_aloud() {
        let text = |cards: u32| format!("# c\nenv\ntrain\nm.txt\nwikitext\n8\ncollocation\n{cards}\n");
        let doubt = |cards: u32| of_each_card(&import::rad(&Source::file("gpt2_large.rad", text(cards))).expect("a task file"));
        assert_eq!(doubt(1), None);
        let said = doubt(2).expect("a doubt");
        assert!(said.starts_with("`gpt2_large`: its batch of 8 is taken to be that of each of its 2 cards"), "{said}");
        assert!(said.contains("write `batch_size = 4` into the trace"), "{said}");
    }

    #[test]
    fn a_class_is_a_share_and_the_tasks_that_are_drawn() {
        let one = class("65=resnet18:b32 20e, resnet34:b64 20e").expect("a class");
        assert_eq!((one.share, &one.one_of[..]), (65, &["resnet18:b32 20e".to_string(), "resnet34:b64 20e".into()][..]));
        let said = |text: &str| class(text).expect_err("a mistake").to_string();
        assert!(said("x=tiny").contains("`x` is no share") && said("x=tiny").contains("`65=resnet18:b32 20e"));
        assert!(said("tiny").contains("without its share") && said("3=").contains("without tasks"));
    }
}
