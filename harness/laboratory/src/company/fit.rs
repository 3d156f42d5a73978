//! A predictor of company made of measured groups. In: groups of one device. Out: the predictor.

use std::collections::BTreeMap;

use collo_predict::{CompanyMode, CompanyModes, CompanyPredictor, MeasuredGroup, fit_company, fit_slices};
use collo_predict::{Conditions, Mark, Quantity};
use collo_text::{Diagnostic, Remark};

use super::groups::{Groups, Measured};
use crate::caller::Caller;

/// The predictor of this name.
pub fn fit(
    caller: &dyn Caller,
    groups: &Groups,
    measured_by: Option<&str>,
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
            CompanyMode::Mig => fit_slices(&of_mode).map(|fit| modes.mig = Some(fit.mode)),
            _ => fit_company(&of_mode).map(|fit| modes.put(mode, fit.mode)),
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
