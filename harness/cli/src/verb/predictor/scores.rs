//! Predictions compared with measurements, and the fit. In: measured rows. Out: a table of scores for each source of measurements, or
//! a predictor file. Where rows are fitted, each is predicted by a fit that has not seen its architecture.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use collo_measure::{Describer, Event, Workloads};
use collo_predict::{
    Basis, Bounds, Conditions, Description, Mark, MeasuredRow, MemoryFit, Peer, Predictor, Replay, Score, Scored, Unfit,
    fit_memory, published, refit_context, replay, score,
};
use collo_report::document::{Align, Table};
use collo_store::{Diagnostic, Diagnostics, replace_file};
use serde_json::{Value as Json, json};

use super::files;
use super::rows::{Measurement, Measurements, Trained};
use super::{mib, percent};
use crate::args::Evaluate;
use crate::verb::predict::basis_of;
use crate::verb::{Context, Ended};
use crate::{exit, output, progress};

/// The word for the published jobs, in place of a file.
const PUBLISHED: &str = "published:estimators";

/// Measurements with the descriptions of what was measured.
struct Described {
    all: Measurements,
    /// Of each subject; absent if it cannot be described.
    descriptions: Vec<Option<(Description, Basis)>>,
    /// The replay of a subject at a batch size.
    replays: BTreeMap<(usize, u64), Replay>,
    is_published: bool,
}

pub fn evaluate(context: &Context<'_>, asked: &Evaluate) -> Ended {
    let described = described(context, asked)?;
    let shipped = files::find(&context.project()?, &context.folder()?, files::SHIPPED)?;
    let mut parts = Vec::new();
    for (by, who) in described.all.measured_by.iter().enumerate() {
        let rows: Vec<&Measurement> = described.rows(by).collect();
        if rows.is_empty() {
            continue;
        }
        let scores = described.scores(&rows, &shipped);
        if context.arguments.json {
            let list: Vec<Json> = scores.iter().map(|(name, score)| value(name, score)).collect();
            let trainings = described.trainings(&rows);
            parts.push(json!({"measured_by": who, "rows": rows.len(), "estimators": list, "trainings": trainings}));
        } else {
            output::result(format!("{} trainings, measured by {who}", rows.len()));
            output::result(format!("{}\n", table(&scores).render(output::width()).trim_end()));
        }
    }
    if context.arguments.json {
        let left_out: Vec<Json> =
            described.all.left_out.iter().map(|(reason, rows)| json!({"reason": reason, "rows": rows})).collect();
        output::json(&json!({"schema": 1, "measured": parts, "left_out": left_out, "warnings": described.all.warnings}));
    } else {
        output::note(
            "too low: below the measurement; covered, above: of the two-sided interval and of the upper bound, both meant for 95 %",
        );
        if described.is_published {
            let sources = &published::estimators().sources;
            sources.iter().for_each(|(name, source)| output::note(format!("{name}: {source}")));
        }
    }
    Ok(exit::DONE)
}

