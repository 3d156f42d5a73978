//! Everything that can go wrong on a GPU, on a simulated one, through the command: each ends in its outcome and its message, with the
//! card as it was found and nothing left behind.

mod dcgm;
mod hosting;
mod looks;
mod mps;
mod others;
mod real;
mod rights;
mod row;
mod strangers;
mod switch;
mod vendor;

use looks::{absent, as_true, indicative, is_told, of_each_slice};
use row::{Row, all, row};

/// Two alike on one card, in some way of sharing.
fn two(sharing: &str) -> String {
    format!("[axes]\nworkload = \"small\"\nsharing = \"{sharing}\"\ndegree = 2")
}

const NAIVE: &str = "[axes]\nworkload = \"small\"\nsharing = \"naive\"\ndegree = 2";
pub(crate) const MPS: &str = "[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2";
pub(crate) const MIG: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×2g.10gb\"\ndegree = 2";
const CUT: &str = "mig:2×2g.10gb";
/// Instances that are quicker.
const HALVES: &str = "[axes]\nworkload = \"small\"\nsharing = \"mig:2×3g.20gb\"\ndegree = 2";

/// What makes the cards of a machine its own.
const SERIAL: &str = simgpu::state::SERIAL;

/// How a run ends that could not even begin, because of the card.
const BLOCKED: i32 = 3;

#[test]
fn a_card_that_is_lost_ends_the_campaign_and_no_time_of_it_is_used() {
    all(vec![
        row("a lost card is not there", "dgx-a100,lost", NAIVE).exits(3).says("GPU 0 does not respond"),
        row("lost while the first one trains", "dgx-a100,lost@200ms", NAIVE)
            .exits(4)
            .ends("solo", "device_lost")
            .says("the GPU was lost"),
        row("lost under naive sharing", "dgx-a100,lost@200ms", NAIVE).once_opened().exits(4).ends("naive", "device_lost"),
        row("lost under MPS", "dgx-a100,lost@200ms", MPS)
            .once_opened()
            .exits(4)
            .ends("mps", "device_lost")
            .and_repaired_under("dgx-a100,root"),
        row("lost on instances", "dgx-a100,lost@200ms", MIG)
            .once_whole()
            .exits(4)
            .ends("mig:2g.10gb", "device_lost")
            .says("GPU 0 is not as it was found")
            .and_repaired_under("dgx-a100,root"),
        row("lost between two runs", "dgx-a100,lost@700ms", NAIVE)
            .exits(4)
            .ends("naive", "device_lost")
            .ends("solo", "completed|device_lost"),
        row("it wants a reset", "dgx-a100,nvml:nvmlDeviceGetMemoryInfo_v2@200ms=16,crash=1@300ms", NAIVE)
            .once_opened()
            .exits(4)
            .ends("naive", "device_lost"),
    ]);
}

