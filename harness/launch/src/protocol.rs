//! The messages between members and harness: JSON lines, both ways. `workloads/protocol.jsonl` has one example of each.
//!
//! To add a message: its variant here, its order in `measure/src/observe/turns.rs`, an example in that file.

use std::collections::BTreeMap;

use collo_plan::goal::EpochGoal;
use collo_store::{AfterMeasured, EpochRecord, Features, Serving};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The protocol version that this harness speaks.
pub const PROTOCOL: u32 = 1;
/// The kind of error that a supervisor reports for lines from which no epoch can be read.
pub const OUTPUT: &str = "output";

/// Maximum length of a text kept from a member's messages, in characters, and of an error.
const LONGEST_TEXT: usize = 300;
const LONGEST_MESSAGE: usize = 2000;
/// A hello is stored with every run, and read with every report.
const LARGEST_HELLO: usize = 64 << 10;
/// A pebibyte: more than any machine has.
const MOST_BYTES: u64 = 1 << 50;
/// More requests a second than any member can answer.
const MOST_PER_S: f64 = 1e9;

/// A message from a member.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum MemberEvent {
    /// It is alive, and reports its environment.
    Hello(Box<Hello>),
    /// Set-up and warm-up batches are over.
    Ready,
    /// One pass over its data.
    Epoch(Epoch),
    /// Training data for predictors; once.
    Features(Box<Features>),
    /// Peaks of the GPU allocator.
    Memory(AllocatorPeaks),
    /// From a serving member: requests that it answers per second when none waits, measured in its warm-up.
    Capacity { requests_per_s: f64 },
    /// From a serving member: requests that arrived.
    Requests(Requests),
    /// It is about to exit.
    Error(Told),
    /// From the supervisor of a foreign script: what its output lacks, while no line matches and when it ended too early.
    Shortfall(Shortfall),
    /// Its measured epochs are over.
    Done,
    /// From a process that hosts several members, of one whose thread has ended: as a process of its own would have exited. The
    /// last message of a member.
    Left { code: i32 },
    /// A message of a later protocol: ignored.
    #[serde(other)]
    Unknown,
}

/// A member's description of itself: the device as it sees it, never read from the environment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub pid: u32,
    pub device: String,
    pub sm_count: Option<u32>,
    /// Intra-op threads, read back from the framework.
    pub threads: Option<u32>,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    pub dataset: Option<Dataset>,
    /// Memory of the device as seen.
    pub memory_bytes: Option<u64>,
    /// Batches after which an epoch is cut short; absent for whole epochs.
    pub limit_batches: Option<u64>,
    /// Its load, if it serves instead of training.
    pub serving: Option<Serving>,
    /// Of a member that shares its process with others.
    pub thread: Option<HelloThread>,
}

/// The thread that a member trains in, as it sees itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct HelloThread {
    /// The kernel's number of it, gettid(2).
    pub id: u32,
    /// Whether Python's global lock is in force.
    pub lock: bool,
    /// The handle of its current CUDA stream; 0 is the default stream, which all threads share. `None` on a CPU.
    pub stream: Option<u64>,
}

/// Requests to a serving member, in arrays of equal length; nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Requests {
    /// When each was due by the schedule.
    pub arrival_ns: Vec<u64>,
    /// When its batch started; `None` if it was still waiting when the member was stopped.
    pub start_ns: Vec<Option<u64>>,
    /// When its answer was complete; `None` if the member was stopped before.
    pub end_ns: Vec<Option<u64>>,
}

