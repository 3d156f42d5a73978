//! Each guideline's answers on campaigns with known truth. In: scenarios and seeds. Out: how often each answer was given, and how often
//! it was wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use collo_guidelines::rule::Guideline;
use collo_guidelines::verdict::{Agreement, Holds};
use collo_report::Report;

use super::scenarios::{Scenario, Wrong};

/// The guidelines whose advice is to do what their key figure's cell did: its whole interval should lie on the side that they name.
const ADVISE_THEIR_KEY: [&str; 4] = ["collocate", "best-mode", "least-energy", "mixing"];

/// The answers of one guideline over the campaigns of one scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub campaigns: usize,
    pub yes: usize,
    pub no: usize,
    pub open: usize,
    /// Not asked of this campaign at all.
    pub absent: usize,
    pub wrong: usize,
    /// *Agrees: yes* with a published statement that is not true here.
    pub wrongly_agrees: usize,
    /// Advice whose key figure is not distinguishable from 1.
    pub undecided_key: usize,
}

impl Tally {
    fn count(&mut self, wrong: Wrong, unlike_published: bool, found: Option<&Guideline>) {
        self.campaigns += 1;
        let Some(guideline) = found else {
            self.absent += 1;
            return;
        };
        match guideline.holds {
            Holds::Yes => self.yes += 1,
            Holds::No => self.no += 1,
            Holds::Open => self.open += 1,
        }
        self.wrong += usize::from(match guideline.holds {
            Holds::Yes => wrong == Wrong::Yes,
            Holds::No => wrong == Wrong::No,
            Holds::Open => false,
        });
        self.wrongly_agrees += usize::from(unlike_published && guideline.agrees == Agreement::Yes);
        self.undecided_key += usize::from(guideline.holds == Holds::Yes && has_undecided_key(guideline));
    }

    /// The share of campaigns with a wrong answer.
    pub fn wrong_ratio(&self) -> f64 {
        self.wrong as f64 / self.campaigns as f64
    }
}

fn has_undecided_key(guideline: &Guideline) -> bool {
    let key = guideline.key.as_ref().filter(|_| ADVISE_THEIR_KEY.contains(&guideline.id.as_str()));
    key.is_some_and(|key| match (key.value.low, key.value.high) {
        (Some(low), Some(high)) => low <= 1.0 && 1.0 <= high,
        _ => true,
    })
}

/// Write the campaign of a seed, and judge it.
pub fn report(scenario: &Scenario, seed: u64) -> Report {
    // Each run is flushed: where there is a file system in memory, it is used.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    let fixture = (scenario.of)(seed);
    let campaign = fixture.write(folder.path());
    if let Some(mode) = scenario.unmeasured {
        let plan = campaign.manifest().plan.clone();
        let of_mode = plan.order.iter().filter(|run| plan.cells[run.cell].sharing == mode);
        for run in of_mode {
            fs_err::remove_dir_all(campaign.path().join(plan.folder(run))).expect("a run to remove");
        }
    }
    Report::of(&campaign).expect("a report")
}

/// By guideline, then by scenario.
pub type Tallies = BTreeMap<&'static str, BTreeMap<&'static str, Tally>>;

/// Judge so many campaigns of each scenario, on all cores.
pub fn judge(scenarios: &[&Scenario], campaigns: usize) -> Tallies {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Tallies::new()));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(scenario), seed) = (scenarios.get(i / campaigns), (i % campaigns) as u64) else { break };
                    let report = report(scenario, 1 + seed);
                    let mut found = found.lock().expect("no thread panics with it");
                    for (id, wrong) in scenario.truths {
                        let tally = found.entry(id).or_default().entry(scenario.name).or_default();
                        tally.count(*wrong, scenario.unlike_published.contains(id), report.guideline(id));
                    }
                }
            });
        }
    });
    found.into_inner().expect("no thread panics with it")
}
