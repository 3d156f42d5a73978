//! Files that a test has altered become as recorded: where what they say is meant, and not that somebody changed them.

use std::path::Path;

use serde_json::Value;

/// Let every record of a campaign know its files as they are now, as if collo had written them so.
pub fn noted(campaign: &Path) {
    for run in std::fs::read_dir(campaign).expect("readable").map(|entry| entry.expect("readable").path()) {
        record_files(&run);
    }
    let file = campaign.join("journal.jsonl");
    let journal = std::fs::read_to_string(&file).expect("a journal");
    let line = |line: &str| {
        let mut entry: Value = serde_json::from_str(line).expect("JSON");
        let noted = match entry["event"].as_str() {
            Some("manifest") => Some(campaign.join("campaign.json")),
            Some("recorded") => Some(campaign.join(entry["folder"].as_str().expect("a folder")).join("run.json")),
            _ => None,
        };
        if let Some(noted) = noted.filter(|path| path.exists()) {
            entry["sha256"] = collo_store::sha256_file(&noted).expect("readable").into();
        }
        format!("{entry}\n")
    };
    std::fs::write(file, journal.lines().map(line).collect::<String>()).expect("written");
}

/// The digests in a run's record, where it can be read.
fn record_files(run: &Path) {
    let path = run.join("run.json");
    let Some(mut record) = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok()) else {
        return;
    };
    let Some(files) = record["files"].as_object_mut() else { return };
    let before = files.clone();
    files.retain(|name, _| run.join(name).is_file());
    for (name, stored) in files.iter_mut() {
        let file = run.join(name);
        stored["bytes"] = file.metadata().expect("readable").len().into();
        stored["sha256"] = collo_store::sha256_file(&file).expect("readable").into();
    }
    if *files != before {
        std::fs::write(&path, record.to_string()).expect("written");
    }
}