#[test]
fn a_cut_that_is_refused_names_the_reason_and_leaves_the_card_as_it_was() {
    let refused = |name, words: &str| row(name, format!("dgx-a100,{words}"), MIG).exits(BLOCKED);
    all(vec![
        refused("somebody uses the card", "mig-in-use").says("stays off").says("left MIG on pending; undone"),
        refused("it takes a reset", "mig-pending").says("this machine cannot reset the GPU by itself"),
        refused("no right to it", "mig-no-permission").says("no permission").says("--as-found"),
        row("a card without MIG", "dgx-a100,mig-not-supported", MIG).exits(3).says("cannot be partitioned: it has no MIG"),
        refused("no resources for an instance", "no-resources").says("insufficient resources"),
        refused("compute instances cannot be made", "ci-fails"),
        row("instances are busy for a moment", "dgx-a100,gi-busy=2", MIG),
        row("instances stay busy when the card is to go back", "dgx-a100,gi-busy=50", MIG)
            .exits(1)
            .ends("solo", "completed|not_staged")
            .ends(CUT, "completed|not_staged")
            .ends("mig:2g.10gb", "completed|not_staged")
            .says("GPU 0 is not as it was found")
            .and_repaired_under("dgx-a100,root"),
        row("instances that were found stay busy", "dgx-a100,gi-busy=50,mig=2×3g.20gb", MIG)
            .exits(BLOCKED)
            .says("3g.20gb@0 of GPU 0 cannot be destroyed"),
        row("instances that were found are busy for a moment", "dgx-a100,gi-busy=2,mig=2×3g.20gb", MIG),
        row("what was found is put back", "dgx-a100,mig=3g.20gb/2g.10gb", MIG).says("as it was found"),
        row("the mode cannot be set", "dgx-a100,nvml:nvmlDeviceSetMigMode=999", MIG).exits(BLOCKED),
        row("the mode cannot be read", "dgx-a100,nvml:nvmlDeviceGetMigMode=999", MIG).exits(3),
        row("instances cannot be listed", "dgx-a100,nvml:nvmlDeviceGetGpuInstances=999", MIG)
            .exits(BLOCKED)
            .says("cannot be read")
            .says("GPU 0 is not as it was found")
            .and_repaired_under("dgx-a100,root"),
        row("instances cannot be made", "dgx-a100,nvml:nvmlDeviceCreateGpuInstanceWithPlacement=999", MIG).exits(BLOCKED),
        row("MIG devices cannot be listed", "dgx-a100,nvml:nvmlDeviceGetMigDeviceHandleByIndex=999", MIG)
            .exits(BLOCKED)
            .says("cannot be read")
            .says("GPU 0 is not as it was found")
            .and_repaired_under("dgx-a100,root"),
        row(
            "a profile cannot be read",
            "dgx-a100,nvml:nvmlDeviceGetGpuInstanceProfileInfoV=999,nvml:nvmlDeviceGetGpuInstanceProfileInfo=999",
            MIG,
        )
        .exits(3),
    ]);
}

#[test]
fn an_mps_that_is_not_in_force_gives_no_number() {
    let at = |name, word: &str| row(name, format!("dgx-a100,{word}"), MPS).once_opened().exits(1);
    all(vec![
        row("the program is missing", "dgx-a100", MPS)
            .without("nvidia-cuda-mps-control")
            .exits(3)
            .says("`nvidia-cuda-mps-control` is not on the PATH"),
        row("the daemon does not start", "dgx-a100,mps-no-start", MPS).exits(1).ends("mps", "not_staged").says("did not start"),
        row("the daemon is slow", "dgx-a100,mps-slow=1500ms", MPS),
        row("the daemon is too slow", "dgx-a100,mps-slow=60s", MPS)
            .exits(1)
            .ends("mps", "not_staged")
            .says("did not respond within"),
        at("the daemon dies", "mps-dies@200ms").ends("mps", "mode_lost").says("MPS daemon"),
        at("the server is in FAULT", "mps-fault@200ms").ends("mps", "mode_lost").says("atal"),
        row("member 0 does not attach", "dgx-a100,mps-no-attach=0", MPS)
            .exits(1)
            .ends("mps", "mode_lost")
            .says("on the MPS server's client list of member 0"),
        row("member 1 does not attach", "dgx-a100,mps-no-attach=1", MPS).exits(1).ends("mps", "mode_lost").says("of member 1"),
        row("the daemon does not go", "dgx-a100,mps-hang", MPS),
        row("limits of threads", "dgx-a100", MPS.replace("\"mps\"", "[\"mps:50%\", \"mps:25%,mem=4GB\"]")),
        row("a limit of memory that is too small", "dgx-a100", MPS.replace("\"mps\"", "\"mps:mem=500MB\""))
            .ends("mps:mem=500MB", "out_of_memory"),
        row("seven clients", "dgx-a100", MPS.replace("degree = 2", "degree = 7")),
        row("more members than clients", "dgx-a100", MPS.replace("degree = 2", "degree = [2, 60]"))
            .says("clients of one MPS server"),
        row("a server that says another number of SMs", "dgx-a100,wrong-sm=1", MPS)
            .exits(1)
            .ends("mps", "mode_lost")
            .says("SMs as it sees them of member 1"),
        row("MPS inside instances", "dgx-a100", two("mig:2×3g.20gb+mps").replace("degree = 2", "degree = 4")),
        row("MPS inside instances does not start", "dgx-a100,mps-no-start", two("mig:2×3g.20gb+mps"))
            .exits(1)
            .ends("mig:2×3g.20gb+mps", "not_staged"),
    ]);
}

