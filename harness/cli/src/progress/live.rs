//! The terminal display: finished runs scroll away above; the campaign's bar, the current run and its members are redrawn.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use collo_measure::events::Event;
use collo_measure::observe::View;
use collo_quantity::number;
use collo_store::{CampaignFolder, Outcome, PlannedRun};
use collo_text::quoting;
use collo_text::units::clock;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::eta::{Eta, Left};
use super::lines::{data_line, describes};
use super::rows::{Running, room, run_line, screen_width};
use super::{Display, python, words};
use crate::output;

/// Maximum redraw rate.
const HZ: u8 = 4;

/// The widest bar, and the narrowest that shows anything.
const BARS: (usize, usize) = (44, 8);

/// The screen.
pub struct Live {
    eta: Eta,
    screen: MultiProgress,
    bar: ProgressBar,
    /// The current run, the head of its table, and one line per member.
    rows: Vec<ProgressBar>,
    campaign: Option<CampaignFolder>,
    /// By card.
    running: BTreeMap<Option<u32>, Running>,
    begun: Instant,
    done: usize,
    total: usize,
    stopping: bool,
}

impl Live {
    /// Before the campaign is open.
    pub fn new() -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(HZ));
        let bar = screen.add(ProgressBar::new(0));
        bar.set_style(bar_style(BARS.0));
        Live {
            eta: Eta::default(),
            screen,
            bar,
            rows: Vec::new(),
            campaign: None,
            running: BTreeMap::new(),
            begun: Instant::now(),
            done: 0,
            total: 0,
            stopping: false,
        }
    }

    /// Print above the redrawn area. `suspend` of the screen would also do, but panics if the terminal is gone.
    fn say(&self, text: &str) {
        // A screen that cannot be written to shows nothing; the campaign goes on.
        let _ = self.screen.println(quoting::line(text));
    }

    fn tell(&self, event: &Event<'_>) {
        super::notice(event).iter().for_each(|line| drop(self.screen.println(output::painted(line))));
    }

    fn campaign_line(&self) {
        let elapsed = clock(self.begun.elapsed().as_secs_f64());
        let head = Head { runs: (self.done, self.total), elapsed: &elapsed, left: self.eta.left(), stopping: self.stopping };
        let (bar, message) = head.fitting(self.bar.prefix().chars().count(), screen_width());
        self.bar.set_style(bar_style(bar));
        self.bar.set_message(message);
        self.bar.set_position(self.done as u64);
    }

    fn row(&mut self, index: usize, text: String) {
        while self.rows.len() <= index {
            let row = self.screen.add(ProgressBar::new(0));
            row.set_style(style("{msg}"));
            self.rows.push(row);
        }
        self.rows[index].set_message(cut(text));
    }

    fn stands(&mut self, planned: &PlannedRun, view: View) {
        if let Some(running) = self.running.get_mut(&planned.card) {
            running.view = Some(view);
            self.draw();
        }
    }

    /// The rows of every card's run.
    fn draw(&mut self) {
        let room = room(self.running.len());
        let Some(campaign) = self.campaign.as_ref().map(CampaignFolder::manifest) else { return };
        let only = self.running.len() == 1;
        let of = |running: &Running| running.lines(campaign, self.eta.current_s(running.planned.card), room, only);
        let lines: Vec<String> = self.running.values().flat_map(of).collect();
        self.rows.split_off(lines.len().min(self.rows.len())).into_iter().for_each(|row| self.remove(row));
        for (index, line) in lines.into_iter().enumerate() {
            self.row(index, line);
        }
        self.campaign_line();
    }

    fn clear_rows(&mut self) {
        std::mem::take(&mut self.rows).into_iter().for_each(|row| self.remove(row));
    }

    fn remove(&self, row: ProgressBar) {
        row.finish_and_clear();
        self.screen.remove(&row);
    }
}

/// The state of the campaign: beside its bar, in as many words as there is room for.
struct Head<'a> {
    runs: (usize, usize),
    elapsed: &'a str,
    left: Option<Left>,
    stopping: bool,
}

impl Head<'_> {
    /// The width of the bar, 0 for none, and the words.
    fn fitting(&self, prefix: usize, width: usize) -> (usize, String) {
        let (done, total) = self.runs;
        let left = |before: &str, of: fn(Left) -> String| self.left.map(|left| format!("{before}{} left", of(left)));
        let stopping = if self.stopping { "   stopping" } else { "" };
        let long =
            format!("{done}/{total} runs  {} elapsed{}{stopping}", self.elapsed, left("   ", Left::to_text).unwrap_or_default());
        let short = format!("{done}/{total}  {}{}{stopping}", self.elapsed, left(", ", Left::to_short_text).unwrap_or_default());
        let room = |message: &str| width.saturating_sub(prefix + 2 + 2 + message.chars().count() + 1);
        for message in [long, short.clone()] {
            if room(&message) >= BARS.1 {
                return (room(&message).min(BARS.0), message);
            }
        }
        (0, short)
    }
}

