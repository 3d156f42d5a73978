//! The project of commands that are tried. In: commands, and what was found of them. Out: its workloads and its experiment, as a user
//! would have written them.

use std::fmt::Write;
use std::path::Path;

use collo_plan::workload::is_name;
use collo_text::{Diagnostic, quoting};
use fs_err as fs;
use serde_json::Value;

use super::budget::BudgetPlan;
use super::look::FirstLook;
use crate::shell;

/// The name of the experiment.
pub const NAME: &str = "try";
/// The script of a workload that runs the command.
pub const COMMAND: &str = "command.sh";

/// The line that ends a whole run of a command that is repeated.
pub const RUN_PATTERN: &str = r"^collo: run (?P<epoch>\d+) of the command has ended$";

/// A command, how often it is started, and the name of its workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub name: String,
    pub text: String,
    pub count: u32,
}

impl Script {
    /// For messages.
    pub fn named(&self) -> String {
        format!("`{}`", self.text)
    }
}

/// The commands, each once; one alone is started twice, or `degree` times.
pub fn scripts(commands: &[String], degree: Option<u32>) -> Result<Vec<Script>, Diagnostic> {
    let mut scripts: Vec<Script> = Vec::new();
    for text in commands.iter().map(|text| text.trim()) {
        if text.is_empty() || text.contains(quoting::is_unseen) {
            let what = "a command is empty, or contains line ends or control characters";
            return Err(Diagnostic::new(what).hint("as in `collo try 'python a.py' 'python b.py'`"));
        }
        match scripts.iter_mut().find(|script| script.text == text) {
            Some(script) => script.count += 1,
            None => scripts.push(Script { name: name(text, &scripts), text: text.into(), count: 1 }),
        }
    }
    match (scripts.as_mut_slice(), degree) {
        ([one], degree) => one.count = degree.unwrap_or(one.count.max(2)),
        (_, Some(_)) => {
            return Err(Diagnostic::new("`--degree` is for one command, and there are several")
                .hint("repeat a command as many times as it is to run"));
        }
        (_, None) => {}
    }
    Ok(scripts)
}

/// The stem of the first word that is a file, in the letters of names of workloads.
fn name(text: &str, taken: &[Script]) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let file = words.iter().find(|word| word.contains('.') && !word.starts_with('-')).or(words.last()).unwrap_or(&"script");
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain: String =
        plain.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).trim_end_matches('-').chars().take(30).collect();
    let plain = if is_name(&plain) { plain } else { "script".to_string() };
    let is_free = |name: &String| taken.iter().all(|script| script.name != *name);
    if is_free(&plain) { plain } else { (2..).map(|n| format!("{plain}-{n}")).find(is_free).unwrap_or_default() }
}

/// Variables that collo gives to members and that a command has from its own shell.
const OF_THE_SHELL: [&str; 5] = ["PYTHONPATH", "PYTHONNOUSERSITE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"];

/// A shell script that runs the command as it would run where it was typed: in that folder, with the Python path and the threads that it
/// has there; or, if it is repeated, again and again, with a line of [`RUN_PATTERN`] after each run, until a run fails.
pub fn command_script(folder: &Path, script: &Script, is_repeated: bool) -> Result<String, Diagnostic> {
    let folder = folder.to_str().filter(|folder| !folder.contains(quoting::is_unseen)).ok_or_else(|| {
        let what = format!("the path of this folder, {}, is not UTF-8, or contains control characters", folder.display());
        Diagnostic::new(what).hint("rename the folder, or work in another").of_machine()
    })?;
    let mut text = format!("# The command of `collo try`, where it was typed.\ncd {} || exit\n", shell::quoted(folder));
    for name in OF_THE_SHELL {
        let _ = match std::env::var(name) {
            Ok(value) if !value.contains(quoting::is_unseen) => writeln!(text, "export {name}={}", shell::quoted(value)),
            _ => writeln!(text, "unset {name}"),
        };
    }
    if !is_repeated {
        return Ok(text + &script.text + "\n");
    }
    // In lines of their own, because the command may end with a comment. What it printed last may have no end of line.
    let command = &script.text;
    let _ = write!(
        text,
        "# It shows no progress and ends by itself: each whole run of it is measured.\nrun=0\nwhile :; do\n(\n{command}\n) || exit\n\
         run=$((run + 1))\nprintf '\\ncollo: run %d of the command has ended\\n' \"$run\"\ndone\n"
    );
    Ok(text)
}

