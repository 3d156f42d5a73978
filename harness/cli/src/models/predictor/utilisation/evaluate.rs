//! Predicted utilisation compared with measurements. In: measured rows. Out: RMSLE of percentages of each estimator, each architecture
//! predicted without having been seen.

use std::collections::BTreeMap;

use collo_figures::document::{Align, Table};
use collo_laboratory::utilisation::{Judged, Profiled, ProtocolScores, judged, profiled, protocols};
use collo_plan::predictors;
use collo_predict::utilisation::{Activity, Row, Scores, UtilisationFit, fit_utilisation};
use collo_predict::{AnyPredictor, Interval};
use serde_json::{Value as Json, json};

use super::super::percent;
use crate::args::{Evaluate, Like};
use crate::context::{Context, Ended};
use crate::{exit, output};

pub fn evaluate(context: &Context<'_>, asked: &Evaluate, like: &Like) -> Ended {
    let all = profiled(context, &asked.request())?;
    let shipped = match predictors::find(&context.project()?, &context.folder()?, predictors::SHIPPED_UTILISATION)? {
        AnyPredictor::Utilisation(shipped) => Some(shipped),
        _ => None,
    };
    let mut parts = Vec::new();
    for of_one in &all {
        let fitted = fit_utilisation(&of_one.rows);
        if let Err(why) = &fitted {
            output::note(format!("no fit of these rows: {why}"));
        }
        let fitted = fitted.ok();
        let judged = judged(of_one, fitted.as_ref(), shipped.as_ref());
        let protocols = like.like.is_some().then(|| protocols(&of_one.rows, like.seeds));
        if context.arguments.json {
            parts.push(value(of_one, fitted.as_ref(), &judged, protocols.as_ref()));
            continue;
        }
        output::result(format!("{} trainings alone, measured by {}", of_one.rows.len(), of_one.who.name));
        output::result(format!("{}\n", table(&judged).render(output::width()).trim_end()));
        if let Some(text) = fitted.as_ref().and_then(|fit| time_and_power(fit, &of_one.rows)) {
            output::result(format!("{text}\n"));
        }
        if let Some(fit) = &fitted {
            fit.without.iter().for_each(|what| output::note(format!("not fitted: {what}")));
        }
        for (activity, scores) in protocols.iter().flatten() {
            output::result(format!("{}\n", protocol_table(*activity, scores).render(output::width()).trim_end()));
        }
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "quantity": "utilisation", "measured": parts}));
    } else {
        output::note("RMSLE of percentages: the root of the mean squared difference of ln(1 + percent), as HotCloud'20 has it");
        if like.like.is_some() {
            let seeds = like.seeds;
            output::note(format!(
                "shuffled: 80 % to learn from with a grid search in five folds, 20 % to be judged by, the median of {seeds} seeds; the \
                 paper's figures are of other rows"
            ));
        }
    }
    Ok(exit::DONE)
}

fn table(judged: &[Judged]) -> Table {
    let mut columns = vec![("RMSLE", Align::Left)];
    columns.extend(Activity::ALL.iter().flat_map(|activity| [(activity.as_str(), Align::Right), ("covered", Align::Right)]));
    let mut table = Table::new(&columns, 4);
    for one in judged {
        let mut line = vec![Some(one.name.clone())];
        for activity in Activity::ALL {
            line.push(one.rmsle.get(&activity).map(|error| format!("{error:.3}")));
            line.push(one.covered.get(&activity).map(|(inside, of)| format!("{inside} of {of}")));
        }
        table.values(line);
    }
    table
}

