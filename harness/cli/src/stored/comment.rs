//! `collo comment`: what people have to say about a campaign.

use collo_store::{CampaignFolder, Comment};
use collo_text::Diagnostic;
use serde_json::json;

use crate::context::{Context, Ended};
use crate::{args, exit, output};

/// It is shown in one line.
const MOST_CHARACTERS: usize = 2_000;

pub fn run(context: &Context<'_>, a: &args::Comment) -> Ended {
    let campaign = context.runs()?.find(&a.campaign)?;
    if let Some(text) = &a.text {
        let text = text.trim();
        let characters = text.chars().count();
        if text.is_empty() {
            return Err(Diagnostic::new("an empty comment says nothing")
                .hint("`collo comment last \"fans at full speed\"`")
                .into());
        }
        if characters > MOST_CHARACTERS {
            let what = format!("a comment has at most {MOST_CHARACTERS} characters, this one has {characters}");
            return Err(Diagnostic::new(what).hint("write it to a file, and name the file").into());
        }
        campaign.comment(text)?;
    }
    let comments = campaign.comments();
    if context.arguments.json {
        output::json(&json!({"schema": 1, "campaign": campaign.manifest().id, "comments": comments}));
    } else if comments.is_empty() {
        output::note(format!("nobody commented on `{}`", campaign.manifest().id));
    } else {
        comments.iter().for_each(|comment| output::line(line(comment)));
    }
    Ok(exit::DONE)
}

/// The comments of a campaign below its table.
pub fn show(campaign: &CampaignFolder) {
    for comment in campaign.comments() {
        output::line(format!("comment, {}", line(&comment)));
    }
}

fn line(comment: &Comment) -> String {
    format!("{}: {}", comment.at_utc, comment.text)
}
