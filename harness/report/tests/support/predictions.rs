//! A campaign on a GPU whose memory was predicted before: most of it well, one interval missed, one cell without a reading, one that
//! ran out of memory and was marked.

use collo_store::{
    AloneFrom, GraphNumbers, MarkedCell, Outcome, Predicted, PredictedCell, PredictedCompany, PredictedMember, PredictedMemory,
    PredictedValue, PredictorRecord,
};

use super::Fixture;
use super::card::CardTruth;

const GIB: f64 = 1073741824.0;
/// Of the intervals, as logarithms.
const WIDTH: f64 = 0.11;

pub fn graph() -> GraphNumbers {
    GraphNumbers {
        parameters: 23_500_000,
        parameter_bytes: 94_000_000,
        allocated_bytes: 3 << 30,
        reserved_bytes: 4 << 30,
        workspace_bytes: 1 << 28,
        kernels_per_step: 980,
        flops_per_item: 8.2e9,
        bytes_per_item: 2.5e8,
        precision: "fp32".into(),
        optimizer: "adam".into(),
        torch: "2.14.1".into(),
    }
}

/// What was predicted of a member, GiB.
pub fn member(workload: &str, mps: bool, estimate_gib: f64, context_runs: usize) -> PredictedMember {
    let bytes = |log: f64| (estimate_gib * log.exp() * GIB) as u64;
    let memory = PredictedMemory {
        estimate_bytes: bytes(0.0),
        training_bytes: bytes(0.0),
        low_bytes: bytes(-WIDTH),
        high_bytes: bytes(WIDTH),
        upper_bytes: bytes(WIDTH),
        least_bytes: bytes(-0.5),
        context_bytes: 541 << 20,
        context_runs,
        approximate: Vec::new(),
    };
    PredictedMember {
        solo: format!("{workload} solo b32"),
        mps,
        memory: Some(memory),
        alone: None,
        graph: Some(graph()),
        reason: None,
    }
}

/// One that cannot be predicted.
pub fn unknown(workload: &str, reason: &str) -> PredictedMember {
    PredictedMember {
        solo: format!("{workload} solo b32"),
        mps: false,
        memory: None,
        alone: None,
        graph: None,
        reason: Some(reason.into()),
    }
}

fn predictor(name: &str) -> PredictorRecord {
    PredictorRecord {
        name: name.into(),
        sha256: "cd".repeat(32),
        fitted_on: "published".into(),
        device: Some("NVIDIA A100-SXM4-40GB".into()),
        widened: 1.5,
        families: 6,
    }
}

/// The same, with what each member of a group was predicted to be slowed down by; or the reason why not.
pub fn in_company(claims: Predicted, groups: &[(&str, Result<&[f64], &str>)]) -> Predicted {
    let value = |estimate: f64| PredictedValue { estimate, low: estimate / 1.1, high: estimate * 1.1 };
    let cell = |(cell, slowdowns): &(&str, Result<&[f64], &str>)| {
        let progress = |all: &[f64]| all.iter().map(|slowdown| 1.0 / slowdown).collect::<Vec<_>>();
        let company = slowdowns.ok().map(|all| PredictedCompany {
            slowdowns: all.iter().map(|one| value(*one)).collect(),
            stp: value(progress(all).iter().sum()),
            throughput_gain: Some(value(progress(all).iter().sum())),
            fairness: value(
                progress(all).iter().fold(1.0, |a, b| f64::min(a, *b)) / progress(all).iter().fold(0.0, |a, b| f64::max(a, *b)),
            ),
            power_w: Some(value(200.0)),
            from: AloneFrom::Measured,
            assumed: Vec::new(),
            gain_withheld: None,
            extrapolated: if all.len() > 2 { vec!["no group of more than 2 was measured".into()] } else { Vec::new() },
        });
        PredictedCell { cell: cell.to_string(), company, reason: slowdowns.err().map(Into::into) }
    };
    Predicted { cells: groups.iter().map(cell).collect(), company_predictor: Some(predictor("own-company")), ..claims }
}

pub fn by(members: Vec<PredictedMember>) -> Predicted {
    Predicted {
        made_utc: "2026-11-20T18:42:09Z".into(),
        predictor: Some(predictor("published-a100")),
        utilisation_predictor: None,
        company_predictor: None,
        members,
        cells: Vec::new(),
        marked: Vec::new(),
    }
}

/// The same, with cells that the plan marked by their predictions.
pub fn marking(claims: Predicted, cells: &[&str]) -> Predicted {
    let marked = cells.iter().map(|cell| MarkedCell { cell: cell.to_string(), probability: Some(0.9) }).collect();
    Predicted { marked, ..claims }
}

pub fn card() -> CardTruth {
    CardTruth {
        sm_active_ratio: 0.5,
        idle_w: 50.0,
        power_w: 200.0,
        instances: Vec::new(),
        sources: vec![("dcgm", 1.0)],
        pcie_rx_bytes_per_s: None,
        counter_resets: false,
        counters_of_instances: false,
    }
}

/// Two modes; small and medium predicted well but for one, large too large for two, and a foreign script.
pub fn predicted() -> Fixture {
    let mut fixture = Fixture::named("predicted");
    fixture.device.name = "NVIDIA A100-SXM4-40GB".into();
    fixture.device.kind = "gpu".into();
    fixture.device.memory_bytes = Some(40 << 30);
    fixture.device.cores = None;
    fixture.samples_hz = 5.0;
    let out = Outcome::OutOfMemory { member: 1, message: "CUDA out of memory".into() };
    let cells: [(&str, &str, usize, f64); 12] = [
        ("small", "solo", 1, 2.04),
        ("small", "naive", 2, 2.06),
        ("small", "naive", 4, 2.07),
        ("small", "mps", 2, 1.75),
        ("small", "mps", 4, 1.72),
        ("medium", "solo", 1, 6.1),
        ("medium", "naive", 2, 6.4),
        ("medium", "mps", 2, 7.4),
        ("large", "solo", 1, 20.4),
        ("large", "naive", 2, 20.4),
        ("large", "mps", 2, f64::NAN),
        ("foreign", "solo", 1, 3.0),
    ];
    for (workload, sharing, degree, gib) in cells {
        let epoch_s = 1.0 + 0.4 * (degree - 1) as f64;
        fixture = fixture.on_card(sharing, &vec![(workload, epoch_s); degree], card(), 0.005).holding(gib);
        if (workload, sharing, degree) == ("large", "naive", 2) {
            fixture = fixture.ends(out.clone());
        }
    }
    let claims = by(vec![
        member("small", false, 2.0, 4),
        member("small", true, 1.7, 0),
        member("medium", false, 6.0, 4),
        member("medium", true, 5.7, 0),
        member("large", false, 21.0, 4),
        member("large", true, 20.7, 0),
        unknown("foreign", "its script does not use `collo_torch`, so it cannot be described"),
    ]);
    fixture.predicted = Some(marking(claims, &["large×2 naive b32", "large×2 mps b32"]));
    fixture
}
