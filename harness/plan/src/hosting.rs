//! Which groups can run as threads of one process.
//!
//! In: a cell whose seating asks for it. Out: why its members cannot share a process, or nothing.

use std::collections::BTreeMap;

use crate::cell::{Cell, Term};
use crate::facts::{Cores, PythonSeen};
use crate::observer::{Observe, Observer, Place};
use crate::sharing::{Hosting, Refusal};
use crate::workload::{Workload, WorkloadPython};

/// Variables of a member that the host gives to its thread alone.
pub const OF_A_MEMBER: &str = "COLLO_";

/// Why the members of a cell cannot be threads of one process under this Python; `None` if they can.
pub fn refusal(cell: &Cell, hosting: Hosting, cores: &Cores, python: &PythonSeen) -> Option<Refusal> {
    let workloads: Vec<&Workload> = cell.terms().iter().map(|term| &**term.member.workload()).collect();
    let first = workloads.first()?;
    if let Some(refused) = cell.observe().and_then(Observe::tool).and_then(|tool| watched_one_by_one(tool)) {
        return Some(refused);
    }
    workloads
        .iter()
        .find_map(|w| of_one(w))
        .or_else(|| workloads.iter().find_map(|w| of_two(first, w)))
        .or_else(|| variables(cell))
        .or_else(|| allocator(cell))
        .or_else(|| pinned_apart(cell, cores))
        .or_else(|| (!hosting.lock).then(|| locked(first, python)).flatten())
}

/// Settings of the one allocator that members of a process share.
const OF_THE_ALLOCATOR: [&str; 1] = ["keep_cache"];

/// What one member keeps in the allocator's cache another must not give back.
fn allocator(cell: &Cell) -> Option<Refusal> {
    // A workload that does not know the setting leaves the cache alone.
    let values = |name: &str| cell.terms().iter().filter_map(|term| term.member.settings().get(name)).collect::<Vec<_>>();
    let differs = |name: &&str| values(name).windows(2).any(|two| two[0] != two[1]);
    let name = OF_THE_ALLOCATOR.iter().find(|name| differs(name))?;
    Some(Refusal {
        reason: format!("its members differ in `{name}`, and threads of one process share one allocator"),
        hint: Some("`naive` runs a process for each".into()),
    })
}

/// Threads of a process use its cores: what one member may not use, another would use for it.
fn pinned_apart(cell: &Cell, cores: &Cores) -> Option<Refusal> {
    (cell.degree() > 1 && cores.is_for_each()).then(|| Refusal {
        reason: "`cores` gives each member its own, and threads of one process use those of their process".into(),
        hint: Some("`cores = \"shared\"`, or one list for all such as `0-3`".into()),
    })
}

/// An interpreter that is built with its lock cannot run without.
fn locked(workload: &Workload, python: &PythonSeen) -> Option<Refusal> {
    let path = python.with_lock(&workload.environment)?;
    let way_out = match &workload.environment {
        WorkloadPython::Torch => "`--python PATH` takes one that is built without, such as python3.14t with torch",
        WorkloadPython::System => "put a free-threaded Python first on the PATH",
        WorkloadPython::Own(_) => "`environment` in its workload.toml names another",
    };
    Some(Refusal {
        reason: format!("`{}` is built with Python's global lock", path.display()),
        hint: Some(format!("{way_out} (`collo help experiments`); the mode `threads` keeps the lock")),
    })
}

/// A script that no host can run.
fn of_one(workload: &Workload) -> Option<Refusal> {
    let name = &workload.name;
    let refuse = |reason: String, hint: &str| Some(Refusal { reason, hint: Some(hint.into()) });
    if workload.epochs.is_some() {
        return refuse(
            format!("`{name}` does not speak collo's protocol, so it cannot be a thread of a process that does"),
            "`naive` runs a process for each; the protocol is a few lines (`collo help workloads`)",
        );
    }
    match &workload.command[..] {
        [python, script, ..] if matches!(&**python, "python" | "python3") && script.ends_with(".py") => None,
        words => refuse(
            format!("`{name}` is started by `{}`, and a host runs `python SCRIPT.py …`", words.join(" ")),
            "`naive` runs a process for each",
        ),
    }
}

