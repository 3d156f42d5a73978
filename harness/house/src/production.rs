//! What of a package is production. In: the files of its `src`. Out: each without its tests.
//!
//! No production are: items under `#[cfg(test)]`; `tests.rs`, `*_tests.rs`, `fixture.rs` and folders `tests`; files that a
//! `#[cfg(test)] mod name;` declares, by name or by `#[path]`, and what lies below them.

use std::collections::BTreeSet;

use crate::tokens::{Kind, Token, tokens};

/// What of a file is production.
#[derive(Debug, Clone)]
pub struct Production<'a> {
    /// Without comments.
    pub code: Vec<Token<'a>>,
    /// With blanks and comments.
    pub lines: usize,
}

/// A file without its items under `#[cfg(test)]`.
pub fn production(source: &str) -> Production<'_> {
    let mut code = code(source);
    let of_tests: BTreeSet<usize> = test_items(&code).iter().flat_map(|item| item.lines.0..=item.lines.1).collect();
    code.retain(|token| !of_tests.contains(&token.line));
    Production { code, lines: source.lines().count() - of_tests.len() }
}

/// The files of a `src` folder that only tests compile. Paths are relative to `src`.
pub fn test_files<'a>(files: &[(&'a str, &str)]) -> BTreeSet<&'a str> {
    let declared: Vec<String> = files.iter().flat_map(|(path, text)| declared_for_tests(path, text)).collect();
    let is_declared = |path: &str| {
        let below = |module: &String| {
            let folder = module.strip_suffix("mod.rs").or(module.strip_suffix(".rs")).unwrap_or(module).trim_end_matches('/');
            path == module || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        declared.iter().any(below)
    };
    let paths = files.iter().map(|(path, _)| *path);
    paths.filter(|path| is_named_for_tests(path) || is_declared(path)).collect()
}

fn is_named_for_tests(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    name == "tests.rs" || name == "fixture.rs" || name.ends_with("_tests.rs") || folders.split('/').any(|f| f == "tests")
}

/// Where the modules that a file declares for tests can be: `a.rs` and `a/mod.rs`.
fn declared_for_tests(path: &str, text: &str) -> Vec<String> {
    if !text.contains("cfg(") {
        return Vec::new();
    }
    let code = code(text);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = match path.strip_suffix(".rs").unwrap_or(path) {
        root if ["lib", "main"].contains(&root) => "",
        stem if stem.ends_with("mod") => folder,
        stem => stem,
    };
    let mut found = Vec::new();
    for item in test_items(&code) {
        let tokens = &code[item.tokens.0..item.tokens.1];
        let Some(at) = tokens.iter().position(|t| t.is("mod")) else { continue };
        let (Some(name), true) = (tokens.get(at + 1), tokens.get(at + 2).is_some_and(|t| t.is(";"))) else { continue };
        let path = tokens.iter().position(|t| t.is("path")).and_then(|p| tokens[p..].iter().find(|t| t.kind == Kind::Text));
        match path {
            Some(path) => found.push(join(folder, path.text)),
            None => found.extend([join(own, &format!("{}.rs", name.text)), join(own, &format!("{}/mod.rs", name.text))]),
        }
    }
    found
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_string() } else { format!("{folder}/{path}") }
}

/// The tokens of a text without its comments.
fn code(source: &str) -> Vec<Token<'_>> {
    let mut tokens = tokens(source);
    tokens.retain(|token| token.kind != Kind::Comment);
    tokens
}

/// An item under `#[cfg(test)]`, from the attribute on.
struct TestItem {
    lines: (usize, usize),
    /// From, up to but not including.
    tokens: (usize, usize),
}

fn test_items(code: &[Token]) -> Vec<TestItem> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let attribute = attribute(code, at);
        match attribute {
            Some(end) if is_for_tests(&code[at..end]) => {
                let inner = code.get(at + 1).is_some_and(|t| t.is("!"));
                let until = if inner { code.len() } else { item_end(code, end) };
                items.push(TestItem { lines: (code[at].line, code[until - 1].last_line), tokens: (at, until) });
                at = until;
            }
            Some(end) => at = end,
            None => at += 1,
        }
    }
    items
}

/// Behind the attribute that begins here.
fn attribute(code: &[Token], at: usize) -> Option<usize> {
    let bracket = at + 1 + usize::from(code.get(at + 1)?.is("!"));
    (code[at].is("#") && code.get(bracket)?.is("[")).then(|| group_end(code, bracket))
}

