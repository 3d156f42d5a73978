//! Limits the messages of a member: plenty for training, too few to fill the memory, the disk, or the time of the reader. Pure.

/// Maximum burst of messages; twice as many as a socket buffers of the shortest.
const AT_ONCE: f64 = 10_000.0;
/// Sustained rate per second: epochs of a millisecond, with the memory after each.
const PER_S: f64 = 2_000.0;
/// A longer message counts as several of this many bytes.
const BYTES: usize = 16 << 10;
/// In one run. Each epoch is kept in memory until its end.
const IN_A_RUN: u64 = 4_000_000;

/// The remaining allowance of a member.
#[derive(Debug)]
pub struct Allowance {
    left: f64,
    at_ns: u64,
    first_ns: u64,
    heard: u64,
}

impl Allowance {
    pub fn begin(now_ns: u64) -> Self {
        Allowance { left: AT_ONCE, at_ns: now_ns, first_ns: now_ns, heard: 0 }
    }

    /// A message of `bytes` bytes arrived; the error says that it was one too many.
    pub fn hear(&mut self, bytes: usize, now_ns: u64) -> Result<(), String> {
        if self.heard == 0 {
            self.first_ns = now_ns;
        }
        self.heard += 1;
        let since_s = now_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        self.at_ns = now_ns;
        self.left = (self.left + since_s * PER_S).min(AT_ONCE) - (1 + bytes / BYTES) as f64;
        let less = "make epochs longer, and report the memory less often";
        if self.left < 0.0 {
            let seconds = now_ns.saturating_sub(self.first_ns) as f64 / 1e9;
            return Err(format!(
                "floods the channel: {} messages in {seconds:.1} s, at most {PER_S} a second are accepted: {less}",
                self.heard
            ));
        }
        if self.heard > IN_A_RUN {
            return Err(format!("floods the channel: more than {IN_A_RUN} messages in one run: {less}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// The number of messages accepted, of this size and at this interval.
    fn taken(every_ns: u64, bytes: usize, most: u64) -> Result<u64, String> {
        let mut allowance = Allowance::begin(5 * S);
        (0..most).try_for_each(|n| allowance.hear(bytes, 5 * S + n * every_ns)).map(|()| most)
    }

    #[test]
    fn who_trains_in_epochs_of_a_millisecond_is_heard_for_hours() {
        assert_eq!(taken(S / 2000, 160, 100_000), Ok(100_000));
        assert_eq!(taken(S, 100_000, 100_000), Ok(100_000), "two thousand requests, every second");
    }

    #[test]
    fn what_a_socket_kept_while_collo_was_stopped_is_no_flood() {
        assert_eq!(taken(0, 160, 5_000), Ok(5_000));
    }

    #[test]
    fn a_flood_is_named_with_its_rate() {
        insta::assert_snapshot!(taken(5_000, 20, 1_000_000).unwrap_err(), @"floods the channel: 10102 messages in 0.1 s, at most 2000 a second are accepted: make epochs longer, and report the memory less often");
        assert!(taken(S / 100, 1 << 20, 100_000).is_err(), "of few but long messages as well");
    }

    #[test]
    fn what_fills_the_memory_slowly_is_a_flood_too() {
        let mut allowance = Allowance { heard: IN_A_RUN - 1, ..Allowance::begin(0) };
        assert_eq!(allowance.hear(160, S), Ok(()));
        insta::assert_snapshot!(allowance.hear(160, 2 * S).unwrap_err(), @"floods the channel: more than 4000000 messages in one run: make epochs longer, and report the memory less often");
    }
}
