//! A GPU that an administrator partitioned, used by a normal user as it is found: what its groups are compared with.

use crate::sim::Machine;

const USER: &str = "a100-40gb,user,noise=0,seed=1";
/// The same GPU, partitioned.
const CUT: &str = "a100-40gb,user,noise=0,seed=1,mig=7×1g.5gb";

#[test]
fn a_partitioned_gpu_is_compared_with_a_campaign_of_the_same_gpu_with_mig_off() {
    let groups = |modes: &str| format!("repetitions = 2\n[axes]\nworkload = \"small\"\ndegree = 7\nsharing = \"{modes}\"\n");
    let machine = Machine::new(CUT, &groups("mig"));
    machine
        .collo(&["run", "x", "--as-found"])
        .exits(0)
        .answers("no slowdown and no gain: no baseline: `small solo b")
        .answers("needs MIG off");
    let cut = machine.bench.campaign().manifest().clone();
    assert!(cut.device.memory_bytes.is_none(), "a normal user cannot read it");

    // The same GPU with MIG off.
    machine.bench.write("experiments/whole.toml", &crate::sim::short(&groups("mps")));
    let machine = machine.anew(USER);
    machine.collo(&["run", "whole", "--as-found", "--no-report"]).exits(0);
    let whole = machine.bench.campaign().manifest().clone();
    assert_eq!(whole.machine.gpus[0].uuid, cut.machine.gpus[0].uuid, "the same GPU");

    // Found by itself, named, and the same as by its name.
    let found = machine.collo(&["report", cut.short_id(), "--json"]).exits(0).json();
    let named = machine.collo(&["report", cut.short_id(), "--baseline", whole.short_id(), "--json"]).exits(0).json();
    assert_eq!(found, named);
    assert_eq!(found["baselines_from"][0]["campaign"].as_str(), Some(whole.id.as_str()));
    let group = found["cells"].as_array().expect("cells").iter().find(|c| c["degree"] == 7).expect("the group");
    assert!(group["throughput_gain"]["low"].as_f64().is_some_and(|gain| gain > 1.5), "{group}");
    machine.collo(&["report", cut.short_id()]).exits(0).answers("baseline of").answers("baselines of campaign");
    machine.collo(&["show", cut.short_id()]).exits(0).answers("baselines of campaign");
    let both = machine.collo(&["report", whole.short_id(), cut.short_id(), "--json"]).exits(0).json();
    let joined = both["cells"].as_array().expect("cells").iter().filter(|c| c["degree"] == 7);
    assert!(joined.clone().count() == 2 && joined.clone().all(|c| c["throughput_gain"].is_object()), "{both}");

    // What lends nothing is refused with the reason and the way out.
    let refused = machine.collo(&["report", whole.short_id(), "--baseline", cut.short_id()]).exits(2);
    refused.says("lends no baseline").says("no solo cell").says("MIG off");
    machine.collo(&["report", cut.short_id(), "--baseline", cut.short_id()]).exits(2).says("it is the campaign itself");
}