#[test]
fn what_a_source_cannot_tell_is_absent_and_what_it_tells_is_true() {
    let seconds = |row: Row| row.env("COLLO_SIM_EPOCH_S", "0.5");
    let of = |name, words: &str, toml: &str| seconds(row(name, format!("dgx-a100,noise=0,{words}"), toml));
    let hopper = |name, words: &str, toml: &str| seconds(row(name, format!("h100-80gb,noise=0,{words}"), toml));
    all(vec![
        of("activity by DCGM", "seed=1", NAIVE).once_dcgm_prints().looks(is_told).looks(as_true),
        of("activity of instances by DCGM", "seed=1", MIG).once_dcgm_prints().looks(is_told).looks(as_true).looks(of_each_slice),
        of("no DCGM", "no-dcgm", MPS).looks(absent),
        of("DCGM is not installed", "seed=1", NAIVE).without("dcgmi").looks(absent),
        of("blank fields", "dcgm-blank,dcgm=4.6", NAIVE).looks(absent),
        of("rows in another order", "dcgm-reordered", HALVES).once_dcgm_prints().looks(is_told).looks(as_true),
        of("rows of the card among those of instances", "dcgm-mixed", HALVES).once_dcgm_prints().looks(is_told).looks(as_true),
        of("instances that are detected one by one", "dcgm-one-by-one", HALVES).looks(as_true),
        of("the layout of DCGM 3", "dcgm=3.3", HALVES).once_dcgm_prints().looks(is_told).looks(as_true),
        of("DCGM dies", "dcgm-dies@500ms", NAIVE).looks(as_true),
        hopper("activity by GPM", "no-dcgm", NAIVE).looks(is_told).looks(as_true),
        hopper("activity of instances by GPM", "no-dcgm", &two("mig:2×1g.10gb"))
            .looks(is_told)
            .looks(as_true)
            .looks(of_each_slice),
        hopper("no GPM", "no-gpm,no-dcgm", NAIVE).looks(absent),
        hopper("DCGM where GPM is missing", "no-gpm", NAIVE).once_dcgm_prints().looks(is_told).looks(as_true),
        hopper("GPM reports no numbers", "gpm-nan,no-dcgm", NAIVE).looks(absent),
        row("the energy counter starts again", "dgx-a100,energy-reset@300ms", NAIVE),
        row("no energy counter", "dgx-a100,no-energy", NAIVE).looks(looks::no_energy),
        row("no power sensor", "dgx-a100,no-power", NAIVE).looks(looks::no_power),
        row("no persistence mode", "dgx-a100,no-persistence", NAIVE),
        row("throttled", "dgx-a100,throttle@100ms", NAIVE).looks(looks::throttled),
    ]);
}

