//! Two reports of many cells, and their comparison. In: a number of cells. Out: two `report.json`, and how long it took to read them, to
//! compare them and to write what came of it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use collo_compare::campaigns::{self, Options};
use collo_compare::side::ComparedReport;
use collo_figures::document::Present;
use serde_json::{Value, json};

use crate::support::Fixture;

/// Write two reports whose cells are those of a small campaign under so many names, a few percent apart.
pub fn write(folder: &Path, cells: usize) -> (PathBuf, PathBuf) {
    let of = |seed: u64, id: &str| {
        let campaign = Fixture::quickstart().seed(seed).write(&folder.join(format!("runs-{id}")));
        let made = collo_report::Report::of(&campaign).expect("a report");
        let mut report = collo_report::json(&made);
        let few = report["cells"].as_array().cloned().unwrap_or_default();
        let many: Vec<Value> = few.iter().cycle().take(cells).enumerate().map(|(i, cell)| renamed(cell, i / few.len())).collect();
        report["cells"] = many.into();
        report["campaign"] = format!("20261120-1842-{id}").into();
        let path = folder.join(format!("{id}.json"));
        fs_err::write(&path, format!("{report:#}\n")).expect("a report");
        path
    };
    (of(1, "aaaa"), of(2, "bbbb"))
}

/// The cell of another workload.
fn renamed(cell: &Value, i: usize) -> Value {
    let other = |text: &str| text.replace("tiny", &format!("tiny{i:04}"));
    let mut cell = cell.clone();
    cell["cell"] = other(cell["cell"].as_str().unwrap_or_default()).into();
    for member in cell["members"].as_array_mut().into_iter().flatten() {
        for key in ["workload", "solo"] {
            member[key] = other(member[key].as_str().unwrap_or_default()).into();
        }
    }
    cell
}

pub fn measure(left: &Path, right: &Path, to: &Path) -> Value {
    let begin = Instant::now();
    let (left, right) = (ComparedReport::read(left).expect("a report"), ComparedReport::read(right).expect("a report"));
    let read_s = begin.elapsed().as_secs_f64();
    let comparison = campaigns::compare(&left, &right, &Options::default()).expect("a comparison");
    let text = comparison.text(100);
    comparison.write(to).expect("a page");
    let seconds = begin.elapsed().as_secs_f64();
    json!({ "seconds": seconds, "read_s": read_s, "compare_s": seconds - read_s, "lines": text.lines().count(), "peak_bytes": crate::peak_bytes() })
}
