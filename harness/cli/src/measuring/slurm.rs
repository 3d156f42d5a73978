//! `collo slurm`: an array job that measures the shards of an experiment, and a job after it that merges them and writes the report.
//!
//! To add another batch system: a file like this one.

mod submit;
mod time_limit;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use collo_plan::expand::expand;
use collo_plan::experiment::{DeviceChoice, Experiment, Overrides};
use collo_plan::plan::most_shards;
use collo_plan::workload::Workloads;
use collo_quantity::number;
use collo_store::sha256_text;
use collo_text::quoting::literal;
use collo_text::{Diagnostic, Diagnostics, shown};
use fs_err as fs;
use serde_json::json;

use super::ending;
use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::shell::quoted;
use crate::{args, output};

pub fn run(context: &Context<'_>, a: &args::Slurm) -> Answered {
    let project = context.project()?;
    let workloads = Workloads::load(&project.workloads())?;
    let overrides = Overrides::of(&project, &a.selection.set)?;
    let experiment = Experiment::resolve_with(&project, &a.name, &workloads, &overrides)?;
    let selection = a.selection.parse()?;
    let cells = expand(&experiment, selection.as_ref())?;
    let most = most_shards(&cells, a.shards);
    if most < a.shards {
        let what = format!("`{}` has cells for {}, not for {}", experiment.name, number::count(most as usize, "shard"), a.shards);
        return Err(Diagnostic::new(what)
            .hint(format!("`--shards {most}`; a shard has at least one group and its baselines"))
            .into());
    }
    let degree = cells.iter().map(|e| e.cell.degree()).max().unwrap_or(1);
    let folder = a.to.clone().unwrap_or_else(|| project.root().join("slurm").join(&experiment.name));
    let folder = std::path::absolute(&folder)?;
    // The job runs in another folder.
    let name = if a.name.contains('/') || a.name.ends_with(".toml") {
        std::path::absolute(&experiment.path)?.display().to_string()
    } else {
        a.name.clone()
    };
    let job = Job {
        collo: std::env::current_exe()?,
        project: project.root().to_path_buf(),
        experiment: &experiment.name,
        name: &name,
        set: ending::set(&experiment),
        python: a.python.as_deref().map(std::path::absolute).transpose()?,
        cores: degree.saturating_mul(experiment.threads),
        gpu: experiment.device != DeviceChoice::Cpu,
        folder: folder.clone(),
        a,
    };
    job.check()?;
    fs::create_dir_all(&folder)?;
    let (array, after) = (folder.join(ARRAY), folder.join("merge.sh"));
    place(&array, &job.array())?;
    place(&after, &job.after())?;
    let jobs = match a.submit {
        true => Some(submit::submit(&array, &after)?),
        false => None,
    };
    let (first, second) = jobs.as_ref().map(|jobs| (&jobs.array, &jobs.merge)).unzip();
    let mut answer = Answer::of(json!({"experiment": experiment.name, "shards": a.shards,
        "scripts": [array, after], "array_job": first, "merge_job": second}));
    answer.line(format!("{}: {} of `{}`", shown(&array), tasks(a.shards), experiment.name));
    let merges = if a.shards > 1 { "merges them and writes the report" } else { "writes the report" };
    answer.line(format!("{}: {merges}", shown(&after)));
    if let Some(short) = time_limit::of(a).as_ref().and_then(time_limit::TimeLimit::is_short) {
        output::warning(short);
    }
    answer.note(match jobs {
        Some(jobs) => format!("submitted: job {}, then {}     watch: {}", jobs.array, jobs.merge, jobs.watch()),
        None => {
            let here = std::env::current_dir().unwrap_or_default();
            let [array, after] = [&array, &after].map(|script| quoted(script.strip_prefix(&here).unwrap_or(script)));
            format!("next: the same with --submit; or sbatch {array}, then sbatch --dependency=afterany:ID {after}")
        }
    });
    Ok(answer)
}

fn tasks(shards: u32) -> String {
    if shards == 1 { "1 task".into() } else { format!("an array of {shards} tasks, a shard each") }
}

/// The script that measures.
const ARRAY: &str = "array.sh";

/// No script of ours is as large.
const LARGEST: u64 = 1 << 20;

