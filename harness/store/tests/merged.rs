//! Several campaigns become one: with all their runs, intact, or not at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use collo_store::{Level, MergeScope, Runs, differences, merge, verify};
use support::{Store, edit};

#[test]
fn the_merged_campaign_has_every_run_under_a_new_number_and_is_intact() {
    let store = Store::new();
    let a = store.complete("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    let b = store.complete("20261120-1900-11aa", "2026-11-20T19:00:00Z");
    assert_eq!(differences(&[a.clone(), b.clone()], MergeScope::OneExperiment), []);
    let merged = merge(&store.runs(), &[a, b], &[]).unwrap();
    let m = merged.manifest();
    assert_eq!((m.plan.order.len(), m.plan.cells.len(), m.plan.cells[0].repetitions), (12, 2, 6));
    let blocks: Vec<u32> = m.plan.order.iter().map(|run| run.block).collect();
    assert_eq!(blocks, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    assert_eq!((m.origin_of(3), m.origin_of(4), m.origins[1].campaign.as_str()), (0, 1, "20261120-1900-11aa"));
    let findings = verify(&merged).unwrap();
    let of = |subject| findings.iter().find(|f| f.subject == subject).unwrap();
    assert_eq!((of("intact").level, of("accounted").level), (Level::Ok, Level::Ok), "{findings:?}");
    assert_eq!(store.runs().find("last").unwrap().manifest().id, m.id, "it is the newest");
    // Merged again with another, each run keeps its own origin.
    let c = store.complete("20261120-1930-22bb", "2026-11-20T19:30:00Z");
    let again = merge(&store.runs(), &[c, merged], &[]).unwrap();
    let origins: Vec<(&str, u32, u32)> =
        again.manifest().origins.iter().map(|o| (o.campaign.as_str(), o.first_block, o.last_block)).collect();
    assert_eq!(origins, [("20261120-1930-22bb", 1, 3), ("20261120-1842-7f3a", 4, 6), ("20261120-1900-11aa", 7, 9)]);
}

#[test]
fn a_run_that_was_changed_is_merged_into_nothing_and_leaves_nothing() {
    let store = Store::new();
    let a = store.complete("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    let b = store.complete("20261120-1900-11aa", "2026-11-20T19:00:00Z");
    std::fs::write(b.path().join("tinyx2_naive_b32~0001-2/member-0.log"), "epoch 2\n").unwrap();
    assert!(merge(&store.runs(), &[a.clone(), b.clone()], &[]).unwrap_err().to_string().contains("member-0.log"));
    edit(&b.path().join("tiny_solo_b32~0000-1/run.json"), |r| r["block"] = 7.into());
    assert!(merge(&store.runs(), &[a, b], &[]).unwrap_err().to_string().contains("was changed after it was recorded"));
    let left = std::fs::read_dir(store.runs().path().join("pair")).unwrap().count();
    assert_eq!(left, 2, "only what was there");
}

#[test]
fn what_a_killed_merge_left_is_no_campaign() {
    let store = Store::new();
    let a = store.usual();
    let aside = store.runs().path().join("pair/.merging-20261120-1930-22bb");
    std::fs::create_dir(&aside).unwrap();
    std::fs::write(aside.join("campaign.json"), "{").unwrap();
    let (campaigns, foreign) = Runs::at(store.runs().path()).campaigns().unwrap();
    assert_eq!((campaigns.len(), foreign.len()), (1, 0));
    assert_eq!(campaigns[0].manifest().id, a.manifest().id);
}

#[test]
fn everything_that_differs_is_named() {
    let store = Store::new();
    let a = store.usual();
    let b = store.complete("20261120-1900-11aa", "2026-11-20T19:00:00Z");
    let mut other = b.manifest().clone();
    other.id = "20261120-1930-22bb".into();
    other.device.name = "NVIDIA H200".into();
    other.machine.governor = Some("powersave".into());
    let text = collo_store::Ingredient { sha256: "ab".repeat(32), version: None };
    other.ingredients.insert("workloads/tiny/train.py".into(), text);
    other.plan.cells[1].slots = Some("whole GPU, shared".into());
    let c = store.runs().create(other).unwrap();
    let found: Vec<(String, bool)> =
        differences(&[a, c], MergeScope::OneExperiment).iter().map(|d| (d.to_string(), d.may_be_forced)).collect();
    insta::assert_debug_snapshot!(found);
}