#[test]
fn a_call_of_nvml_that_fails_never_leaves_a_number_under_another_mode() {
    let times = ["", "@250ms"];
    let codes = [3, 4, 999];
    let readings = [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetPcieThroughput",
        "nvmlDeviceGetEccMode",
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetComputeMode",
    ];
    // A reading that fails is absent, and nothing else is; which code and when turns from one to the next.
    let absent = readings.iter().enumerate().map(|(i, symbol)| {
        let (time, code) = (times[i % 2], codes[i % 3]);
        let way = if i % 4 == 0 { MPS.to_string() } else { NAIVE.replace("degree = 2", "degree = 1") };
        row("a reading fails", format!("dgx-a100,nvml:{symbol}{time}={code}"), way)
    });
    let unseen = |symbol: &str, way| row("evidence fails", format!("dgx-a100,nvml:{symbol}=999"), way);
    let lists = "nvmlDeviceGetComputeRunningProcesses_v3=999,nvml:nvmlDeviceGetMPSComputeRunningProcesses_v3";
    let mut rows: Vec<Row> = absent.collect();
    rows.extend([
        unseen(lists, NAIVE).exits(BLOCKED).says("the driver does not report its processes"),
        unseen(lists, MPS).with(&["--foreign", "allow"]).exits(1).ends("solo", "mode_lost").ends("mps", "mode_lost"),
        unseen("nvmlDeviceGetComputeRunningProcesses_v3", NAIVE).exits(BLOCKED).says("the driver does not report its processes"),
        unseen("nvmlDeviceGetMPSComputeRunningProcesses_v3", MPS),
        unseen("nvmlDeviceGetComputeRunningProcesses_v3@200ms", MIG)
            .exits(1)
            .ends("solo", "mode_lost|completed")
            .ends(CUT, "mode_lost|completed")
            .ends("mig:2g.10gb", "mode_lost|completed"),
        unseen("nvmlDeviceGetMigMode@100ms", NAIVE)
            .exits(1)
            .ends("solo", "mode_lost|not_staged")
            .ends("naive", "mode_lost|not_staged"),
        unseen("nvmlDeviceGetName", NAIVE).exits(3),
        unseen("nvmlDeviceGetCount_v2", NAIVE).exits(3),
        unseen("nvmlSystemGetDriverVersion", NAIVE).exits(3),
        unseen("nvmlInit_v2", NAIVE).exits(3).says("does not respond"),
        row("the kernel module is not loaded", "a100-40gb,nvml:nvmlInit_v2=9", NAIVE).exits(3).says("modprobe nvidia"),
        row("the library is of another version", "a100-40gb,nvml:nvmlInit_v2=18", NAIVE).exits(3).says("stayed loaded: reboot"),
        unseen("nvmlDeviceGetHandleByUUID", NAIVE).exits(BLOCKED),
        unseen("nvmlDeviceGetAttributes_v2", MIG),
        unseen("nvmlDeviceGetNumGpuCores", NAIVE),
    ]);
    all(rows);
}

#[test]
fn a_member_that_goes_wrong_ends_its_group_with_its_own_reason() {
    all(vec![
        row("one runs out of memory", "dgx-a100,oom=1", NAIVE).ends("naive", "out_of_memory").says("CUDA out of memory"),
        row("one runs out of the machine's memory", "dgx-a100,host-oom=1", NAIVE)
            .exits(1)
            .ends("naive", "host_out_of_memory")
            .ends("solo", "completed")
            .says("host out of memory, which says nothing about the GPU"),
        row("one runs out of memory on an instance", "dgx-a100,oom=1", MIG).ends(CUT, "out_of_memory"),
        row("five large ones", "dgx-a100", two("naive").replace("small", "large").replace("= 2", "= 5"))
            .ends("naive", "out_of_memory"),
        row("a large one on the smallest instance", "dgx-a100", two("mig:2×1g.5gb").replace("small", "large"))
            .ends("mig:2×1g.5gb", "out_of_memory")
            .ends("mig:1g.5gb", "out_of_memory"),
        row("one crashes", "dgx-a100,crash=1@200ms", NAIVE)
            .once_opened()
            .exits(1)
            .ends("naive", "crashed")
            .says("illegal memory"),
        row("one crashes on an instance", "dgx-a100,crash=1@200ms", MIG).once_whole().exits(1).ends(CUT, "crashed"),
        row("one crashes under MPS", "dgx-a100,crash=1@200ms", MPS).once_opened().exits(1).ends("mps", "crashed"),
        row("one says nothing", "dgx-a100,silent=1", format!("set_up_timeout = \"2s\"\n{NAIVE}"))
            .exits(1)
            .ends("naive", "timed_out"),
        row("one says nothing under MPS", "dgx-a100,silent=1", format!("set_up_timeout = \"2s\"\n{MPS}"))
            .exits(1)
            .ends("mps", "timed_out"),
        row("one sees another number of SMs", "dgx-a100,wrong-sm=1", NAIVE)
            .exits(1)
            .ends("naive", "mode_lost")
            .says("SMs as it sees them of member 1"),
        row("one sees another device", "dgx-a100,wrong-device=1", NAIVE)
            .exits(1)
            .ends("naive", "mode_lost")
            .says("device as it sees it of member 1"),
        row("all see another device", "dgx-a100,wrong-device", MIG)
            .exits(1)
            .ends("solo", "mode_lost")
            .ends("mig:2g.10gb", "mode_lost")
            .ends(CUT, "mode_lost"),
        row("one sees another number of SMs on an instance", "dgx-a100,wrong-sm=0", MIG)
            .exits(1)
            .ends("solo", "mode_lost")
            .ends("mig:2g.10gb", "mode_lost")
            .ends(CUT, "mode_lost"),
        row("a container hides the pids", "dgx-a100,hidden-pids", NAIVE).looks(indicative),
        row("a container hides the pids of MPS", "dgx-a100,hidden-pids", MPS).looks(indicative),
        row("a container hides the pids on instances", "dgx-a100,hidden-pids", MIG).looks(indicative),
    ]);
}

