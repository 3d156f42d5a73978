//! Commands of collo in texts, as the user would type them. In: a text, and the command. Out: the text with that command.
//!
//! `collo --simulate MODEL VERB` is written here alone: by the terminal for hints, by pages for campaigns of a simulated GPU.

use std::borrow::Cow;

/// How texts name collo.
pub const COLLO: &str = "collo";
/// What a command has before the model that it simulates.
const SIMULATE: &str = " --simulate ";

/// A command that simulates this GPU model.
pub fn simulating(command: &str, model: &str) -> String {
    format!("{command}{SIMULATE}{model}")
}

/// A text in which commands that simulate this GPU model do not name it: where a simulation works already.
pub fn without_simulation<'t>(text: &'t str, model: &str) -> Cow<'t, str> {
    let simulated = simulating(COLLO, model) + " ";
    if text.contains(&simulated) { Cow::Owned(text.replace(&simulated, "collo ")) } else { Cow::Borrowed(text) }
}

/// A text with this command in the place of `collo`, where a command begins: `is_verb` judges the word behind it, given what stands before.
/// A command that simulates names its model once.
pub fn in_place_of_collo<'t>(text: &'t str, command: &str, is_verb: impl Fn(Option<char>, &str) -> bool) -> Cow<'t, str> {
    if command == COLLO {
        return Cow::Borrowed(text);
    }
    let mut typed = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let begins = before.is_none_or(|b: char| b == '`' || b == ' ');
        let after = rest.strip_prefix(COLLO).filter(|after| begins && after.starts_with(' '));
        let is_command = after.is_some_and(|after| match after.starts_with(SIMULATE) {
            true => !command.contains(SIMULATE),
            false => is_verb(before, after[1..].split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default()),
        });
        match after.filter(|_| is_command) {
            Some(after) => {
                typed.push_str(command);
                before = Some('o');
                rest = after;
            }
            None => {
                typed.push(c);
                before = Some(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Cow::Owned(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, command: &str) -> String {
        in_place_of_collo(text, command, |_, word| ["run", "show", "plan"].contains(&word)).into_owned()
    }

    #[test]
    fn a_command_stands_in_the_place_of_collo_where_a_verb_follows() {
        assert_eq!(typed("next: collo run x     or `collo show last`", "sim"), "next: sim run x     or `sim show last`");
        assert_eq!(typed("collo plan x", "sim"), "sim plan x");
        for other in ["ended by a killed collo: 7", "/opt/collo run", "collo never prints this", "collo-x run", "Größe: collo"]
        {
            assert_eq!(typed(other, "sim"), other);
        }
    }

    #[test]
    fn a_simulation_is_named_once() {
        let simulated = simulating(COLLO, "a100-40gb");
        assert_eq!(typed("next: collo run x", &simulated), "next: collo --simulate a100-40gb run x");
        let again = typed("next: collo --simulate a100-40gb run x", &simulated);
        assert_eq!(again, "next: collo --simulate a100-40gb run x");
        let other = typed("next: collo --simulate h100-80gb run x", &simulated);
        assert_eq!(other, "next: collo --simulate h100-80gb run x", "and another model stays");
        assert_eq!(typed("`collo --simulate a100-40gb run x`", "collo -C p"), "`collo -C p --simulate a100-40gb run x`");
        let text = "`collo --simulate a100-40gb run x`, `collo --simulate h100-80gb run x`";
        assert_eq!(without_simulation(text, "a100-40gb"), "`collo run x`, `collo --simulate h100-80gb run x`");
    }
}
