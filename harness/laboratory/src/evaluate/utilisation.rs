//! Predicted utilisation. In: measured rows. Out: RMSLE of percentages of each estimator.

use collo_figures::document::Table;
use collo_plan::predictors;
use collo_predict::utilisation::{
    Activity, Covered, Judged, ProtocolScore, Row, UtilisationFit, fit_utilisation, judged, protocols,
};
use collo_predict::{Interval, UtilisationPredictor};
use collo_text::Diagnostics;
use collo_text::units::percent;
use serde_json::{Map, Value as Json, json};

use super::{Comparison, Scores, note, table};
use crate::caller::Caller;
use crate::utilisation;

pub fn evaluate(caller: &dyn Caller, asked: &Comparison<'_>, scores: &mut Scores) -> Result<Json, Diagnostics> {
    let described = utilisation::read(caller, &asked.rows)?;
    let shipped: UtilisationPredictor =
        predictors::find_of(&caller.project()?, &caller.folder()?, predictors::SHIPPED_UTILISATION)?;
    for (by, who) in described.all.measurers() {
        let rows = described.rows_alone(by)?;
        let fitted = fit_utilisation(&rows);
        if let Err(why) = &fitted {
            note(caller, format!("no fit of these rows: {why}"));
        }
        let fitted = fitted.ok();
        // What was fitted on real GPUs is not for simulated ones.
        let judged = judged(&rows, fitted.as_ref(), Some(&shipped).filter(|_| !who.simulated));
        let protocols = asked.seeds.map(|seeds| protocols(&rows, seeds));
        scores.lines(format!("{} trainings alone, measured by {}", rows.len(), who.name));
        scores.table(of_judged(&judged));
        if let Some(fit) = &fitted {
            time_and_power(fit, &rows).iter().for_each(|text| scores.lines(format!("{text}\n")));
            fit.without.iter().for_each(|what| scores.note(format!("not fitted: {what}")));
        }
        for (activity, of_protocol) in protocols.iter().flatten() {
            scores.table(by_protocol(*activity, of_protocol));
        }
        let trainings = trainings(&rows, fitted.as_ref());
        let time = fitted.as_ref().and_then(|fit| fit.time.as_ref()).map(|fit| fit.law.left_out);
        scores
            .add(json!({"measured_by": who.name, "rows": rows.len(), "estimators": judged, "trainings": trainings, "time": time,
            "like": protocols}));
    }
    let about = "RMSLE of percentages: the root of the mean squared difference of ln(1 + percent), as HotCloud'20 has it";
    scores.note(about);
    if let Some(seeds) = asked.seeds {
        scores.note(format!(
            "shuffled: 80 % to learn from with a grid search in five folds, 20 % to be judged by, the median of {seeds} seeds; the paper's \
             figures are of other rows"
        ));
    }
    Ok(json!({}))
}

fn of_judged(judged: &[Judged]) -> Table {
    let lines = judged.iter().map(|one| {
        let mut line = vec![Some(one.name.clone())];
        for activity in Activity::ALL {
            line.push(one.rmsle.get(&activity).map(|error| format!("{error:.3}")));
            line.push(one.covered.get(&activity).map(|of| format!("{} of {}", of.covered, of.rows)));
        }
        line
    });
    let numbers: Vec<&str> = Activity::ALL.iter().flat_map(|activity| [activity.as_str(), "covered"]).collect();
    table("RMSLE", &numbers, None, 4, lines)
}

/// Of the rows that were timed and metered.
fn time_and_power(fit: &UtilisationFit, rows: &[Row]) -> Option<String> {
    let inside = |said: &[Option<Interval>], is: &dyn Fn(&Row) -> Option<f64>| {
        let Covered { covered, rows } = Covered::of(rows.iter().zip(said).filter_map(|(row, said)| Some(((*said)?, is(row)?))));
        format!("{covered} of {rows} covered")
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

fn by_protocol(activity: Activity, scores: &[ProtocolScore]) -> Table {
    let text = |error: Option<f64>| error.map(|error| format!("{error:.3}"));
    let line = |score: &ProtocolScore| {
        vec![Some(score.estimator.clone()), text(score.shuffled), text(score.left_out), text(score.published_shuffled)]
    };
    let numbers = ["shuffled", "architecture left out", "in the paper, shuffled"];
    table(&format!("RMSLE of {}", activity.as_str()), &numbers, None, 3, scores.iter().map(line))
}

/// Each row with what the laws take of it.
fn trainings(rows: &[Row], fitted: Option<&UtilisationFit>) -> Vec<Json> {
    let training = |(place, row): (usize, &Row)| {
        let of = |activity: Activity| {
            let said = fitted.and_then(|fit| fit.activities.get(&activity)).and_then(|fit| fit.left_out[place]);
            json!({"measured_percent": row.measured.percent(activity), "predicted_percent": said.map(|s| s.estimate),
                "low_percent": said.map(|s| s.low), "high_percent": said.map(|s| s.high)})
        };
        let each: Map<String, Json> = Activity::ALL.iter().map(|a| (a.key().to_string(), of(*a))).collect();
        let step = fitted.and_then(|fit| fit.time.as_ref()).and_then(|fit| fit.left_out[place]);
        json!({"training": row.label, "family": row.family, "kind": row.kind, "activities": each, "step_s": row.measured.step_s,
            "predicted_step_s": step.map(|s| s.estimate), "kernels": row.work.kernels, "bytes": row.work.bytes(),
            "growing_bytes": row.work.growing_bytes(), "active": row.work.active(row.peaks),
            "traffic": row.work.traffic(row.peaks)})
    };
    rows.iter().enumerate().map(training).collect()
}
