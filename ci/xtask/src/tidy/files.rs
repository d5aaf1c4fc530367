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
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn only_known_names_lie_at_the_top() {
        let tree =
            tree(&[(".ci/run", ""), ("README.md", ""), ("notes/a.txt", ""), ("notes/b.txt", "")]);
        assert_eq!(check(&tree), ["notes: it does not belong at the top of the repository"]);
    }

    #[test]
    fn a_rust_file_begins_with_its_reason() {
        assert!(check(&tree(&[("ci/a.rs", "//! Why.\n")])).is_empty());
        assert_eq!(check(&tree(&[("ci/a.rs", "fn main() {}\n")])).len(), 1);
        assert!(check(&tree(&[("ci/a.rs", "// @generated\nfn main() {}\n")])).is_empty());
    }

    #[test]
    fn a_rust_file_has_at_most_700_lines() {
        let text = format!("//! Why.\n{}", "\n".repeat(699));
        assert!(check(&tree(&[("ci/a.rs", &text)])).is_empty());
        assert_eq!(check(&tree(&[("ci/a.rs", &(text + "\n"))])).len(), 1);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let path = concat!("see /", "work/main");
        assert_eq!(check(&tree(&[("docs/a.md", path)])).len(), 1);
        let folder = concat!("frame/", "work/main and the~/", "work/x");
        assert!(check(&tree(&[("docs/a.md", folder)])).is_empty());
    }
}
