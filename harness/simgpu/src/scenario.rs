//! What the simulated machine is and how it misbehaves: `COLLO_SIM=a100-40gb,gpus=2,lost@5s`.
//!
//! In: the text of `COLLO_SIM`. Out: [`Scenario`], a card and words. A word may have a value and a time, which counts from the first
//! moment at which anything trained on the machine. A word that does not exist is an error: a fault that is spelled wrongly must not
//! pass for a healthy card.
//!
//! To add a fault: its word here, and a row in `cli/tests/gpu_faults`, which has a file for each subject.

/// The variable that holds the scenario.
pub const VARIABLE: &str = "COLLO_SIM";

/// Every word, with what it does.
pub const WORDS: &[(&str, &str)] = &[
    ("gpus", "that many equal cards"),
    ("display", "a small display GPU without MIG at index 0"),
    ("lost", "from then on every call on a device, or on that card alone, says that the GPU is lost, and members there die"),
    ("mig-in-use", "a change of the MIG mode stays pending: in use by another client"),
    ("mig-pending", "a change of the MIG mode stays pending: a reset is required"),
    (
        "services",
        "nvidia-dcgm, nvsm, dcgm-exporter, nvidia-persistenced and nvidia-fabricmanager run, as on a DGX as it is shipped",
    ),
    ("services-pending", "while services hold the card a change of the MIG mode stays pending; otherwise it is refused at once"),
    ("service-fails", "that service does not start again"),
    ("root", "an administrator, on a machine where whoever measures is none otherwise"),
    ("user", "a normal user: what NVIDIA's header closes to users is not permitted, and services cannot be stopped"),
    ("dcgm-leaks", "the host engine never lets go of instances made while it runs: they cannot be destroyed until it restarts"),
    ("engine-slow", "the host engine answers only so long after its service was started again"),
    ("nvidia-drm", "the kernel's module for displays holds the cards: they cannot be reset, and no process is to be seen"),
    ("busy-for", "so many times a change of the MIG mode is refused: somebody is about to let go"),
    ("power-limit", "somebody has set this limit of power, in W"),
    ("power-fixed", "the limit of power cannot be set"),
    ("application-clocks", "somebody has set the SM clock of applications, in MHz"),
    ("locked-clocks", "somebody has locked the SM clock, in MHz"),
    ("mig-no-permission", "changes of mode and instances are not permitted"),
    ("mig-not-supported", "the card has no MIG"),
    ("no-resources", "GPU instances cannot be made: insufficient resources"),
    ("gi-busy", "GPU instances cannot be destroyed the first so many times: in use"),
    ("ci-fails", "compute instances cannot be made"),
    ("mps-no-start", "the MPS daemon does not start"),
    ("mps-slow", "the MPS daemon answers only after so long"),
    ("mps-dies", "the MPS daemon and its servers die then"),
    ("mps-fault", "the MPS servers, or those of that card, report a fatal fault then and their clients die"),
    ("mps-no-attach", "that member runs without MPS and says nothing"),
    ("mps-hang", "`quit` never returns and the daemon ignores SIGTERM"),
    ("mps", "the driver in whose words MPS answers, as in `mps=535`; 535, 550, 555 or 580, by default that of the machine"),
    ("mps-server-slow", "the servers of MPS serve only so long after they were asked to start"),
    ("mps-no-server", "the MPS daemon starts, and its servers find no device"),
    ("mps-no-credentials", "the MPS daemon complains of every command, as it does in a container"),
    ("mps-list-only", "MPS clients are only in the MPS list of their MIG device, and the lists of the parent are closed"),
    ("slow-control", "every command to an MPS daemon takes so long"),
    ("lingers", "the first question to each program leaves a child behind that keeps its streams open"),
    ("slow-nvml", "the first nvmlInit of a process takes so long"),
    ("bundle", "`dcgmi` prints the texts of that folder of fixtures/, which were collected somewhere"),
    ("no-dcgm", "no host engine answers"),
    ("dcgm-blank", "every field of DCGM is blank"),
    ("dcgm-reordered", "rows of DCGM come in another order each time"),
    ("dcgm-one-by-one", "of instances that are made together the host engine notices the first before the others"),
    ("dcgm-mixed", "rows of the whole card appear among those of instances"),
    ("dcgm", "the version whose `dcgmi` it is, as in `dcgm=3.3`"),
    ("dcgm-renumbered", "the host engine numbers cards from the last to the first"),
    ("dcgm-stale", "the host engine does not notice instances that are made"),
    ("dcgm-no-switches", "`discovery -l` fails at the switches, after the cards"),
    ("dcgm-no-profiling", "DCGM has no profiling module"),
    ("profiler-owned", "somebody else has the profiling counters of a card before Hopper"),
    ("dcgm-zero", "all profiling fields of DCGM read 0 from then on; `=until-watched` until they are watched anew"),
    ("sm-over-one", "every third SMACT of DCGM is 1.294"),
    ("dcgm-dies", "`dcgmi dmon` dies then"),
    ("energy-reset", "the energy counter starts again then"),
    ("no-energy", "no energy counter"),
    ("no-power", "no power reading"),
    ("no-gpm", "no GPM"),
    ("gpm-nan", "metrics of GPM are not numbers"),
    ("slow-card", "that card is slower by so many percent, as in `slow-card=1:5`"),
    ("throttle", "from then on the clocks are a third lower and everybody a fifth slower"),
    ("oom", "that member runs out of memory"),
    ("host-oom", "that member runs out of the machine's memory, beside the card"),
    ("no-persistence", "persistence mode is off"),
    ("exclusive", "the compute mode is exclusive process"),
    ("exclusive-sticks", "once the compute mode is exclusive process it cannot be set otherwise"),
    ("hidden-pids", "process lists show other pids, as in a container"),
    ("foreign", "that process is on the first card with 2 GiB, from then on"),
    ("foreign-gi", "the foreign process is on the GPU instance with this id"),
    ("foreign-mib", "the foreign process holds so many MiB"),
    ("unexplained-mib", "while somebody is on the card so many MiB are used that no list of processes explains"),
    ("foreign-load", "the foreign process keeps the card so many percent busy"),
    ("pid-namespace", "a container: the lists leave out the foreign process, and its memory and load show"),
    ("slow-init", "the library takes so long to begin"),
    ("no-profiles-off", "with MIG off no profile is told"),
    ("lost-card", "that card is listed, and where its memory is asked for it says that it is lost"),
    ("driver", "another driver version"),
    ("mig", "the MIG layout that is found at first use"),
    ("noise", "standard deviation of the logarithm of the pace, per run"),
    ("seed", "of all noise"),
    ("wrong-sm", "members (or that member) say another number of SMs"),
    ("wrong-device", "members (or that member) say another device"),
    ("no-cuda", "members (or that member) find no CUDA and train on the CPU"),
    ("silent", "members (or that member) never say that they are ready"),
    ("crash", "that member dies then, and with it every thread of its process"),
    ("one-stream", "members that are threads (or that member) have the stream of the first"),
    ("default-stream", "members that are threads (or that member) have the default stream"),
    ("two-processes", "members that are threads (or that member) have their context in another process"),
    (
        "crashes",
        "members, or that member, or those of that workload's folder or model, die each time, so long after their own start of training",
    ),
    ("never-fits", "those ask for more memory than the card has, though they be alone"),
    ("grows", "those take more memory so long after their own start of training, and run out of it if there is none left"),
    ("grows-mib", "so many MiB more: 1024"),
    ("idle-cards", "those compute on the first of several cards that they are given, and leave the others idle"),
    ("xid", "the driver reports that Xid then, as in `xid=79@300ms`"),
];

