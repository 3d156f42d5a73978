//! `collo mig`: shows and sets a GPU's partition, for administrators. Changes are permanent; nothing is restored.

use collo_device::apply::{self, Applied};
use collo_device::layout::{self, RequestedLayout, WantedPartition};
use collo_device::select_gpu::GpuSelector;
use collo_gpus::partition::Partition;
use collo_launch::interrupted::Noted;
use collo_plan::facts::{Driver, Gpu};
use serde_json::{Value, json};

use collo_text::{Diagnostic, Diagnostics};

use crate::answer::{Answer, Answered};
use crate::args::{self, Format, MigVerb};
use crate::context::Context;
use crate::context::gpus::driver;
use crate::{exit, output, progress};

pub fn run(context: &Context<'_>, a: &args::Mig) -> Answered {
    match &a.what {
        MigVerb::Export { format } => export(context, a, *format),
        MigVerb::Assert { layout } => assert(context, a, layout),
        MigVerb::Apply { layout } => {
            let meant = meant(context, a, layout)?;
            change(context, a, meant, |gpu| has_layout(gpu, layout))
        }
        MigVerb::Clear => {
            let meant = meant(context, a, "off")?;
            change(context, a, meant, |gpu| format!("{} is not partitioned: MIG is off", simply(gpu)))
        }
    }
}

/// The selected GPUs, or all.
fn gpus(a: &args::Mig, driver: Driver) -> Result<Vec<Gpu>, Diagnostics> {
    match a.gpu.as_deref().map(GpuSelector::parse) {
        None => Ok(driver.gpus),
        Some(choice) => Ok(choice.of(&driver)?),
    }
}

/// The GPUs that a layout applies to, with the partition of each.
struct Meant {
    all: Vec<(Gpu, WantedPartition)>,
    /// Whether the machine has others besides: then a layout that names no GPU needs `--gpu`.
    of_several: bool,
}

fn meant(context: &Context<'_>, a: &args::Mig, text: &str) -> Result<Meant, Diagnostics> {
    let layout = RequestedLayout::parse(text, &context.folder()?)?;
    let driver = driver(context, &format!("mig {}", a.what.as_str()))?;
    let of_several = driver.gpus.len() > 1;
    let gpus = gpus(a, driver)?;
    let all = layout.on(&gpus, a.gpu.is_some(), &apply::pci_device)?;
    Ok(Meant { all: all.into_iter().map(|(gpu, wanted)| (gpu.clone(), wanted)).collect(), of_several })
}

fn state(gpu: &Gpu) -> Result<&Partition, Diagnostic> {
    gpu.partition.as_ref().ok_or_else(|| {
        Diagnostic::new(format!("the driver does not report the partition of {}", gpu.label()))
            .of_machine()
            .hint("`nvidia-smi mig -lgi` queries it too")
    })
}

fn index(gpu: &Gpu) -> Option<u32> {
    gpu.at.as_ref().map(|at| at.index)
}

/// `GPU 0`, and whether it is simulated.
fn simply(gpu: &Gpu) -> String {
    if gpu.simulated { format!("simulated {}", gpu.label()) } else { gpu.label() }
}

fn export(context: &Context<'_>, a: &args::Mig, format: Format) -> Answered {
    let gpus = gpus(a, driver(context, "mig export")?)?;
    if gpus.iter().all(|gpu| gpu.card.is_none()) {
        layout::one_of(&gpus)?;
    }
    let mut cards = Vec::new();
    for gpu in gpus.iter().filter(|gpu| gpu.card.is_some()) {
        cards.push((gpu, state(gpu)?));
    }
    let list: Vec<Value> = cards.iter().map(|(gpu, partition)| card_value(gpu, partition)).collect();
    let text = match format {
        Format::Toml => layout::toml_text(cards),
        Format::MigParted => layout::parted_text(cards),
    };
    let mut answer = Answer::of(json!({"gpus": list}));
    answer.lines(text.trim_end());
    Ok(answer)
}

fn card_value(gpu: &Gpu, partition: &Partition) -> Value {
    json!({"gpu": index(gpu), "uuid": gpu.at.as_ref().map(|at| &at.uuid), "model": gpu.card.as_ref().map(|c| &c.name),
        "simulated": gpu.simulated, "mig": partition.mig, "cut": cut_value(partition)})
}

fn cut_value(partition: &Partition) -> Vec<String> {
    partition.instances.iter().map(ToString::to_string).collect()
}

fn assert(context: &Context<'_>, a: &args::Mig, layout: &str) -> Answered {
    let mut all = true;
    let (mut list, mut lines) = (Vec::new(), Vec::new());
    for (gpu, wanted) in meant(context, a, layout)?.all {
        let found = state(&gpu)?;
        let met = wanted.is_met_by(found);
        all &= met;
        if met && wanted.placed && !found.has_places() {
            output::note(format!("the driver reports no places on {} to this user: sizes were compared", gpu.label()));
        }
        list.push(json!({"gpu": index(&gpu), "simulated": gpu.simulated, "is": met, "asked": wanted.partition.to_string(),
            "found": found.to_string(), "cut": cut_value(found)}));
        lines.push(if met { has_layout(&gpu, layout) } else { differs(&gpu, layout, &wanted, found) });
    }
    let mut answer = Answer::of(json!({"gpus": list}));
    lines.into_iter().for_each(|line| answer.lines(line));
    if !all {
        let gpu = a.gpu.as_ref().map(|gpu| format!(" --gpu {gpu}")).unwrap_or_default();
        answer.hint(format!("collo mig apply {layout}{gpu}"));
        answer.code = exit::FAILED;
    }
    Ok(answer)
}

