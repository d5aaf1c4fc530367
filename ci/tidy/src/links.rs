//! Rules for links: the file and the heading that a link of a page names exist, and so does each
//! page of docs/ that any file, other than unit tests, mentions.

use std::collections::BTreeSet;

use super::tree::{File, Tree};

pub fn check(tree: &Tree) -> Vec<String> {
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    let mut complaints: Vec<String> = pages.flat_map(|page| of_page(tree, page)).collect();
    let others = tree
        .files
        .iter()
        .filter(|file| !file.path.ends_with("tests.rs"));
    complaints.extend(others.flat_map(|file| mentions(tree, file)));
    complaints
}

fn of_page(tree: &Tree, page: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in prose(&page.text) {
        for target in targets(line) {
            if !target.contains(':') && !exists(tree, &page.path, target) {
                complaints.push(format!(
                    "{}:{number}: the link {target} leads nowhere",
                    page.path
                ));
            }
        }
    }
    complaints
}

/// Returns a complaint for each page under docs/ that a file mentions by its path, but that does
/// not exist.
fn mentions(tree: &Tree, file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for (at, _) in line.match_indices("docs/") {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-/.".contains(c);
            let path = line[at..]
                .split(|c| !is_part(c))
                .next()
                .unwrap_or_default()
                .trim_end_matches('.');
            let begins_here = !line[..at].ends_with(is_part);
            if begins_here && path.ends_with(".md") && !is_file(tree, path) {
                complaints.push(format!("{}:{number}: there is no {path}", file.path));
            }
        }
    }
    complaints
}

/// Returns the lines that are not in a block of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Returns the targets of the links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

fn exists(tree: &Tree, page: &str, target: &str) -> bool {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.to_owned()
    } else {
        resolve(page, path)
    };
    let dir = format!("{path}/");
    if anchor.is_empty() {
        return is_file(tree, &path) || tree.files.iter().any(|file| file.path.starts_with(&dir));
    }
    let file = tree.files.iter().find(|file| file.path == path);
    file.is_some_and(|file| anchors(&file.text).contains(anchor))
}

fn is_file(tree: &Tree, path: &str) -> bool {
    tree.files.iter().any(|file| file.path == path)
}

/// Returns the path from the top of the repository for a path that is relative to `page`.
fn resolve(page: &str, path: &str) -> String {
    let mut dirs: Vec<&str> = page.split('/').collect();
    dirs.pop();
    for part in path.split('/') {
        match part {
            ".." => _ = dirs.pop(),
            "." | "" => {}
            name => dirs.push(name),
        }
    }
    dirs.join("/")
}

/// Returns the anchors that GitHub gives to the headings of a page. It appends a number to the
/// anchor of a heading that has occurred before.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let name = std::iter::once(anchor.clone())
            .chain(again)
            .find(|a| !anchors.contains(a));
        anchors.extend(name);
    }
    anchors
}

#[cfg(test)]
mod tests;