impl Requests {
    /// Every request: arrival, start, end.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Option<u64>, Option<u64>)> {
        self.arrival_ns.iter().zip(&self.start_ns).zip(&self.end_ns).map(|((&arrival, &start), &end)| (arrival, start, end))
    }

    /// The latest time in the arrays.
    pub fn latest_ns(&self) -> Option<u64> {
        self.iter().map(|(arrival, start, end)| end.or(start).unwrap_or(arrival)).max()
    }

    /// What is impossible, if anything.
    fn wrong(&self) -> Option<String> {
        let (arrivals, starts, ends) = (self.arrival_ns.len(), self.start_ns.len(), self.end_ns.len());
        if arrivals != starts || arrivals != ends {
            return Some(format!("has {arrivals} arrivals, {starts} starts and {ends} ends"));
        }
        self.iter().find_map(|(arrival, start, end)| match (start, end) {
            _ if arrival > i64::MAX as u64 || end.or(start).is_some_and(|t| t > i64::MAX as u64) => {
                Some("has an impossible time".into())
            }
            (Some(start), _) if start < arrival => Some("starts a request before it arrives".into()),
            (None, Some(_)) => Some("ends a request that never started".into()),
            (Some(start), Some(end)) if end < start => Some("ends a request before it starts".into()),
            _ => None,
        })
    }
}

/// What is impossible in a hello, if anything.
fn wrong_hello(hello: &Hello, raw: &Value) -> Option<String> {
    if raw.to_string().len() > LARGEST_HELLO {
        return Some(format!("is a hello of more than {} KiB: it is stored with every run", LARGEST_HELLO >> 10));
    }
    hello.memory_bytes.and_then(|bytes| wrong_bytes("memory", bytes)).or_else(|| hello.serving.as_ref().and_then(wrong_serving))
}

/// What is impossible in a rate, if anything.
fn wrong_rate(per_s: f64) -> Option<&'static str> {
    match per_s {
        n if !(n.is_finite() && n > 0.0) => Some("is not above 0"),
        n if n > MOST_PER_S => Some("is impossible"),
        _ => None,
    }
}

fn wrong_bytes(of: &str, bytes: u64) -> Option<String> {
    (bytes > MOST_BYTES).then(|| format!("reports {bytes} bytes of {of}: no machine has that much"))
}

/// What is impossible in a graph, if anything.
fn wrong_features(features: &Features) -> Option<String> {
    let all = [features.model_mb, features.flops_per_item, features.activations_per_item];
    all.into_iter().flatten().find(|n| !(n.is_finite() && *n >= 0.0)).map(|n| format!("has {n} as a count"))
}

/// What is impossible in the load described in a hello, if anything.
fn wrong_serving(serving: &Serving) -> Option<String> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    match serving {
        s if wrong_rate(s.rate_per_s).is_some() => Some(format!("reports a rate of {} requests a second", s.rate_per_s)),
        s if s.batch_size == 0 => Some("reports a batch of 0 requests".into()),
        s if s.slo_s.is_some_and(|slo| !positive(slo)) => Some("has an SLO that is not above 0".into()),
        _ => None,
    }
}

/// The data that a member trains on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Dataset {
    pub name: String,
    pub synthetic: bool,
    pub items: Option<u64>,
}

/// One pass; nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Epoch {
    pub index: u32,
    pub measured: bool,
    pub items: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub loss: Option<f64>,
}

/// Peaks of the GPU allocator: of the training, and of the warm-up if they were reset after it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct AllocatorPeaks {
    pub allocated_bytes: Option<u64>,
    pub reserved_bytes: Option<u64>,
    pub warm_up_allocated_bytes: Option<u64>,
    pub warm_up_reserved_bytes: Option<u64>,
}

impl AllocatorPeaks {
    /// What is impossible, if anything.
    fn wrong(&self) -> Option<String> {
        let all = [self.allocated_bytes, self.reserved_bytes, self.warm_up_allocated_bytes, self.warm_up_reserved_bytes];
        all.into_iter().flatten().find_map(|bytes| wrong_bytes("memory", bytes))
    }
}

/// Why a member ends, in its own words.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Told {
    /// `out_of_memory`, `data`, `setting` or `other`; from the supervisor of a foreign script, [`OUTPUT`].
    pub kind: String,
    pub message: String,
    /// Whose memory ran out.
    pub whose: Option<Whose>,
    /// Free GPU memory, at that moment.
    pub free_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
}

/// Why the output of a foreign script does not suffice.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Shortfall {
    /// In a sentence.
    pub message: String,
    /// The newest lines of its output, if none matched.
    pub newest: Vec<String>,
    /// A line of `[epochs]` that reads progress from its output, if none matched.
    #[serde(default)]
    pub proposal: Option<String>,
}

