//! Texts of members, workloads and experiments that a terminal would obey, in everything that is printed.

use std::time::Duration;

use crate::hostile::case::{Case, Check, case, ended, hold, member};
use crate::hostile::scene::{Said, Scene};

const KIND: &str = "texts that a terminal obeys";

/// Control characters, and what turns a line around; a display's own colours are not there without a terminal.
fn is_plain(said: &Said) -> Check {
    let obeyed =
        |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = format!("{}\n{}", said.stderr, said.stdout);
    let line = text.lines().find(|line| line.chars().any(obeyed));
    hold(line.is_none(), || format!("a terminal would obey {line:?}"))?;
    let forged = text.lines().find(|line| line.trim_start().starts_with("✓ 6/6 runs"));
    hold(forged.is_none(), || "a text of a member stands as a line of collo's own".into())
}

fn everywhere(scene: &Scene, said: &Said) -> Check {
    is_plain(said)?;
    for arguments in [&["show", "last"][..], &["report", "last"], &["list"], &["list", "workloads"], &["verify"], &["status"]] {
        let said = scene.collo(arguments, Duration::from_secs(60))?;
        ended(&said).and_then(|()| is_plain(&said)).map_err(|e| format!("`collo {}`: {e}", arguments.join(" ")))?;
    }
    Ok(())
}

pub fn cases() -> Vec<Case> {
    let said_by = |how| member(KIND, how).exits(&[0, 1]).looks(everywhere);
    let described = |name, line: &'static str| {
        case(KIND, name).looks(everywhere).before(move |scene: &Scene| {
            let path = scene.at("workloads/hostile/workload.toml");
            let text = fs_err::read_to_string(&path).map_err(|e| e.to_string())?;
            let rest = text.split_once('\n').expect("it has lines").1;
            fs_err::write(path, format!("{line}\n{rest}")).map_err(|e| e.to_string())
        })
    };
    vec![
        said_by("error_of_escapes").sample(),
        said_by("hello_of_escapes"),
        said_by("log_of_escapes"),
        said_by("protocol_of_escapes"),
        described("description_of_escapes", r#"description = "a \u001b]0;owned\u0007 \u009b31m b""#),
        described("description_of_lines", r#"description = "a\r\n✓ 6/6 runs completed\u202e""#),
    ]
}
