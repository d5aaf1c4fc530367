//! Draws the diagram of the crates, docs/diagrams/crates.svg, from the metadata of cargo.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use task_support::workspace::Package;

/// The directories whose crates are not drawn: they only measure or test the others.
const OMITTED: &[&str] = &["benches", "ci/"];

/// The directories of the crates that each crate imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The width of the diagram in pixels, as all sizes here.
const WIDTH: usize = 780;
/// The distance between boxes, and from the border.
const GAP: usize = 16;
/// The height of a line of text.
const LINE: usize = 21;
/// The space above and below the text of a box, together.
const MARGIN: usize = 12;
/// The width of a letter in the name of a crate, which is bold and larger. It is that of a wide
/// letter, since the font is the browser's.
const NAME_LETTER: usize = 11;
/// The width of a letter in an import.
const IMPORT_LETTER: usize = 9;
/// The maximum number of letters in a line with several imports.
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

    let mut body = String::new();
    let mut y = GAP;
    for level in names.chunk_by(|one, other| depth(&imports, one) == depth(&imports, other)) {
        let mut boxes = Vec::new();
        for name in level {
            boxes.push(CrateBox::new(&imports, name));
        }

        for row in rows(&boxes) {
            let width = row.iter().map(|of_row| of_row.width() + GAP).sum::<usize>() - GAP;
            let height = row.iter().map(CrateBox::height).max().unwrap_or(0);
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
    let mut rows = Vec::new();
    let mut first = 0;
    let mut width = GAP;
    for (index, next) in boxes.iter().enumerate() {
        if width + next.width() + GAP > WIDTH {
            rows.push(&boxes[first..index]);
            first = index;
            width = GAP;
        }
        width += next.width() + GAP;
    }
    rows.push(&boxes[first..]);
    rows
}

impl<'a> CrateBox<'a> {
    fn new(imports: &Imports<'_>, name: &'a str) -> Self {
        let all = &imports[name];
        let mut lines: Vec<String> = Vec::new();
        for dir in all {
            if is_implied(imports, all, dir) {
                continue;
            }
            let import = dir.rsplit('/').next().unwrap_or(dir);
            match lines.last_mut() {
                Some(line) if line.len() + ", ".len() + import.len() <= LETTERS => {
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
        let of_name = NAME_LETTER * self.name.len();
        let longest_import = self.imports.iter().map(String::len).max().unwrap_or(0);
        of_name.max(IMPORT_LETTER * longest_import) + GAP
    }

    fn height(&self) -> usize {
        LINE * (self.imports.len() + 1) + MARGIN
    }

    /// Draws the box with its upper left corner at this point, and as high as its row.
    fn draw(&self, x: usize, y: usize, height: usize) -> String {
        let width = self.width();
        let (fill, stroke) = match self.name.split('/').next() {
            Some("launcher") => ("#fdf6e3", "#b49a4a"),
            Some("sys") => ("#edf6ed", "#6a9a6a"),
            _ => ("#eef3fa", "#5b7ba8"),
        };
        let mut text = format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
             fill=\"{fill}\" stroke=\"{stroke}\"/>\n"
        );

        let middle = x + width / 2;
        let mut baseline = y + (height - self.height()) / 2 + LINE;
        text += &format!(
            "<text x=\"{middle}\" y=\"{baseline}\" font-size=\"17\" font-weight=\"bold\">{}</text>\n",
            self.name
        );
        for imports in &self.imports {
            baseline += LINE;
            text += &format!("<text x=\"{middle}\" y=\"{baseline}\">{imports}</text>\n");
        }
        text
    }
}

/// Returns the imports of all crates that are drawn, without those of their tests.
fn imports(packages: &[Package]) -> Imports<'_> {
    let mut imports = Imports::new();
    for package in packages.iter().filter(|package| is_drawn(&package.dir)) {
        let of_package = imports.entry(&package.dir).or_default();
        for dependency in &package.dependencies {
            // Crates of others have no directory.
            if let Some(dir) = &dependency.dir
                && !dependency.dev
                && is_drawn(dir)
            {
                of_package.insert(dir);
            }
        }
    }
    imports
}

fn is_drawn(dir: &str) -> bool {
    !OMITTED.iter().any(|start| dir.starts_with(start))
}

/// Returns the length of the longest chain of imports that begins at a crate.
fn depth(imports: &Imports<'_>, name: &str) -> usize {
    let below = imports[name].iter().map(|import| depth(imports, import));
    below.max().map_or(0, |deepest| deepest + 1)
}

/// Returns true if a crate of `targets` imports `to`, directly or through others.
fn is_implied(imports: &Imports<'_>, targets: &BTreeSet<&str>, to: &str) -> bool {
    let mut imported = BTreeSet::new();
    let mut open: Vec<&str> = targets.iter().copied().collect();
    while let Some(name) = open.pop() {
        for import in &imports[name] {
            let is_new = imported.insert(*import);
            if is_new {
                open.push(import);
            }
        }
    }
    imported.contains(to)
}
