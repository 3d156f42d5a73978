//! Several campaigns become one: with all their runs, intact, or not at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod support;

use collo_store::{Campaign, CampaignFolder, Ingredient, Level, MergeScope, Reference, Runs, Shard, differences, merge, verify};
use support::{Store, edit, measure};

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
    other.ingredients.insert("workloads/collo.py".into(), text);
    other.plan.cells[1].slots = Some("whole GPU, shared".into());
    let c = store.runs().create(other).unwrap();
    let found: Vec<(String, bool)> =
        differences(&[a, c], MergeScope::OneExperiment).iter().map(|d| (d.to_string(), d.may_be_forced)).collect();
    insta::assert_debug_snapshot!(found);
}

#[test]
fn a_gpu_is_its_uuid_and_without_one_its_model_with_what_memory_is_known() {
    let store = Store::new();
    let on = |id: &str, uuid: &str, memory_gib: Option<u64>, sms: Option<u32>| {
        changed(&store, id, |c| {
            (c.device.name, c.device.kind) = ("NVIDIA A100".into(), "gpu".into());
            c.device.memory_bytes = memory_gib.map(|n| n << 30);
            let text = c.device.text();
            c.ingredients.insert("device".into(), ingredient(&text));
            let mut gpu: collo_store::GpuRecord = serde_json::from_value(gpu(0)).unwrap();
            (gpu.uuid, gpu.name, gpu.sms) = (uuid.into(), "NVIDIA A100".into(), sms);
            c.machine.gpus = if uuid.is_empty() { Vec::new() } else { vec![gpu] };
        })
    };
    let scope = MergeScope::SameIngredients;
    let (whole, cut) = (on("000a", "GPU-1", Some(40), Some(108)), on("000b", "GPU-1", None, None));
    assert_eq!(differing(&[&whole, &cut], scope), [""; 0], "a normal user cannot read the memory of a partitioned GPU");
    assert_eq!(differing(&[&whole, &on("000c", "GPU-1", Some(39), Some(108))], scope), [""; 0], "nor is it always the same");
    assert_eq!(differing(&[&whole, &on("000d", "GPU-2", None, Some(108))], scope), [""; 0], "another of the model");
    assert_eq!(differing(&[&whole, &on("000e", "GPU-2", Some(80), Some(108))], scope), ["device"]);
    assert_eq!(differing(&[&on("000f", "", Some(40), None), &on("0010", "", None, None)], scope), [""; 0]);
    assert_eq!(whole.manifest().device_identity(), "GPU-1");
    assert!(whole.manifest().shares_device_with(cut.manifest()));
    assert!(!whole.manifest().shares_device_with(on("0011", "GPU-2", Some(40), None).manifest()));
}

fn ingredient(text: &str) -> Ingredient {
    Ingredient { sha256: collo_store::sha256_text(text), version: Some(text.into()) }
}

/// A campaign with these ingredients, `NAME=VERSION`; those that end in `*` are of its Python.
fn with(store: &Store, id: &str, ingredients: &[&str]) -> CampaignFolder {
    changed(store, id, |c| {
        for (name, version) in ingredients.iter().filter_map(|text| text.split_once('=')) {
            let of_python = version.strip_suffix('*');
            c.ingredients.insert(name.into(), ingredient(of_python.unwrap_or(version)));
            c.machine.python.extend(of_python.map(|version| (name.to_string(), version.to_string())));
        }
    })
}

fn changed(store: &Store, id: &str, change: impl Fn(&mut Campaign)) -> CampaignFolder {
    let mut campaign = store.begin("20261120-1200-0000", "2026-11-20T12:00:00Z").manifest().clone();
    std::fs::remove_dir_all(store.runs().path().join("pair/20261120-1200-0000")).unwrap();
    campaign.id = format!("20261120-1900-{id}");
    campaign.schema = collo_store::SCHEMA;
    change(&mut campaign);
    store.runs().create(campaign).unwrap()
}

fn differing(all: &[&CampaignFolder], scope: MergeScope) -> Vec<String> {
    let all: Vec<CampaignFolder> = all.iter().map(|c| (*c).clone()).collect();
    differences(&all, scope).iter().map(|d| d.what.clone()).collect()
}

