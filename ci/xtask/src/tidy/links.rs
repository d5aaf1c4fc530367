//! Rules for links: the file and the heading that a link of a page names exist, and so does each
//! page of docs/ that any file, other than unit tests, mentions, also as an installed one.

use std::collections::BTreeSet;

use super::tree::{File, Tree};

/// The directory of the pages in an installation.
const INSTALLED: &str = "share/doc/rushmem/";

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in &tree.files {
        if file.path.ends_with(".md") {
            complaints.extend(broken_links(tree, file));
        }
    }
    for file in &tree.files {
        // Unit tests of these rules mention pages that do not exist.
        if !file.path.ends_with("tests.rs") {
            complaints.extend(mentions(tree, file));
        }
    }
    complaints
}

fn broken_links(tree: &Tree, page: &File) -> Vec<String> {
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
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-/.".contains(c);
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.replace(INSTALLED, "docs/");
        for (start, _) in line.match_indices("docs/") {
            // The directory may be another one whose path ends so.
            if line[..start].ends_with(is_part) {
                continue;
            }
            let path = line[start..].split(|c| !is_part(c)).next();
            // A period may end the sentence.
            let path = path.unwrap_or_default().trim_end_matches('.');
            if path.ends_with(".md") && !is_file(tree, path) {
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
    if !anchor.is_empty() {
        let text = tree.text(&path);
        return text.is_some_and(|text| anchors(text).contains(anchor));
    }

    let dir = format!("{path}/");
    is_file(tree, &path) || tree.files.iter().any(|file| file.path.starts_with(&dir))
}

fn is_file(tree: &Tree, path: &str) -> bool {
    tree.text(path).is_some()
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
    for (_, line) in prose(text) {
        if !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let mut anchor = String::new();
        for c in title.chars() {
            if c == ' ' {
                anchor.push('-');
            } else if c.is_alphanumeric() || "-_".contains(c) {
                anchor.push(c);
            }
        }

        let mut name = anchor.clone();
        let mut n = 0;
        while anchors.contains(&name) {
            n += 1;
            name = format!("{anchor}-{n}");
        }
        anchors.insert(name);
    }
    anchors
}

#[cfg(test)]
mod tests;
