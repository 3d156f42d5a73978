//! `collo list gpus` and `collo list layouts`: the GPU models of `mig-profiles/`, and the layouts of each.

use collo_figures::document::{Align, Table};
use collo_gpus::mig::{Cards, GpuModel, Instance};
use collo_gpus::{Engines, Peaks, Profile};
use serde_json::{Value as Json, json};

use collo_text::Diagnostics;

use crate::context::{Context, Ended};
use crate::exit;
use crate::output;

/// One row per GPU model; with a name, that model and its profiles.
pub fn gpus(context: &Context<'_>, name: Option<&str>) -> Ended {
    let cards = Cards::load(&context.project()?.mig_profiles())?;
    let chosen = chosen(&cards, name)?;
    if context.arguments.json {
        let list: Vec<Json> = chosen.iter().map(|card| value(card)).collect();
        output::json(&json!({"schema": 1, "gpus": list}));
    } else if let (Some(_), [card]) = (name, &chosen[..])
        && card.has_mig()
    {
        output::result(profiles(card).render(output::width()).trim_end());
        output::note(format!("next: collo list layouts --gpu {}", card.name));
    } else {
        output::result(overview(&chosen).render(output::width()).trim_end());
    }
    say_broken(&cards, name);
    Ok(exit::DONE)
}

/// One row per layout.
pub fn layouts(context: &Context<'_>, name: Option<&str>) -> Ended {
    let cards = Cards::load(&context.project()?.mig_profiles())?;
    let columns = [("gpu", Align::Left), ("layout", Align::Left), ("instances at their memory units", Align::Left)];
    let mut table = Table::new(&columns, 2).with_prose_last();
    let mut list = Vec::new();
    let chosen = chosen(&cards, name)?;
    for card in &chosen {
        for layout in &card.layouts {
            table.values([card.name.clone(), layout.name.clone(), places(&layout.instances)].map(Some));
            let instances: Vec<Json> =
                layout.instances.iter().map(|i| json!({"profile": i.profile.name, "start": i.start})).collect();
            list.push(json!({"gpu": card.name, "layout": layout.name, "instances": instances}));
        }
    }
    if context.arguments.json {
        output::json(&json!({"schema": 1, "layouts": list}));
    } else if let (true, Some(_), [card]) = (list.is_empty(), name, &chosen[..])
        && !card.has_mig()
    {
        output::note(format!("{} has no MIG, so no layout", card.name));
    } else if list.is_empty() {
        let file = name.map_or("a file of mig-profiles/".to_string(), |name| format!("mig-profiles/{name}.toml"));
        output::note(format!("no known layout; layouts are lines of `[layouts]` in {file}"));
    } else {
        output::result(table.render(output::width()).trim_end());
    }
    say_broken(&cards, name);
    Ok(exit::DONE)
}

/// `2g.10gb@0  1g.5gb@2,3  3g.20gb@4`
fn places(instances: &[Instance]) -> String {
    let of_one_profile = instances.chunk_by(|a, b| a.profile.name == b.profile.name);
    let texts = of_one_profile.map(|some| {
        let starts: Vec<String> = some.iter().map(|i| i.start.to_string()).collect();
        format!("{}@{}", some[0].profile.name, starts.join(","))
    });
    texts.collect::<Vec<_>>().join("  ")
}

fn chosen<'a>(cards: &'a Cards, name: Option<&str>) -> Result<Vec<&'a GpuModel>, Diagnostics> {
    Ok(match name {
        Some(name) => vec![cards.find(name)?],
        None => cards.iter().collect(),
    })
}

fn say_broken(cards: &Cards, name: Option<&str>) {
    // Who asks for one card that is right need not hear of the others.
    for mistakes in cards.broken().values().filter(|_| name.is_none()) {
        output::failure(mistakes);
    }
}

