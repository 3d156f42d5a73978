//! Which experiments a `--tag` selects. In: one tag, or an expression over tags, `gpu && !slow`. Out: whether an experiment is meant.

use collo_text::Diagnostic;

use crate::select::Expression;

/// A tag, or an expression over tags.
pub enum TagFilter {
    Tag(String),
    Expression(Expression),
}

impl TagFilter {
    /// Read the argument of `--tag`; a wrong expression is shown with the place in it.
    pub fn parse(text: &str) -> Result<TagFilter, Diagnostic> {
        match text.contains(['&', '|', '!', '(', ')']) {
            true => Expression::of_tags("--tag", text).map(TagFilter::Expression),
            false => Ok(TagFilter::Tag(text.into())),
        }
    }

    /// Whether an experiment with these tags is meant.
    pub fn selects(&self, tags: &[String]) -> bool {
        let has = |tag: &str| tags.iter().any(|t| t == tag);
        match self {
            TagFilter::Tag(tag) => has(tag),
            TagFilter::Expression(expression) => expression.holds(&|tag| Some(has(tag).into())),
        }
    }
}
