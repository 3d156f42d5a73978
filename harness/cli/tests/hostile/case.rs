//! One case: who misbehaves, and what must come of it.
//!
//! In: a [`Case`]. Out: nothing, or a sentence that says what did not hold. Whatever the case, nothing that was started is left, what
//! was stored is as it was, every planned run is accounted for once all is well again, cards are as they were found, collo ends in
//! time with a code that is documented, in a bounded amount of memory, and never by a panic; and no number is kept that cannot be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use collo_store::{Outcome, StoredRun, Verdict};

use crate::hostile::scene::{Live, Said, Scene};

/// What collo may end with.
const DOCUMENTED: [i32; 6] = [0, 1, 2, 3, 4, 130];
/// Whatever a member says, collo holds no more memory than this.
const MOST_MEMORY_KIB: u64 = 500 << 10;
/// How long what was started may take to be gone; behind a daemon that hangs it is longer.
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_ON_A_CARD: Duration = Duration::from_secs(20);
/// Limits of each run; a case is given as much again.
const LIMITS: &str = "timeout = \"15s\"\nset_up_timeout = \"8s\"\nstall_timeout = \"6s\"\n";

pub type Check = Result<(), String>;
type Deed = Box<dyn Fn(&Scene) -> Check + Send + Sync>;
type Look = Box<dyn Fn(&Scene, &Said) -> Check + Send + Sync>;
type Strike = Box<dyn Fn(&Scene, &mut Live) -> Check + Send + Sync>;

pub struct Case {
    pub kind: &'static str,
    pub name: String,
    /// Whether it belongs to the short form.
    pub in_sample: bool,
    words: Option<String>,
    toml: String,
    arguments: Vec<&'static str>,
    folder: Option<OsString>,
    under: String,
    before: Vec<Deed>,
    act: Option<Deed>,
    meanwhile: Option<Strike>,
    codes: Vec<i32>,
    ends: Option<&'static str>,
    says: Vec<&'static str>,
    looks: Vec<Look>,
    /// Members that are left wait for the next collo.
    by_the_next: bool,
    /// Nothing can be measured in such a place, whoever tries.
    is_refused: bool,
    within: Duration,
}

