use super::*;
use collo_plan::expand::expand;
use collo_plan::experiment::Experiment;
use collo_plan::plan::plan;
use collo_plan::prior::Prior;
use collo_plan::workload::Workloads;

const TINY: &str = "command = ['python', '{batch_size}', '{images}']\n[settings]\nbatch_size = 32\nimages = 1024\n[forecast.cpu]\nset_up_s = 4.0\nepoch_s = 1.6\nmemory_bytes = 800_000_000\n";
const SLEEP: &str = "command = ['python', '{seconds}']\n[settings]\nseconds = 1.0\n";

fn facts() -> DeviceFacts {
    DeviceFacts { cores: vec![0, 1], memory_bytes: Some(24 << 30), ..collo_device::cpu::facts() }
}

fn planned(lines: &str) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("tiny", TINY), ("sleep", SLEEP)] {
        std::fs::create_dir(folder.path().join(name)).expect("created");
        std::fs::write(folder.path().join(name).join("workload.toml"), text).expect("written");
    }
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, format!("device = \"cpu\"\n{lines}")).expect("written");
    let workloads = Workloads::load(folder.path()).expect("readable");
    let experiment = Experiment::read(&path, &workloads, &Default::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let cells = expand(&experiment, None).unwrap_or_else(|mistake| panic!("{mistake}"));
    plan(&experiment, &cells, &facts(), &Prior::default())
}

#[test]
fn a_plan_shows_cells_order_runs_forecast_and_refusals() {
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2, 3]\n");
    insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
    mine on cpu (2 cores, 24 GiB)

       cell              sharing  degree  slots                memory  runs  each  total  against
    1  tiny solo b32     solo          1  whole CPU          0.75 GiB     6  0:07   0:43  baseline
    2  tiny×2 naive b32  naive         2  whole CPU, shared  1.49 GiB     3  0:07   0:22  1
    3  tiny×3 naive b32  naive         3  whole CPU, shared   2.2 GiB     3  0:09   0:26  1

    order     1 2 3 1 · 1 3 2 1 · 1 3 2 1     3 blocks, shuffled by seed 42
    runs      12 × 2 epochs (1 warm-up, 1 measured); finished members keep running;
              baselines open and close a block
    forecast  about 2 min: 1:31 above, 0:11 between runs
    refused   none
    ");
    assert_eq!(next(&plan, "mine", " --shard 1/2"), "next: collo run mine --shard 1/2");
}

#[test]
fn what_is_refused_is_listed_with_its_reason_once() {
    let plan = planned("[axes]\nworkload = [\"tiny\", \"sleep\"]\nsharing = [\"naive\", \"mps\", \"mig\"]\ndegree = [2, 40]\n");
    insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
    mine on cpu (2 cores, 24 GiB)

       cell              sharing  degree  slots                memory  runs  each  total  against
    1  tiny solo b32     solo          1  whole CPU          0.75 GiB     6  0:07   0:43  baseline
    2  tiny×2 naive b32  naive         2  whole CPU, shared  1.49 GiB     3  0:07   0:22  1
    3  sleep solo        solo          1  whole CPU                 –     6     –      –  baseline
    4  sleep×2 naive     naive         2  whole CPU, shared         –     3     –      –  3
    5  sleep×40 naive    naive        40  whole CPU, shared         –     3     –      –  3

    order     1 2 1 3 5 4 3 · 3 5 4 3 1 2 1 · 3 4 5 3 1 2 1     3 blocks, shuffled by seed 42
    runs      21 × 2 epochs (1 warm-up, 1 measured); finished members keep running;
              baselines open and close a block
    forecast  unknown for 3 of 5 cells (no earlier measurements);
              the others take 1:05, 0:20 between runs
    refused   9 of 14 cells
    – tiny×40 naive b32
        40 members need about 29.8 GiB, this machine has 24.0 GiB
        hint: `degree` up to 32 fits
    – tiny×2 mps b32
    – tiny×40 mps b32
    – sleep×2 mps
    – sleep×40 mps
        `mps` needs an NVIDIA GPU, this is a cpu
        hint: on a CPU: `naive`, `threads`
    – tiny×2 mig b32
    – tiny×40 mig b32
    – sleep×2 mig
    – sleep×40 mig
        `mig` needs an NVIDIA GPU, this is a cpu
        hint: on a CPU: `naive`, `threads`
    ");
}

