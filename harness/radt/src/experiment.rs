//! A schedule as files of a project: an experiment, and a workload for each script and way to call it.
//!
//! In: a schedule, and what the project already has. Out: paths with their contents, none of which exists yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use collo_plan::project::Project;
use collo_plan::workload::Workloads;
use collo_text::quoting::{line, literal};
use collo_text::{Diagnostic, Diagnostics};
use serde_json::Value as Json;

use super::options::typed;
use super::schedule::{Schedule, ScheduledGroup, ScheduledRun};
use super::{Collocation, Leftover, on_profile, workload_name};

/// Larger than any script; a file of this size is something else.
const LARGEST_SCRIPT: u64 = 8_000_000;

/// What is to be written.
#[derive(Debug)]
pub struct NewFiles {
    pub experiment: PathBuf,
    /// Every file with its content, the experiment last.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub workloads: Vec<ImportedWorkload>,
    /// What a person should know: scripts that were not found, or that import their neighbours.
    pub notes: Vec<Leftover>,
}

/// A script, called in one way.
#[derive(Debug)]
pub struct ImportedWorkload {
    pub name: String,
    /// As the schedule names it.
    pub file: String,
    /// Words after the script, with placeholders.
    words: Vec<String>,
    /// Each setting with the value of every row, in their order.
    values: BTreeMap<String, Vec<Json>>,
    /// The rows, by line.
    lines: Vec<u64>,
    /// Profiles in groups with instances of several.
    profiles: BTreeSet<String>,
    /// Already there with the same content.
    pub exists: bool,
    /// True if its script speaks collo's protocol.
    pub speaks: bool,
}

