//! Where SM activity comes from: GPM of the driver, or DCGM. Judged by values received, not by programs installed.

use collo_plan::facts::Driver;

use crate::check::{Check, Mark};
use crate::gpu::none_responds;
use crate::{matrix, timeout};

const ACTIVITY: &str = "sm_active_ratio";
const GPM: &str = "gpm";
const DCGM: &str = "dcgm";

/// The sources' results for one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SmactSources {
    name: String,
    /// Sources that gave numbers.
    tell: Vec<String>,
    /// DCGM repeated one number.
    is_still: bool,
    /// Why the others gave none, by source.
    silent: Vec<(String, String)>,
}

impl SmactSources {
    fn why(&self, source: &str) -> Option<&str> {
        self.silent.iter().find(|(s, _)| s == source).map(|(_, why)| why.as_str())
    }
}

/// From what was just read of each GPU.
pub fn check(driver: &Driver, rows: &[matrix::Row]) -> Check {
    let card = |gpu: &collo_plan::facts::Gpu| {
        let scope = format!("gpu:{}", gpu.at.as_ref()?.uuid);
        let of_it = || rows.iter().filter(|r| r.scope == scope && r.metric == ACTIVITY);
        let silent = of_it().filter(|r| r.rate_hz.is_none());
        Some(SmactSources {
            name: gpu.label(),
            tell: of_it().filter(|r| r.rate_hz.is_some()).map(|r| r.source.clone()).collect(),
            is_still: of_it().any(|r| r.source == DCGM && r.rate_hz.is_some() && r.moved_every_ns.is_none()),
            silent: silent.map(|r| (r.source.clone(), r.reason.clone().unwrap_or_default())).collect(),
        })
    };
    let cards: Vec<SmactSources> = driver.gpus.iter().filter(|g| g.computes()).filter_map(card).collect();
    let version = cards.iter().any(|c| c.tell.iter().any(|s| s == DCGM)).then(version).flatten();
    let of_activity = |row: &&matrix::Row| row.metric == ACTIVITY;
    let (of_gpus, of_instances): (Vec<_>, Vec<_>) = rows.iter().filter(of_activity).partition(|r| r.scope.starts_with("gpu:"));
    let rates = Rates { gpus: matrix::slowest(of_gpus.into_iter()), instances: matrix::slowest(of_instances.into_iter()) };
    if cards.is_empty() {
        return Check::new(Mark::Absent, "smact", none_responds(driver).unwrap_or("no GPU here computes"));
    }
    of(&cards, &rates, version.as_deref(), is_installed, profiling_module)
}

fn is_installed() -> bool {
    timeout::ask("dcgmi", &["--version"]).is_some()
}

/// Of the program, as it reports.
fn version() -> Option<String> {
    let (_, said) = timeout::ask("dcgmi", &["--version"])?;
    let is_one = |word: &&str| word.split('.').count() >= 3 && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    said.split_whitespace().find(is_one).map(str::to_string)
}

/// The state of DCGM's profiling module, from `dcgmi modules -l`: `| 8         | Profiling          | Failed to load   |`.
fn profiling_module() -> Option<String> {
    let (_, said) = timeout::ask("dcgmi", &["modules", "-l"])?;
    state(&said)
}

fn state(table: &str) -> Option<String> {
    let mut rows = table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    rows.find(|row| row.get(2) == Some(&"Profiling")).and_then(|row| row.get(3).map(|state| state.to_lowercase()))
}

