//! `cargo xtask book`: makes a site with a search of the documentation, under target/book: the
//! pages of docs/ in the order of docs/SUMMARY.md, and the man pages of the routines.
//!
//! mdBook makes the site. Afterwards, each link within the site must lead to one of its files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::installation::manual::ManPage;
use task_support::installation::{copy_tree, manual};
use task_support::process::{self, capture};
use task_support::task::Absent;
use task_support::workspace::Workspace;

mod reference;

/// The beginnings of links to files of the repository that are no pages of the site: from a page of
/// docs/, and from the introduction, which is README.md.
const OUTSIDE: [&str; 7] = [
    "../",
    "crates/",
    "CONTRIBUTING",
    "CHANGELOG",
    "LICENSE",
    "SECURITY",
    "SUMMARY",
];

/// Returns a message about the first tool that is missing, with how to install it.
fn missing() -> Option<&'static str> {
    let tools = [
        (
            "mdbook",
            "mdbook is not here: cargo install --locked mdbook",
        ),
        ("mandoc", "mandoc is not here (the package mandoc)"),
    ];

    for (tool, message) in tools {
        if process::on_path(tool).is_none() {
            return Some(message);
        }
    }
    None
}

pub fn run() -> Result<()> {
    println!("{}", make(&Workspace::open()?)?.display());
    Ok(())
}

/// Makes the site, and returns the path of its first page.
fn make(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(missing) = missing() {
        return Err(Absent(missing.to_owned()).into());
    }
    let dir = workspace.target.join("book");
    // It does not exist at the first call.
    let _ = std::fs::remove_dir_all(&dir);

    let sources = dir.join("sources");
    copy_tree(&workspace.root.join("docs"), &sources)?;
    let introduction = read(&workspace.root.join("README.md"))?.replace("](docs/", "](");
    write(&sources.join("introduction.md"), &introduction)?;

    let mut summary = read(&sources.join("SUMMARY.md"))?.replace("../README.md", "introduction.md");
    let routines = manual::pages();
    summary += &write_routines(&routines, &dir, &sources)?;
    write(&sources.join("SUMMARY.md"), &summary)?;

    // When all pages exist, since links get the titles of the pages that they lead to.
    for page in files(&sources, ".md")? {
        rewrite_links(&page, &sources, &routines)?;
    }

    let site = dir.join("site");
    process::run(
        Command::new("mdbook")
            .arg("build")
            .arg(&sources)
            .arg("--dest-dir")
            .arg(&site),
    )?;
    check(&site)?;
    Ok(site.join("index.html"))
}

/// Writes the pages of the routines and of their chapters into the directory `sources`. Returns
/// their part of the summary.
fn write_routines(routines: &[ManPage], dir: &Path, sources: &Path) -> Result<String> {
    let mut summary = "\n# Routines\n".to_owned();
    let mut chapter = None;
    for page in routines {
        if chapter != Some(&page.chapter) {
            chapter = Some(&page.chapter);
            let file = reference::file(&page.chapter);
            let title = reference::title(&page.chapter);
            let index = reference::index(&page.chapter, routines);
            write(&sources.join(&file), &index)?;
            summary += &format!("\n- [{title}]({file})\n");
        }

        // mandoc reads a file.
        let source = dir.join("page.3");
        let text = page
            .text
            .replace("@DATE@", "")
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        write(&source, &text)?;
        let mut mandoc = Command::new("mandoc");
        let html = capture(mandoc.args(["-Thtml", "-Ofragment"]).arg(&source))?;
        let html = as_markdown(without_head_and_foot(&html));

        let name = &page.name;
        let body = reference::with_pages(&html, routines);
        let place = reference::place_in_the_standard(&page.chapter);
        let text = format!("# {name}\n\n{body}\n\n{place}\n");
        write(&sources.join(format!("{name}.md")), &text)?;
        summary += &format!("  - [{name}]({name}.md)\n");
    }
    Ok(summary)
}

/// Makes the links of a page lead to pages of the site, and adds those to routines.
fn rewrite_links(page: &Path, sources: &Path, routines: &[ManPage]) -> Result<()> {
    let dir = page.parent().unwrap_or(sources);
    let text = without_links_outside(&read(page)?);
    let text = with_titles(&text, |target| title(&dir.join(target)));

    let depth = dir
        .strip_prefix(sources)
        .map_or(0, |path| path.components().count());
    let text = reference::with_links(&text, routines, &"../".repeat(depth));
    write(page, &text)
}

