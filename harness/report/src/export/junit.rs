//! The cells as test cases for a CI system: JUnit's XML. In: an analysis. Out: one test case per cell. A cell fails when a run of it
//! failed or none of its numbers can be used; out of memory, refused and not run are skipped, with the reason; `informative` and what
//! looks odd is said in its output.

use std::fmt::Write;

use collo_store::{Outcome, RefusalRecord};

use super::face;
use crate::analysis::{Analysis, Cell};
use crate::format::words;
use crate::number;

/// How a cell stands.
enum Standing {
    Passed,
    Skipped { why: String },
    Failed { kind: &'static str, why: String, each: Vec<String> },
}

/// The whole file.
pub fn suite(analysis: &Analysis) -> String {
    let c = &analysis.campaign;
    let standings: Vec<Standing> = analysis.cells.iter().map(standing).collect();
    let refusals = &c.plan.refusals;
    let failures = standings.iter().filter(|s| matches!(s, Standing::Failed { .. })).count();
    let skipped = standings.iter().filter(|s| matches!(s, Standing::Skipped { .. })).count() + refusals.len();
    let tests = standings.len() + refusals.len();
    let time_s: f64 = analysis.cells.iter().filter_map(run_time_s).sum();
    let name = attribute(&face::name(analysis));
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{time_s:.3}\"");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"collo\" {counts}>");
    let stamp = attribute(c.created_utc.trim_end_matches('Z'));
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts} timestamp=\"{stamp}\">\n    <properties>");
    for (key, value) in properties(analysis) {
        let _ = writeln!(out, "      <property name=\"{key}\" value=\"{}\"/>", attribute(&value));
    }
    out.push_str("    </properties>\n");
    for (cell, standing) in analysis.cells.iter().zip(&standings) {
        let class = class(analysis, &cell.record.sharing);
        let time = run_time_s(cell).map_or_else(String::new, |s| format!(" time=\"{s:.3}\""));
        let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{}\"{time}", attribute(cell.name()));
        out.push_str(&body(standing, &said(cell)));
    }
    for refusal in refusals {
        let class = class(analysis, &refusal.sharing);
        let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{}\"", attribute(&refusal.cell));
        out.push_str(&body(&Standing::Skipped { why: refused(refusal) }, &[]));
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// `quickstart.naive`, with what the numbers are not.
fn class(analysis: &Analysis, sharing: &str) -> String {
    attribute(&format!("{}.{sharing}", face::name(analysis)))
}

fn properties(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let c = &analysis.campaign;
    let mut found = vec![
        ("campaign", c.id.clone()),
        ("device", c.device.text()),
        ("simulated", c.device.simulated.to_string()),
        ("planned", number::runs(analysis.planned)),
        ("completed", number::runs(analysis.count("completed"))),
    ];
    for (name, list) in
        [("synthetic", &analysis.synthetic), ("shortened", &face::shortened(analysis)), ("informative", &c.informative)]
    {
        if !list.is_empty() {
            found.push((name, list.join("; ")));
        }
    }
    found
}

fn refused(refusal: &RefusalRecord) -> String {
    let hint = refusal.hint.as_ref().map_or_else(String::new, |h| format!("; hint: {h}"));
    format!("refused: {}{hint}", refusal.reason)
}

/// From launch to end over all stored runs of a cell.
fn run_time_s(cell: &Cell) -> Option<f64> {
    let times = cell.repetitions.iter().map(|r| &r.record().timeline);
    let total: f64 = times.map(|t| t.ended_ns.saturating_sub(t.launched_ns) as f64 * 1e-9).sum();
    (!cell.repetitions.is_empty()).then_some(total)
}

