//! What sharing a card is expected to cost. In: the tasks on it, the card's model. Out: each one's slowdown, as a report of the project has
//! it, else as the nearest predictor has it from what each does alone; or why neither is there.

use std::sync::Arc;

use collo_plan::cell::{Cell, Member};
use collo_plan::earlier::{Measured, MeasuredCell};
use collo_plan::predictors::Predictors;
use collo_plan::sharing;
use collo_predict::{Alone, CompanyMode, Interval, StandIn, Target, choose, why_uncertain};
use collo_store::{AfterMeasured, DeviceRecord, PredictedValue};
use serde_json::{Value as Json, json};

use crate::question::SharedBy;
use crate::{Asked, Sources};

/// What the reports of a project have of each GPU model of a question, and the predictors of company.
pub struct Company<'a> {
    measured: Vec<(DeviceRecord, Measured)>,
    predictors: &'a Predictors,
}

/// What is known of a task alone on a GPU model.
#[derive(Debug, Default, PartialEq)]
pub struct Known {
    pub memory_bytes: Option<u64>,
    /// GPU utilisation.
    pub busy: Option<f64>,
    compute: Option<f64>,
    step_s: Option<f64>,
    dram: Option<f64>,
}

impl<'a> Company<'a> {
    pub fn on<'d>(sources: &Sources<'a>, devices: impl Iterator<Item = &'d DeviceRecord>) -> Company<'a> {
        let mut measured: Vec<(DeviceRecord, Measured)> = Vec::new();
        for device in devices {
            if !measured.iter().any(|(known, _)| known.is_of_model(device)) {
                measured.push((device.clone(), (sources.measured)(device)));
            }
        }
        Company { measured, predictors: sources.predictors }
    }

    fn measured_on(&self, device: &DeviceRecord) -> Option<&Measured> {
        self.measured.iter().find(|(known, _)| known.is_of_model(device)).map(|(_, measured)| measured)
    }

    /// What is given of a task, else what was measured of it alone.
    pub fn known(&self, device: &DeviceRecord, asked: &Asked<'_>) -> Known {
        let (task, member) = (asked.task, asked.member.as_ref());
        let alone = member.and_then(|member| self.measured_on(device)?.alone(&member.spec()));
        let read = |get: fn(&MeasuredCell) -> Option<f64>| alone.and_then(get);
        Known {
            memory_bytes: task.memory_bytes.or(read(|cell| cell.alone.memory_bytes).map(|bytes| bytes.ceil() as u64)),
            busy: task.gpu_utilization_ratio.or(read(|cell| cell.gpu_utilization_ratio)),
            compute: task.sm_active_ratio.or(read(|cell| cell.sm_active_ratio)),
            step_s: task.step_s.or(read(|cell| cell.alone.step_s)),
            dram: read(|cell| cell.dram_active_ratio),
        }
    }

