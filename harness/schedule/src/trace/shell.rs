//! Scripts of a shell, as far as they sleep and submit. In: lines of bash. Out: their commands, whether each is executed exactly once and in its
//! order, and how long a `sleep` takes. The grammar is that of the bash manual, chapter "Shell Commands"; nothing is executed.

/// A command of a line.
pub(super) struct Command<'a> {
    pub words: Vec<&'a str>,
    /// Parentheses that it opens, less those that it closes.
    opens: i32,
    /// Whether it begins a function: `name()`.
    begins_function: bool,
    end: End,
    in_background: bool,
}

/// What separates a command from the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Next,
    And,
    Or,
    Pipe,
    Background,
}

/// The commands of a line, without its comment. Words within quotes count as words of their own: `bash -c "sleep 5"`.
pub(super) fn commands(line: &str) -> Vec<Command<'_>> {
    let comment = line.char_indices().find(|(at, c)| *c == '#' && !line[..*at].ends_with(|c: char| !c.is_whitespace()));
    let line = &line[..comment.map_or(line.len(), |(at, _)| at)];
    let bytes = line.as_bytes();
    let mut all: Vec<Command<'_>> = Vec::new();
    let (mut from, mut at, mut opens, mut quote) = (0, 0, 0, None);
    while at < bytes.len() {
        let (before, next) = (at.checked_sub(1).map(|before| bytes[before]), bytes.get(at + 1));
        let end = match (bytes[at], next) {
            (b'&', Some(b'&')) => Some((End::And, 2)),
            (b'|', Some(b'|')) => Some((End::Or, 2)),
            // Part of a redirection: `2>&1`, `&>file`.
            (b'&', Some(b'>')) => None,
            (b'&', _) if matches!(before, Some(b'>' | b'<')) => None,
            (b'&', _) => Some((End::Background, 1)),
            (b'|', _) => Some((End::Pipe, 1)),
            (b';', _) => Some((End::Next, 1)),
            _ => None,
        };
        match (bytes[at], quote) {
            (c @ (b'"' | b'\''), None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (b'(', None) => opens += 1,
            (b')', None) => opens -= 1,
            _ => {}
        }
        if let Some((end, length)) = end {
            all.push(command(&line[from..at], std::mem::take(&mut opens), end));
            from = at + length;
        }
        at += end.map_or(1, |(_, length)| length);
    }
    all.push(command(&line[from..], opens, End::Next));
    // All of a list is in the background: `sleep 5 && submit x &`.
    let mut in_background = false;
    for command in all.iter_mut().rev() {
        in_background = match command.end {
            End::Background => true,
            End::Next => false,
            End::And | End::Or | End::Pipe => in_background,
        };
        command.in_background = in_background;
    }
    all
}

fn command(text: &str, opens: i32, end: End) -> Command<'_> {
    let words = text.split(|c: char| c.is_whitespace() || "()\"'".contains(c)).filter(|word| !word.is_empty()).collect();
    let (name, rest) = text.split_once('(').unwrap_or((text, ""));
    let is_name = !name.trim().is_empty() && !name.trim().contains(|c: char| c.is_whitespace() || "$\"'=".contains(c));
    Command { words, opens, begins_function: is_name && rest.trim_start().starts_with(')'), end, in_background: false }
}

/// What is executed as often as something else decides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unclear {
    Loop,
    Condition,
    Function,
}

impl std::fmt::Display for Unclear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unclear::Loop => "in a loop",
            Unclear::Condition => "behind a condition",
            Unclear::Function => "in a function",
        })
    }
}

impl Unclear {
    pub fn way_out(self) -> &'static str {
        match self {
            Unclear::Loop => "write the loop out: lines such as `sleep 73` and `submit NAME.rad`, in their order",
            Unclear::Condition | Unclear::Function => {
                "write out what is executed: lines such as `sleep 73` and `submit NAME.rad`, in their order"
            }
        }
    }
}

/// Where a script is: within which of its blocks.
#[derive(Default)]
pub(super) struct Place {
    /// The blocks that are open; `None` of a group, which is executed as what is outside of it.
    blocks: Vec<Option<Unclear>>,
    /// Whether the name of a function was read, and not yet its `{`.
    awaits_body: bool,
    /// Whether the command is executed only if the one before succeeds or fails, which is not known.
    depends: bool,
    parentheses: i32,
    /// Whether the command is a test of something: `[ -f x ]`.
    is_test: bool,
}

