//! A task in a word or two: `resnet18-cifar100:b32 20e 2c`.

use std::collections::BTreeMap;

use collo_text::{Diagnostic, Source, quoted};

use super::What;

/// How it is written, for error messages.
pub(super) const HELP: &str = "write `WORKLOAD:b32 20e 2c`: batch size, epochs, cards, each as needed";

/// A workload, and behind it a batch size, epochs and cards, 1 of each if they are absent; no batch size is the workload's own.
pub(super) fn read(text: &str) -> Result<What, Diagnostic> {
    let source = Source::argument("task", text);
    let wrong = |word: &str| {
        let from = word.as_ptr() as usize - text.as_ptr() as usize;
        Diagnostic::new(format!("{} does not describe a task", quoted(word))).at(&source, from..from + word.len()).note(HELP)
    };
    let mut words = text.split_whitespace();
    let first = words.next().ok_or_else(|| Diagnostic::new("an empty task").at(&source, 0..text.len()).note(HELP))?;
    let (workload, batch) = first.split_once(':').map_or((first, None), |(workload, batch)| (workload, Some(batch)));
    let mut settings = BTreeMap::new();
    if let Some(batch) = batch {
        let size: u32 = batch.strip_prefix('b').and_then(positive).ok_or_else(|| wrong(batch))?;
        settings.insert("batch_size".to_string(), size.into());
    }
    if workload.is_empty() {
        return Err(wrong(first));
    }
    let (mut epochs, mut cards) = (None, None);
    for word in words {
        let number = word.get(..word.len() - 1).and_then(positive);
        let place = match (word.chars().last(), &mut epochs, &mut cards) {
            (Some('e'), epochs @ None, _) => epochs,
            (Some('c'), _, cards @ None) => cards,
            _ => return Err(wrong(word)),
        };
        *place = Some(number.ok_or_else(|| wrong(word))?);
    }
    Ok(What { workload: workload.into(), settings, epochs: epochs.unwrap_or(1), cards: cards.unwrap_or(1) })
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| *n > 0)
}
