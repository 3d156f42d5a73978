//! Makes untrusted text safe for a terminal. Members, workloads, data sets, experiments and other people's campaigns may contain
//! anything; none of it may move the cursor, set the clipboard, reverse the direction of writing, or look like a line of ours.

use std::borrow::Cow;
use std::fmt::Write;

/// One line: everything that is not visible text is escaped, including line ends: `\x0a`, `\x1b`, `\u{202e}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The words of a text in one line, a space between them; what is not visible is escaped.
pub fn words(text: &str) -> String {
    line(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Several lines: the same, but line ends are kept.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n')
}

/// True for characters that a terminal obeys or shows as nothing: control characters, C0 and C1 (ECMA-48); line ends and changes
/// of direction (Unicode Standard Annex 9: Bidirectional Algorithm, 2.1 to 2.6); characters without width; tags; and annotation
/// characters.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A value as written, in backticks: control characters escaped, truncated if it would fill the screen.
pub fn quoted(written: &str) -> String {
    let begin: String = written.chars().take(61).collect();
    let mut shown = line(&begin).into_owned();
    if written.chars().count() > 60 {
        shown = shown.chars().take(60).chain(['…']).collect();
    }
    format!("`{shown}`")
}

/// A string as TOML and YAML write it, whatever it contains: JSON's strings are YAML's (yaml.org/spec/1.2.2, 7.3.1), and TOML's but for one
/// character that TOML escapes too.
pub fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |c: char| is_unseen(c) && !stays(c);
    if !text.chars().any(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing into a text cannot fail.
        let _ = match u32::from(c) {
            _ if !is_bad(c) => write!(shown, "{c}"),
            code @ 0..=0xff => write!(shown, "\\x{code:02x}"),
            code => write!(shown, "\\u{{{code:x}}}"),
        };
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        let clipboard = "\u{1b}]52;c;cm0gLXJmIH4=\u{7}";
        assert_eq!(line(clipboard), "\\x1b]52;c;cm0gLXJmIH4=\\x07");
        assert_eq!(line("\u{9b}2J\u{7f}\r\t"), "\\x9b2J\\x7f\\x0d\\x09", "C1, too");
        assert_eq!(line("x\n✓ 6/6 runs completed"), "x\\x0a✓ 6/6 runs completed");
        assert_eq!(lines("x\ny\r\n"), "x\ny\\x0d\n");
    }

    #[test]
    fn what_turns_or_hides_text_is_shown_instead() {
        assert_eq!(line("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{2028}f"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}e\\u{2028}f");
        assert_eq!(line("\u{e0041}"), "\\u{e0041}");
    }

    #[test]
    fn text_of_any_script_stays_as_it_is() {
        for text in ["tiny×2 naive – 1.13× ÷ °C │ ✓", "größer 学習 обучение تدريب 🚀", ""] {
            assert!(matches!(line(text), Cow::Borrowed(t) if t == text));
        }
    }
}
