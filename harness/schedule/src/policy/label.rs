//! Labels: `magm:sm=80%,free=5GB` ⇄ a policy.

use std::fmt::Write;

use collo_text::{Diagnostic, Source, nearest, quoted, units};

use super::Policy;
use super::admission::{Admission, Mapping};
use super::orders::{ORDERS, Order};
use crate::WHOLE_PERMILLE;

/// The policy of a label. Two spellings of one policy have one label: `parse(text)?.label()`.
pub fn parse(text: &str) -> Result<Box<dyn Policy>, Diagnostic> {
    mapping(text).map(|mapping| Box::new(mapping) as Box<dyn Policy>)
}

fn mapping(text: &str) -> Result<Mapping, Diagnostic> {
    let source = Source::argument("policy", text);
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some((name.len() + 1, rest))));
    let Some(order) = ORDERS.iter().find(|order| order.name == name) else {
        let note = match nearest(name, ORDERS.iter().map(|order| order.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of {}", listed(ORDERS.iter().map(|order| order.name))),
        };
        return Err(Diagnostic::new(format!("unknown policy {}", quoted(name))).at(&source, 0..name.len()).note(note));
    };
    let mut admission = Admission::default();
    let mut given: Vec<&str> = Vec::new();
    if let Some((mut at, rest)) = rest {
        for (n, part) in rest.split(',').enumerate() {
            let span = at..at + part.len();
            at = span.end + 1;
            let wrong = |what: String, note: String| Err(Diagnostic::new(what).at(&source, span.clone()).note(note));
            if n == 0 && order.numbered {
                let Some(most) = part.parse().ok().filter(|most| *most > 0) else {
                    return wrong(format!("{} is not a number of slots", quoted(part)), format!("write `{name}:3`"));
                };
                admission.most = Some(most);
                continue;
            }
            let Some((parameter, value)) = part.split_once('=') else {
                return wrong(format!("{} has no value", quoted(part)), format!("write {}", example(order)));
            };
            if !order.parameters.contains(&parameter) {
                let note = match nearest(parameter, order.parameters.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if order.parameters.is_empty() => format!("`{name}` takes none"),
                    None => format!("one of {}", listed(order.parameters.iter().copied())),
                };
                return wrong(format!("unknown parameter {} of `{name}`", quoted(parameter)), note);
            }
            if given.contains(&parameter) {
                return wrong(format!("`{parameter}` is given twice"), "leave one out".into());
            }
            given.push(parameter);
            if let Err(help) = admission.take(parameter, value) {
                return wrong(format!("{} is no value of `{parameter}`", quoted(value)), help);
            }
        }
    }
    if order.numbered && admission.most.is_none() {
        let wrong = Diagnostic::new(format!("`{name}` does not say how many")).at(&source, 0..text.len());
        return Err(wrong.note(format!("write `{name}:3`")));
    }
    if order.parameters.contains(&"sum") && admission.sum_permille.is_none() {
        let wrong = Diagnostic::new(format!("`{name}` does not say how much")).at(&source, 0..text.len());
        return Err(wrong.note(format!("write {}", example(order))));
    }
    Ok(Mapping { order, admission, next: 0 })
}

impl Admission {
    fn take(&mut self, parameter: &str, value: &str) -> Result<(), String> {
        let whole = || {
            permille(value).filter(|n| *n <= WHOLE_PERMILLE).ok_or_else(|| "write a share of at most 100 %: `80%`".to_string())
        };
        let size = || units::size_bytes(value).ok_or_else(|| format!("write `5GB`; {}", units::SIZE_HELP));
        match parameter {
            "sm" => self.caps.sm = Some(whole()?),
            "occupancy" => self.caps.occupancy = Some(whole()?),
            "dram" => self.caps.dram = Some(whole()?),
            "free" => self.free_bytes = Some(size()?),
            "margin" => self.margin_bytes = Some(size()?),
            "sum" => self.sum_permille = Some(permille(value).ok_or("write a share, which may exceed 100 %: `100%`")?),
            "most" => self.most = Some(value.parse().ok().filter(|n| *n > 0).ok_or("write a number from 1: `3`")?),
            "profile" => {
                let duration = units::duration(value).filter(|duration| !duration.is_zero());
                let duration = duration.ok_or_else(|| format!("write `60s`; {}", units::DURATION_HELP))?;
                self.profile_ns = Some(u64::try_from(duration.as_nanos()).map_err(|_| "write `60s`")?);
            }
            _ => return Err("there is no such parameter".into()),
        }
        Ok(())
    }
}

/// `80%`, `82.5%`; nothing finer than a per mille.
fn permille(text: &str) -> Option<u32> {
    let permille = units::percent_ratio(text)? * f64::from(WHOLE_PERMILLE);
    let whole = permille.round();
    ((permille - whole).abs() < 1e-6 && whole < 1e6).then_some(whole as u32)
}

fn percent(permille: u32) -> String {
    match permille % 10 {
        0 => format!("{}%", permille / 10),
        tenth => format!("{}.{tenth}%", permille / 10),
    }
}

/// The label of a policy, its parameters in the order of their list.
pub(super) fn text(of: &Mapping) -> String {
    let Mapping { order, admission, .. } = of;
    let mut parts: Vec<String> = Vec::new();
    if order.numbered {
        parts.extend(admission.most.map(|most| most.to_string()));
    }
    for parameter in order.parameters {
        let value = match *parameter {
            "sm" => admission.caps.sm.map(percent),
            "occupancy" => admission.caps.occupancy.map(percent),
            "dram" => admission.caps.dram.map(percent),
            "free" => admission.free_bytes.map(units::size_text),
            "margin" => admission.margin_bytes.map(units::size_text),
            "sum" => admission.sum_permille.map(percent),
            "most" => admission.most.map(|most| most.to_string()),
            "profile" => admission.profile_ns.map(|ns| units::duration_text(std::time::Duration::from_nanos(ns))),
            _ => None,
        };
        parts.extend(value.map(|value| format!("{parameter}={value}")));
    }
    let mut label = order.name.to_string();
    if !parts.is_empty() {
        // Writing to a text cannot fail.
        let _ = write!(label, ":{}", parts.join(","));
    }
    label
}

fn example(order: &Order) -> String {
    match (order.numbered, order.parameters.first()) {
        (true, _) => format!("`{}:3,free=5GB`", order.name),
        (_, Some(&"sum")) => format!("`{}:sum=100%,most=3`", order.name),
        (_, Some(_)) => format!("`{}:sm=80%,free=5GB`", order.name),
        (_, None) => format!("`{}`", order.name),
    }
}

fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    collo_text::fields::listed(&words.collect::<Vec<_>>())
}
