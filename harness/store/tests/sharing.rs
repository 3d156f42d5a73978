//! What cells share is stored as fields; of records that have only a label it is read from there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use std::path::Path;

use collo_store::{CampaignFolder, Sharing};
use serde_json::{Value, json};
use support::{Store, edit};

/// A record as collos wrote it before it said more than the label.
fn older(record: &mut Value, label: &str) {
    record.as_object_mut().unwrap().remove("mode");
    record["sharing"] = label.into();
}

/// The campaign with its pair under this mode, all of it written by an older collo.
fn measured_before(path: &Path, label: &str) -> CampaignFolder {
    std::fs::remove_file(path.join("journal.jsonl")).unwrap();
    edit(&path.join("campaign.json"), |m| {
        drop(m.as_object_mut().unwrap().remove("filing"));
        older(&mut m["plan"]["cells"][1], label);
    });
    for repetition in 1..=3 {
        edit(&path.join(format!("tinyx2_naive_b32~0001-{repetition}/run.json")), |r| older(&mut r["cell"], label));
    }
    CampaignFolder::open(path).unwrap()
}

#[test]
fn a_record_of_before_says_in_fields_what_its_label_says() {
    for label in ["naive", "mps:50%,mem=4GB", "mig:2×1c.3g.20gb", "mig:1g.5gb+me", "mig+mps"] {
        let store = Store::new();
        let campaign = measured_before(store.usual().path(), label);
        let cell = &campaign.manifest().plan.cells[1];
        assert_eq!((cell.sharing.as_str(), &cell.mode), (label, &Sharing::of_label(label)));
        let (runs, foreign) = campaign.runs().unwrap();
        assert_eq!((runs.len(), foreign.len()), (6, 0), "{label}: {foreign:?}");
        assert!(runs.iter().all(|(_, r)| r.record.cell.mode == Sharing::of_label(&r.record.cell.sharing)));
    }
}

#[test]
fn the_fields_are_written_beside_the_label_and_win_over_it() {
    let store = Store::new();
    let campaign = store.usual();
    let file = campaign.path().join("campaign.json");
    let stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let cell = &stored["plan"]["cells"][1];
    let fields = json!({"family": "naive", "mps": false, "limited": false, "partitioned": false, "isolated": false});
    assert_eq!((&cell["sharing"], &cell["mode"]), (&json!("naive"), &fields), "a reader that knows only labels still can");
    // One of a family that this collo does not know.
    let mode = Sharing { family: "exclusive".into(), isolated: true, partitioned: true, ..Sharing::default() };
    edit(&file, |m| {
        m["plan"]["cells"][1]["sharing"] = "exclusive:halves".into();
        m["plan"]["cells"][1]["mode"] = serde_json::to_value(&mode).unwrap();
    });
    assert_eq!(CampaignFolder::open(campaign.path()).unwrap().manifest().plan.cells[1].mode, mode);
}
