//! Every crate's Cargo.toml inherits the workspace's lints, one oldest Rust is stated everywhere,
//! and packages contain the licenses.

use super::tree::Tree;

/// Files whose text must name the oldest Rust, as `Rust 1.2`.
const STATE_THE_RUST: &[&str] = &["README.md"];

/// The links in a package to the files at the top, which cargo follows.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = without_licenses(tree);
    for file in &tree.files {
        if file.path.ends_with("/Cargo.toml") && !inherits_lints(&file.text) {
            complaints.push(format!(
                "{}: it does not inherit the workspace's lints ([lints] workspace = true)",
                file.path
            ));
        }
    }
    let Some(stated) = tree
        .files
        .iter()
        .find_map(|file| (file.path == "Cargo.toml").then(|| rust_version(&file.text))?)
    else {
        complaints.push("Cargo.toml: the workspace states no rust-version".into());
        return complaints;
    };
    for package in &tree.packages {
        if package.rust_version.as_deref() != Some(stated) {
            complaints.push(format!(
                "{}/Cargo.toml: its rust-version is not the workspace's {stated}",
                package.dir
            ));
        }
    }
    for name in STATE_THE_RUST {
        let phrase = format!("Rust {stated}");
        let says_it = |file: &super::tree::File| file.path == *name && file.text.contains(&phrase);
        if !tree.files.iter().any(says_it) {
            complaints.push(format!("{name}: it does not say `{phrase}`"));
        }
    }
    complaints
}

/// Returns the packages that are published without the licenses at the top.
fn without_licenses(tree: &Tree) -> Vec<String> {
    let text = |path: &str| tree.files.iter().find(|file| file.path == path).map(|file| &file.text);
    let published = tree.files.iter().filter(|file| file.text.contains("\npublish = true\n"));
    let dirs = published.filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let files = dirs.flat_map(|dir| LICENSES.map(|name| (format!("{dir}/{name}"), name)));
    files
        .filter(|(path, name)| text(path).is_none_or(|found| text(name) != Some(found)))
        .map(|(path, name)| {
            format!("{path}: it is published, but is not a link to {name} at the top")
        })
        .collect()
}

/// Returns true if the section `[lints]` says `workspace = true`.
fn inherits_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true")
}

fn rust_version(manifest: &str) -> Option<&str> {
    let (_, value) = manifest
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "rust-version")?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests;
