//! Two users of one machine, and one that is root: nobody's files make root harm anything. Only where the tests run as root.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::unistd::Uid;

use super::stray::verb;
use crate::hostile::case::{Case, Check, case, end_of, ended, hold};
use crate::hostile::cases::cards::{FOUND, MIG, MPS, left_changed};
use crate::hostile::scene::Scene;

const KIND: &str = "two users";
const CARD: &str = "a100-40gb";
const NOBODY: u32 = 65534;

fn give(path: &Path) -> Check {
    let done = Command::new("chown").args(["-R", &format!("{NOBODY}:{NOBODY}")]).arg(path).status().map_err(|e| e.to_string())?;
    hold(done.success(), || format!("{} cannot be given away", path.display()))
}

/// A journal as collo writes it, but that it names this folder as a daemon's, put into a state folder; the card is as it was found.
fn forge(scene: &Scene, state: &Path, victim: &Path) -> Check {
    let written = left_changed(scene)?;
    let name = written.file_name().expect("named").to_os_string();
    let text = fs_err::read_to_string(&written).map_err(|e| e.to_string())?;
    let mut journal: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    journal["daemons"] = serde_json::json!([victim]);
    let said = scene.collo(&["restore"], Duration::from_secs(60))?;
    hold(said.code == 0, || format!("`collo restore` ended with {}", said.code))?;
    fs_err::create_dir_all(state).map_err(|e| e.to_string())?;
    fs_err::write(state.join(name), journal.to_string()).map_err(|e| e.to_string())
}

/// A folder of root's that somebody wants to be gone.
fn victim(scene: &Scene) -> std::path::PathBuf {
    let victim = scene.aside("victim");
    fs_err::create_dir_all(&victim).expect("a folder");
    fs_err::write(victim.join("precious"), "root's").expect("written");
    victim
}

fn is_there(scene: &Scene) -> Check {
    hold(scene.aside("victim/precious").is_file(), || "what a stranger's journal named is deleted".into())
}

/// Somebody else's state folder, with a journal that names what is root's, under this name and these rights.
fn planted(name: &str, mode: u32, owner: bool, verbs: &'static [&'static [&'static str]]) -> Case {
    case(KIND, name).on(FOUND).of(MPS).act(move |scene| {
        let victim = victim(scene);
        let state = scene.aside("state");
        forge(scene, &state, &victim)?;
        if owner {
            give(&state)?;
        }
        let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs_err::set_permissions(&state, rights).map_err(|e| e.to_string())?;
        for arguments in verbs {
            let said =
                scene.start_under("COLLO_STATE=\"$ASIDE/state\"; export COLLO_STATE", arguments).ends(Duration::from_secs(60))?;
            ended(&said)?;
            is_there(scene).map_err(|e| format!("`collo {}`: {e}\n{}", arguments.join(" "), end_of(&said)))?;
        }
        Ok(())
    })
}

/// Two collos with a state folder each want one card, the second so much later.
fn two_at_once(name: &str, later: Duration) -> Case {
    case(KIND, name)
        .on(format!("{CARD},mig=2×3g.20gb"))
        .of(MIG)
        .exits(&[0, 1, 3])
        .meanwhile(move |scene, _| {
            std::thread::sleep(later);
            scene.write("experiments/y.toml", &crate::sim::short(MPS));
            let under = "COLLO_STATE=\"$ASIDE/second\"; export COLLO_STATE";
            let second = scene.start_under(under, &["run", "y", "--no-report"]).ends(Duration::from_secs(60))?;
            ended(&second)?;
            // One of them has the card, or one after the other had it.
            hold(matches!(second.code, 0 | 3), || format!("the second ends with {}:\n{}", second.code, end_of(&second)))
        })
        .looks(|_, first| hold(matches!(first.code, 0 | 3), || "runs of the first failed".into()))
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        two_at_once("two_collos_at_the_same_moment", Duration::ZERO),
        two_at_once("two_collos_half_a_second_apart", Duration::from_millis(500)),
        two_at_once("two_collos_one_and_a_half_seconds_apart", Duration::from_millis(1500)),
        planted("own_journal_that_names_strange_folders", 0o700, false, &[&["restore"], &["run", "x", "--no-report"]]),
    ];
    if !Uid::effective().is_root() {
        crate::support::skip::skip("root", "cases with two users need root");
        return cases;
    }
    cases.extend([
        planted("journal_of_a_stranger", 0o755, true, &[&["restore"], &["run", "x", "--no-report"], &["status"]]).sample(),
        planted("journal_in_a_folder_that_all_may_write", 0o777, false, &[&["restore"], &["run", "x", "--no-report"]]),
        no_home(),
        as_nobody("as_nobody", ""),
        as_nobody("as_nobody_with_30_processes", "ulimit -u 30;"),
        as_nobody("as_nobody_with_3_processes", "ulimit -u 3;"),
        sudo_profiles(),
    ]);
    cases
}

/// Without HOME, what a stranger put into /tmp must not be believed. A folder that is there is not touched.
fn no_home() -> Case {
    case(KIND, "no_home_and_a_stranger_in_tmp").on(FOUND).of(MPS).act(|scene| {
        let planted = Path::new("/tmp/.local");
        if planted.exists() {
            return Ok(());
        }
        let victim = victim(scene);
        let state = planted.join("state/collo");
        forge(scene, &state, &victim)?;
        give(planted)?;
        let said = scene
            .start_under("unset HOME XDG_STATE_HOME COLLO_STATE", &["run", "x", "--no-report"])
            .ends(Duration::from_secs(60));
        let removed = fs_err::remove_dir_all(planted);
        let said = said?;
        removed.map_err(|e| e.to_string())?;
        ended(&said)?;
        is_there(scene)
    })
}

/// A normal user, to whom the project belongs.
fn as_nobody(name: &str, limit: &'static str) -> Case {
    let under = format!(
        "HOME=\"$PWD\"; export HOME; exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sh -c '{limit} exec \"$COLLO\" \"$@\"' sh \"$@\""
    );
    let codes: &[i32] = if limit.is_empty() { &[0] } else { &[0, 1, 2, 3, 4] };
    case(KIND, name).under(under).exits(codes).before(|scene| give(&scene.at("")))
}

/// `sudo collo mig apply` of a group that may do just that: the layouts are root's, not those of the caller's folder.
fn sudo_profiles() -> Case {
    case(KIND, "mig_apply_with_layouts_of_the_callers_own").on(CARD).of(MPS).act(|scene| {
        let path = scene.at("mig-profiles/a100-40gb.toml");
        let text = fs_err::read_to_string(&path).map_err(|e| e.to_string())?;
        let line = text.lines().find(|l| l.starts_with("sevenths")).ok_or("no such layout")?;
        fs_err::write(&path, text.replace(line, "sevenths = [\"7g.40gb\"]")).map_err(|e| e.to_string())?;
        give(&scene.at("mig-profiles"))?;
        let said = scene
            .start_under("SUDO_UID=65534; SUDO_USER=nobody; export SUDO_UID SUDO_USER", &["mig", "apply", "sevenths"])
            .ends(Duration::from_secs(60))?;
        ended(&said)?;
        let cards = scene.card().cards();
        let made = cards["cards"][0]["instances"].as_array().map_or(0, Vec::len);
        hold(said.code == 0, || format!("`collo mig apply` ended with {}\n{}", said.code, end_of(&said)))?;
        hold(made == 7, || format!("{made} instances, not the seven of collo's own layout"))?;
        verb(scene, &["mig", "clear"], &[0])?;
        verb(scene, &["mig", "apply", "off"], &[0])
    })
}
