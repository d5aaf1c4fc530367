//! Rules for imports within a crate: the imports of files form no circle, and where modules are
//! layers, a layer imports only those before it.
//!
//! A file imports another one if a `use` declaration or a path names something in it, directly or
//! by a re-export, also by one of all names (`pub use x::*`). `mod` declarations are not imports,
//! and tests do not count. In the arguments of macros, only paths that begin with `crate` or
//! `super` are found; expansions are not examined.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

use super::tree::Tree;

/// The crates whose modules are layers, and the layers in order: each imports only those before it.
/// A layer includes the modules inside it, except those that are layers themselves. Files that are
/// in none of these modules belong to no layer.
const LAYERS: &[(&str, &[&str])] = &[(
    "crates/runtime",
    &[
        "constants",
        "digest",
        "settings",
        "process",
        "call",
        "job",
        "memory",
        "observers",
        "net",
        "diagnosis",
        "sync",
        "teams",
        "coll",
        "api",
        "end",
        "start",
    ],
)];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for file in &tree.files {
        if let Some((dir, path)) = file.source() {
            crates
                .entry(dir)
                .or_default()
                .push((path, if file.is_generated() { "" } else { &file.text }));
        }
    }
    crates
        .into_iter()
        .flat_map(|(dir, files)| of_crate(dir, &files))
        .collect()
}

fn of_crate(dir: &str, files: &[(&str, &str)]) -> Vec<String> {
    let modules = Modules::new(files);
    let imports = modules.imports();
    let mut complaints: Vec<String> = circles(&imports)
        .into_iter()
        .map(|circle| {
            format!(
                "{dir}/src: these files import each other: {}",
                circle.join(", ")
            )
        })
        .collect();
    if let Some((_, layers)) = LAYERS.iter().find(|(layered, _)| *layered == dir) {
        let layer = |path: &str| {
            let is_inside = |layer: &&str| {
                path.strip_prefix(layer)
                    .is_some_and(|rest| rest.starts_with(['/', '.']))
            };
            let innermost = layers
                .iter()
                .copied()
                .filter(is_inside)
                .max_by_key(|l| l.len())?;
            layers.iter().position(|l| *l == innermost)
        };
        for (from, to) in imports
            .iter()
            .flat_map(|(from, tos)| tos.iter().map(move |to| (*from, *to)))
        {
            if let (Some(below), Some(above)) = (layer(from), layer(to))
                && below < above
            {
                let (below, above) = (layers[below], layers[above]);
                complaints.push(format!(
                    "{dir}/src/{from}: it imports {to}, but the layer {below} is below {above}"
                ));
            }
        }
    }
    complaints
}

/// The names in a path, such as those of a module from the root of the crate.
type NamePath = Vec<String>;

/// The imports and definitions of a file.
#[derive(Default)]
struct Module {
    /// The path of each imported name, as written.
    names: BTreeMap<String, NamePath>,
    /// All paths that the file uses, including imports, as written.
    paths: BTreeSet<NamePath>,
    /// The modules from which the file imports all names (`use x::*`), as written.
    globs: Vec<NamePath>,
    /// The names of the items that the file defines, without modules and macros.
    defined: BTreeSet<String>,
    /// During the visit, the number of inline modules around the current item.
    inner: usize,
}

/// The modules of a crate that are files, by their names.
struct Modules<'a> {
    files: BTreeMap<NamePath, (&'a str, Module)>,
}

