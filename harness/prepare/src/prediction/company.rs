//! What is predicted of the groups of a plan. In: what each member does alone, measured or predicted; a predictor of company. Out: the
//! claims, each with where its members' profiles come from; or why there is none.

use collo_predict::utilisation::{StoredStep, step_time};
use collo_predict::{Alone, Chosen, CompanyMode, CompanyPrediction, CompanyPredictor, Interval, Slice, StandIn, why_uncertain};
use collo_store::{
    AfterMeasured, AloneFrom, MemberSpec, PredictedAlone, PredictedCell, PredictedCompany, PredictedMember, PredictedValue,
};

use super::alone::{AlonePredictor, value};
use collo_plan::earlier::{Measured, MeasuredCell};
use collo_plan::facts::{DeviceFacts, DeviceKind};
use collo_plan::plan::{Plan, PlannedCell, in_company_s};

/// What groups are predicted from.
pub struct Groups<'a> {
    pub facts: &'a DeviceFacts,
    pub measured: &'a Measured,
    pub members: &'a [PredictedMember],
    pub company: &'a Chosen<'a, CompanyPredictor>,
    /// Absent on a CPU, and where none serves the card.
    pub alone: Option<AlonePredictor<'a>>,
}

/// A member alone, and from where that is known.
struct Profile {
    alone: Alone,
    from: AloneFrom,
}

