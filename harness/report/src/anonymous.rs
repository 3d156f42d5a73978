//! A report for double-blind review. In: a report, and its document. Out: the same without host and user, without paths and variables that
//! have some, and without the commit of the checkout and the identities of GPUs. Models, drivers and versions stay.

use std::collections::BTreeSet;
use std::path::Path;

use collo_analysis::campaign::Analysis;
use collo_figures::document::Document;
use collo_guidelines::report_json::ReportJson;
use collo_store::{Machine, Surroundings};
use serde_json::Value;

/// What stands in the place of what is left out.
const HIDDEN: &str = "…";
/// Facts of the environment that name a machine or a project.
const NAMING: [&str; 4] = ["host", "git", "cgroup", "UUID"];
/// Folders that every Linux has: a path below them identifies no user, unless it has a hidden word.
const SYSTEM: [&str; 9] = ["/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/sbin/", "/lib/", "/lib64/"];
/// Folders whose children are homes.
const HOMES: [&str; 2] = ["/home/", "/Users/"];
/// Names of hosts and users that identify none, and that other sentences need.
const COMMON: [&str; 5] = ["root", "cpu", "gpu", "localhost", "collo"];

/// Where a report has names.
pub struct Parts<'a> {
    pub analysis: &'a mut Analysis,
    /// The folder of its campaign.
    pub folder: &'a Path,
    /// The file that it was read from, if it was.
    pub read: Option<&'a mut ReportJson>,
}

/// What a report leaves out.
#[derive(Debug, Default)]
pub struct Anonymity {
    /// Paths, the longest first.
    folders: Vec<String>,
    /// Names of hosts and users.
    words: BTreeSet<String>,
}

impl Anonymity {
    /// Leave names out of a report, and remember those that its texts may have.
    pub fn of(parts: Parts<'_>, home: Option<&Path>, user: Option<&str>) -> Anonymity {
        let mut found = Anonymity::default();
        let project = std::path::absolute(parts.folder).ok().and_then(|folder| Some(folder.ancestors().nth(3)?.to_path_buf()));
        let folders = [home.map(Path::to_path_buf), project].into_iter().flatten().map(|path| path.display().to_string());
        found.folders = folders.filter(|path| path.len() > 1).collect();
        found.folders.sort_by_key(|path| std::cmp::Reverse(path.len()));
        found.word(user);
        let campaign = &mut parts.analysis.campaign;
        for machine in campaign.origins.iter_mut().map(|origin| &mut origin.machine).chain([&mut campaign.machine]) {
            found.machine(machine);
        }
        campaign.surroundings.iter_mut().for_each(|surroundings| found.surroundings(surroundings));
        if let Some(from) = &mut parts.analysis.report {
            from.environment.iter().filter(|(name, _)| name == "host").for_each(|(_, host)| found.word(Some(host)));
            from.environment.retain(|(name, _)| !NAMING.contains(&name.as_str()));
        }
        if let Some(read) = parts.read {
            read.environment =
                read.environment.iter().filter(|(name, _)| !NAMING.contains(name)).map(|(n, v)| (n, v.clone())).collect();
            read.surroundings.iter_mut().for_each(|surroundings| found.surroundings(surroundings));
        }
        found
    }

    fn word(&mut self, word: Option<&str>) {
        self.words.extend(word.filter(|word| word.chars().count() > 1 && !COMMON.contains(word)).map(String::from));
    }

    fn machine(&mut self, machine: &mut Machine) {
        if let Some(host) = machine.hostname.take() {
            // `node7.cluster.example.org` is also called `node7`; the last part is a country, or the like.
            let parts: Vec<&str> = host.split('.').collect();
            parts[..parts.len().saturating_sub(1).max(1)].iter().for_each(|part| self.word(Some(part)));
            self.word(Some(&host));
        }
        machine.git = None;
    }

    fn surroundings(&mut self, surroundings: &mut Surroundings) {
        let texts = surroundings.variables.values().chain(&surroundings.command);
        let homes = texts.flat_map(|text| HOMES.iter().flat_map(|home| text.split(home).skip(1)));
        let users: Vec<String> = homes.filter_map(|rest| Some(rest.split(['/', ':']).next()?.to_string())).collect();
        users.iter().for_each(|user| self.word(Some(user)));
        surroundings.variables.retain(|_, value| !value.contains('/'));
        if let Some(scheduling) = &mut surroundings.scheduling {
            scheduling.cgroup = None;
        }
    }

