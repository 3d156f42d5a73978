//! Who waits, and who is asked for first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;

use collo_text::{Diagnostic, Source, nearest, quoted};

use crate::task::{Task, TaskId};

/// The order in which waiting tasks are offered to a policy, and who may pass whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// First come, first asked for. While the first waits, up to `pass` tasks behind it are asked for; each task is passed at most `pass`
    /// times.
    Fifo { pass: u32 },
    /// First come, first asked for; each time one task is placed at most, as by managers that look every so often and place the first.
    One,
    /// By believed utilisation, the greatest first; of whom nothing is believed comes before all, by arrival. All are asked for.
    Decreasing,
}

const NAMES: [&str; 2] = ["fifo", "decreasing"];

impl Discipline {
    /// `fifo`, `fifo:pass=K`, `fifo:one`, `decreasing`.
    pub fn parse(text: &str) -> Result<Discipline, Diagnostic> {
        let source = Source::argument("queue", text);
        let wrong = |what: String, span, note: String| Err(Diagnostic::new(what).at(&source, span).note(note));
        let name = text.split(':').next().unwrap_or_default();
        match (name, text.strip_prefix("fifo:")) {
            ("fifo", None) => Ok(Discipline::Fifo { pass: 0 }),
            ("decreasing", None) if text == name => Ok(Discipline::Decreasing),
            ("fifo", Some("one")) => Ok(Discipline::One),
            ("fifo", Some(rest)) => match rest.strip_prefix("pass=").and_then(|n| n.parse().ok()) {
                Some(pass) => Ok(Discipline::Fifo { pass }),
                None => {
                    let note = "write `fifo:pass=3` or `fifo:one`".into();
                    wrong(format!("{} is no rule of a queue", quoted(rest)), 5..text.len(), note)
                }
            },
            _ => {
                let near = nearest(name, NAMES).map(|near| format!("did you mean `{near}`?"));
                let note = near.unwrap_or_else(|| "one of `fifo`, `fifo:pass=3` or `decreasing`".into());
                wrong(format!("unknown queue {}", quoted(text)), 0..text.len(), note)
            }
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Discipline::Fifo { pass: 0 } => f.write_str("fifo"),
            Discipline::Fifo { pass } => write!(f, "fifo:pass={pass}"),
            Discipline::One => f.write_str("fifo:one"),
            Discipline::Decreasing => f.write_str("decreasing"),
        }
    }
}

/// What decides between two waiting tasks; the least comes first.
type Rank = (Reverse<u32>, u64, TaskId);

/// The waiting tasks. Who waits for a further attempt is asked for before all others.
#[derive(Debug)]
pub(crate) struct Queue {
    pub discipline: Discipline,
    waiting: BTreeSet<Rank>,
    recovering: BTreeSet<Rank>,
    /// Those who wait for their first attempt by what they ask for: cards, and whether there is an estimate; the least first.
    asking: BTreeMap<(u32, bool), BTreeSet<(u64, TaskId)>>,
}

impl Queue {
    pub fn new(discipline: Discipline) -> Queue {
        Queue { discipline, waiting: BTreeSet::new(), recovering: BTreeSet::new(), asking: BTreeMap::new() }
    }

    fn rank(&self, task: &Task) -> Rank {
        let greatest = match self.discipline {
            Discipline::Fifo { .. } | Discipline::One => 0,
            Discipline::Decreasing => task.believed_permille.unwrap_or(u32::MAX),
        };
        (Reverse(greatest), task.arrives_ns, task.id)
    }

    pub fn add(&mut self, task: &Task, recovers: bool) {
        let rank = self.rank(task);
        if recovers {
            self.recovering.insert(rank);
        } else {
            self.waiting.insert(rank);
            let class = self.asking.entry((task.cards, task.estimate_bytes.is_some())).or_default();
            class.insert((task.estimate_bytes.unwrap_or_default(), task.id));
        }
    }