pub fn fit(context: &Context<'_>, asked: &Evaluate, to: &Path) -> Ended {
    let name = to.file_stem().and_then(|stem| stem.to_str()).filter(|_| to.extension().is_some_and(|e| e == "json"));
    let name = name.ok_or_else(|| Diagnostic::new(format!("`--to {}` is not a file NAME.json", to.display())))?;
    let described = described(context, asked)?;
    // One source of measurements for one fit: two that differ by what else was on the card are no scatter.
    let sources: Vec<&String> = described
        .all
        .measured_by
        .iter()
        .enumerate()
        .filter(|(by, _)| described.rows(*by).next().is_some())
        .map(|(_, who)| who)
        .collect();
    let [who] = sources[..] else {
        let list = sources.iter().map(|s| format!("`{s}`")).collect::<Vec<_>>().join(", ");
        let wrong = Diagnostic::new(format!("the rows are measured by {list}: a fit mixes no sources"));
        return Err(wrong.hint(format!("`--measured-by {}` chooses one", sources.first().map_or("", |s| s.as_str()))).into());
    };
    let by = described.all.measured_by.iter().position(|known| known == who).unwrap_or_default();
    let rows: Vec<&Measurement> = described.rows(by).filter(|row| described.descriptions[row.subject].is_some()).collect();
    let fitted =
        described.fitted(&rows).map_err(|why| Diagnostic::new("no predictor can be fitted on these rows").caused_by(why))?;
    let left_out = fitted.score().ok_or_else(|| Diagnostic::new("no row can be predicted"))?;
    let predictor = Predictor {
        schema: collo_predict::PREDICTOR_SCHEMA,
        name: name.to_string(),
        quantity: Predictor::QUANTITY.into(),
        formula: Predictor::FORMULA.into(),
        coefficients: fitted.coefficients,
        width: fitted.width,
        conditions: described.conditions(),
        source: described.source(who, asked),
        mark: match described.is_published {
            true => Mark::Published,
            // As collo names such a device.
            false if who.to_lowercase().starts_with("simulated") => Mark::Simulated,
            false => Mark::Own,
        },
        left_out,
    };
    let path = context.folder()?.join(to);
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    replace_file(&path, predictor.to_text().as_bytes())?;
    if context.arguments.json {
        output::json(&json!({"schema": 1, "file": path, "predictor": serde_json::to_value(&predictor).unwrap_or_default()}));
    } else {
        output::result(super::in_full(&predictor));
        output::note(format!("written: {}; next: collo predict WORKLOAD --predictor {}", path.display(), to.display()));
    }
    Ok(exit::DONE)
}

/// Read the measurements, and describe what was trained.
fn described(context: &Context<'_>, asked: &Evaluate) -> Result<Described, Diagnostics> {
    let project = context.project()?;
    let is_published = asked.rows == PUBLISHED;
    if !is_published && asked.rows.starts_with("published:") {
        let wrong = Diagnostic::new(format!("`{}` is not known", asked.rows));
        return Err(wrong.hint(format!("the published measurements are `{PUBLISHED}`")).into());
    }
    let mut all = match is_published {
        true => Measurements::published(),
        false => Measurements::read(&context.folder()?.join(&asked.rows), &Workloads::load(&project.workloads())?)?,
    };
    if let Some(who) = &asked.measured_by {
        all = all.of(who)?;
    }
    all.warnings.iter().for_each(output::warning);
    for (reason, rows) in &all.left_out {
        output::note(format!("{rows} rows are not compared: each {reason}"));
    }
    let mut workloads = Vec::new();
    for subject in &all.subjects {
        if let Trained::Member(member) = &subject.what {
            workloads.push(Arc::clone(member.workload()));
        }
    }
    let by_name = all.subjects.iter().any(|s| matches!(s.what, Trained::Model(_)));
    let mut display = progress::display(context.arguments.quiet);
    let describer = Describer::new(&project, &workloads, by_name, asked.python.as_deref(), asked.fresh, &mut |progress| {
        display.show(Event::Python(progress));
    });
    display.end();
    let describer = describer?;
    let mut descriptions = Vec::new();
    for subject in &all.subjects {
        let answer = match &subject.what {
            Trained::Member(member) => describer.member(member).map(|d| (d, basis_of(member))),
            Trained::Model(model) => describer.model(model).map(|d| (d, Basis::Reserved)),
        };
        if let Err(why) = &answer {
            if why.class() != collo_store::ExitClass::Usage && why.class() != collo_store::ExitClass::Machine {
                return Err(answer.expect_err("just seen").into());
            }
            output::failure(&why.clone().into());
            output::warning(format!("the rows of `{}` are left out", subject.name()));
        }
        descriptions.push(answer.ok());
    }
    if descriptions.iter().all(Option::is_none) {
        return Err(Diagnostic::new("nothing could be described, so nothing can be compared").of_machine().into());
    }
    let mut replays = BTreeMap::new();
    for row in &all.rows {
        let key = (row.subject, row.batch_size);
        if let (false, Some((description, _))) = (replays.contains_key(&key), &descriptions[row.subject]) {
            replays.insert(key, replay(description, row.batch_size)?);
        }
    }
    Ok(Described { all, descriptions, replays, is_published })
}

