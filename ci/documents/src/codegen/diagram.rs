//! Draws the diagram of the crates, docs/diagrams/crates.svg, from the metadata of cargo.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use task_support::workspace::Package;

/// The directories whose crates are not drawn: they only measure or test the others.
const OMITTED: &[&str] = &["benches/", "ci/"];

/// The directories of the crates that each crate imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The width of the diagram in pixels, as all sizes here.
const WIDTH: usize = 780;
/// The distance between boxes, and from the border.
const GAP: usize = 16;
/// The height of a line of text.
const LINE: usize = 21;
/// Maximum number of letters in a line with several imports of a box.
const LETTERS: usize = 26;

/// The box of a crate: its name, and the lines of text with its imports.
struct CrateBox<'a> {
    name: &'a str,
    imports: Vec<String>,
}

/// Draws each crate as a box, above the boxes of the crates that it imports. A box names its
/// imports, except those that follow from others.
pub fn draw(packages: &[Package]) -> String {
    let imports = imports(packages);
    let mut names: Vec<&str> = imports.keys().copied().collect();
    names.sort_by_key(|name| Reverse(depth(&imports, name)));
    let (mut body, mut y) = (String::new(), GAP);
    for level in names.chunk_by(|one, other| depth(&imports, one) == depth(&imports, other)) {
        let boxes: Vec<CrateBox<'_>> = level
            .iter()
            .map(|name| CrateBox::new(&imports, name))
            .collect();
        for row in rows(&boxes) {
            let width = row.iter().map(|of_row| of_row.width() + GAP).sum::<usize>() - GAP;
            let height = row.iter().map(|of_row| of_row.height()).max().unwrap_or(0);
            let mut x = (WIDTH - width) / 2;
            for of_row in row {
                body += &of_row.draw(x, y, height);
                x += of_row.width() + GAP;
            }
            y += height + GAP;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\" \
         height=\"{y}\" font-family=\"sans-serif\" font-size=\"16\" text-anchor=\"middle\">\n\
         <title>The crates, each above those that it imports</title>\n\
         <rect width=\"{WIDTH}\" height=\"{y}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// Returns the boxes of one level in rows that fit the width.
fn rows<'a, 'b>(boxes: &'b [CrateBox<'a>]) -> Vec<&'b [CrateBox<'a>]> {
    let (mut rows, mut first, mut width) = (Vec::new(), 0, GAP);
    for (index, next) in boxes.iter().enumerate() {
        if width + next.width() + GAP > WIDTH {
            rows.push(&boxes[first..index]);
            (first, width) = (index, GAP);
        }
        width += next.width() + GAP;
    }
    rows.push(&boxes[first..]);
    rows
}

impl<'a> CrateBox<'a> {
    fn new(imports: &Imports<'_>, name: &'a str) -> Self {
        let of_name = &imports[name];
        let direct = of_name
            .iter()
            .filter(|to| !is_implied(imports, of_name, to));
        let mut lines: Vec<String> = Vec::new();
        for import in direct.map(|dir| dir.rsplit('/').next().unwrap_or(dir)) {
            match lines.last_mut() {
                Some(line) if line.len() + import.len() + 2 <= LETTERS => {
                    *line += &format!(", {import}");
                }
                _ => lines.push(import.to_owned()),
            }
        }
        Self {
            name,
            imports: lines,
        }
    }

    fn width(&self) -> usize {
        let of_imports = self
            .imports
            .iter()
            .map(|line| 9 * line.len())
            .max()
            .unwrap_or(0);
        of_imports.max(11 * self.name.len()) + GAP
    }

    fn height(&self) -> usize {
        LINE * (self.imports.len() + 1) + 12
    }

    fn draw(&self, x: usize, y: usize, height: usize) -> String {
        let (width, middle) = (self.width(), x + self.width() / 2);
        let (fill, stroke) = match self.name.split('/').next() {
            Some("launcher") => ("#fdf6e3", "#b49a4a"),
            Some("sys") => ("#edf6ed", "#6a9a6a"),
            _ => ("#eef3fa", "#5b7ba8"),
        };
        let mut text = format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
             fill=\"{fill}\" stroke=\"{stroke}\"/>\n"
        );
        let mut line = y + (height - self.height()) / 2 + LINE;
        text += &format!(
            "<text x=\"{middle}\" y=\"{line}\" font-size=\"17\" font-weight=\"bold\">{}</text>\n",
            self.name
        );
        for imports in &self.imports {
            line += LINE;
            text += &format!("<text x=\"{middle}\" y=\"{line}\">{imports}</text>\n");
        }
        text
    }
}

/// Returns the imports of all crates that are drawn, without those of their tests.
fn imports(packages: &[Package]) -> Imports<'_> {
    let is_drawn = |dir: &str| !OMITTED.iter().any(|start| dir.starts_with(start));
    packages
        .iter()
        .filter(|package| is_drawn(&package.dir))
        .map(|package| {
            let dependencies = package
                .dependencies
                .iter()
                .filter(|dependency| !dependency.dev);
            let dirs = dependencies.filter_map(|dependency| dependency.dir.as_deref());
            (
                package.dir.as_str(),
                dirs.filter(|dir| is_drawn(dir)).collect(),
            )
        })
        .collect()
}

/// Returns the length of the longest chain of imports that begins at a crate.
fn depth(imports: &Imports<'_>, name: &str) -> usize {
    imports[name]
        .iter()
        .map(|import| depth(imports, import) + 1)
        .max()
        .unwrap_or(0)
}

/// Returns true if a crate of `targets` imports `to`, directly or through others.
fn is_implied(imports: &Imports<'_>, targets: &BTreeSet<&str>, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), targets.iter().copied().collect::<Vec<_>>());
    while let Some(name) = open.pop() {
        open.extend(imports[name].iter().filter(|import| seen.insert(**import)));
    }
    seen.contains(to)
}
