//! The names of cells: formatting and parsing.
//!
//! ```text
//! cell    = members " " sharing *( " " setting ) [ " " observer [ ":" rate "Hz" ] ]
//! members = term *( "+" term )                              ; fewest copies first, then by name
//! term    = workload [ ":b" batch ] *( ":" key "=" value ) [ "×" count ]
//! setting = "b" batch / key "=" value                       ; b first, then keys by name
//! ```
//! Settings common to all members come last, differing ones are inside the terms. A setting is included if it differs from its
//! workload's default, or from the recipe that the label names. In a value, characters with a meaning here, and spaces, are
//! written as `%20`.

use std::sync::Arc;

use collo_text::{Diagnostic, Diagnostics, quoted};
use serde_json::Value as Json;

use super::{Cell, MOST_MEMBERS, Member, Term};
use crate::observer::{self, Observe, Observers};
use crate::sharing;
use crate::workload::{Limit, Workload, Workloads, is_fraction, plain};

/// The label of a group under a mode's label.
pub fn of(terms: &[Term], mode: &str) -> String {
    let (members, settings) = parts(terms);
    let alone = terms.len() == 1 && terms[0].count == 1;
    let mode = if alone && mode == "naive" { "solo" } else { mode };
    format!("{members} {mode}{settings}")
}

/// The members, and the settings common to all: the parts before and after the mode.
pub fn parts(terms: &[Term]) -> (String, String) {
    let batch = terms[0].member.batch_size;
    let one_batch = terms.iter().all(|t| t.member.batch_size == batch);
    let shared = |key: &str| {
        let first = terms[0].member.settings.get(key);
        first.is_some() && terms.iter().all(|t| t.member.settings.get(key) == first)
    };
    let (mut label, mut settings) = (String::new(), String::new());
    let mut common: Vec<(&str, &Json)> = Vec::new();
    for (i, Term { member, count }) in terms.iter().enumerate() {
        label.push_str(if i > 0 { "+" } else { "" });
        label.push_str(&member.workload.name);
        if let Some(batch) = member.batch_size.filter(|_| !one_batch) {
            label.push_str(&format!(":b{batch}"));
        }
        for (key, value) in member.settings.iter().filter(|(key, _)| member.differs(key)) {
            if !shared(key) {
                label.push_str(&format!(":{key}={}", written(value)));
            } else if !common.iter().any(|(k, _)| k == key) {
                common.push((key, value));
            }
        }
        if *count > 1 {
            label.push_str(&format!("×{count}"));
        }
    }
    if let Some(batch) = batch.filter(|_| one_batch) {
        settings.push_str(&format!(" b{batch}"));
    }
    common.sort_by_key(|(key, _)| *key);
    for (key, value) in common {
        settings.push_str(&format!(" {key}={}", written(value)));
    }
    (label, settings)
}

/// A value in a label.
fn written(value: &Json) -> String {
    let mut text = String::new();
    for byte in plain(value).bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || b"._-/".contains(&b) => text.push(b as char),
            b => text.push_str(&format!("%{b:02X}")),
        }
    }
    text
}

/// The value of a setting from its text, of the type of its default.
fn read(workload: &Workload, key: &str, text: &str) -> Result<Json, Diagnostic> {
    let default = workload.settings.get(key).ok_or_else(|| workload.unknown_setting(key))?;
    let text = decoded(text).ok_or_else(|| Diagnostic::new(format!("invalid value {} for `{key}`", quoted(text))))?;
    let value = match default {
        Json::Bool(_) => text.parse::<bool>().ok().map(Json::from),
        Json::Number(_) if is_fraction(key, default) => text.parse::<f64>().ok().filter(|n| n.is_finite()).map(Json::from),
        Json::Number(_) => {
            let share = || text.parse::<f64>().ok().map(Json::from).filter(|share| Limit::is_share(key, share));
            text.parse::<i64>().ok().map(Json::from).or_else(share)
        }
        _ => Some(Json::from(text.as_str())),
    };
    value.ok_or_else(|| {
        Diagnostic::new(format!("invalid value {} for `{key}` of `{}`", quoted(&text), workload.name))
            .hint(format!("its default is `{}`", plain(default)))
    })
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(
            u8::from_str_radix(std::str::from_utf8(&digits).ok().filter(|d| d.chars().all(|c| c.is_ascii_hexdigit()))?, 16)
                .ok()?,
        );
    }
    String::from_utf8(bytes).ok()
}