impl Described {
    fn rows(&self, by: usize) -> impl Iterator<Item = &Measurement> {
        self.all.rows.iter().filter(move |row| row.by == by)
    }

    fn label(&self, row: &Measurement) -> String {
        format!("{} b{}", self.all.subjects[row.subject].name(), row.batch_size)
    }

    /// The rows whose training could be described, as a fit takes them.
    fn measured(&self, rows: &[&Measurement]) -> Vec<MeasuredRow> {
        let measured = rows.iter().filter_map(|row| {
            let (description, basis) = self.descriptions[row.subject].as_ref()?;
            let replay = self.replays.get(&(row.subject, row.batch_size))?;
            Some(MeasuredRow {
                label: self.label(row),
                family: self.all.subjects[row.subject].family.clone(),
                measured_bytes: row.memory_bytes,
                held_bytes: basis.held_bytes(replay),
                workspace_bytes: description.workspace.bytes_at(row.batch_size),
            })
        });
        measured.collect()
    }

    fn fitted(&self, rows: &[&Measurement]) -> Result<MemoryFit, Unfit> {
        fit_memory(&self.measured(rows))
    }

    /// Every estimator's score on the same rows.
    fn scores(&self, rows: &[&Measurement], shipped: &Predictor) -> Vec<(String, Score)> {
        let mut all: Vec<(String, Option<Score>)> = Vec::new();
        match self.fitted(rows) {
            Ok(fitted) => all.push(("collo, architecture left out".into(), score(&fitted.left_out))),
            Err(why) => output::note(format!("no fit of these rows: {why}")),
        }
        type Estimate<'e> = &'e dyn Fn(&Measurement) -> (Option<f64>, Option<Bounds>);
        let scored = |of: Estimate| {
            let scored = rows.iter().map(|row| {
                let (estimate_bytes, bounds) = of(row);
                Scored { label: self.label(row), measured_bytes: row.memory_bytes, estimate_bytes, bounds }
            });
            score(&scored.collect::<Vec<_>>())
        };
        // On the rows that it was fitted on it would be judged by its own lesson.
        if !self.is_published {
            let as_shipped = scored(&|row| {
                let found = self.descriptions[row.subject].as_ref().zip(self.replays.get(&(row.subject, row.batch_size)));
                let estimate = found.map(|((d, basis), replay)| {
                    shipped.coefficients.bytes(basis.held_bytes(replay), d.workspace.bytes_at(row.batch_size))
                });
                (estimate, estimate.map(|bytes| Bounds::around(bytes, shipped.width)))
            });
            all.push((format!("collo, {}", shipped.name), as_shipped));
            // On another machine only the context is another, unless the rest was learnt from too few.
            if let Ok(scored) = refit_context(&self.measured(rows), shipped.coefficients, shipped.width) {
                all.push((format!("collo, {}, context refitted", shipped.name), score(&scored)));
            }
        }
        for peer in Peer::ALL {
            let of_peer = scored(&|row| {
                let description = self.descriptions[row.subject].as_ref();
                (description.and_then(|(d, _)| peer.estimate_bytes(d, row.batch_size)), None)
            });
            all.push((peer.to_string(), of_peer));
        }
        if self.is_published {
            for (name, series) in &published::estimators().estimators {
                let as_published = scored(&|row| {
                    let subject = &self.all.subjects[row.subject];
                    let jobs = &published::estimators().jobs;
                    let Trained::Model(model) = &subject.what else { return (None, None) };
                    let is_it = |job: &&published::PublishedJob| {
                        job.model == model.model && job.input == model.input && u64::from(job.batch_size) == row.batch_size
                    };
                    (jobs.iter().find(is_it).and_then(|job| job.estimated_bytes(name)), None)
                });
                all.push((format!("{}, as published", series.name), as_published));
            }
        }
        all.into_iter().filter_map(|(name, score)| Some((name, score?))).collect()
    }

