//! What members, and the programs beside them, print and send.

use collo_device::mps;
use collo_launch::adapter::{Adapter, Translator};
use collo_launch::{OutputLine, OutputLines, find_progress, protocol};
use collo_plan::goal::EpochGoal;
use collo_sample::gpu::dcgm_texts;

use crate::Accepted;
use crate::given::{parts, shown, text};

/// Messages of a member, a line each.
pub fn message(bytes: &[u8]) -> Accepted {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // What the supervisor makes of a wrong one is shown.
    let all: Vec<Accepted> = lines.map(|line| shown(protocol::parse(line)).map(drop)).collect();
    all.into_iter().collect()
}

fn adapter(pattern: &str) -> Adapter {
    Adapter {
        pattern: pattern.into(),
        preset: None,
        items: Some(10),
        goal: EpochGoal { epochs: 2, measure_for_ns: 0 },
        measures_on: false,
    }
}

/// The pattern of a workload, then the lines of a script that it is for, a moment apart.
pub fn output(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let (pattern, printed) = source.text().split_once('\n')?;
    let mut translator = shown(Translator::new(&adapter(pattern), 1_000_000_000))?;
    let mut epochs = None;
    for (number, line) in printed.lines().enumerate() {
        for message in translator.line(line, 2_000_000_000 + number as u64 * 300_000_000) {
            let sent = message.to_string();
            // A supervisor's own messages fit the protocol, whatever a script prints.
            protocol::parse(sent.as_bytes()).unwrap_or_else(|why| panic!("{why}: {sent}"));
            epochs = Some(());
        }
    }
    epochs
}

/// Time between two pieces of output.
const APART_NS: u64 = 300_000_000;

/// The output of a script as the pieces in which it arrives: the parts of the input.
pub fn lines(bytes: &[u8]) -> Accepted {
    let pieces = parts(bytes);
    let read = |pieces: &[&[u8]], settles: bool| {
        let (mut output, mut lines) = (OutputLines::default(), Vec::new());
        for (piece, at_ns) in pieces.iter().zip((0..).step_by(APART_NS as usize)) {
            output.take(piece, at_ns, &mut |line, _| lines.push(line.to_string()));
            if settles {
                output.settle(output.complete_at_ns().unwrap_or(at_ns), &mut |line, _| lines.push(line.to_string()));
            }
        }
        output.end(&mut |line, _| lines.push(line.to_string()));
        lines
    };
    let lines = read(&pieces, false);
    assert_eq!(lines, read(&[&pieces.concat()], false), "lines depend on the pieces in which they arrive");
    read(&pieces, true);
    (!lines.is_empty()).then_some(())
}

/// The lines of an unknown script, each behind its time in milliseconds.
pub fn progress(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let line = |line: &str| {
        let (at_ms, text) = line.split_once(' ')?;
        Some(OutputLine { at_ns: at_ms.parse::<u64>().ok()?.checked_mul(1_000_000)?, text: text.into() })
    };
    let lines: Vec<OutputLine> = source.text().lines().filter_map(line).collect();
    let found = find_progress(&lines, 0);
    for found in &found {
        // What it finds is a pattern that a workload may have.
        Translator::new(&adapter(&found.pattern), 0).unwrap_or_else(|why| panic!("{why}: {}", found.pattern));
    }
    found.first().map(drop)
}

/// What `dcgmi` prints: a table of numbers, or the GPUs and their instances.
pub fn dcgm(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let uuid = source.text().split_whitespace().find(|word| word.starts_with("GPU-") && word.len() > 10);
    let is_there = dcgm_texts::hierarchy_has(source.text(), uuid.unwrap_or("GPU-00000000-0000-0000-0000-000000000000"));
    let understood = dcgm_texts::dmon(source.text());
    (is_there || understood.values > 0).then_some(())
}

/// Commands of MPS whose answers are parsed.
const COMMANDS: [&str; 4] =
    ["get_server_list", "get_server_status", "get_default_active_thread_percentage", "get_default_device_pinned_mem_limit"];

/// What a daemon of MPS answers, a line each, and logs.
pub fn mps(bytes: &[u8]) -> Accepted {
    let source = text(bytes)?;
    let text = source.text();
    let has_trouble = mps::trouble(text).is_some();
    mps::has_fault(text);
    mps::server_start(text);
    mps::logged(text);
    let is_answer = |text: &str| COMMANDS.iter().filter(|command| mps::understood(command, text)).count() > 0;
    let are_answers = text.lines().filter(|line| is_answer(line)).count() > 0 || is_answer(text);
    (has_trouble || are_answers).then_some(())
}
