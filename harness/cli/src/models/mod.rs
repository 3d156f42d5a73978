//! Verbs that predict instead of measuring: what a training needs, what a sharing costs, and how right the predictors are, where a task should go.
//!
//! In: a workload or an experiment, a GPU, measurements to compare with. Out: predictions with their intervals, scores, predictor files.

pub mod advise;
pub mod predict;