pub fn hold(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

/// A case of this kind that runs experiment `x`, a member that behaves, and ends with 0, until more is said.
pub fn case(kind: &'static str, name: impl Into<String>) -> Case {
    Case {
        kind,
        name: name.into(),
        in_sample: false,
        words: None,
        toml: one("hostile", "calm"),
        arguments: Vec::new(),
        folder: None,
        under: String::new(),
        before: Vec::new(),
        act: None,
        meanwhile: None,
        codes: vec![0],
        ends: None,
        says: Vec::new(),
        looks: Vec::new(),
        by_the_next: false,
        is_refused: false,
        within: Duration::from_secs(60),
    }
}

/// A member of `members/hostile` that does what this function of it does.
pub fn member(kind: &'static str, how: &str) -> Case {
    case(kind, how).of(one("hostile", how))
}

/// An experiment of one member.
pub fn one(workload: &str, how: &str) -> String {
    format!("{LIMITS}[axes]\nworkload = \"{workload}\"\nhow = \"{how}\"\n")
}

impl Case {
    /// One of the short form.
    pub fn sample(mut self) -> Case {
        self.in_sample = true;
        self
    }

    /// Another experiment.
    pub fn of(mut self, toml: impl Into<String>) -> Case {
        self.toml = toml.into();
        self
    }

    /// The same member beside one that behaves.
    pub fn beside_another(mut self) -> Case {
        self.toml.push_str("degree = 2\n");
        self
    }

    /// On a simulated card with these words.
    pub fn on(mut self, words: impl Into<String>) -> Case {
        self.words = Some(words.into());
        self
    }

    pub fn with(mut self, arguments: &[&'static str]) -> Case {
        self.arguments.extend(arguments);
        self
    }

    /// The command starts after these lines of shell.
    pub fn under(mut self, shell: impl Into<String>) -> Case {
        self.under = shell.into();
        self
    }

    /// The project lies in a folder of this name.
    pub fn in_folder(mut self, name: impl Into<OsString>) -> Case {
        self.folder = Some(name.into());
        self
    }

    pub fn before(mut self, deed: impl Fn(&Scene) -> Check + Send + Sync + 'static) -> Case {
        self.before.push(Box::new(deed));
        self
    }

    /// Do this instead of running the experiment.
    pub fn act(mut self, deed: impl Fn(&Scene) -> Check + Send + Sync + 'static) -> Case {
        self.act = Some(Box::new(deed));
        self
    }

    /// Do this while it runs.
    pub fn meanwhile(mut self, strike: impl Fn(&Scene, &mut Live) -> Check + Send + Sync + 'static) -> Case {
        self.meanwhile = Some(Box::new(strike));
        self
    }

    /// It ends with one of these codes; a signal is its number below zero.
    pub fn exits(mut self, codes: &[i32]) -> Case {
        self.codes = codes.to_vec();
        self
    }

    /// It ends with any code that is documented.
    pub fn exits_somehow(self) -> Case {
        self.exits(&DOCUMENTED)
    }

    /// Every run of member 0 ends as one of these words, separated by `|`.
    pub fn ends(mut self, words: &'static str) -> Case {
        self.ends = Some(words);
        self
    }

    /// On stderr or stdout.
    pub fn says(mut self, text: &'static str) -> Case {
        self.says.push(text);
        self
    }

    pub fn looks(mut self, look: impl Fn(&Scene, &Said) -> Check + Send + Sync + 'static) -> Case {
        self.looks.push(Box::new(look));
        self
    }

    /// Nobody of ours was left to end the members: the next collo does it.
    pub fn swept_by_the_next(mut self) -> Case {
        self.by_the_next = true;
        self
    }

    /// Nothing can be measured in such a place: it is said, nothing is stored, and what to do.
    pub fn refused(mut self) -> Case {
        self.is_refused = true;
        self.exits(&[3])
    }

    pub fn within(mut self, seconds: u64) -> Case {
        self.within = Duration::from_secs(seconds);
        self
    }

    /// Do it, and say what did not hold.
    pub fn tried(&self) -> Check {
        let scene = Scene::new(self.words.as_deref(), &self.toml, self.folder.as_deref(), &self.under);
        self.before.iter().try_for_each(|deed| deed(&scene))?;
        let before = scene.digests(&["good"]);
        hold(!before.is_empty(), || "nothing was stored before: the case proves nothing".into())?;
        match &self.act {
            Some(act) => act(&scene)?,
            None => self.runs(&scene)?,
        }
        let patience = if self.words.is_some() { TIMEOUT_ON_A_CARD } else { TIMEOUT };
        if !self.by_the_next {
            scene.nothing_is_left(patience)?;
        }
        let stored = scene.digests(&["x"]);
        self.goes_on(&scene)?;
        scene.nothing_is_left(patience).map_err(|e| format!("after the campaign was finished: {e}"))?;
        unchanged(&before, &scene.digests(&["good"]))?;
        unchanged(&stored, &scene.digests(&["x"]))?;
        scene.runs().iter().try_for_each(|(folder, run)| possible(run).map_err(|e| format!("{folder}: {e}")))?;
        self.card_is_as_found(&scene)
    }

    fn runs(&self, scene: &Scene) -> Check {
        let arguments = [&["run", "x", "--no-report"], self.arguments.as_slice()].concat();
        let mut live = scene.start(&arguments);
        if let Some(strike) = &self.meanwhile {
            strike(scene, &mut live)?;
        }
        let said = live.ends(self.within)?;
        let tell = |what: String| format!("{what}\n{}", end_of(&said));
        ended(&said).map_err(tell)?;
        hold(self.codes.contains(&said.code), || tell(format!("it ended with {}, not {:?}", said.code, self.codes)))?;
        let text = format!("{}{}", said.stderr, said.stdout);
        for wanted in &self.says {
            hold(text.contains(wanted), || tell(format!("nobody says `{wanted}`")))?;
        }
        if let Some(words) = self.ends {
            let runs = scene.runs();
            hold(!runs.is_empty(), || tell("no run is stored".into()))?;
            for (folder, run) in &runs {
                let word = run.record.outcome.as_str();
                hold(words.split('|').any(|w| w == word), || tell(format!("{folder} ended as {word}, not {words}")))?;
            }
        }
        self.looks.iter().try_for_each(|look| look(scene, &said)).map_err(tell)
    }

    /// Once all is well again the campaign is complete: every planned run is accounted for.
    fn goes_on(&self, scene: &Scene) -> Check {
        if (self.is_refused || self.act.is_some()) && scene.campaigns().is_empty() {
            return Ok(());
        }
        hold(!self.is_refused, || "a campaign is stored where none can be".into())?;
        let before = scene.campaigns().len();
        let is_complete = |c: &collo_store::CampaignFolder| {
            let stored = c.runs().map(|(runs, _)| runs.values().filter(|r| r.record.outcome.is_final()).count()).unwrap_or(0);
            (stored, c.manifest().plan.order.len())
        };
        let complete = scene.campaigns().first().is_some_and(|c| is_complete(c).0 == is_complete(c).1);
        if !complete || self.by_the_next {
            let arguments = [&["run", "x", "--no-report"], self.arguments.as_slice()].concat();
            let again = scene.calmly(&arguments).map_err(|e| format!("when all is well again: {e}"))?;
            let tell = |what: String| format!("when all is well again: {what}\n{}", end_of(&again));
            ended(&again).map_err(tell)?;
            hold(matches!(again.code, 0 | 1), || tell(format!("it ends with {}", again.code)))?;
        }
        let campaigns = scene.campaigns();
        let newest = campaigns.first().ok_or("no campaign is stored")?;
        let (stored, planned) = is_complete(newest);
        hold(stored == planned, || format!("{stored} of {planned} planned runs are accounted for"))?;
        let is_one = before == 0 || campaigns.len() == before || complete;
        hold(is_one, || "it is not continued: a new campaign was begun".into())
    }

    fn card_is_as_found(&self, scene: &Scene) -> Check {
        let (Some(machine), Some(found)) = (scene.machine(), &scene.found) else { return Ok(()) };
        let now = machine.cards();
        hold(now == *found, || format!("the card was found as {found}, it is {now}"))?;
        hold(machine.journals().is_empty(), || format!("journals are left: {:?}", machine.journals()))
    }
}

/// How every command must end.
pub fn ended(said: &Said) -> Check {
    let panic = [&said.stderr, &said.stdout].into_iter().flat_map(|s| s.lines()).find(|l| l.contains("panicked at"));
    hold(panic.is_none(), || format!("it panicked: {}", panic.unwrap_or_default()))?;
    hold(said.peak_kib < MOST_MEMORY_KIB, || format!("it held {} MiB of memory", said.peak_kib >> 10))?;
    hold(DOCUMENTED.contains(&said.code) || said.code < 0, || format!("it ended with {}, which is not documented", said.code))
}

/// The last lines of what was said.
pub fn end_of(said: &Said) -> String {
    let lines: Vec<&str> = said.stderr.lines().collect();
    let last = &lines[lines.len().saturating_sub(6)..];
    let cut: Vec<String> =
        last.iter().map(|l| format!("  │ {}", l.chars().take(200).collect::<String>().escape_debug())).collect();
    cut.join("\n")
}

fn unchanged(was: &BTreeMap<PathBuf, String>, now: &BTreeMap<PathBuf, String>) -> Check {
    match was.iter().find(|(path, digest)| now.get(*path) != Some(digest)) {
        Some((path, _)) => Err(format!("`{}` was stored before and is changed", path.display())),
        None => Ok(()),
    }
}

/// The numbers of a run that is used can be: each member has the epochs that were wanted, one after the other, inside the run.
fn possible(run: &StoredRun) -> Check {
    let r = &run.record;
    if r.outcome != Outcome::Completed || r.validity.verdict == Verdict::Discarded {
        return Ok(());
    }
    let epochs = collo_store::read_epochs(&run.path.join("epochs.parquet")).map_err(|e| e.to_string())?;
    for (number, member) in r.members.iter().enumerate() {
        let own: Vec<_> = epochs.iter().filter(|e| e.member as usize == number).collect();
        let measured = own.iter().filter(|e| e.measured).count();
        // Every experiment here has two epochs.
        hold(measured == 1, || format!("completed with {measured} measured epochs of member {number}, not 1"))?;
        let from = if member.barrier { r.timeline.go_ns.unwrap_or(r.timeline.launched_ns) } else { r.timeline.launched_ns };
        // A script that tells its seconds rounds them.
        let rounding_ns = if member.barrier { 0 } else { 50_000_000 };
        let mut at = from;
        for epoch in own {
            let inside =
                epoch.start_ns + rounding_ns >= at && epoch.start_ns < epoch.end_ns && epoch.end_ns <= r.timeline.ended_ns;
            let (start, end) = (epoch.start_ns as i128 - from as i128, epoch.end_ns as i128 - from as i128);
            hold(inside, || format!("completed with an epoch {} from {start} to {end} ns after the start", epoch.index))?;
            at = epoch.end_ns;
        }
    }
    Ok(())
}