    pub fn remove(&mut self, task: &Task, recovers: bool) {
        let rank = self.rank(task);
        if recovers {
            self.recovering.remove(&rank);
            return;
        }
        self.waiting.remove(&rank);
        let key = (task.cards, task.estimate_bytes.is_some());
        if let Some(class) = self.asking.get_mut(&key) {
            class.remove(&(task.estimate_bytes.unwrap_or_default(), task.id));
            if class.is_empty() {
                self.asking.remove(&key);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.recovering.is_empty()
    }

    pub fn recovering(&self) -> Vec<TaskId> {
        self.recovering.iter().map(|rank| rank.2).collect()
    }

    pub fn first_recovering(&self) -> Option<TaskId> {
        self.recovering.first().map(|rank| rank.2)
    }

    /// Who waits for its first attempt, behind this one or first of all.
    pub fn after(&self, behind: Option<&Task>) -> Option<TaskId> {
        let from = behind.map_or(Bound::Unbounded, |task| Bound::Excluded(self.rank(task)));
        self.waiting.range((from, Bound::Unbounded)).next().map(|rank| rank.2)
    }

    /// Of those behind the first, the ones that ask for least; if none of these fits anywhere, nobody does.
    pub fn modest(&self) -> Vec<TaskId> {
        let Some(first) = self.after(None) else { return Vec::new() };
        self.asking.values().filter_map(|class| class.iter().map(|asks| asks.1).find(|id| *id != first)).collect()
    }

    /// Everybody, who recovers first; nobody waits any longer.
    pub fn drain(&mut self) -> Vec<TaskId> {
        self.asking.clear();
        let all = [std::mem::take(&mut self.recovering), std::mem::take(&mut self.waiting)];
        all.into_iter().flatten().map(|rank| rank.2).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, arrives_ns: u64, believed_permille: Option<u32>) -> Task {
        Task { id: TaskId(id), arrives_ns, cards: 1, estimate_bytes: None, believed_permille }
    }

    fn order_of(discipline: Discipline, tasks: &[Task]) -> Vec<u32> {
        let mut queue = Queue::new(discipline);
        tasks.iter().for_each(|task| queue.add(task, false));
        queue.drain().into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn who_comes_first_depends_on_the_discipline() {
        let tasks = [task(1, 30, Some(200)), task(2, 20, Some(900)), task(3, 10, None)];
        assert_eq!(order_of(Discipline::Fifo { pass: 0 }, &tasks), [3, 2, 1]);
        assert_eq!(order_of(Discipline::Decreasing, &tasks), [3, 2, 1]);
        let tasks = [task(1, 10, Some(200)), task(2, 20, Some(900)), task(3, 20, Some(900))];
        assert_eq!(order_of(Discipline::Fifo { pass: 0 }, &tasks), [1, 2, 3]);
        assert_eq!(order_of(Discipline::Decreasing, &tasks), [2, 3, 1]);
    }

    #[test]
    fn who_recovers_waits_apart_and_who_was_placed_waits_no_longer() {
        let mut queue = Queue::new(Discipline::Decreasing);
        let [one, two, three] = [task(1, 0, Some(300)), task(2, 0, Some(600)), task(3, 0, Some(100))];
        queue.add(&one, false);
        queue.add(&two, true);
        queue.add(&three, false);
        assert_eq!(
            (queue.recovering(), queue.after(None), queue.after(Some(&one))),
            (vec![two.id], Some(one.id), Some(three.id))
        );
        queue.remove(&two, true);
        queue.remove(&one, false);
        assert_eq!((queue.first_recovering(), queue.after(None)), (None, Some(three.id)));
        queue.remove(&three, false);
        assert!(queue.is_empty() && queue.asking.is_empty());
    }

    #[test]
    fn of_those_behind_the_first_the_least_of_each_kind_speaks_for_all() {
        let mut queue = Queue::new(Discipline::Fifo { pass: 0 });
        let asks = |id: u32, cards, estimate_bytes| Task { cards, estimate_bytes, ..task(id, u64::from(id), None) };
        for one in [asks(0, 1, Some(3)), asks(1, 1, Some(9)), asks(2, 1, Some(5)), asks(3, 2, Some(1)), asks(4, 1, None)] {
            queue.add(&one, false);
        }
        assert_eq!(queue.modest(), [TaskId(4), TaskId(2), TaskId(3)]);
    }

    #[test]
    fn a_queue_reads_back_as_it_is_written_and_a_slip_finds_its_word() {
        for text in ["fifo", "fifo:pass=3", "fifo:one", "decreasing"] {
            assert_eq!(Discipline::parse(text).expect("known").to_string(), text);
        }
        assert_eq!(Discipline::parse("fif").expect_err("unknown").way_out(), Some("did you mean `fifo`?"));
        for wrong in ["fifo:pass=", "fifo:pas=3", "fifo:", "fifo:two", "decreasing:pass=1", "decreasing:one", "shortest", ""] {
            assert!(Discipline::parse(wrong).is_err(), "{wrong}");
        }
    }
}