impl Place {
    /// Read the words of the shell at the begin of a command, which open and close blocks.
    pub fn enter(&mut self, command: &Command<'_>) {
        let mut words = command.words.iter().copied().peekable();
        if command.begins_function || words.peek() == Some(&"function") {
            self.awaits_body = true;
            words.next();
            while words.next_if(|word| *word != "{").is_some() {}
        }
        while let Some(word) = words.next() {
            match word {
                "do" | "then" | "else" | "elif" | "!" => {}
                "time" => while words.next_if(|word| word.starts_with('-')).is_some() {},
                "{" => self.blocks.push(std::mem::take(&mut self.awaits_body).then_some(Unclear::Function)),
                "while" | "until" => self.blocks.push(Some(Unclear::Loop)),
                "if" => self.blocks.push(Some(Unclear::Condition)),
                "done" | "fi" | "esac" | "}" => drop(self.blocks.pop()),
                "for" | "select" => return self.blocks.push(Some(Unclear::Loop)),
                "case" => return self.blocks.push(Some(Unclear::Condition)),
                "[" | "[[" | "test" => return self.is_test = true,
                _ => return,
            }
        }
    }

    /// Why it is not known how often the command is executed; `None` if it is once.
    pub fn unclear(&self) -> Option<Unclear> {
        let block = self.blocks.iter().rev().find_map(|block| *block);
        block.or(self.depends.then_some(Unclear::Condition))
    }

    /// How a command runs beside what follows it, if it does.
    pub fn beside(&self, command: &Command<'_>) -> Option<&'static str> {
        // What encloses it may be in the background as a whole: `{ sleep 5; submit x; } &`.
        let (in_parentheses, in_braces) = (self.parentheses > 0 || command.opens != 0, self.blocks.contains(&None));
        match command.in_background {
            true => Some("in the background"),
            false if in_parentheses => Some("in parentheses"),
            false => in_braces.then_some("in braces"),
        }
    }

    /// Read how a command ends.
    pub fn leave(&mut self, command: &Command<'_>) {
        self.parentheses = (self.parentheses + command.opens).max(0);
        // A list goes on in the next line behind `&&`, `||` and a backslash.
        if matches!(command.words[..], [] | ["\\"]) {
            return;
        }
        let is_test = std::mem::take(&mut self.is_test);
        self.depends = match command.end {
            End::Or => true,
            End::And => self.depends || is_test,
            End::Pipe => self.depends,
            End::Next | End::Background => false,
        };
    }
}

/// Why the time of a `sleep` is unknown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoTime<'a> {
    Absent,
    /// By this word.
    Unknown(&'a str),
}

/// The seconds of `sleep 1m 30`: numbers with one of `s`, `m`, `h`, `d` or nothing behind, which are added (sleep(1) of GNU coreutils).
pub(super) fn slept_s<'a>(words: &[&'a str]) -> Result<f64, NoTime<'a>> {
    let mut sum_s = None;
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        // A redirection, and its file.
        let redirected = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if redirected.starts_with(['<', '>']) {
            if redirected.trim_start_matches(['<', '>', '&', '|']).is_empty() {
                words.next();
            }
            continue;
        }
        let (number, unit_s) = match word.char_indices().last() {
            Some((at, 's')) => (&word[..at], 1.0),
            Some((at, 'm')) => (&word[..at], 60.0),
            Some((at, 'h')) => (&word[..at], 3600.0),
            Some((at, 'd')) => (&word[..at], 86_400.0),
            _ => (word, 1.0),
        };
        let seconds = number.parse().ok().map(|number: f64| number * unit_s).filter(|s| (0.0..=1e9).contains(s));
        let Some(seconds) = seconds else { return Err(NoTime::Unknown(word)) };
        sum_s = Some(sum_s.unwrap_or(0.0) + seconds);
    }
    sum_s.ok_or(NoTime::Absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_as_long_as_gnus_or_the_word_that_is_not_a_time_is_named() {
        let of = |text: &'static str| slept_s(&text.split_whitespace().collect::<Vec<_>>());
        for (text, seconds) in [("60", 60.0), ("1m 30", 90.0), (".5h", 1800.0), ("1d 1h 1s", 90_001.0), ("1e2", 100.0)] {
            assert_eq!(of(text), Ok(seconds), "{text}");
        }
        for (text, word) in [
            ("60 $X", "$X"),
            ("$X 60", "$X"),
            ("5ms", "5ms"),
            ("5mm", "5mm"),
            ("5ss", "5ss"),
            ("5x", "5x"),
            ("s", "s"),
            ("-1", "-1"),
            ("nan", "nan"),
            ("inf", "inf"),
            ("1e9 1e99", "1e99"),
            ("60 \\", "\\"),
        ] {
            assert_eq!(of(text), Err(NoTime::Unknown(word)), "{text}");
        }
        assert_eq!(of(""), Err(NoTime::Absent));
        assert_eq!([of("5 >/dev/null"), of("5 2> log 1"), of(">>log 5 2>&1")], [Ok(5.0), Ok(6.0), Ok(5.0)]);
    }
}
