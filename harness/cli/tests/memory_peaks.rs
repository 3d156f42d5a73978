//! The memory of a member on a CPU is its peak, also where it has freed most of it before what is shared could be read.

use crate::support::Bench;

const TOML: &str = "command = [\"python\", \"train.py\"]\nenvironment = \"system\"\n";

/// 400 MB for two thirds of each epoch.
const SPIKE: &str = "import collo, time
member = collo.connect()
member.hello(device='cpu')
member.wait_for_warm_up()
member.ready()
for epoch in member.epochs(2):
    for item in epoch.batches(range(30)):
        if item == 0:
            held = bytearray(400_000_000)
            held[::4096] = bytes(len(held[::4096])).replace(b'\\0', b'x')
            # However long that takes on a busy machine, all of it is held for 0.8 s.
            start = time.monotonic()
        if item == 20:
            del held
        time.sleep(max(0.0, start + 1.2 * (item + 1) / 30 - time.monotonic()))
    epoch.finish(items=30)
";

#[test]
fn memory_that_is_freed_before_an_epoch_ends_is_in_the_peak() {
    let bench = Bench::of("repetitions = 2\nepochs = 2\n[axes]\nworkload = \"spike\"\ndegree = 2\n")
        .file("workloads/spike/workload.toml", TOML)
        .file("workloads/spike/train.py", SPIKE);
    bench.run(&[]).exits(0);
    let report = bench.collo(&["report", "--format", "json"]).exits(0).json();
    let cells = report["cells"].as_array().expect("cells");
    for (cell, members) in [("spike solo", 1.0), ("spike×2 naive", 2.0)] {
        let found = cells.iter().find(|c| c["cell"] == cell).unwrap_or_else(|| panic!("no {cell} in {report}"));
        assert_eq!(found["memory_kind"], "pss_peak");
        let bytes = found["memory_bytes"]["estimate"].as_f64().expect("read");
        assert!((400e6 * members..450e6 * members).contains(&bytes), "{cell}: {bytes}");
    }
}