impl Groups<'_> {
    /// Of every group of a plan whose members train.
    pub fn claims(&self, plan: &Plan) -> Vec<PredictedCell> {
        let groups = plan.cells.iter().filter(|planned| planned.record.members.len() > 1 && planned.cell.observe().is_none());
        let claim = |planned: &PlannedCell| {
            let (company, reason) = match self.company(planned) {
                Ok(company) => (Some(company), None),
                Err(reason) => (None, Some(reason)),
            };
            PredictedCell { cell: planned.record.cell.clone(), company, reason }
        };
        groups.map(claim).collect()
    }

    fn company(&self, planned: &PlannedCell) -> Result<PredictedCompany, String> {
        if planned.cell.members().any(|member| member.serving_window().is_some()) {
            return Err("a member serves, and answers have no epochs".into());
        }
        let record = &planned.record;
        let mode = CompanyMode::of(&record.mode)
            .ok_or_else(|| format!("nothing is predicted of members that share as `{}`", record.sharing))?;
        let profiles: Result<Vec<Profile>, String> = record.members.iter().map(|spec| self.profile(spec)).collect();
        if mode == CompanyMode::Mig {
            let slices = self.slices(planned)?;
            let said = self.company.predictor.predict_on_slices(&slices, self.company.widened).map_err(|e| e.to_string())?;
            let from =
                if slices.iter().all(|slice| slice.slowdown.is_some()) { AloneFrom::Measured } else { AloneFrom::Predicted };
            return Ok(self.claim(planned, &said, profiles.ok().as_deref(), from));
        }
        let profiles = profiles?;
        let alone: Vec<Alone> = profiles.iter().map(|profile| profile.alone).collect();
        let said = self.company.predictor.predict(mode, &alone, self.company.widened).map_err(|e| e.to_string())?;
        let from = profiles.iter().map(|profile| profile.from).max().unwrap_or(AloneFrom::Predicted);
        Ok(self.claim(planned, &said, Some(&profiles), from))
    }

    fn claim(
        &self,
        planned: &PlannedCell,
        said: &CompanyPrediction,
        profiles: Option<&[Profile]>,
        from: AloneFrom,
    ) -> PredictedCompany {
        let throughput_gain = self.throughput_gain(planned, said);
        PredictedCompany {
            slowdowns: said.slowdown.iter().copied().map(value).collect(),
            stp: value(said.gain),
            throughput_gain,
            fairness: value(said.fairness),
            power_w: profiles.and_then(|profiles| self.power_w(said, profiles)),
            from,
            extrapolated: said.extrapolated.iter().map(ToString::to_string).collect(),
            assumed: said.assumed.iter().map(ToString::to_string).collect(),
            gain_withheld: said.why_of_another_mode(CompanyMode::of(&planned.record.mode)).or_else(|| {
                let PredictedValue { low, high, .. } = throughput_gain.unwrap_or(value(said.gain));
                why_uncertain(low, high)
            }),
        }
    }

    /// Members that exit leave others alone: then it is the time of all of them in turn over the time until the last has left.
    fn throughput_gain(&self, planned: &PlannedCell, said: &CompanyPrediction) -> Option<PredictedValue> {
        let record = &planned.record;
        if record.after_measured == AfterMeasured::KeepRunning {
            return Some(value(said.gain));
        }
        let alone_s = |spec: &MemberSpec| self.measured.alone(spec)?.alone.epoch_time_s;
        let alone_s: Vec<f64> = record.members.iter().map(alone_s).collect::<Option<_>>()?;
        let slowdowns: Vec<f64> = said.slowdown.iter().map(|slowdown| slowdown.estimate).collect();
        let gain = alone_s.iter().sum::<f64>() / in_company_s(record.after_measured, &alone_s, &slowdowns);
        // As uncertain as their pace together.
        let of = |bound: f64| gain * bound / said.gain.estimate;
        Some(PredictedValue { estimate: gain, low: of(said.gain.low), high: of(said.gain.high) })
    }

    /// Of all members together: each keeps the card as busy as alone, in proportion to its pace.
    fn power_w(&self, said: &CompanyPrediction, profiles: &[Profile]) -> Option<PredictedValue> {
        let dram: Vec<f64> = profiles.iter().map(|profile| profile.alone.dram).collect::<Option<_>>()?;
        let at_pace = |alone: &[f64]| {
            let of = |slowdown: fn(&Interval) -> f64| -> f64 {
                alone.iter().zip(&said.slowdown).map(|(share, own)| share / slowdown(own)).sum()
            };
            // The faster a member is beside the others, the busier is the card.
            Interval { estimate: of(|own| own.estimate), low: of(|own| own.high), high: of(|own| own.low) }
        };
        let compute: Vec<f64> = profiles.iter().map(|profile| profile.alone.compute).collect();
        self.alone.as_ref()?.power_w(at_pace(&compute), at_pace(&dram))
    }

    /// What a member does alone, measured where it was.
    fn profile(&self, spec: &MemberSpec) -> Result<Profile, String> {
        let measured = self.measured.alone(spec);
        let claim = self.members.iter().find(|member| member.solo == spec.solo);
        let claimed = claim.and_then(|member| member.alone.as_ref());
        let is_cpu = self.facts.kind == DeviceKind::Cpu;
        let cores = self.facts.cores_at_a_time();
        let mut from = AloneFrom::Measured;
        let mut known = |measured: Option<f64>, predicted: Option<f64>| {
            if measured.is_none() && predicted.is_some() {
                from = AloneFrom::Predicted;
            }
            measured.or(predicted)
        };
        let of = |get: fn(&PredictedAlone) -> Option<PredictedValue>| claimed.and_then(get).map(|value| value.estimate);
        let read = |get: fn(&MeasuredCell) -> Option<f64>| measured.and_then(get);
        let (compute, busy) = if is_cpu {
            // A member that computes on every core keeps all of it busy.
            let share = read(|cell| cell.alone.cpu_ratio).map(|ratio| (ratio / cores).min(1.0));
            (share, share)
        } else {
            (
                known(read(|cell| cell.sm_active_ratio), of(|alone| alone.sm_active_ratio)),
                known(read(|cell| cell.gpu_utilization_ratio), of(|alone| alone.gpu_utilization_ratio)),
            )
        };
        let unknown = |what: &str| format!("{what} of `{}` alone is neither measured on this device nor predicted", spec.solo);
        let (compute, busy) = (
            compute.ok_or_else(|| unknown(if is_cpu { "the CPU load" } else { "the SM activity" }))?,
            busy.ok_or_else(|| unknown("the utilisation"))?,
        );
        let predicted_bytes = || Some(claim?.memory.as_ref()?.training_bytes as f64);
        let batch = spec.batch_size.map(u64::from);
        let pace = of(|alone| alone.items_per_s).zip(batch).map(|(pace, batch)| batch as f64 / pace);
        let alone = Alone {
            step_s: known(read(|cell| cell.alone.step_s), self.other_step_s(spec).or(pace)),
            compute,
            busy,
            stand_in: is_cpu.then_some(StandIn::Compute),
            dram: read(|cell| cell.dram_active_ratio).or_else(|| of(|alone| alone.dram_active_ratio)),
            memory_bytes: read(|cell| cell.alone.memory_bytes).or_else(predicted_bytes),
        };
        Ok(Profile { alone, from })
    }

    /// From what was measured with other batch sizes.
    fn other_step_s(&self, spec: &MemberSpec) -> Option<f64> {
        let stored = self.measured.steps_s(spec).into_iter().map(|(batch_size, step_s)| StoredStep { batch_size, step_s });
        let stored: Vec<StoredStep> = stored.collect();
        let step = step_time(u64::from(spec.batch_size?), &stored, None).ok()?;
        Some(step.seconds.estimate)
    }

    /// The members' parts of a partitioned GPU, with what each costs where that was measured.
    fn slices(&self, planned: &PlannedCell) -> Result<Vec<Slice>, String> {
        let all = planned.cell.degree();
        let slice = |index: usize| {
            let (card, size) = (self.facts.gpu()?.card.as_ref()?, planned.seating.slice(index)?);
            // As the data set has it, from which company is fitted.
            let sms = card.profiles.iter().find(|profile| profile.name == size)?.sms?;
            let sm_share = f64::from(sms) / f64::from(card.sms?);
            let spec = planned.record.members.get(index)?;
            let label = planned.record.alone_on_slice.get(index);
            let on_slice = label.and_then(|label| self.measured.alone_on(label, spec)).and_then(|cell| cell.alone.step_s);
            let slowdown = on_slice.zip(self.measured.alone(spec).and_then(|cell| cell.alone.step_s));
            Some(Slice { sm_share, slowdown: slowdown.map(|(on_slice, whole)| on_slice / whole) })
        };
        let slices: Option<Vec<Slice>> = (0..all as usize).map(slice).collect();
        slices.ok_or_else(|| "how many SMs its slices have is not known".into())
    }
}

#[cfg(test)]
#[path = "company_tests.rs"]
mod tests;
