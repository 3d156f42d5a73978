//! The NUMA nodes of this machine, and where a member's memory is bound.
//!
//! In: the cores of a member. Out: the nodes that these cores are on. Each node's cores are in `/sys/devices/system/node/nodeN/cpulist`,
//! the nodes with memory in `has_memory` (the kernel's Documentation/ABI/stable/sysfs-devices-node).

use collo_plan::facts::{Cores, NumaMemory, core_list};

use crate::cpu;

const NODES: &str = "/sys/devices/system/node";

/// A node with memory, and its cores.
pub type NumaNode = (u32, Vec<u32>);

/// Those whose memory collo may use (a batch system may confine it, cpuset(7)); none if the kernel does not report them.
pub fn nodes() -> Vec<NumaNode> {
    let listed = |name: &str| core_list(&fs_err::read_to_string(format!("{NODES}/{name}")).ok()?);
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = cpu::field(&status, "Mems_allowed_list").and_then(core_list).unwrap_or_default();
    let with_memory = listed("has_memory").unwrap_or_default().into_iter().filter(|node| allowed.contains(node));
    with_memory.map(|node| (node, listed(&format!("node{node}/cpulist")).unwrap_or_default())).collect()
}

/// The nodes to which the memory of a member on these cores is bound; `None` if it is not, as on a machine with a single one.
pub fn nodes_of(memory: NumaMemory, cores: &[u32]) -> Option<Vec<u32>> {
    let nodes = nodes();
    (memory == NumaMemory::Local && nodes.len() > 1).then(|| local(cores, &nodes))
}

/// The nodes that any of these cores is on.
fn local(cores: &[u32], nodes: &[NumaNode]) -> Vec<u32> {
    nodes.iter().filter(|(_, own)| own.iter().any(|core| cores.contains(core))).map(|(node, _)| *node).collect()
}

/// What binding to the nodes of these cores means here, where it means nothing or little.
pub fn note(cores: &Cores, nodes: &[NumaNode]) -> Option<String> {
    match (nodes.len(), cores) {
        (0 | 1, _) => Some("`numa_memory = \"local\"` changes nothing: collo may use the memory of one NUMA node here".into()),
        (_, Cores::Shared) => {
            let what = "members may run on all cores, so `numa_memory = \"local\"` binds their memory to the nodes of them all";
            Some(format!("{what}; `cores` confines them"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bound_to_the_nodes_of_the_cores_and_to_no_other() {
        let nodes = [(0, vec![0, 1, 4, 5]), (1, vec![2, 3, 6, 7]), (2, Vec::new())];
        assert_eq!(local(&[1, 4], &nodes), [0]);
        assert_eq!(local(&[2, 7], &nodes), [1]);
        assert_eq!(local(&[1, 2], &nodes), [0, 1]);
        assert_eq!(nodes_of(NumaMemory::System, &[0]), None);
    }

    #[test]
    fn a_machine_with_one_node_is_told_apart_from_members_on_all_nodes() {
        let two = [(0, vec![0]), (1, vec![1])];
        assert!(note(&Cores::Spread, &two[..1]).expect("said").contains("changes nothing"));
        assert!(note(&Cores::Shared, &two).expect("said").contains("the nodes of them all"));
        assert_eq!(note(&Cores::Spread, &two), None);
    }
}