fn standing(cell: &Cell) -> Standing {
    let runs = || cell.repetitions.iter().map(|r| (r.record().repetition, &r.record().outcome));
    let told = |(n, outcome): (u32, &Outcome)| format!("repetition {n}: {}", how(outcome));
    if let Some((_, first)) = runs().find(|(_, outcome)| outcome.is_failure()) {
        let each = runs().filter(|(_, outcome)| outcome.is_failure()).map(told).collect();
        return Standing::Failed { kind: first.word(), why: how(first), each };
    }
    if let Some((_, first)) = runs().find(|(_, outcome)| matches!(outcome, Outcome::OutOfMemory { .. })) {
        return Standing::Skipped { why: how(first) };
    }
    let of = |word: &str| cell.outcomes.get(word).copied().unwrap_or(0);
    let left = [(of("interrupted"), "interrupted"), (of("missing"), "not run")];
    let left: Vec<String> = left.iter().filter(|(n, _)| *n > 0).map(|(n, w)| format!("{} {w}", number::runs(*n))).collect();
    if !left.is_empty() {
        return Standing::Skipped { why: format!("incomplete: {}", left.join(", ")) };
    }
    if cell.counted.is_empty() {
        let why = cell.validity.reasons.first().cloned().unwrap_or_else(|| "no usable run".into());
        return Standing::Failed { kind: "void", why: format!("void: {why}"), each: cell.validity.reasons.clone() };
    }
    Standing::Passed
}

/// The outcome with what it was about.
fn how(outcome: &Outcome) -> String {
    let word = outcome.text();
    match outcome {
        Outcome::OutOfMemory { member, message }
        | Outcome::HostOutOfMemory { member, message }
        | Outcome::ProtocolError { member, message } => format!("{word}, member {member}: {message}"),
        Outcome::Crashed { member, status, message, .. } => format!("{word}, member {member} {status}: {message}"),
        Outcome::TimedOut { member, phase, message } => format!("{word} in {phase}, member {member}: {message}"),
        Outcome::ModeLost { reason } | Outcome::NotStaged { reason } | Outcome::DeviceLost { reason } => {
            format!("{word}: {reason}")
        }
        Outcome::Completed | Outcome::Interrupted => word,
    }
}

/// What is worth knowing of a cell: its validity where it is not plain, what looks odd, its numbers.
fn said(cell: &Cell) -> Vec<String> {
    let mut lines = Vec::new();
    if !cell.counted.is_empty() && !cell.validity.reasons.is_empty() {
        lines.push(format!("{}: {}", words::verdict(cell.validity.verdict), cell.validity.reasons.join("; ")));
    }
    lines.extend(cell.suspicious.iter().map(|s| format!("suspicious: {s}")));
    let requests = ["latency_p99_s", "latency_p99_of_solo", "within_slo_ratio", "goodput_per_s"];
    for name in ["epoch_time_s", "makespan_s", "slowdown", "throughput_gain"].into_iter().chain(requests) {
        lines.extend(cell.get(name).map(|q| format!("{name}: {}", number::with_interval(q))));
    }
    lines
}

fn body(standing: &Standing, said: &[String]) -> String {
    let mut out = String::new();
    match standing {
        Standing::Passed if said.is_empty() => return "/>\n".into(),
        Standing::Passed => out.push_str(">\n"),
        Standing::Skipped { why } => {
            let _ = writeln!(out, ">\n      <skipped message=\"{}\"/>", attribute(why));
        }
        Standing::Failed { kind, why, each } => {
            let each = content(&each.join("\n"));
            let _ = writeln!(out, ">\n      <failure type=\"{kind}\" message=\"{}\">{each}</failure>", attribute(why));
        }
    }
    if !said.is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", content(&said.join("\n")));
    }
    out + "    </testcase>\n"
}

/// Text between tags. A character that XML does not have is written by its code point.
fn content(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text of an attribute, whose lines would otherwise be read as spaces.
fn attribute(text: &str) -> String {
    content(text).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_element() {
        assert_eq!(content("a<b> & ]]>"), "a&lt;b&gt; &amp; ]]&gt;");
        assert_eq!(content("\u{1b}[31m\0"), "\\u{1b}[31m\\u{0}");
        assert_eq!(attribute("say \"x\"\nnow"), "say &quot;x&quot;&#10;now");
    }
}
