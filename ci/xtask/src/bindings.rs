//! `cargo xtask bindings [--check]`: writes the committed bindings of C libraries from their
//! headers, or checks that they are current.
//!
//! Each crate under sys/ has a program that writes its bindings. It needs libclang and the headers
//! of one version of the library. Few machines have both, so the bindings are committed; bindings
//! whose headers or libclang are missing are skipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

/// The bindings of one crate.
struct Bindings {
    package: &'static str,
    /// The program of the package that writes them, behind the feature `regenerate`.
    program: &'static str,
    /// The file of the bindings, relative to the top of the repository.
    file: &'static str,
    /// The version of the library whose headers they are made from.
    version: &'static str,
    /// The name of the library for pkg-config.
    library: &'static str,
}

const ALL: &[Bindings] = &[
    Bindings {
        package: "rushmem-ucx-sys",
        program: "ucx-bindings",
        file: "sys/ucx-sys/src/bindings.rs",
        version: "1.13",
        library: "ucx",
    },
    Bindings {
        package: "rushmem-libfabric-sys",
        program: "libfabric-bindings",
        file: "sys/libfabric-sys/src/bindings.rs",
        version: "1.17",
        library: "libfabric",
    },
    Bindings {
        package: "rushmem-pmix-sys",
        program: "pmix-bindings",
        file: "sys/pmix-sys/src/bindings.rs",
        version: "4.2",
        library: "pmix",
    },
    Bindings {
        package: "rushmem-hwloc-sys",
        program: "hwloc-bindings",
        file: "sys/hwloc-sys/src/bindings.rs",
        version: "2.9",
        library: "hwloc",
    },
];

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
/// are stale. Returns a line for each crate whose bindings cannot be made here, with the reason.
pub fn make_all(workspace: &Workspace, check: bool) -> Result<Vec<String>> {
    let mut skipped = Vec::new();
    for bindings in ALL {
        if let Err(why) = bindings.require_headers() {
            skipped.push(format!("{}: {why:#}", bindings.package));
            continue;
        }
        let made = workspace.target.join(bindings.program).with_extension("rs");
        if !bindings.make(workspace, &made)? {
            skipped.push(format!("{}: there is no libclang", bindings.package));
            continue;
        }

        let committed = workspace.root.join(bindings.file);
        if read(&made)? == read(&committed)? {
            println!("{} is up to date.", bindings.file);
            continue;
        }
        if check {
            bail!("{} is stale: run cargo xtask bindings", bindings.file);
        }

        fs::copy(&made, &committed)
            .with_context(|| format!("could not write {}", committed.display()))?;
        println!("Written: {}", bindings.file);
    }
    Ok(skipped)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

impl Bindings {
    /// Fails unless the headers of the right version are installed.
    fn require_headers(&self) -> Result<()> {
        if process::on_path("pkg-config").is_none() {
            bail!("pkg-config, which reports versions of headers, is not here");
        }
        let mut ask = Command::new("pkg-config");
        let version = process::capture(ask.args(["--modversion", self.library]))
            .with_context(|| format!("the headers of {} are not here", self.library))?;

        // 4.2 is the version of 4.2.1 and of 4.2-rc1, but not of 4.20.
        let version = version.trim();
        let rest = version.strip_prefix(self.version);
        if rest.is_none_or(|rest| !rest.starts_with(['.', '-'])) {
            bail!(
                "the headers here are {version}, those of {} are needed",
                self.version
            );
        }
        Ok(())
    }

    /// Writes the bindings to `path`. Returns false if there is no libclang.
    fn make(&self, workspace: &Workspace, path: &Path) -> Result<bool> {
        let mut cargo = workspace.cargo();
        cargo
            .args([
                "run",
                "--quiet",
                "-p",
                self.package,
                "--features",
                "regenerate",
            ])
            .args(["--bin", self.program, "--"])
            .arg(path);
        let output = cargo.output().context("could not start cargo")?;
        if output.status.success() {
            return Ok(true);
        }

        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("Unable to find libclang") {
            return Ok(false);
        }
        bail!("{} failed:\n{said}", process::shown(&cargo))
    }
}