/// The slowest measured rate of each source, over all GPUs and all instances.
#[derive(Debug, Default)]
struct Rates<'a> {
    gpus: Vec<(&'a str, f64)>,
    instances: Vec<(&'a str, f64)>,
}

impl Rates<'_> {
    /// `7.5 Hz per GPU, 7.4 Hz per GPU instance`
    fn text(&self, source: &str) -> String {
        let part = |rates: &[(&str, f64)], of: &str| {
            let (_, hz) = rates.iter().find(|(known, _)| *known == source)?;
            Some(format!("{hz:.1} Hz per {of}"))
        };
        let parts = [part(&self.gpus, "GPU"), part(&self.instances, "GPU instance")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn of(
    cards: &[SmactSources],
    rates: &Rates<'_>,
    version: Option<&str>,
    installed: impl Fn() -> bool,
    profiling: impl Fn() -> Option<String>,
) -> Check {
    let Some(silent) = cards.iter().find(|c| c.tell.is_empty()) else {
        return Check::new(Mark::Good, "smact", cards.first().map(|first| told(first, rates, version)).unwrap_or_default());
    };
    let (gpm, dcgm) = (silent.why(GPM).unwrap_or("not asked"), silent.why(DCGM).unwrap_or("not asked"));
    // Where some cards are told, the one that is not is named.
    let whose = if cards.iter().any(|c| !c.tell.is_empty()) { format!(" of {}", silent.name) } else { String::new() };
    let check = Check::new(Mark::Fixable, "smact", format!("no source reports it{whose}: gpm: {gpm}; dcgm: {dcgm}"));
    if !installed() {
        return check.hint("install DCGM, then `sudo systemctl start nvidia-dcgm`");
    }
    // The host engine's client says so itself.
    if dcgm.contains("connection") || dcgm.contains("connect to") {
        return check.hint("`sudo systemctl start nvidia-dcgm`");
    }
    match profiling().filter(|state| dcgm.contains("not currently loaded") || state != "loaded") {
        Some(state) => check.hint(format!(
            "`dcgmi modules -l` shows its module `Profiling` as: {state}; DCGM 4 has it in the package \
             `datacenter-gpu-manager-4-proprietary`, and `sudo systemctl restart nvidia-dcgm` loads it"
        )),
        None => {
            check.hint("`dcgmi dmon -e 1002 -c 3` shows the same; the host engine's log, /var/log/nv-hostengine.log, shows more")
        }
    }
}

/// `gpm of the driver: 5.0 Hz per GPU; dcgm 4.6.0: 7.5 Hz per GPU, 7.4 Hz per GPU instance`
fn told(card: &SmactSources, rates: &Rates<'_>, version: Option<&str>) -> String {
    let version = version.map(|v| format!(" {v}")).unwrap_or_default();
    let text = |source: &String| match source.as_str() {
        GPM => format!("gpm of the driver: {}", rates.text(GPM)),
        _ => format!("dcgm{version}: {}", rates.text(DCGM)),
    };
    let mut said: Vec<String> = [GPM, DCGM].iter().filter_map(|s| card.tell.iter().find(|t| t == s)).map(text).collect();
    if !card.tell.iter().any(|s| s == GPM) {
        said.extend(
            card.why(GPM).map(|why| format!("gpm: {why}; before Hopper no other process on this machine can profile meanwhile")),
        );
    }
    // Until 4.4.1 a field without a sample is printed as 0 (`GetLatestSample` gives 0 with a status that `dmon` does not look at).
    if card.is_still && !card.tell.iter().any(|s| s == GPM) {
        said.push(
            "the number is constant: the GPU is idle, or DCGM writes 0 for missing values; `collo doctor --deep` decides".into(),
        );
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(tell: &[&str], silent: &[(&str, &str)]) -> SmactSources {
        let silent = silent.iter().map(|(s, why)| (s.to_string(), why.to_string())).collect();
        SmactSources { name: "GPU 3".into(), tell: tell.iter().map(|s| s.to_string()).collect(), is_still: false, silent }
    }

    const HOPPER: (&str, &str) = (GPM, "GPM requires Hopper");

    #[test]
    fn it_is_good_only_where_numbers_came_of_every_card() {
        let ampere = card(&[DCGM], &[HOPPER]);
        let rates = Rates { gpus: vec![(DCGM, 7.46)], instances: vec![(DCGM, 9.0)] };
        let of = |cards: &[SmactSources], version| of(cards, &rates, version, || true, || None);
        let good = of(std::slice::from_ref(&ampere), Some("3.3.9"));
        assert_eq!(good.mark, Mark::Good);
        assert!(good.text.starts_with("dcgm 3.3.9: 7.5 Hz per GPU, 9.0 Hz per GPU instance; gpm: GPM requires"), "{}", good.text);
        assert!(of(&[card(&[GPM, DCGM], &[])], None).text.starts_with("gpm of the driver"));
        let silent = card(&[], &[HOPPER, (DCGM, "dcgmi prints no row")]);
        let some = of(&[ampere, silent], None);
        assert_eq!((some.mark, some.text.contains("of GPU 3")), (Mark::Fixable, true), "{}", some.text);
    }

    #[test]
    fn the_hint_is_about_what_is_missing() {
        let said = |why: &str, installed: bool, state: Option<&str>| {
            let card = card(&[], &[HOPPER, (DCGM, why)]);
            of(&[card], &Rates::default(), None, || installed, || state.map(str::to_string)).hint.unwrap()
        };
        let hint = |why: &str, state: Option<&str>| said(why, true, state);
        assert!(said("no `dcgmi` on the PATH", false, None).starts_with("install DCGM"));
        assert_eq!(hint("Unable to connect to host engine", None), "`sudo systemctl start nvidia-dcgm`");
        let missing = hint("This request is serviced by a module of DCGM that is not currently loaded", Some("failed to load"));
        assert!(missing.contains("Profiling") && missing.contains("failed to load"), "{missing}");
        assert!(hint("dcgmi prints no value", Some("loaded")).contains("dcgmi dmon"));
    }

    #[test]
    fn the_state_of_a_module_stands_in_its_row() {
        let table = "| Module ID | Name               | State          |\n| 8         | Profiling          | Failed to load |\n";
        assert_eq!(state(table).as_deref(), Some("failed to load"));
        assert_eq!(state("| 0         | Core               | Loaded         |"), None);
    }
}
