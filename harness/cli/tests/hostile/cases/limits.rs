//! Limits of a user, streams and disks that are full: collo stops with a sentence, and what is stored is safe.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::hostile::case::{Case, case, hold};

const KIND: &str = "limits, full streams and disks";

/// Whether a small file system of one's own can be mounted here.
fn can_mount() -> bool {
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .process_group(0)
        .output();
    tried.is_ok_and(|o| o.status.success())
}

/// In a mount namespace of its own where this folder is so small.
fn small(name: &str, folder: &str, options: &str) -> Case {
    // What was stored before stays visible.
    let mount = format!(
        "mkdir -p {folder}; cp -a {folder} \"$ASIDE/kept\"; mount -t tmpfs -o {options} tmpfs {folder}; \
         cp -a \"$ASIDE/kept/.\" {folder}/ 2>/dev/null; exec \"$COLLO\" \"$@\""
    );
    case(KIND, name).under(format!("exec unshare --user --map-root-user --mount sh -c '{mount}' sh \"$@\"")).exits(&[0, 1, 3, 4])
}

pub fn cases() -> Vec<Case> {
    let under = |name: &str, shell: &str| case(KIND, name).under(shell).exits(&[0, 1, 3, 4]);
    let streams = |name: &str, shell: &str| case(KIND, name).under(shell);
    let mut cases = vec![
        streams("standard_error_is_full", "exec 2>/dev/full").sample(),
        streams("standard_output_is_full", "exec >/dev/full").exits(&[4]),
        streams("both_are_full", "exec >/dev/full 2>&1").exits(&[4]),
        // What `| head -1` does to whoever writes on.
        streams(
            "standard_error_goes_to_a_reader_that_ends",
            "mkfifo \"$ASIDE/p\"; head -1 < \"$ASIDE/p\" >/dev/null & exec 2> \"$ASIDE/p\"",
        ),
        streams(
            "both_go_to_a_reader_that_ends",
            "mkfifo \"$ASIDE/p\"; head -1 < \"$ASIDE/p\" >/dev/null & exec > \"$ASIDE/p\" 2>&1",
        )
        .exits(&[0, 3]),
        verbs_on_a_full_disk(),
        under("files_of_4_kib", "ulimit -f 8"),
        under("files_of_64_kib", "ulimit -f 128"),
        under("files_of_no_size", "ulimit -f 0"),
        under("8_descriptors", "ulimit -n 8"),
        under("20_descriptors", "ulimit -n 20"),
        under("40_descriptors", "ulimit -n 40"),
        under("600_mb_of_addresses", "ulimit -v 600000"),
        under("1_gb_of_addresses", "ulimit -v 1000000"),
        under("small_stack", "ulimit -s 1024"),
        under("no_core_no_locked_memory", "ulimit -c 0; ulimit -l 0"),
    ];
    if can_mount() {
        for (name, options) in [
            ("disk_of_16_kib", "size=16k"),
            ("disk_of_300_kib", "size=300k"),
            ("disk_of_400_kib", "size=400k"),
            ("disk_of_few_inodes", "nr_inodes=60"),
        ] {
            cases.push(small(name, "runs", options));
        }
        cases.push(small("reports_on_a_full_disk", "reports", "size=4k").exits(&[0, 1, 3, 4]));
        cases.push(
            small("state_on_a_full_disk", ".state", "size=4k,nr_inodes=2").on("a100-40gb").of(crate::hostile::cases::cards::MPS),
        );
    } else {
        eprintln!("left out: this system does not let its users mount anything of their own");
    }
    cases
}

/// `list`, `verify` and the others with a full stdout.
fn verbs_on_a_full_disk() -> Case {
    case(KIND, "verbs_with_a_full_standard_output").act(|scene| {
        for arguments in [
            &["list"][..],
            &["verify", "good/last"],
            &["show", "good/last"],
            &["report", "good/last", "--json"],
            &["list", "modes"],
            &["schema", "experiment"],
        ] {
            let said = scene.start_under("exec >/dev/full", arguments).ends(std::time::Duration::from_secs(30))?;
            let called = format!("`collo {}`", arguments.join(" "));
            crate::hostile::case::ended(&said).map_err(|e| format!("{called}: {e}"))?;
            hold(said.code == 3, || format!("{called} ends with {}, not 3\n{}", said.code, crate::hostile::case::end_of(&said)))?;
        }
        Ok(())
    })
}
