//! Comments begin with their subject: a verb for a function, a noun for a type or a field. A clause
//! without one ("What it holds.") reads like a riddle. A function that returns nothing is not said
//! to return something.

use super::tree::{File, Tree};

/// The beginnings of such clauses.
const HEADLESS: &[&str] =
    &["What", "Whether", "How", "Where", "Who", "Whose", "Those", "Of", "The same", "As [`"];

pub fn check(tree: &Tree) -> Vec<String> {
    tree.files.iter().flat_map(|file| [headless(file), false_returns(file)].concat()).collect()
}

/// Returns the comments of a file that begin with "Returns", of functions that return no value.
fn false_returns(file: &File) -> Vec<String> {
    let lines: Vec<&str> = if file.is_rust() { file.text.lines().collect() } else { Vec::new() };
    let mut complaints = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("/// Returns ") else { continue };
        let is_of_time = ["when ", "after ", "once "].iter().any(|word| text.starts_with(word));
        let is_between =
            |line: &&&str| ["//", "#["].iter().any(|s| line.trim_start().starts_with(s));
        let start = at + lines[at..].iter().take_while(is_between).count();
        let ends = |line: &&str| line.ends_with(['{', ';', '}']);
        let n = lines[start..].iter().position(ends).map_or(0, |last| last + 1);
        let signature = lines[start..start + n].join(" ");
        let value = signature.rsplit_once("->").map_or("()", |(_, value)| value.trim_start());
        let is_function = signature.split(' ').take(8).any(|word| word == "fn");
        let has_none = ["()", "!", "Result<(), "].iter().any(|none| value.starts_with(none));
        if is_function && has_none && !is_of_time {
            complaints.push(format!(
                "{}:{}: the function returns no value; say what it does",
                file.path,
                at + 1
            ));
        }
    }
    complaints
}

/// Returns the comments of a file that begin with such a clause.
fn headless(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_inside = false;
    let lines = if file.is_rust() && !file.is_generated() { file.text.as_str() } else { "" };
    for (number, line) in (1..).zip(lines.lines()) {
        let comment = line.trim_start().strip_prefix("//");
        let text = comment.unwrap_or_default().trim_start_matches(['/', '!']).trim_start();
        let is_clause = |head: &&str| {
            text.strip_prefix(*head).is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        };
        if !is_inside && HEADLESS.iter().any(is_clause) {
            complaints.push(format!(
                "{}:{number}: begin the comment with its subject, a verb or a noun",
                file.path
            ));
        }
        is_inside = comment.is_some();
    }
    complaints
}

#[cfg(test)]
mod tests;
