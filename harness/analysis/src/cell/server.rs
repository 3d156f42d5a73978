//! The servers of a cell: equal members are one server with pooled requests, members of different workloads are one each. In: a
//! cell. Out: its servers, each with its quantities. It computes nothing that is not in the cell.

use collo_quantity::Key;
use collo_quantity::stats::Quantity;
use collo_store::Serving;

use super::Cell;
use crate::reading::latency::Latency;

/// A serving workload of a cell.
#[derive(Debug, Clone, Copy)]
pub struct Server<'a> {
    pub cell: &'a Cell,
    /// The label of its solo cell.
    pub solo: &'a str,
    pub workload: &'a str,
    pub serving: &'a Serving,
    /// The member, if different workloads serve.
    member: Option<usize>,
}

impl Cell {
    /// Its servers, in the order of its members.
    pub fn servers(&self) -> Vec<Server<'_>> {
        let each = self.members.iter().enumerate().filter_map(|(i, m)| {
            let (solo, workload) = (m.spec.solo.as_str(), m.spec.workload.as_str());
            Some(Server { cell: self, solo, workload, serving: m.serving.as_ref()?, member: Some(i) })
        });
        let mut all: Vec<Server> = each.collect();
        if all.windows(2).all(|w| w[0].solo == w[1].solo) {
            all.truncate(1);
            all.iter_mut().for_each(|server| server.member = None);
        }
        all
    }
}

impl<'a> Server<'a> {
    /// A quantity of its requests.
    pub fn get(&self, key: Key) -> Option<&'a Quantity> {
        match self.member {
            Some(i) => self.cell.members.get(i)?.get(key),
            None => self.cell.get(key),
        }
    }

    /// Why it has no such quantity.
    pub fn absent(&self, key: Key) -> Option<&'a str> {
        let of = match self.member {
            Some(i) => &self.cell.members.get(i)?.absent,
            None => &self.cell.absent,
        };
        of.get(&key).map(String::as_str)
    }

    /// True if in some repetition more than one request in a hundred was never answered, or it was below its rate.
    pub fn leaves_unanswered(&self) -> bool {
        self.latencies().any(|l| l.get(Key::LatencyP99) == Some(f64::INFINITY))
    }

    /// True if in some repetition it was asked for more than it answers alone.
    pub fn is_overloaded(&self) -> bool {
        self.latencies().any(Latency::is_overloaded)
    }

    /// How many times as long a window has the requests that a p99 takes in every repetition; `None` where they are there.
    pub fn lacks_times(&self) -> Option<usize> {
        self.latencies().filter_map(Latency::lacks_times).max()
    }

    /// The latency that a share of the requests exceeds, seconds, by falling share: the geometric mean over repetitions. It ends
    /// where a repetition has too few requests, or left too many unanswered.
    pub fn lateness(&self) -> Vec<(f64, f64)> {
        let each: Vec<&Latency> = self.latencies().collect();
        let Some(first) = each.first() else { return Vec::new() };
        let mean = |i: usize| {
            let of = |l: &&Latency| l.lateness.get(i).and_then(|p| p.1).filter(|s| s.is_finite() && *s > 0.0).map(f64::ln);
            let logs = each.iter().map(of).sum::<Option<f64>>()?;
            Some((first.lateness[i].0, (logs / each.len() as f64).exp()))
        };
        (0..first.lateness.len()).map_while(mean).collect()
    }

    fn latencies(&self) -> impl Iterator<Item = &'a Latency> {
        let member = self.member;
        self.cell.counted().filter_map(move |r| match member {
            Some(i) => r.members.get(i)?.latency.as_ref(),
            None => r.latency.as_ref(),
        })
    }
}
