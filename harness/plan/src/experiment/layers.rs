//! The texts that an experiment is made of: its own file, those that it includes, `--set`, and the machine's `collo.toml`.
//!
//! In: their contents. Out: one table of fields, each of which points into the text that gave it. What is set wins, then the own
//! file, then what it includes (the last first), then the machine. It knows no meaning of a key.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, Source, fields, nearest, quoted, shown};

use super::Experiment;
use super::keys::AXES;
use crate::host::{self, HostFile};
use crate::project::Project;
use collo_text::fields::Fields;

/// Maximum depth of files that include each other.
const DEEPEST: usize = 20;
/// What names an experiment is its own, and is not included.
const OWN: &[&str] = &["schema", "name", "include"];

/// What is given apart from the experiment's file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `KEY=VALUE`, as typed after `--set`.
    pub set: Vec<String>,
    pub host: HostFile,
}

impl Overrides {
    /// Those of a project's machine, and of the command line.
    pub fn of(project: &Project, set: &[String]) -> Result<Overrides, Diagnostics> {
        Ok(Overrides { set: set.to_vec(), host: HostFile::of(project)? })
    }
}

/// The texts of one experiment.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    own: Arc<Source>,
    /// The first wins.
    included: Vec<Included>,
    set: Vec<Override>,
    host: HostFile,
}

#[derive(Debug, Clone)]
struct Included {
    /// Relative to the experiment's file, so that it is the same in every folder.
    name: String,
    source: Arc<Source>,
}

/// One `--set`.
#[derive(Debug, Clone)]
struct Override {
    key: String,
    source: Arc<Source>,
}

