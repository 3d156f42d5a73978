//! `collo list gpus` and `collo list layouts`: the GPU models of `mig-profiles/`, and the layouts of each.

use collo_figures::document::Table;
use collo_gpus::Profile;
use collo_gpus::mig::{Cards, GpuModel, Instance};
use serde_json::{Value as Json, json};

use collo_text::Diagnostics;

use crate::answer::{Answer, Answered};
use crate::context::Context;

/// One row per GPU model; with a name, that model and its profiles.
pub fn gpus(context: &Context<'_>, name: Option<&str>) -> Answered {
    let cards = Cards::load(&context.project()?.mig_profiles())?;
    let chosen = chosen(&cards, name)?;
    let list: Vec<Json> = chosen.iter().map(|card| value(card)).collect();
    let one = chosen.first().filter(|card| name.is_some() && card.has_mig());
    let mut answer = Answer::list("gpus", &list, &one.map_or_else(|| overview(&chosen), |card| profiles(card)), None);
    one.iter().for_each(|card| answer.note(format!("next: collo list layouts --gpu {}", card.name)));
    answer.failed(broken(&cards, name));
    Ok(answer)
}

/// One row per layout.
pub fn layouts(context: &Context<'_>, name: Option<&str>) -> Answered {
    let cards = Cards::load(&context.project()?.mig_profiles())?;
    let mut table = Table::new(&["gpu", "layout", "instances at their memory units"], 2).with_prose_last();
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
    let none = match (name, &chosen[..]) {
        (Some(_), [card]) if !card.has_mig() => format!("{} has no MIG, so no layout", card.name),
        (Some(name), _) => format!("no known layout; layouts are lines of `[layouts]` in mig-profiles/{name}.toml"),
        (None, _) => "no known layout; layouts are lines of `[layouts]` in a file of mig-profiles/".into(),
    };
    let mut answer = Answer::list("layouts", &list, &table, Some(none));
    answer.failed(broken(&cards, name));
    Ok(answer)
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

/// The mistakes of files, unless one GPU model is asked for, which is right.
fn broken<'a>(cards: &'a Cards, name: Option<&str>) -> impl Iterator<Item = &'a Diagnostics> {
    let all = name.is_none();
    cards.broken().values().filter(move |_| all)
}

fn overview(cards: &[&GpuModel]) -> Table {
    let heads = ["gpu", "#memory", "#SMs", "#slices", "#layouts", "`mig` profile by number of members"];
    let mut table = Table::new(&heads, 1).with_prose_last();
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
    let mut table = Table::new(&["profile", "#id", "#at most", "#memory", "#SMs", "#units", "can start at"], 1);
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
        "pci_devices": card.pci_devices, "memory_gb": card.memory_gb, "memory_bytes": card.memory_bytes(), "sms": card.sms,
        "peaks": card.peaks, "compute_slices": card.compute_slices, "memory_units": card.memory_units, "profiles": profiles,
        "equal": equal, "layouts": card.layouts.iter().map(|l| &l.name).collect::<Vec<_>>()})
}

fn profile(p: &Profile) -> Json {
    json!({"profile": p.name, "id": p.id, "slices": p.slices, "most": p.most, "memory_gib": p.memory_gib, "sms": p.sms,
        "starts": p.places.as_ref().map(|places| &places.starts), "units": p.units(), "engines": p.engines})
}
