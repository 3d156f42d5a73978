//! Members that say what is not so, say too much, or will not end; each is a function in `members/`.

use std::time::Duration;

use collo_store::Verdict;
use nix::sys::signal::Signal;

use crate::hostile::case::{Case, case, hold, member, one};
use crate::hostile::scene::Scene;
use crate::hostile::signals_to::trains;

const MESSAGES: &str = "protocol: raw messages";
const FLOODS: &str = "floods";
const PROCESSES: &str = "hostile processes";
const FILES: &str = "files of a member";
const FOREIGN: &str = "foreign scripts";

pub fn cases() -> Vec<Case> {
    [messages(), floods(), processes(), files(), foreign()].into_iter().flatten().collect()
}

fn messages() -> Vec<Case> {
    // Not the protocol: the run is discarded and says why.
    let wrong = |how| member(MESSAGES, how).exits(&[1]).ends("protocol_error");
    // It may be taken for a member that broke, too.
    let broken = |how| member(MESSAGES, how).exits(&[1]).ends("protocol_error|crashed");
    // Right or wrong, no number comes of it that cannot be.
    let any = |how| member(MESSAGES, how).exits(&[0, 1]);
    vec![
        wrong("epoch_of_all_time").sample(),
        wrong("epoch_beyond_64_bits"),
        wrong("epoch_of_a_million_seconds"),
        wrong("epoch_at_boot"),
        wrong("epoch_in_the_future"),
        wrong("epoch_by_the_wall_clock"),
        wrong("epoch_in_milliseconds"),
        wrong("epoch_that_began_before_go"),
        wrong("epochs_before_go"),
        wrong("epochs_that_overlap"),
        wrong("epoch_index_repeated"),
        wrong("epoch_index_skipped"),
        wrong("epochs_counted_down"),
        wrong("six_measured_instead_of_one"),
        wrong("warm_up_told_as_measured"),
        wrong("measured_after_done"),
        wrong("done_without_epochs"),
        wrong("done_after_the_warm_up"),
        wrong("epoch_without_length"),
        wrong("epoch_that_ends_before_it_starts"),
        wrong("items_without_end"),
        wrong("items_below_zero"),
        wrong("loss_is_not_a_number"),
        wrong("done_before_go"),
        wrong("done_first"),
        wrong("never_ready"),
        wrong("never_hello"),
        any("hello_twice"),
        any("ready_twice"),
        wrong("hello_of_tomorrow"),
        any("hello_of_somebody_else"),
        any("hello_of_wrong_types"),
        wrong("not_json"),
        wrong("not_utf8"),
        wrong("zero_bytes"),
        wrong("not_an_object"),
        wrong("nested_without_end"),
        broken("half_a_line"),
        broken("channel_closed"),
        broken("channel_half_closed"),
        // Words in a log are no evidence of what it died of.
        member(MESSAGES, "out_of_memory_only_in_words").exits(&[1]).ends("crashed"),
        member(MESSAGES, "out_of_memory_long_ago").exits(&[1]).ends("crashed"),
        any("fails_after_done"),
    ]
}

fn floods() -> Vec<Case> {
    let flood = |how| member(FLOODS, how).exits_somehow().within(75);
    // Ctrl-C is heard while it floods.
    let stopped = |name: &'static str, how| {
        case(FLOODS, name).of(one("hostile", how)).exits(&[130, 1]).meanwhile(|scene, live| {
            trains(scene, live)?;
            // Soon: a fast one has said too much within a second, and its run is over.
            std::thread::sleep(Duration::from_millis(100));
            live.signal(Signal::SIGINT);
            let asked = std::time::Instant::now();
            while !live.has_ended() && asked.elapsed() < Duration::from_secs(15) {
                std::thread::sleep(Duration::from_millis(20));
            }
            hold(live.has_ended(), || "Ctrl-C was not heard within 15 s".into())
        })
    };
    vec![
        flood("flood_of_unknown_events"),
        stopped("ctrl_c_in_a_flood_of_unknown_events", "flood_of_unknown_events"),
        flood("flood_before_hello"),
        flood("flood_of_memory"),
        stopped("ctrl_c_in_a_flood_of_memory", "flood_of_memory"),
        flood("flood_of_blank_lines"),
        flood("flood_of_errors"),
        flood("flood_of_epochs").ends("protocol_error"),
        flood("line_without_end").ends("protocol_error"),
        flood("drop_by_drop").ends("timed_out"),
        flood("log_of_200_mb"),
        flood("log_without_a_line").ends("crashed"),
        flood("log_of_anything").ends("crashed"),
        flood("name_of_900_kb"),
    ]
}

