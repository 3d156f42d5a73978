//! Descriptions of real networks, replayed, against what others measured on a GPU.
//!
//! `descriptions/` holds timm's networks as `collo_describe` traced them: 32 × 32 pixels, 100 classes, AdamW; and the preset
//! `bert-base`. The measurements are those of CARMA's jobs (itu-rad/CARMA, `workloads/*.rad`, `workloads/ehsan-summary.csv`), the
//! greatest `memory.used` on an A100-40GB.

use collo_predict::{Description, replay};
use collo_text::Source;

const MIB: u64 = 1 << 20;
/// What a process holds on that machine outside its allocator.
const CONTEXT_MIB: u64 = 544;

fn described(text: &str) -> Description {
    Description::read(&Source::file("description.json", text)).expect("it is a description")
}

fn reserved_mib(description: &Description, batch: u64) -> u64 {
    let bytes = replay(description, batch).expect("small").warm_up.reserved_bytes;
    assert_eq!(bytes % MIB, 0, "segments are of whole MiB");
    bytes / MIB
}

/// The convolutions are too small for a workspace: the allocator and one constant explain every MiB.
#[test]
fn the_replay_reserves_what_a_real_allocator_reserved() {
    let mobilenet = described(include_str!("descriptions/mobilenetv3_small_100.json"));
    let resnet = described(include_str!("descriptions/resnet18.json"));
    for (description, batch, measured_mib) in
        [(&mobilenet, 32, 590), (&mobilenet, 64, 598), (&mobilenet, 128, 632), (&resnet, 32, 788), (&resnet, 64, 796)]
    {
        let found_mib = reserved_mib(description, batch) + CONTEXT_MIB;
        assert_eq!(found_mib, measured_mib, "{} parameters at {batch}", description.parameters);
    }
}

/// Without convolutions there is no workspace. Its largest tensors, three of 1.8 GB beside the logits, leave much unused.
#[test]
fn the_replay_reserves_what_a_language_model_reserved() {
    let found_mib = reserved_mib(&described(include_str!("descriptions/bert_base.json")), 32) + CONTEXT_MIB;
    assert!(found_mib.abs_diff(19_828) <= 16, "{found_mib} MiB");
}
