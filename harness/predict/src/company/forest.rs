//! A forest on what the law leaves. In: measured groups. Out: corrections of the law's logarithms.
//!
//! The file keeps the rows that it was grown from, not the trees: a few numbers per member and group are text that can be read and
//! compared, where a hundred trees are a thousand times as many that mean nothing. From the same rows and seed the same trees grow.
//! Extremely randomised trees (Geurts, Ernst and Wehenkel 2006, doi 10.1007/s10994-006-6226-1).

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use smartcore::ensemble::extra_trees_regressor::{ExtraTreesRegressor, ExtraTreesRegressorParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::law::{StepLength, terms};
use super::{Alone, Law, MeasuredGroup};
use crate::seeded::share;

/// With fewer the law is better, and its errors are understood.
pub const FEWEST_GROUPS: usize = 50;
/// A file of more would not be one to read.
const MOST_GROUPS: usize = 400;
const MOST_MEMBERS: usize = 400;
/// Of one group.
const MOST_TOGETHER: usize = 64;
const TREES: usize = 100;
const SEED: u64 = 17;

/// A group's members, and the logarithms of their slowdowns.
type Row = (Vec<Alone>, Vec<f64>);
type Trees = ExtraTreesRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

/// The rows of a forest, as they stand in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredForest {
    pub seed: u64,
    pub trees: usize,
    /// Each `step_s compute busy dram occupancy memory_bytes`, `-` where it is not known; to four digits.
    pub members: Vec<String>,
    /// Each the places of its members in the list above, then their slowdowns.
    pub groups: Vec<String>,
    #[serde(skip)]
    grown: Grown,
}

/// Grown when it is first asked; the rows alone say which it is.
#[derive(Clone, Default)]
struct Grown(OnceLock<Arc<Forest>>);

/// What was grown.
pub struct Forest {
    law: Law,
    has: Has,
    /// None: they cannot be grown from these rows, and nothing is corrected.
    trees: Option<Trees>,
}

/// Which numbers all rows have; only these are features.
#[derive(Clone, Copy)]
struct Has {
    dram: bool,
    occupancy: bool,
    memory: bool,
}

impl Has {
    fn of<'a>(members: impl Iterator<Item = &'a Alone> + Clone) -> Has {
        Has {
            dram: members.clone().all(|m| m.dram.is_some()),
            occupancy: members.clone().all(|m| m.occupancy.is_some()),
            memory: members.clone().all(|m| m.memory_bytes.is_some()),
        }
    }

    fn serves(self, members: &[Alone]) -> bool {
        let has = Has::of(members.iter());
        (has.dram || !self.dram) && (has.occupancy || !self.occupancy) && (has.memory || !self.memory)
    }

    /// Of one member in its company; in whichever order the others are, they are the same.
    fn features(self, members: &[Alone], index: usize) -> Vec<f64> {
        let own = &members[index];
        let others = || members.iter().enumerate().filter(|(j, _)| *j != index).map(|(_, other)| other);
        let step = StepLength::of(members.iter());
        let longest = others().map(|other| step.length(other)).fold(f64::MIN_POSITIVE, f64::max);
        let mut features = terms(members, index).to_vec();
        let mut pair = |of: &dyn Fn(&Alone) -> f64| {
            features.push(of(own));
            features.push(others().map(of).sum());
        };
        pair(&|m| m.compute);
        pair(&|m| m.busy);
        if self.dram {
            pair(&|m| m.dram.unwrap_or_default());
        }
        if self.occupancy {
            pair(&|m| m.occupancy.unwrap_or_default());
        }
        if self.memory {
            pair(&|m| m.memory_bytes.unwrap_or_default());
        }
        features.push((longest / step.length(own).max(f64::MIN_POSITIVE)).ln());
        features
    }
}

impl Forest {
    /// Of groups as they are; `None` where nothing can be grown.
    pub fn grow(law: Law, groups: &[&MeasuredGroup], trees: usize, seed: u64) -> Forest {
        let each: Vec<Row> =
            groups.iter().map(|group| group.members.iter().map(|member| (member.alone, member.slowdown.ln())).unzip()).collect();
        Forest::of_rows(law, &each, trees, seed)
    }

    /// Of each group its members and the logarithms of their slowdowns.
    fn of_rows(law: Law, groups: &[Row], trees: usize, seed: u64) -> Forest {
        let has = Has::of(groups.iter().flat_map(|(members, _)| members));
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for (members, logs) in groups {
            for (index, log) in logs.iter().enumerate() {
                inputs.push(has.features(members, index));
                targets.push(log - law.log_slowdown(members, index));
            }
        }
        let columns = inputs.first().map_or(0, Vec::len);
        let parameters = ExtraTreesRegressorParameters::default().with_n_trees(trees).with_m(columns).with_seed(seed);
        let is_finite = inputs.iter().flatten().chain(&targets).all(|number| number.is_finite());
        let matrix = DenseMatrix::from_2d_vec(&inputs).ok().filter(|_| is_finite);
        let trees = matrix.and_then(|matrix| Trees::fit(&matrix, &targets, parameters).ok());
        Forest { law, has, trees }
    }

