//! `collo status --serve`: the report of a running campaign as a page on this machine, which fills run by run.
//!
//! The machine measures at the same time. The server therefore runs at the lowest priority, nice(2) 19, and reads the runs at most once after
//! each stored one, however often the page is asked for.

use std::time::{Duration, Instant};

use collo_figures::document::Live;
use collo_figures::document::serve::{Asked, Server};
use collo_launch::interrupted::Noted;
use collo_store::{CampaignFolder, Runs};
use collo_text::{Diagnostic, Diagnostics};
use serde_json::json;

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
        Diagnostic::new(format!("cannot listen on port {port}: {why}")).hint("`--serve` without a port takes a free one")
    })?;
    yield_to_others();
    let mut page = LivePage { runs: context.runs()?, campaign: campaign.clone(), kept: None };
    // Other programs wait for this line.
    match context.arguments.json {
        true => output::json(&json!({"campaign": campaign.manifest().id, "address": server.address()})),
        false => output::line(server.address()),
    }
    output::note("the server ends with the campaign, or with Ctrl-C".to_string());
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
    /// The last page, and what it shows.
    kept: Option<(Stored, String)>,
}

/// How far the campaign is.
#[derive(Clone, Copy, PartialEq)]
struct Stored {
    runs: usize,
    is_running: bool,
}

impl Stored {
    fn of(campaign: &CampaignFolder) -> Result<Stored, Diagnostics> {
        // In this order: what is stored while it ends is not missed.
        let is_running = campaign.running().is_some();
        Ok(Stored { runs: campaign.progress()?.stored, is_running })
    }

    /// `7`, and at the end `12, ended`, as the script of the page knows it.
    fn text(self) -> String {
        format!("{}{}", self.runs, if self.is_running { "" } else { ", ended" })
    }
}

impl LivePage {
    fn respond(&mut self, asked: Asked) -> Result<String, String> {
        let stored = Stored::of(&self.campaign).map_err(|wrong| wrong.to_string())?;
        if asked == Asked::State {
            return Ok(stored.text());
        }
        if let Some((_, page)) = self.kept.as_ref().filter(|(shown, _)| *shown == stored) {
            return Ok(page.clone());
        }
        let page = self.page(stored).map_err(|wrong| wrong.to_string())?;
        Ok(self.kept.insert((stored, page)).1.clone())
    }

    fn page(&self, stored: Stored) -> Result<String, Diagnostics> {
        let count = format!("{} of {} runs", stored.runs, self.campaign.manifest().plan.order.len());
        let text = if !stored.is_running {
            format!("{count} are stored; the campaign is no longer running")
        } else {
            let left = Eta::of_history(&self.campaign)?.left();
            let left = left.map_or_else(String::new, |left| format!(", {} left", left.in_a_sentence()));
            format!("{count} are stored{left}; this page loads itself again after each run")
        };
        let report = super::report::of(&self.runs, &self.campaign)?;
        Ok(collo_report::live(&report, Live { text, state: stored.text() })?)
    }
}

/// Ask the kernel to prefer other processes, such as those that are measured.
fn yield_to_others() {
    // SAFETY: the call takes no pointers, and sets the nice value of this process.
    if unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, 19) } != 0 {
        output::note("the server runs at the usual priority: the kernel refuses a lower one".to_string());
    }
}