/// Machines as people have them: a card and words under one name. A word that is given itself has the say.
pub const MACHINES: &[(&str, &str)] = &[
    // As NVIDIA ships it (DGX A100 User Guide): eight cards with MIG off, the services of DGX OS, DCGM 3; whoever measures is no administrator.
    ("dgx-a100", "a100-40gb,gpus=8,services,user,dcgm=3.3"),
];

/// The prefix of words that make one function of NVML fail: `nvml:nvmlDeviceGetPowerUsage=999`, with a time before the code.
const NVML: &str = "nvml:";

/// One word of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    pub name: String,
    pub value: Option<String>,
    /// Seconds after the first training.
    pub at_s: Option<f64>,
}

/// A member, as words may name it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Who {
    pub member: Option<u32>,
    pub folder: String,
    pub model: Option<String>,
}

/// A card and words.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The name of a file of card profiles, without `.toml`.
    pub card: String,
    pub words: Vec<Word>,
}

impl Scenario {
    /// The scenario of this process; without the variable a healthy A100.
    pub fn from_environment() -> Result<Scenario, String> {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Scenario::parse(if text.trim().is_empty() { "a100-40gb" } else { &text })
    }

    pub fn parse(text: &str) -> Result<Scenario, String> {
        let mut parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        let card = parts.next().ok_or("a scenario begins with a card, as in `a100-40gb`")?;
        let mut words = parts.map(word).collect::<Result<Vec<_>, String>>()?;
        let Some((_, machine)) = MACHINES.iter().find(|(name, _)| *name == card) else {
            return Ok(Scenario { card: card.to_string(), words });
        };
        let machine = Scenario::parse(machine)?;
        let is_root = words.iter().any(|w| w.name == "root");
        let kept = machine.words.into_iter().filter(|w| w.name != "user" || !is_root);
        let kept: Vec<Word> = kept.filter(|w| words.iter().all(|own| own.name != w.name)).collect();
        words.extend(kept);
        Ok(Scenario { card: machine.card, words })
    }

