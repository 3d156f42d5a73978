//! A predictor of company made of measured groups. In: groups of one device. Out: the predictor.

use std::collections::{BTreeMap, BTreeSet};

use collo_predict::{
    CompanyLeftOut, CompanyMode, CompanyModes, CompanyPredictor, FEWEST_GROUPS, ForestFit, MeasuredGroup, ModeFit, Serves,
    SliceFit, Unseen, fit_company, fit_slices, score_company,
};
use collo_predict::{Conditions, Mark, Quantity};
use collo_text::{Diagnostic, Remark};

use super::groups::{Groups, Measured};
use crate::caller::Caller;

/// The predictor of this name. `keeps_rows`: whether a forest may be kept, which is the rows that it grows from.
pub fn fit(
    caller: &dyn Caller,
    groups: &Groups,
    measured_by: Option<&str>,
    keeps_rows: bool,
    name: String,
) -> Result<CompanyPredictor, Diagnostic> {
    let of_device = one_of(groups, measured_by)?;
    let mut modes = CompanyModes::default();
    for mode in CompanyMode::ALL {
        let of_mode: Vec<MeasuredGroup> = of_device.iter().filter(|one| one.mode == mode).map(|one| one.group.clone()).collect();
        if of_mode.is_empty() {
            continue;
        }
        let fitted = match mode {
            CompanyMode::Mig => of_slices(&of_mode).map(|fit| modes.mig = Some(fit)),
            _ => of_whole(caller, &of_mode, keeps_rows).map(|fit| modes.put(mode, fit)),
        };
        if let Err(why) = fitted {
            caller.remark(Remark::Warning(format!("{mode} has no coefficients: {why}")));
        }
    }
    if modes == CompanyModes::default() {
        return Err(Diagnostic::new("no predictor can be fitted on these groups").hint("it takes four groups of a mode"));
    }
    Ok(CompanyPredictor {
        schema: collo_predict::PREDICTOR_SCHEMA,
        name,
        quantity: Quantity::Company.as_str().into(),
        formula: CompanyPredictor::FORMULA.into(),
        modes,
        widening: CompanyPredictor::WIDENING,
        conditions: conditions(&of_device),
        source: source(groups, &of_device),
        mark: if of_device.iter().all(|one| one.simulated) { Mark::Simulated } else { Mark::Own },
    })
}

fn of_whole(caller: &dyn Caller, groups: &[MeasuredGroup], keeps_rows: bool) -> Result<ModeFit, String> {
    let fit = fit_company(groups).map_err(|why| why.to_string())?;
    let strictest = fit.left_out.first().ok_or("no group could be left out")?;
    let left_out = |estimates: &[_]| score_company(estimates).map(|score| CompanyLeftOut::of(strictest.unseen, &score));
    let forest_left_out = strictest.forest.as_deref().and_then(left_out);
    let forest = fit.forest.zip(fit.forest_widths).zip(forest_left_out).filter(|_| keeps_rows);
    let families: BTreeSet<&str> = groups.iter().flat_map(|group| &group.members).map(|m| m.family.as_str()).collect();
    if groups.len() >= FEWEST_GROUPS && !fit.forest_wins {
        caller.remark(Remark::Note("the forest is no nearer to groups left out than the law, which serves".into()));
    }
    Ok(ModeFit {
        serves: if fit.forest_wins && forest.is_some() { Serves::Forest } else { Serves::Law },
        most_members: most_members(groups),
        families: families.len(),
        median_slowdown: fit.median_slowdown,
        law: fit.law,
        law_widths: fit.law_widths,
        law_left_out: left_out(&strictest.law).ok_or("no group could be left out")?,
        forest: forest.map(|((grown_from, widths), left_out)| ForestFit { widths, left_out, grown_from }),
    })
}

fn of_slices(groups: &[MeasuredGroup]) -> Result<SliceFit, String> {
    let (law, estimates, widths) = fit_slices(groups).map_err(|why| why.to_string())?;
    let left_out = score_company(&estimates).map(|score| CompanyLeftOut::of(Unseen::Group, &score));
    Ok(SliceFit { most_members: most_members(groups), law, widths, left_out: left_out.ok_or("no slice is known")? })
}

fn most_members(groups: &[MeasuredGroup]) -> usize {
    groups.iter().map(|group| group.members.len()).max().unwrap_or_default()
}

/// One device for one fit.
fn one_of<'g>(groups: &'g Groups, wanted: Option<&str>) -> Result<Vec<&'g Measured>, Diagnostic> {
    let mut devices = groups.devices();
    if let Some(wanted) = wanted {
        devices.retain(|(device, _)| device == wanted);
    }
    match devices.len() {
        1 => Ok(devices.remove(0).1),
        0 => Err(Diagnostic::new("no group was measured there").hint("`collo predictor evaluate` prints the devices")),
        _ => {
            let list = devices.iter().map(|(device, _)| format!("`{device}`")).collect::<Vec<_>>().join(", ");
            let wrong = Diagnostic::new(format!("the groups were measured on {list}: a fit mixes no devices"));
            Err(wrong.hint(format!("one predictor for each: `--measured-by \"{}\"` chooses one", devices[0].0)))
        }
    }
}

/// What all its groups have in common.
fn conditions(groups: &[&Measured]) -> Conditions {
    let first = groups.first().map(|one| one.conditions.clone()).unwrap_or_default();
    let same = |of: fn(&Conditions) -> &Option<String>| {
        let value = of(&first).clone();
        value.filter(|value| groups.iter().all(|one| of(&one.conditions).as_ref() == Some(value)))
    };
    Conditions {
        device: first.device,
        gpu: same(|c| &c.gpu),
        architecture: same(|c| &c.architecture),
        driver: same(|c| &c.driver),
        torch: same(|c| &c.torch),
        sharing: same(|c| &c.sharing),
        ..Conditions::default()
    }
}

/// Where its groups are from, each source with their number.
fn source(groups: &Groups, of_device: &[&Measured]) -> String {
    let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
    of_device.iter().for_each(|one| *counted.entry(one.source).or_default() += 1);
    let each = groups.sources.iter().enumerate().map(|(place, source)| match counted.get(&place) {
        Some(count) => format!("{source}, {count} groups"),
        None => source.clone(),
    });
    each.collect::<Vec<_>>().join("; ")
}