    /// None: a member lacks a number that all rows of the forest have.
    pub fn log_slowdown(&self, members: &[Alone], index: usize) -> Option<f64> {
        if !self.has.serves(members) {
            return None;
        }
        let row = DenseMatrix::from_2d_vec(&vec![self.has.features(members, index)]).ok()?;
        let correction = *self.trees.as_ref()?.predict(&row).ok()?.first()?;
        Some(self.law.log_slowdown(members, index) + correction)
    }
}

impl StoredForest {
    pub const TREES: usize = TREES;
    pub const SEED: u64 = SEED;

    /// Of more groups than a file takes, so many without order.
    pub fn of(groups: &[MeasuredGroup]) -> StoredForest {
        let mut order: Vec<usize> = (0..groups.len()).collect();
        if groups.len() > MOST_GROUPS {
            order.sort_by(|a, b| share(*a as u64 + 1).total_cmp(&share(*b as u64 + 1)));
            order.truncate(MOST_GROUPS);
            order.sort_unstable();
        }
        let (mut places, mut members, mut rows) = (HashMap::new(), Vec::new(), Vec::new());
        for group in order.into_iter().map(|place| &groups[place]) {
            let mut row: Vec<String> = Vec::new();
            for member in &group.members {
                let text = member_text(&member.alone);
                let place = *places.entry(text.clone()).or_insert_with(|| {
                    members.push(text);
                    members.len() - 1
                });
                row.push(place.to_string());
            }
            row.extend(group.members.iter().map(|member| digits(member.slowdown)));
            rows.push(row.join(" "));
        }
        StoredForest { seed: SEED, trees: TREES, members, groups: rows, grown: Grown::default() }
    }

    pub fn check(&self) -> Result<(), String> {
        if self.groups.len() > MOST_GROUPS || self.members.len() > MOST_MEMBERS {
            return Err(format!("a forest has at most {MOST_GROUPS} groups of {MOST_MEMBERS} members"));
        }
        if self.trees == 0 || self.trees > 1000 {
            return Err(format!("a forest of {} trees: from 1 to 1000 are possible", self.trees));
        }
        if self.groups.len() < FEWEST_GROUPS {
            return Err(format!("a forest of {} groups: the fewest are {FEWEST_GROUPS}", self.groups.len()));
        }
        self.rows().map(|_| ())
    }

    pub fn grown(&self, law: Law) -> &Forest {
        self.grown.0.get_or_init(|| Arc::new(Forest::of_rows(law, &self.rows().unwrap_or_default(), self.trees, self.seed)))
    }

    /// Each group's members, and the logarithms of their slowdowns.
    fn rows(&self) -> Result<Vec<Row>, String> {
        let members: Result<Vec<Alone>, String> = self.members.iter().map(|text| member_of(text)).collect();
        let members = members?;
        let row = |text: &String| {
            let wrong = |why: &str| format!("the group `{}` {why}", text.chars().take(40).collect::<String>());
            let fields: Vec<&str> = text.split(' ').collect();
            let count = fields.len() / 2;
            if !fields.len().is_multiple_of(2) || !(2..=MOST_TOGETHER).contains(&count) {
                return Err(wrong("is not the places of two members or more and as many slowdowns"));
            }
            let place = |field: &&str| field.parse::<usize>().ok().and_then(|place| members.get(place).copied());
            let log = |field: &&str| field.parse::<f64>().ok().filter(|n| (1e-3..=1e6).contains(n)).map(f64::ln);
            let found: Option<Vec<Alone>> = fields[..count].iter().map(place).collect();
            let logs: Option<Vec<f64>> = fields[count..].iter().map(log).collect();
            found.zip(logs).ok_or_else(|| wrong("has a place or a slowdown that cannot be"))
        };
        self.groups.iter().map(row).collect()
    }
}

/// As many digits as measurements have.
fn digits(number: f64) -> String {
    let rounded: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    rounded.to_string()
}

fn member_text(member: &Alone) -> String {
    let known = |number: Option<f64>| number.map_or("-".to_string(), digits);
    let fields = [
        known(member.step_s),
        digits(member.compute),
        digits(member.busy),
        known(member.dram),
        known(member.occupancy),
        known(member.memory_bytes),
    ];
    fields.join(" ")
}

fn member_of(text: &str) -> Result<Alone, String> {
    let wrong =
        || format!("the member `{}` is not six numbers from 0 to 1e15, or `-`", text.chars().take(60).collect::<String>());
    let number = |field: &str| match field {
        "-" => Ok(None),
        _ => field.parse::<f64>().ok().filter(|n| (0.0..=1e15).contains(n)).map(Some).ok_or_else(wrong),
    };
    let fields: Result<Vec<Option<f64>>, String> = text.split(' ').map(number).collect();
    match fields?[..] {
        [step_s, Some(compute), Some(busy), dram, occupancy, memory_bytes] => {
            Ok(Alone { step_s: step_s.filter(|s| *s > 0.0), compute, busy, dram, occupancy, memory_bytes })
        }
        _ => Err(wrong()),
    }
}

impl PartialEq for Grown {
    fn eq(&self, _: &Grown) -> bool {
        true
    }
}

impl std::fmt::Debug for Grown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.get().is_some() { "grown" } else { "not yet grown" })
    }
}

#[cfg(test)]
pub mod tests;