#[test]
fn when_nothing_can_run_only_the_reasons_are_left() {
    let plan = planned("[axes]\nworkload = \"tiny\"\nsharing = \"mps\"\ndegree = 2\n");
    insta::assert_snapshot!(text(&plan, &facts(), None, 100), @r"
    mine on cpu (2 cores, 24 GiB)

    refused   1 of 1 cell
    – tiny×2 mps b32
        `mps` needs an NVIDIA GPU, this is a cpu
        hint: on a CPU: `naive`, `threads`
    ");
    assert_eq!(next(&plan, "mine", ""), "hint: every cell is refused here, so there is nothing to run");
}

#[test]
fn past_forty_cells_there_is_a_row_per_mode_and_degree() {
    let batches: Vec<u32> = (1..=15).collect();
    let plan = planned(&format!("epochs = 3\n[axes]\nworkload = \"tiny\"\nbatch_size = {batches:?}\ndegree = [1, 2, 3]\n"));
    insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
    mine on cpu (2 cores, 24 GiB)

    sharing  degree  cells      memory  runs  total
    solo          1     15  ≤ 0.75 GiB    90  13:12
    naive         2     15  ≤ 1.49 GiB    45   6:36
    naive         3     15   ≤ 2.2 GiB    45   8:24

    order     3 blocks, shuffled by seed 42; `--order` lists every repetition
    runs      180 × 3 epochs (1 warm-up, 2 measured); finished members keep running;
              baselines open and close a block
    forecast  about 31 min: 28:12 above, 2:59 between runs
    refused   none
    ");
}

#[test]
fn mixed_groups_show_what_they_are_held_against() {
    let plan = planned(
        "repetitions = 1\nepochs = 1\n[[group]]\nmembers = [{ workload = \"tiny\", batch_size = 128, count = 2 }, { workload = \"tiny\" }]\n",
    );
    insta::assert_snapshot!(text(&plan, &facts(), None, 100), @"
    mine on cpu (2 cores, 24 GiB)

       cell                  sharing  degree  slots                memory  runs  each  total  against
    1  tiny solo b32         solo          1  whole CPU          0.75 GiB     2  0:06   0:11  baseline
    2  tiny solo b128        solo          1  whole CPU          0.75 GiB     2  0:06   0:11  baseline
    3  tiny:b32+tiny:b128×2  naive         3  whole CPU, shared   2.2 GiB     1  0:06   0:06  1 2
       naive

    order     1 1 2 3 2     1 block, shuffled by seed 42
    runs      5 × 1 epoch (measured); finished members keep running, in mixed groups they exit;
              baselines open and close a block
    forecast  about 35 s: 0:29 above, 0:04 between runs
    refused   none
    ");
}

#[test]
fn a_narrow_screen_keeps_the_labels_and_what_is_forecast() {
    let plan = planned("[axes]\nworkload = \"tiny\"\ndegree = [1, 2]\n");
    insta::assert_snapshot!(text(&plan, &facts(), None, 60), @"
    mine on cpu (2 cores, 24 GiB)

       cell                memory  runs  each  total  against
    1  tiny solo b32     0.75 GiB     6  0:07   0:43  baseline
    2  tiny×2 naive b32  1.49 GiB     3  0:07   0:22  1
    (not shown at this width: slots, degree, sharing)

    order     1 2 1 · 1 2 1 · 1 2 1
              3 blocks, shuffled by seed 42
    runs      9 × 2 epochs (1 warm-up, 1 measured);
              finished members keep running;
              baselines open and close a block
    forecast  about 75 s: 1:05 above, 0:08 between runs
    refused   none
    ");
}

#[test]
fn the_order_lists_every_repetition() {
    let plan = planned("repetitions = 2\n[axes]\nworkload = \"tiny\"\ndegree = [2]\n");
    insta::assert_snapshot!(order(&plan, &facts(), 100), @r"
       block  cell              repetition
    1      1  tiny solo b32         1 of 4  opens the block
    2      1  tiny×2 naive b32      1 of 2
    3      1  tiny solo b32         2 of 4  closes the block
    4      2  tiny solo b32         3 of 4  opens the block
    5      2  tiny×2 naive b32      2 of 2
    6      2  tiny solo b32         4 of 4  closes the block
    ");
}

#[test]
fn a_run_names_the_cells_that_are_refused_for_one_reason_in_one_sentence() {
    let plan = planned("[axes]\nworkload = [\"tiny\", \"sleep\"]\nsharing = [\"naive\", \"mps\"]\ndegree = [2, 3, 40]\n");
    let refused = RefusedCells::by_reason(plan.refusals.iter().map(|r| &r.record));
    insta::assert_snapshot!(refused.iter().map(RefusedCells::sentence).collect::<Vec<_>>().join("\n"), @"
    tiny×40 naive b32 is refused: 40 members need about 29.8 GiB, this machine has 24.0 GiB
    tiny×2 mps b32, tiny×3 mps b32, tiny×40 mps b32 and 3 more are refused: `mps` needs an NVIDIA GPU, this is a cpu
    ");
}
