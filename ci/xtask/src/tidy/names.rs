//! Names of types: one name stands for one thing. In a crate no two files define a type of the same
//! name, and no two crates one that other files can use.

use std::collections::BTreeMap;

use syn::{Item, Visibility};

use super::tree::Tree;

/// Crates that have the same parts or name the same things, which count as one.
const ALIKE: &[(&str, &[&str])] = &[
    ("a provider", &["crates/transport-ofi", "crates/transport-tcp", "crates/transport-ucx"]),
    ("an interface", &["crates/runtime", "crates/shmem", "crates/shmem-c"]),
];

/// Names that several crates may give to a type: each has errors, and `explain` and `testkit` have
/// forms of their own of what the others name so.
const SHARED: &[&str] = &["Error", "Job", "Members", "Pe", "Step"];

/// Names of the standard library that no type of ours may take.
const TAKEN: &[&str] =
    &["Box", "Command", "Duration", "Instant", "Ordering", "Path", "Range", "String", "Vec"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut in_crates: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    let mut shown: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    let mut complaints = Vec::new();
    for file in &tree.files {
        let Some((dir, _)) = file.source().filter(|_| !file.is_generated()) else { continue };
        let like = ALIKE.iter().find(|(_, crates)| crates.contains(&dir));
        let like = like.map_or(dir, |(like, _)| like);
        for (name, is_shown) in types(&file.text) {
            if TAKEN.contains(&name.as_str()) {
                complaints.push(format!(
                    "{}: the type {name} hides that of the standard library",
                    file.path
                ));
            }
            if is_shown && !SHARED.contains(&name.as_str()) {
                shown.entry(name.clone()).or_default().entry(like).or_insert(&file.path);
            }
            in_crates.entry((dir, name)).or_default().push(&file.path);
        }
    }
    let of_crates = in_crates.into_iter().map(|((_, name), paths)| (name, paths));
    let of_all = shown.into_iter().map(|(name, paths)| (name, paths.into_values().collect()));
    let double = of_crates.chain(of_all).filter(|(_, paths): &(_, Vec<&str>)| paths.len() > 1);
    complaints.extend(
        double.map(|(name, paths)| format!("{name}: a type in {}", paths.join(" and in "))),
    );
    complaints
}

/// Returns the types of a file, and whether other files can use them.
fn types(text: &str) -> Vec<(String, bool)> {
    // The compiler reports syntax errors better.
    let items = syn::parse_file(text).map(|file| file.items).unwrap_or_default();
    let named = items.into_iter().filter_map(|item| match item {
        Item::Struct(item) => Some((item.ident, item.vis)),
        Item::Enum(item) => Some((item.ident, item.vis)),
        Item::Trait(item) => Some((item.ident, item.vis)),
        _ => None,
    });
    named.map(|(name, vis)| (name.to_string(), !matches!(vis, Visibility::Inherited))).collect()
}

#[cfg(test)]
mod tests;
