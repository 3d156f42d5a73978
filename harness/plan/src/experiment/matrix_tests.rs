use crate::facts::Cores;
use crate::fixture::{experiment, mine, said};

#[test]
fn what_is_wrong_with_a_zip_is_shown_where_it_stands() {
    insta::assert_snapshot!(said(&mine("[[zip]]\nworkload = [\"tiny\", \"small\"]\nbatch_size = [32, 64, 128]\n")), @"
    error: axis `batch_size` has 3 values, and `workload` has 2, at experiments/mine.toml:5:14
     5 | batch_size = [32, 64, 128]
       |              ^^^^^^^^^^^^^ axes of a `[[zip]]` step together
    ");
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\ndegree = 2\n[[zip]]\ndegree = [1, 2]\nimages = [2, 4]\n")), @"
    error: axis `degree` is in `[axes]`, too, at experiments/mine.toml:7:1
     7 | degree = [1, 2]
       | ^^^^^^ leave one out
    ");
    insta::assert_snapshot!(said(&mine("[[zip]]\nworkload = [\"tiny\"]\n[[zip]]\nworkload = [\"small\"]\n")), @r#"
    error: axis `workload` is in another `[[zip]]`, too, at experiments/mine.toml:6:1
     6 | workload = ["small"]
       | ^^^^^^^^ leave one out
    "#);
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\n[[zip]]\n")), @r#"
    error: a zip has no axes at experiments/mine.toml:5:1
     5 | [[zip]]
       | ^^ as in `workload = ["small", "large"]` and `batch_size = [32, 8]`
    "#);
    insta::assert_snapshot!(said(&mine("[axes]\nworkload = \"tiny\"\n[[zip]]\ndegree = 2\nimages = [1]\n")), @"
    error: `degree` must be a list, not a whole number, at experiments/mine.toml:6:10
     6 | degree = 2
       |          ^
    ");
    insta::assert_snapshot!(said(&mine("search = \"largest-degree\"\n[axes]\nworkload = \"tiny\"\n[[zip]]\ndegree = [1, 2]\n")), @"
    error: a search walks the axis `degree`, which cannot step with others, at experiments/mine.toml:7:1
     7 | degree = [1, 2]
       | ^^^^^^ move it to `[axes]`
    ");
}

#[test]
fn a_mixed_group_takes_the_modes_of_the_axes_or_of_a_zip_before_naive() {
    let modes = |lines: &str| -> Vec<String> {
        let group = "\n[[group]]\nmembers = [{ workload = \"tiny\" }, { workload = \"small\" }]\n";
        experiment(&format!("{lines}{group}")).groups[0].sharing.iter().map(|s| s.mode.label()).collect()
    };
    assert_eq!(modes("[axes]\nworkload = \"tiny\"\nsharing = \"mps\""), ["mps"]);
    let zip = "[axes]\nworkload = \"tiny\"\n[[zip]]\ndegree = [2, 3, 4]\nsharing = [\"mps\", \"mps:50%\", \"mps\"]";
    assert_eq!(modes(zip), ["mps", "mps:50%"]);
    assert_eq!(modes("[axes]\nworkload = \"tiny\""), ["naive"]);
}

#[test]
fn a_setting_of_a_zip_is_one_of_the_workload_of_its_step() {
    insta::assert_snapshot!(said(&mine("[[zip]]\nworkload = [\"cooked\", \"small\"]\nrecipe = [\"timm\", \"timm\"]\n")), @r#"
    error: workload `small` has no setting `recipe` at experiments/mine.toml:5:1
     5 | recipe = ["timm", "timm"]
       | ^^^^^^ it has `amp`, `batch_size`, `images`, `nesterov` and `rate`
    "#);
    insta::assert_snapshot!(said(&mine("[[zip]]\nworkload = [\"tiny\", \"small\"]\nimages = [512, \"all\"]\n")), @r#"
    error: `images` of `small` must be a whole number, not text, at experiments/mine.toml:5:16
     5 | images = [512, "all"]
       |                ^^^^^ its default is `512`
    "#);
}

#[test]
fn numbers_may_be_sums() {
    let e = experiment(
        "repetitions = \"2 * 3\"\n[axes]\nworkload = \"tiny\"\nbatch_size = [\"2 * 16\"]\nimages = [\"4 * 256\"]\n[thresholds]\nslowdown = \"1 + 0.1\"\n",
    );
    assert_eq!((e.repetitions, &e.axes.batch_size[..], e.thresholds.slowdown), (6, &[32][..], 1.1));
    assert_eq!(e.axes.settings, [("images".to_string(), vec![1024.into()])]);
    let origins = e.explain();
    let value = |key: &str| origins.iter().find(|o| o.key == key).map(|o| o.value.as_str());
    assert_eq!(value("repetitions"), Some("\"2 * 3\" = 6"));
    let cooked = experiment("[axes]\nworkload = \"cooked\"\nrate = \"7 * 0.1\"\n");
    assert_eq!(cooked.axes.settings, [("rate".to_string(), vec![0.7.into()])]);
}

#[test]
fn a_wrong_sum_is_shown_where_it_stands() {
    insta::assert_snapshot!(said(&mine("repetitions = \"2 *\"\nepochs = \"5 / 2\"\nthreads = \"1 - 1\"\n[axes]\nworkload = \"tiny\"\nimages = \"4 * (2\"\n")), @r#"
    error: expected a number at experiments/mine.toml:3:19
     3 | repetitions = "2 *"
       |                   ^
    error: epochs `5 / 2` is 2.5, which is not a whole number between 1 and 10000, at experiments/mine.toml:4:10
     4 | epochs = "5 / 2"
       |          ^^^^^^^
    error: threads `1 - 1` is 0, which is not a whole number between 1 and 1024, at experiments/mine.toml:5:11
     5 | threads = "1 - 1"
       |           ^^^^^^^
    error: expected `)` at experiments/mine.toml:8:17
     8 | images = "4 * (2"
       |                 ^
    "#);
}

#[test]
fn cores_are_a_word_a_list_for_all_or_a_list_for_each_member() {
    let cores = |value: &str| experiment(&format!("cores = {value}\n[axes]\nworkload = \"tiny\"\n")).cores;
    assert_eq!(cores("[\"0-1\", \"3\"]"), Cores::PerMember(vec![vec![0, 1], vec![3]]));
    assert_eq!(cores("\"gpu-local-spread\""), Cores::GpuLocalSpread);
    assert!(cores("[\"0-1\", \"3\"]").is_uneven() && !cores("[\"0\", \"3\"]").is_uneven() && !cores("\"0-3\"").is_uneven());
    insta::assert_snapshot!(said(&mine("cores = [\"0-1\", \"spread\"]\n[axes]\nworkload = \"tiny\"\n")), @r#"
    error: invalid `cores` value `spread` at experiments/mine.toml:3:17
     3 | cores = ["0-1", "spread"]
       |                 ^^^^^^^^ a list as `0-3,8` for each member
    "#);
}
