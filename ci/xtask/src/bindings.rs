//! `cargo xtask bindings [--check]`: writes the committed bindings of C libraries from their
//! headers, or checks that they are current.
//!
//! `bindings/generator.rs`, a program of its own, makes them. It needs libclang and the headers of
//! one version of the library. Few machines have both, so the bindings are committed; bindings
//! whose headers or libclang are missing are skipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

/// The bindings of one library.
struct Bindings {
    /// The name of the library for pkg-config, and that of its crate without `-sys`.
    library: &'static str,
    /// The version of the library whose headers they are made from.
    version: &'static str,
}

const ALL: &[Bindings] = &[
    Bindings {
        library: "hwloc",
        // The structures are those of all releases 2.x.
        version: "2.9",
    },
    Bindings {
        library: "libfabric",
        version: "1.17",
    },
    Bindings {
        library: "pmix",
        version: "4.2",
    },
    Bindings {
        library: "ucx",
        // Later versions only extend the structures at their ends.
        version: "1.13",
    },
];

/// What the bindings are exempt from: names and documentation are those of C.
const LINTS: &str = "
#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block
)]
";

#[derive(clap::Args)]
pub struct BindingsFlags {
    /// Write nothing, and fail if a file is not up to date
    #[arg(long)]
    check: bool,
}

/// Writes the bindings, or with `check` fails if any of them are stale. Prints which ones cannot be
/// made here.
pub fn run(BindingsFlags { check }: BindingsFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    for skipped in make_all(&workspace, check)? {
        println!("skipped: {skipped}");
    }
    Ok(())
}

/// Makes the bindings of each library, and writes them, or with `check` fails if the committed ones
/// are stale. Returns a line for each library whose bindings cannot be made here, with the reason.
pub fn make_all(workspace: &Workspace, check: bool) -> Result<Vec<String>> {
    let mut skipped = Vec::new();
    for bindings in ALL {
        if let Err(why) = bindings.require_headers() {
            skipped.push(format!("{}: {why:#}", bindings.library));
            continue;
        }
        let Some(made) = bindings.make(workspace)? else {
            skipped.push(format!("{}: there is no libclang", bindings.library));
            continue;
        };

        let file = format!("sys/{}-sys/src/bindings.rs", bindings.library);
        let committed = workspace.root.join(&file);
        if fs::read_to_string(&committed).is_ok_and(|committed| committed == made) {
            println!("{file} is up to date.");
            continue;
        }
        if check {
            bail!("{file} is stale: run cargo xtask bindings");
        }

        fs::write(&committed, made)
            .with_context(|| format!("could not write {}", committed.display()))?;
        println!("Written: {file}");
    }
    Ok(skipped)
}

impl Bindings {
    /// Fails unless the headers of the right version are installed.
    fn require_headers(&self) -> Result<()> {
        if process::on_path("pkg-config").is_none() {
            bail!("pkg-config, which reports versions of headers, is not here");
        }
        let version = self.ask("--modversion")?;

        // 4.2 is the version of 4.2.1 and of 4.2-rc1, but not of 4.20.
        let rest = version.trim().strip_prefix(self.version);
        if rest.is_none_or(|rest| !rest.starts_with(['.', '-'])) {
            bail!(
                "the headers here are {}, those of {} are needed",
                version.trim(),
                self.version
            );
        }
        Ok(())
    }

    fn ask(&self, question: &str) -> Result<String> {
        process::capture(Command::new("pkg-config").args([question, self.library]))
            .with_context(|| format!("the headers of {} are not here", self.library))
    }

    /// Returns the bindings, or `None` if there is no libclang.
    fn make(&self, workspace: &Workspace) -> Result<Option<String>> {
        let mut cargo = workspace.cargo();
        cargo
            .args(["run", "--quiet", "-p", "xtask", "--features", "bindgen"])
            .args(["--bin", "bindings-generator", "--", self.library])
            .args(self.ask("--cflags")?.split_whitespace());
        let output = cargo.output().context("could not start cargo")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("Unable to find libclang") {
                return Ok(None);
            }
            bail!("{} failed:\n{said}", process::shown(&cargo))
        }

        let code = String::from_utf8(output.stdout).context("bindings are no UTF-8")?;
        let text = format!(
            "// @generated by `cargo xtask bindings` from the headers of {} {}.\n\n{LINTS}{code}",
            self.library, self.version
        );
        formatted(text, &workspace.target.join("bindings.rs")).map(Some)
    }
}

/// Returns code of Rust in its usual format, which the file `scratch` takes on the way.
fn formatted(text: String, scratch: &Path) -> Result<String> {
    fs::write(scratch, text).with_context(|| format!("could not write {}", scratch.display()))?;
    process::run(
        Command::new("rustfmt")
            .args(["--edition", "2024"])
            .arg(scratch),
    )?;
    fs::read_to_string(scratch).with_context(|| format!("could not read {}", scratch.display()))
}