/// A workload's name, its own settings, and its count.
struct TypedTerm<'a> {
    workload: &'a Arc<Workload>,
    settings: Vec<(&'a str, &'a str)>,
    count: u32,
}

/// The cell of a label. A member without a batch size in the label has its workload's default.
pub fn parse(text: &str, workloads: &Workloads, observers: &Observers) -> Result<Cell, Diagnostics> {
    let not_a_cell =
        |why: String| Diagnostic::new(format!("invalid cell name {}: {why}", quoted(text))).hint("as in `tiny×2 naive b32`");
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let observe = match words.last().filter(|word| words.len() > 2 && is_observer(word)) {
        Some(word) => Some(Observe::parse(word, observers)?),
        None => None,
    };
    words.truncate(words.len() - usize::from(observe.is_some()));
    let mut words = words.into_iter();
    let (Some(members), Some(mode)) = (words.next(), words.next()) else {
        return Err(not_a_cell("members first, then a sharing mode".into()).into());
    };
    let mode_of_label = sharing::parse(mode)?;
    let common =
        words.map(setting).collect::<Option<Vec<_>>>().ok_or_else(|| not_a_cell("a setting is `b32` or `key=value`".into()))?;
    let terms: Vec<TypedTerm<'_>> = members
        .split('+')
        .map(|typed| {
            term(typed, workloads)
                .ok_or_else(|| not_a_cell(format!("invalid member {}", quoted(typed))))?
                .map_err(|unknown| Diagnostic::new(unknown).note("all: `collo list workloads`"))
        })
        .collect::<Result<_, Diagnostic>>()?;
    let mut members = Vec::new();
    for term in &terms {
        let given = common.iter().chain(&term.settings);
        let read =
            given.map(|(key, value)| Ok((*key, read(term.workload, key, value)?))).collect::<Result<Vec<_>, Diagnostic>>()?;
        members.push((Arc::new(Member::new(term.workload, read)?), term.count));
    }
    let cell = Cell::new(members, mode_of_label, None);
    if mode == "solo" && cell.degree() > 1 {
        return Err(not_a_cell(format!("`solo` is one member, not {}", cell.degree())).into());
    }
    Ok(cell.observed(observe))
}

/// `top` or `top:10Hz`: a word that is no setting, and has the name of an observer.
fn is_observer(word: &str) -> bool {
    let name = word.split_once(':').map_or(word, |(name, _)| name);
    setting(word).is_none()
        && (observer::is_name(name) || [collo_store::NOBODY_WATCHES, collo_store::COLLO_SAMPLES].contains(&name))
}

/// `b32` or `key=value`.
fn setting(word: &str) -> Option<(&str, &str)> {
    match word.split_once('=') {
        Some((key, value)) => Some((key, value)),
        None => {
            let batch = word.strip_prefix('b').filter(|b| !b.is_empty() && b.bytes().all(|c| c.is_ascii_digit()))?;
            Some(("batch_size", batch))
        }
    }
}

/// A term: `None` if it does not have the form of one, an error if its workload is unknown.
fn term<'a>(typed: &'a str, workloads: &'a Workloads) -> Option<Result<TypedTerm<'a>, String>> {
    // Typed input may say `x` for `×`, as no workload ends in x and digits; a value may.
    let digits = typed.trim_end_matches(|c: char| c.is_ascii_digit());
    let (rest, count) = match digits.strip_suffix('×').or_else(|| digits.strip_suffix('x').filter(|_| !typed.contains('='))) {
        Some(rest) if digits.len() < typed.len() => {
            (rest, typed[digits.len()..].parse().ok().filter(|n| (1..=MOST_MEMBERS as u32).contains(n))?)
        }
        _ => (typed, 1),
    };
    let mut parts = rest.split(':');
    let name = parts.next()?;
    let settings = parts.map(setting).collect::<Option<Vec<_>>>()?;
    Some(match workloads.get(name) {
        Some(workload) => Ok(TypedTerm { workload, settings, count }),
        None => Err(format!("unknown workload {}", quoted(name))),
    })
}