    /// Leave names out of every text of a document.
    pub fn document(&self, document: &mut Document) {
        document.each_text(&|_, text| self.text(text));
    }

    /// Leave names out of every text of a value.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.json(value)),
            Value::Object(fields) => {
                // Packages and settings may be named after a file; the keys of the format stay, whatever a user is called.
                let is_key = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                let named: Vec<(String, Value)> = std::mem::take(fields).into_iter().collect();
                for (mut name, mut value) in named {
                    if !is_key(&name) {
                        self.text(&mut name);
                    }
                    self.json(&mut value);
                    fields.insert(name, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Leave names out of a text.
    pub fn text(&self, text: &mut String) {
        for folder in &self.folders {
            *text = replaced(text, folder);
        }
        *text = without_paths(text, &self.words);
        for word in &self.words {
            *text = replaced(text, word);
        }
    }
}

/// A text in which this word, where it is whole, is hidden.
fn replaced(text: &str, word: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        out.push_str(before);
        out.push_str(if is_whole { HIDDEN } else { word });
        rest = after;
    }
    out + rest
}

/// A text whose absolute paths have only their last part, and GPUs no identity.
fn without_paths(text: &str, words: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let begins = out.chars().next_back().is_none_or(|b| b.is_whitespace() || "'\"`=:([{,;|".contains(b));
        let is_path = begins && (c == '/' || rest.starts_with("~/"));
        let is_gpu = begins && ["GPU-", "MIG-"].iter().any(|kind| rest.starts_with(kind)) && is_uuid(&rest[4..]);
        let ends = |c: char| !(c.is_alphanumeric() || "/._-+%@~".contains(c));
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let is_named = || words.iter().any(|name| word.split('/').any(|part| part == name));
        if is_gpu {
            out.push_str(&word[..4]);
            out.push_str(HIDDEN);
            rest = &rest[word.len()..];
        } else if is_path && word.trim_start_matches('~').len() > 1 && !word.starts_with("//") {
            let is_system = SYSTEM.iter().any(|folder| word.starts_with(folder)) && !is_named();
            let last = word.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            match is_system || word.matches('/').count() < 2 && c == '/' {
                true => out.push_str(word),
                false => out.extend([HIDDEN, "/", last]),
            }
            rest = &rest[word.len()..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Whether a text begins as `d5f82670-2597-` does.
fn is_uuid(text: &str) -> bool {
    let is_hex = |range: std::ops::Range<usize>| text.get(range).is_some_and(|part| part.chars().all(|c| c.is_ascii_hexdigit()));
    is_hex(0..8) && text.get(8..9) == Some("-") && is_hex(9..13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_last_part_and_names_are_hidden() {
        let hidden = Anonymity {
            folders: vec!["/srv/lab 7/project".into()],
            words: ["node7", "alice"].map(String::from).into_iter().collect(),
        };
        let text = |text: &str| {
            let mut text = text.to_string();
            hidden.text(&mut text);
            text
        };
        assert_eq!(text("python /home/alice/x/train.py --data=/mnt/sets/cifar"), "python …/train.py --data=…/cifar");
        assert_eq!(text("in /srv/lab 7/project/runs on node7, by alice"), "in …/runs on …, by …");
        assert_eq!(text("`~/.cache/collo/env`, ~/x:/opt/a/lib"), "`…/env`, …/x:…/lib");
        assert_eq!(text("GPU-d5f82670-2597-5558-9b9e-b9f038548616 with MIG-7 slices"), "GPU-… with MIG-7 slices");
        assert_eq!(text("/usr/lib/alice/x"), "…/x", "unless a system path has a name");
        let mut value = serde_json::json!({"node7": 1, "on node7": {"alice": "alice"}});
        hidden.json(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"node7": 1, "on …": {"alice": "…"}}),
            "a user called `cells` leaves a report readable"
        );
        for other in
            ["gain / cost, 3/4 of 1/7", "/proc/stat and /usr/lib/x", "malice on node70", "https://doi.org/10.1145/1", "<g/></g>"]
        {
            assert_eq!(text(other), other);
        }
    }
}
