//! Rules for files: only known names at the top of the repository, a maximum length of files and of
//! lines of comments, a module doc at the start, a permission for unsafe code only where there is
//! some, no paths of one machine, and no conflicts of a merge.

use std::collections::BTreeSet;

use super::tree::{File, Tree};

/// The allowed names at the top of the repository, besides dot-files.
const TOP: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "benches",
    "ci",
    "crates",
    "docs",
    "launcher",
    "sys",
];

/// Maximum number of lines of a Rust file, as rustfmt breaks them by default; a longer one has more
/// than one subject.
const LONGEST: usize = 900;

/// Maximum number of characters of a line of a comment, which rustfmt does not break.
const WIDEST: usize = 100;

/// The line at the top of a file with unsafe code.
const ALLOW_UNSAFE: &str = "#![allow(unsafe_code)]";

/// Strings with which unsafe code begins.
const UNSAFE: &[&str] = &[
    "unsafe {",
    "unsafe fn ",
    "unsafe impl",
    "unsafe extern ",
    "unsafe trait ",
    "#[unsafe(",
];

/// Beginnings of paths that probably exist only on the machine of their author.
const OF_ONE_MACHINE: &[&str] = &[
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = unexpected_at_the_top(tree);
    for file in &tree.files {
        if file.is_rust() && !file.is_generated() {
            complaints.extend(shape(file));
            complaints.extend(wide_comments(file));
            complaints.extend(unsafe_code(file));
        }
        complaints.extend(paths_of_one_machine(file));
        if file.text.lines().any(|line| line.starts_with("<<<<<<< ")) {
            complaints.push(format!("{}: a conflict of a merge is left", file.path));
        }
    }
    complaints
}

fn unexpected_at_the_top(tree: &Tree) -> Vec<String> {
    let mut unexpected = BTreeSet::new();
    for file in &tree.files {
        let name = file.path.split('/').next().unwrap_or_default();
        if !name.starts_with('.') && !TOP.contains(&name) {
            unexpected.insert(name);
        }
    }

    let mut complaints = Vec::new();
    for name in unexpected {
        complaints.push(format!(
            "{name}: it does not belong at the top of the repository"
        ));
    }
    complaints
}

fn shape(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    if !file.text.starts_with("//!") {
        complaints.push(format!(
            "{}: it does not begin with a module doc (//!) that says why it exists",
            file.path
        ));
    }
    let lines = file.text.lines().count();
    if lines > LONGEST {
        complaints.push(format!(
            "{}: it has {lines} lines, more than {LONGEST}",
            file.path
        ));
    }
    complaints
}

fn wide_comments(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let width = line.chars().count();
        if line.trim_start().starts_with("//") && width > WIDEST {
            let path = &file.path;
            complaints.push(format!(
                "{path}:{number}: the comment has {width} columns, more than {WIDEST}"
            ));
        }
    }
    complaints
}

/// Checks that a file allows unsafe code if and only if it has some. The compiler does not check
/// this: it also accepts the permission of a parent module, and an unused one.
fn unsafe_code(file: &File) -> Option<String> {
    let is_allowed = file.text.lines().any(|line| line == ALLOW_UNSAFE);
    let has_some = file.text.lines().any(is_unsafe);
    if is_allowed && !has_some {
        let path = &file.path;
        return Some(format!("{path}: it has {ALLOW_UNSAFE}, but no unsafe code"));
    }
    // A program in a directory of tests is a crate, so the compiler checks that it has the
    // permission.
    if has_some && !is_allowed && !file.path.contains("/tests/") {
        let path = &file.path;
        return Some(format!("{path}: it has unsafe code, but no {ALLOW_UNSAFE}"));
    }
    None
}

/// Returns true if unsafe code begins in a line.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    for form in UNSAFE {
        for (start, _) in code.match_indices(form) {
            // Not in a string, nor at the end of a longer name.
            let before = &code[..start];
            if !before.ends_with(|c: char| c == '"' || c == '_' || c.is_alphanumeric()) {
                return true;
            }
        }
    }
    false
}

fn paths_of_one_machine(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for start in OF_ONE_MACHINE {
            if has_path(line, start) {
                let path = &file.path;
                complaints.push(format!("{path}:{number}: a path of one machine ({start})"));
            }
        }
    }
    complaints
}

/// Returns true if a path in a line begins with `start`, which does not count in the middle of one.
fn has_path(line: &str, start: &str) -> bool {
    for (place, _) in line.match_indices(start) {
        let before = &line[..place];
        let is_middle = before.ends_with(|c: char| c.is_alphanumeric() || "._-~})/".contains(c));
        if !is_middle {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
