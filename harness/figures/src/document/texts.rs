//! Every text of a document, to be changed. In: a document, and a function. Out: the document with what the function made of its texts.

use super::model::{Advice, Block, Document, FactLine, Figure, Section, Table};

/// What a text is to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Sentences, names and labels.
    Prose,
    /// The heads of the page: its title, its facts, its warnings.
    Head,
    /// A command, to be copied.
    Command,
    /// Names and values of the environment, files, and what a terminal prints.
    Verbatim,
}

type Change<'c> = dyn Fn(TextKind, &mut String) + 'c;

impl Document {
    /// Change each text. Markup of drawings is among the prose.
    pub fn each_text(&mut self, change: &Change) {
        for text in [&mut self.name, &mut self.title, &mut self.subtitle, &mut self.alone].into_iter().chain(&mut self.warnings) {
            change(TextKind::Head, text);
        }
        for line in self.facts.iter_mut().flat_map(|fact| &mut fact.lines) {
            let (FactLine::Text(text) | FactLine::Code(text) | FactLine::Link(text, _) | FactLine::Strip(_, text)) = line;
            change(TextKind::Head, text);
        }
        self.sections.iter_mut().for_each(|section| of_section(section, change));
        change(TextKind::Prose, &mut self.left_out);
    }

    /// Begin each command of collo with this one, which simulates a GPU.
    pub fn begin_commands_with(&mut self, command: &str) {
        self.each_text(&|kind, text| begin_commands_with(kind, text, command));
    }
}

/// A text whose commands of collo begin with this one. In a sentence a command stands in backticks.
pub fn begin_commands_with(kind: TextKind, text: &mut String, command: &str) {
    let begins = |before: Option<char>| before == Some('`') || kind == TextKind::Command && before.is_none();
    if kind != TextKind::Verbatim {
        *text = collo_text::commands::in_place_of_collo(text, command, |before, _| begins(before)).into_owned();
    }
}

fn of_section(section: &mut Section, change: &Change) {
    change(TextKind::Prose, &mut section.finding);
    of_blocks(&mut section.blocks, change);
}

/// Change each text of these blocks.
pub(super) fn of_blocks(blocks: &mut [Block], change: &Change) {
    blocks.iter_mut().for_each(|block| of_block(block, change));
}

fn of_block(block: &mut Block, change: &Change) {
    let mut prose = |text: &mut String| change(TextKind::Prose, text);
    match block {
        Block::Figure(figure) => of_figure(figure, change),
        Block::Table(table) => of_table(table, change),
        Block::Text(text) | Block::Remark(text) => prose(text),
        Block::Notes(notes) => notes.iter_mut().for_each(prose),
        Block::Chips(chips) => chips.iter_mut().for_each(|chip| prose(&mut chip.text)),
        Block::Advice(advice) => advice.iter_mut().for_each(|a| of_advice(a, change)),
        Block::Answer(answer) => {
            answer.paragraphs.iter_mut().for_each(&mut prose);
            answer.doubts.iter_mut().for_each(|doubt| prose(&mut doubt.text));
        }
        Block::Folded(title, blocks) => {
            prose(title);
            of_blocks(blocks, change);
        }
        Block::Facts(facts) => facts.iter_mut().for_each(|(_, value)| change(TextKind::Verbatim, value)),
        Block::Terms(terms) => terms.iter_mut().for_each(|[_, _, meaning]| prose(meaning)),
        Block::Verbatim(title, text) => [title, text].into_iter().for_each(|text| change(TextKind::Verbatim, text)),
        Block::Command(_, command) => change(TextKind::Command, command),
    }
}

fn of_figure(figure: &mut Figure, change: &Change) {
    change(TextKind::Prose, &mut figure.title);
    change(TextKind::Prose, &mut figure.caption);
    for panel in &mut figure.panels {
        for text in [&mut panel.title, &mut panel.subtitle, &mut panel.label, &mut panel.drawing.body] {
            change(TextKind::Prose, text);
        }
    }
    figure.csv.iter_mut().for_each(|csv| change(TextKind::Verbatim, csv));
    of_table(&mut figure.values, change);
}

fn of_table(table: &mut Table, change: &Change) {
    change(TextKind::Prose, &mut table.caption);
    for cell in table.rows.iter_mut().flat_map(|row| &mut row.cells) {
        change(TextKind::Prose, &mut cell.text);
        change(TextKind::Prose, &mut cell.note);
        if let Some(drawing) = &mut cell.drawing {
            change(TextKind::Prose, &mut drawing.body);
        }
    }
    table.details.iter_mut().for_each(|(_, text)| change(TextKind::Verbatim, text));
}

fn of_advice(advice: &mut Advice, change: &Change) {
    [&mut advice.statement, &mut advice.finding, &mut advice.scope].into_iter().for_each(|text| change(TextKind::Prose, text));
    advice.key.iter_mut().flatten().for_each(|text| change(TextKind::Prose, text));
    advice.command.iter_mut().for_each(|command| change(TextKind::Command, command));
    of_blocks(&mut advice.evidence, change);
}
