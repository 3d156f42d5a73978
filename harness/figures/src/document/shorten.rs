//! Leaves out of a document what all names in it have in common, which its subtitle has once. In: a document, and the words.
//! Out: the same with shorter names; commands and verbatim texts stay as they are.

use super::csv;
use super::model::{Block, Document};
use super::texts::{self, TextKind};

/// The settings at the end of all these names, each with the space before it; empty if they have none in common.
pub fn common_settings<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<Vec<&str>> = names.map(|name| name.split(' ').rev().collect()).collect();
    let Some(first) = names.first() else { return String::new() };
    let is_common = |(at, word): &(usize, &&str)| word.contains('=') && names.iter().all(|words| words.get(*at) == Some(*word));
    let words: Vec<&str> = first.iter().enumerate().take_while(is_common).map(|(_, word)| *word).collect();
    words.iter().rev().map(|word| format!(" {word}")).collect()
}

/// What may follow the words where they end: another character would make them a part of a longer setting.
fn ends_here(rest: &str) -> bool {
    // A full stop ends a sentence, and a point is a part of a number.
    let rest = rest.strip_prefix('.').filter(|rest| !rest.starts_with(char::is_alphanumeric)).unwrap_or(rest);
    !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '=' | '-' | '%'))
}

/// A text without these words.
fn without(text: &str, words: &str) -> Option<String> {
    let mut out = String::new();
    let (mut rest, mut found) = (text, false);
    while let Some(at) = rest.find(words) {
        let (before, from) = rest.split_at(at);
        let after = &from[words.len()..];
        out.push_str(before);
        if ends_here(after) {
            found = true;
        } else {
            out.push_str(words);
        }
        rest = after;
    }
    found.then(|| out + rest)
}

/// What leaves these words out of the names among texts. Names and values of the environment, files, and what is typed stay to the letter.
fn cut(words: &str) -> impl Fn(TextKind, &mut String) {
    move |kind: TextKind, text: &mut String| {
        if kind == TextKind::Prose
            && let Some(shorter) = without(text, words)
        {
            *text = shorter;
        }
    }
}

/// Leave these words, which begin with a space, out of all names in blocks.
pub fn shorten(blocks: &mut [Block], words: &str) {
    if !words.trim().is_empty() {
        keep_csv(blocks);
        texts::of_blocks(blocks, &cut(words));
    }
}

impl Document {
    /// Leave these words, which begin with a space, out of all names.
    pub fn shorten(&mut self, words: &str) {
        if !words.trim().is_empty() {
            self.sections.iter_mut().for_each(|section| keep_csv(&mut section.blocks));
            self.each_text(&cut(words));
        }
    }
}

/// What programs read keeps the whole names.
fn keep_csv(blocks: &mut [Block]) {
    for block in blocks {
        match block {
            Block::Figure(figure) if figure.values.shown.is_none() => {
                figure.csv.get_or_insert_with(|| csv::table(&figure.values));
            }
            Block::Folded(_, blocks) => keep_csv(blocks),
            Block::Advice(advice) => advice.iter_mut().for_each(|a| keep_csv(&mut a.evidence)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;

    #[test]
    fn settings_that_all_cells_have_are_common_and_others_are_not() {
        let of = |names: &[&str]| common_settings(names.iter().copied());
        assert_eq!(of(&["small solo b32 recipe=timm", "small×7 mps b32 recipe=timm"]), " recipe=timm");
        assert_eq!(of(&["a solo lr=1 x=2", "a×2 naive lr=1 x=2"]), " lr=1 x=2");
        assert_eq!(of(&["a solo lr=1 x=2", "a×2 naive lr=2 x=2"]), " x=2");
        assert_eq!(of(&["a solo lr=1", "a×2 naive"]), "");
        assert_eq!(of(&["a solo b32", "a×2 naive b32"]), "", "a batch size is a part of the name");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn words_are_left_out_where_they_are_whole() {
        let short = |text: &str| without(text, " recipe=timm").unwrap_or_else(|| text.into());
        assert_eq!(short("small×7 mps b32 recipe=timm ÷ small solo b32 recipe=timm"), "small×7 mps b32 ÷ small solo b32");
        assert_eq!(short("`small b32 recipe=timm`, recipe=timm-2"), "`small b32`, recipe=timm-2", "another setting begins so");
        assert_eq!(short("small b32 recipe=timm. Next"), "small b32. Next", "a sentence ends so");
        assert_eq!(short("b32 recipe=timm.5"), "b32 recipe=timm.5", "and a number does not");
        assert_eq!(without("small b32", " recipe=timm"), None);
    }

    #[test]
    fn commands_and_the_environment_keep_them() {
        let command = || Block::Command("To decide", "collo run x --where 'cell recipe=timm'".into());
        let mut d = Document {
            sections: vec![Section {
                finding: "`small b32 recipe=timm`".into(),
                blocks: vec![Block::Folded("more".into(), vec![Block::Text("`tiny recipe=timm`".into()), command()])],
                ..Section::default()
            }],
            ..Document::default()
        };
        d.shorten(" recipe=timm");
        assert_eq!(d.sections[0].finding, "`small b32`");
        insta::assert_debug_snapshot!(d.sections[0].blocks, @r#"
        [
            Folded(
                "more",
                [
                    Text(
                        "`tiny`",
                    ),
                    Command(
                        "To decide",
                        "collo run x --where 'cell recipe=timm'",
                    ),
                ],
            ),
        ]
        "#);
    }
}