/// Turn a schedule into files; `csv` is its path, `name` that of the experiment.
pub fn files(project: &Project, schedule: &Schedule, csv: &Path, name: &str) -> Result<NewFiles, Diagnostics> {
    let experiment = project.experiments().join(format!("{name}.toml"));
    if experiment.symlink_metadata().is_ok() {
        let what = format!("{} exists already", collo_text::shown(&experiment));
        return Err(Diagnostic::new(what).hint("another name: `--to NAME`").into());
    }
    let from = csv.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let known = Workloads::load(&project.workloads())?;
    let mut workloads = workloads(schedule);
    let (mut files, mut notes, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
    for workload in &mut workloads {
        let script = script(csv, workload, &mut notes)?;
        let base = workload_name(&workload.file);
        for number in 1.. {
            workload.name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let folder = project.workloads().join(&workload.name);
            let content = workload_toml(workload, &from).into_bytes();
            let [toml, place] = [folder.join("workload.toml"), folder.join(workload.script())];
            // Two workloads of one name cannot be used, be one a preset of a third.
            let presets = workload.profiles.iter().map(|profile| on_profile(&workload.name, profile));
            let is_others = |name: String| known.get(&name).is_some_and(|other| other.folder != folder);
            if !taken.insert(workload.name.clone()) || presets.chain([workload.name.clone()]).any(is_others) {
                continue;
            }
            let same =
                |path: &Path, content: &[u8]| collo_text::read_small(path, LARGEST_SCRIPT).is_ok_and(|there| there == content);
            workload.exists = same(&toml, &content) && script.as_ref().is_none_or(|script| same(&place, script));
            if workload.exists {
                break;
            }
            if folder.symlink_metadata().is_err() {
                files.extend(script.map(|script| (place, script)));
                files.push((toml, content));
                break;
            }
        }
    }
    let text = experiment_toml(name, &from, schedule, &workloads);
    files.push((experiment.clone(), text.into_bytes()));
    Ok(NewFiles { experiment, files, workloads, notes })
}

/// Each script with each way to call it, in the order of the schedule.
fn workloads(schedule: &Schedule) -> Vec<ImportedWorkload> {
    let mut all: Vec<(ImportedWorkload, Vec<&ScheduledRun>)> = Vec::new();
    for group in &schedule.groups {
        for run in &group.members {
            let found = all.iter().position(|(w, _)| w.is_of(run));
            let at = found.unwrap_or_else(|| {
                let workload = ImportedWorkload {
                    name: String::new(),
                    file: run.file.clone(),
                    words: run.options.words.clone(),
                    values: BTreeMap::new(),
                    lines: Vec::new(),
                    profiles: BTreeSet::new(),
                    exists: false,
                    speaks: false,
                };
                all.push((workload, Vec::new()));
                all.len() - 1
            });
            all[at].1.push(run);
            all[at].0.lines.push(run.line);
            if let (Collocation::Mig(profile), "mig") = (&run.collocation, group.mode.as_str()) {
                all[at].0.profiles.insert(profile.clone());
            }
        }
    }
    let finish = |(mut workload, runs): (ImportedWorkload, Vec<&ScheduledRun>)| {
        let names: Vec<String> = runs[0].options.values.iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            let of =
                |run: &&ScheduledRun| run.options.values.iter().find(|(n, _)| *n == name).map_or(String::new(), |v| v.1.clone());
            let values: Vec<String> = runs.iter().map(of).collect();
            workload.values.insert(name, typed(&values.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        workload
    };
    all.into_iter().map(finish).collect()
}

impl ImportedWorkload {
    fn is_of(&self, run: &ScheduledRun) -> bool {
        self.file == run.file && self.words == run.options.words
    }

    /// The name of its script in its folder.
    fn script(&self) -> String {
        Path::new(&self.file).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The settings of a row.
    fn settings_of(&self, at_line: u64) -> impl Iterator<Item = (&str, &Json)> {
        let at = self.lines.iter().position(|own| *own == at_line).unwrap_or(0);
        self.values.iter().filter_map(move |(name, values)| Some((name.as_str(), values.get(at)?)))
    }
}

/// The script itself. radT looks for it where it was started, which is usually the folder of the schedule.
fn script(csv: &Path, workload: &mut ImportedWorkload, notes: &mut Vec<Leftover>) -> Result<Option<Vec<u8>>, Diagnostic> {
    let beside = csv.parent().unwrap_or(Path::new("."));
    let candidates = [beside.join(&workload.file), PathBuf::from(&workload.file)];
    let place = format!("`{}`", workload.file);
    let Some(path) = candidates.iter().find(|path| path.is_file()) else {
        let reason =
            format!("there is no such file beside {} or here: put the script into the workload's folder", collo_text::shown(csv));
        notes.push(Leftover { place, reason });
        return Ok(None);
    };
    let content = collo_text::read_small(path, LARGEST_SCRIPT)?;
    let text = String::from_utf8_lossy(&content);
    let imports = |module: &str| {
        let of = |line: &str| {
            line.trim_start().strip_prefix("import ").or_else(|| line.trim_start().strip_prefix("from ")).map(str::to_string)
        };
        text.lines().filter_map(of).any(|rest| rest.split([' ', '.', ',']).any(|word| word == module))
    };
    workload.speaks = ["collo", "collo_lightning", "collo_transformers"].into_iter().any(imports);
    let neighbours = std::fs::read_dir(path.parent().unwrap_or(beside)).into_iter().flatten().flatten();
    let modules = neighbours.filter_map(|entry| entry.path().file_stem()?.to_str().map(String::from));
    let mut needed: Vec<String> = modules.filter(|module| imports(module)).collect();
    needed.sort();
    needed.dedup();
    if !needed.is_empty() {
        let reason =
            format!("it imports its neighbours {}, which are not copied: put them into the workload's folder", needed.join(", "));
        notes.push(Leftover { place: place.clone(), reason });
    }
    if imports("radt") {
        let reason = "it imports radt: name a Python that has it with `environment`, or remove it".into();
        notes.push(Leftover { place, reason });
    }
    Ok(Some(content))
}

fn value(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), literal)
}

fn workload_toml(workload: &ImportedWorkload, from: &str) -> String {
    let words = ["python".to_string(), workload.script()].into_iter().chain(workload.words.iter().cloned());
    let command: Vec<String> = words.map(|word| literal(&word)).collect();
    let description = format!("{} of radT's schedule {from}", workload.script());
    let mut text = format!(
        "# Written by `collo import radt`, from {}: the File {}.\n\ndescription = {}\ncommand = [{}]\n\
         # environment = \"../../env\"  # a Python of your own; without it the one that collo provides, with torch\n",
        line(from),
        line(&workload.file),
        literal(&description),
        command.join(", ")
    );
    if !workload.speaks {
        text.push_str(
            "\n# radT does not know when an epoch ends. Describe the line that the script prints after each, or let the script\n\
             # report them: see \"The protocol, in your script\" in collo's guide to workloads.\n\
             # [epochs]\n# pattern = '^epoch (?P<epoch>\\d+) took (?P<seconds>[0-9.]+) s'\n",
        );
    }
    if !workload.values.is_empty() {
        text.push_str("\n[settings]                    # by default those of the first row\n");
        for (name, values) in &workload.values {
            let _ = writeln!(text, "{name} = {}", value(&values[0]));
        }
    }
    for profile in &workload.profiles {
        let name = on_profile(&workload.name, profile);
        let description = format!("{} on a {profile}, beside instances of other profiles", workload.name);
        let _ = write!(text, "\n[presets.{name}]\ndescription = {}\n", literal(&description));
    }
    text
}

fn experiment_toml(name: &str, from: &str, schedule: &Schedule, workloads: &[ImportedWorkload]) -> String {
    let mut text = format!("# Written by `collo import radt`, from {}.\n", line(from));
    for (title, all) in
        [("Not carried, because collo cannot measure it:", &schedule.refused), ("Not carried:", &schedule.not_carried)]
    {
        if !all.is_empty() {
            let _ = writeln!(text, "# {title}");
            text.extend(all.iter().map(|l| format!("#   {}\n", line(&l.text()))));
        }
    }
    let groups = distinct(schedule, workloads);
    let most = groups.iter().map(|g| g.from.len()).max().unwrap_or(1);
    let why = if most > 1 { "as often as the schedule has a group" } else { "radT runs each row once" };
    let repetitions = if most > 1 { most } else { 3 };
    let _ = write!(
        text,
        "\nschema = 1\nname = {}\ndescription = {}\ntags = [\"radt\"]\ndevice = \"gpu\"\nrepetitions = {repetitions}               # {why}\n",
        literal(name),
        literal(&format!("radT's schedule {from}"))
    );
    let profiles: Vec<String> = workloads
        .iter()
        .flat_map(|w| w.profiles.iter().map(|p| format!("{} = {}", on_profile(&w.name, p), literal(p))))
        .collect();
    if !profiles.is_empty() {
        let _ = writeln!(text, "slices = {{ {} }}", profiles.join(", "));
    }
    for group in groups {
        let of: Vec<String> =
            group.from.iter().map(|g| format!("experiment {}, workload {}", g.experiment, g.workload)).collect();
        let _ = write!(
            text,
            "\n# {} on GPU {}\n[[group]]\nmembers = [\n{}]\nsharing = [{}]\n",
            line(&of.join("; ")),
            line(&group.from[0].device),
            group.members.iter().map(|m| format!("    {m},\n")).collect::<String>(),
            literal(&group.from[0].mode)
        );
    }
    text
}

/// Equal groups of a schedule.
struct WrittenGroup<'a> {
    members: Vec<String>,
    from: Vec<&'a ScheduledGroup>,
}

/// The groups, those that are the same cell together.
fn distinct<'a>(schedule: &'a Schedule, workloads: &[ImportedWorkload]) -> Vec<WrittenGroup<'a>> {
    let mut all: Vec<WrittenGroup<'a>> = Vec::new();
    for group in &schedule.groups {
        let members = members(group, workloads);
        match all.iter_mut().find(|other| other.members == members && other.from[0].mode == group.mode) {
            Some(same) => same.from.push(group),
            None => all.push(WrittenGroup { members, from: vec![group] }),
        }
    }
    all
}