/// Whose memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Card,
    Host,
    /// Unknown.
    #[serde(other)]
    Either,
}

impl Epoch {
    /// As it is stored of a member.
    pub fn record(&self, member: usize) -> EpochRecord {
        let Epoch { index, measured, items, start_ns, end_ns, loss } = *self;
        EpochRecord { member: member as u32, index, measured, items, start_ns, end_ns, loss }
    }
}

/// A message from the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Your turn to warm up; no other member does.
    WarmUp,
    /// Everybody is ready: begin.
    Go {
        #[serde(flatten)]
        goal: EpochGoal,
        after_measured: AfterMeasured,
    },
    /// End now, whatever you are doing.
    Stop,
}

impl Command {
    /// The line to send.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// Parse one line of a member, its texts truncated to a length that can be stored and shown; the error says what is wrong with
/// it, with the line shortened.
pub fn parse(line: &[u8]) -> Result<(MemberEvent, Value), String> {
    let shown = || shorten(&String::from_utf8_lossy(line));
    let mut value: Value = serde_json::from_slice(line).map_err(|_| format!("is not JSON: `{}`", shown()))?;
    let longest = if value["event"] == "error" { LONGEST_MESSAGE } else { LONGEST_TEXT };
    cut_texts(&mut value, longest);
    if !value.get("event").is_some_and(Value::is_string) {
        return Err(format!("has no `event`: `{}`", shown()));
    }
    let event = MemberEvent::deserialize(&value).map_err(|e| format!("does not fit the protocol, {e}: `{}`", shown()))?;
    if let MemberEvent::Epoch(e) = &event
        && e.end_ns < e.start_ns
    {
        return Err(format!("ends before it starts: `{}`", shown()));
    }
    if let MemberEvent::Hello(h) = &event
        && h.protocol != PROTOCOL
    {
        return Err(format!("speaks protocol {}, this collo speaks {PROTOCOL}", h.protocol));
    }
    let wrong = match &event {
        MemberEvent::Hello(hello) => wrong_hello(hello, &value),
        MemberEvent::Requests(requests) => requests.wrong(),
        MemberEvent::Capacity { requests_per_s } => {
            wrong_rate(*requests_per_s).map(|wrong| format!("has a capacity that {wrong}"))
        }
        MemberEvent::Memory(peaks) => peaks.wrong(),
        MemberEvent::Features(features) => wrong_features(features),
        _ => None,
    };
    match wrong {
        Some(wrong) => Err(format!("{wrong}: `{}`", shown())),
        None => Ok((event, value)),
    }
}

/// Truncate every text in a value, including keys, to `longest` characters; truncated ones end with `…`.
fn cut_texts(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) => cut(text, longest),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, longest)),
        Value::Object(map) => {
            if map.keys().any(|key| key.len() > longest) {
                let cut_key = |(mut key, value): (String, Value)| {
                    cut(&mut key, longest);
                    (key, value)
                };
                *map = std::mem::take(map).into_iter().map(cut_key).collect();
            }
            map.values_mut().for_each(|value| cut_texts(value, longest));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &mut String, longest: usize) {
    if text.len() > longest
        && let Some((at, _)) = text.char_indices().nth(longest)
    {
        text.truncate(at);
        text.push('…');
    }
}

