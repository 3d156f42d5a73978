//! Reports for a double-blind review: no file has a name of a host or user, or a path.

use std::path::Path;

use collo_report::{Report, write};
use collo_store::{Comment, Surroundings};

use crate::support::Fixture;

/// What must not be in any file: each is in a usual report.
const NAMES: [&str; 7] = ["node7", "alice", "/home/", "/srv/lab/project", "LD_LIBRARY_PATH", "secret-host", "f00dfeed"];

fn report() -> Report {
    let folder = tempfile::tempdir().unwrap();
    let mut report = Report::of(&Fixture::quickstart().write(folder.path())).unwrap();
    report.folder = "/srv/lab/project/runs/quickstart/20261120-1842-7f3a".into();
    let campaign = &mut report.analysis.campaign;
    campaign.machine.hostname = Some("node7.secret-host.org".into());
    campaign.machine.git = Some("f00dfeed".into());
    campaign.source_toml = "# Of alice, on node7.\nname = \"quickstart\"\n".into();
    let words = ["collo", "-C", "/home/alice/lab", "run", "quickstart"];
    campaign.surroundings = Some(Surroundings {
        command: words.map(String::from).to_vec(),
        variables: [("LD_LIBRARY_PATH", "/home/alice/lib:/opt/x/lib"), ("OMP_NUM_THREADS", "2")]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into(),
        ..Surroundings::default()
    });
    report.analysis.problems.push("/srv/lab/project/runs/quickstart/x of alice cannot be read".into());
    let text = "measured on secret-host by alice, see ~/notes/today.txt".into();
    report.analysis.comments.push(Comment { at_utc: "2026-11-20T18:42:09Z".into(), text });
    report
}

/// Every file of a folder, the names of files included.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                let bytes = fs_err::read(&path).unwrap();
                found.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    found
}

#[test]
fn an_anonymous_report_has_no_host_no_user_and_no_path_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let [usual, anonymous] = ["usual", "anonymous"].map(|name| folder.path().join(name));
    write(&report(), &usual).unwrap();
    let usual = files(&usual);
    for name in NAMES {
        assert!(
            usual.iter().any(|(_, text)| text.contains(name)),
            "{name} is in no usual report, so that its absence shows nothing"
        );
    }
    write(&report().anonymous(Some(Path::new("/home/alice")), Some("alice")), &anonymous).unwrap();
    let files = files(&anonymous);
    assert!(files.iter().any(|(name, _)| name.ends_with(".svg")), "figures are written, too");
    for (file, text) in &files {
        for name in NAMES {
            let line = text.lines().find(|line| line.contains(name));
            assert_eq!(line, None, "{file} has {name}");
        }
    }
    let page = files.iter().find(|(name, _)| name.ends_with("report.md")).unwrap();
    for stays in ["Some CPU", "2.14.1", "6.1.0", "OMP\\_NUM\\_THREADS", "today.txt"] {
        assert!(page.1.contains(stays), "{stays} stays");
    }
    let read = Report::read(&anonymous.join("quickstart/report.json")).unwrap();
    assert_eq!(read.analysis.cells.len(), report().analysis.cells.len(), "and it can be read again");
}

#[test]
fn a_report_that_was_read_is_made_anonymous_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    fs_err::write(&path, collo_report::json(&report()).to_string()).unwrap();
    let read = Report::read(&path).unwrap().anonymous(None, Some("alice"));
    write(&read, &folder.path().join("out")).unwrap();
    for (file, text) in files(&folder.path().join("out")) {
        for name in ["node7", "alice", "/home/", "LD_LIBRARY_PATH", "f00dfeed"] {
            assert!(!text.contains(name), "{file} has {name}");
        }
    }
}