/// `cfg(test)` and `cfg(all(test, …))`; `cfg(not(test))` and `cfg(any(test, …))` are production.
fn is_for_tests(attribute: &[Token]) -> bool {
    let Some(at) = attribute.iter().position(|t| t.is("cfg")) else { return false };
    let condition = &attribute[at + 1..];
    let begins = |words: &[&str]| condition.len() >= words.len() && condition.iter().zip(words).all(|(t, w)| t.is(w));
    begins(&["(", "test", ")"]) || begins(&["(", "all", "("]) && condition.iter().any(|t| t.is("test"))
}

/// Behind the group of brackets that opens here.
pub fn group_end(code: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in code.iter().enumerate().skip(open) {
        if token.kind == Kind::Symbol {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// Behind the item that begins here, its other attributes included.
fn item_end(code: &[Token], from: usize) -> usize {
    let mut at = from;
    while at < code.len() {
        match attribute(code, at) {
            Some(end) => at = end,
            None => break,
        }
    }
    let head: Vec<&str> = code[at..].iter().map(|t| t.text).take_while(|text| !["=", "{", ";", ","].contains(text)).collect();
    let has = |words: &[&str]| words.iter().any(|word| head.contains(word));
    let has_value = !has(&["fn"]) && has(&["use", "const", "static", "type", "let"]);
    let is_item = has(&["mod", "fn", "impl", "struct", "enum", "trait", "macro_rules"]);
    while at < code.len() {
        let token = &code[at];
        let opens = token.kind == Kind::Symbol && ["(", "[", "{"].contains(&token.text);
        if token.is(";") || token.is(",") && !is_item && !has_value {
            return at + 1;
        } else if token.is("}") || token.is(")") {
            return at;
        } else if opens {
            let end = group_end(code, at);
            if token.is("{") && !has_value {
                return end;
            }
            at = end;
        } else {
            at += 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(source: &str) -> String {
        production(source).code.iter().map(|t| t.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn items_of_tests_are_left_out_with_their_lines() {
        let source =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n\nfn c() {}\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod x;\n";
        assert_eq!(left(source), "fn a ( ) { } fn c ( ) { }");
        assert_eq!(production(source).lines, 3);
    }

    #[test]
    fn uses_fields_and_constants_of_tests_are_left_out() {
        assert_eq!(left("#[cfg(test)]\nuse a::{b, c};\nuse d;"), "use d ;");
        assert_eq!(left("#[cfg(test)]\nconst A: [u8; 2] = { [1, 2] };\nlet e;"), "let e ;");
        assert_eq!(left("struct A {\n#[cfg(test)]\nb: Vec<u8>,\nc: u8,\n}"), "struct A { c : u8 , }");
        assert_eq!(left("#[cfg(test)]\npub const fn a() -> u8 {\n1\n}\nfn b() {}"), "fn b ( ) { }");
    }

    #[test]
    fn what_is_not_for_tests_stays() {
        assert_eq!(left("#[cfg(not(test))]\nfn a() {}"), "# [ cfg ( not ( test ) ) ] fn a ( ) { }");
        assert_eq!(left("#[cfg(unix)]\nfn a() {}\n#[test]\nfn b() {}").matches("fn").count(), 2);
    }

    #[test]
    fn files_of_tests_are_found_by_name_and_by_declaration() {
        let files = [
            ("lib.rs", "mod a;\n#[cfg(test)]\nmod random;\n#[cfg(test)]\npub(crate) mod seeded;\n#[cfg(test)] mod inline { }"),
            ("a/mod.rs", "#[cfg(test)]\nmod deep;\n#[cfg(test)]\n#[path = \"b_of_c.rs\"]\nmod tests;"),
            ("a/b.rs", "#[cfg(test)]\nmod coverage;"),
            ("a/b/coverage.rs", ""),
            ("a/b_of_c.rs", ""),
            ("a/deep/mod.rs", ""),
            ("a/deep/below.rs", ""),
            ("a/memory_tests.rs", ""),
            ("random.rs", ""),
            ("seeded/mod.rs", ""),
            ("inline.rs", ""),
        ];
        let files_of_tests: Vec<&str> = test_files(&files).into_iter().collect();
        assert_eq!(
            files_of_tests,
            [
                "a/b/coverage.rs",
                "a/b_of_c.rs",
                "a/deep/below.rs",
                "a/deep/mod.rs",
                "a/memory_tests.rs",
                "random.rs",
                "seeded/mod.rs"
            ]
        );
    }
}
