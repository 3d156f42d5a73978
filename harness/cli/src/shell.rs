//! Words as a shell reads them.

use std::ffi::OsStr;
use std::fmt::Write;

use collo_text::quoting;

/// A word for the shell, in one line of visible text: what a terminal would obey stands escaped in `$'…'` (POSIX.1-2024, Shell Command
/// Language, 2.2.4 Dollar-Single-Quotes), which bash, ksh and zsh have, too.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+%:=@,".contains(c);
    match &*word {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => word.into_owned(),
        seen if !seen.contains(quoting::is_unseen) => format!("'{}'", seen.replace('\'', r"'\''")),
        unseen => dollar_quoted(unseen),
    }
}

/// Octal escapes of bytes have three digits, so that no character after them is taken for one.
fn dollar_quoted(word: &str) -> String {
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            // Writing into a text cannot fail.
            c if quoting::is_unseen(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn bash_reads_a_word_as_it_was_and_no_terminal_obeys_it() {
        for word in [
            "plain",
            "two words",
            "it's",
            "a $(touch x) `b`",
            "back\\slash",
            "line\nerror: x",
            "\u{1b}]52;c;eA==\u{7}7",
            "\u{202e}ab'c",
            "",
        ] {
            let quoted = quoted(word);
            assert!(!quoted.contains(quoting::is_unseen), "{quoted:?}");
            let answer = Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).output().expect("bash starts");
            assert_eq!(String::from_utf8_lossy(&answer.stdout), word, "{quoted}");
        }
    }
}
