//! Everything that can go wrong on a GPU, on a simulated one, through the command: each ends in its outcome and its message, with the
//! card as it was found and nothing left behind.

#[path = "gpu_faults/row.rs"]
mod row;
#[path = "support/sim.rs"]
mod sim;
mod support;

use row::{all, row};

/// Two alike on one card, in each way.
const NAIVE: &str = "[axes]\nworkload = \"small\"\nsharing = \"naive\"\ndegree = 2";
const MPS: &str = "[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2";
const MIG: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×1g.5gb\"\ndegree = 2";
/// The instances that `mig=2×3g.20gb` finds.
const HALVES: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×3g.20gb\"\ndegree = 2";
/// The cut that is on the card comes first: with `mig=2×3g.20gb` this one has to be undone before it is made.
const SEVENTHS: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×1g.5gb\"\ndegree = 2";

#[test]
fn a_card_that_is_lost_ends_the_campaign_and_no_time_of_it_is_used() {
    all(vec![
        row("a lost card is not there", "a100-40gb,lost", NAIVE).exits(3).says("no GPU"),
        row("lost while the first one trains", "a100-40gb,lost@200ms", NAIVE)
            .exits(4)
            .ends("solo", "device_lost")
            .says("the GPU went away"),
        row("lost under naive sharing", "a100-40gb,lost@200ms", NAIVE).once_opened().exits(4).ends("naive", "device_lost"),
        row("lost under MPS", "a100-40gb,lost@200ms", MPS).once_opened().exits(4).ends("mps", "device_lost"),
        row("lost on instances", "a100-40gb,lost@200ms", MIG).once_whole().exits(4).is_repaired_under("a100-40gb"),
        row("lost after the first run", "a100-40gb,lost@700ms", NAIVE).exits(4).says("the GPU went away"),
        row("lost, and the next run goes on", "a100-40gb,lost@200ms", MPS).once_opened().exits(4).ends("mps", "device_lost"),
    ]);
}

#[test]
fn a_cut_that_is_refused_names_the_reason_and_leaves_the_card_as_it_was() {
    let refused = |name, words: &str| row(name, format!("a100-40gb,{words}"), MIG).exits(4);
    all(vec![
        refused("somebody uses the card", "mig-in-use").says("stays off, on is pending").says("put back to off"),
        refused("it takes a reset", "mig-pending").says("it takes a reset of the GPU"),
        refused("no right to it", "mig-no-permission").says("no permission").says("--as-found"),
        row("a card without MIG", "a100-40gb,mig-not-supported", MIG).says("cannot be cut: it has no MIG").exits(0),
        refused("no resources for an instance", "no-resources").says("insufficient resources"),
        refused("compute instances cannot be made", "ci-fails"),
        row("instances are busy for a moment", "a100-40gb,gi-busy=2", MIG),
        row("instances stay busy when the card is to go back", "a100-40gb,gi-busy=50", MIG)
            .exits(0)
            .is_repaired_under("a100-40gb"),
        row("instances that were found are busy", "a100-40gb,gi-busy=50,mig=2×3g.20gb", SEVENTHS)
            .exits(4)
            .says("cannot be destroyed"),
        row("instances that were found are busy for a moment", "a100-40gb,gi-busy=2,mig=2×3g.20gb", SEVENTHS),
        row("what was found is put back", "a100-40gb,mig=3g.20gb/2g.10gb", SEVENTHS).says("as it was found"),
        row("the mode cannot be set", "a100-40gb,nvml:nvmlDeviceSetMigMode=999", MIG).exits(4),
        row("the mode cannot be read", "a100-40gb,nvml:nvmlDeviceGetMigMode=999", MIG).exits(3),
        row("instances cannot be listed", "a100-40gb,nvml:nvmlDeviceGetGpuInstances=999", MIG).exits(4),
        row("instances cannot be made", "a100-40gb,nvml:nvmlDeviceCreateGpuInstanceWithPlacement=999", MIG).exits(4),
        row("MIG devices cannot be listed", "a100-40gb,nvml:nvmlDeviceGetMigDeviceHandleByIndex=999", MIG).exits(4),
        row("a profile cannot be read", "a100-40gb,nvml:nvmlDeviceGetGpuInstanceProfileInfoV=999,nvml:nvmlDeviceGetGpuInstanceProfileInfo=999", MIG).exits(3),
    ]);
}

#[test]
fn an_mps_that_is_not_in_force_gives_no_number() {
    let at = |name, word: &str| row(name, format!("a100-40gb,{word}"), MPS).once_opened().exits(1);
    all(vec![
        row("the program is missing", "a100-40gb", MPS)
            .without("nvidia-cuda-mps-control")
            .exits(1)
            .ends("mps", "not_staged")
            .says("`nvidia-cuda-mps-control` is not on the PATH"),
        row("the daemon does not start", "a100-40gb,mps-no-start", MPS)
            .exits(1)
            .ends("mps", "not_staged")
            .says("did not start"),
        row("the daemon is slow", "a100-40gb,mps-slow=1500ms", MPS),
        row("the daemon is too slow", "a100-40gb,mps-slow=60s", MPS).exits(1).ends("mps", "not_staged").says("did not answer within"),
        at("the daemon dies", "mps-dies@200ms").ends("mps", "mode_lost").says("MPS daemon"),
        at("the server is in FAULT", "mps-fault@200ms").ends("mps", "mode_lost").says("FAULT"),
        row("member 0 does not attach", "a100-40gb,mps-no-attach=0", MPS)
            .exits(1)
            .ends("mps", "mode_lost")
            .says("on the MPS server's client list of member 0"),
        row("member 1 does not attach", "a100-40gb,mps-no-attach=1", MPS).exits(1).ends("mps", "mode_lost").says("of member 1"),
        row("the daemon does not go", "a100-40gb,mps-hang", MPS),
        row("limits of threads", "a100-40gb", MPS.replace("\"mps\"", "[\"mps:50%\", \"mps:25%,mem=4GB\"]")),
        row("a limit of memory that is too small", "a100-40gb", MPS.replace("\"mps\"", "\"mps:mem=500MB\""))
            .ends("mps:mem=500MB", "out_of_memory"),
        row("seven clients", "a100-40gb", MPS.replace("degree = 2", "degree = 7")),
        row("more members than clients", "a100-40gb", MPS.replace("degree = 2", "degree = [2, 60]")).says("clients of one MPS server"),
        row("a server that says another number of SMs", "a100-40gb,wrong-sm=1", MPS.replace("\"mps\"", "\"mps:50%\""))
            .exits(1)
            .ends("mps:50%", "mode_lost"),
        row("MPS inside instances", "a100-40gb", "[axes]\nworkload = \"small\"\nsharing = \"mig:2×3g.20gb+mps\"\ndegree = 4"),
        row("MPS inside instances does not start", "a100-40gb,mps-no-start", "[axes]\nworkload = \"small\"\nsharing = \"mig:2×3g.20gb+mps\"\ndegree = 2")
            .exits(1)
            .ends("mig:2×3g.20gb+mps", "not_staged"),
    ]);
}