/// `GPU 0 does not have layout `sevenths`: asked 7×1g.5gb, found 3g.20gb + 2g.10gb + 2×1g.5gb`
fn differs(gpu: &Gpu, layout: &str, wanted: &WantedPartition, found: &Partition) -> String {
    let label = simply(gpu);
    // The same instances in other places read alike without their places.
    let (asked, found) = match wanted.partition.to_string() == found.to_string() {
        true => (places(&wanted.partition), places(found)),
        false => (wanted.partition.to_string(), found.to_string()),
    };
    format!("{label} does not have layout `{layout}`: asked {asked}, found {found}")
}

fn places(partition: &Partition) -> String {
    cut_value(partition).join(" + ")
}

fn has_layout(gpu: &Gpu, layout: &str) -> String {
    format!("{} has layout `{layout}`", simply(gpu))
}

fn change(context: &Context<'_>, a: &args::Mig, meant: Meant, is: impl Fn(&Gpu) -> String) -> Answered {
    let mut list = Vec::new();
    // A change that was begun is finished, and services run again.
    let noted = Noted::begin();
    for (gpu, wanted) in &meant.all {
        noted.go_on().map_err(|stopped| stopped.error(format!("stopped before {}: it was not changed", gpu.label())))?;
        let applied = apply::apply(gpu, wanted, a.services.into())?;
        if let Some(restored) = &applied.restored {
            output::note(format!("{} was left staged and is restored first: {}", gpu.label(), progress::put_back(restored)));
        }
        if context.arguments.json {
            list.push(json!({"gpu": index(gpu), "simulated": gpu.simulated, "changed": applied.before != applied.now,
                "before": applied.before.to_string(), "now": applied.now.to_string(), "cut": cut_value(&applied.now)}));
            continue;
        }
        lines(&applied).iter().for_each(output::result);
        output::result(last(&is(gpu), &applied));
        if applied.before != applied.now {
            let before = layout::cut_text(&applied.before);
            let gpu = index(gpu).filter(|_| meant.of_several).map(|index| format!(" --gpu {index}")).unwrap_or_default();
            output::note(format!("back: collo mig apply {before}{gpu}"));
        }
    }
    Ok(Answer::of(json!({"gpus": list})))
}

/// The actions taken, a line each.
fn lines(applied: &Applied) -> Vec<String> {
    let (before, now) = (&applied.before, &applied.now);
    let mut all = Vec::new();
    let mut add = |what: &str, text: String| all.push(format!("  ✓ {what:<9}  {text}"));
    let gone = |a: &Partition, b: &Partition| {
        let gone = a.instances.iter().filter(|s| !b.instances.contains(s)).cloned().collect::<Vec<_>>();
        Some(Partition::on(gone)).filter(|p| !p.instances.is_empty())
    };
    if let Some(destroyed) = gone(before, now) {
        add("destroyed", destroyed.to_string());
    }
    if before.mig != now.mig {
        add("MIG mode", if now.mig { "off → on".into() } else { "on → off".into() });
    }
    if let Some(created) = gone(now, before) {
        let one_each = created.instances.iter().all(|s| s.is_whole());
        add("created", format!("{created}{}", if one_each { ", one compute instance each" } else { "" }));
    }
    all
}

/// `GPU 0 is cut as `sevenths` (1.3 s)`
fn last(is: &str, applied: &Applied) -> String {
    match applied.before == applied.now {
        true => format!("{is} already; nothing was changed"),
        false => format!("{is} ({:.1} s)", applied.took.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use collo_gpus::partition::Slice;

    use super::*;

    fn slice(profile: &str, start: u32, slices: u32) -> Slice {
        Slice { profile: profile.into(), start: Some(start), compute: vec![slices] }
    }

    fn balanced() -> Partition {
        Partition::on(vec![slice("2g.10gb", 0, 2), slice("1g.5gb", 2, 1), slice("1g.5gb", 3, 1), slice("3g.20gb", 4, 3)])
    }

    fn applied(before: Partition, now: Partition) -> String {
        let applied = Applied { restored: None, before, now, took: Duration::from_millis(1312) };
        let mut all = lines(&applied);
        all.push(last("GPU 0 is cut as `sevenths`", &applied));
        all.join("\n")
    }

    #[test]
    fn what_was_done_to_a_card_is_said_a_line_each() {
        let sevenths = Partition::on((0..7).map(|n| slice("1g.5gb", n, 1)).collect());
        insta::assert_snapshot!(applied(balanced(), sevenths.clone()), @"
          ✓ destroyed  3g.20gb + 2g.10gb
          ✓ created    5×1g.5gb, one compute instance each
        GPU 0 is cut as `sevenths` (1.3 s)
        ");
        insta::assert_snapshot!(applied(Partition::off(), sevenths.clone()), @"
          ✓ MIG mode   off → on
          ✓ created    7×1g.5gb, one compute instance each
        GPU 0 is cut as `sevenths` (1.3 s)
        ");
        insta::assert_snapshot!(applied(sevenths.clone(), sevenths), @"GPU 0 is cut as `sevenths` already; nothing was changed");
    }
}
