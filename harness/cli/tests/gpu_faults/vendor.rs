//! The command with NVIDIA's own MPS, of every driver that `.ci/vendor-programs` obtains, beside a simulated GPU: its daemon starts and
//! answers, its server finds no device, and that is what is reported; nothing is left.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use collo_store::{ObserverOutcome, Outcome};

use super::MPS;
use crate::sim::Machine;
use crate::support::checkout;
use crate::support::skip::skip;
use crate::vendor::{self, Vendor};

const TIMEOUT: Duration = Duration::from_secs(20);
const NO_DEVICE: &str = "no MPS server can start; it logged `Failed to start : no CUDA-capable device is detected`";

/// A simulated GPU on whose PATH this driver's MPS comes first.
fn machine(vendor: &Vendor, programs: &str) -> Machine {
    let machine = Machine::new("a100-40gb", MPS);
    let [(_, path), (_, libraries)] = vendor.environment();
    let simulated = crate::sim::program("nvidia-smi");
    let simulated = simulated.parent().expect("its folder").display();
    machine.env("PATH", &format!("{programs}:{simulated}:{path}")).env("LD_LIBRARY_PATH", &libraries)
}

#[test]
fn a_run_under_nvidias_own_mps_is_refused_before_its_members_start_with_the_reason_of_its_server() {
    for vendor in Vendor::all(skip) {
        let machine = machine(&vendor, &vendor.programs().display().to_string());
        machine.run(&[]).exits(1).says(NO_DEVICE);
        let run = machine.bench.runs().into_values().find(|run| run.record.cell.sharing == "mps").expect("it is stored");
        assert!(matches!(&run.record.outcome, Outcome::NotStaged { reason } if reason == NO_DEVICE), "{:?}", run.record.outcome);
        let names = fs_err::read_dir(run.path.join("mps")).expect("readable").flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<Vec<_>>(), [collo_device::mps::LOG], "driver {}", vendor.major);
        machine.bench.nothing_is_left(TIMEOUT);
        assert_eq!(machine.pipes(), [""; 0].map(std::path::PathBuf::from), "driver {}", vendor.major);
    }
}

#[test]
fn doctor_reports_why_nvidias_own_mps_server_does_not_start() {
    for vendor in Vendor::all(skip) {
        let machine = machine(&vendor, &vendor.programs().display().to_string());
        let answer = machine.collo(&["doctor"]);
        answer.answers(&format!("a private daemon does not work: {NO_DEVICE}"));
        machine.bench.nothing_is_left(TIMEOUT);
    }
}

#[test]
fn a_sites_wrapper_that_runs_a_program_before_nvidias_own_does_not_break_it() {
    for vendor in Vendor::all(skip) {
        let bench = crate::support::Bench::new();
        bench.write(
            "wrapped/nvidia-cuda-mps-control",
            &format!("#!/bin/sh\nwhen=$(date +%s)\nexec {} \"$@\"\n", vendor.control().display()),
        );
        let wrapper = bench.at("wrapped/nvidia-cuda-mps-control");
        fs_err::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).expect("ours");
        let machine = machine(&vendor, &bench.at("wrapped").display().to_string());
        // With SIGCHLD blocked the daemon of such a wrapper was killed by signal 11.
        machine.collo(&["doctor"]).answers(NO_DEVICE);
    }
}

#[test]
fn nvidias_own_nsys_watches_a_member_and_its_report_is_measured_and_removed() {
    let Some(nsys) = vendor::nsys() else {
        return skip("nsys", "Nsight Systems is not in target/vendor: run `.ci/vendor-programs`");
    };
    vendor::without_device_files();
    let toml = "epochs = 1\n[axes]\nworkload = \"small\"\nsharing = \"naive\"\ndegree = 1\nobserve = [\"none\", \"nsys\"]\n";
    let machine = Machine::new("a100-40gb", toml);
    let simulated = crate::sim::program("nvidia-smi");
    let folders = [&nsys, &simulated].map(|program| program.parent().expect("its folder").display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let machine = machine.env("PATH", &path);
    machine.bench.write("observers/nsys.toml", &fs_err::read_to_string(checkout().join("observers/nsys.toml")).expect("there"));
    machine.run(&[]).exits(0);
    let runs = machine.bench.runs();
    let run = runs.values().find(|run| run.record.cell.observe.as_deref() == Some("nsys")).expect("it is stored");
    let observer = run.record.observer.clone().expect("it was observed");
    assert_eq!(observer.outcome, ObserverOutcome::Watched);
    let written = observer.bytes_written.expect("a report");
    assert!((10_000..100_000_000).contains(&written), "{written} bytes: without samples of CPUs a report is small");
    machine.bench.nothing_is_left(TIMEOUT);
}
