//! `collo status --serve`: the report of a running campaign as a page on this machine, which fills run by run.
//!
//! The machine measures meanwhile: this process is nice(2) by 19, and reads the runs once for each stored one at most, however often the page
//! is asked for.

use std::time::{Duration, Instant};

use collo_figures::document::Live;
use collo_figures::document::serve::{Asked, Server};
use collo_launch::interrupted::Noted;
use collo_store::{CampaignFolder, Runs};
use collo_text::{Diagnostic, Diagnostics};

use crate::answer::{Answer, Answered};
use crate::context::Context;
use crate::output;
use crate::progress::eta::Eta;

/// How often the socket and the campaign are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the finished page is served, so that every browser that shows it loads it once more.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// Serve the page until the campaign ends, or the user stops it.
pub fn serve(context: &Context<'_>, campaign: &CampaignFolder, port: u16) -> Answered {
    let noted = Noted::begin();
    let server = Server::begin(port).map_err(|why| {
        Diagnostic::new(format!("port {port} cannot be listened on: {why}")).hint("leave the port out: a free one is taken")
    })?;
    yield_to_others();
    let mut page = LivePage { runs: context.runs()?, campaign: campaign.clone(), kept: None };
    // Other programs wait for this line.
    output::line(server.address());
    output::note("it ends with the campaign, or with Ctrl-C".to_string());
    let mut ended: Option<Instant> = None;
    while noted.came().is_none() && ended.is_none_or(|since| since.elapsed() < LAST_LOOK) {
        if !server.answer(|asked| page.respond(asked)) {
            if ended.is_none() && campaign.running().is_none() {
                ended = Some(Instant::now());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
    Ok(Answer::default())
}

struct LivePage {
    runs: Runs,
    campaign: CampaignFolder,
    /// The last page, and the state that it shows.
    kept: Option<(String, String)>,
}

impl LivePage {
    fn respond(&mut self, asked: Asked) -> Result<String, String> {
        let state = self.state().map_err(|wrong| wrong.to_string())?;
        if asked == Asked::State {
            return Ok(state);
        }
        if let Some((_, page)) = self.kept.as_ref().filter(|(shown, _)| *shown == state) {
            return Ok(page.clone());
        }
        let page = self.page(&state).map_err(|wrong| wrong.to_string())?;
        Ok(self.kept.insert((state, page)).1.clone())
    }

    /// What changes with every run: `7`, and at the end `12, ended`.
    fn state(&self) -> Result<String, Diagnostics> {
        let is_running = self.campaign.running().is_some();
        let stored = self.campaign.progress()?.stored;
        Ok(format!("{stored}{}", if is_running { "" } else { ", ended" }))
    }

    fn page(&self, state: &str) -> Result<String, Diagnostics> {
        let planned = self.campaign.manifest().plan.order.len();
        let count = format!("{} of {planned} runs", state.trim_end_matches(", ended"));
        let text = if state.ends_with(", ended") {
            format!("{count} are stored; nothing is measured any more")
        } else {
            let left = Eta::of_history(&self.campaign)?.left();
            let left = left.map_or_else(String::new, |left| format!(", {} left", left.in_a_sentence()));
            format!("{count} are stored{left}; this page loads itself again after each run")
        };
        let report = super::report::of(&self.runs, &self.campaign)?;
        Ok(collo_report::live(&report, Live { text, state: state.to_string() })?)
    }
}

/// Ask the kernel to prefer other processes, such as those that are measured.
fn yield_to_others() {
    // SAFETY: the call takes no pointers, and sets the nice value of this process.
    if unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, 19) } != 0 {
        output::note("the page is made with the usual priority: the kernel refuses a lower one".to_string());
    }
}
