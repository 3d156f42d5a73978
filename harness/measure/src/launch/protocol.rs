//! The words that members and harness exchange: JSON lines, both ways. `workloads/protocol.jsonl` holds one example of each.

use std::collections::BTreeMap;

use collo_store::{Features, Serving};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The protocol version that this harness speaks.
pub const PROTOCOL: u32 = 1;

/// What a member says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It is alive, and what it sees.
    Hello(Box<Hello>),
    /// Set-up and warm-up batches are over.
    Ready,
    /// One pass over its data.
    Epoch(Epoch),
    /// What predictors are trained on; once.
    Features(Box<Features>),
    /// Peaks of the GPU allocator.
    Memory(Peaks),
    /// Requests that it answers per second when they never wait, found in its warm-up: of a member that serves.
    Capacity { requests_per_s: f64 },
    /// Requests that came, of a member that serves.
    Requests(Requests),
    /// It is about to exit.
    Error(Told),
    /// Its measured epochs are over.
    Done,
    /// A word of a later protocol: ignored.
    #[serde(other)]
    Unknown,
}

/// What a member knows of itself: the device as it sees it, never read from the environment.
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
    /// Batches after which an epoch is cut short; absent where epochs are whole.
    pub limit_batches: Option<u64>,
    /// How it is asked, where it serves instead of training.
    pub serving: Option<Serving>,
}

/// Requests of a member that serves, told in arrays of one length; nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Requests {
    /// When each was due by the schedule.
    pub arrival_ns: Vec<u64>,
    /// When its batch was begun; none if it was still waiting when the member was told to stop.
    pub start_ns: Vec<Option<u64>>,
    /// When its answer was there; none if it was not by then.
    pub end_ns: Vec<Option<u64>>,
}

impl Requests {
    /// Every request: arrival, start, end.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Option<u64>, Option<u64>)> {
        self.arrival_ns.iter().zip(&self.start_ns).zip(&self.end_ns).map(|((&arrival, &start), &end)| (arrival, start, end))
    }

    /// The last moment that is told.
    pub fn latest_ns(&self) -> Option<u64> {
        self.iter().map(|(arrival, start, end)| end.or(start).unwrap_or(arrival)).max()
    }

    /// What cannot be, if anything.
    fn wrong(&self) -> Option<String> {
        let (arrivals, starts, ends) = (self.arrival_ns.len(), self.start_ns.len(), self.end_ns.len());
        if arrivals != starts || arrivals != ends {
            return Some(format!("has {arrivals} arrivals, {starts} starts and {ends} ends"));
        }
        self.iter().find_map(|(arrival, start, end)| match (start, end) {
            _ if arrival > i64::MAX as u64 || end.or(start).is_some_and(|t| t > i64::MAX as u64) => {
                Some("has a time that no clock shows".into())
            }
            (Some(start), _) if start < arrival => Some("starts a request before it arrives".into()),
            (None, Some(_)) => Some("ends a request that it never started".into()),
            (Some(start), Some(end)) if end < start => Some("ends a request before it starts".into()),
            _ => None,
        })
    }
}

/// What a hello says of how the member is asked and that cannot be, if anything.
fn wrong_serving(serving: &Serving) -> Option<String> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    match serving {
        s if !positive(s.rate_per_s) => Some(format!("says that it is asked {} times a second", s.rate_per_s)),
        s if s.batch_size == 0 => Some("says that it answers 0 requests together".into()),
        s if s.slo_s.is_some_and(|slo| !positive(slo)) => Some("has an SLO that is no time above 0".into()),
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

/// Peaks of the GPU allocator: of the training, and where they were reset after it, of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Peaks {
    pub allocated_bytes: Option<u64>,
    pub reserved_bytes: Option<u64>,
    pub warm_up_allocated_bytes: Option<u64>,
    pub warm_up_reserved_bytes: Option<u64>,
}

/// Why a member ends, in its own words.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Told {
    /// `out_of_memory`, `data`, `setting` or `other`.
    pub kind: String,
    pub message: String,
    /// Where memory ran out: whose.
    pub whose: Option<Whose>,
    /// Of the card's memory, at that moment.
    pub free_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
}

