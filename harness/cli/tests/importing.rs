//! What another program scheduled is planned here, and what it tracked is compared, never as measured by collo.

use serde_json::Value;

use crate::support::{Bench, checkout};

const SCHEDULE: &str = "Experiment,Workload,Status,Run,Devices,Collocation,     File,Listeners,Params
         3,       1,      ,   ,      0,          -,mine/net.py,smi+top,--batch-size 64
         3,       2,      ,   ,      0,        MPS,mine/net.py,smi+top,--batch-size 64
         3,       2,      ,   ,      0,        MPS,mine/net.py,smi+top,--batch-size 64
         3,       3,      ,   ,      0,    1g.5gb,mine/net.py,smi+top,--batch-size 8
         3,       3,      ,   ,      0,   3g.20gb,mine/net.py,smi+top,--batch-size 8
         3,       4,      ,   ,    0+1,          -,mine/net.py,smi+top,--batch-size 64
";

fn scheduled() -> Bench {
    let gpu = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    Bench::new()
        .file("mig-profiles/a100-40gb.toml", &gpu)
        .file("mine.csv", SCHEDULE)
        .file("mine/net.py", "print('epoch 1 took 2 s')\n")
}

#[test]
fn a_schedule_of_radts_is_an_experiment_that_plans() {
    let bench = scheduled();
    let answer = bench.collo(&["import", "radt", "mine.csv"]).exits(0);
    assert!(answer.stderr.contains("line 7: it runs on several GPUs, `0+1`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("lines 2, 3, 4, 5, 6: Listeners `smi+top`"), "{}", answer.stderr);
    let plan = bench.collo(&["plan", "mine", "--gpu", "a100-40gb", "--no-predict", "--json"]).exits(0);
    let plan: Value = serde_json::from_str(&plan.stdout).expect("JSON");
    let mut cells: Vec<&str> = plan["cells"].as_array().expect("a list").iter().filter_map(|c| c["cell"].as_str()).collect();
    cells.sort_unstable();
    insta::assert_snapshot!(format!("{}\n{}", cells.join("\n"), plan["refusals"]), @"
    net solo b64
    net-1g-5gb mig:1g.5gb b8
    net-1g-5gb solo b8
    net-1g-5gb+net-3g-20gb mig b8
    net-3g-20gb mig:3g.20gb b8
    net-3g-20gb solo b8
    net×2 mps b64
    []
    ");
    let again = bench.collo(&["import", "radt", "mine.csv"]).exits(2);
    assert!(again.stderr.contains("experiments/mine.toml exists already"), "{}", again.stderr);
}

#[test]
fn a_schedule_of_which_nothing_can_be_carried_is_an_error_and_nothing_is_written() {
    let rows = "Experiment,Workload,Devices,Collocation,File,Params\n1,1,0,-,a.py,\n1,1,1,-,a.py,\n";
    let bench = Bench::new().file("two.csv", rows);
    let answer = bench.collo(&["import", "radt", "two.csv"]).exits(2);
    assert!(
        answer.stderr.contains("nothing of two.csv can be imported") && answer.stderr.contains("line 3"),
        "{}",
        answer.stderr
    );
    assert!(!bench.at("experiments/two.toml").exists() && !bench.at("workloads/a").exists());
}

/// A run as radT tracks it, with its board power each second.
fn track(bench: &Bench, id: &str, letter: &str, parent: Option<&str>, power_w: &[f64]) {
    let write = |name: &str, text: &str| bench.write(&format!("mlruns/3/{id}/{name}"), text);
    write("meta.yaml", "end_time: 1700000060000\nlifecycle_stage: active\nstart_time: 1700000000000\nstatus: 3\n");
    for (name, value) in [("letter", letter), ("workload", "1"), ("file", "net.py"), ("batch-size", "64"), ("model", "net.py")] {
        write(&format!("params/{name}"), value);
    }
    parent.iter().for_each(|parent| write("tags/mlflow.parentRunId", parent));
    let lines: Vec<String> =
        power_w.iter().enumerate().map(|(at, w)| format!("{} {w} 0\n", 1_700_000_000_000 + at * 1000)).collect();
    write("metrics/SMI - Power Draw", &lines.concat());
    write("metrics/DCGMI - SN Active", "1700000000000 0.0 0\n1700000001000 0.0 0\n");
}

#[test]
fn runs_that_radt_tracked_are_compared_and_every_word_says_that_collo_did_not_measure_them() {
    let bench = scheduled();
    bench.collo(&["import", "radt", "mine.csv"]).exits(0);
    bench.write("mlruns/3/meta.yaml", "name: nets\n");
    track(&bench, "aa", "0_A_MPS", None, &[100.0, 120.0]);
    track(&bench, "bb", "0_B_MPS", Some("aa"), &[100.0, 120.0]);
    track(&bench, "cc", "0", None, &[90.0]);
    let import = bench.collo(&["import", "radt", "mlruns", "--to", "old.json", "--gpu", "NVIDIA A100-SXM4-40GB"]).exits(0);
    assert!(import.stdout.contains("2 cells of 2 groups, imported from radT, not measured by collo"), "{}", import.stdout);
    assert!(
        import.stderr.contains("absent: sm_active_ratio of `net×2 mps b64`, `net solo b64`: every reading is 0"),
        "{}",
        import.stderr
    );
    bench.collo(&["import", "radt", "mlruns", "--to", "old.json"]).exits(2);
    track(&bench, "dd", "0", None, &[110.0]);
    std::fs::remove_dir_all(bench.at("mlruns/3/aa")).expect("there");
    std::fs::remove_dir_all(bench.at("mlruns/3/bb")).expect("there");
    bench.collo(&["import", "radt", "mlruns/3", "--to", "new.json", "--gpu", "NVIDIA A100-SXM4-40GB"]).exits(0);
    let compared = bench.collo(&["compare", "old.json", "new.json", "--quantity", "power_w"]).exits(0);
    for said in [
        "the left side is indicative: imported from radT, not measured by collo",
        "not judged: indicative left, indicative right",
        "only left: net×2 mps b64",
    ] {
        assert!(compared.stdout.contains(said), "{said}: {}", compared.stdout);
    }
    let published = bench.collo(&["compare", "published:study", "new.json"]);
    published.answers("all of it is indicative: imported from radT, not measured by collo");
}

/// The tables of MLflow's database that hold runs, with the columns that are read, as mlflow/store/tracking/dbmodels/models.py has them.
const TABLES: &str = "
    CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256), lifecycle_stage VARCHAR(32));
    CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, status VARCHAR(9), start_time BIGINT, end_time BIGINT,
        lifecycle_stage VARCHAR(20), experiment_id INTEGER);
    CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
    CREATE TABLE tags (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
    CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT, is_nan BOOLEAN);
    INSERT INTO experiments VALUES (0, 'Default', 'active'), (3, 'nets', 'active'), (4, 'more', 'active'), (5, 'old', 'deleted');
