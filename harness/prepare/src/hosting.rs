//! One process for all members of a group: how it is started.
//!
//! In: what each member would be started with on its own. Out: a [`HostLaunch`] of
//! `workloads/collo_host.py`, which runs their scripts unedited, each in a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use collo_launch::{HostLaunch, MemberLaunch, channel_of};
use collo_plan::hosting::OF_A_MEMBER;
use collo_plan::project::Project;
use collo_plan::sharing::Hosting;
use collo_store::PROCESS_LOG;
use collo_text::Diagnostic;
use serde::Serialize;

/// The variable in which the host finds its orders.
pub const ORDERS: &str = "COLLO_HOST";

/// The program that hosts members, beside the protocol library.
const PROGRAM: &str = "collo_host.py";

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

    #[test]
    fn a_process_may_use_what_all_its_members_may_use() {
        assert_eq!(union([Some(&[3, 1][..]), Some(&[2, 1])].into_iter()), Some(vec![1, 2, 3]));
        assert_eq!(union([Some(&[1][..]), None].into_iter()), None, "one of them may use every core");
    }
}