    fn find(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|w| w.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.find(name)?.value.as_deref()
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.value(name)?.parse().ok()
    }

    /// When a word takes effect, in seconds; a word without a time does from the beginning.
    pub fn at_s(&self, name: &str) -> Option<f64> {
        self.find(name).map(|w| w.at_s.unwrap_or(0.0))
    }

    /// Whether a word is there and its time has come, so many seconds after the first training (none: nothing trained yet).
    pub fn is_on(&self, name: &str, elapsed_s: Option<f64>) -> bool {
        self.find(name).is_some_and(|w| w.has_come(elapsed_s))
    }

    /// Whether a word that may name a member means this one.
    pub fn means_member(&self, name: &str, member: Option<u32>) -> bool {
        self.find(name).is_some_and(|w| match &w.value {
            Some(value) => value.parse().ok() == member && member.is_some(),
            None => true,
        })
    }

    /// Whether a word that may name a member, or a workload by its folder or model, means this member.
    pub fn means(&self, name: &str, who: &Who) -> bool {
        self.find(name).is_some_and(|w| match w.value.as_deref() {
            Some(value) => {
                value.parse().ok().zip(who.member).is_some_and(|(named, own): (u32, u32)| named == own)
                    || value == who.folder
                    || who.model.as_deref() == Some(value)
            }
            None => true,
        })
    }

    /// The code with which a function of NVML fails now.
    pub fn nvml_fault(&self, symbol: &str, elapsed_s: impl Fn() -> Option<f64>) -> Option<u32> {
        let named = |w: &&Word| w.name.strip_prefix(NVML) == Some(symbol);
        let word = self.words.iter().find(named)?;
        if word.has_come(elapsed_s()) { word.value.as_deref()?.parse().ok() } else { None }
    }

    /// How many times longer everything takes on a card.
    pub fn slower(&self, card: usize) -> f64 {
        let word = self.value("slow-card").and_then(|value| value.split_once(':'));
        let of = |(index, percent): (&str, &str)| Some((index.parse::<usize>().ok()?, percent.parse::<f64>().ok()?));
        word.and_then(of).filter(|(index, _)| *index == card).map_or(1.0, |(_, percent)| 1.0 + percent / 100.0)
    }

    /// A duration given as a value.
    pub fn duration_s(&self, name: &str) -> Option<f64> {
        seconds(self.value(name)?)
    }
}

impl Word {
    fn has_come(&self, elapsed_s: Option<f64>) -> bool {
        match self.at_s {
            None => true,
            Some(at) => elapsed_s.is_some_and(|e| e >= at),
        }
    }
}

