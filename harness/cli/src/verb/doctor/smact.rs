//! Where SM activity comes from: GPM of the driver, or DCGM.

use collo_measure::Driver;

use super::{Check, Mark, patience};

/// What is known of DCGM here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Dcgm {
    None,
    /// The program is there, its host engine does not answer.
    NoEngine,
    Answers {
        version: Option<String>,
    },
}

pub fn check(driver: &Driver) -> Check {
    of(driver.gpus.iter().any(|gpu| gpu.gpm), &dcgm())
}

fn dcgm() -> Dcgm {
    let Some((_, said)) = patience::ask("dcgmi", &["--version"]) else { return Dcgm::None };
    match patience::ask("dcgmi", &["discovery", "-c"]) {
        Some((true, _)) => Dcgm::Answers { version: version(&said) },
        _ => Dcgm::NoEngine,
    }
}

/// The first word that is a version: `4.5.0`.
fn version(said: &str) -> Option<String> {
    let is_one = |word: &&str| word.split('.').count() >= 3 && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    said.split_whitespace().find(is_one).map(str::to_string)
}

fn of(gpm: bool, dcgm: &Dcgm) -> Check {
    const GPM: &str = "gpm of the driver: per GPU and GPU instance, 5 Hz";
    let dcgm_text = |version: &Option<String>| {
        let version = version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
        format!("dcgm{version}, its host engine answers: per GPU and GPU instance, 10 Hz")
    };
    match (gpm, dcgm) {
        (true, Dcgm::Answers { version }) => Check::new(Mark::Good, "smact", format!("{GPM}; {}", dcgm_text(version))),
        (true, _) => Check::new(Mark::Good, "smact", GPM),
        (false, Dcgm::Answers { version }) => {
            Check::new(Mark::Good, "smact", format!("{}; gpm begins with Hopper", dcgm_text(version)))
        }
        (false, Dcgm::NoEngine) => Check::new(Mark::Fixable, "smact", "`dcgmi` is there, and its host engine does not answer")
            .hint("`sudo systemctl start nvidia-dcgm`"),
        (false, Dcgm::None) => {
            Check::new(Mark::Fixable, "smact", "no source: gpm begins with Hopper, and `dcgmi` is not on the PATH")
                .hint("install DCGM, then `sudo systemctl start nvidia-dcgm`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sm_activity_comes_from_the_driver_or_from_dcgm() {
        let text = |gpm, dcgm: Dcgm| of(gpm, &dcgm).text;
        let answers = Dcgm::Answers { version: version("dcgmi  version: 3.3.9\n") };
        assert_eq!(
            text(false, answers.clone()),
            "dcgm 3.3.9, its host engine answers: per GPU and GPU instance, 10 Hz; gpm begins with Hopper"
        );
        assert!(text(true, answers).starts_with("gpm of the driver"));
        assert_eq!(of(false, &Dcgm::NoEngine).hint.as_deref(), Some("`sudo systemctl start nvidia-dcgm`"));
        assert_eq!(of(true, &Dcgm::None).mark, Mark::Good);
        assert_eq!(of(false, &Dcgm::None).mark, Mark::Fixable);
    }
}
