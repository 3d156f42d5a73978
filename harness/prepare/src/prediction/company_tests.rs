use std::path::Path;

use collo_predict::Because;
use collo_store::{CellRecord, MemberSpec, Predicted};

use super::*;
use crate::fixture::{a100, experiment, read};
use collo_plan::earlier::{MeasuredCell, MeasuredMember};
use collo_plan::expand::expand;
use collo_plan::plan::{ForecastSource, GainForecast, plan};
use collo_plan::predictors::find_of;
use collo_plan::prior::Prior;
use collo_plan::project::Project;

fn shipped() -> CompanyPredictor {
    let folder = Path::new("/nonexistent");
    find_of(&Project::at(folder), folder, "published-a100-company").expect("shipped")
}

/// The same, as if its pairs had shared naively.
fn naive() -> CompanyPredictor {
    let mut predictor = shipped();
    predictor.law.naive = predictor.law.unrecorded.take();
    predictor
}

type Known = (CellRecord, MeasuredCell);

/// A member alone, in seconds of an epoch of 1024 items, cores, and SM activity.
fn solo(spec: &MemberSpec, epoch_s: f64, cpu_ratio: f64, sm_active: Option<f64>) -> Known {
    let (cell, sharing, members) = (spec.solo.clone(), "solo".into(), vec![spec.clone()]);
    let alone = MeasuredMember {
        step_s: spec.batch_size.map(|batch| f64::from(batch) * epoch_s / 1024.0),
        epoch_time_s: Some(epoch_s),
        memory_bytes: None,
        cpu_ratio: Some(cpu_ratio),
    };
    let (sm_active_ratio, gpu_utilization_ratio) = (sm_active, sm_active);
    let known =
        MeasuredCell { throughput_gain: Some(1.0), sm_active_ratio, gpu_utilization_ratio, alone, ..MeasuredCell::default() };
    (CellRecord { cell, sharing, members, ..CellRecord::default() }, known)
}

fn measured(cells: impl IntoIterator<Item = Known>) -> Measured {
    cells.into_iter().collect()
}

fn planned(lines: &str, facts: &DeviceFacts, prior: &Prior) -> Plan {
    let experiment = match facts.kind {
        DeviceKind::Cpu => experiment(lines),
        DeviceKind::Gpu => read(&format!("name = \"mine\"\ndevice = \"gpu\"\n{lines}")).unwrap_or_else(|e| panic!("{e}")),
    };
    plan(&experiment, &expand(&experiment, None).unwrap_or_else(|e| panic!("{e}")), facts, prior)
}

fn cpu() -> DeviceFacts {
    DeviceFacts::of_cpu(2, 24 << 30)
}

fn specs(plan: &Plan) -> Vec<MemberSpec> {
    let mut all: Vec<MemberSpec> = plan.cells.iter().flat_map(|planned| planned.record.members.clone()).collect();
    all.dedup();
    all
}

fn claims(plan: &Plan, facts: &DeviceFacts, measured: &Measured) -> Vec<PredictedCell> {
    claims_by(&shipped(), 1.0, plan, facts, measured)
}

fn claims_by(
    predictor: &CompanyPredictor,
    widened: f64,
    plan: &Plan,
    facts: &DeviceFacts,
    measured: &Measured,
) -> Vec<PredictedCell> {
    let company = Chosen { predictor, widened, because: Because::Published };
    Groups { facts, measured, members: &[], company: &company, alone: None }.claims(plan)
}

fn record(plan: &Plan, degree: u32) -> &CellRecord {
    &plan.cells.iter().find(|planned| planned.record.degree == degree).expect("planned").record
}

#[test]
fn a_group_is_predicted_from_its_members_alone_and_equal_members_are_slowed_down_alike() {
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n", &cpu(), &Prior::default());
    let measured = measured([solo(&specs(&plan)[0], 1.6, 2.0, None)]);
    let [claim] = &claims(&plan, &cpu(), &measured)[..] else { panic!("one group") };
    let company = claim.company.as_ref().expect("predicted");
    assert_eq!((claim.cell.as_str(), company.from), (record(&plan, 2).cell.as_str(), AloneFrom::Measured));
    let [a, b] = &company.slowdowns[..] else { panic!("two members") };
    assert_eq!(a, b);
    assert!(a.estimate > 1.0 && a.low < a.estimate && a.estimate < a.high, "each has all cores alone: {a:?}");
    assert!((company.stp.estimate - 2.0 / a.estimate).abs() < 1e-9 && (company.fairness.estimate - 1.0).abs() < 1e-9);
    assert_eq!(company.throughput_gain, Some(company.stp), "who keeps running gains what they gain together");
    assert_eq!(company.power_w, None, "nobody knows the power of a CPU");
}