";

/// Add a run as radT tracks it to a database.
fn insert(to: &rusqlite::Connection, experiment: u32, id: &str, letter: &str, parent: Option<&str>, power_w: &[f64]) {
    let start_ms = 1_700_000_000_000_i64;
    let run = rusqlite::params![id, start_ms, start_ms + 60_000, experiment];
    to.execute("INSERT INTO runs VALUES (?, 'FINISHED', ?, ?, 'active', ?)", run).expect("inserted");
    for (name, value) in [("letter", letter), ("workload", "1"), ("file", "net.py"), ("batch-size", "64"), ("model", "net.py")] {
        to.execute("INSERT INTO params VALUES (?, ?, ?)", [name, value, id]).expect("inserted");
    }
    if let Some(parent) = parent {
        to.execute("INSERT INTO tags VALUES ('mlflow.parentRunId', ?, ?)", [parent, id]).expect("inserted");
    }
    for (at, w) in power_w.iter().enumerate() {
        let reading = rusqlite::params![if w.is_nan() { 0.0 } else { *w }, start_ms + at as i64 * 1000, id, w.is_nan()];
        to.execute("INSERT INTO metrics VALUES ('SMI - Power Draw', ?, ?, ?, 0, ?)", reading).expect("inserted");
    }
}

#[test]
fn runs_in_a_database_are_imported_as_those_in_files_are() {
    let bench = scheduled();
    bench.write("mlruns/3/meta.yaml", "name: nets\n");
    let runs: [(&str, &str, Option<&str>, &[f64]); 3] = [
        ("aa", "0_A_MPS", None, &[100.0, f64::NAN, 120.0]),
        ("bb", "0_B_MPS", Some("aa"), &[100.0, 120.0]),
        ("cc", "0", None, &[90.0]),
    ];
    let database = rusqlite::Connection::open(bench.at("tracked")).expect("created");
    database.execute_batch(TABLES).expect("created");
    for (id, letter, parent, power_w) in runs {
        track(&bench, id, letter, parent, power_w);
        insert(&database, 3, id, letter, parent, power_w);
    }
    drop(database);
    let gpu = ["--gpu", "NVIDIA A100-SXM4-40GB"];
    bench.collo(&[&["import", "radt", "mlruns", "--to", "files.json"], &gpu[..]].concat()).exits(0);
    let imported = bench.collo(&[&["import", "radt", "tracked", "--to", "database.json"], &gpu[..]].concat()).exits(0);
    imported.answers("2 cells of 2 groups, imported from radT");
    let report =
        |name: &str| -> Value { serde_json::from_str(&fs_err::read_to_string(bench.at(name)).expect("written")).expect("JSON") };
    let (files, database) = (report("files.json"), report("database.json"));
    assert_eq!(files["cells"][0]["metrics"]["power_w"], database["cells"][0]["metrics"]["power_w"]);
    assert_eq!((&files["campaign"], &files["experiment"]), (&database["campaign"], &database["experiment"]));
    let power_w = database["cells"][0]["metrics"]["power_w"]["estimate"].as_f64().expect("a number");
    assert!((power_w - 110.0).abs() < 1e-9, "what is no number is not one of 0 W: {power_w}");
}

