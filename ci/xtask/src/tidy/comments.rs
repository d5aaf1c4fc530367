//! Comments begin with their subject: a verb for a function, a noun for a type or a field. A clause
//! without one ("What it holds.") reads like a riddle.

use super::tree::{File, Tree};

/// The beginnings of such clauses.
const HEADLESS: &[&str] =
    &["What", "Whether", "How", "Where", "Who", "Whose", "Those", "Of", "The same", "As [`"];

pub fn check(tree: &Tree) -> Vec<String> {
    tree.files.iter().flat_map(headless).collect()
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