/// Returns the first heading of a page; `None` if it cannot be read or has none.
fn title(page: &Path) -> Option<String> {
    let text = read(page).ok()?;
    let mut titles = text.lines().filter_map(|line| line.strip_prefix("# "));
    titles.next().map(str::to_owned)
}

/// Removes the tables at the start and the end of a page of mandoc, which repeat its name.
fn without_head_and_foot(html: &str) -> &str {
    let body = html.split_once("</table>").map_or(html, |(_, body)| body);
    body.rsplit_once("<table").map_or(body, |(body, _)| body)
}

/// Makes HTML of mandoc a block in Markdown. A blank line, as in a program, would end the block, so
/// it becomes a space that is written as an entity. Also removes the line breaks that mandoc adds
/// before indented lines.
fn as_markdown(html: &str) -> String {
    let html = html.trim().replace("\n<br/>\n", "\n");
    let mut lines = Vec::new();
    for line in html.lines() {
        let is_blank = line.trim().is_empty();
        lines.push(if is_blank { "&#32;" } else { line });
    }
    lines.join("\n")
}

/// Replaces links to files that the site does not have by their text.
fn without_links_outside(text: &str) -> String {
    // Each part but the first begins with the target of a link, whose text ends the part before.
    let mut parts = text.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        if OUTSIDE.iter().any(|start| target.starts_with(start))
            && let Some(bracket) = result.rfind('[')
        {
            result.remove(bracket);
            result += rest;
        } else {
            result += "](";
            result += part;
        }
    }
    result
}

/// Replaces the text of links that is the name of a file by the title of that page.
fn with_titles(text: &str, title: impl Fn(&str) -> Option<String>) -> String {
    // Each part but the first begins with the target of a link, whose text ends the part before.
    let mut parts = text.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let target = part.split(['#', ')']).next().unwrap_or_default();
        if let Some(bracket) = result.rfind('[')
            && result[bracket + 1..].ends_with(".md")
            && let Some(title) = title(target)
        {
            result.truncate(bracket + 1);
            result += &title;
        }
        result += "](";
        result += part;
    }
    result
}

/// Checks that each link within the site leads to one of its files.
fn check(site: &Path) -> Result<()> {
    let mut broken = Vec::new();
    for page in files(site, ".html")? {
        let dir = page.parent().unwrap_or(site);
        for target in read(&page)?.split(" href=\"").skip(1) {
            let target = target.split(['"', '#']).next().unwrap_or_default();
            let is_here = !target.is_empty() && !target.contains(':');
            if is_here && !dir.join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    broken.dedup();
    if broken.is_empty() {
        return Ok(());
    }
    bail!("these links lead nowhere:\n  {}", broken.join("\n  "))
}

fn files(dir: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let pattern = format!("*{end}");
    let listed = capture(Command::new("find").arg(dir).args(["-name", &pattern]))?;
    Ok(listed.lines().map(PathBuf::from).collect())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_repository_become_text() {
        let text = "see [a](a.md), [the `code`](../crates/x) and [b](b.md#c).";
        let expected = "see [a](a.md), the `code` and [b](b.md#c).";
        assert_eq!(without_links_outside(text), expected);
    }

    #[test]
    fn html_of_a_program_stays_one_block() {
        let html = as_markdown("\n<pre>int x;\n\nint main\n<br/>\n    return</pre>\n");
        assert_eq!(html, "<pre>int x;\n&#32;\nint main\n    return</pre>");
    }

    #[test]
    fn links_have_the_titles_of_pages() {
        let title = |target: &str| match target {
            "a.md" => Some("All of A".to_owned()),
            _ => None,
        };
        let text = "see [a.md](a.md#part), [other.md](b.md) and [a](a.md).";
        let expected = "see [All of A](a.md#part), [other.md](b.md) and [a](a.md).";
        assert_eq!(with_titles(text, title), expected);
    }

    /// The search of the book finds headings.
    #[test]
    fn headings_have_the_words_that_users_search_for() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let pages = files(&docs, ".md").unwrap();
        let text: Vec<String> = pages.iter().map(|page| read(page).unwrap()).collect();
        let headings = text
            .iter()
            .flat_map(|text| text.lines())
            .filter(|l| l.starts_with('#'));
        let headings: Vec<&str> = headings.collect();
        for words in [
            "deadlocks",
            "Other launchers",
            "Where PEs run",
            "Messages about jobs",
            "Messages of the library",
            "For administrators",
            "tatic data",
            "Algorithms of collectives",
            "OSU benchmarks",
            "mall operations",
            "Glossary",
            "What the tests do not cover",
        ] {
            assert!(
                headings.iter().any(|line| line.contains(words)),
                "no heading has {words:?}"
            );
        }
    }
}
