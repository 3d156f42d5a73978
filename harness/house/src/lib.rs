//! The test of the house: what `docs/style.md` demands of the sources, counted, and compared with ceilings that may only fall.
//!
//! In: the text of a checkout. Out: counts by package, room, file and name; problems, each with its way out. It compiles nothing, and
//! depends on no package that it counts.
//!
//! | rule | counted by |
//! |---|---|
//! | production lines of packages, rooms, files | [`lines`], of what [`production`] leaves |
//! | circles between the rooms of a package | [`circles`], over the paths of [`paths`] |
//! | names of types, unique in their package | [`types`] |
//! | second lists of quantities and GPU models | [`lists`] |
//! | files that are opened outside of bounded reading | [`reads`] |
//! | words that are not to be used | [`words`] |
//! | files that `docs/architecture.md` names | [`named`] |
//! | features and the tests that prove them | [`features`] |
//!
//! [`rules`] is the table of all that have ceilings; the ceilings are in `ceilings.toml`, which [`ceilings`] reads and writes and
//! [`ratchet`] compares and lowers. To add a rule, add its row there, its section to the file, its test to `tests/house.rs`.

pub mod ceilings;
pub mod checkout;
pub mod circles;
pub mod features;
pub mod lines;
pub mod lists;
pub mod named;
pub mod paths;
pub mod production;
pub mod ratchet;
pub mod reads;
pub mod rules;
pub mod tokens;
pub mod types;
pub mod words;