impl Layers {
    /// The texts of the experiment in this file.
    pub fn of(path: &Path, own: &Arc<Source>, overrides: &Overrides) -> Result<Layers, Diagnostics> {
        let mut layers = Layers { own: own.clone(), included: Vec::new(), set: Vec::new(), host: overrides.host.clone() };
        let mut mistakes = Diagnostics::default();
        layers.include(own, path, &mut vec![whole(path)], &mut mistakes);
        for text in &overrides.set {
            match Override::parse(text, &layers.set) {
                Ok(set) => layers.set.push(set),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        mistakes.into_result(layers)
    }

    fn include(&mut self, of: &Arc<Source>, path: &Path, within: &mut Vec<PathBuf>, mistakes: &mut Diagnostics) {
        let (fields, _) = fields::read(of, Experiment::KEYS);
        let folder = path.parent().unwrap_or(Path::new(""));
        for found in fields.list("include").unwrap_or_default().iter().rev() {
            let Some(written) = found.text() else { continue };
            let file = folder.join(written);
            let mut wrong = |mistake: Diagnostic| mistakes.push(mistake.at(of, found.span.clone()));
            if Path::new(written).is_absolute() {
                wrong(
                    Diagnostic::new(format!("{} is an absolute path", quoted(written)))
                        .note("relative to this file, as in `common.toml`"),
                );
                continue;
            }
            let identity = whole(&file);
            if within.contains(&identity) || within.len() > DEEPEST {
                wrong(Diagnostic::new(format!("{} includes itself", quoted(written))).note("leave it out"));
                continue;
            }
            let text = match collo_text::read_small_text(&file, fields::LARGEST) {
                Ok(text) => text,
                Err(e) => {
                    wrong(Diagnostic::new(format!("included file {} cannot be read", quoted(written))).caused_by(e.to_string()));
                    continue;
                }
            };
            let name = plain(&relative(&file, &within[0]));
            if self.included.iter().any(|included| included.name == name) {
                continue;
            }
            let source = Source::file(shown(&file), text);
            self.included.push(Included { name, source: source.clone() });
            within.push(identity);
            self.include(&source, &file, within, mistakes);
            within.pop();
        }
    }

    /// Its own file, word for word.
    pub fn own(&self) -> &str {
        self.own.text()
    }

    /// All texts of the campaign's identity by name, and how each is shown.
    pub fn ingredients(&self) -> Vec<(String, &str, Option<String>)> {
        let mut all = vec![("experiment".to_string(), self.own(), None)];
        all.extend(self.included.iter().map(|i| (format!("{INCLUDE}{}", i.name), i.source.text(), None)));
        all.extend(self.set.iter().map(|set| {
            let text = set.source.text();
            (format!("{SET} {}", set.key), text, Some(format!("`{text}`")))
        }));
        all.extend(self.of_host().map(|text| (host::NAME.to_string(), text, Some(format!("`{text}`")))));
        all
    }

    /// What the machine's file gives, if nothing above it does.
    fn of_host(&self) -> Option<&str> {
        let source = self.host.source()?;
        let start = 1 + self.included.len() + self.set.len();
        let (joined, fields, _) = self.read();
        let from = joined.parts().get(start)?.0;
        let lines = host::OF_EXPERIMENTS.iter().filter_map(|key| Some((fields.key_span(key)?, fields.found(key)?)));
        let mut of_host = lines.filter(|(span, _)| span.start >= from);
        let (span, found) = of_host.next()?;
        source.text().get(span.start - from..found.span.end - from)
    }

    /// All of it as one text, for people.
    pub fn text(&self) -> String {
        let included = self.included.iter().map(|i| included_head(&i.name) + i.source.text());
        let set = self.set.iter().map(|set| format!("\n# {SET} '{}'\n", set.source.text()));
        let host = self.of_host().map(|text| format!("\n# {}\n{text}\n", host::NAME));
        self.own().to_string() + &included.chain(set).chain(host).collect::<String>()
    }

    /// What was set, as it may be typed again.
    pub fn set(&self) -> Vec<String> {
        self.set.iter().map(|set| set.source.text().to_string()).collect()
    }

    pub fn host(&self) -> &HostFile {
        &self.host
    }

    /// One source of all texts, and the fields that hold.
    pub fn read(&self) -> (Arc<Source>, Fields, Diagnostics) {
        let mut texts = vec![self.own.clone()];
        texts.extend(self.included.iter().map(|i| i.source.clone()));
        texts.extend(self.set.iter().map(|set| set.source.clone()));
        texts.extend(self.host.source().cloned());
        let joined = Source::joined(&texts);
        let (mut all, mut mistakes) = (Fields::default(), Diagnostics::default());
        let sets = 1 + self.included.len()..1 + self.included.len() + self.set.len();
        let order = sets.clone().chain(0..sets.start).chain(sets.end..texts.len());
        for index in order {
            let (start, part) = &joined.parts()[index];
            // What is wrong in the machine's file was reported when it was read.
            if index == sets.end {
                all.complete_from(fields::read_part(part, *start, HostFile::KEYS).0.only(host::OF_EXPERIMENTS));
                continue;
            }
            let (fields, wrong) = fields::read_part(part, *start, Experiment::KEYS);
            mistakes.extend(wrong);
            all.complete_from(if index == 0 { fields } else { fields.without(OWN) });
        }
        (joined, all, mistakes)
    }
}

/// Of such a text as [`Layers::text`] the experiment's own file.
pub fn own_part(text: &str) -> &str {
    &text[..ends(text)[0]]
}

/// Of such a text the file that was included under a name, or the experiment's own: that of which `is_it` holds, since a file may
/// itself contain what stands between two files.
pub fn part<'a>(text: &'a str, included: Option<&str>, is_it: impl Fn(&str) -> bool) -> Option<&'a str> {
    let starts: Vec<usize> = match included {
        None => vec![0],
        Some(name) => {
            let head = included_head(name);
            text.match_indices(&head).map(|(at, _)| at + head.len()).collect()
        }
    };
    let ends = ends(text);
    let candidates = starts.iter().flat_map(|from| ends.iter().filter(move |to| *to >= from).map(move |to| &text[*from..*to]));
    candidates.into_iter().find(|part| is_it(part))
}

