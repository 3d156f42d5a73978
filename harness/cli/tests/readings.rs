//! What is read while members train is in the samples, and in the report under the name of its quantity.

use collo_store::StoredRun;
use serde_json::Value;

use crate::sim::Machine;
use crate::support::Bench;

/// The cell of two in the report of the newest campaign.
fn group(report: &Value) -> &Value {
    report["cells"].as_array().expect("cells").iter().find(|cell| cell["degree"] == 2).expect("a group")
}

/// Metrics that have at least one reading in a run.
fn metrics(run: &StoredRun) -> Vec<String> {
    let all = collo_store::read_samples(&run.path.join("samples.parquet"), |_, _, _| true).expect("readable");
    let read = all.into_iter().filter(|(_, values)| values.iter().any(|(_, _, value)| value.is_some()));
    read.map(|((_, metric), _)| metric).collect()
}

/// A simulated GPU on which one trained and two together.
fn measured() -> Machine {
    let toml = "epochs = 4\n[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = 2\n";
    let machine = Machine::new("a100-40gb", toml);
    machine.run(&[]).exits(0);
    machine
}

#[test]
fn activity_traffic_clocks_and_energy_of_a_gpu_are_in_the_report() {
    let machine = measured();
    let report = machine.collo(&["report", "--format", "json"]).exits(0).json();
    let group = group(&report);
    let read = |value: &Value| value["estimate"].as_f64().is_some_and(|estimate| estimate > 0.0);
    for metric in [
        "sm_active_ratio",
        "gpu_utilization_ratio",
        "pcie_rx_bytes_per_s",
        "pcie_tx_bytes_per_s",
        "sm_clock_mhz",
        "temperature_c",
        "power_w",
    ] {
        assert!(read(&group["metrics"][metric]), "{metric} of {group}");
    }
    for quantity in ["energy_j_per_epoch", "energy_j_per_item", "energy_of_solo", "start_skew_s"] {
        assert!(read(&group[quantity]), "{quantity} of {group}");
    }
    // Members that use the GPU at once leave no time in which its idle power could be read.
    let above_idle = "energy_j_per_epoch_above_idle";
    let was_not_read = group["absent"][above_idle] == "the GPU's idle power was not read";
    assert!(read(&group[above_idle]) || was_not_read, "{above_idle} of {group}");
    assert_eq!(group["throttled_ratio"]["estimate"], 0.0, "read, and never throttled");
    // Three epochs of 0.3 s are a few steps of the counter.
    let unsound = |why: &Value| why.as_str().is_some_and(|why| why.contains("steps of the counter, in windows as short as"));
    assert!(group["suspicious"].as_array().expect("a list").iter().any(unsound), "{group}");
    machine.collo(&["show", "smallx2"]).exits(0).answers("PCIe       in ").answers("skew ").answers(" J per member and epoch");
}

#[test]
fn each_source_has_the_rate_that_it_achieved_its_gaps_and_its_lateness() {
    let machine = measured();
    let run = machine.bench.run_of(2);
    for source in ["proc", "nvml", "dcgm"] {
        let quality = run.record.sampling.iter().find(|quality| quality.source == source && quality.ticks > 0);
        let quality = quality.unwrap_or_else(|| panic!("no {source} in {:?}", run.record.sampling));
        assert!(quality.asked_hz > 0.0 && quality.achieved_hz > Some(0.0) && quality.longest_gap_s > Some(0.0), "{quality:?}");
        assert_eq!(quality.lateness_p99_s.is_some(), source != "dcgm", "DCGM sets its own pace: {quality:?}");
    }
    let report = machine.collo(&["report", "--format", "markdown"]).exits(0);
    report.answers("| source | set Hz | slowest run Hz | longest gap s | lateness p99 ms | missed |").answers("| nvml | 10.0 | ");
}

#[test]
fn processor_memory_and_disk_of_members_are_read_on_a_cpu() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\nseconds = 0.5\nitems = 50\nspin = true\ndegree = 2\n");
    bench.run(&[]).exits(0);
    let run = bench.run_of(2);
    let read = metrics(&run);
    for metric in ["cpu_ratio", "rss_bytes", "read_bytes"] {
        assert!(read.iter().any(|name| name == metric), "{metric} is not in {read:?}");
    }
    // A kernel may be built without pressure stall information.
    let has_pressure = fs_err::read_to_string("/proc/pressure/cpu").is_ok();
    assert_eq!(read.iter().any(|name| name.starts_with("cpu_pressure")), has_pressure, "{read:?}");
    assert!(run.record.members.iter().all(|m| m.cpu_time_s > Some(0.0) && m.peak_rss_bytes > Some(1 << 20)), "{:?}", run.record);
    let report = bench.collo(&["report", "--format", "json"]).exits(0).json();
    let group = group(&report);
    for member in group["members"].as_array().expect("members") {
        assert!(member["cpu_ratio"]["estimate"].as_f64() > Some(0.0), "{member}");
    }
    assert!(group["memory_bytes"]["estimate"].as_f64() > Some(1e6) && group["memory_kind"] == "pss_peak", "{group}");
}
