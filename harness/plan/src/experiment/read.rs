//! From the text of an experiment to its checked values.

mod failures;
mod observe;
mod reference;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use collo_gpus::notation;
use collo_store::{AfterMeasured, Thresholds, TraceCell};
use collo_text::{Diagnostic, Diagnostics, Source, fields, quoted, shown};
use serde_json::Value as Json;

use super::{Axes, Experiment, Layers, MixedGroup, Overrides, SCHEMA, Sharing, ThermalGate, TracePlan, keys, name, thermal_gate};
use crate::cell::{MOST_MEMBERS, Member};
use crate::facts::{Cores, core_list};
use crate::project::Project;
use crate::sharing::{self, Each, Limits, Naive};
use crate::workload::{Workload, Workloads};
use collo_text::fields::{Fields, Located, Value};

impl Experiment {
    /// The experiment that a person names: `NAME` or a path.
    pub fn resolve(project: &Project, typed: &str, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        Experiment::resolve_with(project, typed, workloads, &Overrides::of(project, &[])?)
    }

    /// The same with what is given apart from its file.
    pub fn resolve_with(
        project: &Project,
        typed: &str,
        workloads: &Workloads,
        overrides: &Overrides,
    ) -> Result<Experiment, Diagnostics> {
        Experiment::read(&super::locate(project, typed)?, workloads, overrides)
    }

    /// Read a file; all its mistakes are reported together.
    pub fn read(path: &Path, workloads: &Workloads, overrides: &Overrides) -> Result<Experiment, Diagnostics> {
        let name = shown(path);
        let unreadable = |cause: String| Diagnostic::new(format!("experiment {} cannot be read", quoted(&name))).caused_by(cause);
        let text = collo_text::read_small_text(path, fields::LARGEST).map_err(|e| unreadable(e.to_string()))?;
        Experiment::layered(path, Layers::of(path, &Source::file(name, text), overrides)?, workloads)
    }

    /// Parse an experiment, as if it were in this file.
    pub fn parse(path: &Path, source: &Arc<Source>, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        Experiment::layered(path, Layers::of(path, source, &Overrides::default())?, workloads)
    }

    fn layered(path: &Path, layers: Layers, workloads: &Workloads) -> Result<Experiment, Diagnostics> {
        let (source, fields, mistakes) = layers.read();
        if fields.in_order().is_empty() && !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut reader = ExperimentReader { source: &source, workloads, mistakes, wrong_workloads: BTreeSet::new() };
        let experiment = reader.experiment(path, layers, &fields);
        reader.mistakes.into_result(experiment)
    }
}

pub(super) struct ExperimentReader<'a> {
    pub(super) source: &'a Arc<Source>,
    workloads: &'a Workloads,
    pub(super) mistakes: Diagnostics,
    /// Reported once each: a broken workload is named in several places.
    wrong_workloads: BTreeSet<String>,
}

