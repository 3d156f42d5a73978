//! Reading an `observers/NAME.toml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use collo_store::{COLLO_SAMPLES, MONITOR, NOBODY_WATCHES, PROFILER};
use collo_text::{Diagnostic, Diagnostics, Source, fields, on_path, quoted};

use super::tool::{COMMAND, PLACEHOLDERS};
use super::{Observer, Place};
use collo_text::fields::Fields;

/// The word of `needs` that is no program.
const GPU: &str = "gpu";

const NAME_RULE: &str =
    "a name is a letter, then letters, digits and `-`, at most 40; `none` and `collo` are taken, and `b32` is a batch size";

/// A letter, then letters, digits and `-`; what a label could take for something else is no name.
pub fn is_name(name: &str) -> bool {
    let is_batch = name.strip_prefix('b').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()));
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.len() <= 40
        && !is_batch
        && ![NOBODY_WATCHES, COLLO_SAMPLES].contains(&name)
}

pub fn read(name: &str, path: &Path) -> Result<Observer, Diagnostics> {
    let text = collo_text::read_small_text(path, fields::LARGEST)
        .map_err(|e| Diagnostic::new(format!("observer `{name}` cannot be read")).caused_by(e.to_string()))?;
    parse(name, path, &Source::file(collo_text::shown(path), text))
}

pub(super) fn parse(name: &str, path: &Path, source: &Arc<Source>) -> Result<Observer, Diagnostics> {
    let (fields, mut mistakes) = fields::read(source, Observer::KEYS);
    if !is_name(name) {
        mistakes.push(Diagnostic::new(format!("invalid observer name {}", quoted(name))).hint(NAME_RULE));
    }
    let needs: Vec<String> = fields.get("needs");
    let mut observer = Observer {
        name: name.to_string(),
        file: path.to_path_buf(),
        needs_gpu: needs.iter().any(|need| need == GPU),
        programs: needs.into_iter().filter(|need| need != GPU).collect(),
        packages: packages(path, source, &fields, &mut mistakes),
        ..Observer::from_fields(&fields)
    };
    observer.lacks = observer.programs.iter().find(|program| on_path(program).is_none()).cloned();
    if observer.kind.is_empty() {
        observer.kind = if observer.place == Place::Beside { MONITOR } else { PROFILER }.to_string();
    }
    check(&observer, source, &fields, &mut mistakes);
    mistakes.into_result(observer)
}

fn packages(path: &Path, source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) -> Option<PathBuf> {
    let found = fields.found("packages")?;
    let file = collo_text::written(path.parent().unwrap_or(Path::new("")), found.text()?);
    if !file.is_file() {
        let what = Diagnostic::new(format!("`packages` names {}, which is not there", quoted(&collo_text::shown(&file))));
        mistakes.push(what.at(source, found.span.clone()).note("a requirements file with hashes, relative to this one"));
    }
    Some(file)
}

/// What must be there in each place, and that every placeholder means something.
fn check(observer: &Observer, source: &Arc<Source>, fields: &Fields, mistakes: &mut Diagnostics) {
    if mistakes.iter().next().is_some() {
        return;
    }
    let name = source.name();
    let wrong = match observer.place {
        Place::Inside if observer.variables.is_empty() => {
            Some(format!("`runs = \"inside\"` without `[variables]` in {name}: no script would know of it"))
        }
        Place::Inside if !observer.command.is_empty() => {
            Some(format!("`runs = \"inside\"` and a `command` in {name}: leave one out"))
        }
        Place::Beside | Place::Around if observer.command.first().is_none_or(String::is_empty) => {
            Some(format!("`command` is missing in {name}"))
        }
        Place::Around if !observer.command.iter().any(|word| word == COMMAND) => {
            Some(format!("`{COMMAND}` is no word of the command in {name}, so no member would start"))
        }
        Place::Beside if observer.command.iter().any(|word| word == COMMAND) => {
            Some(format!("`{COMMAND}` is for `runs = \"around\"`, in {name}"))
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        mistakes.push(Diagnostic::new(wrong).hint("all keys: `collo schema observer`"));
    }
    let texts = fields.list("command").unwrap_or_default().iter();
    if let Some((place, path)) = path_in_script(&observer.command) {
        let what =
            Diagnostic::new(format!("`{path}` inside a script: what a path has in it would be executed, and a space ends it"));
        let what = texts.clone().nth(place).map_or(what.clone(), |found| what.at(source, found.span.clone()));
        mistakes.push(what.hint(format!("a word of its own behind the script, which has it as `\"$1\"`: `\"sh\", \"-c\", \"… \\\"$1\\\"\", \"sh\", \"{path}\"`")));
    }
    let of_variables = fields.table("variables").map(Fields::in_order).unwrap_or_default();
    for found in texts.chain(of_variables.into_iter().map(|(_, _, found)| found)) {
        let Some(unknown) = found.text().and_then(unknown_placeholder) else { continue };
        let what = Diagnostic::new(format!("`{{{unknown}}}` stands for nothing")).at(source, found.span.clone());
        mistakes.push(what.note(match collo_text::nearest(unknown, PLACEHOLDERS.iter().copied()) {
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => format!("one of {}", fields::listed(PLACEHOLDERS)),
        }));
    }
    let pid =
        observer.place != Place::Beside && ["{pid}", "{pids}"].iter().any(|p| observer.command.iter().any(|w| w.contains(p)));
    if pid {
        mistakes
            .push(Diagnostic::new(format!("`{{pid}}` in {name} is for `runs = \"beside\"`: around a member it has none yet")));
    }
    if observer.packages.is_some()
        && !observer.command.iter().chain(observer.variables.values()).any(|w| w.contains("{packages}"))
    {
        mistakes.push(Diagnostic::new(format!("`packages` in {name} without `{{packages}}` would have no effect")));
    }
}

/// The placeholders of paths, which may have any character in them.
const PATHS: [&str; 2] = ["{folder}", "{packages}"];
/// Programs that execute the word behind `-c`: POSIX.1, `sh`; python(1).
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "python"];

/// The placeholder of a path inside a script, which would execute a part of that path; with its place in the command.
fn path_in_script(command: &[String]) -> Option<(usize, &'static str)> {
    let is_shell = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or(word);
        SHELLS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
    };
    let is_flag = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let begin = command.iter().position(is_shell)?;
    let script = begin + command[begin..].iter().position(is_flag)? + 1;
    let path = PATHS.into_iter().find(|path| command.get(script).is_some_and(|word| word.contains(path)))?;
    Some((script, path))
}

/// The first name in braces that is no placeholder; anything else in braces is the observer's own affair.
fn unknown_placeholder(word: &str) -> Option<&str> {
    let mut rest = word;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, left) = after.split_once('}')?;
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if plain && !PLACEHOLDERS.contains(&name) {
            return Some(name);
        }
        rest = left;
    }
    None
}
