//! Texts that a real `dcgmi` printed, printed again: `bundle=NAME` names a folder of `fixtures/`, as `collo doctor --collect` fills it.
//!
//! In: what is asked. Out: the bytes of the file that answers it, with the UUIDs of this machine's cards in the places of theirs, because
//! that is how a reader finds a card; nothing else is changed.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::sim::Sim;

/// The host engine renews its values so often.
const RENEWED: Duration = Duration::from_millis(100);

/// Where bundles lie.
pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")).join(name)
}

/// Answer from a bundle.
pub fn main(sim: &Sim, name: &str, words: &[&str]) -> ExitCode {
    let read = |file: &str| std::fs::read_to_string(folder(name).join("dcgm").join(file)).ok();
    let file = match words {
        ["--version" | "-v", ..] => "version.txt".to_string(),
        [subsystem, option, ..] if *subsystem != "dmon" => format!("{subsystem}{option}.txt"),
        ["dmon", options @ ..] => {
            let fields = options.iter().position(|o| *o == "-e").and_then(|i| options.get(i + 1)).copied().unwrap_or("");
            let Some(text) = monitored(fields, read) else { return ExitCode::from(255) };
            return print(&as_here(sim, &text, &read("discovery-l.txt").unwrap_or_default()), RENEWED, true);
        }
        _ => return ExitCode::from(255),
    };
    match read(&file) {
        Some(text) => print(&as_here(sim, &text, &read("discovery-l.txt").unwrap_or_default()), Duration::ZERO, false),
        None => ExitCode::from(255),
    }
}

/// What was collected for these fields, or for more than these: the smallest that has them all.
fn monitored(fields: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let last = fields.split(',').filter_map(|f| f.trim().parse::<u32>().ok()).max()?;
    let files = [("dmon-1001-1003.txt", 1003), ("dmon-1001-1005.txt", 1005), ("dmon-1001-1010.txt", 1010)];
    files.into_iter().filter(|(_, most)| last <= *most).find_map(|(file, _)| read(file))
}

/// The text with the UUIDs of the cards that were found there, in the order of discovery, as those of the cards here.
fn as_here(sim: &Sim, text: &str, discovered: &str) -> String {
    let theirs = discovered.split(|c: char| c.is_whitespace() || c == '|').filter(|w| w.starts_with("GPU-"));
    let ours = sim.state().cards.iter().map(|card| &card.uuid);
    theirs.zip(ours).fold(text.to_string(), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// Line by line; values of a stream again and again until somebody ends it.
fn print(text: &str, pause: Duration, again: bool) -> ExitCode {
    let mut out = std::io::stdout();
    loop {
        for line in text.lines() {
            if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                return ExitCode::SUCCESS;
            }
            if line.starts_with("GPU") {
                std::thread::sleep(pause);
            }
        }
        if !again || !text.lines().any(|l| l.starts_with("GPU")) {
            return ExitCode::SUCCESS;
        }
    }
}
