//! Tables of pairs and of profiles, as others publish them. In: times of whole runs, alone and in pairs, or the speeds of both while both run;
//! what each member does alone. Out: groups, with the time taken out in which one of them trained alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use collo_predict::{Alone, CompanyMode, Conditions, MeasuredGroup, MeasuredMember, PairTimes, StandIn, Together};
use collo_store::Sharing;
use collo_text::units::percent;
use collo_text::{Diagnostic, Diagnostics, Source, nearest, quoted};

use super::groups::{AloneProfile, Groups, Measured, STEP_S};
use crate::lines::{self, Row};
use crate::table::{family_of, is_share_for_percent, memory};

const PAIRS: [&str; 10] = ["a", "b", "solo_a_s", "solo_b_s", "pair_a_s", "pair_b_s", "speed_a", "speed_b", "mode", "device"];
/// What a table of whole runs needs, and one of speeds.
const BY_TIMES: [&str; 6] = ["a", "b", "solo_a_s", "solo_b_s", "pair_a_s", "pair_b_s"];
const BY_SPEEDS: [&str; 4] = ["a", "b", "speed_a", "speed_b"];
/// A larger speed is not a share of that alone but percent of it. Speeds below that are too high are left out by [`Together`].
const LEAST_PERCENT: f64 = 10.0;
const PROFILES: [&str; 13] = [
    "key",
    "solo_s",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "dram_active_ratio",
    "gpu_utilisation_percent",
    "memory_mib",
    "memory_bytes",
    "step_s",
    "steps",
    "batch_size",
    "family",
    "device",
];
/// Columns one of which only a table of pairs has.
pub const TELLS_PAIRS: [&str; 2] = ["pair_a_s", TELLS_SPEEDS];
const TELLS_SPEEDS: &str = "speed_a";
/// The column that only a table of profiles has.
pub const TELLS_PROFILES: &str = "key";
/// Of rows that cannot be so many are shown.
const MOST_SHOWN: usize = 5;

pub fn read_profiles(
    source: &Arc<Source>,
    profiles: &mut BTreeMap<String, AloneProfile>,
    groups: &mut Groups,
) -> Result<(), Diagnostics> {
    let mut warnings = Vec::new();
    let mut steps: BTreeMap<&str, usize> = BTreeMap::new();
    let unknown = |text| warnings.push(text);
    lines::read(
        source,
        |head| lines::places_with(source, head, &PROFILES, &["key"], unknown),
        |row| {
            let key = row.get("key");
            if key.is_empty() {
                return Err(row.wrong("key", "the profile has no `key`"));
            }
            let (profile, how) = profile(row)?;
            *steps.entry(how).or_default() += 1;
            match profiles.insert(key.to_string(), profile) {
                Some(_) => Err(row.wrong("key", format!("{} has two profiles", quoted(key)))),
                None => Ok(()),
            }
        },
    )?;
    groups.warnings.append(&mut warnings);
    for (how, count) in steps {
        *groups.steps.entry(how).or_default() += count;
    }
    Ok(())
}

/// A profile, and how the length of its steps is known.
fn profile(row: &Row<'_>) -> Result<(AloneProfile, &'static str), Diagnostic> {
    let compute = share(row, "sm_active_ratio", 1.0)?;
    let busy = share(row, "gpu_utilisation_percent", 100.0)?;
    if let (Some(compute), Some(busy)) = (compute, busy)
        && is_share_for_percent(compute, busy)
    {
        let (given, active) = (quoted(row.get("gpu_utilisation_percent")), percent(compute));
        let what = format!("`gpu_utilisation_percent` is {given}, and SMs were active for {active} of the time");
        return Err(row.wrong("gpu_utilisation_percent", what).hint("write percentages, as in 37 for 37 %"));
    }
    let stand_in = StandIn::of(compute, busy);
    let (Some(compute), Some(busy)) = (compute.or(busy), busy.or(compute)) else {
        let wrong = row.wrong("key", format!("of {} neither SMACT nor GPU utilisation is known", quoted(row.get("key"))));
        return Err(wrong.hint("`sm_active_ratio` is from 0 to 1, `gpu_utilisation_percent` from 0 to 100"));
    };
    let memory_bytes = memory(row)?;
    let (step_s, how) = match (positive(row, "step_s")?, positive(row, "steps")?, positive(row, "solo_s")?) {
        (Some(step_s), _, _) => (Some(step_s), STEP_S),
        (None, Some(steps), Some(solo_s)) => (Some(solo_s / steps), STEP_S),
        (None, _, _) if memory_bytes.is_some() => (None, "from the memory of their processes: no `step_s`, no `steps`"),
        (None, _, _) => (None, "taken as equal: no `step_s`, no `steps`, no memory"),
    };
    let alone = Alone { step_s, compute, busy, stand_in, dram: share(row, "dram_active_ratio", 1.0)?, memory_bytes };
    let (family, _) = family_of(row, row.get("key"));
    Ok((AloneProfile { alone, family, device: given(row, "device") }, how))
}

