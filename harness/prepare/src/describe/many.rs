//! Many descriptions at once: Python and torch are started once for all of them, by `collo_describers.py`, which answers each question
//! in a fork. In: questions. Out: an answer each; what that process does not answer is asked alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use collo_predict::Description;
use collo_text::{Diagnostic, ExitClass};
use serde::Deserialize;
use serde_json::json;

use super::{Describable, Describer, LIMIT, Question, keep};
use crate::data::with_words_of;
use collo_launch::{Errand, Unanswered};

/// Of one process: a line of its answer has 40 bytes, and the last MiB of them is kept.
const MOST: usize = 10_000;
/// A process with torch, however many questions there are.
const START: Duration = Duration::from_secs(60);

/// A description, or why there is none.
type Answer = Result<Description, Diagnostic>;

/// The end of a fork.
#[derive(Debug, Deserialize)]
struct Told {
    question: usize,
    /// None: it took too long.
    status: Option<i32>,
}

/// How many of the descriptions that are not in the cache there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    pub done: usize,
    pub of: usize,
}

/// How often answers are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// A question that is not in the cache.
struct Open {
    /// Its place among all.
    at: usize,
    question: Question,
    kept: PathBuf,
}

impl Describer<'_> {
    /// The descriptions of all of them, in their order; of what cannot be described the reason. An error: collo was asked to end. `tell`
    /// hears how many are not in the cache, before they are asked for, and then how many of them are there.
    pub fn all(&self, subjects: &[Describable<'_>], tell: &mut dyn FnMut(Traced)) -> Result<Vec<Answer>, Diagnostic> {
        let mut answers: Vec<Option<Answer>> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        for (at, subject) in subjects.iter().enumerate() {
            let question = match subject {
                Describable::Member(member) => self.of_member(member),
                Describable::Model(model) => self.of_model(model),
            };
            let asked = question.and_then(|question| Ok((self.kept_at(&question)?, question)));
            answers.push(match asked {
                Err(why) => Some(Err(why)),
                Ok((kept, question)) => match self.kept(&question, &kept) {
                    Some(description) => Some(Ok(description)),
                    None => {
                        open.push(Open { at, question, kept });
                        None
                    }
                },
            });
        }
        let of = open.len();
        if of > 0 {
            tell(Traced { done: 0, of });
        }
        let mut asked = 0;
        let mut groups: BTreeMap<_, Vec<&Open>> = BTreeMap::new();
        for one in &open {
            groups.entry(one.question.process()).or_default().push(one);
        }
        for group in groups.values().flat_map(|group| group.chunks(MOST)).filter(|group| group.len() > 1) {
            // Seconds pass before the first is done, which is counted every second.
            let mut count = |done: usize| match asked + done {
                0 => {}
                done => tell(Traced { done, of }),
            };
            together(group, &mut answers, &mut count)?;
            asked += group.len();
        }
        for one in open {
            if answers[one.at].is_none() {
                answers[one.at] = Some(unless_stopped(self.ask(&one.question))?);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }
}

/// Takes an answer that never came, as collo was asked to end, from one that says what is wrong.
fn unless_stopped(answer: Answer) -> Result<Answer, Diagnostic> {
    match answer {
        Err(why) if !matches!(why.class(), ExitClass::Usage | ExitClass::Machine) => Err(why),
        answer => Ok(answer),
    }
}

impl Question {
    /// What must be equal for two questions to be answered by one process.
    fn process(&self) -> (PathBuf, Vec<(String, Option<String>)>) {
        let of_python = self.env.iter().filter(|(name, _)| name.starts_with("PYTHON"));
        (self.program.clone(), of_python.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Whether its program is a Python, to whom these words are a script or a module.
    fn is_of_python(&self) -> bool {
        self.program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"))
            && self.arguments.first().is_some_and(|word| word == "-m" || word.ends_with(".py"))
    }
}

/// Asks one process. What it does not answer stays open; an error: collo was asked to end.
fn together(group: &[&Open], answers: &mut [Option<Answer>], tell: &mut dyn FnMut(usize)) -> Result<(), Diagnostic> {
    let group: Vec<&Open> = group.iter().copied().filter(|one| one.question.is_of_python()).collect();
    let (Some(first), Ok(scratch)) = (group.first(), tempfile::tempdir()) else { return Ok(()) };
    let answer_to = |number: usize| scratch.path().join(format!("{number}.json"));
    let words_of = |number: usize| scratch.path().join(format!("{number}.txt"));
    let questions = group.iter().enumerate().map(|(number, one)| {
        let (words, environment) = one.question.words_and_environment(&answer_to(number));
        json!({"words": words, "folder": one.question.folder, "environment": environment, "errors_to": words_of(number),
            "limit_s": LIMIT.as_secs()})
    });
    let file = scratch.path().join("questions.json");
    let text = json!(questions.collect::<Vec<_>>()).to_string();
    if fs_err::write(&file, text).is_err() {
        return Ok(());
    }
    let mut counted = Instant::now();
    let ran = ask(&first.question, &file, group.len(), &mut || {
        if counted.elapsed() >= COUNT_EVERY {
            counted = Instant::now();
            tell((0..group.len()).filter(|number| answer_to(*number).is_file()).count());
        }
    });
    for Told { question: number, status } in ran.as_deref().unwrap_or_default() {
        let Some(one) = group.get(*number) else { continue };
        answers[one.at] = Some(match status {
            Some(0) => keep(&one.question, &answer_to(*number), &one.kept),
            Some(_) => {
                let words = collo_text::read_end(&words_of(*number), 1 << 20).unwrap_or_default();
                Err(with_words_of(&String::from_utf8_lossy(&words), one.question.unanswered()))
            }
            None => Err(one.question.too_late()),
        });
    }
    let Err(why) = ran else { return Ok(()) };
    // What was finished before it was ended is not asked again.
    for (number, one) in group.iter().enumerate().filter(|(number, _)| answer_to(*number).is_file()) {
        answers[one.at] = Some(keep(&one.question, &answer_to(number), &one.kept));
    }
    match why {
        Unanswered::Stopped(stopped) => Err(super::stopped_at(&first.question, stopped)),
        _ => Ok(()),
    }
}

/// What the process told, of as many questions as it answered.
fn ask(like: &Question, file: &Path, questions: usize, look: &mut dyn FnMut()) -> Result<Vec<Told>, Unanswered> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = START + LIMIT * u32::try_from(questions.div_ceil(at_once)).unwrap_or(u32::MAX);
    let (_, env) = like.words_and_environment(file);
    let mut errand = Errand::to(&like.program, limit).args(["-m", "collo_describers"]).arg(file).folder(&like.folder);
    for (name, value) in env {
        errand = errand.env(name, value);
    }
    let answer = errand.watched(look)?;
    Ok(answer.out().lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::Signal;

    use super::*;
    use collo_launch::interrupted::Stopped;

    #[test]
    fn who_stops_collo_is_no_reason_why_something_cannot_be_described() {
        let why = || Diagnostic::new("`net` cannot be described");
        let ends = |why: Diagnostic| unless_stopped(Err(why)).is_err();
        assert_eq!([ends(why()), ends(why().of_machine())], [false; 2]);
        assert_eq!([Signal::SIGINT, Signal::SIGTERM].map(|signal| ends(why().of(Stopped(signal).class()))), [true; 2]);
    }
}