impl ExperimentReader<'_> {
    pub(super) fn wrong(&mut self, span: &Range<usize>, mistake: Diagnostic) {
        self.mistakes.push(mistake.at(self.source, span.clone()));
    }

    fn experiment(&mut self, path: &Path, layers: Layers, fields: &Fields) -> Experiment {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut warnings = Vec::new();
        if let Some(found) = fields.found("schema")
            && let Some(newer) = fields.get::<Option<u64>>("schema").filter(|n| *n > SCHEMA)
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
        let axes = self.matrix(fields);
        let naive = vec![Sharing { mode: Arc::new(Naive), solo: false }];
        let of_axes = axes.sharing_modes();
        let of_axes = if of_axes.is_empty() { &naive } else { &of_axes };
        let groups: Vec<MixedGroup> = fields.tables("group").map(|table| self.group(table, of_axes)).collect();
        let axes = self.complete(axes, fields, naive);
        let trace = self.trace(path, fields, &axes);
        let settings = settings(&axes, &groups, trace.as_ref());
        let exclude = fields.tables("exclude").filter_map(|table| self.condition(table, "an exclusion", &settings)).collect();
        let expect = fields.tables("expect").filter_map(|table| self.expected(table, &settings)).collect();
        let references = fields.tables("reference").filter_map(|table| self.reference(table)).collect();
        for key in ["timeout", "set_up_timeout", "stall_timeout", "measure_for"] {
            self.leaves_time(fields, key);
        }
        let after_measured: Option<AfterMeasured> = fields.get("after_measured");
        let exits = |m: Option<AfterMeasured>| m == Some(AfterMeasured::Exit);
        if let Some(found) = fields.found("measure_for")
            && (exits(after_measured) || groups.iter().any(|g| exits(g.after_measured)))
        {
            let what = "`measure_for` and `after_measured = \"exit\"` exclude each other";
            let why = "members that exit are compared by the time for equal work: set `epochs`, or let them keep running";
            self.wrong(&found.span, Diagnostic::new(what).note(why));
        }
        let given = Experiment::from_fields(fields);
        self.check_observe(fields, given.sampling.recording);
        let cores = self.cores(fields);
        if cores.is_uneven() {
            warnings.push(
                "the lists in `cores` differ in length, and baselines run on the first: slowdowns compare unequal shares".into(),
            );
        }
        let until = self.until(fields);
        if until.is_some() && given.repetitions < 3 {
            warnings.push(
                "`until` with fewer than 3 planned repetitions stops too early where these happen to agree, and makes intervals too \
                 narrow: raise `repetitions`"
                    .into(),
            );
        }
        let thermal_gate = self.thermal_gate(fields);
        self.check_search(fields, &groups);
        Experiment {
            path: path.to_path_buf(),
            layers,
            name,
            after_measured: after_measured.or(given.measure_for.map(|_| AfterMeasured::KeepRunning)),
            set_up_turn: if fields.found("set_up_timeout").is_some() { Duration::ZERO } else { SET_UP_TURN },
            cooldown: if thermal_gate.is_some() { Experiment::default().cooldown } else { given.cooldown },
            thermal_gate,
            retries: failures::retries(fields.table("retries")),
            cores,
            each: Each { slices: self.slices(fields), limits: self.limits(fields) },
            axes,
            exclude,
            expect,
            groups,
            trace,
            thresholds: thresholds(fields.table("thresholds")),
            references,
            until,
            warnings,
            ..given
        }
    }

    /// A limit of zero would end every run immediately.
    fn leaves_time(&mut self, fields: &Fields, key: &str) {
        if let Some(found) = fields.found(key).filter(|_| fields.get::<Option<_>>(key) == Some(Duration::ZERO)) {
            let what = format!("`{key}` is zero, so every run would end at once");
            self.wrong(&found.span, Diagnostic::new(what).note("as in `\"30m\"`, or leave it out"));
        }
    }

    fn thermal_gate(&mut self, fields: &Fields) -> Option<ThermalGate> {
        let found = fields.found("cooldown")?;
        let text = found.text()?;
        let gate = ThermalGate::parse(text);
        if gate.is_none() {
            let what = Diagnostic::new(format!("invalid cooldown {}", quoted(text)));
            self.wrong(&found.span, what.note(thermal_gate::HELP));
        }
        gate
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
        if let Value::List(lists) = &found.value {
            if lists.is_empty() {
                self.wrong(
                    &found.span,
                    Diagnostic::new("`cores` has no list").note("one for each member, as in `[\"0-3\", \"4-7\"]`"),
                );
            }
            return Cores::PerMember(
                lists.iter().map(|list| self.core_list(list, "a list as `0-3,8` for each member")).collect(),
            );
        }
        match found.text().unwrap_or("shared") {
            "shared" => Cores::Shared,
            "spread" => Cores::Spread,
            "gpu-local" => Cores::GpuLocal,
            "gpu-local-spread" => Cores::GpuLocalSpread,
            _ => {
                Cores::Listed(self.core_list(found, "`shared`, `spread`, `gpu-local`, `gpu-local-spread`, or a list as `0-3,8`"))
            }
        }
    }

    fn core_list(&mut self, found: &Located, what: &str) -> Vec<u32> {
        let text = found.text().unwrap_or_default();
        core_list(text).unwrap_or_else(|| {
            self.wrong(&found.span, Diagnostic::new(format!("invalid `cores` value {}", quoted(text))).note(what));
            Vec::new()
        })
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

    fn check_search(&mut self, fields: &Fields, groups: &[MixedGroup]) {
        if let Some(found) = fields.found("search").filter(|_| !groups.is_empty()) {
            let what = Diagnostic::new("a search is for copies of one workload, and this experiment has a `[[group]]`");
            self.wrong(&found.span, what.note("leave one of them out"));
        }
    }

    /// The profile of each workload; whether a GPU has it is checked once the GPU is known.
    fn slices(&mut self, fields: &Fields) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (workload, key_span, found) in fields.table("slices").map(Fields::in_order).unwrap_or_default() {
            let Some(profile) = found.text() else { continue };
            if !(notation::is_size(profile) || notation::is_share(profile)) {
                let what = Diagnostic::new(format!("invalid profile name {}", quoted(profile)));
                self.wrong(&found.span, what.note("as in `3g` or `3g.20gb`; all: `collo list gpus --gpu NAME`"));
            }
            if let Err(unknown) = self.workloads.find(workload) {
                unknown.iter().for_each(|m| self.wrong(key_span, m.clone()));
            }
            all.insert(workload.to_string(), profile.to_string());
        }
        all
    }

    pub(super) fn workload(&mut self, found: &Located) -> Option<Arc<Workload>> {
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

    pub(super) fn sharing(&mut self, table: &Fields) -> Vec<Sharing> {
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
            after_measured: table.get("after_measured"),
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
            let Some(value) = self.setting(key, found, &[&workload]) else { continue };
            match workload.wrong_value(key, &value) {
                Some(wrong) => self.wrong(if workload.settings.contains_key(key) { &found.span } else { key_span }, wrong),
                None => drop(given.insert(key, value)),
            }
        }
        let member = Member::new(&workload, given).ok()?;
        Some((Arc::new(member), table.get::<Option<u32>>("count").unwrap_or(1)))
    }
}

/// The names of all settings of the workloads in an experiment.
fn settings(axes: &Axes, groups: &[MixedGroup], trace: Option<&TracePlan>) -> BTreeSet<String> {
    let workloads = axes.workloads().chain(groups.iter().flat_map(|g| g.members.iter().map(|(m, _)| m.workload())));
    let workloads = workloads.chain(trace.into_iter().flat_map(TracePlan::workloads));
    let own = trace.map(|_| TraceCell::AXES).unwrap_or_default().iter().map(|axis| axis.to_string());
    workloads.flat_map(|w| w.settings.keys().cloned()).chain(own).collect()
}

/// How long one member may tune or compile while the others wait for their turn: torch.compile takes about a minute for a
/// ResNet152 that it has not seen yet.
pub const SET_UP_TURN: Duration = Duration::from_secs(60);

fn thresholds(table: Option<&Fields>) -> Thresholds {
    let table = table.cloned().unwrap_or_default().or_defaults(&keys::THRESHOLDS);
    Thresholds {
        relevant_ratio: table.get("relevant"),
        slowdown: table.get("slowdown"),
        overlap_ratio: table.get("overlap"),
        start_skew_s: table.get::<Duration>("start_skew").as_secs_f64(),
        baseline_drift_ratio: table.get("baseline_drift"),
    }
}