/// Whose memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Card,
    Host,
    /// Nobody can tell.
    #[serde(other)]
    Either,
}

/// What the harness says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Your turn to warm up; nobody else does.
    WarmUp,
    /// Everybody is ready: begin.
    Go { epochs: u32, tail: Tail },
    /// End now, whatever you are doing.
    Stop,
}

/// What a member does after its measured epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// It trains on, unmeasured, so that everybody's measured epochs have full company.
    Hold,
    /// It leaves.
    Release,
}

impl Command {
    /// The line to send.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// Read one line of a member; the error says what is wrong with it, with the line shortened.
pub fn parse(line: &[u8]) -> Result<(Event, Value), String> {
    let shown = || shorten(&String::from_utf8_lossy(line));
    let value: Value = serde_json::from_slice(line).map_err(|_| format!("is not JSON: `{}`", shown()))?;
    if !value.get("event").is_some_and(Value::is_string) {
        return Err(format!("has no `event`: `{}`", shown()));
    }
    let event = Event::deserialize(&value).map_err(|e| format!("does not fit the protocol, {e}: `{}`", shown()))?;
    if let Event::Epoch(e) = &event
        && e.end_ns < e.start_ns
    {
        return Err(format!("ends before it starts: `{}`", shown()));
    }
    if let Event::Hello(h) = &event
        && h.protocol != PROTOCOL
    {
        return Err(format!("speaks protocol {}, this collo speaks {PROTOCOL}", h.protocol));
    }
    let wrong = match &event {
        Event::Hello(hello) => hello.serving.as_ref().and_then(wrong_serving),
        Event::Requests(requests) => requests.wrong(),
        Event::Capacity { requests_per_s } if !(requests_per_s.is_finite() && *requests_per_s > 0.0) => {
            Some("has a capacity that is no number above 0".into())
        }
        _ => None,
    };
    match wrong {
        Some(wrong) => Err(format!("{wrong}: `{}`", shown())),
        None => Ok((event, value)),
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

    const EXAMPLES: &str = include_str!("../../../../workloads/protocol.jsonl");

    #[test]
    fn every_published_member_message_is_understood_and_every_command_is_written_as_published() {
        let mut commands = Vec::new();
        let mut events = 0;
        for line in EXAMPLES.lines() {
            let example: Value = serde_json::from_str(line).unwrap();
            let message = &example["message"];
            if example["from"] == "member" {
                let (event, _) = parse(message.to_string().as_bytes()).unwrap();
                assert_ne!(event, Event::Unknown, "{line}");
                events += 1;
            } else {
                commands.push(message.clone());
            }
        }
        assert!(events >= 6);
        for command in [Command::WarmUp, Command::Go { epochs: 2, tail: Tail::Hold }, Command::Stop] {
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
        assert_eq!(wrong("5", "null", "7"), Err("ends a request that it never started".into()));
        assert_eq!(wrong("5", "6", "9300000000000000000"), Err("has a time that no clock shows".into()));
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
        let never = Err("says that it is asked 0 times a second".to_string());
        assert_eq!(hello(r#"{"rate_per_s":0,"batch_size":4,"slo_s":null}"#), never);
        assert_eq!(hello(r#"{"rate_per_s":1,"batch_size":0}"#), Err("says that it answers 0 requests together".into()));
        assert_eq!(hello(r#"{"rate_per_s":1,"batch_size":1,"slo_s":0}"#), Err("has an SLO that is no time above 0".into()));
        let capacity = parse(br#"{"event":"capacity","requests_per_s":0}"#).unwrap_err();
        assert!(capacity.starts_with("has a capacity that is no number above 0"), "{capacity}");
    }

    #[test]
    fn words_of_a_later_protocol_are_ignored() {
        assert_eq!(parse(br#"{"event":"aurora","x":1}"#).unwrap().0, Event::Unknown);
        assert_eq!(parse(br#"{"event":"ready","mood":"good"}"#).unwrap().0, Event::Ready);
    }
}
