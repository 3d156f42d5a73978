//! Paths from the root of a crate. In: the tokens of a file. Out: the names that it asks of its crate's root, and what a root imports.
//!
//! Read are `crate::a::B`, `use crate::{a, b::C}` over any number of lines, and paths of so many `super` that they reach the root.

use std::collections::BTreeMap;

use crate::production::group_end;
use crate::tokens::{Kind, Token};

/// How many modules a file is below the root of its crate.
pub fn depth(path: &str) -> usize {
    let folders = path.matches('/').count();
    match path.rsplit('/').next() {
        Some("lib.rs" | "main.rs") if folders == 0 => 0,
        Some("mod.rs") => folders,
        _ => folders + 1,
    }
}

/// The names that the code of a file takes from the root of its crate, with their lines.
pub fn root_names<'a>(code: &[Token<'a>], depth: usize) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    let mut inline_modules: Vec<usize> = Vec::new();
    for (at, token) in code.iter().enumerate() {
        inline_modules.retain(|end| at < *end);
        if token.is("mod") && code.get(at + 2).is_some_and(|t| t.is("{")) {
            inline_modules.push(group_end(code, at + 2));
        }
        let continues = at > 0 && code[at - 1].is("::");
        let root = match token {
            _ if continues => None,
            _ if token.is("crate") => code.get(at + 1).filter(|t| t.is("::")).map(|_| at + 2),
            _ if token.is("super") => behind_supers(code, at, depth + inline_modules.len()),
            _ => None,
        };
        if let Some(root) = root {
            found.extend(first_names(code, root));
        }
    }
    found
}

/// Behind so many `super::`, if there are exactly that many.
fn behind_supers(code: &[Token], at: usize, depth: usize) -> Option<usize> {
    let pairs = code[at..].chunks(2).take_while(|pair| pair.len() == 2 && pair[0].is("super") && pair[1].is("::"));
    (pairs.count() == depth && depth > 0).then_some(at + 2 * depth)
}

/// The first name of each path of a `use` tree, or of the one path.
fn first_names<'a>(code: &[Token<'a>], at: usize) -> Vec<(&'a str, usize)> {
    let Some(first) = code.get(at) else { return Vec::new() };
    if first.kind == Kind::Word {
        return vec![(first.text, first.line)];
    }
    if !first.is("{") {
        return Vec::new();
    }
    let end = group_end(code, at);
    let mut names = Vec::new();
    let mut inside = at + 1;
    while inside < end {
        if code[inside].kind == Kind::Word && (code[inside - 1].is("{") || code[inside - 1].is(",")) {
            names.push((code[inside].text, code[inside].line));
        }
        inside = if code[inside].is("{") { group_end(code, inside) } else { inside + 1 };
    }
    names
}

/// What the root of a crate imports or exports under another name than its module's: `pub use cell::{Cell, Term as Word}` gives
/// `Cell` and `Word`, both of `cell`.
pub fn aliases<'a>(root: &[Token<'a>]) -> BTreeMap<&'a str, &'a str> {
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < root.len() {
        if root[at].is("use") {
            let end = root[at..].iter().position(|t| t.is(";")).map_or(root.len(), |end| at + end);
            tree(&root[at + 1..end], None, &mut found);
            at = end;
        } else if root[at].is("{") {
            at = group_end(root, at);
        } else {
            at += 1;
        }
    }
    found
}

/// The names that a `use` tree binds, with the module that each path begins with.
fn tree<'a>(path: &[Token<'a>], module: Option<&'a str>, found: &mut BTreeMap<&'a str, &'a str>) {
    let mut module = module;
    let mut last = None;
    let mut at = 0;
    while at < path.len() {
        let token = &path[at];
        if token.is("{") {
            for branch in branches(&path[at + 1..path.len() - 1]) {
                tree(branch, module, found);
            }
            return;
        } else if token.is("as") {
            last = path.get(at + 1).map(|t| t.text);
            break;
        } else if token.kind == Kind::Word && !["crate", "self"].contains(&token.text) {
            module = module.or(Some(token.text));
            last = Some(token.text);
        }
        at += 1;
    }
    if let (Some(module), Some(name)) = (module, last) {
        found.insert(name, module);
    }
}

fn branches<'t, 'a>(group: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while at < group.len() {
        if group[at].is(",") {
            parts.push(&group[from..at]);
            from = at + 1;
        }
        at = if group[at].is("{") { group_end(group, at) } else { at + 1 };
    }
    parts.push(&group[from..]);
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::production::production;

    fn names(source: &str, path: &str) -> Vec<String> {
        root_names(&production(source).code, depth(path)).into_iter().map(|(n, l)| format!("{n}:{l}")).collect()
    }

    #[test]
    fn paths_groups_and_lines_are_read() {
        let source = "use crate::a::B;\nuse crate::{\n    c,\n    d::{e, f::G},\n    self,\n};\nfn h(i: crate::j::K) -> u8 { crate::l::m(\"crate::n\") }\n";
        assert_eq!(names(source, "x.rs"), ["a:1", "c:3", "d:4", "self:5", "j:7", "l:7"]);
    }

    #[test]
    fn supers_that_reach_the_root_are_read_and_others_are_not() {
        assert_eq!(names("use super::a::B;\nuse super::super::c;", "x.rs"), ["a:1"]);
        assert_eq!(names("use super::a::B;\nuse super::super::{c, d::E};", "x/y.rs"), ["c:2", "d:2"]);
        assert_eq!(names("use super::a::B;", "x/mod.rs"), ["a:1"]);
        assert_eq!(names("mod inner {\n use super::super::a;\n use super::b;\n}\nuse super::c;", "x.rs"), ["a:2", "c:5"]);
    }

    #[test]
    fn comments_strings_and_visibility_are_no_paths() {
        assert!(names("//! [`crate::a`]\npub(crate) fn b() { \"crate::c\"; }\n#[cfg(test)]\nuse crate::d;", "x.rs").is_empty());
    }

    #[test]
    fn exports_of_the_root_belong_to_their_module() {
        let root = "mod cell;\npub use cell::{Cell, deep::{Term as Word, Other}};\nuse crate::plan::Plan;\npub use collo_store::fields;\nfn f() { use hidden::A; }";
        let found: Vec<_> = aliases(&production(root).code).into_iter().collect();
        assert_eq!(found, [("Cell", "cell"), ("Other", "cell"), ("Plan", "plan"), ("Word", "cell"), ("fields", "collo_store")]);
    }
}
