//! The queue of a run over time. In: its tasks and attempts. Out: how many waited, from when.

use collo_store::{AttemptRecord, Outcome, TaskEnd, TaskRecord};

/// `(nanoseconds of CLOCK_MONOTONIC, tasks that wait from then on)`, in order.
pub type Steps = Vec<(u64, u32)>;

/// Who waits: from when a task was due until its first attempt, and between attempts. A task that no card can hold never waits.
pub fn steps(began_ns: u64, tasks: &[TaskRecord], attempts: &[AttemptRecord]) -> Steps {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for task in tasks {
        let own: Vec<&AttemptRecord> = attempts.iter().filter(|a| a.task == task.task).collect();
        if own.is_empty() && task.end == TaskEnd::Never {
            continue;
        }
        changes.push((began_ns.saturating_add(task.arrives_ns), 1));
        for (i, attempt) in own.iter().enumerate() {
            changes.push((attempt.launched_ns, -1));
            let waits_again = i + 1 < own.len() || (task.end == TaskEnd::Interrupted && attempt.outcome != Outcome::Completed);
            if waits_again {
                changes.push((attempt.ended_ns, 1));
            }
        }
    }
    // Who comes at the moment at which another goes is counted after it.
    changes.sort_unstable();
    let mut steps: Steps = Vec::new();
    let mut waiting: i64 = 0;
    for (at_ns, change) in changes {
        waiting += change;
        let now = waiting.max(0) as u32;
        match steps.last_mut().filter(|last| last.0 == at_ns) {
            Some(last) => last.1 = now,
            None => steps.push((at_ns, now)),
        }
    }
    steps
}

/// Its mean length between two moments; `None` if there is no time between them.
pub fn mean(steps: &Steps, from_ns: u64, until_ns: u64) -> Option<f64> {
    let span_ns = until_ns.checked_sub(from_ns).filter(|ns| *ns > 0)?;
    let ends = steps.iter().skip(1).map(|s| s.0).chain([until_ns]);
    let waited = |((at, n), end): (&(u64, u32), u64)| end.min(until_ns).saturating_sub((*at).max(from_ns)) as f64 * f64::from(*n);
    Some(steps.iter().zip(ends).map(waited).sum::<f64>() / span_ns as f64)
}

#[cfg(test)]
mod tests {
    use collo_store::AttestationVerdict;

    use super::*;

    fn task(task: u32, arrives_ns: u64, end: TaskEnd) -> TaskRecord {
        let arrived_ns = Some(100 + arrives_ns);
        let solo = "tiny solo".into();
        TaskRecord { task, solo, epochs: 1, cards: 1, arrives_ns, arrived_ns, estimate_bytes: None, end, blocked_ns: 0 }
    }

    fn attempt(task: u32, launched_ns: u64, ended_ns: u64) -> AttemptRecord {
        let (outcome, attested) = (Outcome::Completed, AttestationVerdict::Attested);
        AttemptRecord {
            attempt: 0,
            task,
            cards: vec![0],
            launched_ns,
            settled_ns: None,
            ended_ns,
            outcome,
            newcomer: None,
            alone: true,
            attested,
        }
    }

    #[test]
    fn a_task_waits_until_its_launch_and_again_between_attempts() {
        let tasks = [task(0, 0, TaskEnd::Done), task(1, 10, TaskEnd::Done), task(2, 10, TaskEnd::Never)];
        let attempts = [attempt(0, 100, 120), attempt(1, 130, 140), attempt(1, 150, 160)];
        let steps = steps(100, &tasks, &attempts);
        assert_eq!(steps, [(100, 0), (110, 1), (130, 0), (140, 1), (150, 0)]);
        assert_eq!(mean(&steps, 100, 160), Some(0.5));
        assert_eq!(mean(&steps, 160, 160), None);
    }
}
