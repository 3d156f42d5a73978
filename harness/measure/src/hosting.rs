//! One process for all members of a group: which groups can have one, and how it is started.
//!
//! In: a cell whose seating asks for it, and what each member would be started with on its own. Out: a [`HostLaunch`] of
//! `workloads/collo_host.py`, which runs their scripts unedited, each in a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_store::PROCESS_LOG;
use collo_text::Diagnostic;
use serde::Serialize;

use crate::cell::{Cell, Term};
use crate::device::Cores;
use crate::launch::{HostLaunch, MemberLaunch, channel_of};
use crate::observer::{Observe, Observer, Place};
use crate::project::Project;
use crate::python::PythonSeen;
use crate::sharing::{Hosting, Refusal};
use crate::workload::{Workload, WorkloadPython};

/// The variable in which the host finds its orders.
pub const ORDERS: &str = "COLLO_HOST";

/// The program that hosts members, beside the protocol library.
const PROGRAM: &str = "collo_host.py";

/// Variables of a member that the host gives to its thread alone.
const OF_A_MEMBER: &str = "COLLO_";

/// What the host is to do, as it reads it.
#[derive(Debug, Serialize)]
struct HostOrders<'a> {
    /// With Python's global lock.
    lock: bool,
    members: Vec<HostedMember<'a>>,
}

#[derive(Debug, Serialize)]
struct HostedMember<'a> {
    index: usize,
    script: String,
    arguments: &'a [String],
    folder: &'a Path,
    /// The descriptor of its channel.
    fd: i32,
    /// Its own variables.
    env: BTreeMap<&'a str, &'a str>,
}

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
        hint: Some(format!("{way_out} (docs/guide/experiments.md); the mode `threads` keeps the lock")),
    })
}

/// A script that no host can run.
fn of_one(workload: &Workload) -> Option<Refusal> {
    let name = &workload.name;
    let refuse = |reason: String, hint: &str| Some(Refusal { reason, hint: Some(hint.into()) });
    if workload.epochs.is_some() {
        return refuse(
            format!("`{name}` does not speak collo's protocol, so it cannot be a thread of a process that does"),
            "`naive` runs a process for each; the protocol is a few lines (docs/guide/workloads.md)",
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

/// The process that hosts these members, each as it would be started on its own.
pub fn host(project: &Project, hosting: Hosting, members: &[MemberLaunch], folder: &Path) -> Result<HostLaunch, Diagnostic> {
    let Some(first) = members.first() else { return Err(Diagnostic::new("a process without members cannot be started")) };
    let common = |(name, value): &(&String, &Option<String>)| {
        (value.is_none() || !name.starts_with(OF_A_MEMBER)) && members.iter().all(|member| member.env.get(*name) == Some(*value))
    };
    let shared: BTreeMap<String, Option<String>> =
        first.env.iter().filter(common).map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut listed = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let [_, script, arguments @ ..] = &member.command[..] else {
            return Err(Diagnostic::new(format!("member {index} has no script that a process of all members could run")));
        };
        let script = member.folder.join(script).display().to_string();
        let own = member.env.iter().filter(|(name, _)| !shared.contains_key(*name));
        let env = own.filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?))).collect();
        listed.push(HostedMember { index, script, arguments, folder: &member.folder, fd: channel_of(index), env });
    }
    let orders = HostOrders { lock: hosting.lock, members: listed };
    let mut env = shared.clone();
    env.insert(ORDERS.into(), Some(serde_json::to_string(&orders).map_err(|e| Diagnostic::new(e.to_string()))?));
    // Of a free-threaded build; one with the lock takes 1 and refuses 0, and before 3.13 neither is known (CPython's documentation of
    // `PYTHON_GIL`). Whether it holds is evidence.
    env.insert("PYTHON_GIL".into(), Some(if hosting.lock { "1" } else { "0" }.into()));
    Ok(HostLaunch {
        process: MemberLaunch {
            command: vec![first.command[0].clone(), project.workloads().join(PROGRAM).display().to_string()],
            folder: first.folder.clone(),
            env,
            log: folder.join(PROCESS_LOG),
            cores: union(members.iter().map(|member| member.cores.as_deref())),
            memory_nodes: union(members.iter().map(|member| member.memory_nodes.as_deref())),
            adapter: None,
            client_of: None,
        },
        members: members.len(),
    })
}

/// All numbers of all lists; `None` if one of them is not restricted.
fn union<'a>(lists: impl Iterator<Item = Option<&'a [u32]>>) -> Option<Vec<u32>> {
    let all: Option<BTreeSet<u32>> =
        lists.map(|list| list.map(|list| list.to_vec())).collect::<Option<Vec<_>>>().map(|l| l.concat().into_iter().collect());
    all.map(|all| all.into_iter().collect())
}

/// What each member has of its process: its output, its cores, its memory are those of all.
pub fn as_hosted(members: &mut [MemberLaunch], host: &HostLaunch) {
    for member in members {
        member.log = host.process.log.clone();
        member.cores = host.process.cores.clone();
        member.memory_nodes = host.process.memory_nodes.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn refused(lines: &str) -> Vec<String> {
        let experiment = fixture::experiment(lines);
        let cells = crate::expand::expand(&experiment, None).expect("cells");
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

    #[test]
    fn a_process_may_use_what_all_its_members_may_use() {
        assert_eq!(union([Some(&[3, 1][..]), Some(&[2, 1])].into_iter()), Some(vec![1, 2, 3]));
        assert_eq!(union([Some(&[1][..]), None].into_iter()), None, "one of them may use every core");
    }

    #[test]
    fn the_host_is_told_of_each_member_what_is_its_own() {
        let member = |index: usize| MemberLaunch {
            command: vec!["/venv/bin/python".into(), "train.py".into(), format!("--batch-size={index}")],
            folder: "/p/workloads/tiny".into(),
            env: [("OMP_NUM_THREADS", Some("1".to_string())), ("COLLO_MEMBER", Some(index.to_string())), ("COLLO_SOCKET", None)]
                .map(|(name, value)| (name.to_string(), value))
                .into(),
            log: format!("/runs/member-{index}.log").into(),
            cores: Some(vec![index as u32]),
            memory_nodes: None,
            adapter: None,
            client_of: None,
        };
        let launch =
            host(&Project::at("/p"), Hosting { lock: true }, &[member(0), member(1)], Path::new("/runs")).expect("a host");
        assert_eq!(launch.process.command, ["/venv/bin/python", "/p/workloads/collo_host.py"]);
        assert_eq!((launch.process.cores, launch.process.log), (Some(vec![0, 1]), "/runs/process.log".into()));
        let env = &launch.process.env;
        assert_eq!((env["PYTHON_GIL"].as_deref(), env["OMP_NUM_THREADS"].as_deref()), (Some("1"), Some("1")));
        assert_eq!((env.get("COLLO_SOCKET"), env.get("COLLO_MEMBER")), (Some(&None), None));
        insta::assert_snapshot!(env[ORDERS].as_deref().unwrap_or_default().replace("},{", "},\n{"), @r#"
        {"lock":true,"members":[{"index":0,"script":"/p/workloads/tiny/train.py","arguments":["--batch-size=0"],"folder":"/p/workloads/tiny","fd":3,"env":{"COLLO_MEMBER":"0"}},
        {"index":1,"script":"/p/workloads/tiny/train.py","arguments":["--batch-size=1"],"folder":"/p/workloads/tiny","fd":4,"env":{"COLLO_MEMBER":"1"}}]}
        "#);
    }
}
