//! Where the numbers come from: machine, ingredients, plan, experiment.

use crate::analysis::Analysis;
use crate::document::{Block, Section};

pub fn section(analysis: &Analysis) -> Section {
    let (c, m) = (&analysis.campaign, &analysis.campaign.machine);
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: Option<String>| {
        facts.push((name.to_string(), value.unwrap_or_else(|| "unknown".into())));
    };
    put("campaign", Some(format!("{} of {}, created {}", c.id, c.experiment, c.created_utc)));
    put("device", Some(c.device.text()));
    put("cpu", m.cpu_model.clone().map(|n| format!("{n}, {} logical cores", m.cpu_cores)));
    put("memory", Some(crate::number::gib(m.memory_bytes as f64)));
    put(
        "os, kernel",
        match (&m.os, &m.kernel) {
            (Some(o), Some(k)) => Some(format!("{o}, {k}")),
            (o, k) => o.clone().or_else(|| k.clone()),
        },
    );
    put("virtualization", m.virtualization.clone());
    put("cpu governor", m.governor.clone());
    put("load at the start", m.load_1min.map(|l| format!("{l:.2}")));
    put("git", m.git.clone());
    put("collo", Some(format!("{}, {} build", m.collo, m.build)));
    for (name, version) in &m.python {
        put(name, Some(version.clone()));
    }
    put("not passed on to members", Some(m.withheld.join(", ")).filter(|names| !names.is_empty()));
    put("order", Some(format!("shuffled by seed {}, {} epochs per member", c.plan.seed, c.plan.epochs)));
    for (name, i) in &c.ingredients {
        let digest: String = i.sha256.chars().take(12).collect();
        put(name, Some(i.version.as_ref().map_or_else(|| digest.clone(), |v| format!("{digest} ({v})"))));
    }
    Section {
        id: "provenance",
        title: "Provenance",
        chip: None,
        finding: "What these numbers were measured on, and what they depend on.".into(),
        blocks: vec![Block::Facts(facts), Block::Verbatim("the experiment, as read".into(), c.source_toml.clone())],
    }
}
