//! Submitting the two scripts, and the numbers of their jobs.

use std::path::Path;
use std::time::Duration;

use collo_launch::{Errand, Unanswered, mark};
use collo_text::quoting::literal;
use collo_text::{Diagnostic, Diagnostics};

use crate::shell::quoted;

/// A controller under load may take long to accept a job.
const SUBMIT_LIMIT: Duration = Duration::from_secs(120);

/// The jobs that were submitted.
pub struct Jobs {
    pub array: String,
    pub merge: String,
    /// The cluster of the first, if it is another than this machine's.
    cluster: Option<String>,
}

impl Jobs {
    /// The command that shows them.
    pub fn watch(&self) -> String {
        let cluster = self.cluster.as_ref().map(|name| format!(" -M {}", quoted(name))).unwrap_or_default();
        format!("squeue{cluster} -j {},{}", self.array, self.merge)
    }
}

/// Submit the array, and what depends on it. `afterany`: a task ends with 1 if a run failed, which is a result; whether the shards
/// are complete is checked by the merge.
pub fn submit(array: &Path, after: &Path) -> Result<Jobs, Diagnostics> {
    let (first, cluster) = sbatch(&[], array).map_err(|e| match e {
        Submission::Refused(why) => why,
        Submission::Unclear(why) => unclear(array, &why)
            .hint(format!("`squeue --me` lists it: then only `sbatch --dependency=afterany:ID {}` is missing", quoted(after))),
    })?;
    let dependent = format!("--dependency=afterany:{first}");
    let (second, _) = sbatch(std::slice::from_ref(&dependent), after).map_err(|e| match e {
        Submission::Refused(why) => why.resume(format!("sbatch {dependent} {}", quoted(after))),
        Submission::Unclear(why) => unclear(after, &why)
            .hint(format!("`squeue --me` lists it behind job {first}; if not: `sbatch {dependent} {}`", quoted(after))),
    })?;
    Ok(Jobs { array: first, merge: second, cluster })
}

/// Why there is no job, or none that is known.
enum Submission {
    Refused(Diagnostic),
    Unclear(String),
}

fn unclear(script: &Path, why: &str) -> Diagnostic {
    let name = script.file_name().unwrap_or_default().display().to_string();
    Diagnostic::new(format!("the job of {name} may have been submitted")).of_machine().caused_by(why)
}

/// The number of the job, and its cluster.
fn sbatch(options: &[String], script: &Path) -> Result<(String, Option<String>), Submission> {
    let refused = |why: String| Diagnostic::new("sbatch does not accept the job").of_machine().caused_by(why);
    // Jobs have the environment of their submission (sbatch(1), `--export`). By the mark the next collo on their node would take
    // them for processes that outlived this one, and kill them.
    let unmarked = Errand::to("env", SUBMIT_LIMIT).args(["-u", mark::NAME, "sbatch"]);
    let answer = unmarked.arg("--parsable").args(options).arg(script).run();
    let answer = match answer {
        Ok(answer) if answer.code == Some(127) => Err(Unanswered::NotStarted(answer.err().trim().to_string())),
        other => other,
    };
    let answer = answer.map_err(|e| match e {
        Unanswered::NotStarted(why) => Submission::Refused(
            Diagnostic::new("`sbatch` cannot be started: this machine submits no Slurm jobs")
                .of_machine()
                .caused_by(why)
                .hint("without `--submit` the scripts are written, to be submitted where Slurm is"),
        ),
        // It had begun, and a controller may have what it sent.
        other => Submission::Unclear(other.to_string()),
    })?;
    if !answer.success() {
        let why = refused(answer.err().trim().to_string());
        return Err(Submission::Refused(why.hint("`sinfo` lists the partitions; the scripts are written")));
    }
    let text = answer.out();
    job(&text).ok_or_else(|| Submission::Unclear(format!("no line of its answer is a job's number: {}", literal(text.trim()))))
}

/// The number and the cluster in an answer to `--parsable`: `N`, or `N;CLUSTER` with `--clusters` (`main` in Slurm's src/sbatch/sbatch.c). Sites wrap
/// sbatch, and print greetings and checks around it; the last such line counts.
fn job(answer: &str) -> Option<(String, Option<String>)> {
    answer.lines().rev().find_map(|line| {
        let (number, cluster) = match line.trim().split_once(';') {
            Some((number, cluster)) => (number, Some(cluster.trim())),
            None => (line.trim(), None),
        };
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        let is_name = cluster.is_none_or(|name| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == ';'));
        (is_number && is_name).then(|| (number.to_string(), cluster.map(str::to_string)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_job_is_found_among_what_a_site_prints() {
        let found = |text: &str| job(text).map(|(number, cluster)| (number, cluster.unwrap_or_default()));
        assert_eq!(found("8\n"), Some(("8".into(), String::new())));
        assert_eq!(found("8;fine\n"), Some(("8".into(), "fine".into())));
        let greeting = "-----\n  Welcome; 2 nodes\n-----\n--> Verifying host (login1)...OK\n--> 12 of 500 jobs\n";
        assert_eq!(found(&format!("{greeting}4711;fine\n")), Some(("4711".into(), "fine".into())));
        assert_eq!(found(&format!("{greeting}\r\n4711\r\nGood luck!\n\n")), Some(("4711".into(), String::new())));
        for none in ["", greeting, "Submitted batch job 8\n", "8 9\n", ";fine\n", "8;\n", "8;a b\n"] {
            assert_eq!(found(none), None, "{none}");
        }
    }
}
