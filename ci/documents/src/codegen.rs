//! `cargo xtask codegen [--check]`: writes the parts of the documentation that are generated from
//! the code: the diagram of the crates and the page of settings. They are committed, so that they
//! can be read without a build.

mod diagram;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use task_support::process;
use task_support::workspace::Workspace;

/// Writes the generated files, or with `check` fails if any of them are stale.
pub fn run(check: bool) -> Result<()> {
    let workspace = Workspace::open()?;
    let files = [
        (
            "docs/diagrams/crates.svg",
            diagram::draw(&workspace.packages),
        ),
        ("docs/settings.md", settings(&workspace)?),
    ];
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

/// Returns the page of all settings, which shmem-info prints.
fn settings(workspace: &Workspace) -> Result<String> {
    // With `--workspace`, cargo compiles the dependencies that it shares with the tests only once.
    let made = workspace.build(&["build", "--workspace", "--bin", "shmem-info"])?;
    let program = made.iter().find(|path| path.ends_with("shmem-info"));
    process::capture(Command::new(program.context("cargo made no shmem-info")?).arg("--markdown"))
}
