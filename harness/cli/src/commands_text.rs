//! `collo plan --commands` for people: every step of a campaign, each process as a shell would start it.
//!
//! In: steps. Out: text.

use std::time::Duration;

use collo_measure::steps::{ProcessStart, Step};
use collo_quantity::number;
use collo_text::units;

use crate::shell::quoted;

/// The steps in order, a paragraph for each run.
pub fn text(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut in_run: Option<(String, u32)> = None;
    for step in steps {
        if let Step::Member { cell, repetition, block, member, gpu, start } = step {
            let run = (cell.clone(), *repetition);
            if in_run.as_ref() != Some(&run) {
                let on = gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
                text += &format!("\n{cell}, repetition {repetition}, in block {block}{on}\n");
                in_run = Some(run);
            }
            let cores = start.cores.as_ref().map(|cores| format!(" on cores {}", listed(cores))).unwrap_or_default();
            let nodes = start.memory_nodes.as_ref().map(|nodes| format!(", memory of NUMA nodes {}", listed(nodes)));
            text += &format!("  member {member}{cores}{}\n{}", nodes.unwrap_or_default(), process(start));
            continue;
        }
        if let Step::Host { cell, repetition, block, members, gpu, start } = step {
            let on = gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
            let cores = start.cores.as_ref().map(|cores| format!(" on cores {}", listed(cores))).unwrap_or_default();
            text += &format!("\n{cell}, repetition {repetition}, in block {block}{on}\n");
            text += &format!("  one process{cores} for {members} members, a thread each\n{}", process(start));
            continue;
        }
        if let Step::Task { cell, repetition, block, task, arrives_s, epochs, cards, start } = step {
            let run = (cell.clone(), *repetition);
            if in_run.as_ref() != Some(&run) {
                text +=
                    &format!("\n{cell}, repetition {repetition}, in block {block}: tasks start where and when the policy says\n");
                in_run = Some(run);
            }
            let epochs = number::count(*epochs as usize, "epoch");
            let on = if *cards == 1 { String::new() } else { format!(" on {cards} cards") };
            text += &format!("  task {task}, {epochs}{on}, arrives at {}\n{}", units::clock(*arrives_s), process(start));
            continue;
        }
        in_run = None;
        text += &match step {
            Step::Prepare { workload, start } => format!("\ndata of {workload}\n{}", process(start)),
            Step::Partition { gpu, partition } => format!("\n{gpu} is partitioned: {partition}\n"),
            Step::Pause { seconds } => {
                format!("\npause of {}\n", units::duration_text(Duration::from_secs_f64(*seconds)))
            }
            Step::StartDaemon { start } => format!("\nMPS daemon\n{}", process(start)),
            Step::StartObserver { start } => format!("  observer, once all members are ready\n{}", process(start)),
            Step::StopDaemon { pipe } => format!("  the MPS daemon at {pipe} is ended\n"),
            Step::CoolDown => "\npause until the GPU has cooled down\n".into(),
            Step::Restore { gpu, partition } => {
                let found = partition.as_ref().map(|partition| format!(", {partition}")).unwrap_or_default();
                format!("\n{gpu} is restored as found{found}\n")
            }
            Step::Member { .. } | Step::Host { .. } | Step::Task { .. } => String::new(),
        };
    }
    text
}

/// As a shell would start it: folder, environment, command.
fn process(start: &ProcessStart) -> String {
    let removed = start.environment.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| format!("-u {name}"));
    let here = std::env::var("PATH").unwrap_or_default();
    let set = start.environment.iter().filter_map(|(name, value)| {
        let value = value.as_deref()?;
        // On top of the user's own, as a person would write it.
        match value.strip_suffix(&here).filter(|own| name == "PATH" && own.ends_with(':')) {
            Some(own) => Some(format!("{name}={}\"$PATH\"", quoted(own))),
            None => Some(format!("{name}={}", quoted(value))),
        }
    });
    let words: Vec<String> = removed.chain(set).collect();
    let command: Vec<String> = start.command.iter().map(quoted).collect();
    let folder = quoted(&start.folder);
    let log = start.log.as_ref().map(|log| format!(" > {} 2>&1", quoted(log))).unwrap_or_default();
    format!("    cd {folder} && env {} \\\n      {}{log}\n", words.join(" "), command.join(" "))
}

fn listed(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_as_a_shell_would_start_it() {
        let environment = [("A", Some("1 2")), ("B", None), ("C", Some(""))];
        let start = ProcessStart {
            command: vec!["python".into(), "it's.py".into()],
            folder: "/work".into(),
            environment: environment.map(|(name, value)| (name.to_string(), value.map(str::to_string))).into(),
            cores: Some(vec![0, 2]),
            memory_nodes: Some(vec![0]),
            log: None,
        };
        let member = |start| Step::Member { cell: "a×2 mps".into(), repetition: 1, block: 3, member: 0, gpu: None, start };
        let task = |task, cards, start| Step::Task {
            cell: "t/1 rr mps ×2".into(),
            repetition: 1,
            block: 3,
            task,
            arrives_s: 73.0,
            epochs: 1 + cards,
            cards,
            start,
        };
        let plain = || ProcessStart { environment: [].into(), cores: None, memory_nodes: None, ..start.clone() };
        let (first, second) = (task(0, 1, plain()), task(1, 2, plain()));
        let steps = [
            Step::Partition { gpu: "GPU 0".into(), partition: "MIG off".into() },
            member(start.clone()),
            Step::StopDaemon { pipe: "<pipe folder>".into() },
            Step::Pause { seconds: 1.0 },
            first,
            second,
        ];
        insta::assert_snapshot!(text(&steps), @r"
        GPU 0 is partitioned: MIG off

        a×2 mps, repetition 1, in block 3
          member 0 on cores 0,2, memory of NUMA nodes 0
            cd /work && env -u B A='1 2' C='' \
              python 'it'\''s.py'
          the MPS daemon at <pipe folder> is ended

        pause of 1s

        t/1 rr mps ×2, repetition 1, in block 3: tasks start where and when the policy says
          task 0, 2 epochs, arrives at 1:13
            cd /work && env  \
              python 'it'\''s.py'
          task 1, 3 epochs on 2 cards, arrives at 1:13
            cd /work && env  \
              python 'it'\''s.py'
        ");
    }
}