impl<'a> Modules<'a> {
    fn new(files: &[(&'a str, &str)]) -> Modules<'a> {
        let files = files.iter().map(|(path, text)| {
            let stem = path.trim_end_matches(".rs");
            let names = stem
                .split('/')
                .filter(|name| !["lib", "main", "mod"].contains(name));
            let mut module = Module::default();
            // Syntax errors are left to the compiler.
            if let Ok(file) = syn::parse_file(text) {
                module.visit_file(&file);
            }
            (names.map(str::to_owned).collect(), (*path, module))
        });
        Modules {
            files: files.collect(),
        }
    }

    /// Returns the files that each file imports.
    fn imports(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let of = |module: &NamePath, (path, content): &(&'a str, Module)| {
            let targets = content
                .paths
                .iter()
                .filter_map(|used| self.find(module, used, 0))
                .filter_map(|names| Some(self.files.get(&names)?.0));
            (*path, targets.filter(|target| target != path).collect())
        };
        self.files
            .iter()
            .map(|(module, file)| of(module, file))
            .collect()
    }

    /// Returns the module whose file defines the item that `path` names in `module`.
    fn find(&self, module: &NamePath, path: &[String], depth: usize) -> Option<NamePath> {
        let (first, rest) = path.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (NamePath::new(), rest),
            "self" => (module.clone(), rest),
            "super" => (module[..module.len().checked_sub(1)?].to_vec(), rest),
            _ => (module.clone(), path),
        };
        let is_relative = !["crate", "self", "super"].contains(&first.as_str());
        while let Some((name, behind)) = rest.split_first() {
            if name == "super" {
                at.pop();
            } else if let Some(aliased) = self.files.get(&at).and_then(|(_, m)| m.names.get(name))
                && depth < 8
                && (at != *module || is_relative)
                && aliased.as_slice() != path
            {
                let aliased = [aliased.as_slice(), behind].concat();
                return self.find(&at, &aliased, depth + 1);
            } else {
                let child = [at.as_slice(), std::slice::from_ref(name)].concat();
                if !self.files.keys().any(|module| module.starts_with(&child)) {
                    if let Some(behind_glob) = self.by_glob(&at, name, depth) {
                        let there = [&["self".to_owned()], rest].concat();
                        return self.find(&behind_glob, &there, depth + 1);
                    }
                    // No module has this name: it is that of another crate, or of an item of this
                    // file.
                    return (!is_relative || rest.len() < path.len()).then_some(at);
                }
                at = child;
            }
            rest = behind;
        }
        self.files.contains_key(&at).then_some(at)
    }
}

impl Modules<'_> {
    /// Returns the module from which the module `at` imports a name by `use x::*`.
    fn by_glob(&self, at: &NamePath, name: &String, depth: usize) -> Option<NamePath> {
        let (_, module) = self.files.get(at)?;
        if depth >= 8 || module.defined.contains(name) {
            return None;
        }
        let sources = module
            .globs
            .iter()
            .filter_map(|glob| self.find(at, glob, depth + 1));
        sources.into_iter().find(|source| {
            source != at
                && self.files.get(source).is_some_and(|(_, module)| {
                    module.defined.contains(name) || module.names.contains_key(name)
                } || self.by_glob(source, name, depth + 1).is_some())
        })
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let tokens = |a: &Attribute| a.meta.require_list().map(|list| list.tokens.to_string());
    attributes
        .iter()
        .any(|a| a.path().is_ident("cfg") && tokens(a).is_ok_and(|cfg| cfg.contains("test")))
}

impl Module {
    fn add(&mut self, path: NamePath) {
        // In an inline module, `super` names this file or another inline module of it.
        let supers = path
            .iter()
            .take_while(|name| *name == "super")
            .count()
            .min(self.inner);
        let path = match supers {
            0 => path,
            _ => ["self".to_owned()]
                .into_iter()
                .chain(path.into_iter().skip(supers))
                .collect(),
        };
        self.paths.insert(path);
    }

    fn tree(&mut self, before: &NamePath, tree: &UseTree) {
        let with = |name: &syn::Ident| [before.as_slice(), &[name.to_string()]].concat();
        let mut import = |name: String, path: NamePath| {
            self.add(path.clone());
            self.names.insert(name, path);
        };
        match tree {
            UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) if name.ident == "self" => {
                import(before.last().cloned().unwrap_or_default(), before.clone());
            }
            UseTree::Name(name) => import(name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(rename) => import(rename.rename.to_string(), with(&rename.ident)),
            UseTree::Glob(_) => {
                self.add(before.clone());
                self.globs.push(before.clone());
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        self.defined.extend(defined(item).map(ToString::to_string));
        let attributes = match item {
            Item::Struct(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.inner += 1;
        visit::visit_item_mod(self, item);
        self.inner -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.tree(&NamePath::new(), &item.tree);
        }
    }

    /// Adds the paths that begin with `crate` or `super` in the arguments of a macro, which are not
    /// parsed.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let text = called.tokens.to_string().replace(' ', "");
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        for start in ["crate::", "super::"] {
            for (at, _) in text
                .match_indices(start)
                .filter(|(at, _)| !text[..*at].ends_with(is_name))
            {
                let end = text[at..]
                    .find(|c| !is_name(c) && c != ':')
                    .map_or(text.len(), |n| at + n);
                self.add(text[at..end].split("::").map(str::to_owned).collect());
            }
        }
        visit::visit_macro(self, called);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.add(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }
}

/// Returns the name that an item has in its module; `None` for modules, macros and items without a
/// name.
fn defined(item: &Item) -> Option<&syn::Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

/// Returns each set of files that import each other, directly or through others, once.
fn circles<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reached = |from: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(
                imports
                    .get(file)
                    .into_iter()
                    .flatten()
                    .filter(|to| seen.insert(**to)),
            );
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (*file, reached(file))).collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, others) in &reach {
        let circle: Vec<&str> = others
            .iter()
            .filter(|o| reach[*o].contains(file))
            .copied()
            .collect();
        circles.extend((circle.len() > 1).then_some(circle));
    }
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tree::tree;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        check(&tree(files))
    }

    #[test]
    fn a_circle_is_found_however_it_is_closed() {
        let lib = ("crates/x/src/lib.rs", "mod a; mod b; pub use a::A;");
        let a = ("crates/x/src/a.rs", "use crate::b::B; pub struct A;");
        let circle = "crates/x/src: these files import each other: a.rs, b.rs";
        for b in [
            "use crate::a::A;",
            "fn f() { crate::a::g() }",
            "use crate::A;",
            "use super::a; fn f() { a::g() }",
        ] {
            assert_eq!(
                complaints(&[lib, a, ("crates/x/src/b.rs", b)]),
                [circle],
                "{b}"
            );
        }
        for b in [
            "pub struct B;",
            "#[cfg(test)] mod tests { use crate::a::A; }",
            "use other::a::A;",
        ] {
            assert!(
                complaints(&[lib, a, ("crates/x/src/b.rs", b)]).is_empty(),
                "{b}"
            );
        }
    }

    #[test]
    fn a_circle_by_way_of_all_names_of_a_module_is_found() {
        let all = "mod a; mod b; mod c; pub use c::*;";
        let lib = ("crates/x/src/lib.rs", all);
        let c = (
            "crates/x/src/c.rs",
            "pub use crate::a::*; pub fn other() {}",
        );
        let a = (
            "crates/x/src/a.rs",
            "use crate::b::B; pub const A: u32 = 1;",
        );
        for b in [
            "use crate::A; pub struct B;",
            "pub struct B; fn f() { crate::c::A }",
        ] {
            let found = complaints(&[lib, a, ("crates/x/src/b.rs", b), c]);
            assert_eq!(
                found,
                ["crates/x/src: these files import each other: a.rs, b.rs"],
                "{b}"
            );
        }
        let b = ("crates/x/src/b.rs", "use crate::other; pub struct B;");
        assert_eq!(
            complaints(&[lib, ("crates/x/src/a.rs", "pub struct A;"), b, c]),
            [""; 0]
        );
    }

    #[test]
    fn a_parent_and_its_child_are_files_too() {
        let parent = ("crates/x/src/a/mod.rs", "mod b; use b::B; pub struct A;");
        let child = ("crates/x/src/a/b.rs", "use super::A; pub struct B;");
        assert_eq!(complaints(&[parent, child]).len(), 1);
        let alone = ("crates/x/src/a/mod.rs", "mod b; pub struct A;");
        assert!(complaints(&[alone, child]).is_empty());
    }

    #[test]
    fn layers_import_downwards() {
        let files = [
            ("crates/runtime/src/call/a.rs", "use crate::net::b;"),
            ("crates/runtime/src/net/b.rs", ""),
        ];
        assert_eq!(complaints(&files).len(), 1);
        let files = [
            ("crates/runtime/src/call/a.rs", ""),
            ("crates/runtime/src/net/b.rs", "use crate::call::a;"),
        ];
        assert!(complaints(&files).is_empty());
    }
}
