//! More than one collo in a project, and people who tidy up while it measures.

use std::time::Duration;

use crate::hostile::case::{Case, Check, case, end_of, ended, hold, one};
use crate::hostile::scene::{Live, Scene};
use crate::hostile::signals_to::trains;

const KIND: &str = "company in one project";
const TIMEOUT: Duration = Duration::from_secs(60);

/// While a member of `x` trains, these verbs end with one of these codes.
fn meanwhile(name: &str, verbs: &'static [(&'static [&'static str], &'static [i32])]) -> Case {
    // Long enough for a slow machine to do all of that.
    let long = "[axes]\nworkload = \"sleep\"\nseconds = 3\nitems = 100\n";
    case(KIND, name).of(long).meanwhile(|scene, live| {
        trains(scene, live)?;
        verbs.iter().try_for_each(|(arguments, codes)| verb(scene, arguments, codes))
    })
}

fn verb(scene: &Scene, arguments: &[&str], codes: &[i32]) -> Check {
    let said = scene.collo(arguments, TIMEOUT)?;
    let tell = |what: String| format!("`collo {}`: {what}\n{}", arguments.join(" "), end_of(&said));
    ended(&said).map_err(tell)?;
    hold(codes.contains(&said.code), || tell(format!("it ended with {}, not {codes:?}", said.code)))
}

/// So many at one moment; each ends well.
fn at_once(name: &str, arguments: &'static [&'static str], count: usize) -> Case {
    case(KIND, name).act(move |scene| {
        let all: Vec<Live> = (0..count).map(|_| scene.start(arguments)).collect();
        for live in all {
            let said = live.ends(TIMEOUT)?;
            ended(&said)?;
            hold(said.code == 0, || format!("one of {count} ended with {}\n{}", said.code, end_of(&said)))?;
        }
        Ok(())
    })
}

/// Something is taken away while a member trains.
fn removed(name: &str, what: &'static str) -> Case {
    case(KIND, name).of(one("hostile", "daemon")).exits_somehow().meanwhile(move |scene, live| {
        trains(scene, live)?;
        fs_err::remove_dir_all(scene.at(what)).map_err(|e| e.to_string())
    })
}

pub fn cases() -> Vec<Case> {
    vec![
        meanwhile(
            "the_same_experiment_twice",
            &[(&["run", "x", "--no-report"], &[3]), (&["run", "x", "--new", "--no-report"], &[0, 3])],
        ),
        meanwhile(
            "every_verb_while_it_measures",
            &[
                (&["list"], &[0]),
                (&["status"], &[0, 4]),
                (&["show", "last"], &[0]),
                (&["verify", "x/last"], &[0, 1]),
                (&["report", "x/last"], &[0, 1, 3, 4]),
                (&["plan", "x"], &[0]),
            ],
        ),
        meanwhile(
            "pruned_while_it_measures",
            &[(&["prune", "--experiment", "x", "--older-than", "0s", "--unfinished", "--yes"], &[0, 1, 3])],
        ),
        at_once("eight_reports_at_once", &["report", "good/last"], 8),
        at_once("eight_readers_at_once", &["verify", "good/last"], 8),
        removed("its_campaign_removed_while_it_measures", "runs/x"),
        removed("its_workload_removed_while_it_measures", "workloads/sleep").exits(&[0, 4]),
    ]
}
