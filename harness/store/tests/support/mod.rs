//! A campaign of two cells with three repetitions each, as collo stores it; nothing in it was measured.

use std::path::{Path, PathBuf};

use collo_store::{Campaign, CampaignFolder, EpochRecord, RunRecord, Runs, SCHEMA};
use serde_json::{Value, json};

pub struct Store {
    pub folder: tempfile::TempDir,
}

impl Store {
    pub fn new() -> Self {
        Store { folder: tempfile::tempdir().unwrap() }
    }

    pub fn runs(&self) -> Runs {
        Runs::at(self.folder.path().join("runs"))
    }

    /// Begin a campaign of `pair`, with nothing measured.
    pub fn begin(&self, id: &str, created_utc: &str) -> CampaignFolder {
        let campaign: Campaign = serde_json::from_value(campaign(id, created_utc)).unwrap();
        self.runs().create(campaign).unwrap()
    }

    /// The same with all its runs.
    pub fn complete(&self, id: &str, created_utc: &str) -> CampaignFolder {
        let campaign = self.begin(id, created_utc);
        let mut journal = campaign.journal().unwrap();
        journal.opened(6).unwrap();
        for index in 0..campaign.manifest().plan.order.len() {
            measure(&campaign, index, "completed");
        }
        journal.closed("complete").unwrap();
        campaign
    }

    /// A complete campaign with the usual id.
    pub fn usual(&self) -> CampaignFolder {
        self.complete("20261120-1842-7f3a", "2026-11-20T18:42:09Z")
    }
}

/// Record the run at this place in the order.
pub fn measure(campaign: &CampaignFolder, index: usize, outcome: &str) -> PathBuf {
    measure_while(campaign, index, outcome, |_| {})
}

/// The same while a member does this with its folder.
pub fn measure_while(campaign: &CampaignFolder, index: usize, outcome: &str, meanwhile: impl FnOnce(&Path)) -> PathBuf {
    let manifest = campaign.manifest();
    let planned = &manifest.plan.order[index];
    let folder = manifest.plan.folder(planned);
    campaign.journal().unwrap().began(&folder).unwrap();
    let draft = campaign.begin(&folder).unwrap();
    draft.samples().unwrap().finish().unwrap();
    std::fs::write(draft.path().join("member-0.log"), "epoch 1\n").unwrap();
    // Two campaigns are never measured in the same nanosecond.
    let salt: u64 = manifest.id.bytes().map(u64::from).sum();
    let launched_ns = 1_000_000_000_000 + index as u64 * 10_000_000_000 + salt;
    let mut record = json!({
        "schema": SCHEMA, "experiment": manifest.experiment, "campaign": manifest.id, "cell": manifest.plan.cells[planned.cell],
        "repetition": planned.repetition, "block": planned.block, "device": manifest.device, "started_utc": manifest.created_utc,
        "timeline": {"launched_ns": launched_ns, "ready_ns": launched_ns + 1, "go_ns": launched_ns + 2,
            "done_ns": launched_ns + 5_000_000_000_u64, "ended_ns": launched_ns + 6_000_000_000_u64},
        "outcome": {"kind": outcome}, "validity": {"verdict": "valid", "reasons": []},
        "attestation": {"verdict": "attested", "checks": []}, "sampling": [], "ingredients": {}, "files": {},
    });
    let members = manifest.plan.cells[planned.cell].members.iter();
    record["members"] =
        members.map(|spec| json!({"spec": spec, "pid": 7, "barrier": true, "orphans": [], "log_tail": []})).collect();
    let record: RunRecord = serde_json::from_value(record).unwrap();
    let epoch = |member| EpochRecord {
        member,
        index: 0,
        measured: true,
        items: Some(100),
        start_ns: launched_ns + 3,
        end_ns: launched_ns + 2_000_000_000,
        loss: None,
    };
    let epochs: Vec<_> = (0..record.members.len() as u32).map(epoch).collect();
    meanwhile(draft.path());
    draft.commit(record, &epochs, &[]).unwrap()
}

fn campaign(id: &str, created_utc: &str) -> Value {
    let solo = json!({"workload": "tiny", "batch_size": 32, "settings": {}, "solo": "tiny solo b32"});
    let cell = |name: &str, slug: &str, sharing: &str, members: usize| {
        json!({"cell": name, "slug": slug, "sharing": sharing, "degree": members, "members": vec![solo.clone(); members],
            "baseline": members == 1, "against": [], "repetitions": 3, "after_measured": "keep-running"})
    };
    let order: Vec<Value> =
        (1..=3).flat_map(|n| [0, 1].map(|cell| json!({"block": n, "cell": cell, "repetition": n, "edge": null}))).collect();
    json!({
        "schema": SCHEMA, "id": id, "experiment": "pair", "description": null, "tags": [], "created_utc": created_utc,
        "source_toml": "schema = 1\n", "thresholds": {"relevant_ratio": 0.05, "slowdown": 1.1, "overlap_ratio": 0.95,
            "start_skew_s": 0.1, "baseline_drift_ratio": 0.1},
        "plan": {"seed": 1, "epochs": 1, "cells": [cell("tiny solo b32", "tiny_solo_b32~0000", "solo", 1),
            cell("tiny×2 naive b32", "tinyx2_naive_b32~0001", "naive", 2)], "order": order, "refusals": []},
        "device": {"name": "cpu", "kind": "cpu", "simulated": false, "memory_bytes": null, "cores": 2},
        "machine": {"cpu_cores": 2, "memory_bytes": 1, "collo": "0.1.0", "build": "dev", "gpus": [], "python": {}, "withheld": []},
        "ingredients": {}, "indicative": [],
    })
}

/// Change a JSON file as somebody with an editor would.
pub fn edit(file: &Path, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(file, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}