fn bar_style(width: usize) -> ProgressStyle {
    match width {
        0 => style("{prefix}  {msg}"),
        n => style(&format!("{{prefix}}  {{bar:{n}}}  {{msg}}")).progress_chars("█▉▊▋▌▍▎▏ "),
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file, and a test draws with them.
    ProgressStyle::with_template(template).expect("a template of this file")
}

/// A wrapped line would break the redrawing.
fn cut(text: String) -> String {
    let text = quoting::line(&text);
    let most = screen_width();
    if text.chars().count() <= most {
        text.into_owned()
    } else {
        text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

impl Display for Live {
    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Python(progress) => {
                if let Some(line) = python::line(&progress) {
                    self.clear_rows();
                    self.say(&line);
                } else if let Some(line) = python::arriving(&progress) {
                    self.row(0, line);
                }
            }
            Event::Describes { count } => self.row(0, describes(count)),
            Event::Data(prepared) => {
                if let Some(line) = data_line(prepared) {
                    self.say(&line);
                }
            }
            Event::Opened { campaign, stored, todo, forecast_s, cooldown, .. } => {
                self.tell(&event);
                self.eta = Eta::new(&campaign.manifest().plan.cells, forecast_s, cooldown, todo);
                (self.done, self.total) = (stored, stored + todo.len());
                self.begun = Instant::now();
                let m = campaign.manifest();
                let cells = number::count(m.plan.cells.len(), "cell");
                let about = self.eta.left().map(|left| format!(", {}", left.in_a_sentence())).unwrap_or_default();
                self.say(&format!("{} on {}: {cells}, {}{about}", m.experiment, m.device.text(), number::runs(self.total)));
                self.bar.set_length(self.total as u64);
                self.bar.set_prefix(quoting::line(&m.experiment).into_owned());
                self.campaign = Some(campaign.clone());
                self.campaign_line();
            }
            Event::Begins { planned } => {
                self.eta.begins(planned);
                if let Some(m) = self.campaign.as_ref().map(CampaignFolder::manifest) {
                    let (name, cell) = (words::planned(m, planned), m.plan.cells[planned.cell].clone());
                    self.running.insert(planned.card, Running { name, cell, planned: planned.clone(), view: None });
                }
            }
            Event::Stands { planned, view } => self.stands(planned, view),
            Event::Ends { planned, run } => {
                let seconds = self.eta.ends(planned);
                self.done += usize::from(run.record.outcome != Outcome::Interrupted);
                let name = self.running.remove(&planned.card).map_or_else(|| words::name(run), |running| running.name);
                self.draw();
                let mark = words::mark(&run.record.outcome);
                let end = words::outcome(run);
                let took = clock(seconds);
                self.say(&run_line(mark, &name, &end, &took, screen_width()));
                for line in words::trace(run) {
                    self.say(&line);
                }
                self.campaign_line();
            }
            Event::Retries { planned, .. } => {
                self.done -= 1;
                self.eta.again(planned);
                self.tell(&event);
            }
            Event::Stopping { now } => {
                let names: Vec<&str> = self.running.values().map(|running| &*running.name).collect();
                self.say(&super::stopping(&names, now));
                self.stopping = true;
                self.campaign_line();
            }
            Event::NotContinued { .. }
            | Event::FindsIdle { .. }
            | Event::Cools { .. }
            | Event::Beside { .. }
            | Event::Waits { .. }
            | Event::Partials { .. }
            | Event::NothingMatches { .. }
            | Event::Wrote { .. }
            | Event::Restored { .. }
            | Event::NotRestored { .. } => self.tell(&event),
        }
    }

    fn end(&mut self) {
        self.clear_rows();
        self.bar.finish_and_clear();
        // The last redraw may still be on its way.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_of_this_display_is_valid() {
        (0..=BARS.0).for_each(|width| drop(bar_style(width)));
        style("{msg}");
    }

    #[test]
    fn the_head_loses_its_words_before_its_bar_and_fits_any_screen() {
        let head = Head { runs: (3, 12), elapsed: "0:29", left: Some(Left::About(263.0)), stopping: false };
        let at = |width| head.fitting("quickstart".len(), width);
        assert_eq!(at(120), (44, "3/12 runs  0:29 elapsed   about 4:23 left".into()));
        assert_eq!(at(80), (24, "3/12 runs  0:29 elapsed   about 4:23 left".into()));
        assert_eq!(at(60), (24, "3/12  0:29, 4:23 left".into()));
        assert_eq!(at(40), (0, "3/12  0:29, 4:23 left".into()));
        let bound = Head { runs: (3, 12), elapsed: "0:29", left: Some(Left::AtLeast(263.0)), stopping: false };
        assert_eq!(bound.fitting("quickstart".len(), 120).1, "3/12 runs  0:29 elapsed   at least 4:23 left");
        assert_eq!(bound.fitting("quickstart".len(), 60).1, "3/12  0:29, ≥ 4:23 left");
        for width in 35..200 {
            let (bar, message) = at(width);
            let bar = if bar == 0 { 0 } else { bar + 2 };
            assert!("quickstart".len() + 2 + bar + message.chars().count() < width, "{width}");
        }
    }
}
