//! The collected bundle: files in a folder, each masked when it is added, and a record of every step taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::{Value, json};

use collo_launch::Errand;
use collo_text::{Diagnostic, Diagnostics};

use super::contents;
use super::files::{Content, FILES, When, put_in};
use super::mask::Mask;
use crate::timeout;

/// The folder of the bundle inside its archive.
pub const NAME: &str = "collo-card";
/// Time limit for a program that queries a driver with many GPUs to initialise.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Of a file in it, which is masked as a whole.
const MOST_BYTES: u64 = 64 << 20;

/// A bundle being filled.
pub struct Bundle {
    folder: tempfile::TempDir,
    mask: Mask,
    steps: Vec<Value>,
    uuid: String,
    /// What stands for words in braces in the table of files.
    words: BTreeMap<&'static str, String>,
}

impl Bundle {
    /// Of the GPU with this UUID and index.
    pub fn new(uuid: &str, index: &str) -> Result<Bundle, Diagnostics> {
        let folder = tempfile::Builder::new().prefix("collo-card-").tempdir()?;
        let salt = format!("{}{}{:?}", std::process::id(), collo_store::monotonic_ns(), folder.path());
        let mask = Mask::here(salt).map_err(|e| Diagnostic::new("names cannot be masked").of_machine().caused_by(e))?;
        let words = BTreeMap::from([("gpu", index.to_string())]);
        let bundle = Bundle { folder, mask, steps: Vec::new(), uuid: uuid.into(), words };
        bundle.write("README.txt", &contents::readme())?;
        Ok(bundle)
    }

    fn place(&self, file: &str) -> PathBuf {
        self.folder.path().join(NAME).join(file)
    }

    /// A path for a program's output, masked later by [`Bundle::take`].
    pub fn aside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, file: &str, text: &str) -> std::io::Result<()> {
        let place = self.place(file);
        fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
        fs::write(place, self.mask.text(text))
    }

    /// Add a text; a failure to write is recorded.
    pub fn text(&mut self, file: &str, text: &str) {
        if let Err(e) = self.write(file, text) {
            self.note(file, json!({"not_written": e.to_string()}));
        }
    }

    pub fn json(&mut self, file: &str, value: &Value) {
        self.text(file, &format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()));
    }

    /// Add a file, if it exists.
    pub fn take(&mut self, file: &str, from: &Path) {
        match collo_text::read_small(from, MOST_BYTES) {
            Ok(bytes) => self.text(file, &String::from_utf8_lossy(&bytes)),
            Err(e) => self.note(file, json!({"absent": e.to_string()})),
        }
    }

    /// Record a step, or why it was not taken.
    pub fn note(&mut self, what: &str, mut value: Value) {
        value["step"] = what.into();
        self.steps.push(value);
    }

    /// From now on this value stands for a word in braces.
    pub fn word(&mut self, word: &'static str, value: impl ToString) {
        self.words.insert(word, value.to_string());
    }

    /// Fill the files of a moment.
    pub fn fill(&mut self, when: When) {
        for (_, file, content) in FILES.iter().filter(|(of, ..)| *of == when) {
            let Some(file) = put_in(file, &self.words) else { continue };
            match content {
                Content::Command(line) => put_in(line, &self.words).into_iter().for_each(|line| self.command(&file, &line)),
                Content::Text(text) => self.text(&file, &text()),
                Content::Json(value) => match value(&self.uuid) {
                    Ok(value) => self.json(&file, &value),
                    Err(absent) => self.note(&file, json!({ "absent": absent })),
                },
            }
        }
    }

    /// Add a program's output: the file has its stdout and nothing else, the record the rest.
    fn command(&mut self, file: &str, line: &str) {
        let begun = Instant::now();
        let words: Vec<&str> = line.split(' ').collect();
        match timeout::errand(words[0], &words[1..], TIMEOUT).ask() {
            Ok(said) => {
                let (out, err) = (said.out(), said.err());
                self.text(file, &out);
                let rc = said.status.and_then(|s| s.code());
                // Old ones complain on stdout.
                let said = if rc == Some(0) { err } else { err + &out.chars().take(400).collect::<String>() };
                let took_s = begun.elapsed().as_secs_f64();
                self.note(file, json!({"command": line, "rc": rc, "late": rc.is_none(), "took_s": took_s, "said": said}));
            }
            Err(e) => self.note(file, json!({"command": line, "absent": e.to_string()})),
        }
    }

    /// The number of steps, and a line for each that failed or whose reply differs from what is known.
    pub fn troubles(&self) -> (usize, Vec<String>) {
        let wrong = |step: &Value| {
            let name = step["step"].as_str().unwrap_or_default();
            for word in ["absent", "refused", "not_written", "without", "differs"] {
                if let Some(why) = step[word].as_str() {
                    return Some(format!("{name}: {why}"));
                }
            }
            match (step["late"].as_bool(), step["rc"].as_i64()) {
                (Some(true), _) => Some(format!("{name}: timed out")),
                (_, Some(rc)) if rc != 0 => Some(format!("{name}: exited with {rc}")),
                _ => None,
            }
        };
        (self.steps.len(), self.steps.iter().filter_map(wrong).map(|line| self.mask.text(&line)).collect())
    }

    /// Write the record, and pack everything into one file.
    pub fn pack(&mut self, to: &Path) -> Result<(), Diagnostics> {
        let steps = std::mem::take(&mut self.steps);
        self.json("steps.json", &json!({"schema": 1, "collo": env!("CARGO_PKG_VERSION"), "steps": steps}));
        let cannot = |why: String| Diagnostic::new(format!("{} cannot be written", to.display())).of_machine().caused_by(why);
        let mut aside = to.as_os_str().to_owned();
        aside.push(".aside");
        let aside = PathBuf::from(aside);
        // Nobody's name is to be in its headers.
        let tar = Errand::to("tar", TIMEOUT).args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf"]);
        let said = tar.arg(&aside).arg("-C").arg(self.folder.path()).arg(NAME).ask();
        let said = said.map_err(|e| cannot(format!("`tar`: {e}")))?;
        if !said.success() {
            let _ = fs::remove_file(&aside);
            return Err(cannot(said.err().trim().to_string()).into());
        }
        Ok(fs::rename(&aside, to).map_err(|e| cannot(e.to_string()))?)
    }
}
