//! Every estimator on the same measured rows. In: described rows, the shipped predictor. Out: of each estimator an estimate for each row;
//! where rows are fitted, each is predicted by a fit that has not seen its architecture.

use collo_predict::{Bounds, Factors, Peer, Predictor, Scored, published, refit_context};
use collo_text::Remark;

use super::described::{Described, Inputs};
use crate::caller::Caller;
use crate::measurements::{Measurement, Measurer, Trained};

impl Described {
    /// Every estimator on the same rows.
    pub fn estimates(
        &self,
        caller: &dyn Caller,
        rows: &[&Measurement],
        who: &Measurer,
        shipped: &Predictor,
    ) -> Vec<(String, Vec<Scored>)> {
        let mut all: Vec<(String, Vec<Scored>)> = Vec::new();
        match self.fitted(rows, who, shipped) {
            Ok((fitted, factors)) => {
                self.doubt(caller, &fitted.left_out);
                all.push((left_out_by(factors).into(), fitted.left_out));
            }
            Err(why) => caller.remark(Remark::Note(format!("no fit of these rows: {why}"))),
        }
        type Estimate<'e> = &'e dyn Fn(&Measurement) -> (Option<f64>, Option<Bounds>);
        let scored = |of: Estimate| {
            let scored = rows.iter().map(|row| {
                let (estimate_bytes, bounds) = of(row);
                Scored { label: self.label(row), measured_bytes: row.reading, estimate_bytes, bounds }
            });
            scored.collect::<Vec<_>>()
        };
        // What was fitted on real GPUs is neither for CPUs nor for simulated devices.
        if who.is_cpu() {
            return all;
        }
        // On the rows that it was fitted on it would be judged by its own lesson.
        if !self.is_published && !who.simulated {
            let as_shipped = scored(&|row| {
                let estimate = self
                    .inputs(row)
                    .map(|Inputs { held_bytes, workspace_bytes }| shipped.coefficients.bytes(held_bytes, workspace_bytes));
                (estimate, estimate.map(|bytes| Bounds::around(bytes, shipped.width)))
            });
            all.push((format!("collo, {}", shipped.name), as_shipped));
            // On another machine only the context is another, unless the rest was learnt from too few.
            if let Ok(scored) = refit_context(&self.measured(rows), shipped.coefficients, shipped.width) {
                all.push((format!("collo, {}, context refitted", shipped.name), scored));
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
        all
    }
}

fn left_out_by(factors: Factors) -> &'static str {
    match factors {
        Factors::Fitted => "collo, architecture left out",
        Factors::Published | Factors::One => "collo, context alone fitted, architecture left out",
    }
}