pub fn read_pairs(
    source: &Arc<Source>,
    place: usize,
    profiles: &BTreeMap<String, AloneProfile>,
    groups: &mut Groups,
) -> Result<(), Diagnostics> {
    let mut warnings = Vec::new();
    let mut impossible = Vec::new();
    let unknown = |text| warnings.push(text);
    let columns = lines::columns(source.text());
    let has = |column: &&str| columns.iter().any(|name| name == column);
    let by_speeds = has(&TELLS_SPEEDS);
    if let Some(time) = BY_TIMES[2..].iter().find(|column| by_speeds && has(column)) {
        let what = Diagnostic::new(format!("{} has the columns `{TELLS_SPEEDS}` and `{time}`", source.name()));
        return Err(what
            .hint("a row has the speeds of both while both run, or the times of whole runs: leave out the others")
            .into());
    }
    lines::read(
        source,
        |head| lines::places_with(source, head, &PAIRS, if by_speeds { &BY_SPEEDS } else { &BY_TIMES }, unknown),
        |row| {
            let members = [found(row, "a", profiles)?, found(row, "b", profiles)?];
            let together = match by_speeds {
                true => Together::of_speeds([speed(row, "speed_a")?, speed(row, "speed_b")?]),
                false => {
                    let solo_s = [seconds(row, "solo_a_s")?, seconds(row, "solo_b_s")?];
                    PairTimes { solo_s, pair_s: [seconds(row, "pair_a_s")?, seconds(row, "pair_b_s")?] }.together()
                }
            };
            let mode = mode(row)?;
            let together = match together {
                Ok(together) => together,
                Err(why) => {
                    impossible.push(format!("{}: {why}", row.place()));
                    return Ok(());
                }
            };
            // From speeds nothing is taken out.
            groups.changes.extend(Some(together.change()).filter(|_| !by_speeds));
            let member = |place: usize| MeasuredMember {
                alone: members[place].alone,
                family: members[place].family.clone(),
                slowdown: together.slowdown[place],
                sm_share: None,
            };
            let mut names = [row.get("a"), row.get("b")];
            names.sort_unstable();
            let device = given(row, "device").or_else(|| members[0].device.clone());
            groups.all.push(Measured {
                group: MeasuredGroup { label: names.join(" + "), members: vec![member(0), member(1)] },
                mode,
                is_table: true,
                simulated: device.as_ref().is_some_and(|name| name.to_lowercase().starts_with("simulated")),
                conditions: Conditions { gpu: device, sharing: Some(mode.to_string()), ..Conditions::default() },
                source: place,
            });
            Ok(())
        },
    )?;
    groups.warnings.append(&mut warnings);
    if !impossible.is_empty() {
        *groups.left_out.entry("has times that cannot be").or_default() += impossible.len();
        groups.warnings.extend(impossible.into_iter().take(MOST_SHOWN));
    }
    Ok(())
}

fn found<'p>(row: &Row<'_>, column: &str, profiles: &'p BTreeMap<String, AloneProfile>) -> Result<&'p AloneProfile, Diagnostic> {
    let key = row.get(column);
    profiles.get(key).ok_or_else(|| {
        let wrong = row.wrong(column, format!("{} has no profile", quoted(key)));
        match nearest(key, profiles.keys().map(String::as_str)) {
            Some(near) => wrong.note(format!("did you mean `{near}`?")),
            None => wrong.hint("every member of a pair is a `key` of the table of profiles"),
        }
    })
}

fn mode(row: &Row<'_>) -> Result<CompanyMode, Diagnostic> {
    match row.get("mode") {
        "" | "unrecorded" | "unknown" => Ok(CompanyMode::Unrecorded),
        label => CompanyMode::of(&Sharing::of_label(label)).filter(|mode| *mode != CompanyMode::Mig).ok_or_else(|| {
            row.wrong("mode", format!("`mode` is {}, not `naive`, `mps` or `unrecorded`", quoted(label)))
                .hint("slices of MIG are measured by campaigns: `collo predict fit --quantity company CAMPAIGN`")
        }),
    }
}

fn given(row: &Row<'_>, column: &str) -> Option<String> {
    Some(row.get(column)).filter(|text| !text.is_empty()).map(String::from)
}

/// The speed while both run ÷ that alone.
fn speed(row: &Row<'_>, column: &str) -> Result<f64, Diagnostic> {
    let speed = positive(row, column)?.ok_or_else(|| row.wrong(column, format!("`{column}` is absent")))?;
    if speed > LEAST_PERCENT {
        let what = format!("`{column}` is {}, not a share of its speed alone", quoted(row.get(column)));
        return Err(row.wrong(column, what).note("write 0.95 for 95 %"));
    }
    Ok(speed)
}

/// A number of seconds above 0; a row without is none.
fn seconds(row: &Row<'_>, column: &str) -> Result<f64, Diagnostic> {
    positive(row, column)?.ok_or_else(|| row.wrong(column, format!("`{column}` is absent")))
}

fn positive(row: &Row<'_>, column: &str) -> Result<Option<f64>, Diagnostic> {
    let text = row.get(column);
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1e15);
    number.map(Some).ok_or_else(|| row.wrong(column, format!("`{column}` is {}, not a number above 0", quoted(text))))
}

/// As a share from 0 to 1.
fn share(row: &Row<'_>, column: &str, whole: f64) -> Result<Option<f64>, Diagnostic> {
    let text = row.get(column);
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=whole).contains(number));
    let wrong = || row.wrong(column, format!("`{column}` is {}, not a number from 0 to {whole}", quoted(text)));
    number.map(|number| Some(number / whole)).ok_or_else(wrong)
}