/// A text for a message: control characters as `\x1b`, at most 80 characters.
pub fn shorten(text: &str) -> String {
    let mut shown = String::new();
    for (i, c) in text.trim_end().chars().enumerate() {
        if i == 80 {
            shown.push('…');
            break;
        }
        match c {
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", c as u32)),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: &str = include_str!("../../../workloads/protocol.jsonl");

    #[test]
    fn every_published_member_message_is_understood_and_every_command_is_written_as_published() {
        let mut commands = Vec::new();
        let mut events = 0;
        for line in EXAMPLES.lines() {
            let example: Value = serde_json::from_str(line).unwrap();
            let message = &example["message"];
            if example["from"] != "harness" {
                let (event, _) = parse(message.to_string().as_bytes()).unwrap();
                assert_ne!(event, MemberEvent::Unknown, "{line}");
                events += 1;
            } else {
                commands.push(message.clone());
            }
        }
        assert!(events >= 6);
        let go = |epochs, measure_for_ns| Command::Go {
            goal: EpochGoal { epochs, measure_for_ns },
            after_measured: AfterMeasured::KeepRunning,
        };
        for command in [Command::WarmUp, go(2, 0), go(2, 10_000_000_000), Command::Stop] {
            let ours: Value = serde_json::from_str(&command.line()).unwrap();
            assert!(commands.contains(&ours), "{ours} is not in protocol.jsonl");
        }
    }

    #[test]
    fn garbage_is_named_with_its_line() {
        assert_eq!(parse(b"epoch 1 loss 0.4").unwrap_err(), "is not JSON: `epoch 1 loss 0.4`");
        assert_eq!(parse(b"{\"x\":\"\\u001b[1m\"}").unwrap_err(), r#"has no `event`: `{"x":"\u001b[1m"}`"#);
        assert_eq!(parse(b"\x1b[2J").unwrap_err(), r"is not JSON: `\x1b[2J`");
        let backwards = br#"{"event":"epoch","index":0,"measured":false,"start_ns":9,"end_ns":3}"#;
        assert!(parse(backwards).unwrap_err().starts_with("ends before it starts"));
        let newer = br#"{"event":"hello","protocol":2,"pid":1,"device":"cpu"}"#;
        assert_eq!(parse(newer).unwrap_err(), "speaks protocol 2, this collo speaks 1");
    }

    #[test]
    fn requests_that_cannot_be_are_named() {
        let wrong = |arrival: &str, start: &str, end: &str| {
            let line = format!(r#"{{"event":"requests","arrival_ns":[{arrival}],"start_ns":[{start}],"end_ns":[{end}]}}"#);
            parse(line.as_bytes()).map(|_| ()).map_err(|why| why.split(": `").next().unwrap_or_default().to_string())
        };
        assert_eq!(wrong("5, 6, 7", "5, 8, null", "7, null, null"), Ok(()));
        assert_eq!(wrong("", "", ""), Ok(()));
        assert_eq!(wrong("5, 6", "5", "7"), Err("has 2 arrivals, 1 starts and 1 ends".into()));
        assert_eq!(wrong("5", "4", "7"), Err("starts a request before it arrives".into()));
        assert_eq!(wrong("5", "6", "5"), Err("ends a request before it starts".into()));
        assert_eq!(wrong("5", "null", "7"), Err("ends a request that never started".into()));
        assert_eq!(wrong("5", "6", "9300000000000000000"), Err("has an impossible time".into()));
        assert!(wrong("-5", "6", "7").unwrap_err().starts_with("does not fit the protocol"));
        assert!(wrong("null", "6", "7").unwrap_err().starts_with("does not fit the protocol"));
    }

    #[test]
    fn a_member_cannot_be_asked_less_than_never() {
        let hello = |serving: &str| {
            let line = format!(r#"{{"event":"hello","protocol":1,"pid":1,"device":"cpu","serving":{serving}}}"#);
            parse(line.as_bytes()).map(|_| ()).map_err(|why| why.split(": `").next().unwrap_or_default().to_string())
        };
        assert_eq!(hello("null"), Ok(()));
        assert_eq!(hello(r#"{"rate_per_s":20.0,"batch_size":4,"slo_s":null}"#), Ok(()));
        let never = Err("reports a rate of 0 requests a second".to_string());
        assert_eq!(hello(r#"{"rate_per_s":0,"batch_size":4,"slo_s":null}"#), never);
        assert_eq!(hello(r#"{"rate_per_s":1,"batch_size":0}"#), Err("reports a batch of 0 requests".into()));
        assert_eq!(hello(r#"{"rate_per_s":1,"batch_size":1,"slo_s":0}"#), Err("has an SLO that is not above 0".into()));
        let capacity = parse(br#"{"event":"capacity","requests_per_s":0}"#).unwrap_err();
        assert!(capacity.starts_with("has a capacity that is not above 0"), "{capacity}");
    }

    #[test]
    fn counters_that_no_machine_reaches_are_named() {
        let wrong = |line: &str| parse(line.as_bytes()).expect_err(line).split(": `").next().unwrap_or_default().to_string();
        insta::assert_snapshot!(wrong(r#"{"event":"memory","allocated_bytes":9223372036854775808,"reserved_bytes":null}"#), @"reports 9223372036854775808 bytes of memory: no machine has that much");
        insta::assert_snapshot!(wrong(r#"{"event":"memory","allocated_bytes":1,"reserved_bytes":2,"warm_up_reserved_bytes":2000000000000000}"#), @"reports 2000000000000000 bytes of memory: no machine has that much");
        insta::assert_snapshot!(wrong(r#"{"event":"hello","protocol":1,"pid":1,"device":"cpu","memory_bytes":2000000000000000}"#), @"reports 2000000000000000 bytes of memory: no machine has that much");
        insta::assert_snapshot!(wrong(r#"{"event":"features","flops_per_item":-2.0}"#), @"has -2 as a count");
        insta::assert_snapshot!(wrong(r#"{"event":"capacity","requests_per_s":1e30}"#), @"has a capacity that is impossible");
        for negative in ["allocated_bytes", "reserved_bytes"] {
            assert!(wrong(&format!(r#"{{"event":"memory","{negative}":-1}}"#)).starts_with("does not fit the protocol"));
        }
        let epoch = |key: &str, value: &str| {
            wrong(&format!(r#"{{"event":"epoch","index":0,"measured":true,"start_ns":1,"end_ns":2,"{key}":{value}}}"#))
        };
        assert!(epoch("items", "-1").starts_with("does not fit the protocol"));
        assert!(epoch("items", "18446744073709551616").starts_with("does not fit the protocol"));
        for no_number in ["NaN", "Infinity", "1e999"] {
            assert!(epoch("loss", no_number).starts_with("is not JSON"), "{no_number}");
        }
    }

    #[test]
    fn long_texts_are_cut_where_they_come_in() {
        let name = "é".repeat(900_000 / 2);
        let line = format!(
            r#"{{"event":"hello","protocol":1,"pid":1,"device":"cpu","model":{{"name":"{name}","parameters":5}},"dataset":{{"name":"{name}","synthetic":false}},"{name}":[["{name}"]]}}"#
        );
        let (MemberEvent::Hello(hello), raw) = parse(line.as_bytes()).unwrap() else { panic!("no hello") };
        let cut = format!("{}…", "é".repeat(LONGEST_TEXT));
        assert_eq!(hello.dataset.unwrap().name, cut);
        assert_eq!((raw["model"]["name"].as_str(), raw["model"]["parameters"].as_u64()), (Some(&*cut), Some(5)));
        assert_eq!(raw[&cut][0][0].as_str(), Some(&*cut));
        let told = |message: &str| match parse(format!(r#"{{"event":"error","kind":"other","message":"{message}"}}"#).as_bytes())
        {
            Ok((MemberEvent::Error(told), _)) => told.message,
            other => panic!("{other:?}"),
        };
        assert_eq!(told("division by zero"), "division by zero");
        assert_eq!(told(&"x".repeat(LONGEST_MESSAGE)).chars().count(), LONGEST_MESSAGE);
        assert_eq!(told(&"x".repeat(5000)).chars().count(), LONGEST_MESSAGE + 1);
        let numbers = vec!["1"; 100_000].join(",");
        let long = format!(r#"{{"event":"hello","protocol":1,"pid":1,"device":"cpu","weights":[{numbers}]}}"#);
        assert!(parse(long.as_bytes()).unwrap_err().starts_with("is a hello of more than 64 KiB: it is stored with every run"));
    }

    #[test]
    fn words_of_a_later_protocol_are_ignored() {
        assert_eq!(parse(br#"{"event":"aurora","x":1}"#).unwrap().0, MemberEvent::Unknown);
        assert_eq!(parse(br#"{"event":"ready","mood":"good"}"#).unwrap().0, MemberEvent::Ready);
    }
}
