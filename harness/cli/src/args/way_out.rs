//! What clap cannot know about a wrong argument: which option or verb of collo does what an option or verb of other tools does.
//!
//! In: the error of clap. Out: a hint, and the error without a suggestion that does not help.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, ValueEnum};
use collo_plan::experiment::Experiment;
use collo_text::nearest;

use super::Arguments;

/// Options that other tools have, and what does the same for an experiment.
const OPTIONS: [(&[&str], &str); 12] = [
    (&["--dry-run", "-n"], "`collo plan NAME` shows what would run, and measures nothing"),
    (&["--resume", "--continue"], "`collo run NAME` finishes an unfinished campaign by itself; `--new` starts another"),
    (
        &["--reps", "--repetitions", "--repeat", "--runs"],
        "`--set repetitions=5` changes the experiment; `collo run NAME --more 3` adds to its newest campaign",
    ),
    (&["--mode", "--sharing"], "`--set sharing=mps` changes the experiment; `--where 'sharing == \"mps\"'` selects its cells"),
    (&["--degree", "--copies"], "`--set degree=4` changes the experiment; `--where 'degree == 4'` selects its cells"),
    (
        &["--batch-size", "--batch_size"],
        "`--set batch_size=32` changes the experiment; `--where 'batch_size == 32'` selects its cells",
    ),
    (
        &["--workload", "--workloads", "--model"],
        "`--set workload=small` changes the experiment; `--where 'workload == \"small\"'` selects its cells",
    ),
    (&["--filter", "--select", "-k"], "`--where 'degree == 2'` selects cells"),
    (&["--wait"], "`--wait 2h` waits for so long at most until no other collo measures on this device"),
    (&["--epochs"], "`--set epochs=5` changes the experiment"),
    (&["--device"], "`--gpu 0` names a GPU; `--set device=cpu` measures on the CPU"),
    (&["--output", "--out", "-o"], "`collo report NAME --to DIR` writes the report elsewhere"),
];

/// Verbs that other tools have.
const VERBS: [(&[&str], &str); 12] = [
    (&["watch", "progress"], "`collo status --watch` shows what is measured now"),
    (&["results", "result"], "`collo show NAME` shows the newest results of an experiment, `collo list` all campaigns"),
    (&["export"], "`collo report NAME --format csv` exports; `collo report --help` lists the formats"),
    (&["open", "view"], "`collo report NAME --open` opens its page"),
    (&["ls"], "`collo list` lists campaigns, `collo list experiments` what can be measured"),
    (&["resume", "continue"], "`collo run NAME` finishes an unfinished campaign by itself"),
    (&["stop", "kill", "cancel"], "Ctrl-C ends `collo run`, and what is stored is safe; `collo status` has its process"),
    (
        &["logs", "log"],
        "`collo show NAME CELL` shows a cell; what its members printed is in `runs/NAME/CAMPAIGN/RUN/member-0.log`",
    ),
    (&["history"], "`collo nightly NAME` compares an experiment with its own history, `collo compare last-1 last` two campaigns"),
    (&["rm", "remove", "delete", "clean", "gc"], "`collo prune` lists what it would delete; `--yes` deletes it"),
    (&["serve"], "`collo status --serve` serves the page of what is measured now; `collo report NAME --open` opens one"),
    (&["bench", "start", "measure"], "`collo run NAME` measures an experiment, `collo try 'python train.py'` a script"),
];

/// An option among the commands of `collo try` is one of theirs.
const UNQUOTED: &str = "quote each command as a whole, with its options: `collo try 'python train.py --lr 0.1'`";

/// Take the suggestion out of an error that has a way out, which is the result.
pub fn add_way_out(wrong: &mut clap::Error) -> Option<String> {
    without_separator(wrong);
    let word = |kind| match wrong.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    let usage = || match wrong.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().split_once("collo ").map(|(_, rest)| rest.to_string()),
        _ => None,
    };
    let hint = match (word(ContextKind::InvalidSubcommand), word(ContextKind::InvalidArg)) {
        (Some(typed), _) => {
            let is_first = usage().is_some_and(|usage| usage.starts_with('['));
            same(&VERBS, &typed).or_else(|| near(&typed)).filter(|_| is_first)
        }
        (None, Some(argument)) => {
            let verb = usage().unwrap_or_default();
            let verb = verb.split_whitespace().next().unwrap_or_default();
            let option = argument.split(['=', ' ']).next().unwrap_or_default();
            // Where a value is missing or wrong clap names no usage, and the option is one of collo's.
            let has_set = option == "--wait" && verb.is_empty()
                || Arguments::command()
                    .find_subcommand(verb)
                    .is_some_and(|verb| verb.get_arguments().any(|argument| argument.get_id() == "set"));
            let of_option = || same(&OPTIONS, option).or_else(|| key(option)).filter(|_| has_set);
            match verb {
                "try" if wrong.kind() == ErrorKind::UnknownArgument && word(ContextKind::SuggestedArg).is_none() => {
                    Some(UNQUOTED.into())
                }
                _ => of_option().or_else(|| of_value(&argument, has_set)).or_else(|| of_number(wrong, option)),
            }
        }
        _ => None,
    }?;
    for kind in [ContextKind::Suggested, ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
        wrong.remove(kind);
    }
    Some(hint)
}