    /// The slowdowns of the first task, which is to be placed, and of those that run on the card.
    pub fn expected(&self, device: &DeviceRecord, shared_by: SharedBy, tasks: &[&Asked<'_>]) -> Json {
        if tasks.len() < 2 {
            return json!({"from": "alone", "slowdown": {"estimate": 1.0}, "of_others": []});
        }
        match self.measured_together(device, shared_by, tasks) {
            Some(measured) => measured,
            None => self.predicted(device, shared_by, tasks).unwrap_or_else(|why| none(&why)),
        }
    }

    /// As the newest report with the same group has it.
    fn measured_together(&self, device: &DeviceRecord, shared_by: SharedBy, tasks: &[&Asked<'_>]) -> Option<Json> {
        let measured = self.measured_on(device)?;
        let members: Vec<Arc<Member>> = tasks.iter().map(|asked| asked.member.clone()).collect::<Option<_>>()?;
        let mode = sharing::parse(shared_by.as_str()).ok()?;
        // A slowdown is of the time in which all train, whatever members do at their end.
        let group = [None, Some(AfterMeasured::KeepRunning), Some(AfterMeasured::Exit)].into_iter().find_map(|after| {
            let record = Cell::new(members.iter().map(|member| (member.clone(), 1)), mode.clone(), after).record(1);
            Some((measured.of(&record)?, record))
        });
        let (known, record) = group?;
        let mut taken = vec![false; record.members.len()];
        let slowdown = |member: &Arc<Member>| {
            let place = (0..taken.len()).find(|at| !taken[*at] && record.members[*at].is_same(&member.spec()))?;
            taken[place] = true;
            Some(json!(known.slowdowns.get(place)?.as_ref()?))
        };
        let slowdowns: Vec<Json> = members.iter().map(slowdown).collect::<Option<_>>()?;
        Some(answer(tasks, slowdowns, json!({"from": "measured", "campaign": known.campaign, "simulated": device.simulated})))
    }

    /// By the nearest predictor; or why there is none.
    fn predicted(&self, device: &DeviceRecord, shared_by: SharedBy, tasks: &[&Asked<'_>]) -> Result<Json, String> {
        let mode = match shared_by {
            SharedBy::Naive => CompanyMode::Naive,
            SharedBy::Mps => CompanyMode::Mps,
        };
        let target = Target { gpu: Some(device.name.clone()), simulated: device.simulated, ..Target::default() };
        let chosen = choose(self.predictors.company.iter(), &target)
            .ok_or("no predictor of company serves this GPU: `collo predict list`")?;
        let alone: Vec<Alone> = tasks
            .iter()
            .map(|asked| self.known(device, asked).alone().map_err(|what| format!("{}: {what}", asked.task.name())))
            .collect::<Result<_, _>>()?;
        let predicted = chosen.predictor.predict(mode, &alone, chosen.widened).map_err(|why| why.to_string())?;
        let value = |of: Interval| PredictedValue { estimate: of.estimate, low: of.low, high: of.high };
        if let Some(why) = predicted.why_of_another_mode(Some(mode)) {
            return Err(why);
        }
        let slowdowns = predicted.slowdown.iter().map(|slowdown| json!(value(*slowdown))).collect();
        let assumed: Vec<String> = predicted
            .extrapolated
            .iter()
            .map(ToString::to_string)
            .chain(predicted.assumed.iter().map(ToString::to_string))
            .collect();
        let from = json!({"from": "predicted", "predictor": predicted.predictor, "gain": value(predicted.gain), "assumed": assumed,
            "uncertain": why_uncertain(predicted.gain.low, predicted.gain.high).map(|why| format!("the gain is: {why}")), "simulated": device.simulated});
        Ok(answer(tasks, slowdowns, from))
    }
}

impl Known {
    /// As the predictor takes it; or what is missing.
    fn alone(&self) -> Result<Alone, String> {
        let missing =
            "its SM activity alone is neither given nor measured in this project: give `sm_active_ratio`, or run it alone";
        let compute = self.compute.or(self.busy).ok_or(missing)?;
        Ok(Alone {
            step_s: self.step_s,
            compute,
            busy: self.busy.unwrap_or(compute),
            stand_in: StandIn::of(self.compute, self.busy),
            dram: self.dram,
            memory_bytes: self.memory_bytes.map(|bytes| bytes as f64),
        })
    }
}

/// The keys of where it is from, with the slowdown of each task in their order.
fn answer(tasks: &[&Asked<'_>], slowdowns: Vec<Json>, mut from: Json) -> Json {
    let mut all = tasks.iter().zip(slowdowns);
    from["slowdown"] = all.next().map(|(_, slowdown)| slowdown).unwrap_or_default();
    let of_others = |(Asked { task, .. }, slowdown): (&&Asked<'_>, Json)| json!({"id": task.id, "workload": task.workload, "slowdown": slowdown});
    from["of_others"] = all.map(of_others).collect();
    from
}

/// Nothing is known, for a reason.
pub fn none(why: &str) -> Json {
    json!({"from": null, "slowdown": null, "why_not": why})
}
