//! The job of `collo slurm` on a real Slurm: one node, this machine, with daemons of the test's own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

use crate::support::{Bench, checkout, collo, skip::skip};

/// Two shards of one cell each, and their merge: seconds of work, and a minute on a machine under load.
const PATIENCE: Duration = Duration::from_secs(240);

/// A controller, a node and their authentication; ended on drop.
struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Cluster {
    /// `None` where Slurm is not installed, or may not be started.
    fn start() -> Option<Cluster> {
        Cluster::start_with("", |_| Vec::new())
    }

    /// With further lines of slurm.conf, and with variables of its daemons; the second makes the files that it needs in the cluster's folder.
    fn start_with(lines: &str, files: impl FnOnce(&Path) -> Vec<(&'static str, PathBuf)>) -> Option<Cluster> {
        let lacking: Vec<&str> = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"]
            .into_iter()
            .filter(|name| program(name).is_none())
            .collect();
        if !lacking.is_empty() {
            skip("slurm", &format!("{} not installed: `apt-get install slurm-wlm munge`", lacking.join(", ")));
            return None;
        }
        if !Uid::effective().is_root() {
            skip("slurm", "only root may start jobs for users");
            return None;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            skip("slurm", "a group of two needs two cores");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let variables = files(folder.path());
        let mut cluster = Cluster { folder, daemons: Vec::new(), variables };
        cluster.configure(cores, lines);
        let munged = ["--foreground", "--force"].map(String::from).into_iter().chain(
            [
                ("socket", "munge.socket"),
                ("pid-file", "munge.pid"),
                ("log-file", "munge.log"),
                ("seed-file", "munge.seed"),
                ("key-file", "munge.key"),
            ]
            .map(|(option, file)| format!("--{option}={}", cluster.at(file).display())),
        );
        cluster.spawn("munged", munged);
        cluster.wait("munge's socket", |c| c.at("munge.socket").exists());
        let conf = cluster.at("slurm.conf").display().to_string();
        cluster.spawn("slurmctld", ["-D".to_string(), "-f".into(), conf.clone()].into_iter());
        cluster.spawn("slurmd", ["-D".to_string(), "-N".into(), host(), "-f".into(), conf].into_iter());
        cluster.wait("an idle node", |c| c.ask("sinfo", &["-h", "-o", "%T"]).trim() == "idle");
        Some(cluster)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// slurm.conf(5); of the cluster only this machine is there.
    fn configure(&self, cores: usize, lines: &str) {
        std::fs::write(self.at("munge.key"), [7u8; 128]).expect("written");
        std::fs::set_permissions(self.at("munge.key"), std::os::unix::fs::PermissionsExt::from_mode(0o400)).expect("a key");
        // Clients of any user reach its socket.
        std::fs::set_permissions(self.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a folder");
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let (controller, node, host) = (free(), free(), host());
        let place = self.folder.path().display();
        let text = format!(
            "ClusterName=collotest\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={place}/munge.socket\nSlurmctldPort={controller}\nSlurmdPort={node}\nStateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool\nSlurmctldPidFile={place}/slurmctld.pid\nSlurmdPidFile={place}/slurmd.pid\n\
             SlurmctldLogFile={place}/slurmctld.log\nSlurmdLogFile={place}/slurmd.log\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nMpiDefault=none\n\
             SchedulerParameters=sched_interval=1,bf_interval=1\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=500 State=UNKNOWN\n\
             PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP\n{lines}"
        );
        std::fs::write(self.at("slurm.conf"), text).expect("written");
        for name in ["state", "spool"] {
            std::fs::create_dir(self.at(name)).expect("a folder");
        }
    }

    fn spawn(&mut self, name: &str, words: impl Iterator<Item = String>) {
        let mut command = Command::new(program(name).expect("installed"));
        command.args(words).env("SLURM_CONF", self.at("slurm.conf")).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, path)| (*name, path)));
        let log = std::fs::File::create(self.at(&format!("{name}.out"))).expect("a log");
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.daemons.push(command.spawn().expect("it starts"));
    }

    fn ask(&self, name: &str, words: &[&str]) -> String {
        let answer =
            Command::new(program(name).expect("installed")).args(words).env("SLURM_CONF", self.at("slurm.conf")).output();
        String::from_utf8_lossy(&answer.expect("it starts").stdout).into_owned()
    }

    fn wait(&self, what: &str, there: impl Fn(&Cluster) -> bool) {
        let begun = Instant::now();
        while !there(self) {
            assert!(begun.elapsed() < PATIENCE, "{what} did not come:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn logs(&self) -> String {
        let files = ["munged.out", "slurmctld.out", "slurmctld.log", "slurmd.out", "slurmd.log"];
        let text = |name: &str| std::fs::read_to_string(self.at(name)).unwrap_or_default();
        files.map(|name| format!("{name}:\n{}", text(name).lines().rev().take(15).collect::<Vec<_>>().join("\n"))).join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ask("scancel", &["--user=root"]);
        for daemon in self.daemons.iter_mut().rev() {
            // What ended by itself needs no signal.
            let _ = kill(Pid::from_raw(daemon.id() as i32), Signal::SIGTERM);
        }
        let until = Instant::now() + Duration::from_secs(20);
        for daemon in &mut self.daemons {
            while !matches!(daemon.try_wait(), Ok(Some(_))) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn host() -> String {
    let name = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_string()
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beyond = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(beyond).map(|folder| folder.join(name)).find(|found| found.is_file())
}

fn logs_of(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let logs = entries.filter(|path| path.extension().is_some_and(|e| e == "log"));
    logs.map(|path| format!("{}:\n{}", path.display(), std::fs::read_to_string(&path).unwrap_or_default())).collect()
}

#[test]
fn the_tasks_of_an_array_measure_a_shard_each_and_the_job_after_them_merges() {
    let Some(cluster) = Cluster::start() else { return };
    let conf = cluster.at("slurm.conf").display().to_string();
    let toml = "epochs = 2\n[axes]\nworkload = \"sleep\"\ndegree = 2\nseconds = [0.1, 0.2]\n";
    let bench = Bench::of(toml).env("SLURM_CONF", &conf);
    let answer = bench.collo(&["--json", "slurm", "x", "--shards", "2", "--shared", "--submit"]).exits(0).json();
    let jobs = [&answer["array_job"], &answer["merge_job"]].map(|job| job.as_str().expect("a number").to_string());
    let running = |c: &Cluster| !c.ask("squeue", &["-h", "-j", &jobs.join(",")]).trim().is_empty();
    cluster.wait("the end of the jobs", |c| !running(c));
    let logs = logs_of(&bench.at("slurm/x"));
    assert_eq!(bench.campaigns(), 3, "{logs}\n{}", cluster.logs());
    let merged = bench.campaign();
    let shards: Vec<String> = merged.manifest().origins.iter().filter_map(|o| Some(o.shard?.to_string())).collect();
    assert_eq!(shards, ["1/2", "2/2"], "{logs}");
    assert!(bench.at("reports/x/report.html").exists(), "{logs}");
    assert_eq!(merged.manifest().surroundings, None, "each task has its own");
    let shard = bench.runs_folder().find(&merged.manifest().origins[0].campaign).expect("stored");
    let variables = &shard.manifest().surroundings.as_ref().expect("stored").variables;
    assert!(variables.contains_key("SLURM_ARRAY_TASK_ID"), "{variables:?}");
    bench.collo(&["verify", "last"]).exits(0);
}

/// Where Debian has the plugins of Slurm.
fn has_lua() -> bool {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join("slurm-wlm/job_submit_lua.so")).any(|plugin| plugin.is_file())
}

#[test]
fn the_plugin_of_the_guide_places_holds_and_refuses_jobs() {
    if !has_lua() {
        return skip("slurm", "job_submit_lua.so not installed: `apt-get install slurm-wlm`");
    }
    let profile = fs_err::read_to_string(checkout().join("mig-profiles/a100-40gb.toml")).expect("there");
    let bench = Bench::new().file("mig-profiles/a100-40gb.toml", &profile);
    let card = |free_gib: u64| {
        format!(
            r#"[{{"id": "0", "node": "{}", "gpu": "a100-40gb", "sharing": "mps", "free_bytes": {}, "sm_active_ratio": 0.3, "tasks": [{{"id": "t"}}]}}]"#,
            host(),
            free_gib << 30
        )
    };
    bench.write("cards.json", &card(30));
    let started = Cluster::start_with("JobSubmitPlugins=lua\n", |folder| {
        fs_err::copy(checkout().join("docs/examples/job_submit.lua"), folder.join("job_submit.lua")).expect("copied");
        vec![("COLLO_PROJECT", bench.at("")), ("COLLO_CARDS", bench.at("cards.json")), ("COLLO", collo())]
    });
    let Some(cluster) = started else { return };
    let submit = |task: &str| {
        let mut command = Command::new(program("sbatch").expect("installed"));
        command.args(["--parsable", "--wrap=true", "--output=/dev/null", &format!("--comment=collo:{task}")]);
        command.env("SLURM_CONF", cluster.at("slurm.conf")).output().expect("it starts")
    };
    let job = |output: &std::process::Output| {
        let id = String::from_utf8_lossy(&output.stdout).trim().to_string();
        assert!(output.status.success(), "{output:?}\n{}", cluster.logs());
        cluster.ask("scontrol", &["show", "job", &id])
    };
    let placed = job(&submit(r#"{"memory_bytes": 6442450944}"#));
    assert!(
        placed.contains(&format!("ReqNodeList={}", host())) && placed.contains("AdminComment=collo: place, "),
        "{placed}\n{}",
        cluster.logs()
    );
    let refused = submit(r#"{"memory_bytes": 64424509440}"#);
    assert!(!refused.status.success(), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("it needs 60.0 GiB, and no card has as much memory"), "{said}");
    bench.write("cards.json", &card(2));
    let held = job(&submit(r#"{"memory_bytes": 6442450944}"#));
    assert!(held.contains("Priority=0") && held.contains("AdminComment=collo: wait, "), "{held}");
}

#[test]
fn where_slurm_is_not_the_scripts_are_written_and_submitting_says_why_not() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = [2, 3, 4]\n").env("PATH", "/nowhere");
    let too_many = bench.collo(&["slurm", "x", "--shards", "4"]).exits(2).says("`x` has cells for 3 shards, not for 4");
    too_many.says("hint: `--shards 3`");
    assert!(!bench.at("slurm").exists(), "nothing is written");
    bench
        .collo(&["slurm", "x", "--shards", "3"])
        .exits(0)
        .answers("an array of 3 tasks")
        .says("or sbatch slurm/x/array.sh, then sbatch --dependency=afterany:ID slurm/x/merge.sh");
    assert!(bench.at("slurm/x/array.sh").exists() && bench.at("slurm/x/merge.sh").exists());
    bench.collo(&["slurm", "x", "--submit"]).exits(3).says("cannot be started");
    bench.write("slurm/x/array.sh", "#!/bin/sh\necho mine\n");
    bench.collo(&["slurm", "x"]).exits(2).says("is not a script of `collo slurm`");
    fs_err::remove_file(bench.at("slurm/x/array.sh")).expect("removed");
    bench.collo(&["slurm", "x"]).exits(0);
    // Written anew with other options, but never over what its user put in.
    bench.collo(&["slurm", "x", "--shards", "2"]).exits(0);
    let text = fs_err::read_to_string(bench.at("slurm/x/array.sh")).expect("written");
    bench.write("slurm/x/array.sh", &text.replace("exec ", "module load cuda\nexec "));
    bench.collo(&["slurm", "x"]).exits(2).says("was edited");
}

/// A site's `sbatch` that prints these lines.
fn with_sbatch(lines: &str) -> Bench {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 2\n").file("bin/sbatch", &format!("#!/bin/sh\n{lines}"));
    std::fs::set_permissions(bench.at("bin/sbatch"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", bench.at("bin").display(), std::env::var("PATH").unwrap_or_default());
    bench.env("PATH", &path)
}

#[test]
fn a_greeting_before_the_number_of_a_job_is_no_refusal() {
    let bench = with_sbatch("echo ------\necho '  Welcome, 2 nodes are free'\necho \"--> checking $0...OK\"\necho '4711;fine'\n");
    let answer = bench.collo(&["--json", "slurm", "x", "--submit"]).exits(0).json();
    assert_eq!((&answer["array_job"], &answer["merge_job"]), (&"4711".into(), &"4711".into()));
    bench.collo(&["slurm", "x", "--submit"]).exits(0).says("watch: squeue -M fine -j 4711,4711");
    // The last of several is that of the job.
    with_sbatch("echo 12\necho 4711\necho Good luck\n").collo(&["slurm", "x", "--submit"]).exits(0).says("job 4711, then 4711");
}

#[test]
fn a_job_whose_number_is_unknown_may_have_been_submitted_and_is_not_submitted_again() {
    let bench = with_sbatch("echo Submitted\n");
    let unclear = bench.collo(&["slurm", "x", "--submit"]).exits(3).says("the job of array.sh may have been submitted");
    unclear.says("no line of its answer is a job's number: \"Submitted\"").says("`squeue --me`").says("--dependency=afterany:ID");
    let second = "case \"$*\" in *dependency*) echo Submitted;; *) echo 8;; esac\n";
    let unclear =
        with_sbatch(second).collo(&["slurm", "x", "--submit"]).exits(3).says("the job of merge.sh may have been submitted");
    unclear.says("behind job 8").says("sbatch --dependency=afterany:8");
    let refused =
        with_sbatch("echo 12\necho 'sbatch: error: invalid partition' >&2\nexit 1\n").collo(&["slurm", "x", "--submit"]);
    refused.exits(3).says("sbatch does not accept the job").says("invalid partition");
}

#[test]
fn a_short_time_limit_is_warned_of_and_leaves_time_to_measure() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 2\n");
    let script = || fs_err::read_to_string(bench.at("slurm/x/array.sh")).expect("written");
    bench.collo(&["slurm", "x", "--time", "00:04:00"]).exits(0).says("time limit 00:04:00").says("120 s are certainly its own");
    assert!(script().contains("--signal=B:TERM@60\n"), "{}", script());
    bench.collo(&["slurm", "x", "--sbatch=--time=8"]).exits(0).says("time limit 8 ");
    assert!(script().contains("--signal=B:TERM@120\n"), "{}", script());
    let long = bench.collo(&["slurm", "x", "--time", "08:00:00"]).exits(0);
    assert!(!long.stderr.contains("time limit") && script().contains("--signal=B:TERM@300\n"), "{}", long.stderr);
}

#[test]
fn a_task_that_is_cut_off_names_its_script_as_the_way_to_continue() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 2\nseconds = [0.1, 0.2]\n");
    bench.collo(&["slurm", "x", "--shards", "2", "--to", "the jobs"]).exits(0);
    // The script is what bash makes of it, as in a job.
    let run = |words: &[&str]| {
        let mut bash = std::process::Command::new("bash");
        bash.arg(bench.at("the jobs/array.sh")).args(words).env("SLURM_ARRAY_TASK_ID", "2").env("SLURM_JOB_ID", "7");
        bench.command(&[]).get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).for_each(
            |(name, value)| {
                bash.env(name, value);
            },
        );
        let answer = bash.output().expect("it starts");
        String::from_utf8_lossy(&answer.stderr).into_owned()
    };
    let cut = run(&["--for", "1ms"]);
    let folder = bench.at("the jobs").canonicalize().expect("there");
    assert!(cut.contains(&format!("resume: sbatch --array=2 '{}/array.sh'", folder.display())), "{cut}");
}

#[test]
fn the_scripts_mean_the_same_wherever_the_job_runs() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 2\n");
    let words = ["slurm", "experiments/x.toml", "--set", "axes.degree=[2, 3]", "--python", "env/bin/python"];
    bench.collo(&words).exits(0);
    let script = fs_err::read_to_string(bench.at("slurm/x/array.sh")).expect("written");
    let root = bench.at("").canonicalize().expect("there").display().to_string();
    let command = script.lines().last().expect("a line");
    for part in
        [format!("run {root}/experiments/x.toml"), "--set 'axes.degree=[2, 3]'".into(), format!("--python {root}/env/bin/python")]
    {
        assert!(command.contains(&part), "`{part}` is not in {command}");
    }
    assert!(script.contains("--cpus-per-task=3"), "as many members as are set: {script}");
    bench.collo(&["slurm", "x", "--set", "nothing=1"]).exits(2);
}

#[test]
fn what_would_be_a_line_or_an_option_of_its_own_in_a_script_is_refused() {
    let bench = Bench::of("[axes]\nworkload = \"sleep\"\ndegree = 1\n");
    let evil = "x\ntouch HIT";
    let cases: [&[&str]; 8] = [
        &["--account", evil],
        &["--partition", "x' --wrap='touch HIT"],
        &["--time", "1\\"],
        &["--gres", "gpu:1\u{2}"],
        &["--sbatch", evil],
        &["--to", evil],
        &["--to", "a'b"],
        &["--where", "degree == 1\n"],
    ];
    for words in cases {
        let all: Vec<&str> = ["slurm", "x"].into_iter().chain(words.iter().copied()).collect();
        bench.collo(&all).exits(2).says("cannot stand in a script of Slurm").says("without line ends, quotes and backslashes");
    }
    assert!(!bench.at("slurm").exists(), "nothing was written");
    // A space is quoted, a percent sign is its own, and a comment begins nowhere.
    bench.collo(&["slurm", "x", "--to", "a %j b", "--account", "a#b"]).exits(0);
    let script = fs_err::read_to_string(bench.at("a %j b/array.sh")).expect("written");
    assert!(script.contains("/a %%j b/%j.log'\n") && script.contains("#SBATCH --account='a#b'\n"), "{script}");
}