#[test]
fn an_ingredient_is_compared_among_the_campaigns_whose_cells_need_it() {
    let store = Store::new();
    let tiny = ["workloads/collo.py=1", "workloads/tiny/train.py=1", "data cifar=real", "torch=2*", "python=3.11*"];
    let a = with(&store, "000a", &tiny);
    let b = with(&store, "000b", &[&tiny[..], &["workloads/tiny/train.py=2"]].concat());
    let sleep = with(&store, "000c", &["workloads/collo.py=1", "workloads/sleep/train.py=1", "python=3.12*"]);
    let other_sleep = with(&store, "000d", &["workloads/collo.py=2", "workloads/sleep/train.py=1", "python=3.13*"]);
    let own =
        with(&store, "000e", &["workloads/collo.py=1", "workloads/own/train.py=1", "python of own=3.9*", "torch of own=2*"]);
    let without_torch = with(&store, "000f", &["workloads/collo.py=1", "workloads/own/train.py=1", "python of own=3.9*"]);
    let more = with(&store, "0010", &[&tiny[..], &["workloads/tiny/model.py=1", "timm=1*"]].concat());
    for scope in [MergeScope::OneExperiment, MergeScope::SameIngredients] {
        assert_eq!(differing(&[&a, &sleep, &own], scope), [""; 0], "nothing that two of them have differs");
        assert_eq!(differing(&[&a, &b, &sleep], scope), ["workloads/tiny/train.py"], "whatever the third has");
        assert_eq!(differing(&[&a, &sleep, &other_sleep], scope), ["python of the system", "workloads/collo.py"]);
        assert_eq!(differing(&[&own, &without_torch, &a], scope), ["torch of own"]);
        assert_eq!(differing(&[&a, &more], scope), ["timm", "workloads/tiny/model.py"], "absent counts where it could be");
    }
}

#[test]
fn what_is_merged_has_the_facts_of_all_and_none_that_hold_for_one_only() {
    let store = Store::new();
    let reference = |cell: &str| {
        let text = format!("{{\"cell\": \"{cell}\", \"quantity\": \"slowdown\", \"value\": 1.0, \"tolerance_ratio\": 0.1}}");
        serde_json::from_str::<Reference>(&text).unwrap()
    };
    let of = |id: &str, workload: &str, experiment: &str, shared: Reference| {
        changed(&store, id, |c| {
            c.experiment = experiment.into();
            c.description = Some(format!("about {workload}"));
            c.tags = vec!["all".into(), workload.into()];
            c.references = vec![shared.clone(), reference(workload)];
            c.until = Some(collo_store::WantedWidth { quantity: "slowdown".into(), width_ratio: 0.1, at_most: 5 });
            c.ingredients.insert("experiment".into(), ingredient(experiment));
            c.ingredients.insert(format!("workloads/{workload}/train.py"), ingredient("1"));
        })
    };
    let shared = reference("shared");
    let merged = |parts: &[CampaignFolder]| merge(&store.runs(), parts, &[]).unwrap().manifest().clone();
    let names = |m: &Campaign| m.ingredients.keys().cloned().collect::<Vec<_>>();
    let a = of("000a", "tiny", "pair", shared.clone());
    let b = of("000b", "sleep", "pair", shared.clone());
    let one = merged(&[a.clone(), b]);
    assert_eq!(names(&one), ["experiment", "workloads/sleep/train.py", "workloads/tiny/train.py"]);
    assert_eq!(one.references, [shared.clone(), reference("tiny"), reference("sleep")]);
    assert_eq!((one.description, one.tags, one.until.is_some()), (None, vec!["all".to_string()], true));
    let several = merged(&[a, of("000c", "sleep", "other", shared)]);
    assert_eq!(names(&several), ["workloads/sleep/train.py", "workloads/tiny/train.py"]);
}

#[test]
fn a_shard_is_added_to_what_was_merged_from_the_others() {
    let store = Store::new();
    let shard =
        |index: u32, count: u32| changed(&store, &format!("0{count}0{index}"), |c| c.shard = Some(Shard { index, count }));
    let two = merge(&store.runs(), &[shard(1, 3), shard(2, 3)], &[]).unwrap();
    assert_eq!(differing(&[&two, &shard(3, 3)], MergeScope::OneExperiment), [""; 0]);
    assert_eq!(differing(&[&two, &shard(3, 4)], MergeScope::OneExperiment), ["number of shards"]);
}