/// A script is a user's to edit: it is only replaced as it was written here.
fn place(path: &Path, text: &str) -> Result<(), Diagnostics> {
    let others = || {
        let what = format!("{} was edited, or is not a script of `collo slurm`", shown(path));
        Diagnostic::new(what).hint("move it away, or name another folder with `--to`")
    };
    match collo_text::read_small_text(path, LARGEST) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(others().caused_by(e).into()),
        Ok(there) if signed(&there) != there => return Err(others().into()),
        Ok(_) => {}
    }
    Ok(collo_store::place_file(path, text.as_bytes())?)
}

const WRITTEN: &str = "# Written by collo slurm, digest ";
const DIGITS: usize = 16;

/// A script with the digest of its other lines in its second one, by which an edited one is recognized.
fn signed(script: &str) -> String {
    let (first, rest) = script.split_once('\n').unwrap_or((script, ""));
    let rest = match rest.split_once('\n') {
        Some((second, rest)) if second.starts_with(WRITTEN) => rest,
        _ => rest,
    };
    let digest = sha256_text(&format!("{first}\n{rest}"));
    format!("{first}\n{WRITTEN}{}\n{rest}", &digest[..DIGITS])
}

/// What the scripts are made from.
struct Job<'a> {
    collo: PathBuf,
    project: PathBuf,
    experiment: &'a str,
    /// As the user named it: a name, or a path from anywhere.
    name: &'a str,
    /// The options that set keys of it.
    set: String,
    python: Option<PathBuf>,
    cores: u32,
    gpu: bool,
    folder: PathBuf,
    a: &'a args::Slurm,
}

/// What ends or changes a line of a script: `sbatch` reads `#SBATCH` lines one by one, takes a backslash away wherever it stands, within
/// single quotes too, and has no quotes that go on in another line (`_get_argument` and `_next_line` in Slurm's src/sbatch/opt.c).
fn is_refused_by_sbatch(text: &str) -> bool {
    text.contains(|c: char| c.is_control() || matches!(c, '\'' | '"' | '\\'))
}