/// Nothing of collo's begins with a hyphen and is no option, so that no `--` before it helps.
fn without_separator(wrong: &mut clap::Error) {
    if let Some(ContextValue::StyledStrs(tips)) = wrong.remove(ContextKind::Suggested) {
        let tips: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect();
        if !tips.is_empty() {
            wrong.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
}

/// An option that has the name of a key of experiments.
fn key(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?.replace('-', "_");
    let key = Experiment::KEYS.keys.iter().find(|key| key.name == name)?;
    Some(format!("`--set {}=…` changes the experiment", key.name))
}

fn same(table: &[(&[&str], &str)], typed: &str) -> Option<String> {
    table.iter().find(|(names, _)| names.contains(&typed)).map(|(_, hint)| hint.to_string())
}

/// The verb that is nearest to a mistyped one, or the list of what a plural means.
fn near(typed: &str) -> Option<String> {
    if let Some(what) =
        super::What::value_variants().iter().filter_map(ValueEnum::to_possible_value).find(|what| what.matches(typed, true))
    {
        return Some(format!("`collo list {}` lists them", what.get_name()));
    }
    let command = Arguments::command();
    let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    nearest(typed, verbs).map(|verb| format!("did you mean `collo {verb}`? all commands: `collo help all`"))
}

/// `degree=2` is meant as a selection, or as a setting.
pub fn of_value(word: &str, has_set: bool) -> Option<String> {
    let (axis, value) =
        word.split_once('=').filter(|(axis, value)| !axis.starts_with('-') && !axis.is_empty() && !value.is_empty())?;
    let quoted =
        if value.parse::<f64>().is_ok() || ["true", "false"].contains(&value) { value.into() } else { format!("\"{value}\"") };
    let set = if has_set { format!(", `--set {axis}={value}` changes the experiment") } else { String::new() };
    Some(format!("`--where '{axis} == {quoted}'` selects these cells{set}"))
}

/// A value that is not the whole number that its option takes.
fn of_number(wrong: &clap::Error, option: &str) -> Option<String> {
    let is_no_number = std::error::Error::source(wrong)?.is::<std::num::ParseIntError>();
    is_no_number.then(|| format!("`{option}` takes a whole number, as in `{option} 3`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error and the hint for a command line.
    fn answer(line: &str) -> (String, Option<String>) {
        let mut command = Arguments::command();
        let mut wrong = command.try_get_matches_from_mut(line.split(' ')).expect_err("wrong").format(&mut command);
        let hint = add_way_out(&mut wrong);
        (wrong.render().to_string(), hint)
    }

    #[test]
    fn options_of_other_tools_are_answered_with_those_of_collo() {
        for (line, part) in [
            ("collo run x --dry-run", "`collo plan NAME`"),
            ("collo run x --resume", "finishes an unfinished campaign by itself"),
            ("collo run x --reps 3", "`--set repetitions=5`"),
            ("collo nightly x --reps=3", "`--set repetitions=5`"),
            ("collo run x --mode mps", "`--set sharing=mps`"),
            ("collo plan x --degree 4", "`--set degree=4`"),
            ("collo plan x degree=4", "`--where 'degree == 4'` selects these cells, `--set degree=4` changes the experiment"),
            ("collo plan x sharing=mps", "sharing == \"mps\""),
            ("collo export x", "`collo report NAME --format csv`"),
            ("collo run x --wait", "`--wait 2h`"),
            ("collo run x --more y", "`--more` takes a whole number, as in `--more 3`"),
            ("collo run x --max-failures=2.5", "`--max-failures` takes a whole number"),
            ("collo watch", "`collo status --watch`"),
            ("collo rn", "did you mean `collo run`?"),
            ("collo experiments", "`collo list experiments` lists them"),
            ("collo resume x", "`collo run NAME`"),
            ("collo logs", "member-0.log"),
            ("collo rm x", "`collo prune`"),
            ("collo run x --seed 3", "`--set seed=…`"),
            ("collo run x --stall-timeout=3m", "`--set stall_timeout=…`"),
            ("collo run x --model small", "`--set workload=small`"),
            ("collo try python train.py --epochs 3", "`collo try 'python train.py --lr 0.1'`"),
        ] {
            let (error, hint) = answer(line);
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(part)), "{line}: {hint:?}\n{error}");
            assert!(!error.contains("tip:"), "{line}: {error}");
        }
    }

    #[test]
    fn where_collo_has_nothing_of_the_kind_the_answer_is_that_of_clap() {
        let (error, hint) = answer("collo run x --onyl failed");
        assert!(hint.is_none() && error.contains("tip:") && error.contains("--only"), "{error}");
        assert_eq!(answer("collo list --reps 3").1, None);
        assert_eq!(answer("collo try x --degree 0").1, None, "it has no `--set`");
        assert_eq!(answer("collo workload logs").1, None);
    }

    #[test]
    fn no_separator_is_advised_that_would_make_an_experiment_of_an_option() {
        for line in ["collo run x --verbose", "collo run x -j", "collo man --to y"] {
            let (error, hint) = answer(line);
            assert!(hint.is_none() && !error.contains("as a value"), "{error}");
        }
    }
}
