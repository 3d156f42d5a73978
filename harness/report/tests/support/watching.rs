//! Campaigns whose cells say who watches them, with what each observer truly costs.

use collo_store::{
    COLLO_SAMPLES, DaemonCost, MONITOR, NOBODY_WATCHES, ObserverOutcome, ObserverRecord, Outcome, PROFILER, observer_name,
};

use super::{Fixture, spec, truth};

/// An observer and the truth about it.
#[derive(Clone)]
pub struct Watches {
    pub record: ObserverRecord,
    /// Cores that it keeps busy while it watches.
    pub cores: Option<f64>,
    pub bytes_per_s: Option<f64>,
    /// CPU time of the members ÷ that of nobody.
    pub members_cpu: f64,
}

/// Nobody, collo or a program that watched to the end.
pub fn observer(name: &str) -> ObserverRecord {
    let of = observer_name(name);
    let (place, kind) = match of {
        NOBODY_WATCHES => (None, None),
        COLLO_SAMPLES => (None, Some(MONITOR)),
        "torch-profiler" => (Some("inside"), Some(PROFILER)),
        "py-spy" => (Some("beside"), Some(PROFILER)),
        _ => (Some("beside"), Some(MONITOR)),
    };
    ObserverRecord {
        name: name.into(),
        place: place.map(String::from),
        kind: kind.map(String::from),
        disturbs: (of == "dcgmi").then(|| "it takes the GPU's hardware counters".to_string()),
        commands: Vec::new(),
        outcome: ObserverOutcome::Watched,
        from_ns: None,
        to_ns: None,
        ended_ns: None,
        cpu_time_s: None,
        peak_rss_bytes: (place == Some("beside")).then_some(8 << 20),
        bytes_written: None,
        daemons: if of == "dcgmi" {
            vec![DaemonCost { name: "nv-hostengine".into(), pid: 77, cpu_time_s: None, rss_bytes: Some(20 << 20) }]
        } else {
            Vec::new()
        },
        collo_cpu_time_s: Some(0.05),
        log_tail: Vec::new(),
    }
}

/// Spans of a run: from and to, nanoseconds.
pub struct Moments {
    pub whole: (u64, u64),
    pub watched: (u64, u64),
    /// Its measured epochs.
    pub measured: (u64, u64),
}

/// What an observer beside the members needs to end.
const TO_END_NS: u64 = 200_000_000;

impl Watches {
    /// The record of a run. It is as busy until it has ended; what runs inside writes in measured epochs.
    pub fn record(&self, Moments { whole, watched, measured }: Moments) -> ObserverRecord {
        let seconds = |(from_ns, to_ns): (u64, u64)| (to_ns - from_ns) as f64 / 1e9;
        let mut record = ObserverRecord { from_ns: Some(watched.0), to_ns: Some(watched.1), ..self.record.clone() };
        let lived = (watched.0, watched.1 + TO_END_NS);
        record.ended_ns = self.cores.map(|_| lived.1);
        record.cpu_time_s = self.cores.map(|cores| cores * seconds(lived));
        let recorded = match record.place.as_deref() {
            Some("beside") => watched,
            Some("inside") => measured,
            _ => whole,
        };
        record.bytes_written = self.bytes_per_s.map(|rate| (rate * seconds(recorded)) as u64);
        record.daemons.iter_mut().for_each(|daemon| daemon.cpu_time_s = Some(0.02 * seconds(watched)));
        record
    }
}

impl Fixture {
    /// `degree` members of `tiny` under the eyes of an observer, whose epochs take `epoch_s`.
    pub fn watched(mut self, observer_name: &str, degree: u32, epoch_s: f64) -> Self {
        let (who, sharing) = if degree == 1 { ("tiny".to_string(), "solo") } else { (format!("tiny×{degree}"), "naive") };
        let label = |by: &str| format!("{who} {sharing} b32 {by}");
        let n = degree as usize;
        let mut cell = truth(label(observer_name), sharing, vec![spec("tiny", 32); n], vec![epoch_s; n], vec![0.6; n]);
        let is_nobody = observer_name == NOBODY_WATCHES;
        cell.record.baseline = is_nobody;
        cell.record.against = if is_nobody { Vec::new() } else { vec![label(NOBODY_WATCHES)] };
        cell.record.observe = Some(observer_name.into());
        let record = observer(observer_name);
        let beside = record.place.as_deref() == Some("beside");
        cell.watched = Some(Watches {
            cores: beside.then_some(0.05),
            bytes_per_s: (!is_nobody).then_some(1000.0),
            members_cpu: 1.0,
            record,
        });
        self.cells.push(cell);
        self
    }

    /// The observer of the last cell, as `change` makes it.
    pub fn watching(mut self, change: impl FnOnce(&mut Watches)) -> Self {
        change(self.cells.last_mut().and_then(|cell| cell.watched.as_mut()).expect("a watched cell"));
        self
    }

    /// The last cell's observer is lost.
    pub fn loses_its_observer(self, reason: &str) -> Self {
        let outcome = ObserverOutcome::EndedEarly { reason: reason.into() };
        let said = format!("the observer {}", outcome.text());
        self.watching(|watches| watches.record.outcome = outcome).ends(Outcome::ObserverLost { reason: said })
    }
}

/// One small network under four observers: `collo` and `top` cost nothing, `py-spy` a tenth, the profiler two fifths.
pub fn tools() -> Fixture {
    let mut fixture = Fixture::named("profiling-tools")
        .watched(NOBODY_WATCHES, 1, 1.0)
        .watched("collo:10Hz", 1, 1.0)
        .watched("top", 1, 1.001)
        .watched("py-spy", 1, 1.1)
        .watched("torch-profiler", 1, 1.42)
        .watching(|watches| (watches.bytes_per_s, watches.members_cpu) = (Some(2.5e6), 1.6))
        .repetitions(4);
    (fixture.shared_noise, fixture.member_noise) = (0.004, 1e-4);
    fixture
}