fn overview(cards: &[&GpuModel]) -> Table {
    let columns = [
        ("gpu", Align::Left),
        ("memory", Align::Right),
        ("SMs", Align::Right),
        ("slices", Align::Right),
        ("layouts", Align::Right),
        ("`mig` profile by number of members", Align::Left),
    ];
    let mut table = Table::new(&columns, 1).with_prose_last();
    for card in cards {
        let memory = card.memory_gb.map(|gb| format!("{gb} GB"));
        let equal = equal(card).into_iter().map(|(from, to, profile)| match from == to {
            true => format!("{from}: {profile}"),
            false => format!("{from}–{to}: {profile}"),
        });
        let equal = match card.has_mig() {
            true => Some(equal.collect::<Vec<_>>().join("  ")).filter(|text| !text.is_empty()),
            false => Some("no MIG".into()),
        };
        let slices = card.compute_slices.map(|n| n.to_string());
        table.values([
            Some(card.name.clone()),
            memory,
            card.sms.map(|n| n.to_string()),
            slices,
            Some(card.layouts.len().to_string()).filter(|_| card.has_mig()),
            equal,
        ]);
    }
    table
}

fn profiles(card: &GpuModel) -> Table {
    let columns = [
        ("profile", Align::Left),
        ("id", Align::Right),
        ("at most", Align::Right),
        ("memory", Align::Right),
        ("SMs", Align::Right),
        ("units", Align::Right),
        ("can start at", Align::Left),
    ];
    let mut table = Table::new(&columns, 1);
    for p in &card.profiles {
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let starts = p.places.as_ref().map(|places| listed(&places.starts));
        let memory = p.memory_gib.map(|gib| format!("{gib:.2} GiB"));
        let units = number(p.places.as_ref().map(|places| places.units));
        table.values([Some(p.name.clone()), number(p.id), number(p.most), memory, number(p.sms), units, starts]);
    }
    table
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The largest equal instance for each number of members, merged into ranges: 4 to 7, `1g.5gb`.
fn equal(card: &GpuModel) -> Vec<(u32, u32, &str)> {
    let mut rows: Vec<(u32, u32, &str)> = Vec::new();
    for members in 1..=card.compute_slices.unwrap_or(0) {
        let Some(profile) = card.equal(members) else { continue };
        match rows.last_mut() {
            Some((_, to, before)) if *before == profile.name => *to = members,
            _ => rows.push((members, members, &profile.name)),
        }
    }
    rows
}

fn value(card: &GpuModel) -> Json {
    let profiles: Vec<Json> = card.profiles.iter().map(|p| profile(p)).collect();
    let equal: Vec<Json> =
        equal(card).into_iter().map(|(from, to, profile)| json!({"from": from, "to": to, "profile": profile})).collect();
    json!({"gpu": card.name, "description": card.description, "product_names": card.product_names,
        "pci_devices": card.pci_devices, "memory_gb": card.memory_gb, "memory_bytes": card.memory_bytes(), "sms": card.sms, "peaks": card.peaks.iter().map(peaks).collect::<Vec<_>>(),
        "compute_slices": card.compute_slices, "memory_units": card.memory_units, "profiles": profiles, "equal": equal,
        "layouts": card.layouts.iter().map(|l| &l.name).collect::<Vec<_>>()})
}

fn peaks(p: &Peaks) -> Json {
    json!({"product_names": p.product_names, "memory_gb_per_s": p.memory_gb_per_s, "l2_mib": p.l2_mib,
        "fp32_tflops": p.fp32_tflops, "tf32_tflops": p.tf32_tflops, "half_tflops": p.half_tflops})
}

fn profile(p: &Profile) -> Json {
    let Engines { copy, decode, encode, jpeg, ofa } = &p.engines;
    json!({"profile": p.name, "id": p.id, "slices": p.slices, "most": p.most, "memory_gib": p.memory_gib, "sms": p.sms,
        "starts": p.places.as_ref().map(|places| &places.starts), "units": p.places.as_ref().map(|places| places.units),
        "engines": {"copy": copy, "decode": decode, "encode": encode, "jpeg": jpeg, "ofa": ofa}})
}