/// `{ workload = "train", batch_size = 128, count = 2 }` for each kind of member, sorted.
fn members(group: &ScheduledGroup, workloads: &[ImportedWorkload]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for run in &group.members {
        let Some(workload) = workloads.iter().find(|w| w.is_of(run)) else { continue };
        let name = match (&run.collocation, group.mode.as_str()) {
            (Collocation::Mig(profile), "mig") => on_profile(&workload.name, profile),
            _ => workload.name.clone(),
        };
        let settings: String = workload.settings_of(run.line).map(|(name, v)| format!(", {name} = {}", value(v))).collect();
        *counts.entry(format!("workload = {}{settings}", literal(&name))).or_default() += 1;
    }
    let written = |(member, count): (String, usize)| {
        if count == 1 { format!("{{ {member} }}") } else { format!("{{ {member}, count = {count} }}") }
    };
    counts.into_iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_text::Source;

    const HEAD: &str = "Experiment,Workload,Status,Run,Devices,Collocation,File,Listeners,Params\n";

    /// A project with a schedule and its script, and the texts of the files made of them.
    fn made(rows: &str) -> (tempfile::TempDir, BTreeMap<String, String>) {
        let dir = tempfile::tempdir().unwrap();
        for below in ["experiments", "workloads", "mine"] {
            std::fs::create_dir_all(dir.path().join(below)).unwrap();
        }
        std::fs::write(dir.path().join("mine/net.py"), "import helpers\nfrom radt import run\n").unwrap();
        std::fs::write(dir.path().join("mine/helpers.py"), "").unwrap();
        let files = again(&dir, rows).unwrap();
        (dir, files)
    }

    fn again(dir: &tempfile::TempDir, rows: &str) -> Result<BTreeMap<String, String>, Diagnostics> {
        let schedule = Schedule::parse(&Source::file("s.csv", format!("{HEAD}{rows}")))?;
        let files = files(&Project::at(dir.path()), &schedule, &dir.path().join("mine/s.csv"), "from-radt")?;
        let named = |(path, text): (PathBuf, Vec<u8>)| {
            (path.strip_prefix(dir.path()).unwrap().display().to_string(), String::from_utf8(text).unwrap())
        };
        let mut notes: Vec<String> = files.notes.iter().map(Leftover::text).collect();
        notes.sort();
        Ok(files.files.into_iter().map(named).chain([("notes".into(), notes.join("\n"))]).collect())
    }

    #[test]
    fn groups_and_their_workload_are_written_with_what_was_not_carried() {
        let (_dir, files) = made(
            "1,1,,,0,-,net.py,smi,--batch-size 32 --amp\n1,2,,,0,MPS,net.py,,--batch-size 64 --amp\n1,2,,,0,MPS,net.py,,--batch-size 64 --amp\n\
             1,3,,,0+1,-,net.py,,\n",
        );
        insta::assert_snapshot!(files["experiments/from-radt.toml"]);
        insta::assert_snapshot!(files["workloads/net/workload.toml"]);
        insta::assert_snapshot!(files["notes"], @"
        `net.py`: it imports its neighbours helpers, which are not copied: put them into the workload's folder
        `net.py`: it imports radt: name a Python that has it with `environment`, or remove it
        ");
        assert!(files["workloads/net/net.py"].starts_with("import helpers"));
    }

    #[test]
    fn different_profiles_are_presets_with_a_slice_each_and_equal_ones_a_mode() {
        let (_dir, files) = made("1,1,,,0,1g.5gb,net.py,,--b 8\n1,1,,,0,3g.20gb,net.py,,--b 8\n1,2,,,0,3g.20gb,net.py,,--b 8\n");
        let text = &files["experiments/from-radt.toml"];
        assert!(text.contains("slices = { net-1g-5gb = \"1g.5gb\", net-3g-20gb = \"3g.20gb\" }"), "{text}");
        assert!(text.contains("{ workload = \"net-1g-5gb\", b = 8 },") && text.contains("sharing = [\"mig\"]"), "{text}");
        assert!(text.contains("{ workload = \"net\", b = 8 },") && text.contains("sharing = [\"mig:3g.20gb\"]"), "{text}");
        assert!(files["workloads/net/workload.toml"].contains("[presets.net-3g-20gb]"));
    }

    #[test]
    fn a_group_that_the_schedule_repeats_is_one_cell_with_repetitions() {
        let (_dir, files) = made("1,1,,,0,-,net.py,,--b 8\n1,2,,,0,-,net.py,,--b 8\n");
        let text = &files["experiments/from-radt.toml"];
        assert!(text.contains("repetitions = 2 ") && text.matches("[[group]]").count() == 1, "{text}");
    }

    #[test]
    fn scripts_called_in_different_ways_are_workloads_of_their_own_and_nothing_there_is_overwritten() {
        let (dir, files) = made("1,1,,,0,-,net.py,,--b 8\n1,2,,,0,-,net.py,,--b 8 --amp\n");
        assert!(files.contains_key("workloads/net/workload.toml") && files.contains_key("workloads/net-2/workload.toml"));
        for (name, text) in files.iter().filter(|(name, _)| name.starts_with("workloads/net/")) {
            std::fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let same = again(&dir, "1,1,,,0,-,net.py,,--b 8\n").unwrap();
        assert!(!same.contains_key("workloads/net/workload.toml"), "it is the same");
        let other = again(&dir, "1,1,,,0,-,net.py,,--b 16\n").unwrap();
        assert!(other.contains_key("workloads/net-2/workload.toml"), "{:?}", other.keys());
        std::fs::write(dir.path().join("experiments/from-radt.toml"), "").unwrap();
        assert!(again(&dir, "1,1,,,0,-,net.py,,--b 8\n").unwrap_err().to_string().contains("exists already"));
    }
}