#[test]
fn a_database_that_is_not_ready_or_not_mlflows_is_refused_with_the_way_out() {
    let bench = scheduled();
    let import = |words: &[&str]| bench.collo(&[&["import", "radt"], words].concat());
    let open = |name: &str| rusqlite::Connection::open(bench.at(name)).expect("opened");
    open("other.db").execute_batch("CREATE TABLE runs (a)").expect("created");
    import(&["other.db"]).exits(2).says("not one that MLflow tracks to").says("no table `experiments`");
    open("view.db")
        .execute_batch(&TABLES.replace("CREATE TABLE tags (", "CREATE VIEW tags AS SELECT 1; CREATE TABLE other ("))
        .expect("created");
    import(&["view.db"]).exits(2).says("no table `tags`");
    let database = open("mlflow.db");
    database.execute_batch(TABLES).expect("created");
    import(&["mlflow.db"]).exits(2).says("no run of radT's is in mlflow.db");
    bench.write("mlruns/3/artifacts/x", "");
    import(&["mlruns"]).exits(2).says("no run of radT's is in mlruns").says("name mlflow.db");
    insert(&database, 3, "aa", "0", None, &[90.0]);
    insert(&database, 4, "bb", "0", None, &[95.0]);
    insert(&database, 5, "cc", "0", None, &[99.0]);
    import(&["mlflow.db"])
        .exits(2)
        .says("2 experiments of radT's")
        .says("experiment 3 (nets, 1 run)")
        .says("`--experiment NAME`");
    import(&["mlflow.db", "--experiment", "net"]).exits(2).says("no experiment of mlflow.db is named `net`").says("`nets`");
    // As `mlflow migrate-filestore` leaves it, and a server that writes.
    database.pragma_update(None, "journal_mode", "wal").expect("set");
    insert(&database, 4, "dd", "0", None, &[97.0]);
    import(&["mlflow.db", "--experiment", "4"]).exits(2).says("mlflow.db is being written").says("end what uses MLflow");
    drop(database);
    import(&["mlflow.db", "--experiment", "4"]).exits(0).answers("radt-more.json: 1 cell of 2 groups");
    assert!(!bench.at("mlflow.db-wal").exists() && !bench.at("mlflow.db-shm").exists());
    let bytes = fs_err::read(bench.at("mlflow.db")).expect("there");
    fs_err::write(bench.at("cut.db"), &bytes[..bytes.len() / 2]).expect("written");
    import(&["cut.db"]).exits(2).says("cut.db cannot be read");
    import(&["mine.csv", "--experiment", "4"]).exits(2).says("a schedule has none");
}
