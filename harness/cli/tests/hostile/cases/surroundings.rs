//! Environments and places that nobody tried: collo works, or says what is missing; and what it stored there it finds again.

use std::os::unix::ffi::OsStringExt;

use crate::hostile::case::{Case, case, hold};

const KIND: &str = "environments and places";

pub fn cases() -> Vec<Case> {
    let works = |name: &str, shell: &str| case(KIND, name).under(shell);
    let either = |name: &str, shell: &str| works(name, shell).exits(&[0, 2, 3]);
    let lies = |name: &str, folder: &str| case(KIND, name).in_folder(folder);
    vec![
        either("no_home", "unset HOME XDG_STATE_HOME COLLO_STATE"),
        either("no_path", "unset PATH").looks(|scene, said| {
            // Whose program is missing is no crash of the member.
            let crashed = scene.runs().values().any(|r| r.record.outcome.as_str() == "crashed");
            hold(!crashed && !said.stderr.contains("``"), || "a member is said to have crashed where nothing was started".into())
        }),
        either("path_leads_nowhere", "PATH=/nonexistent; export PATH"),
        either("empty_environment", "exec env -i COLLO_TEST_MARK=\"$COLLO_TEST_MARK\" \"$COLLO\" \"$@\""),
        works("home_cannot_be_written", "HOME=/proc; export HOME; unset XDG_STATE_HOME XDG_CACHE_HOME"),
        works("home_is_a_file", "HOME=/etc/passwd; export HOME"),
        works("home_is_relative", "HOME=here; export HOME"),
        works("temporary_folder_is_missing", "TMPDIR=/nonexistent; export TMPDIR").exits(&[0, 3]).sample(),
        works("temporary_folder_is_a_file", "TMPDIR=/etc/passwd; export TMPDIR").exits(&[0, 3]),
        works("umask_0", "umask 0"),
        works("umask_777", "umask 777").exits(&[0, 3, 4]),
        works("locale_c", "LC_ALL=C; LANG=C; export LC_ALL LANG"),
        works("locale_that_is_missing", "LC_ALL=xx_YY.KOI8; export LC_ALL"),
        works("time_zone_that_is_missing", "TZ=Nowhere/Never; export TZ"),
        works("terminal_that_is_unknown", "TERM=$(printf '\\033[2J'); export TERM"),
        works(
            "python_variables",
            "PYTHONHOME=/nonexistent; PYTHONSTARTUP=/dev/zero; PYTHONPATH=/dev/null; export PYTHONHOME PYTHONSTARTUP PYTHONPATH",
        )
        .exits(&[0, 1, 3]),
        works("a_megabyte_of_environment", "BIG=$(head -c 100000 /dev/zero | tr '\\0' x); export BIG"),
        works("a_variable_that_is_no_text", "export BYTES=\"$(printf '\\377\\376')\""),
        works(
            "collo_variables_of_another_member",
            "COLLO_FD=3; COLLO_MEMBER=9; COLLO_MEMBERS=9; export COLLO_FD COLLO_MEMBER COLLO_MEMBERS",
        ),
        works("no_standard_input", "exec <&-"),
        works("no_standard_output", "exec >&-").exits(&[0, 3]),
        works("no_standard_error", "exec 2>&-"),
        works("no_streams_at_all", "exec <&- >&- 2>&-").exits(&[0, 3]),
        works("many_descriptors_are_open", "for i in 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\"; done"),
        either("folder_was_removed", "mkdir -p \"$ASIDE/gone\"; cd \"$ASIDE/gone\"; rmdir \"$ASIDE/gone\"").exits(&[2, 3]),
        either("folder_is_the_root", "cd /").exits(&[2, 3]),
        works("ignored_signals", "trap '' INT TERM HUP PIPE CHLD"),
        lies("folder_with_spaces", "a b  c"),
        // A list of folders, such as PYTHONPATH, has no way to say it.
        lies("folder_with_a_colon", "a:b").refused().says("hint"),
        lies("folder_with_quotes", "a'b\"c$(true)`true`"),
        lies("folder_with_a_newline", "a\nb").exits(&[0, 2, 3]),
        lies("folder_that_looks_like_an_option", "--help"),
        lies("folder_with_a_long_name", &"x".repeat(200)),
        case(KIND, "folder_that_is_no_text").in_folder(std::ffi::OsString::from_vec(b"a\xff\xfe".to_vec())).refused(),
    ]
}
