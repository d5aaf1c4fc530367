//! The diagram of the crates, docs/diagrams/crates.svg, drawn from what cargo knows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;
use task_support::workspace::Package;

/// Directories whose crates only measure or test the others.
const OMITTED: &[&str] = &["benches/", "ci/"];

/// For each crate those that it imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Draws each crate as a box, and each import that does not follow from others as an arrow.
pub fn draw(packages: &[Package]) -> String {
    let imports = imports(packages);
    let mut graph = VisualGraph::new(Orientation::TopToBottom);
    let mut boxes = BTreeMap::new();
    // Fewest arrows cross boxes where crates are placed from the top down.
    let mut names: Vec<&str> = imports.keys().copied().collect();
    names.sort_by_key(|name| Reverse(depth(&imports, name)));
    for name in names {
        let size = Point::new(9.0 * name.len() as f64 + 16.0, 32.0);
        let style = StyleAttr::simple();
        let shape = ShapeKind::new_box(name);
        let element = Element::create(shape, style, Orientation::LeftToRight, size);
        boxes.insert(name, graph.add_node(element));
    }
    for (from, targets) in &imports {
        for to in targets.iter().filter(|to| !is_implied(&imports, targets, to)) {
            graph.add_edge(Arrow::simple(""), boxes[from], boxes[to]);
        }
    }
    let mut writer = SVGWriter::new();
    graph.do_it(false, false, false, &mut writer);
    writer.finalize().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn imports(packages: &[Package]) -> Imports<'_> {
    let is_drawn = |dir: &str| !OMITTED.iter().any(|start| dir.starts_with(start));
    let drawn = packages.iter().filter(|package| is_drawn(&package.dir));
    drawn
        .map(|package| {
            let dependencies = package.dependencies.iter().filter(|dependency| !dependency.dev);
            let dirs = dependencies.filter_map(|dependency| dependency.dir.as_deref());
            (package.dir.as_str(), dirs.filter(|dir| is_drawn(dir)).collect())
        })
        .collect()
}

/// Returns the length of the longest way down from a crate.
fn depth(imports: &Imports<'_>, name: &str) -> usize {
    imports[name].iter().map(|import| depth(imports, import) + 1).max().unwrap_or(0)
}

/// Returns true if another of `targets` imports `to`, directly or through others.
fn is_implied(imports: &Imports<'_>, targets: &BTreeSet<&str>, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), targets.iter().copied().collect::<Vec<_>>());
    while let Some(name) = open.pop() {
        open.extend(imports[name].iter().filter(|import| seen.insert(**import)));
    }
    seen.contains(to)
}
