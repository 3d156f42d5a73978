//! The search for the largest degree that fits: a round of cells, its results, the next round, all in one campaign.

use collo_store::CampaignFolder;
use collo_text::Diagnostic;

use super::{Session, Unfinished, past_of};
use crate::campaign::{CampaignEnd, CampaignOptions, Finished, Only};
use crate::events::Watcher;
use collo_plan::frontier::Frontier;
use collo_plan::plan::cells_of;

impl Session {
    /// Until every combination has its answer.
    pub(super) fn search(&mut self, watcher: Watcher<'_>) -> Result<Finished, Unfinished> {
        let asked = self.request.choice.clone();
        let mut campaign = self.request.continued(&self.project)?;
        let mut finished: Option<Finished> = None;
        loop {
            let runs = campaign.as_ref().map(CampaignFolder::runs).transpose()?.map(|(runs, _)| runs).unwrap_or_default();
            let mut frontier = Frontier::of(runs.values());
            let selection = self.request.selection.as_ref();
            let Some(plan) = frontier.round(self.experiment(), selection, &self.facts, &self.prior)? else {
                if let Some(finished) = finished {
                    return Ok(Finished { answers: frontier.answers(), ..finished });
                }
                // The newest one has all its answers: this is another search.
                match campaign.take() {
                    Some(_) => continue,
                    None => return Err(Diagnostic::new("every cell of the search is refused here").of_machine().into()),
                }
            };
            self.plan = plan;
            // What was cut off comes first; its cells are in the campaign's plan already.
            let unfinished = campaign.as_ref().is_some_and(|c| c.progress().is_ok_and(|p| !p.is_complete()));
            let choice = CampaignOptions {
                new: campaign.is_none(),
                only: Only::Missing,
                more: (campaign.is_some() && !unfinished).then_some(self.experiment().repetitions),
                campaign: campaign.take(),
                spent: finished.as_ref().map_or(&asked.spent, |before| &before.spent).clone(),
                ..asked.clone()
            };
            let ended = self.campaign(choice, watcher)?;
            if ended.end != CampaignEnd::Complete {
                return Ok(ended);
            }
            campaign = Some(CampaignFolder::open(ended.campaign.path())?);
            // What a member alone needed is known now, and with it where to look.
            self.learn_past()?;
            finished = Some(ended);
        }
    }

    fn learn_past(&mut self) -> Result<(), Diagnostic> {
        let cells = cells_of(&self.request.experiment, self.request.selection.as_ref(), None, &self.facts)?;
        self.prior.past = past_of(&self.project, &self.request.experiment, &cells, &self.facts);
        Ok(())
    }
}
