//! `collo try`: commands of one's own, in a folder without a project.

use crate::support::Bench;

/// Epochs of a fourth of a second, with their duration in the line.
const TIMED: &str = "import time
for epoch in range(400):
    start = time.monotonic()
    while time.monotonic() - start < 0.25: sum(range(1000))
    print(f'epoch {epoch} took {time.monotonic() - start:.3f} s')
";

/// Every fiftieth step, with the time of that step alone, after a set-up that the other has not.
const STEPS: &str = "import time
time.sleep(2)
for step in range(20000):
    start = time.monotonic()
    while time.monotonic() - start < 0.01: sum(range(100))
    if step % 50 == 0: print(f'iter {step}: loss 2.51, time {(time.monotonic() - start) * 1000:.2f}ms')
";

fn bench() -> Bench {
    Bench::new().file("mine/timed.py", TIMED).file("mine/steps.py", STEPS)
}

#[test]
fn two_scripts_are_measured_alone_and_together_from_one_line() {
    let bench = bench();
    let tried = bench.collo(&["-C", "mine", "try", "python3 timed.py", "python3 steps.py", "--for", "40s", "--save", "tried"]);
    let tried = tried.says("each line such as `epoch ").says("each line such as `iter ").says("report: ");
    let sentence = tried.stdout.lines().next().unwrap_or_default();
    let of = |text: &str| sentence.contains(text);
    assert!(
        of("under naive sharing `python3 timed.py` takes ") && of("`python3 steps.py` takes "),
        "{}\n{}",
        tried.stdout,
        tried.stderr
    );
    assert!(of("× the work per second of running in turn: "), "{sentence}");
    let written = |name: &str| fs_err::read_to_string(bench.at("mine/tried").join(name)).expect("written");
    assert!(written("workloads/timed/workload.toml").contains(r"(?P<seconds>"));
    let steps = written("workloads/steps/workload.toml");
    assert!(steps.contains(r"(?P<step>") && !steps.contains("milliseconds"), "a line has the time of one step of fifty: {steps}");
    // It is a project as any other.
    bench.collo(&["-C", "mine/tried", "plan", "try"]).exits(0);
    bench.collo(&["-C", "mine/tried", "report", "last"]).exits(0).answers("steps+timed naive");
    bench.collo(&["-C", "mine", "try", "python3 timed.py", "--save", "tried"]).exits(2).says("is a project already");
    let inside = bench.collo(&["-C", "mine", "try", "python3 timed.py", "--save", "tried/experiments"]).exits(2);
    inside.says("is there already, and is not an empty folder").says("hint: name a new folder with `--save`");
}

#[test]
fn a_script_that_shows_no_progress_and_ends_is_measured_by_its_whole_runs() {
    let silent =
        "import time\nstart = time.monotonic()\nwhile time.monotonic() - start < 0.3: sum(range(1000))\nprint('ready', end='')\n";
    let bench = bench().file("mine/silent.py", silent);
    let tried = bench.collo(&["-C", "mine", "try", "python3 silent.py # quick", "--for", "40s", "--save", "tried"]).exits(0);
    let tried = tried.says("it shows no progress and ends by itself: it is run again and again, and each whole run (about ");
    tried.answers("each copy of `python3 silent.py # quick` takes ");
    let report = bench.collo(&["-C", "mine/tried", "report", "last", "--json"]).exits(0).json();
    for cell in report["cells"].as_array().expect("cells") {
        assert_eq!(cell["outcome"], "completed", "{cell}");
        let run_s = cell["epoch_time_s"]["estimate"].as_f64().expect("measured");
        assert!(run_s >= 0.3, "a whole run takes longer than its loop: {run_s} s");
    }
}

/// Lines that recur, and then silence for longer than lines of progress are watched for: 4 s of 40 s.
#[test]
fn lines_of_a_set_up_that_is_silent_after_them_are_no_progress() {
    let loading = "import time
for part in range(5):
    time.sleep(0.1); print('checking a file in the cache')
time.sleep(6)
for epoch in range(400):
    start = time.monotonic()
    while time.monotonic() - start < 0.25: sum(range(1000))
    print(f'epoch {epoch}: loss 0.3')
";
    let bench = bench().file("mine/loading.py", loading);
    let tried = bench.collo(&["-C", "mine", "try", "python3 loading.py", "--for", "40s", "--save", "tried"]);
    tried.says("each line such as `epoch ");
}

#[test]
fn a_script_that_shows_progress_and_soon_ends_is_not_asked_for_more_than_it_shows() {
    let short = "import time
for epoch in range(5):
    start = time.monotonic()
    while time.monotonic() - start < 0.3: sum(range(1000))
    print(f'Epoch {epoch} done')
";
    let bench = bench().file("mine/short.py", short);
    // Under load the lines of two epochs may arrive together, and that run fails.
    let tried = bench.collo(&["-C", "mine", "try", "python3 short.py", "--for", "40s"]);
    let tried = tried.says("each line such as `Epoch ").answers("each copy of `python3 short.py` takes ");
    assert!(!tried.stderr.contains("ended early"), "{}", tried.stderr);
}

#[test]
fn what_cannot_be_measured_is_said_with_its_last_lines() {
    let bench = bench().file("mine/broken.py", "print('loading'); raise SystemExit('no data in ./data')\n");
    let broken = bench.collo(&["-C", "mine", "try", "python3 broken.py"]).exits(2);
    insta::assert_snapshot!(without_times(&broken.stderr), @r"
    `python3 broken.py`: looking for its progress, for at most N s
    error: `python3 broken.py`: it exited with N after N s
      caused by: its last lines:
          │ loading
          │ no data in ./data
    hint: run it by hand in this folder first
    ");
    let short = bench.collo(&["-C", "mine", "try", "true"]).exits(2);
    short
        .says("error: `true`: it shows no progress, and a whole run takes only ")
        .says("hint: give it more work: below 100 ms it is");
    let bench = bench.file("mine/wide.py", "import os\nprint(os.get_terminal_size(1))\n");
    let wide = bench.collo(&["-C", "mine", "try", "python3 wide.py"]).exits(2);
    wide.says("hint: it asks for the size of its terminal, and a member has none; the command `script -qefc 'python train.py' /dev/null`");
    let several = bench.collo(&["-C", "mine", "try", "python3 timed.py", "python3 steps.py", "--degree", "3"]).exits(2);
    insta::assert_snapshot!(several.stderr, @r"
    error: `--degree` is for one command, and there are several
    hint: repeat a command as many times as it is to run
    ");
}

/// Durations vary.
fn without_times(text: &str) -> String {
    let number = |word: &str| word.parse::<f64>().is_ok();
    text.lines()
        .map(|line| line.split(' ').map(|w| if number(w) { "N" } else { w }).collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

#[test]
fn scripts_that_compute_beside_the_gpu_have_no_number_on_it() {
    let gpu = crate::sim::bench("a100-40gb").file("mine/timed.py", TIMED);
    let tried = gpu.collo(&["-C", "mine", "try", "python3 timed.py", "--for", "40s", "--gpu", "0", "--save", "tried"]).exits(1);
    let tried = tried.answers("under naive sharing they have no result together: mode lost: ").answers("under MPS sharing they");
    assert!(!tried.stdout.contains("as long as alone"), "{}", tried.stdout);
}