/// Of the rows that were timed and metered.
fn time_and_power(fit: &UtilisationFit, rows: &[Row]) -> Option<String> {
    let inside = |said: &[Option<Interval>], is: &dyn Fn(&Row) -> Option<f64>| {
        let pairs = rows.iter().zip(said).filter_map(|(row, said)| Some(((*said)?, is(row)?)));
        let all: Vec<bool> = pairs.map(|(said, is)| said.contains(is)).collect();
        format!("{} of {} covered", all.iter().filter(|inside| **inside).count(), all.len())
    };
    let mut lines = Vec::new();
    if let Some(time) = &fit.time {
        let score = &time.law.left_out;
        lines.push(format!(
            "step time by the roofline, architecture left out: median error {}, worst {}, {}",
            percent(score.median_relative_error),
            percent(score.worst_relative_error),
            inside(&time.left_out, &|row| row.measured.step_s)
        ));
    }
    if let Some(power) = &fit.power {
        lines.push(format!(
            "power from measured activity, architecture left out: median error {}, {}",
            percent(power.law.left_out.median_relative_error),
            inside(&power.left_out, &|row| row.measured.power_w)
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn protocol_table(activity: Activity, scores: &ProtocolScores) -> Table {
    let head = format!("RMSLE of {}", activity.as_str());
    let columns = [
        (head.as_str(), Align::Left),
        ("shuffled", Align::Right),
        ("architecture left out", Align::Right),
        ("in the paper, shuffled", Align::Right),
    ];
    let mut table = Table::new(&columns, 3);
    let text = |error: Option<f64>| error.map(|error| format!("{error:.3}"));
    for (name, of, published) in scores {
        table.values([Some(name.clone()), text(of.shuffled), text(of.left_out), text(*published)]);
    }
    table
}

fn value(
    of_one: &Profiled,
    fitted: Option<&UtilisationFit>,
    judged: &[Judged],
    protocols: Option<&Vec<(Activity, ProtocolScores)>>,
) -> Json {
    let by_key = |of: &BTreeMap<Activity, f64>| -> Json { of.iter().map(|(a, x)| (a.key().to_string(), json!(x))).collect() };
    let estimators: Vec<Json> = judged
        .iter()
        .map(|one| {
            let covered: serde_json::Map<String, Json> = one
                .covered
                .iter()
                .map(|(a, (inside, of))| (a.key().to_string(), json!({"covered": inside, "rows": of})))
                .collect();
            json!({"estimator": one.name, "rmsle": by_key(&one.rmsle), "covered": covered})
        })
        .collect();
    let trainings: Vec<Json> = of_one
        .rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let of = |activity: Activity| {
                let said = fitted.and_then(|fit| fit.activities.get(&activity)).and_then(|fit| fit.left_out[place]);
                json!({"measured_percent": row.measured.percent(activity), "predicted_percent": said.map(|s| s.estimate),
                    "low_percent": said.map(|s| s.low), "high_percent": said.map(|s| s.high)})
            };
            let each: serde_json::Map<String, Json> = Activity::ALL.iter().map(|a| (a.key().to_string(), of(*a))).collect();
            let step = fitted.and_then(|fit| fit.time.as_ref()).and_then(|fit| fit.left_out[place]);
            json!({"training": row.label, "family": row.family, "activities": each, "step_s": row.measured.step_s,
                "predicted_step_s": step.map(|s| s.estimate), "kernels": row.work.kernels, "bytes": row.work.bytes(),
                "growing_bytes": row.work.growing_bytes(), "filled": row.work.filled(row.peaks), "busy": row.work.busy(row.peaks),
                "traffic": row.work.traffic(row.peaks)})
        })
        .collect();
    let like = protocols.map(|all| {
        let of = |(name, scores, published): &(String, Scores, Option<f64>)| {
            json!({"estimator": name, "shuffled": scores.shuffled, "left_out": scores.left_out, "published_shuffled": published})
        };
        all.iter().map(|(a, all)| (a.key().to_string(), all.iter().map(of).collect())).collect::<serde_json::Map<String, Json>>()
    });
    json!({"measured_by": of_one.who.name, "rows": of_one.rows.len(), "estimators": estimators, "trainings": trainings,
        "time": fitted.and_then(|fit| fit.time.as_ref()).map(|fit| fit.law.left_out), "like": like})
}
