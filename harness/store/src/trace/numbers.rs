//! What the times of a trace mean, defined once: the study counts the failed attempt of a task that recovered twice, once as waiting
//! and once as executing (its public code); here completion = wait + execution, to the nanosecond.

use super::{AttemptRecord, TaskEnd, TaskRecord, TraceRecord};
use crate::Outcome;

/// The times of one task, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTimes {
    pub task: u32,
    /// In a queue: from when it was due until it was done, less `execution_ns`.
    pub wait_ns: u64,
    /// From launch until nothing was left, of all its attempts.
    pub execution_ns: u64,
    /// The same of the attempt that completed; absent if none did.
    pub completing_ns: Option<u64>,
    /// From when it was due until it was done: job completion time. Absent if it was not.
    pub completion_ns: Option<u64>,
    pub attempts: u32,
}

/// The numbers of one run of a trace that need no samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceNumbers {
    /// From the first arrival that was due until the last attempt ended; absent if nothing ran.
    pub total_ns: Option<u64>,
    /// In the order of the trace.
    pub tasks: Vec<TaskTimes>,
    /// How many tasks ended so, in the order of [`TaskEnd::ALL`].
    pub ended: [u32; 4],
    /// Time of attempts that did not complete.
    pub lost_ns: u64,
    /// Time in which the first of the queue waited and a later task would have fit.
    pub blocked_ns: u64,
    /// Attempts that ran out of memory before they had all of theirs, or had come last, or had nobody beside them.
    pub out_of_memory_newcomers: u32,
    /// Attempts that had all their memory and ran out when others had come after them: they grew, or were robbed.
    pub out_of_memory_residents: u32,
    /// Attempts at tasks that had run out of memory.
    pub recoveries: u32,
    /// How long these waited after they had run out of memory.
    pub recovery_wait_ns: u64,
    /// How late the policy was told of an arrival, at most; absent if none arrived.
    pub latest_arrival_ns: Option<u64>,
}

impl TraceNumbers {
    /// Of the tables of one run.
    pub fn of(trace: &TraceRecord, tasks: &[TaskRecord], attempts: &[AttemptRecord]) -> TraceNumbers {
        let due_ns = |task: &TaskRecord| trace.began_ns.saturating_add(task.arrives_ns);
        let lasted_ns = |a: &AttemptRecord| a.ended_ns.saturating_sub(a.launched_ns);
        let completed = |a: &&AttemptRecord| a.outcome == Outcome::Completed;
        let ran_out = |a: &AttemptRecord| matches!(a.outcome, Outcome::OutOfMemory { .. });
        let (mut recoveries, mut recovery_wait_ns) = (0, 0);
        let mut times = Vec::with_capacity(tasks.len());
        let mut of_task: Vec<Vec<&AttemptRecord>> = vec![Vec::new(); tasks.len()];
        for attempt in attempts {
            if let Some(place) = tasks.iter().position(|t| t.task == attempt.task) {
                of_task[place].push(attempt);
            }
        }
        for (task, own) in tasks.iter().zip(&of_task) {
            for pair in own.windows(2).filter(|pair| ran_out(pair[0])) {
                recoveries += 1;
                recovery_wait_ns += pair[1].launched_ns.saturating_sub(pair[0].ended_ns);
            }
            let execution_ns = own.iter().map(|a| lasted_ns(a)).sum();
            let ended_ns = own.iter().map(|a| a.ended_ns).max();
            let there_ns = ended_ns.map_or(0, |ns| ns.saturating_sub(due_ns(task)));
            times.push(TaskTimes {
                task: task.task,
                wait_ns: there_ns.saturating_sub(execution_ns),
                execution_ns,
                completing_ns: own.iter().copied().find(completed).map(lasted_ns),
                completion_ns: (task.end == TaskEnd::Done).then_some(there_ns),
                attempts: own.len() as u32,
            });
        }
        let first_ns = tasks.iter().map(due_ns).min();
        let last_ns = attempts.iter().map(|a| a.ended_ns).max();
        let is_resident = |a: &&AttemptRecord| a.newcomer == Some(false);
        let out_of_memory: Vec<&AttemptRecord> = attempts.iter().filter(|a| ran_out(a)).collect();
        let residents = out_of_memory.iter().copied().filter(is_resident).count() as u32;
        let late = |task: &TaskRecord| Some(task.arrived_ns?.saturating_sub(due_ns(task)));
        TraceNumbers {
            total_ns: first_ns.zip(last_ns).map(|(first, last)| last.saturating_sub(first)),
            tasks: times,
            ended: TaskEnd::ALL.map(|end| tasks.iter().filter(|t| t.end == end).count() as u32),
            lost_ns: attempts.iter().filter(|a| !completed(a)).map(lasted_ns).sum(),
            blocked_ns: tasks.iter().map(|t| t.blocked_ns).sum(),
            out_of_memory_newcomers: out_of_memory.len() as u32 - residents,
            out_of_memory_residents: residents,
            recoveries,
            recovery_wait_ns,
            latest_arrival_ns: tasks.iter().filter_map(late).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttestationVerdict;

    fn attempt(attempt: u32, task: u32, (launched_ns, ended_ns): (u64, u64), outcome: Outcome) -> AttemptRecord {
        AttemptRecord {
            attempt,
            task,
            cards: vec![0],
            launched_ns,
            settled_ns: None,
            ended_ns,
            outcome,
            newcomer: (attempt == 0).then_some(true),
            alone: false,
            attested: AttestationVerdict::Attested,
        }
    }

    fn task(task: u32, arrives_ns: u64, end: TaskEnd) -> TaskRecord {
        let solo = "tiny solo".to_string();
        let arrived_ns = Some(1000 + arrives_ns + 3);
        TaskRecord { task, solo, epochs: 1, cards: 1, arrives_ns, arrived_ns, estimate_bytes: None, end, blocked_ns: 4 }
    }

    #[test]
    fn a_failed_attempt_is_counted_once_and_completion_is_wait_and_execution() {
        let trace = TraceRecord { rules: serde_json::json!({}), cards: Vec::new(), began_ns: 1000, remarks: Vec::new() };
        let ran_out = Outcome::OutOfMemory { member: 0, message: "full".into() };
        let tasks = [task(0, 0, TaskEnd::Done), task(1, 50, TaskEnd::Never)];
        let attempts = [attempt(0, 0, (1010, 1030), ran_out), attempt(1, 0, (1100, 1150), Outcome::Completed)];
        let numbers = TraceNumbers::of(&trace, &tasks, &attempts);
        let of = &numbers.tasks[0];
        assert_eq!((of.wait_ns, of.execution_ns, of.completing_ns), (80, 70, Some(50)));
        assert_eq!(of.completion_ns, Some(of.wait_ns + of.execution_ns));
        assert_eq!((numbers.total_ns, numbers.lost_ns, numbers.blocked_ns), (Some(150), 20, 8));
        assert_eq!((numbers.recoveries, numbers.recovery_wait_ns), (1, 70));
        assert_eq!((numbers.out_of_memory_newcomers, numbers.out_of_memory_residents), (1, 0));
        assert_eq!((numbers.ended, numbers.latest_arrival_ns), ([1, 0, 1, 0], Some(3)));
        assert_eq!(numbers.tasks[1].completion_ns, None, "what never ran was never done");
    }
}