#[test]
fn campaigns_that_begin_at_once_with_one_id_are_two() {
    let store = Store::new();
    let [a, b] = [0, 1].map(|_| store.begin("20261120-1842-7f3a", "2026-11-20T18:42:09Z"));
    assert_eq!(a.manifest().id, "20261120-1842-7f3a");
    assert_ne!(b.manifest().id, a.manifest().id);
    assert_eq!(store.runs().campaigns().unwrap().0.len(), 2);
    assert!(CampaignFolder::open(a.path()).unwrap().expect_unchanged().is_ok());
}

#[test]
fn a_campaign_on_two_cards_says_which_block_was_on_which_and_so_does_what_it_is_merged_into() {
    let store = Store::new();
    let on_two = |id: &str, created: &str| {
        let campaign = store.complete(id, created);
        edit(&campaign.path().join("campaign.json"), |c| {
            c["filing"] = serde_json::json!({});
            c["machine"]["gpus"] = serde_json::json!([gpu(0), gpu(1)]);
            for run in c["plan"]["order"].as_array_mut().unwrap() {
                run["card"] = (run["block"].as_u64().unwrap() % 2).into();
            }
        });
        std::fs::remove_file(campaign.path().join("journal.jsonl")).unwrap();
        CampaignFolder::open(campaign.path()).unwrap()
    };
    let a = on_two("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    let of = |c: &Campaign, block: u32| c.card_of(block).map(|gpu| gpu.index);
    assert_eq!([1, 2, 3].map(|block| of(a.manifest(), block)), [Some(1), Some(0), Some(1)]);
    let devices = a.manifest().devices();
    assert_eq!(devices.all().iter().map(|d| d.label.as_str()).collect::<Vec<_>>(), ["GPU 0", "GPU 1"]);
    assert_eq!([1, 2, 3].map(|block| devices.of(block)), [1, 0, 1]);

    let b = on_two("20261120-1900-11aa", "2026-11-20T19:00:00Z");
    let merged = merge(&store.runs(), &[a, b], &[]).unwrap();
    let devices = merged.manifest().devices();
    assert_eq!((devices.all().len(), devices.are_several()), (4, true));
    assert_eq!([1, 2, 4, 5].map(|block| devices.of(block)), [1, 0, 3, 2]);
    assert!(devices.all()[3].label.starts_with("GPU 1 of 11aa: "), "{}", devices.all()[3].label);
    let plain = store.complete("20261120-1930-22bb", "2026-11-20T19:30:00Z");
    assert!(!plain.manifest().devices().are_several() && plain.manifest().card_of(1).is_none());
}

fn gpu(index: u32) -> serde_json::Value {
    serde_json::json!({"index": index, "uuid": format!("GPU-{index}"), "pci": "", "name": "A100", "architecture": null, "sms": null,
        "memory_bytes": null, "vbios": null, "ecc": null, "persistence": null, "compute_mode": null, "power_limit_w": null,
        "power_limit_default_w": null, "max_sm_clock_mhz": null, "partition": null})
}

#[test]
fn beside_a_gpu_the_cores_of_the_machine_are_a_condition() {
    let store = Store::new();
    let on = |id: &str, cores: u32| {
        changed(&store, id, |c| {
            (c.device.name, c.device.kind, c.machine.cpu_cores) = ("NVIDIA A100".into(), "gpu".into(), cores);
        })
    };
    let scope = MergeScope::SameIngredients;
    assert_eq!(differing(&[&on("000a", 64), &on("000b", 8)], scope), ["cores"]);
    assert_eq!(differing(&[&on("000c", 64), &on("000d", 64)], scope), [""; 0]);
}

#[test]
fn what_was_measured_again_later_is_no_longer_of_its_block() {
    let store = Store::new();
    let a = store.complete("20261120-1842-7f3a", "2026-11-20T18:42:09Z");
    let b = store.complete("20261120-1900-11aa", "2026-11-20T19:00:00Z");
    a.journal().unwrap().opened(1).unwrap();
    measure(&a, 3, "completed");
    let merged = merge(&store.runs(), &[a, b], &[]).unwrap();
    let m = merged.manifest();
    assert_eq!(m.plan.order.iter().map(|run| run.block).collect::<Vec<_>>(), [1, 1, 2, 4, 3, 3, 5, 5, 6, 6, 7, 7]);
    assert_eq!((m.origin_of(4), m.origin_of(5)), (0, 1));
    assert!(verify(&merged).unwrap().iter().all(|f| f.subject != "intact" || f.level == Level::Ok));
}