fn processes() -> Vec<Case> {
    let fine = |how| member(PROCESSES, how);
    let dies = |how| member(PROCESSES, how).exits(&[1]);
    let both_die = |how| member(PROCESSES, how).exits(&[-9]).swept_by_the_next();
    vec![
        fine("daemon").sample(),
        fine("daemons_of_many_kinds"),
        fine("daemon_without_environment"),
        fine("daemon_before_hello"),
        fine("daemon_that_reaps"),
        fine("daemon_unseen"),
        dies("daemons_and_crash"),
        dies("daemon_that_holds_everything_open"),
        fine("chain_of_forks"),
        fine("many_children"),
        fine("children_in_namespaces"),
        dies("deaf").ends("timed_out"),
        fine("deaf_after_done").exits(&[0, 1]),
        dies("frozen").ends("timed_out"),
        dies("becomes_another_program").ends("timed_out|crashed|protocol_error"),
        fine("strange_name"),
        dies("kills_its_supervisor").ends("crashed").sample(),
        // Whoever stops the supervisor has the run; what must not be is that it goes on beside the next one.
        fine("stops_its_supervisor").exits(&[0, 1]),
        dies("stops_its_supervisor_and_hangs"),
        both_die("kills_its_supervisor_and_collo"),
        both_die("stops_its_supervisor_and_kills_collo"),
        fine("stops_collo_for_a_moment"),
        dies("kills_its_group").ends("crashed"),
        // Its solo run, and the one in which it kills the other.
        fine("kills_the_others").beside_another().exits(&[1]),
        fine("many_files_open"),
        fine("low_priority"),
        fine("children_with_real_time_clocks"),
    ]
}

fn files() -> Vec<Case> {
    let fine = |how| member(FILES, how);
    // What it wrote lies beside its script, and neither this campaign nor the next minds.
    let twice = |how: &str| {
        member(FILES, how).looks(|scene, _| {
            let again = scene.collo(&["run", "x", "--new", "--no-report"], Duration::from_secs(60))?;
            hold(again.code == 0, || {
                format!("a second campaign ends with {}:\n{}", again.code, crate::hostile::case::end_of(&again))
            })
        })
    };
    let harmed = |how| member(FILES, how).exits_somehow();
    // Its numbers are none, and what is in the place of its folder is as it was.
    let moved = |how| {
        let victim =
            |scene: &Scene| ["run.json", "epochs.parquet", "samples.parquet"].map(|name| scene.aside("victim").join(name));
        let put = move |scene: &Scene| {
            fs_err::create_dir(scene.aside("victim")).map_err(|e| e.to_string())?;
            victim(scene).into_iter().try_for_each(|file| fs_err::write(file, "theirs").map_err(|e| e.to_string()))
        };
        member(FILES, how).before(put).exits_somehow().looks(move |scene, _| {
            let files = fs_err::read_dir(scene.aside("victim")).map_err(|e| e.to_string())?.count();
            let is_same = victim(scene).iter().all(|file| std::fs::read(file).is_ok_and(|text| text == b"theirs"));
            hold(files == 3 && is_same, || "a folder was written into that a member linked".into())?;
            let valid = scene.runs().values().any(|run| run.record.validity.verdict == Verdict::Valid);
            hold(!valid, || "a run is valid whose folder was moved away".into())
        })
    };
    vec![
        twice("writes_beside_its_script").sample(),
        twice("leaves_links_beside_its_script"),
        twice("leaves_a_fifo_beside_its_script"),
        twice("leaves_a_name_that_is_no_text"),
        harmed("removes_its_run_folder"),
        moved("puts_a_link_in_place_of_its_run_folder").sample(),
        moved("moves_its_run_folder"),
        harmed("removes_the_events"),
        harmed("writes_a_result_of_its_own"),
        harmed("puts_a_folder_where_the_result_goes"),
        fine("links_its_folder_to_itself").exits(&[0, 1]),
        fine("fifo_in_the_run_folder").exits(&[0, 1]),
        fine("names_in_the_run_folder_that_are_no_text").exits(&[0, 1]),
        fine("replaces_its_log_by_a_link").exits(&[0, 1]),
        harmed("writes_into_what_is_stored"),
    ]
}

fn foreign() -> Vec<Case> {
    let of = |how: &str| case(FOREIGN, format!("printing_{how}")).of(one("printing", how)).exits(&[0, 1]);
    vec![
        of("seconds_huge").sample(),
        of("seconds_in_milliseconds"),
        of("all_at_once"),
        of("counts_backwards").exits(&[1]),
        of("seconds_not_a_number"),
        of("seconds_below_zero"),
        of("seconds_without_end"),
        of("without_a_line"),
        of("anything"),
        of("two_streams"),
        of("ends_at_once").exits(&[1]),
        of("fails_after_all"),
        of("closes_its_output"),
        of("reads_what_nobody_writes").exits(&[1]),
    ]
}
