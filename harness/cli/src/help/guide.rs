//! `collo help`: a command, or a page of the guide.
//!
//! In: words. Out: the help of that command, or the page as text.

use clap::CommandFactory;
use collo_figures::document::{Table, page_text};
use collo_text::{Diagnostic, nearest};
use serde_json::json;

use crate::answer::{Answer, Answered};
use crate::args::{self, Arguments};
use crate::guide::{self, PAGES, title};
use crate::output;

/// What lists the commands, and what the pages.
const ALL: &str = "all";
const TOPICS: &str = "topics";

pub fn run(a: &args::Help) -> Answered {
    let words: Vec<&str> = a.topic.iter().map(String::as_str).collect();
    match words[..] {
        [ALL] => Ok(text(Arguments::all_verbs(output::width()))),
        [TOPICS] => Ok(topics()),
        [topic] if let Some((_, page)) = PAGES.iter().find(|(name, _)| *name == topic) => {
            Ok(text(page_text(&with_commands(page), output::width())))
        }
        _ => command(&words).map(text).ok_or_else(|| unknown(&words).into()),
    }
}

/// A page whose links to other pages are the commands that print them.
fn with_commands(page: &str) -> String {
    let mut parts = page.split("](");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |before, part| {
        let file = part.split([')', '#']).next().unwrap_or_default();
        match (guide::topic(file), part.split_once(')')) {
            (Some(topic), Some((_, after))) => format!("{before}](collo help {topic}){after}"),
            _ => format!("{before}]({part}"),
        }
    })
}

fn text(text: String) -> Answer {
    let mut answer = Answer::of(json!({"text": text.trim_end()}));
    answer.lines(text.trim_end());
    answer
}

/// Everything that `collo help` explains.
pub fn names() -> Vec<String> {
    let command = Arguments::command();
    let verbs = command.get_subcommands().map(|verb| verb.get_name().to_string());
    verbs.chain([ALL, TOPICS].into_iter().chain(PAGES.iter().map(|(name, _)| *name)).map(String::from)).collect()
}

fn topics() -> Answer {
    let rows: Vec<_> = PAGES.iter().map(|(name, page)| json!({"topic": name, "title": title(page)})).collect();
    let mut table = Table::new(&["topic", "about"], 1).with_prose_last();
    PAGES.iter().for_each(|(name, page)| table.values([name, title(page)].map(|text| Some(text.to_string()))));
    let mut answer = Answer::list("topics", &rows, &table, None);
    answer.note("next: collo help experiments");
    answer
}

/// What `--help` prints of a command, of the whole if no word is given; without colours.
fn command(words: &[&str]) -> Option<String> {
    let mut all = Arguments::with_page(output::width());
    words.iter().try_fold(&mut all, |command, word| command.find_subcommand_mut(word))?;
    let asked = ["collo"].iter().chain(words).chain(&["--help"]);
    Arguments::with_page(output::width()).try_get_matches_from(asked).err().map(|help| help.render().to_string())
}

fn unknown(words: &[&str]) -> Diagnostic {
    let asked = words.join(" ");
    let all = "commands: `collo help all`; pages of the guide: `collo help topics`";
    let wrong = Diagnostic::new(format!("no command and no page of the guide is called `{asked}`"));
    match nearest(&asked, names().iter().map(String::as_str)) {
        Some(near) => wrong.hint(format!("did you mean `collo help {near}`? {all}")),
        None => wrong.hint(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        match run(&args::Help { topic: words.iter().map(|word| (*word).to_string()).collect() }) {
            Ok(answer) => answer.plain(),
            Err(wrong) => wrong.to_string(),
        }
    }

    #[test]
    fn commands_and_pages_are_explained_by_the_same_word() {
        assert!(help(&["predict", "fit"]).contains("collo predict fit"), "{}", help(&["predict", "fit"]));
        assert!(help(&[]).contains("Start with: collo run quickstart"));
        assert!(help(&[]).contains("\n  -C <DIR>  "), "a line for each option, without colours: {}", help(&[]));
        assert!(help(&["simulation"]).starts_with("The simulated GPU\n===="), "{}", help(&["simulation"]));
        assert!(help(&["topics"]).contains("The nightly"));
        assert!(help(&["all"]).starts_with("Every day\n  try "));
    }

    #[test]
    fn no_page_is_wider_than_the_screen_except_for_its_code_and_links_are_commands() {
        assert!(with_commands("[a](nightly.md#jobs), [b](x.rs)").starts_with("[a](collo help nights), [b](x.rs)"));
        for (topic, page) in PAGES {
            let shown = page_text(&with_commands(page), 80);
            let is_code = |line: &str| line.starts_with("    ");
            let wide = shown.lines().find(|line| line.chars().count() > 80 && !is_code(line) && line.trim().contains(' '));
            assert_eq!(wide, None, "{topic}");
            assert!(shown.lines().count() > 20, "{topic}");
        }
    }

    #[test]
    fn a_misspelled_topic_is_answered_with_the_nearest() {
        insta::assert_snapshot!(help(&["simulatoin"]), @"
        error: no command and no page of the guide is called `simulatoin`
        hint: did you mean `collo help simulation`? commands: `collo help all`; pages of the guide: `collo help topics`
        ");
        insta::assert_snapshot!(help(&["predict", "everything"]), @"
        error: no command and no page of the guide is called `predict everything`
        hint: commands: `collo help all`; pages of the guide: `collo help topics`
        ");
    }
}
