//! Streams of stand-ins for `dcgmi`: shell scripts that print as it does, refuse, break off or do not end.

use std::sync::mpsc;
use std::time::Instant;

use super::super::super::gpm_metrics::PROFILED;
use super::*;
use crate::latest::Latest;

#[test]
fn a_gap_counts_the_rows_that_did_not_come() {
    let mut beat = Beat::default();
    for at_ms in [0, 101, 202, 603, 704] {
        beat.see(0, at_ms * 1_000_000);
        beat.see(1, at_ms * 1_000_000 + 50);
    }
    assert_eq!((beat.ticks, beat.missed, beat.longest_gap_ns), (5, 3, 401_000_000));
}

/// The result of a stream, and how long it took to stop.
struct Read {
    samples: Vec<Sample>,
    finished: SourceResult,
    latest: Latest,
    ended_in: Duration,
}

impl Read {
    fn values(&self, scope: &str, metric: &str) -> Vec<Option<f64>> {
        self.samples.iter().filter(|s| &*s.scope == scope && s.metric == metric).map(|s| s.value).collect()
    }
}

/// Read two instances through a script until there are enough values, it has ended, or the time is over.
fn read(script: &str, enough: usize, time: Duration) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("dcgmi");
    let program = program.to_str().unwrap().to_string();
    // Another process writes it: a program that this one has open for writing, be it in a fork of another test, cannot be started.
    let text = format!("#!/bin/bash\n{script}\n");
    let write = ["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\"", &program, &text];
    assert!(std::process::Command::new("sh").args(write).status().unwrap().success());
    let metrics: Vec<_> = PROFILED.iter().filter(|p| [1002, 1006].contains(&p.dcgm)).collect();
    let target = |entity: u32, scope: &str| DcgmTarget {
        entity,
        scope: scope.into(),
        metrics: metrics.clone(),
        pcie: Arc::default(),
        tells: Arc::default(),
    };
    let targets = vec![target(3, "mig:A"), target(0, "mig:B")];
    let (batches, received) = mpsc::channel();
    let (stop, latest) = (Arc::new(AtomicBool::new(false)), Latest::default());
    let outlet = Outlet { batches, latest: latest.clone(), tap: None };
    let stream = Stream::of(&program, Level::GpuInstance, targets, stop.clone(), outlet);
    let thread = std::thread::spawn(move || stream.run());
    let until = Instant::now() + time;
    let mut samples = Vec::new();
    while Instant::now() < until && !thread.is_finished() && samples.len() < enough {
        samples.extend(received.recv_timeout(Duration::from_millis(10)).unwrap_or_default());
    }
    stop.store(true, Ordering::Relaxed);
    let asked = Instant::now();
    let finished = thread.join().unwrap();
    let ended_in = asked.elapsed();
    samples.extend(received.try_iter().flatten());
    Read { samples, finished, latest, ended_in }
}

const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_stream_that_falls_to_zero_is_begun_again_once_and_what_it_said_is_kept() {
    let row = "GPU-I 3         %s        0.000        \\n";
    let script = format!(
        "{HEADS}; for i in 1 2 3 4; do printf '{row}' 0.500; done; for i in $(seq 40); do printf '{row}' 0.000; done; sleep 30"
    );
    let read = read(&script, 4 * 40, Duration::from_secs(3));
    let values = read.values("mig:A", "sm_active_ratio");
    let busy = values.iter().filter(|v| **v == Some(0.5)).count();
    assert_eq!((busy, values.contains(&Some(0.0))), (4, true), "two rows of each of two that count: {values:?}");
    assert_eq!(read.finished.quality.remarks.len(), 1, "{:?}", read.finished.quality.remarks);
}

const HEADS: &str = "printf '#Entity         SMACT        FP64A        \\nID                                        \\n'";

#[test]
fn rows_go_to_the_instance_that_was_asked_for_and_the_first_two_are_dropped() {
    let script = format!(
        "{HEADS}; for i in 0 1 2 3; do echo 'GPU 0           0.999        0.999        '; \
         echo \"GPU-I 3         0.30$i        N/A          \"; echo \"GPU-I 0         0.10$i                     \"; \
         echo \"GPU-I 7         0.70$i        0.1          \"; sleep 0.1; done; sleep 30"
    );
    let read = read(&script, 8, TIMEOUT);
    assert_eq!(read.values("mig:A", "sm_active_ratio"), [Some(0.302), Some(0.303)]);
    assert_eq!(read.values("mig:B", "sm_active_ratio"), [Some(0.102), Some(0.103)]);
    assert_eq!(read.values("mig:A", "fp64_active_ratio"), [None, None], "absent is not zero");
    assert_eq!(read.samples.iter().map(|s| s.window_ns).max(), Some(100_000_000));
    assert_eq!(read.finished.quality.unread_lines, 8, "rows of a card and of an instance that nobody asked for");
    assert_eq!(read.finished.quality.absent["fp64_active_ratio"], "dcgmi prints no value");
    assert_eq!(read.latest.lock().unwrap()["mig:A"].sm_active_ratio, Some(0.303));
}

#[test]
fn a_field_that_is_refused_is_left_out_and_said() {
    let refuse = "if [[ $3 == *1006* ]]; then echo 'Error setting watches. Result: -6: not supported' >&2; exit 1; fi";
    let rows = "printf '#Entity         SMACT        \\n'; while sleep 0.05; do echo 'GPU-I 3         0.500        '; done";
    let read = read(&format!("{refuse}; {rows}"), 5, TIMEOUT);
    assert!(read.values("mig:A", "sm_active_ratio").len() > 3);
    let absent = &read.finished.quality.absent;
    assert!(absent["fp64_active_ratio"].contains("not supported"), "{absent:?}");
    assert_eq!(absent["sm_active_ratio of mig:B"], "dcgmi printed no row of it");
}

#[test]
fn an_engine_that_is_not_there_is_the_reason_that_everything_is_absent() {
    let script = "echo 'Error: unable to establish a connection to the specified host: localhost'; exit 255";
    let read = read(script, usize::MAX, TIMEOUT);
    assert!(read.samples.is_empty());
    assert!(read.finished.quality.absent["sm_active_ratio"].contains("unable to establish a connection"));
    assert_eq!((read.finished.quality.ticks, read.finished.quality.achieved_hz), (0, None));
}

#[test]
fn a_stream_that_breaks_off_is_begun_again() {
    let script = format!("{HEADS}; for i in 1 2 3; do echo 'GPU-I 3         0.500        0.1          '; done; exit 3");
    let read = read(&script, 4, TIMEOUT);
    assert_eq!(read.values("mig:A", "sm_active_ratio").len(), 2, "one row that counts of each of two");
    assert_eq!(read.finished.quality.ticks, 6, "with those that do not");
}

#[test]
fn a_dcgmi_that_does_not_end_when_asked_is_killed() {
    let read = read(&format!("trap '' TERM; {HEADS}; while :; do sleep 0.05; done"), 1, Duration::from_millis(400));
    assert!(read.ended_in < TIMEOUT, "{:?}", read.ended_in);
}
