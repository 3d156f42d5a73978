//! Files that are opened for reading outside of the one home of bounded reading, `text/src/regular.rs`. In: packages. Out: the functions
//! that open one themselves.
//!
//! Whatever a user, a member or an archive can put in the place of a file is read within limits: a pipe blocks, a device and a sparse
//! file never end. What only the kernel or collo itself can have written is in `ceilings.toml`, by function and with its reason. Seen are
//! `fs::read`, `fs::read_to_string`, `fs::copy`, `File::open` and `.read(true)`.

use crate::checkout::Package;
use crate::ratchet::{Count, Counts};
use crate::tokens::{Kind, Token};

/// The home of bounded reading.
const HOME: (&str, &str) = ("text", "regular.rs");

/// Functions that open files for reading, by `package/src/path function`. Development tools are left out.
pub fn counts(packages: &[Package]) -> Counts {
    let mut counts = Counts::new();
    for package in packages.iter().filter(|package| !package.is_tool()) {
        for (file, production) in package.production().filter(|(file, _)| (package.name, file.path) != HOME) {
            for (function, line) in opened(&production.code) {
                let count: &mut Count = counts.entry(format!("{}/src/{} {function}", package.name, file.path)).or_default();
                count.number += 1;
                count.places.push(format!("{}:{line}", package.place(file)));
            }
        }
    }
    counts
}

/// The places where a file is opened for reading, each with the function around it.
fn opened<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let (mut function, mut found) = ("-", Vec::new());
    for at in 0..code.len() {
        let is = |offset: usize, words: &[&str]| code.get(at + offset).is_some_and(|t| words.iter().any(|word| t.is(word)));
        if is(0, &["fn"]) && code.get(at + 1).is_some_and(|t| t.kind == Kind::Word) {
            function = code[at + 1].text;
        }
        let of_path = is(1, &["::"]) && is(0, &["fs", "fs_err"]) && is(2, &["read", "read_to_string", "copy"])
            || is(1, &["::"]) && is(0, &["File"]) && is(2, &["open"]);
        let of_options = is(0, &["."]) && is(1, &["read"]) && is(2, &["("]) && is(3, &["true"]) && is(4, &[")"]);
        if of_path || of_options {
            found.push((function, code[at].line));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::production::production;

    #[test]
    fn a_file_that_is_opened_for_reading_is_found_with_its_function() {
        let source = "fn a() { fs::read(p); std::fs::read_to_string(p) }\nfn b() { fs_err::File::open(p); fs::read_dir(p); }\n\
            fn c() { options().write(true).read(true).open(p); file.read(&mut x); File::create(p) }\n\
            #[cfg(test)]\nmod tests { fn d() { fs::read(p); } }";
        assert_eq!(opened(&production(source).code), [("a", 1), ("a", 1), ("b", 2), ("c", 3)]);
    }
}
