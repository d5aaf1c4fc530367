//! `cargo xtask codegen [--check]`: writes the parts of the documentation that are generated from
//! the code: the diagram of the crates and the page of settings. They are committed, so that they
//! can be read without a build.

mod diagram;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

struct GeneratedFile {
    /// The path in the repository.
    name: &'static str,
    text: String,
}

#[derive(clap::Args)]
pub struct CodegenFlags {
    /// Write nothing, and fail if a file is not up to date
    #[arg(long)]
    pub check: bool,
}

/// Writes the generated files, or with `check` fails if any of them are stale.
pub fn run(&CodegenFlags { check }: &CodegenFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    let files = [
        GeneratedFile {
            name: "docs/diagrams/crates.svg",
            text: diagram::draw(&workspace.packages),
        },
        GeneratedFile {
            name: "docs/settings.md",
            text: settings(&workspace)?,
        },
    ];

    let mut stale = Vec::new();
    for file in files {
        let path = workspace.root.join(file.name);
        if fs::read_to_string(&path).is_ok_and(|old| old == file.text) {
            continue;
        }
        stale.push(file.name);
        if !check {
            fs::write(&path, file.text)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
    }

    if stale.is_empty() {
        println!("The generated files are up to date.");
    } else if check {
        bail!("stale: {}. Run cargo xtask codegen", stale.join(", "));
    } else {
        println!("Written: {}", stale.join(", "));
    }
    Ok(())
}

/// Returns the page of all settings, which shmem-info prints.
fn settings(workspace: &Workspace) -> Result<String> {
    // With `--workspace`, cargo compiles the dependencies that it shares with the tests only once.
    let made = workspace.build(&["build", "--workspace", "--bin", "shmem-info"])?;
    let program = made.iter().find(|path| path.ends_with("shmem-info"));
    let program = program.context("cargo made no shmem-info")?;
    process::capture(Command::new(program).arg("--markdown"))
}
