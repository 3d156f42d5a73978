//! How busy a workload alone keeps a GPU, and how long its step takes. In: its description, the GPU. Out: what is predicted, with
//! intervals and by whom; or why nothing is.

use collo_figures::document::{Align, Table};
use collo_plan::predictors;
use collo_plan::project::Project;
use collo_predict::utilisation::{Activity, Rung, UtilisationPrediction, UtilisationPredictor, Work, unknown_peaks};
use collo_predict::{Because, Description, Interval, Mark, PredictorLaw, Target, choose};
use collo_quantity::number::short_time;
use collo_text::{Diagnostic, Diagnostics};
use serde_json::{Value as Json, json};

/// What is predicted of a workload alone on a GPU.
pub struct Alone {
    prediction: UtilisationPrediction,
    /// By what the step's time is known.
    rung: Rung,
    because: Because,
    mark: Mark,
    rows: usize,
    gpu: Option<String>,
}

impl Alone {
    /// Why there is none in the inner error: there is no predictor for it, or its peaks are not known.
    pub fn of(
        project: &Project,
        target: &Target,
        description: &Description,
        batch: u64,
        named: Option<&UtilisationPredictor>,
    ) -> Result<Result<Alone, Diagnostic>, Diagnostics> {
        // Those that cannot be read were told of with the memory's.
        let (all, _) = predictors::readable(project)?;
        let Some(gpu) = &target.gpu else {
            return Ok(Err(Diagnostic::new("utilisation is predicted of GPUs").hint("`--gpu a100-40gb`")));
        };
        named.map_or(Ok(()), |predictor| predictor.may_serve_gpu(target.simulated))?;
        let candidates = named.map_or(&all.utilisation[..], std::slice::from_ref);
        let Some(chosen) = choose(candidates.iter(), target) else {
            let why = Diagnostic::new("no predictor of utilisation serves this GPU");
            return Ok(Err(why.hint("`collo predict fit CAMPAIGN --quantity utilisation --to predictors/NAME.json`")));
        };
        let cards = project.cards();
        let Some(peaks) = cards.peaks_of(gpu) else { return Ok(Err(unknown_peaks(gpu))) };
        let predictor: &UtilisationPredictor = chosen.predictor;
        let is_scaled = predictor.law.time.as_ref().is_some_and(|law| law.is_scaled(peaks));
        Ok(Ok(Alone {
            prediction: predictor.predict(&Work::of(description, batch), peaks, chosen.widened),
            rung: if is_scaled { Rung::ScaledRoofline } else { Rung::Roofline },
            because: chosen.because,
            mark: predictor.mark,
            rows: predictor.law.rows(),
            gpu: predictor.conditions.gpu.clone(),
        }))
    }

    /// A table of its own, each line marked as predicted.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)], 3);
        let mut add = |what: &str, said: Option<Interval>, text: &dyn Fn(f64) -> String| {
            let Some(Interval { estimate, low, high }) = said else { return };
            let between = format!("p  95 % between {} and {}", text(low), text(high));
            table.values([Some(format!("    {what}")), Some(text(estimate)), Some(between)]);
        };
        for activity in Activity::ALL {
            add(activity.as_str(), self.prediction.activities.get(&activity).copied(), &percent);
        }
        add("power", self.prediction.power_w, &|watts| format!("{watts:.0} W"));
        add("step time", self.prediction.step_s, &short_time);
        add("energy per step", self.prediction.energy_j, &|joules| format!("{joules:.3} J"));
        table
    }

    /// Whose prediction it is, and what it leaves out.
    pub fn notes(&self) -> Vec<String> {
        let on = self.gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
        let (name, mark) = (&self.prediction.predictor, self.mark.as_str());
        let mut notes = vec![format!(
            "p: predicted by {name}, fitted on {} {mark} measurements{on}; {}; as if data were there in time",
            self.rows, self.because
        )];
        for (activity, beyond) in &self.prediction.beyond {
            let then = match beyond.is_out_of_range() {
                true => "out of its range: no prediction".into(),
                false => format!("intervals × {:.2} as wide", beyond.widening()),
            };
            notes.push(format!("{}: {beyond}; {then}", activity.as_str()));
        }
        if self.prediction.step_s.is_some() {
            notes.push(format!("step time by {}", self.rung));
        }
        notes
    }

    pub fn value(&self) -> Json {
        let p = &self.prediction;
        let interval = |said: Option<Interval>| said.map(|s| json!({"estimate": s.estimate, "low": s.low, "high": s.high}));
        let activities: serde_json::Map<String, Json> =
            p.activities.iter().map(|(a, said)| (format!("{}_percent", a.key()), json!(interval(Some(*said))))).collect();
        let mut value = Json::Object(activities);
        for (key, said) in [("power_w", p.power_w), ("step_s", p.step_s), ("energy_per_step_j", p.energy_j)] {
            value[key] = json!(interval(said));
        }
        let beyond: serde_json::Map<String, Json> = p
            .beyond
            .iter()
            .map(|(activity, beyond)| {
                let of = json!({"reason": beyond.to_string(), "is_out_of_range": beyond.is_out_of_range()});
                (activity.key().to_string(), of)
            })
            .collect();
        value["beyond_range"] = Json::Object(beyond);
        value["step_from"] = json!(p.step_s.map(|_| self.rung.to_string()));
        value["predictor"] = json!(p.predictor);
        value["mark"] = json!(self.mark.as_str());
        value
    }
}

fn percent(percent: f64) -> String {
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
