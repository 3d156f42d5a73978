//! Seeds of `corpus/NAME/`, and changes of them, through every reader: none panics, and none hangs.

#[path = "../../quantity/tests/support/random.rs"]
#[expect(dead_code, reason = "each package uses its part of it")]
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use collo_fuzz::{READERS, Reader, VARIABLE, reader};
use random::Random;

/// No input may take longer, on however busy a machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn seeds(reader: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = here("corpus").join(reader);
    let files =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).map(|entry| entry.expect("readable"));
    files.map(|file| (file.file_name().into_string().expect("UTF-8"), std::fs::read(file.path()).expect("readable"))).collect()
}

/// What is being read, and since when.
type Reading = Mutex<Option<(String, Instant)>>;

/// Ends the process with the name of an input that hangs.
fn watch(reading: &Reading, ended: &std::sync::mpsc::Receiver<()>) {
    while ended.recv_timeout(Duration::from_millis(100)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        if let Some((input, since)) = &*reading.lock().expect("no reader panics with it")
            && since.elapsed() > TIMEOUT
        {
            eprintln!("{input} hangs");
            std::process::abort();
        }
    }
}

/// Each seed of a reader, and so many changes of it; returns the inputs that made it panic.
fn feed((name, read): &Reader, changes: u64, seed: u64, reading: &Reading) -> Vec<String> {
    let mut panics = Vec::new();
    for (file, content) in seeds(name) {
        for change in 0..=changes {
            let mut input = content.clone();
            if change > 0 {
                let mut random = Random::seeded(seed.wrapping_mul(0x1000_0000_01b3) ^ change);
                random.damage(&mut input);
            }
            let what = format!("change {change} of corpus/{name}/{file} with seed {seed}");
            *reading.lock().expect("no reader panics with it") = Some((what.clone(), Instant::now()));
            if catch_unwind(AssertUnwindSafe(|| read(&input))).is_err() {
                println!("{what} panics");
                panics.push(what);
            }
            *reading.lock().expect("no reader panics with it") = None;
        }
    }
    panics
}

fn feed_all(changes: u64, seed: u64) {
    let reading = Reading::default();
    let panics: Vec<String> = std::thread::scope(|scope| {
        let (end, ended) = std::sync::mpsc::channel();
        let reading = &reading;
        scope.spawn(move || watch(reading, &ended));
        let panics = READERS.iter().flat_map(|reader| feed(reader, changes, seed, reading)).collect();
        drop(end);
        panics
    });
    assert!(panics.is_empty(), "{} inputs panic:\n{}", panics.len(), panics.join("\n"));
}

#[test]
fn no_seed_and_no_change_of_one_makes_a_reader_panic_or_hang() {
    feed_all(40, 1);
}

#[test]
#[ignore = "minutes; COLLO_INPUTS says how many changes of each seed, a thousand without it"]
fn no_change_of_a_thousand_makes_a_reader_panic_or_hang() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    feed_all(number("COLLO_INPUTS").unwrap_or(1000), number("COLLO_SEED").unwrap_or(2));
}

#[test]
fn every_reader_has_seeds_and_nothing_else_has() {
    let names: BTreeSet<String> = READERS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names.len(), READERS.len(), "each has a name of its own");
    let folders =
        std::fs::read_dir(here("corpus")).unwrap().map(|entry| entry.unwrap().file_name().into_string().expect("UTF-8"));
    assert_eq!(folders.collect::<BTreeSet<String>>(), names);
}

#[test]
fn an_unknown_reader_is_refused_with_the_names_of_all() {
    for (name, _) in READERS {
        assert!(reader(name).is_ok());
    }
    for unknown in ["", "traces"] {
        let error = reader(unknown).expect_err("no reader has this name");
        assert!(error.starts_with(&format!("no reader is named `{unknown}`: set {VARIABLE} to one of experiment, ")), "{error}");
        assert!(READERS.iter().all(|(name, _)| error.contains(name)), "{error}");
    }
}

/// What is refused at its first line finds nothing behind it.
#[test]
fn every_seed_is_accepted_unless_its_name_says_that_it_is_refused_and_each_reader_accepts_one() {
    let mut wrong = Vec::new();
    for (name, read) in READERS {
        let is_accepted = |content: &Vec<u8>| read(content).is_some();
        let seeds = seeds(name);
        let others = seeds.iter().filter(|(file, content)| file.starts_with("refused-") == is_accepted(content));
        wrong.extend(others.map(|(file, _)| format!("{name}/{file}")));
        if !seeds.values().any(is_accepted) {
            wrong.push(format!("{name} accepts none"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