/// Where a part of such a text may end: never empty.
fn ends(text: &str) -> Vec<usize> {
    let host = format!("\n# {}\n", host::NAME);
    let heads = ["\n# included: ", "\n# --set '", host.as_str()];
    let mut ends: Vec<usize> = heads.iter().flat_map(|head| text.match_indices(head)).map(|(at, _)| at).collect();
    ends.push(text.len());
    ends.sort_unstable();
    ends
}

fn included_head(name: &str) -> String {
    format!("\n# included: {name}\n")
}

/// What stands before the name of an included file among the ingredients of a campaign.
pub const INCLUDE: &str = "include ";
/// The option of the command line.
pub const SET: &str = "--set";

impl Override {
    fn parse(typed: &str, before: &[Override]) -> Result<Override, Diagnostic> {
        let typed = typed.trim();
        let source = Source::argument(SET, typed);
        let Some((key, value)) = typed.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
            let what = format!("`{SET}` {} is not a key and its value", quoted(typed));
            return Err(Diagnostic::new(what).hint(format!("as in `{SET} repetitions=5`; all keys: `collo schema experiment`")));
        };
        if typed.contains(['\n', '\r']) {
            return Err(Diagnostic::new(format!("`{SET}` takes one key")).hint(format!("write `{SET}` once for each")));
        }
        let key: Vec<&str> = key.split('.').map(str::trim).collect();
        let at = 0..typed.split_once('=').map_or(0, |(key, _)| key.trim_end().len());
        if let [only] = key[..]
            && OWN.contains(&only)
        {
            return Err(Diagnostic::new(format!("`{only}` cannot be set")).at(&source, at).note("it is the file's own"));
        }
        // What is varied has a table of its own: `--set degree=4` means its `degree`, and `--set width=96` a setting of workloads.
        let has = |shape: &[fields::Key], name: &str| shape.iter().any(|key| key.name == name);
        let is_mistyped = |name: &str| nearest(name, Experiment::KEYS.keys.iter().map(|key| key.name)).is_some();
        let key = match key[..] {
            [only] if !has(Experiment::KEYS.keys, only) && (has(AXES.keys, only) || !is_mistyped(only)) => format!("axes.{only}"),
            _ => key.join("."),
        };
        // Several numbers as other tools take them: `--set degree=1,2`.
        let mut parts = value.split(',').map(|part| part.trim().parse::<f64>());
        let several = key.starts_with("axes.") && value.contains(',') && parts.all(|part| part.is_ok());
        let value = if several { format!("[{value}]") } else { value.trim().to_string() };
        let within = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'));
        if let Some(other) = before.iter().find(|other| within(&key, &other.key) || within(&other.key, &key)) {
            let what = if other.key == key { format!("`{key}` is set twice") } else { format!("`{}` is set, too", other.key) };
            return Err(Diagnostic::new(what).at(&source, at).note("leave one out"));
        }
        let text = format!("{key}={value}");
        let is_toml = |text: &str| toml::from_str::<toml::Table>(text).is_ok();
        // A shell takes the quotes away: `--set thresholds.relevant="3%"` arrives without them.
        let quoted = format!("{key}=\"{value}\"");
        let bare = !value.contains(['"', '\'', '\\', '[', '{']);
        let text = if !is_toml(&text) && bare && is_toml(&quoted) { quoted } else { text };
        Ok(Override { key, source: Source::argument(SET, &text) })
    }
}

/// The path that a file has however it is written.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// A file as seen from the folder of the experiment, whose path is whole.
fn relative(file: &Path, experiment: &Path) -> PathBuf {
    let (file, folder) = (whole(file), experiment.parent().unwrap_or(Path::new("")));
    let same = file.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(same).map(|_| Component::ParentDir);
    up.chain(file.components().skip(same)).collect()
}

fn plain(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The files that this one includes, wherever they are.
pub fn includes_of(file: &Path, source: &Arc<Source>) -> Vec<PathBuf> {
    let (fields, _) = fields::read(source, Experiment::KEYS);
    let folder = file.parent().unwrap_or(Path::new(""));
    fields.get::<Vec<String>>("include").iter().map(|written| whole(&folder.join(written))).collect()
}
