//! From the text of an experiment to its checked values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use collo_store::text::quoted;
use collo_store::{Diagnostic, Diagnostics, Source, Thresholds};
use serde_json::Value as Json;

use super::{Axes, DeviceChoice, Experiment, FailureRule, MixedGroup, SCHEMA, SamplingRates, Sharing, keys, name};
use crate::cell::{AfterMeasured, MOST_MEMBERS, Member};
use crate::device::{Cores, core_list};
use crate::fields::{self, Fields, Located, Value};
use crate::project::Project;
use crate::sampler::SourceChoice;
use crate::select::Expression;
use crate::sharing::{self, Each, Limits, Naive};
use crate::shown::shown;
use crate::workload::{Workload, Workloads};

impl Experiment {
    /// The experiment that a person names: `NAME` or a path.
    pub fn resolve(project: &Project, typed: &str, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        Experiment::read(&super::locate(project, typed)?, workloads)
    }

    /// Read a file; all its mistakes are reported together.
    pub fn read(path: &Path, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        let name = shown(path);
        let unreadable = |cause: String| Diagnostic::new(format!("experiment {} cannot be read", quoted(&name))).caused_by(cause);
        let text = collo_store::read_small_text(path, fields::LARGEST).map_err(|e| unreadable(e.to_string()))?;
        Experiment::parse(path, &Source::file(name, text), workloads)
    }

    /// Parse an experiment, as if it were in this file.
    pub fn parse(path: &Path, source: &Arc<Source>, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        let (fields, mistakes) = fields::read(source, &keys::EXPERIMENT);
        if fields.in_order().is_empty() && !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut reader = ExperimentReader { source, workloads, mistakes, wrong_workloads: BTreeSet::new() };
        let experiment = reader.experiment(path, &fields);
        reader.mistakes.into_result(experiment)
    }
}

struct ExperimentReader<'a> {
    source: &'a Arc<Source>,
    workloads: &'a Workloads,
    mistakes: Diagnostics,
    /// Reported once each: a broken workload is named in several places.
    wrong_workloads: BTreeSet<String>,
}