impl Job<'_> {
    /// That nothing that the user or the surroundings named can become a line or an option of its own.
    fn check(&self) -> Result<(), Diagnostics> {
        let a = self.a;
        let shown = |path: &Path| path.display().to_string();
        // What stands in lines of bash is quoted for bash; a line end would begin a line that sbatch could read.
        let in_commands = [
            ("the path of collo", Some(shown(&self.collo))),
            ("the project's path", Some(shown(&self.project))),
            ("the experiment's path", Some(self.name.to_string())),
            ("`--python`", self.python.as_deref().map(shown)),
            ("`--where`", a.selection.condition.clone()),
            ("`--set`", Some(self.set.clone())),
        ];
        let in_options = [
            ("the folder of the scripts", Some(shown(&self.folder))),
            ("`--account`", a.account.clone()),
            ("`--partition`", a.partition.clone()),
            ("`--time`", a.time.clone()),
            ("`--gres`", Some(a.gres.clone())),
        ];
        let given = a.sbatch.iter().map(|option| ("`--sbatch`", option.clone()));
        let lines = in_commands.into_iter().filter_map(|(what, text)| Some((what, text?))).chain(given);
        let broken = lines.filter(|(_, text)| text.contains(|c: char| c.is_control()));
        let options = in_options.into_iter().filter_map(|(what, text)| Some((what, text?)));
        match broken.chain(options.filter(|(_, text)| is_refused_by_sbatch(text))).next() {
            None => Ok(()),
            Some((what, text)) => Err(Diagnostic::new(format!("{what} cannot stand in a script of Slurm: {}", literal(&text)))
                .caused_by(
                    "`#SBATCH` lines have no line ends within quotes, and quotes and backslashes in them change the option",
                )
                .hint("use one without line ends, quotes and backslashes")
                .into()),
        }
    }

    fn array(&self) -> String {
        let a = self.a;
        let mut options = vec![format!("--job-name=collo-{}", self.experiment)];
        if a.shards > 1 {
            options.push(format!("--array=1-{}", a.shards));
        }
        options.push(self.output(if a.shards > 1 { "%A_%a.log" } else { "%j.log" }));
        options.push("--nodes=1".into());
        options.push("--ntasks=1".into());
        options.push(format!("--cpus-per-task={}", self.cores));
        options.extend(Some(format!("--gres={}", quoted(&a.gres))).filter(|_| self.gpu));
        options.extend(Some("--exclusive".to_string()).filter(|_| !a.shared));
        options.extend(a.time.iter().map(|time| format!("--time={}", quoted(time))));
        options.push(format!("--signal=B:TERM@{}", time_limit::lead_s(time_limit::of(a).as_ref())));
        let shard = if a.shards > 1 { format!(" --shard \"$SLURM_ARRAY_TASK_ID/{}\"", a.shards) } else { String::new() };
        let condition = a.selection.condition.as_ref().map(|text| format!(" --where {}", quoted(text))).unwrap_or_default();
        let python = self.python.as_ref().map(|path| format!(" --python {}", quoted(path))).unwrap_or_default();
        let again = match a.shards {
            1 => "# A job that was cut off is continued by submitting this script again.",
            _ => "# A task that was cut off is continued by its number: sbatch --array=3 array.sh",
        };
        // What collo prints when it is cut off: the number is that of the task, and the path is quoted for the user and for this script.
        let task = if a.shards > 1 { "--array=$SLURM_ARRAY_TASK_ID " } else { "" };
        let resume = format!(" --resume-with \"sbatch {task}\"{}", quoted(quoted(self.folder.join(ARRAY))));
        let about = format!("{again}\n# exec: Slurm's warning before the time limit reaches collo, which stops cleanly.");
        let command = format!(
            "exec {} run {}{shard}{condition}{}{python} --no-report{resume} \"$@\"",
            self.command(),
            quoted(self.name),
            self.set
        );
        self.script(&options, &about, &command)
    }

    fn after(&self) -> String {
        let a = self.a;
        let options =
            [format!("--job-name=collo-{}-merge", self.experiment), self.output("merge-%j.log"), "--ntasks=1".to_string()];
        let merge = if a.shards > 1 {
            format!("{} merge {} --shards && ", self.command(), quoted(self.experiment))
        } else {
            String::new()
        };
        let command = format!("{merge}exec {} report {}", self.command(), quoted(self.experiment));
        let about = match a.shards {
            1 => "# The report of what was measured.",
            _ => "# Refuses to merge while runs are missing: submit those tasks again, and then this.",
        };
        self.script(&options, about, &command)
    }

    /// Where a job writes; `%%` is a percent sign of the folder's own (sbatch(1), filename pattern).
    fn output(&self, name: &str) -> String {
        let folder = self.folder.display().to_string().replace('%', "%%");
        format!("--output={}", quoted(Path::new(&folder).join(name)))
    }

    fn command(&self) -> String {
        format!("{} -C {} --color never", quoted(&self.collo), quoted(&self.project))
    }

    fn script(&self, options: &[String], about: &str, command: &str) -> String {
        let a = self.a;
        let common = a.partition.iter().map(|name| format!("--partition={}", quoted(name)));
        let common =
            common.chain(a.account.iter().map(|name| format!("--account={}", quoted(name)))).chain(a.sbatch.iter().cloned());
        let lines: Vec<String> = options.iter().cloned().chain(common).map(|option| format!("#SBATCH {option}\n")).collect();
        signed(&format!("#!/bin/bash\n{}{about}\n{command}\n", lines.concat()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Verb};

    fn scripts(words: &[&str], gpu: bool) -> String {
        let parsed = Arguments::parse_from([&["collo", "slurm"], words].concat());
        let Verb::Slurm(a) = &parsed.verb else { unreachable!("it was asked for") };
        let job = Job {
            collo: "/opt/collo/bin/collo".into(),
            project: "/home/a b/project".into(),
            experiment: "small",
            name: &a.name,
            set: " --set repetitions=5".into(),
            python: a.python.clone(),
            cores: 14,
            gpu,
            folder: "/home/a b/project/slurm/small".into(),
            a,
        };
        format!("{}----\n{}", job.array(), job.after())
    }

    #[test]
    fn an_array_measures_a_shard_each_and_a_job_after_it_merges() {
        insta::assert_snapshot!(scripts(
            &[
                "small",
                "--shards",
                "4",
                "--partition",
                "a100",
                "--time",
                "08:00:00",
                "--where",
                "degree <= 2 && cell != 'x'",
                "--python",
                "/venv/bin/python",
                "--sbatch=--qos=long"
            ],
            true
        ));
    }

    #[test]
    fn on_a_cpu_no_gpu_is_requested_and_one_shard_is_no_array() {
        insta::assert_snapshot!(scripts(&["small", "--shared"], false));
    }
}
