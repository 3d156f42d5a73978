//! Verbs that predict instead of measuring: what a training needs, what a sharing costs, and how right the predictors are.
//!
//! In: a workload or an experiment, a GPU, measurements to compare with. Out: predictions with their intervals, scores, predictor files.

pub mod predict;
pub mod whatif;
