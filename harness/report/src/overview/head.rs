//! The head of a report: what was measured, on what, and how much of the plan is accounted for.

use collo_analysis::campaign::{Analysis, environment};
use collo_analysis::words;
use collo_figures::document::{Fact, FactLine};
use collo_quantity::number;

use crate::parts::absent::NO_ENDS;

/// What it was measured on: the device, the software that decides its speed, and the settings of the device.
pub fn device(analysis: &Analysis) -> Fact {
    let known = environment::of(analysis);
    let find = |name: &str| known.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str());
    let named = |names: &[&str]| {
        let texts: Vec<String> = names.iter().filter_map(|name| Some(format!("{name} {}", find(name)?))).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let precision = environment::precision(&analysis.cells.iter().collect::<Vec<_>>());
    let settings: Vec<String> = precision.into_iter().chain(named(&["clocks", "power cap"])).collect();
    let lines = [Some(analysis.campaign.device.text()), analysis.campaign.machine.cpu_model.clone()];
    let software = [named(&["driver", "CUDA", "torch"]), Some(settings.join(", ")).filter(|text| !text.is_empty())];
    Fact { name: "Device".into(), lines: lines.into_iter().chain(software).flatten().map(FactLine::Text).collect() }
}

/// The outcomes of the planned runs, and the validity of their cells.
pub fn accounted(analysis: &Analysis) -> Fact {
    if !analysis.has_ends() {
        let name = if analysis.planned == 0 { "runs".to_string() } else { format!("{} planned", analysis.planned) };
        let verdicts = crate::parts::notes::verdicts(analysis).map(|verdicts| FactLine::Link(verdicts, "quality"));
        return Fact { name, lines: [FactLine::Text(NO_ENDS.into())].into_iter().chain(verdicts).collect() };
    }
    let ended: Vec<(&str, usize)> = analysis.accounted.iter().map(|(word, n)| (*word, *n)).filter(|(_, n)| *n > 0).collect();
    let class = |word: &str| match word {
        "completed" => "c",
        "missing" => "r",
        _ => "o",
    };
    let strip: Vec<_> = ended.iter().map(|(word, n)| (class(word), *n)).collect();
    let said: Vec<String> = ended.iter().map(|(word, n)| format!("{n} {}", words::outcome(word))).collect();
    let said = if said.is_empty() { "no run is planned".to_string() } else { said.join(", ") };
    let time = analysis.measured_for_s.filter(|_| analysis.count("completed") > 0);
    let time = time.map_or_else(String::new, |s| format!(" in {}", number::duration(s)));
    let refused = analysis.campaign.plan.refusals.len();
    let beside = if refused == 0 { String::new() } else { format!("; {} refused", number::count(refused, "cell")) };
    Fact {
        name: format!("{} planned, {} accounted for", analysis.planned, analysis.planned - analysis.count("missing")),
        lines: [
            FactLine::Strip(if strip.is_empty() { vec![("r", 1)] } else { strip }, said.clone()),
            FactLine::Text(format!("{said}{time}{beside}")),
        ]
        .into_iter()
        .chain(crate::parts::notes::verdicts(analysis).map(|verdicts| FactLine::Link(verdicts, "quality")))
        .collect(),
    }
}

/// `How to share two cores`.
pub fn title(analysis: &Analysis) -> String {
    let device = &analysis.campaign.device;
    if analysis.groups().next().is_none() && !analysis.watching.is_empty() {
        return format!("What watching costs on the {}", device.name_said());
    }
    match (device.kind.as_str(), device.cores) {
        ("cpu", Some(_)) if device.quota_cores.is_some() => {
            format!("How to share {}", device.cores_text().unwrap_or_default())
        }
        ("cpu", Some(1)) => "How to share one core".into(),
        ("cpu", Some(n)) => format!("How to share {} cores", number::word(n)),
        _ => format!("How to share the {}", device.name_said()),
    }
}
