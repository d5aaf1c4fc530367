//! Files: what lies at the top, how long they are, what they begin with, and paths of one machine.

use super::tree::{File, Tree};

/// What lies at the top of the repository, besides dot-files.
const TOP: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "ci",
    "crates",
    "docs",
    "launcher",
    "sys",
];

/// Lines of a Rust file; a longer one has more than one subject.
const LONGEST: usize = 700;

/// Beginnings of paths that exist on the machine of whoever wrote them alone.
const OF_ONE_MACHINE: &[&str] =
    &[concat!("/", "home/"), concat!("/", "root/"), concat!("/", "work/")];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = unexpected_at_the_top(tree);
    for file in &tree.files {
        if file.is_rust() && !file.is_generated() {
            complaints.extend(shape(file));
        }
        complaints.extend(paths_of_one_machine(file));
    }
    complaints
}

fn unexpected_at_the_top(tree: &Tree) -> Vec<String> {
    let mut unexpected: Vec<&str> = tree
        .files
        .iter()
        .filter_map(|file| file.path.split('/').next())
        .filter(|name| !name.starts_with('.') && !TOP.contains(name))
        .collect();
    unexpected.dedup();
    let complaint =
        |name: &&str| format!("{name}: it does not belong at the top of the repository");
    unexpected.iter().map(complaint).collect()
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
        complaints.push(format!("{}: it has {lines} lines, more than {LONGEST}", file.path));
    }
    complaints
}

fn paths_of_one_machine(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for start in OF_ONE_MACHINE {
            let begins_here = |at: usize| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~})/".contains(c))
            };
            if line.match_indices(start).any(|(at, _)| begins_here(at)) {
                complaints.push(format!(
                    "{}:{}: a path of one machine ({start})",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests;
