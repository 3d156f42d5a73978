//! Predictions compared with measurements. In: what was asked. Out: the scores of the laboratory as an answer.

use collo_laboratory::evaluate::{Comparison, Evaluation, Shown};
use collo_prepare::memnet::MemnetOptions;

use crate::answer::{Answer, Answered};
use crate::args::{EvaluateOptions, MemnetSplitBy};
use crate::context::Context;

pub fn evaluate(context: &Context<'_>, asked: &EvaluateOptions) -> Answered {
    let EvaluateOptions { rows, classify, predictor, like } = asked;
    let bin_mib = match classify.bins[..] {
        [width] => Some(width),
        _ => None,
    };
    let by_shape = classify.split == MemnetSplitBy::Shape;
    let Evaluation { shown, value } = collo_laboratory::evaluate::evaluate(
        context,
        &Comparison {
            rows: rows.request(),
            quantity: super::quantity(context, rows)?,
            bins: &classify.bins,
            memnet: classify.memnet.then_some(MemnetOptions { scaled: classify.scaled, by_shape, bin_mib }),
            predictor: predictor.as_deref(),
            seeds: like.like.map(|_| like.seeds),
        },
    )?;
    let mut answer = Answer::default();
    for part in shown {
        match part {
            Shown::Lines(text) => answer.lines(text),
            Shown::Table(table) => answer.table(&table),
            Shown::Remark(remark) => answer.beside(remark),
        }
    }
    answer.object(value);
    Ok(answer)
}