    /// Each row with what the formula takes of it: for who wants to fit something else.
    fn trainings(&self, rows: &[&Measurement]) -> Vec<Json> {
        let measured = self.measured(rows);
        let left_out = fit_memory(&measured).map(|fitted| fitted.left_out).unwrap_or_default();
        let each = measured.iter().enumerate().map(|(at, row)| {
            let predicted = left_out.get(at);
            json!({"training": row.label, "family": row.family, "measured_bytes": row.measured_bytes, "reserved_bytes": row.held_bytes,
                "workspace_bytes": row.workspace_bytes, "estimate_bytes": predicted.and_then(|p| p.estimate_bytes),
                "upper_bytes": predicted.and_then(|p| p.bounds).map(|b| b.upper_bytes)})
        });
        each.collect()
    }

    fn conditions(&self) -> Conditions {
        let mut precision: Vec<&str> = self.descriptions.iter().flatten().map(|(d, _)| d.precision.as_str()).collect();
        precision.sort_unstable();
        precision.dedup();
        let published = self.is_published.then(published::estimators);
        Conditions {
            gpu: published.map(|all| all.device.clone()),
            architecture: published.map(|_| "ampere".into()),
            precision: Some(precision.join(", ")),
            sharing: Some("solo".into()),
            allocator: Some("native".into()),
            ..Conditions::default()
        }
    }

    fn source(&self, who: &str, asked: &Evaluate) -> String {
        match self.is_published {
            true => {
                let all = published::estimators();
                let cited = all.measured.get(who).and_then(|series| all.sources.get(&series.source));
                format!("{PUBLISHED}, measured by {who}: {}", cited.map_or("", String::as_str))
            }
            false => format!("{}, measured by {who}", asked.rows),
        }
    }
}

fn table(scores: &[(String, Score)]) -> Table {
    let columns = [
        ("estimator", Align::Left),
        ("rows", Align::Right),
        ("median error", Align::Right),
        ("of it", Align::Right),
        ("worst", Align::Right),
        ("too low", Align::Right),
        ("covered", Align::Right),
        ("above", Align::Right),
        ("worst row", Align::Left),
    ];
    let mut table = Table::new(&columns, 4);
    for (name, score) in scores {
        let bounded = score.bounded.as_ref();
        table.values([
            Some(name.clone()),
            Some(score.rows.to_string()),
            Some(mib(score.median_error_bytes)),
            Some(percent(score.median_relative_error)),
            Some(percent(score.worst_relative_error)),
            Some(score.under.to_string()),
            bounded.map(|b| format!("{} of {}", b.covered, b.rows)),
            bounded.map(|b| b.exceeded.to_string()),
            Some(score.worst_row.clone()),
        ]);
    }
    table
}

fn value(name: &str, score: &Score) -> Json {
    let bounded = score.bounded.as_ref().map(|b| {
        json!({"rows": b.rows, "covered": b.covered, "exceeded": b.exceeded, "worst_excess_bytes": b.worst_excess_bytes,
            "median_over_reservation": b.median_over_reservation})
    });
    json!({"estimator": name, "rows": score.rows, "without": score.without, "median_error_bytes": score.median_error_bytes,
        "median_relative_error": score.median_relative_error, "p90_relative_error": score.p90_relative_error,
        "worst_relative_error": score.worst_relative_error, "worst_row": score.worst_row, "under": score.under,
        "spikes": score.spikes, "bounded": bounded})
}