#[test]
fn the_card_that_is_asked_for_is_the_one_that_is_used() {
    let second = simgpu::state::card_uuid("a100-40gb", 1, "asked-for");
    all(vec![
        row("the second of two", "dgx-a100,gpus=2", MIG).with(&["--gpu", "1"]).says("GPU 1 is as it was found"),
        row("not the display", "dgx-a100,display", MIG).says("GPU 1 is as it was found"),
        row("by its UUID", "dgx-a100,gpus=2", HALVES)
            .with(&["--gpu", &second])
            .env(SERIAL, "asked-for")
            .says("GPU 1 is as it was found"),
        row("a place on the bus where none is", "dgx-a100,gpus=2", NAIVE)
            .with(&["--gpu", "00000000:7F:00.0"])
            .exits(3)
            .says("no GPU `00000000:7F:00.0` here"),
        row("one that is not there", "dgx-a100,gpus=2", NAIVE).with(&["--gpu", "7"]).exits(3).says("no GPU `7` here"),
        row("no library", "dgx-a100", NAIVE).env("COLLO_NVML", "/nowhere/libnvidia-ml.so").exits(3).says("cannot be opened"),
        row("a driver that is too old for this torch", "dgx-a100,driver=535.183.06", NAIVE).exits(3).says("built for CUDA 13.0"),
        row("a driver that is too old for any", "dgx-a100,driver=470.57.02", NAIVE).exits(3),
        row("a card of the next generation", "b200", &*two("mig:2×1g.23gb")),
        row("a small card", "a30-24gb", &*two("mig:2×1g.6gb")),
        row("a card for workstations", "rtx-pro-6000", &*two("naive")),
        row("as found", "dgx-a100,mig=2×3g.20gb", &*two("mig:2×3g.20gb")).with(&["--as-found"]).says("needs MIG off"),
        row("as found, on a whole card", "dgx-a100", NAIVE).with(&["--as-found"]),
        row("as found, and not as needed", "dgx-a100", MIG).with(&["--as-found"]).exits(3).says("is used as found"),
        row("no right is needed as found", "dgx-a100,mig-no-permission", MPS).with(&["--as-found"]),
        row(
            "mixed, with slices",
            "dgx-a100",
            "slices = { small = \"1g.5gb\", medium = \"2g.10gb\" }\n[[group]]\n\
            members = [{ workload = \"small\" }, { workload = \"medium\" }]\nsharing = [\"mps\", \"mig\"]",
        ),
        row("two compute instances in one", "dgx-a100", &*two("mig:2×1c.3g.20gb")),
        row("exclusive as found, naive", "dgx-a100,exclusive", NAIVE).exits(3).says("compute mode ExclusiveProcess"),
        row("exclusive as found, MPS", "dgx-a100,exclusive", MPS),
        row("exclusive as found, instances", "dgx-a100,exclusive", HALVES),
        row("exclusive for MPS", "dgx-a100,root", MPS).with(&["--exclusive"]),
        row("exclusive for MPS, and no right", "dgx-a100,nvml:nvmlDeviceSetComputeMode=4", MPS)
            .with(&["--exclusive"])
            .exits(1)
            .ends("mps", "not_staged"),
    ]);
}
