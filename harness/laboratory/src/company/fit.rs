//! A predictor of company made of measured groups. In: groups of one device. Out: the predictor.

use std::collections::BTreeMap;

use collo_predict::{CompanyModes, CompanyPredictor, Mark, MeasuredGroup};
use collo_text::{Diagnostic, Remark};

use super::groups::{Groups, Measured};
use crate::caller::{Caller, Request};

/// The predictor of this name.
pub fn fit(caller: &dyn Caller, asked: &Request<'_>, groups: &Groups, name: String) -> Result<CompanyPredictor, Diagnostic> {
    let of_device = one_of(groups, asked.measured_by)?;
    let measured: Vec<(_, MeasuredGroup)> = of_device.iter().map(|one| (one.mode, one.group.clone())).collect();
    let (modes, unfit) = CompanyModes::fit(&measured);
    for (mode, why) in unfit {
        caller.remark(Remark::Warning(format!("{mode} has no coefficients: {why}")));
    }
    if modes == CompanyModes::default() {
        return Err(Diagnostic::new("no predictor can be fitted on these groups").hint("it takes four groups of a mode"));
    }
    let mut conditions = of_device.first().map(|one| one.conditions.clone()).unwrap_or_default();
    of_device.iter().for_each(|one| conditions.join(&one.conditions));
    let mark = if of_device.iter().all(|one| one.simulated) {
        Mark::Simulated
    } else if of_device.iter().any(|one| one.is_table) {
        Mark::Table
    } else {
        Mark::Own
    };
    Ok(CompanyPredictor::new(modes, name, conditions, source(groups, &of_device), mark))
}

/// One device for one fit.
fn one_of<'g>(groups: &'g Groups, wanted: Option<&str>) -> Result<Vec<&'g Measured>, Diagnostic> {
    let mut devices = groups.devices();
    if let Some(wanted) = wanted {
        devices.retain(|(device, _)| device == wanted);
    }
    match devices.len() {
        1 => Ok(devices.remove(0).1),
        0 => Err(Diagnostic::new("no group was measured there").hint("`collo predict evaluate` prints the devices")),
        _ => {
            let list = devices.iter().map(|(device, _)| format!("`{device}`")).collect::<Vec<_>>().join(", ");
            let wrong = Diagnostic::new(format!("the groups were measured on {list}: a fit mixes no devices"));
            Err(wrong.hint(format!("one predictor for each: `--measured-by \"{}\"` chooses one", devices[0].0)))
        }
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
