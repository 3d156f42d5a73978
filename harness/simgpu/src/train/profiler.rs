//! torch's profiler inside a member, as `observers/torch-profiler.toml` asks for it: measured epochs take longer, and each leaves a file.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use super::variables::Variables;

/// The variable that names the folder of traces.
const VARIABLE: &str = "COLLO_TORCH_PROFILER";
/// Epoch time with it ÷ without: 13.65 s and 9.61 s of the light model on an A100 (RAD-RM, PhD thesis, chapter 3).
const STRETCH: f64 = 13.65 / 9.61;
/// Bytes written for each second that it makes of an epoch. Invented: the published 1.4 GB are without the length of what they are of.
const BYTES_PER_S: f64 = 1e6;

/// The profiler of a member.
#[derive(Debug)]
pub struct Profiler {
    folder: PathBuf,
}

impl Profiler {
    /// As the member's variables ask; none if they do not.
    pub fn asked(variables: &Variables) -> Option<Profiler> {
        let folder = variables.get(VARIABLE).filter(|folder| !folder.is_empty())?;
        Some(Profiler { folder: folder.into() })
    }

    /// How much longer an epoch of this length takes.
    pub fn extra(&self, start_ns: u64, end_ns: u64) -> Duration {
        Duration::from_nanos(end_ns.saturating_sub(start_ns)).mul_f64(STRETCH - 1.0)
    }

    /// Write the trace of an epoch.
    pub fn write(&self, index: u64, epoch: Duration) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut text = String::from("{\"simulated\":true,\"traceEvents\":[]}");
        text.extend(std::iter::repeat_n(' ', (epoch.as_secs_f64() * BYTES_PER_S) as usize));
        fs::write(self.folder.join(format!("epoch-{index}.json")), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_profiled_takes_longer_by_what_was_published_and_leaves_a_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("member-0");
        let asked = Variables([(VARIABLE.to_string(), Some(place.display().to_string()))].into());
        let profiler = Profiler::asked(&asked).expect("it is asked for");
        assert_eq!(profiler.extra(1_000, 961_001_000).as_millis(), 404);
        profiler.write(2, Duration::from_millis(10)).expect("room");
        let written = fs::read_to_string(place.join("epoch-2.json")).expect("a trace");
        assert!(written.starts_with("{\"simulated\":true") && written.len() > 10_000);
        assert!(Profiler::asked(&Variables::default()).is_none());
    }
}