/// Write the project: a workload for each command, and the experiment.
pub fn write(
    root: &Path,
    folder: &Path,
    scripts: &[Script],
    looks: &[FirstLook],
    plan: &BudgetPlan,
    on_gpu: bool,
) -> Result<(), Diagnostic> {
    for (script, look) in scripts.iter().zip(looks) {
        let place = root.join("workloads").join(&script.name);
        fs::create_dir_all(&place)?;
        fs::write(place.join(COMMAND), command_script(folder, script, look.is_repeated)?)?;
        fs::write(place.join("workload.toml"), workload(script, look))?;
    }
    let experiments = root.join("experiments");
    fs::create_dir_all(&experiments)?;
    Ok(fs::write(experiments.join(format!("{NAME}.toml")), experiment(scripts, plan, on_gpu))?)
}

fn workload(script: &Script, look: &FirstLook) -> String {
    let (description, epochs) = (toml(&script.text), look.progress.toml());
    format!("description = {description}\ncommand = [\"sh\", \"{COMMAND}\"]\nenvironment = \"system\"\n\n[epochs]\n{epochs}\n")
}

fn experiment(scripts: &[Script], plan: &BudgetPlan, on_gpu: bool) -> String {
    let together: Vec<String> = scripts
        .iter()
        .map(|script| if script.count > 1 { format!("{} × {}", script.count, script.text) } else { script.text.clone() })
        .collect();
    let mut text = format!("description = {}\n", toml(&format!("{}: alone and together", together.join(", "))));
    let _ = writeln!(text, "device = \"{}\"", if on_gpu { "gpu" } else { "cpu" });
    let _ = writeln!(text, "repetitions = {}\nepochs = {}", plan.repetitions, plan.epochs);
    let _ = writeln!(text, "after_measured = \"keep-running\"");
    if let Some(seconds) = plan.measure_for_s {
        let _ = writeln!(text, "measure_for = \"{seconds}s\"");
    }
    let sharing = if on_gpu { "[\"naive\", \"mps\"]" } else { "\"naive\"" };
    if let [one] = scripts {
        let _ = write!(text, "\n[axes]\nworkload = \"{}\"\nsharing = {sharing}\ndegree = {}\n", one.name, one.count);
        return text;
    }
    let member = |script: &Script| format!("{{ workload = \"{}\", count = {} }}", script.name, script.count);
    let members: Vec<String> = scripts.iter().map(member).collect();
    let sharing = if on_gpu { sharing.to_string() } else { format!("[{sharing}]") };
    let _ = write!(text, "\n[[group]]\nmembers = [{}]\nsharing = {sharing}\n", members.join(", "));
    text
}

/// A text of TOML: its basic strings have the escapes of JSON's.
fn toml(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(commands: &[&str], degree: Option<u32>) -> Vec<(String, u32)> {
        let commands: Vec<String> = commands.iter().map(|c| c.to_string()).collect();
        scripts(&commands, degree).expect("right").into_iter().map(|script| (script.name, script.count)).collect()
    }

    #[test]
    fn commands_are_named_after_their_files() {
        assert_eq!(of(&["python a.py", "python dir/b_c.py --lr 0.1"], None), [("a".into(), 1), ("b-c".into(), 1)]);
        assert_eq!(of(&["python a.py --x 1", "python a.py --x 2"], None), [("a".into(), 1), ("a-2".into(), 1)]);
        assert_eq!(of(&["torchrun train"], None), [("train".into(), 2)]);
        assert_eq!(of(&["python a.py", "python a.py", "python b.py"], None), [("a".into(), 2), ("b".into(), 1)]);
        assert_eq!(of(&["python a.py"], Some(4)), [("a".into(), 4)]);
        assert_eq!(of(&["python 3d_unet.py", "python x2.py"], None), [("d-unet".into(), 1), ("script".into(), 1)]);
        assert_eq!(of(&["python esrgan_x4.py", "python 1.py"], None), [("script".into(), 1), ("script-2".into(), 1)]);
    }

    #[test]
    fn what_no_shell_line_can_be_is_refused() {
        for commands in [&[""][..], &["a\nb"], &["a", "b\u{1b}"]] {
            let commands: Vec<String> = commands.iter().map(|c| c.to_string()).collect();
            scripts(&commands, None).expect_err("refused");
        }
        scripts(&["a".into(), "b".into()], Some(2)).expect_err("one command only");
    }
}