#[test]
fn members_that_leave_much_idle_cost_less_than_those_that_need_all() {
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n", &cpu(), &Prior::default());
    let stp = |cores: f64| {
        let measured = measured([solo(&specs(&plan)[0], 1.6, cores, None)]);
        claims(&plan, &cpu(), &measured)[0].company.as_ref().expect("predicted").stp.estimate
    };
    assert!(stp(0.4) > stp(1.0) && stp(1.0) > stp(2.0), "{} {} {}", stp(0.4), stp(1.0), stp(2.0));
}

#[test]
fn a_group_that_members_leave_gains_less_the_more_their_epochs_differ() {
    let lines = "[[group]]\nmembers = [{ workload = \"tiny\" }, { workload = \"small\" }]\n";
    let plan = planned(lines, &cpu(), &Prior::default());
    let all = specs(&plan);
    let of = |workload: &str| all.iter().find(|spec| spec.workload == workload).expect("a member");
    let gain = |small_s: f64| {
        let measured = measured([solo(of("tiny"), 1.6, 1.0, None), solo(of("small"), small_s, 1.0, None)]);
        claims(&plan, &cpu(), &measured)[0].company.clone().expect("predicted")
    };
    let (alike, apart) = (gain(1.6), gain(16.0));
    let value = |company: &PredictedCompany| company.throughput_gain.expect("epochs are known").estimate;
    assert!(value(&alike) > value(&apart) && value(&apart) > 1.0 && value(&apart) < 1.1, "{} {}", value(&alike), value(&apart));
    assert!(value(&apart) < apart.stp.estimate, "alone at the end the longer one gains nothing");
}

#[test]
fn who_was_never_alone_here_is_the_reason_why_nothing_is_predicted() {
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n", &cpu(), &Prior::default());
    let [claim] = &claims(&plan, &cpu(), &Measured::default())[..] else { panic!("one group") };
    assert_eq!(claim.company, None);
    let why = claim.reason.as_deref().expect("a reason");
    insta::assert_snapshot!(why, @"the CPU load of `tiny solo b32` alone is neither measured on this device nor predicted");
}

#[test]
fn on_a_gpu_activity_is_what_counts_and_what_is_predicted_of_a_member_is_said() {
    let gpu = a100();
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 3]\nsharing = [\"naive\", \"mps\"]\n", &gpu, &Prior::default());
    let measured = measured([solo(&specs(&plan)[0], 1.6, 1.0, Some(0.3))]);
    let all = claims(&plan, &gpu, &measured);
    let company = |mode: &str| all.iter().find(|c| c.cell.contains(mode)).and_then(|c| c.company.as_ref()).expect("predicted");
    assert_eq!(company("mps").slowdowns.len(), 3);
    assert!(!company("mps").extrapolated.is_empty(), "pairs were measured, not three");
    assert!(company("naive").assumed.iter().any(|what| what.contains("mode")), "{:?}", company("naive").assumed);
    let value = |estimate: f64| Some(PredictedValue { estimate, low: estimate, high: estimate });
    let alone = PredictedAlone {
        sm_active_ratio: value(0.3),
        gpu_utilization_ratio: value(0.3),
        items_per_s: value(640.0),
        ..PredictedAlone::default()
    };
    let solo = specs(&plan)[0].solo.clone();
    let member = PredictedMember { solo, mps: false, memory: None, alone: Some(alone), graph: None, reason: None };
    let predictor = shipped();
    let chosen = Chosen { predictor: &predictor, widened: 1.0, because: Because::Published };
    let nothing = Measured::default();
    let groups = Groups { facts: &gpu, measured: &nothing, members: &[member], company: &chosen, alone: None };
    let by_prediction = groups.claims(&plan);
    let of = by_prediction.iter().find(|c| c.cell.contains("mps")).and_then(|c| c.company.as_ref()).expect("predicted");
    assert_eq!((of.from, of.stp), (AloneFrom::Predicted, company("mps").stp), "the same numbers, from elsewhere");
}

#[test]
fn of_instances_nothing_is_said_by_who_has_seen_none() {
    let gpu = a100();
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 3]\nsharing = \"mig\"\n", &gpu, &Prior::default());
    let measured = measured([solo(&specs(&plan)[0], 1.6, 1.0, Some(0.3))]);
    let [claim] = &claims(&plan, &gpu, &measured)[..] else { panic!("one group") };
    insta::assert_snapshot!(claim.reason.as_deref().expect("a reason"), @"the predictor has no coefficients for mig: no groups were measured so");
}