/// An observer around a member's command, or inside its process, has none to itself here.
fn watched_one_by_one(tool: &Observer) -> Option<Refusal> {
    (tool.place != Place::Beside).then(|| Refusal {
        reason: format!("observer `{}` watches the process of each member, and here all are threads of one", tool.name),
        hint: Some("observers beside the members watch any group: `collo list observers`".into()),
    })
}

/// Two workloads that need interpreters of their own.
fn of_two(first: &Workload, other: &Workload) -> Option<Refusal> {
    let python = |w: &Workload| match &w.environment {
        WorkloadPython::Torch => "collo's Python".to_string(),
        WorkloadPython::System => "the system's Python".to_string(),
        WorkloadPython::Own(path) => path.display().to_string(),
    };
    let what = if first.environment != other.environment {
        format!("`{}` runs under {}, `{}` under {}", first.name, python(first), other.name, python(other))
    } else if first.packages != other.packages {
        format!("`{}` and `{}` need different packages", first.name, other.name)
    } else {
        return None;
    };
    Some(Refusal {
        reason: format!("{what}: one process has one interpreter"),
        hint: Some("`naive` runs a process for each".into()),
    })
}

/// Libraries read the environment of the process, of which there is one.
fn variables(cell: &Cell) -> Option<Refusal> {
    // What is wrong with a variable is said where its member is started.
    let of = |term: &Term| {
        let all = term.member.workload().variables_for(&term.member.spec()).unwrap_or_default();
        all.into_iter().filter(|(name, _)| !name.starts_with(OF_A_MEMBER)).collect::<BTreeMap<_, _>>()
    };
    let [first, others @ ..] = cell.terms() else { return None };
    let known = of(first);
    others.iter().find_map(|other| {
        let own = of(other);
        let variable = known.keys().chain(own.keys()).find(|name| known.get(*name) != own.get(*name))?;
        let said = |term: &Term, value: Option<&String>| match value {
            Some(value) => format!("`{}` sets `{variable}={value}`", term.member.workload().name),
            None => format!("`{}` does not set `{variable}`", term.member.workload().name),
        };
        Some(Refusal {
            reason: format!(
                "{}, {}: one process has one environment",
                said(first, known.get(variable)),
                said(other, own.get(variable))
            ),
            hint: Some("`naive` runs a process for each".into()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn refused(lines: &str) -> Vec<String> {
        let experiment = fixture::experiment(lines);
        let cells = collo_plan::expand::expand(&experiment, None).expect("cells");
        cells
            .iter()
            .filter(|e| e.cell.degree() > 1)
            .filter_map(|e| refusal(&e.cell, Hosting { lock: true }, &experiment.cores, &PythonSeen::default()))
            .map(|r| r.reason)
            .collect()
    }

    #[test]
    fn what_one_interpreter_cannot_run_is_refused_by_name() {
        assert!(refused("[axes]\nworkload = \"tiny\"\nsharing = \"threads\"\ndegree = 2\n").is_empty());
        let mixed = "[[group]]\nmembers = [{ workload = \"tiny\" }, { workload = \"sleep\" }]\nsharing = \"threads\"\n";
        assert_eq!(
            refused(mixed),
            ["`sleep` runs under the system's Python, `tiny` under collo's Python: one process has one interpreter"]
        );
    }

    #[test]
    fn what_members_of_one_process_cannot_have_each_for_itself_is_refused() {
        let apart = "cores = \"spread\"\n[axes]\nworkload = \"tiny\"\nsharing = \"threads\"\ndegree = 2\n";
        assert_eq!(refused(apart), ["`cores` gives each member its own, and threads of one process use those of their process"]);
        assert!(refused(&apart.replace("spread", "0-1")).is_empty(), "all on the same");
    }
}
