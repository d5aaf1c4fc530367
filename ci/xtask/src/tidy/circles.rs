//! The rule that the modules of a crate do not use each other in a circle.
//!
//! A module is a file. It uses another one if a path in it that begins with `crate::` or `super::`
//! leads there. Two modules may use each other if one lies below the other, since they have one
//! subject, and so may the modules of a test program. Unit tests may use all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (dir, files) in crates(tree) {
        let uses = uses(dir, &files);
        for first in uses.keys() {
            // Each module of a circle finds it. The first in the order of names reports it.
            if let Some(circle) = circle(&uses, first)
                && circle.iter().min() == Some(&first.as_str())
            {
                complaints.push(format!(
                    "{dir}: these modules use each other in a circle: {}",
                    circle.join(", ")
                ));
            }
        }
    }
    complaints
}

/// Returns the files of each crate that is no test, by the directory of its lib.rs or main.rs,
/// which ends in `/`.
fn crates(tree: &Tree) -> BTreeMap<&str, Vec<&File>> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in &tree.files {
        for name in ["lib.rs", "main.rs"] {
            if let Some(dir) = file.path.strip_suffix(name)
                && dir.ends_with('/')
                && dir.contains("/src/")
            {
                crates.insert(dir, Vec::new());
            }
        }
    }

    for file in tree.files.iter().filter(|file| file.is_rust()) {
        // The crate of a program may lie in the directory of another crate.
        let dirs = crates.iter_mut().rev();
        let mut around = dirs.filter(|(dir, _)| file.path.starts_with(**dir));
        if let Some((_, files)) = around.next() {
            files.push(file);
        }
    }
    crates
}

/// Returns for each module of a crate those that it uses, without those above and below it.
fn uses(dir: &str, files: &[&File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        uses.insert(module(dir, &file.path), BTreeSet::new());
    }

    for file in files {
        let user = module(dir, &file.path);
        let mut used = BTreeSet::new();
        for path in paths(&file.code()) {
            let module = target(&user, &path, &uses);
            if !is_within(&module, &user) && !is_within(&user, &module) {
                used.insert(module);
            }
        }
        uses.insert(user, used);
    }
    uses
}

/// Returns the path of the module in its crate, such as `proto::frame`; it is empty for the crate's
/// own file.
fn module(dir: &str, path: &str) -> String {
    let name = path.strip_prefix(dir).unwrap_or(path);
    let name = name.strip_suffix(".rs").unwrap_or(name);
    match name {
        "lib" | "main" => String::new(),
        name => name.replace('/', "::"),
    }
}

fn is_within(module: &str, upper: &str) -> bool {
    match module.strip_prefix(upper) {
        Some(rest) => upper.is_empty() || rest.is_empty() || rest.starts_with("::"),
        None => false,
    }
}

/// Returns the paths in the code that begin with `crate::` or `super::`, as the names of each. A
/// path with braces is several.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let tokens = tokens(code);
    let mut paths = Vec::new();
    let mut rest = &tokens[..];
    while let [first, after @ ..] = rest {
        let is_path = matches!(*first, "crate" | "super") && after.first() == Some(&"::");
        rest = if is_path {
            read_path(vec![first], after, &mut paths)
        } else {
            after
        };
    }
    paths
}

/// Adds the paths that begin with `path` and continue in `tokens`. Returns the tokens behind them.
fn read_path<'a, 'b>(
    mut path: Vec<&'a str>,
    mut tokens: &'b [&'a str],
    paths: &mut Vec<Vec<&'a str>>,
) -> &'b [&'a str] {
    while let ["::", next, rest @ ..] = tokens {
        tokens = rest;
        if *next != "{" {
            path.push(next);
            continue;
        }

        loop {
            tokens = match tokens {
                [] => return tokens,
                ["}", rest @ ..] => return rest,
                ["," | "*", rest @ ..] | ["as", _, rest @ ..] => rest,
                [name, rest @ ..] => read_path([&path[..], &[name]].concat(), rest, paths),
            };
        }
    }
    paths.push(path);
    tokens
}

/// Returns the names in the code, each `::`, and all other characters that are not blank.
fn tokens(code: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Returns the module to which a path in the module `user` leads.
fn target(user: &str, path: &[&str], uses: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut names: Vec<&str> = user.split("::").collect();
    for name in path {
        match *name {
            "crate" => names.clear(),
            "super" => _ = names.pop(),
            name => names.push(name),
        }
    }

    // The last names of a path are those of items.
    while !uses.contains_key(&names.join("::")) && !names.is_empty() {
        names.pop();
    }
    names.join("::")
}

/// Returns a shortest circle of modules that begins at `first`, if there is one.
fn circle<'a>(
    uses: &'a BTreeMap<String, BTreeSet<String>>,
    first: &'a str,
) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![first]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way[way.len() - 1];
        for used in uses.get(last)? {
            if used == first {
                return Some(way);
            }
            if seen.insert(used) {
                ways.push_back([&way[..], &[used]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn a_circle_is_found_once() {
        let complaints = check(&tree(&[
            ("crates/t/src/lib.rs", "mod link; mod service; mod shared;"),
            (
                "crates/t/src/service.rs",
                "use crate::{link::Link, shared::{Peers, State as All}};",
            ),
            ("crates/t/src/shared.rs", "fn f() { super::link::open() }"),
            ("crates/t/src/link.rs", "use super::service::*;"),
        ]));
        assert_eq!(
            complaints,
            ["crates/t/src/: these modules use each other in a circle: link, service"]
        );
    }

    #[test]
    fn a_longer_circle_is_found() {
        let complaints = check(&tree(&[
            ("a/src/main.rs", ""),
            ("a/src/one.rs", "use crate::two::below::Two;"),
            ("a/src/two.rs", "mod below;"),
            ("a/src/two/below.rs", "use super::super::three::{Three};"),
            ("a/src/three.rs", "crate::one::call();"),
        ]));
        assert_eq!(
            complaints,
            ["a/src/: these modules use each other in a circle: one, two::below, three"]
        );
    }

    #[test]
    fn parts_of_a_subject_tests_and_other_crates_are_no_circle() {
        let complaints = check(&tree(&[
            ("a/src/lib.rs", "use crate::one::One;"),
            (
                "a/src/one.rs",
                "use super::Top; use crate::one::part::Part;",
            ),
            (
                "a/src/one/part.rs",
                "use super::One; use crate::one_more::More;",
            ),
            (
                "a/src/one_more.rs",
                "// crate::one::part\n#[cfg(test)]\nmod tests {\nuse crate::one::part::Part;\n}",
            ),
            ("a/src/bin/b/main.rs", "mod one_more;"),
            ("a/src/bin/b/one_more.rs", "use crate::one::part;"),
        ]));
        assert_eq!(complaints, Vec::<String>::new());
    }
}