impl ExperimentReader<'_> {
    fn wrong(&mut self, span: &Range<usize>, mistake: Diagnostic) {
        self.mistakes.push(mistake.at(self.source, span.clone()));
    }

    fn experiment(&mut self, path: &Path, fields: &Fields) -> Experiment {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut warnings = Vec::new();
        if let Some(found) = fields.found("schema")
            && let Some(newer) = fields.whole("schema").filter(|n| *n > SCHEMA)
        {
            self.wrong(
                &found.span,
                Diagnostic::new(format!("schema {newer} is newer than this collo, which reads up to {SCHEMA}"))
                    .note("update collo"),
            );
        }
        let name = fields.text("name").unwrap_or(&stem).to_string();
        self.check_name(&name, fields);
        if name != stem {
            warnings.push(format!("`{name}` is in {}: rename one, so that `collo run {name}` finds it", self.source.name()));
        }
        let axes = fields.table("axes").map(|table| self.axes(table)).unwrap_or_default();
        let naive = vec![Sharing { mode: Arc::new(Naive), solo: false }];
        let groups: Vec<MixedGroup> = fields
            .tables("group")
            .map(|table| self.group(table, if axes.sharing.is_empty() { &naive } else { &axes.sharing }))
            .collect();
        let axes = self.complete(axes, fields, naive);
        let exclude = self.exclude(fields, &axes, &groups);
        for key in ["timeout", "set_up_timeout", "stall_timeout"] {
            self.leaves_time(fields, key);
        }
        let duration = |key: &str, seconds: u64| fields.duration(key).unwrap_or(Duration::from_secs(seconds));
        Experiment {
            path: path.to_path_buf(),
            source: self.source.text().to_string(),
            name,
            description: fields.text("description").map(str::to_string),
            tags: fields.texts("tags").unwrap_or_default(),
            device: match fields.text("device") {
                Some("cpu") => DeviceChoice::Cpu,
                Some("gpu") => DeviceChoice::Gpu,
                _ => DeviceChoice::Auto,
            },
            repetitions: fields.whole_u32("repetitions").unwrap_or(3),
            epochs: fields.whole_u32("epochs").unwrap_or(2),
            seed: fields.whole("seed").unwrap_or(42),
            after_measured: fields.text("after_measured").and_then(AfterMeasured::parse),
            timeout: duration("timeout", 30 * 60),
            set_up_timeout: duration("set_up_timeout", 5 * 60),
            set_up_turn: if fields.found("set_up_timeout").is_some() { Duration::ZERO } else { SET_UP_TURN },
            stall_timeout: duration("stall_timeout", 10 * 60),
            cooldown: duration("cooldown", 1),
            member_failure: if fields.text("member_failure") == Some("keep-survivors") {
                FailureRule::KeepSurvivors
            } else {
                FailureRule::EndGroup
            },
            threads: fields.whole_u32("threads").unwrap_or(1),
            cores: self.cores(fields),
            search: self.search(fields, &groups),
            each: Each { slices: self.slices(fields), limits: self.limits(fields) },
            axes,
            exclude,
            groups,
            sampling: sampling(fields.table("sampling")),
            thresholds: thresholds(fields.table("thresholds")),
            warnings,
        }
    }

    /// A limit of zero would end every run immediately.
    fn leaves_time(&mut self, fields: &Fields, key: &str) {
        if let Some(found) = fields.found(key).filter(|_| fields.duration(key) == Some(Duration::ZERO)) {
            let what = format!("`{key}` is zero, so every run would end at once");
            self.wrong(&found.span, Diagnostic::new(what).note("as in `\"30m\"`, or leave it out"));
        }
    }

    fn check_name(&mut self, name: &str, fields: &Fields) {
        let Some(mistake) = name::wrong(name) else { return };
        match fields.found("name") {
            Some(found) => self.wrong(&found.span, mistake),
            None => self.mistakes.push(mistake),
        }
    }

    fn cores(&mut self, fields: &Fields) -> Cores {
        let Some(found) = fields.found("cores") else { return Cores::Shared };
        match found.text().unwrap_or("shared") {
            "shared" => Cores::Shared,
            "spread" => Cores::Spread,
            "gpu-local" => Cores::GpuLocal,
            list => core_list(list).map(Cores::Listed).unwrap_or_else(|| {
                self.wrong(
                    &found.span,
                    Diagnostic::new(format!("invalid `cores` value {}", quoted(list)))
                        .note("`shared`, `spread`, `gpu-local`, or a list as `0-3,8`"),
                );
                Cores::Shared
            }),
        }
    }

    /// The limits of each workload under MPS.
    fn limits(&mut self, fields: &Fields) -> BTreeMap<String, Limits> {
        let mut all = BTreeMap::new();
        for (workload, key_span, found) in fields.table("limits").map(Fields::in_order).unwrap_or_default() {
            match found.text().map(sharing::limits) {
                None => continue,
                Some(Ok(limits)) => drop(all.insert(workload.to_string(), limits)),
                Some(Err(wrong)) => self.wrong(&found.span, wrong),
            }
            if let Err(unknown) = self.workloads.find(workload) {
                unknown.iter().for_each(|m| self.wrong(key_span, m.clone()));
            }
        }
        all
    }

    fn search(&mut self, fields: &Fields, groups: &[MixedGroup]) -> bool {
        let Some(found) = fields.found("search") else { return false };
        if !groups.is_empty() {
            let what = Diagnostic::new("a search is for copies of one workload, and this experiment has a `[[group]]`");
            self.wrong(&found.span, what.note("leave one of them out"));
        }
        true
    }

    /// The profile of each workload; whether a GPU has it is checked once the GPU is known.
    fn slices(&mut self, fields: &Fields) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (workload, key_span, found) in fields.table("slices").map(Fields::in_order).unwrap_or_default() {
            let Some(profile) = found.text() else { continue };
            if !collo_gpus::notation::is_size(profile) {
                let what = Diagnostic::new(format!("invalid profile name {}", quoted(profile)));
                self.wrong(&found.span, what.note("as in `3g.20gb`; all: `collo list gpus --gpu NAME`"));
            }
            if let Err(unknown) = self.workloads.find(workload) {
                unknown.iter().for_each(|m| self.wrong(key_span, m.clone()));
            }
            all.insert(workload.to_string(), profile.to_string());
        }
        all
    }

    fn workload(&mut self, found: &Located) -> Option<Arc<Workload>> {
        let name = found.text()?;
        match self.workloads.find(name) {
            Ok(workload) => return Some(workload.clone()),
            Err(_) if !self.wrong_workloads.insert(name.to_string()) => {}
            // What is wrong in the workload's own file is shown there; else the name is wrong here.
            Err(mistakes) if self.workloads.broken().contains_key(name) || self.workloads.lacks_file(name) => {
                self.mistakes.extend(mistakes);
            }
            Err(mistakes) => mistakes.iter().for_each(|m| self.wrong(&found.span, m.clone())),
        }
        None
    }

    fn sharing(&mut self, table: &Fields) -> Vec<Sharing> {
        let mut all = Vec::new();
        for found in table.list("sharing").unwrap_or_default() {
            let label = found.text().unwrap_or_default();
            match sharing::parse(label) {
                Ok(mode) => all.push(Sharing { mode, solo: label == "solo" }),
                Err(mistake) => self.wrong(&found.span, mistake),
            }
        }
        all
    }

    /// The axes as written; [`ExperimentReader::complete`] adds what was left out.
    fn axes(&mut self, table: &Fields) -> Axes {
        let wholes = |key: &str| -> Vec<u32> { table.list(key).unwrap_or_default().iter().filter_map(whole_u32).collect() };
        let workload: Vec<Arc<Workload>> =
            table.list("workload").unwrap_or_default().iter().filter_map(|f| self.workload(f)).collect();
        let mut settings = Vec::new();
        for (key, key_span, found) in table.in_order() {
            let Value::List(values) = &found.value else { continue };
            if ["workload", "sharing", "degree"].contains(&key) {
                continue;
            }
            if let Some(unknown) = self.unknown_axis(key, &workload) {
                self.wrong(key_span, unknown);
                continue;
            }
            let plain: Vec<(&Located, Json)> = values.iter().filter_map(|f| Some((f, json(f)?))).collect();
            for (value, json) in &plain {
                if let Some(wrong) = workload.iter().find_map(|w| w.wrong_value(key, json)) {
                    self.wrong(&value.span, wrong);
                }
            }
            if key != "batch_size" {
                settings.push((key.to_string(), plain.into_iter().map(|(_, json)| json).collect()));
            }
        }
        settings.sort_by(|a: &(String, Vec<Json>), b| a.0.cmp(&b.0));
        Axes { workload, batch_size: wholes("batch_size"), settings, sharing: self.sharing(table), degree: wholes("degree") }
    }

    /// An axis must be a setting of every workload of the matrix, else some cells would be the same under several names.
    fn unknown_axis(&self, key: &str, workloads: &[Arc<Workload>]) -> Option<Diagnostic> {
        let lacking = workloads.iter().find(|w| !w.settings.contains_key(key))?;
        let axes = ["workload", "batch_size", "sharing", "degree"];
        let near = crate::nearest::nearest(key, axes).filter(|_| workloads.iter().all(|w| !w.settings.contains_key(key)));
        Some(match near {
            Some(near) if near != key => {
                Diagnostic::new(format!("unknown axis {}", quoted(key))).note(format!("did you mean `{near}`?"))
            }
            _ => lacking.unknown_setting(key),
        })
    }

    fn complete(&mut self, mut axes: Axes, fields: &Fields, naive: Vec<Sharing>) -> Axes {
        let written = fields.table("axes").is_some_and(|t| t.key_span("workload").is_some());
        let spans_more =
            fields.table("axes").is_some_and(|t| ["batch_size", "degree"].iter().any(|key| t.key_span(key).is_some()));
        if !written && self.mistakes.is_empty() && (fields.list("group").is_none_or(<[Located]>::is_empty) || spans_more) {
            let missing = Diagnostic::new(format!("axis `workload` is missing in {}, so there is no cell", self.source.name()));
            self.mistakes.push(missing.hint("add `[axes]` with `workload = [\"tiny\"]`, or a `[[group]]`"));
        }
        if axes.sharing.is_empty() {
            axes.sharing = naive;
        }
        if axes.degree.is_empty() {
            axes.degree = vec![1];
        }
        axes
    }

    fn group(&mut self, table: &Fields, of_axes: &[Sharing]) -> MixedGroup {
        let mut members: Vec<(Arc<Member>, u32)> = Vec::new();
        for member in table.tables("members") {
            members.extend(self.member(member));
        }
        let header = table.span.start..table.span.start + 2;
        if table.list("members").is_none_or(<[Located]>::is_empty) && self.mistakes.is_empty() {
            self.wrong(
                &header,
                Diagnostic::new("a group has no members").note("as in `members = [{ workload = \"tiny\", count = 2 }]`"),
            );
        }
        let degree: u64 = members.iter().map(|(_, count)| u64::from(*count)).sum();
        if degree > MOST_MEMBERS {
            self.wrong(&header, Diagnostic::new(format!("a group of {degree} members is more than {MOST_MEMBERS}")));
        }
        let own = self.sharing(table);
        MixedGroup {
            members,
            sharing: if own.is_empty() { of_axes.to_vec() } else { own },
            after_measured: table.text("after_measured").and_then(AfterMeasured::parse),
        }
    }

    fn member(&mut self, table: &Fields) -> Option<(Arc<Member>, u32)> {
        let Some(found) = table.found("workload") else {
            let header = table.span.start..table.span.start + 1;
            self.wrong(&header, Diagnostic::new("a member has no `workload`").note("as in `{ workload = \"tiny\", count = 2 }`"));
            return None;
        };
        let workload = self.workload(found)?;
        let mut given: BTreeMap<&str, Json> = BTreeMap::new();
        for (key, key_span, found) in table.in_order() {
            if ["workload", "count"].contains(&key) {
                continue;
            }
            let Some(value) = json(found) else { continue };
            match workload.wrong_value(key, &value) {
                Some(wrong) => self.wrong(if workload.settings.contains_key(key) { &found.span } else { key_span }, wrong),
                None => drop(given.insert(key, value)),
            }
        }
        let member = Member::new(&workload, given).ok()?;
        Some((Arc::new(member), table.whole_u32("count").unwrap_or(1)))
    }

    fn exclude(&mut self, fields: &Fields, axes: &Axes, groups: &[MixedGroup]) -> Vec<Expression> {
        let workloads = axes.workload.iter().chain(groups.iter().flat_map(|g| g.members.iter().map(|(m, _)| m.workload())));
        let settings: BTreeSet<String> = workloads.flat_map(|w| w.settings.keys().cloned()).collect();
        let mut all = Vec::new();
        for table in fields.tables("exclude") {
            let Some(found) = table.found("where") else {
                let header = table.span.start..table.span.start + 2;
                self.wrong(&header, Diagnostic::new("an exclusion has no `where`").note("as in `where = \"degree > 4\"`"));
                continue;
            };
            let text = found.text().unwrap_or_default();
            let read = Expression::parse("where", text)
                .and_then(|e| if self.mistakes.is_empty() { e.check(&settings).map(|()| e) } else { Ok(e) });
            match read {
                Ok(expression) => all.push(expression),
                // A string without escapes holds its own text one character in, so that the carets can point into it.
                Err(mistake) => {
                    let inside = found.span.start + 1..found.span.end.saturating_sub(1);
                    let plain = self.source.text().get(inside.clone()) == Some(text);
                    self.mistakes.push(mistake.moved(self.source, &found.span, plain.then_some(inside.start)));
                }
            }
        }
        all
    }
}

