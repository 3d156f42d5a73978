//! The setting `limit_batches`: where the scripts cut an epoch short, by a number of batches or by a share.
//!
//! In: a value as a file, a label or `--set` has it. Out: [`Limit`]. A share is what Lightning's `limit_train_batches` takes below 1; it
//! has the same meaning for scripts of any batch size and data set, which a shortened trace needs.

use serde_json::Value as Json;

/// Its name, in the files of workloads and among the axes.
pub const LIMIT_BATCHES: &str = "limit_batches";

/// How much of an epoch is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    Whole,
    /// So many batches, or all if there are fewer.
    Batches(u64),
    /// Between 0 and 1; at least one batch.
    Share(f64),
}

impl Limit {
    /// None: it is neither a number of batches nor a share.
    pub fn of(value: &Json) -> Option<Limit> {
        match value.as_u64() {
            Some(0) => Some(Limit::Whole),
            Some(batches) => Some(Limit::Batches(batches)),
            None => value.as_f64().filter(|share| *share > 0.0 && *share < 1.0).map(Limit::Share),
        }
    }

    /// Whether this is that setting, and the value a share.
    pub fn is_share(setting: &str, value: &Json) -> bool {
        setting == LIMIT_BATCHES && matches!(Limit::of(value), Some(Limit::Share(_)))
    }
}

/// Whether every value of a setting is a fraction because its default is one. A limit is whole or a share, whatever its default.
pub fn is_fraction(setting: &str, default: &Json) -> bool {
    default.is_f64() && setting != LIMIT_BATCHES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_whole_a_number_or_a_share_and_nothing_else() {
        let of = |text: &str| Limit::of(&serde_json::from_str(text).expect("JSON"));
        assert_eq!((of("0"), of("7"), of("0.25")), (Some(Limit::Whole), Some(Limit::Batches(7)), Some(Limit::Share(0.25))));
        assert_eq!([of("-1"), of("1.0"), of("2.5"), of("0.0"), of("\"a\"")], [None; 5]);
    }
}
