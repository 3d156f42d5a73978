//! Where the numbers come from: card, software, machine, data, and the digests of everything they depend on.

use collo_analysis::campaign::{Analysis, environment};
use collo_figures::document::{Block, Section};
use collo_quantity::number;

use crate::parts::figure::measured_by;

pub fn section(analysis: &Analysis, digest: Option<&str>) -> Section {
    let (c, m) = (&analysis.campaign, &analysis.campaign.machine);
    let mut facts: Vec<(String, String)> =
        vec![("campaign".into(), format!("{} of {}, created {}", c.id, c.experiment, c.created_utc))];
    facts.extend(digest.map(|digest| ("campaign.json".into(), digest.into())));
    for comment in &analysis.comments {
        facts.push(("comment".into(), format!("{}: {}", comment.at_utc, comment.text)));
    }
    for origin in &c.origins {
        let blocks = format!("blocks {} to {}", origin.first_block, origin.last_block);
        facts.push(("merged from".into(), format!("{}, {blocks}, created {}", origin.text(), origin.created_utc)));
    }
    let merged = analysis.report.iter().flat_map(|report| &report.merged_from);
    facts.extend(merged.map(|campaign| ("merged from".into(), campaign.clone())));
    facts.extend(measured_by(analysis).map(|program| ("measured by".into(), program.into())));
    for (index, device) in analysis.devices.all().iter().enumerate().filter(|_| !c.is_merged()) {
        let Some(gpu) = &device.gpu else { continue };
        let mut blocks: Vec<u32> = c.plan.order.iter().map(|run| run.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|block| analysis.devices.of(*block) == index);
        let blocks = blocks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        facts.push(("card".into(), format!("{}, {}: blocks {blocks}", device.label, gpu.uuid)));
    }
    if let Some(shard) = c.shard {
        facts.push(("shard".into(), format!("{shard}: the other cells of the experiment are in other campaigns")));
    }
    // The order of the plan stands below; the digest of the files stands for those that are folded.
    let known = environment::of(analysis)
        .into_iter()
        .filter(|(name, _)| analysis.is_reported() || !["run order", "epochs"].contains(&name.as_str()));
    // What stands here is set as it is, without the marks of names.
    facts.extend(known.map(|(name, text)| (environment::word(&name).to_string(), text.replace('`', ""))));
    let mut put =
        |name: &str, value: Option<String>| facts.extend(value.filter(|v| !v.is_empty()).map(|v| (name.to_string(), v)));
    put("precision", environment::precision(&analysis.cells.iter().collect::<Vec<_>>()));
    put("load at the start", m.load_1min.map(|l| format!("{l:.2}")));
    put("not passed on to members", Some(m.withheld.join(", ")));
    put(
        "order",
        (!analysis.is_reported())
            .then(|| format!("shuffled by seed {}, {} per member", c.plan.seed, number::count(c.plan.epochs as usize, "epoch"))),
    );
    if let Some(s) = &c.surroundings {
        put("command", Some(s.command.join(" ")));
        for (name, value) in &s.variables {
            put(name, Some(value.clone()));
        }
    }
    let mut blocks = vec![Block::Facts(facts)];
    let digest = |sha256: &str| sha256.chars().take(12).collect::<String>();
    let digests: Vec<(String, String)> = c.ingredients.iter().map(|(name, i)| (name.clone(), digest(&i.sha256))).collect();
    if !digests.is_empty() {
        let title = format!(
            "{}: SHA-256 of every input, the files of all workloads included",
            collo_quantity::number::count(digests.len(), "digest")
        );
        blocks.push(Block::Folded(title, vec![Block::Facts(digests)]));
    }
    if !c.source_toml.is_empty() {
        blocks.push(Block::Verbatim("the experiment, as read".into(), c.source_toml.clone()));
    }
    blocks.extend(members(analysis).map(|lines| Block::Verbatim("the command lines of the members".into(), lines)));
    for (interpreter, packages) in c.surroundings.iter().flat_map(|s| &s.packages) {
        let lines: Vec<String> = packages.iter().map(|(name, version)| format!("{name}=={version}")).collect();
        blocks.push(Block::Verbatim(format!("the packages of {interpreter}"), lines.join("\n")));
    }
    Section { finding: "What these numbers were measured on, and what they depend on.".into(), blocks, ..Section::default() }
}

/// A command line for each different member, with its cell; `None` for campaigns that recorded none.
fn members(analysis: &Analysis) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in &analysis.cells {
        let Some(run) = cell.repetitions.first() else { continue };
        let mut of_cell: Vec<String> = run.record().members.iter().map(|m| m.command.join(" ")).collect();
        of_cell.dedup();
        lines.extend(of_cell.into_iter().filter(|line| !line.is_empty()).map(|line| format!("{}: {line}", cell.name())));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
