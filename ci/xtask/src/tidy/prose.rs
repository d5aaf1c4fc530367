//! Prose: comments are at most 100 columns wide, and words that were replaced do not come back.

use super::tree::{File, Tree};

/// Columns of a comment.
const WIDTH: usize = 100;

/// This file and its tests, which quote the words.
const OWN: &str = "ci/xtask/src/tidy/prose";

/// Words that must not be used, and what to use instead. A word in lower case is found in any case,
/// and as a part of a name between underscores.
const REPLACED: &[(&str, &str)] = &[
    ("tell", "say, report, acknowledge"),
    ("tells", "says, reports, acknowledges"),
    ("telling", "saying, reporting, acknowledging"),
    ("told", "said, reported, acknowledged"),
    ("untold", "unreported"),
    ("news", "event, answer"),
    ("whoever", "the PE, thread or program that"),
    ("so many", "N, that many"),
    ("asked", "requested, queried"),
    ("attend", "poll, wait"),
    ("attendance", "progress state"),
    ("unattended", "not polled"),
    ("asleep", "sleeping"),
    ("deepen", "increment"),
    ("garbage", "invalid data"),
    ("cure", "remedy"),
    ("cures", "remedies"),
    // American spelling.
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("colours", "colors"),
    ("favour", "favor"),
    ("grey", "gray"),
    ("initialisation", "initialization"),
    ("initialise", "initialize"),
    ("initialised", "initialized"),
    ("initialises", "initializes"),
    ("licence", "license"),
    ("licences", "licenses"),
    ("neighbour", "neighbor"),
    ("neighbours", "neighbors"),
    ("neighbouring", "neighboring"),
    ("optimise", "optimize"),
    ("recognise", "recognize"),
    ("recognises", "recognizes"),
    ("serialise", "serialize"),
    ("serialised", "serialized"),
    ("synchronise", "synchronize"),
    ("synchronised", "synchronized"),
    ("synchronises", "synchronizes"),
];

/// Kinds of files that hold prose of ours.
const KINDS: &[&str] = &["rs", "md", "toml", "c", "h", "f90", "csv", "svg", "sh", "in"];

pub fn check(tree: &Tree) -> Vec<String> {
    let is_ours = |file: &&File| {
        let kind = file.path.rsplit('.').next().unwrap_or_default();
        KINDS.contains(&kind) && !file.is_generated() && !file.path.starts_with(OWN)
    };
    tree.files.iter().filter(is_ours).flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let columns = line.chars().count();
        if file.is_rust() && line.trim_start().starts_with("//") && columns > WIDTH {
            complaints.push(format!(
                "{}:{number}: a comment of {columns} columns, more than {WIDTH}",
                file.path
            ));
        }
        let words = format!(" {} ", words(line).join(" "));
        for (word, instead) in REPLACED {
            if words.contains(&format!(" {word} ")) {
                complaints
                    .push(format!("{}:{number}: instead of `{word}` say {instead}", file.path));
            }
        }
    }
    complaints
}

/// Returns the words of a line in lower case. Names are split at their underscores.
fn words(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
