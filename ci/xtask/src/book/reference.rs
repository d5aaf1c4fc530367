//! The pages of the routines in the book: a page of each chapter of the standard with its routines,
//! links between them and to the standard, and links from the other pages, whose routines in the
//! form of code lead to the page that describes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use task_support::installation::manual::ManPage;

/// The text of the standard.
const STANDARD: &str = "http://openshmem.org/site/sites/default/site_files/OpenSHMEM-1.6.pdf";

/// The titles of the chapters of the standard with routines.
const CHAPTERS: [(&str, &str); 14] = [
    ("9.1", "Library setup, exit and query"),
    ("9.2", "Thread support"),
    ("9.3", "Memory management"),
    ("9.4", "Teams"),
    ("9.5", "Contexts"),
    ("9.6", "Remote memory access"),
    ("9.7", "Atomic memory operations"),
    ("9.8", "Signals"),
    ("9.9", "Sessions"),
    ("9.10", "Collectives"),
    ("9.11", "Waits and tests"),
    ("9.12", "Memory ordering"),
    ("9.13", "Locks"),
    ("10.1", "Profiling, and old routines"),
];

/// Returns the title of a chapter.
///
/// # Panics
/// If [`CHAPTERS`] lacks it.
pub fn title(chapter: &str) -> String {
    let found = CHAPTERS.iter().find(|(number, _)| *number == chapter);
    let Some((number, title)) = found else {
        panic!("no title for chapter {chapter}");
    };
    format!("{title} ({number})")
}

/// Returns the name of the file with the routines of a chapter.
pub fn file(chapter: &str) -> String {
    format!("routines-{chapter}.md")
}

/// Returns the page with the routines of a chapter.
pub fn index(chapter: &str, routines: &[ManPage]) -> String {
    let mut text = format!(
        "# {}\n\n| page | what the routines do |\n|---|---|\n",
        title(chapter)
    );
    for page in routines.iter().filter(|page| page.chapter == chapter) {
        let _ = writeln!(text, "| [{0}]({0}.md) | {1} |", page.name, page.summary);
    }
    text + "\n" + &place_in_the_standard(chapter) + "\n"
}

/// Returns a line that links to the chapter of the standard.
pub fn place_in_the_standard(chapter: &str) -> String {
    format!("The standard: [OpenSHMEM 1.6]({STANDARD}), chapter {chapter}.")
}

/// Replaces `NAME(3)` by a link to the page of that name, in the HTML of a page.
pub fn with_pages(html: &str, routines: &[ManPage]) -> String {
    let mut html = html.to_owned();
    for page in routines {
        // A name may end another one, so the character before it counts.
        for before in [" ", "\n", ">"] {
            let name = format!("{before}{}(3)", page.name);
            let link = format!("{before}<a href=\"{0}.html\">{0}(3)</a>", page.name);
            html = html.replace(&name, &link);
        }
    }
    html
}

/// Makes each routine that a page in Markdown names in the form of code a link to its page. Blocks
/// of code and texts of links stay as they are. `top` leads from the page to the top directory.
pub fn with_links(text: &str, routines: &[ManPage], top: &str) -> String {
    let mut pages: BTreeMap<&str, &str> = BTreeMap::new();
    for page in routines {
        for routine in &page.routines {
            pages.insert(routine, &page.name);
        }
        pages.insert(&page.name, &page.name);
    }

    let mut lines = Vec::new();
    let mut is_code = false;
    for line in text.split('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            is_code = !is_code;
        }
        if is_code || is_fence || line.starts_with('#') {
            lines.push(line.to_owned());
        } else {
            lines.push(linked(line, &pages, top));
        }
    }
    lines.join("\n")
}

/// Makes the routines in a line links.
fn linked(line: &str, pages: &BTreeMap<&str, &str>, top: &str) -> String {
    // Between backticks, every second part is code.
    let parts: Vec<&str> = line.split('`').collect();
    let mut result = String::new();
    for (i, part) in parts.iter().enumerate() {
        if i % 2 == 0 {
            result += part;
            continue;
        }
        let Some(next) = parts.get(i + 1) else {
            // No second backtick.
            result += "`";
            result += part;
            continue;
        };

        let is_in_link = parts[i - 1].ends_with('[') || next.starts_with(']');
        match pages.get(part.trim_end_matches("()")) {
            Some(page) if !is_in_link => result += &format!("[`{part}`]({top}{page}.md)"),
            _ => result += &format!("`{part}`"),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use task_support::installation::manual;

    #[test]
    fn each_page_of_the_manual_belongs_to_a_chapter() {
        for page in manual::pages() {
            assert!(!title(&page.chapter).is_empty());
        }
    }

    #[test]
    fn routines_in_a_text_lead_to_their_pages() {
        let pages = BTreeMap::from([
            ("shmem_int_put", "shmem_put"),
            ("shmem_quiet", "shmem_quiet"),
        ]);

        let line = "a `shmem_int_put` and `shmem_quiet()`.";
        let link = "a [`shmem_int_put`](../shmem_put.md) and [`shmem_quiet()`](../shmem_quiet.md).";
        assert_eq!(linked(line, &pages, "../"), link);

        for same in [
            "`other`",
            "[`shmem_quiet`](x.md)",
            "a ` alone",
            "shmem_quiet",
        ] {
            assert_eq!(linked(same, &pages, "../"), same);
        }
    }
}
