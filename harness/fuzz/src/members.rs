//! What members, and the programs beside them, print and send.

use collo_device::mps;
use collo_launch::adapter::{Adapter, Translator};
use collo_launch::protocol;
use collo_plan::goal::EpochGoal;
use collo_sample::gpu::dcgm_texts;

use crate::given::text;

/// Messages of a member, a line each.
pub fn message(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        // What the supervisor makes of a wrong one is shown.
        let _ = std::hint::black_box(protocol::parse(line));
    }
}

/// The pattern of a workload, then the lines of a script that it is for, a moment apart.
pub fn output(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    let Some((pattern, printed)) = source.text().split_once('\n') else { return };
    let adapter = Adapter {
        pattern: pattern.into(),
        preset: None,
        items: Some(10),
        goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
        measures_on: false,
    };
    let Ok(mut translator) = Translator::new(&adapter, 1_000_000_000) else { return };
    for (number, line) in printed.lines().enumerate() {
        for message in translator.line(line, 2_000_000_000 + number as u64 * 300_000_000) {
            let sent = message.to_string();
            // A supervisor's own messages fit the protocol, whatever a script prints.
            protocol::parse(sent.as_bytes()).unwrap_or_else(|why| panic!("{why}: {sent}"));
        }
    }
}

/// What `dcgmi` prints.
pub fn dcgm(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    dcgm_texts::dmon(source.text());
    dcgm_texts::hierarchy_has(source.text(), "GPU-00000000-0000-0000-0000-000000000000");
}

/// What a daemon of MPS answers and logs.
pub fn mps(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    let text = source.text();
    mps::trouble(text);
    mps::has_fault(text);
    mps::server_start(text);
    mps::logged(text);
    mps::understood("get_server_list", text);
}
