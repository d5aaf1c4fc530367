//! `cargo xtask codegen [--check]`: what the documentation says about the structure of the code,
//! written from the code, and committed, so that it can be read without a build.

mod diagram;
pub mod manual;

use std::fs;

use anyhow::{Context, Result, bail};

use task_support::workspace::Workspace;

/// Writes the generated files, or with `check` says which of them are stale.
pub fn run(check: bool) -> Result<()> {
    let workspace = Workspace::open()?;
    let files = [("docs/diagrams/crates.svg", diagram::draw(&workspace.packages))];
    let mut stale = Vec::new();
    for (name, text) in files {
        let path = workspace.root.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        stale.push(name);
        if !check {
            fs::write(&path, text)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
    }
    match stale.as_slice() {
        [] => println!("The generated files are up to date."),
        names if check => bail!("stale: {}. Run cargo xtask codegen", names.join(", ")),
        names => println!("Written: {}", names.join(", ")),
    }
    Ok(())
}