fn word(text: &str) -> Result<Word, String> {
    let wrong = |why: &str| format!("`{text}` in `{VARIABLE}` {why}");
    let (bare, at_s) = match text.split_once('@') {
        None => (text.to_string(), None),
        Some((before, after)) => {
            let (time, value) = after.split_once('=').map_or((after, String::new()), |(t, v)| (t, format!("={v}")));
            (format!("{before}{value}"), Some(seconds(time).ok_or_else(|| wrong("has no time after `@`, as in `@5s`"))?))
        }
    };
    let (name, value) = match bare.split_once('=') {
        Some((name, value)) => (name.to_string(), Some(value.to_string())),
        None => (bare, None),
    };
    let known = WORDS.iter().any(|(w, _)| *w == name);
    let fault = name.starts_with(NVML) && value.as_deref().is_some_and(|v| v.parse::<u32>().is_ok());
    if known || fault { Ok(Word { name, value, at_s }) } else { Err(wrong("is no fault of the simulated GPU")) }
}

/// `5s`, `500ms`, `5`.
pub fn seconds(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    number.trim().parse::<f64>().ok().map(|n| n * scale).filter(|s| s.is_finite() && *s >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_values_and_times_in_either_order() {
        let s = Scenario::parse("h100-80gb,gpus=2,lost@5s,crash=1@500ms,nvml:nvmlDeviceGetPowerUsage@2s=999").unwrap();
        assert_eq!(s.card, "h100-80gb");
        assert_eq!(s.number("gpus"), Some(2.0));
        assert!(!s.is_on("lost", None) && !s.is_on("lost", Some(4.9)) && s.is_on("lost", Some(5.0)));
        assert_eq!((s.value("crash"), s.at_s("crash")), (Some("1"), Some(0.5)));
        assert_eq!(s.nvml_fault("nvmlDeviceGetPowerUsage", || Some(3.0)), Some(999));
        assert_eq!(s.nvml_fault("nvmlDeviceGetPowerUsage", || Some(1.0)), None);
        assert_eq!(s.nvml_fault("nvmlDeviceGetName", || Some(3.0)), None);
    }

    #[test]
    fn a_machine_is_a_card_with_words_and_own_words_have_the_say() {
        let dgx = Scenario::parse("dgx-a100").unwrap();
        assert_eq!((dgx.card.as_str(), dgx.number("gpus"), dgx.value("dcgm")), ("a100-40gb", Some(8.0), Some("3.3")));
        assert!(dgx.has("user") && dgx.has("services"));
        let own = Scenario::parse("dgx-a100,root,gpus=2,dcgm=4.6").unwrap();
        assert_eq!((own.number("gpus"), own.value("dcgm")), (Some(2.0), Some("4.6")));
        assert!(own.has("services") && !own.has("user"));
    }

    #[test]
    fn one_card_of_several_is_slower() {
        let s = Scenario::parse("a100-40gb,gpus=2,slow-card=1:5").unwrap();
        assert_eq!([s.slower(0), s.slower(1)], [1.0, 1.05]);
        assert_eq!(Scenario::parse("a100-40gb").unwrap().slower(0), 1.0);
    }

    #[test]
    fn a_word_that_does_not_exist_is_an_error() {
        assert!(Scenario::parse("a100-40gb,lostt@5s").unwrap_err().contains("lostt"));
        assert!(Scenario::parse("a100-40gb,lost@soon").is_err());
    }

    #[test]
    fn a_word_may_mean_a_workload_by_its_folder_or_its_model() {
        let s = Scenario::parse("a100-40gb,crashes=vgg16@2s,never-fits=language,grows=3,idle-cards").unwrap();
        let who =
            |member, folder: &str, model: &str| Who { member: Some(member), folder: folder.into(), model: Some(model.into()) };
        assert!(s.means("crashes", &who(0, "vision", "vgg16")) && !s.means("crashes", &who(0, "vision", "resnet50")));
        assert!(s.means("never-fits", &who(0, "language", "bert-base")) && !s.means("never-fits", &who(0, "vision", "vgg16")));
        assert!(s.means("grows", &who(3, "vision", "vgg16")) && !s.means("grows", &who(1, "vision", "vgg16")));
        assert!(s.means("idle-cards", &Who::default()) && !s.means("oom", &Who::default()));
    }

    #[test]
    fn a_word_means_the_member_it_names_or_all() {
        let s = Scenario::parse("a100-40gb,wrong-sm,wrong-device=2").unwrap();
        assert!(s.means_member("wrong-sm", Some(0)) && s.means_member("wrong-sm", None));
        assert!(s.means_member("wrong-device", Some(2)) && !s.means_member("wrong-device", Some(1)));
    }
}