fn whole_u32(found: &Located) -> Option<u32> {
    match found.value {
        Value::Whole(n) => u32::try_from(n).ok(),
        _ => None,
    }
}

fn json(found: &Located) -> Option<Json> {
    match &found.value {
        Value::Setting(value) => Some(value.clone()),
        Value::Whole(n) => Some((*n).into()),
        _ => None,
    }
}

/// How long one member may tune or compile while the others wait for their turn: torch.compile takes about a minute for a
/// ResNet152 that it has not seen yet.
pub const SET_UP_TURN: Duration = Duration::from_secs(60);

fn sampling(table: Option<&Fields>) -> SamplingRates {
    SamplingRates {
        rate_hz: table.and_then(|t| t.number("rate_hz")).unwrap_or(10.0),
        slow_rate_hz: table.and_then(|t| t.number("slow_rate_hz")).unwrap_or(1.0),
        pss_every: table.and_then(|t| t.duration("pss_every")).unwrap_or(Duration::from_secs(30)),
        sm_source: table.and_then(|t| t.text("sm_source")).and_then(SourceChoice::named).unwrap_or_default(),
    }
}

fn thresholds(table: Option<&Fields>) -> Thresholds {
    let usual = Thresholds::default();
    let number = |key: &str, usual: f64| table.and_then(|t| t.number(key)).unwrap_or(usual);
    Thresholds {
        relevant_ratio: number("relevant", usual.relevant_ratio),
        slowdown: number("slowdown", usual.slowdown),
        overlap_ratio: number("overlap", usual.overlap_ratio),
        start_skew_s: table.and_then(|t| t.duration("start_skew")).map_or(usual.start_skew_s, |d| d.as_secs_f64()),
        baseline_drift_ratio: number("baseline_drift", usual.baseline_drift_ratio),
    }
}