#[test]
fn a_step_of_another_batch_size_is_no_measurement_of_this_one() {
    let lines = "[axes]\nworkload = \"tiny\"\nbatch_size = 64\ndegree = [1, 2]\n";
    let plan = planned(lines, &cpu(), &Prior::default());
    let spec = specs(&plan)[0].clone();
    let mut other = solo(&MemberSpec { batch_size: Some(32), ..spec.clone() }, 1.6, 1.0, None);
    let mut own = solo(&spec, 1.5, 1.0, None);
    let from = |cells: Vec<Known>| {
        let all = claims(&plan, &cpu(), &measured(cells));
        all[0].company.as_ref().map(|company| company.from).ok_or_else(|| all[0].reason.clone())
    };
    assert_eq!(from(vec![own.clone(), other.clone()]), Ok(AloneFrom::Measured));
    own.1.alone.step_s = None;
    assert_eq!(from(vec![own.clone(), other.clone()]), Ok(AloneFrom::Predicted), "its pace was not read");
    let all = claims(&plan, &cpu(), &measured([own]));
    let company = all[0].company.as_ref().expect("predicted");
    let is_assumed = company.assumed.iter().any(|what| what.contains("steps"));
    assert!(company.from == AloneFrom::Measured && is_assumed, "an unknown step is assumed, not predicted: {company:?}");
    other.1.alone.cpu_ratio = None;
    assert!(from(vec![other]).is_err(), "how busy it is with another batch size says nothing");
}

#[test]
fn a_plan_has_the_predicted_gain_until_there_is_a_measured_one() {
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n";
    let bare = planned(lines, &cpu(), &Prior::default());
    let alone = solo(&specs(&bare)[0], 1.6, 2.0, None);
    let cells = claims_by(&naive(), 1.0, &bare, &cpu(), &measured([alone.clone()]));
    let mut predicted = crate::fixture::claims(1.0, 0.5);
    predicted.cells = cells;
    let gain = |cells: Vec<Known>| -> Option<GainForecast> {
        let prior = Prior { measured: measured(cells), predicted: Some(predicted.clone()), ..Prior::default() };
        let plan = planned(lines, &cpu(), &prior);
        assert_eq!(plan.cells[0].forecast.gain, None, "a member alone gains nothing");
        plan.cells[1].forecast.gain
    };
    let by_prediction = gain(vec![alone.clone()]).expect("predicted");
    assert!(by_prediction.source == ForecastSource::Predicted && by_prediction.bounds.is_some());
    let group = record(&bare, 2);
    let together = (group.clone(), MeasuredCell { throughput_gain: Some(1.23), ..MeasuredCell::default() });
    let measured = gain(vec![together, alone]).expect("measured");
    assert_eq!(measured, GainForecast { estimate: 1.23, bounds: None, source: ForecastSource::Measured });
}

#[test]
fn a_plan_has_no_gain_that_is_too_uncertain_and_none_of_naive_sharing_beyond_its_law() {
    let gpu = a100();
    let lines = "[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3]\nsharing = [\"naive\", \"mps\"]\n";
    let bare = planned(lines, &gpu, &Prior::default());
    let known = measured([solo(&specs(&bare)[0], 1.6, 1.0, Some(0.3))]);
    let why = |predictor: &CompanyPredictor, widened: f64, mode: &str, degree: u32| {
        let all = claims_by(predictor, widened, &bare, &gpu, &known);
        let is_asked = |cell: &PlannedCell| cell.record.degree == degree && cell.record.sharing == mode;
        let label = &bare.cells.iter().find(|cell| is_asked(cell)).expect("planned").record.cell;
        let claim = all.iter().find(|claim| claim.cell == *label).and_then(|claim| claim.company.clone()).expect("predicted");
        claim.gain_withheld.unwrap_or_default()
    };
    let unrecorded = "the sharing mode of the predictor's groups is not recorded, and naive sharing may gain far less";
    assert_eq!([2, 3].map(|degree| why(&shipped(), 1.0, "naive", degree)), [unrecorded; 2]);
    assert_eq!(why(&naive(), 1.0, "naive", 2), "", "as its groups shared");
    let beyond = "only groups of up to 2 members were measured under naive sharing, and this one has 3";
    assert_eq!(why(&naive(), 1.0, "naive", 3), beyond);
    assert_eq!(why(&shipped(), 1.0, "mps", 2), "");
    insta::assert_snapshot!(why(&shipped(), 3.0, "mps", 3), @"its interval, 0.828 to 9.62, spans a factor of 11.6");
    // Neither its time nor its gain is planned with; that of MPS is, with its bounds.
    let predicted = Predicted { cells: claims(&bare, &gpu, &known), ..crate::fixture::claims(1.0, 0.5) };
    let plan = planned(lines, &gpu, &Prior { measured: known.clone(), predicted: Some(predicted), ..Prior::default() });
    for cell in plan.cells.iter().filter(|cell| cell.record.degree > 1) {
        let is_known = cell.record.sharing == "mps" && cell.record.degree == 2;
        assert_eq!(cell.forecast.gain.is_some(), is_known, "{}", cell.record.cell);
    }
}
