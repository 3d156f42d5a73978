//! Progress of a campaign on stderr: redrawn in place in a terminal, plain lines elsewhere.

pub mod eta;
mod lines;
mod live;
mod python;
mod rows;
pub mod words;

use std::io::IsTerminal;

use collo_device::lease::Restored;
use collo_device::services;
use collo_measure::campaign::{CARDS, own_gpus};
use collo_measure::events::Event;
use collo_plan::experiment::ChangedKey;
use collo_quantity::number;
use collo_text::diagnostic::{Label, Line};
use collo_text::units::about;

pub use lines::tell;

/// A display of a campaign.
pub trait Display {
    /// Show an event.
    fn show(&mut self, event: Event<'_>);
    /// Leave the screen in its final state.
    fn end(&mut self);
}

/// The display suited to stderr.
pub fn display(quiet: bool) -> Box<dyn Display + Send> {
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb");
    if quiet {
        Box::new(lines::Silent)
    } else if std::io::stderr().is_terminal() && !dumb {
        Box::new(live::Live::new())
    } else {
        Box::new(lines::Lines::default())
    }
}

/// Messages about the campaign as a whole, a line each.
fn notice(event: &Event<'_>) -> Vec<Line> {
    let plain = |text: String| vec![Line::plain(text)];
    match event {
        Event::NotContinued { campaign, changes, keys, may_be_forced } => {
            let m = campaign.manifest();
            let last = m.short_id();
            let mut lines = vec![Line::of(Label::Warning, format!("{} is not continued, its ingredients changed", m.id))];
            lines.extend(changes.iter().map(|c| Line::plain(format!("  {}   {} → {}", c.name, c.before, c.after))));
            lines.extend(keys.iter().map(|key| Line::plain(changed_key(key))));
            let way = match changes.iter().any(|change| change.name == CARDS) {
                // Its runs are divided among its cards, which no other can take over.
                true => Some(format!("  it continues only on {}; there: collo run {last}", own_gpus(m))),
                false => may_be_forced.then(|| format!("  to continue anyway, marked indicative: collo run {last} --force")),
            };
            lines.extend(way.map(Line::plain));
            lines
        }
        Event::Partials { count, .. } => {
            let (runs, again) =
                if *count == 1 { ("1 run was".into(), "begins") } else { (format!("{count} runs were"), "begin") };
            plain(format!("{runs} cut off when an earlier collo ended, and {again} again"))
        }
        Event::NothingMatches { member, shortfall, .. } => {
            let what = format!("member {member} has printed no line that ends an epoch yet: {}", shortfall.message);
            let newest = shortfall.newest.iter().map(|line| Line::plain(format!("  │ {line}")));
            [Line::of(Label::Warning, what)].into_iter().chain(newest).collect()
        }
        Event::Wrote { files } => {
            const SHOWN: usize = 5;
            let written = |name: &String| Line::plain(format!("`{name}` was written while it ran: not an ingredient"));
            let mut lines: Vec<Line> = files.iter().take(SHOWN).map(written).collect();
            let more = files.len().saturating_sub(SHOWN);
            lines.extend((more > 0).then(|| Line::plain(format!("and {more} more were"))));
            lines
        }
        Event::Retries { run, .. } => {
            let attempt = run.record.failed_attempts.len() + 2;
            plain(format!("retry   {}: attempt {attempt}; the failed one is kept", words::name(run)))
        }
        Event::Beside { other } => {
            let what = format!("another collo measures this CPU now: {other}");
            vec![
                Line::of(Label::Warning, what),
                Line::of(Label::Hint, "the two campaigns disturb each other; run one after the other"),
            ]
        }
        Event::Waits { other, at_most } => {
            plain(format!("waiting for another collo to end, {} at most: {other}", about(at_most.as_secs_f64())))
        }
        Event::FindsIdle { card, now_c, at_most } => {
            let (card, most) = (card.unwrap_or("the GPU"), about(at_most.as_secs_f64()));
            plain(format!("cooling {card} is at {now_c} °C; its idle temperature is awaited, for {most} at most"))
        }
        Event::Cools { card, from_c, limit_c, at_most } => {
            let (card, most) = (card.unwrap_or("the GPU"), about(at_most.as_secs_f64()));
            plain(format!("cooling {card} is at {from_c} °C; the next run begins at {limit_c} °C, or after {most}"))
        }
        Event::Restored { label, restored: done } => plain(restored(label, done)),
        Event::NotRestored { label, reason } => {
            let what = format!("{label} is not as it was found: {reason}");
            vec![Line::of(Label::Warning, what), Line::of(Label::Hint, "`collo restore` tries again")]
        }
        Event::Opened { campaign, resumed: true, stored, todo, interrupted, .. } => {
            let (id, total) = (&campaign.manifest().id, stored + todo.len());
            let again = match interrupted {
                0 => String::new(),
                1 => " (1 of them was interrupted)".into(),
                n => format!(" ({n} of them were interrupted)"),
            };
            plain(format!("resuming {id}: {stored} of {total} runs stored, {} to do{again}", todo.len()))
        }
        _ => Vec::new(),
    }
}

/// `    repetitions   3 → 5   experiments/mine.toml:4`
fn changed_key(changed: &ChangedKey) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".into());
    let place = changed.place.as_ref().map(|place| format!("   {place}")).unwrap_or_default();
    format!("    {}   {} → {}{place}", changed.key, text(&changed.before), text(&changed.after))
}

/// That a GPU was restored, and the actions this took.
pub fn restored(label: &str, restored: &Restored) -> String {
    format!("{label} is as it was found: {}", put_back(restored))
}

/// The actions that restored a GPU, in words.
pub fn put_back(restored: &Restored) -> String {
    let mut parts = Vec::new();
    if restored.daemons > 0 {
        parts.push(format!("MPS daemons ended: {}", restored.daemons));
    }
    if restored.destroyed > 0 {
        parts.push(format!("{} destroyed", number::count(restored.destroyed, "GPU instance")));
    }
    if restored.created > 0 {
        parts.push(format!("{} created again", number::count(restored.created, "GPU instance")));
    }
    if let Some(on) = restored.mode {
        let turned = if on { "MIG mode on → off" } else { "MIG mode off → on" };
        let forgets = if restored.reset { " by a reset, so clocks locked with `nvidia-smi -lgc` are free" } else { "" };
        parts.push(format!("{turned}{forgets}"));
    }
    if let Some(mode) = &restored.compute_mode {
        parts.push(format!("compute mode {mode}"));
    }
    if !restored.settings.is_nothing() {
        parts.push(restored.settings.to_text());
    }
    if !restored.services.is_empty() {
        parts.push(format!("{} started again", services::names(&restored.services)));
    }
    if parts.is_empty() { "nothing had to be done".into() } else { parts.join(", ") }
}

/// The immediate reply to a Ctrl-C, with the runs of all cards.
fn stopping(runs: &[&str], now: bool) -> String {
    match runs {
        [_, _, ..] if now => "killing the runs".into(),
        _ if now => "killing the run".into(),
        [run] => format!("stopping: `{run}` is asked to stop and recorded; Ctrl-C again kills it at once"),
        [] => "stopping".into(),
        runs => format!("stopping: {} runs are asked to stop and recorded; Ctrl-C again kills them at once", runs.len()),
    }
}
