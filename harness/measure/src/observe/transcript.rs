//! The lines of `events.jsonl`: a member's messages verbatim as long as there is room, and its end.

use serde_json::{Value, json};

use collo_launch::Signal;
use collo_launch::protocol::MemberEvent;

/// Limit for one member's messages in a run: a hundred thousand epochs.
const ROOM_BYTES: usize = 16 << 20;

/// Keeps the members' messages.
pub struct Transcript {
    room_bytes: Vec<usize>,
}

impl Transcript {
    pub fn of(members: usize) -> Self {
        Transcript { room_bytes: vec![ROOM_BYTES; members] }
    }

    /// Make room for a further member.
    pub fn add(&mut self) {
        self.room_bytes.push(ROOM_BYTES);
    }

    /// The line of a signal; `None` if there is no room for it.
    pub fn line(&mut self, member: usize, signal: &Signal, at_ns: u64) -> Option<Value> {
        let said = match signal {
            Signal::Started { pid } => return Some(json!({"at_ns": at_ns, "member": member, "started": {"pid": pid}})),
            Signal::Garbage { reason } => return Some(json!({"at_ns": at_ns, "member": member, "garbage": reason})),
            Signal::Ended(ended) => {
                let orphans: Vec<_> = ended.orphans.iter().map(|(pid, name)| json!({"pid": pid, "name": name})).collect();
                return Some(json!({"at_ns": at_ns, "member": member, "ended": ended.live.to_string(), "orphans": orphans}));
            }
            // The requests themselves are in a table of their own.
            Signal::Said { event: MemberEvent::Requests(requests), .. } => {
                json!({"event": "requests", "requests": requests.arrival_ns.len()})
            }
            Signal::Said { raw, .. } => raw.clone(),
        };
        let room = &mut self.room_bytes[member];
        if *room == 0 {
            return None;
        }
        let line = json!({"at_ns": at_ns, "member": member, "said": said});
        *room = room.saturating_sub(line.to_string().len());
        Some(match *room {
            0 => {
                json!({"at_ns": at_ns, "member": member, "omitted": format!("output from here on: {} MiB are kept", ROOM_BYTES >> 20)})
            }
            _ => line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collo_launch::protocol::parse;
    use collo_launch::{Ended, Live};

    #[test]
    fn a_member_that_talks_for_ever_does_not_fill_the_disk_and_its_end_is_kept() {
        let mut transcript = Transcript::of(2);
        let mut say = |member: usize, message: &str| {
            let (event, raw) = parse(message.as_bytes()).unwrap();
            transcript.line(member, &Signal::Said { event, raw }, 7).map(|line| line.to_string())
        };
        let word = json!({"event": "x", "words": vec!["y".repeat(200); 50]}).to_string();
        let lines: Vec<String> = (0..20_000).map_while(|_| say(0, &word)).collect();
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!((ROOM_BYTES - 20_000..=ROOM_BYTES).contains(&bytes), "{bytes}");
        insta::assert_snapshot!(lines.last().unwrap(), @r#"{"at_ns":7,"member":0,"omitted":"output from here on: 16 MiB are kept"}"#);
        assert_eq!(say(0, r#"{"event":"done"}"#), None);
        insta::assert_snapshot!(say(1, r#"{"event":"done"}"#).unwrap(), @r#"{"at_ns":7,"member":1,"said":{"event":"done"}}"#);
        let ended = Ended::of(Live::Exited(0));
        let end = transcript.line(0, &Signal::Ended(ended), 8).unwrap().to_string();
        insta::assert_snapshot!(end, @r#"{"at_ns":8,"member":0,"ended":"exited with 0","orphans":[]}"#);
    }
}
