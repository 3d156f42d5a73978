//! The tables of keys in `docs/guide`, generated from the rows of keys and compared with the pages.

use collo_gpus::GpuModel;
use collo_text::fields::{Shape, ValueKind};

use crate::experiment::Experiment;
use crate::host::HostFile;
use crate::observer::Observer;
use crate::workload::Workload;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/");

fn rows(shape: &Shape, within: &str, out: &mut String) {
    for key in shape.keys {
        let default = key.default.map(|text| format!("`{text}`")).unwrap_or_default();
        out.push_str(&format!("| `{within}{}` | {default} | {} |\n", key.name, key.about));
        if let ValueKind::Table(inner) | ValueKind::List(ValueKind::Table(inner)) | ValueKind::Map(ValueKind::Table(inner)) =
            &key.kind
        {
            let name = if matches!(key.kind, ValueKind::Map(_)) { ".NAME" } else { "" };
            rows(inner, &format!("{within}{}{name}.", key.name), out);
        }
    }
}

#[test]
fn the_guide_lists_every_key_as_it_is_defined() {
    for (page, name, shape) in [
        ("experiments.md", "experiment", Experiment::KEYS),
        ("experiments.md", "host", HostFile::KEYS),
        ("workloads.md", "workload", Workload::KEYS),
        ("observers.md", "observer", Observer::KEYS),
        ("real-gpu.md", "gpu", GpuModel::KEYS),
        ("traces.md", "trace", &collo_schedule::trace::TRACE),
    ] {
        let path = format!("{GUIDE}{page}");
        let guide = fs_err::read_to_string(&path).unwrap();
        let mut table = String::from("| key | default | meaning |\n|---|---|---|\n");
        rows(shape, "", &mut table);
        let begin = format!("<!-- keys: {name} -->\n");
        let (before, rest) = guide.split_once(&begin).unwrap_or_else(|| panic!("{page} has no `{}`", begin.trim()));
        let (_, after) = rest.split_once("<!-- end -->").expect("a table that ends");
        let written = format!("{before}{begin}{table}<!-- end -->{after}");
        if std::env::var_os("COLLO_BLESS").is_some() {
            fs_err::write(&path, &written).unwrap();
        } else if guide != written {
            let first = written.lines().find(|line| !guide.contains(line)).unwrap_or_default();
            panic!("docs/guide/{page} is not what the keys say: run this test with COLLO_BLESS=1 to write it\n{first}");
        }
    }
}
