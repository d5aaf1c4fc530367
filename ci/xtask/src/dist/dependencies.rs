//! Lists the packages that the programs of a release contain: writes the texts of their licenses,
//! and for each program a software bill of materials (CycloneDX). Adds the licenses of the
//! libraries that the compilers link.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use task_support::installation;
use task_support::process::{self, capture, run};
use task_support::workspace::Workspace;

use super::release::with_path;

/// The subcommands of cargo that are needed, and the commands that install them.
const TOOLS: [(&str, &str); 2] = [
    (
        "cargo-about",
        "cargo install --locked cargo-about --features cli",
    ),
    ("cargo-cyclonedx", "cargo install --locked cargo-cyclonedx"),
];

/// Returns the name of the first of [`TOOLS`] that is missing, and how to install it.
pub fn missing() -> Option<String> {
    for (tool, installation) in TOOLS {
        if process::on_path(tool).is_none() {
            return Some(format!("{tool} is not here: {installation}"));
        }
    }
    None
}

/// Writes the licenses and the bills of materials into share/rushmem of a prefix. `sources` is a
/// copy of the repository, in which cargo-cyclonedx leaves its files.
pub fn install(
    workspace: &Workspace,
    sources: &Path,
    prefix: &Path,
    arch: &str,
    epoch: &str,
) -> Result<()> {
    let licenses = prefix.join("share/rushmem/licenses");
    let bills = prefix.join("share/rushmem/sbom");
    for dir in [&licenses, &bills] {
        with_path(std::fs::create_dir_all(dir), dir)?;
    }

    let texts = workspace.root.join("ci/packaging");
    let mut cyclonedx = Command::new("cargo");
    cyclonedx.args(["cyclonedx", "--quiet", "--format", "json", "--target"]);
    cyclonedx
        .arg(format!("{arch}-unknown-linux-gnu"))
        .current_dir(sources);
    run(cyclonedx.env("SOURCE_DATE_EPOCH", epoch))?;

    for package in installation::packages() {
        let dir = dir(workspace, package)?;
        run(workspace
            .cargo()
            .args(["about", "generate", "--offline", "--config"])
            .arg(texts.join("about.toml"))
            .arg("--manifest-path")
            .arg(workspace.root.join(&dir).join("Cargo.toml"))
            .arg("--output-file")
            .arg(licenses.join(format!("{package}.txt")))
            .arg(texts.join("licenses.hbs")))?;

        let name = format!("{package}.cdx.json");
        let made = sources.join(&dir).join(&name);
        let bill = with_path(std::fs::read_to_string(&made), &made)?;
        // The path of the build differs from machine to machine.
        let bill = bill.replace(&sources.display().to_string(), "/rushmem");
        let file = bills.join(name);
        with_path(std::fs::write(&file, bill), &file)?;
    }
    Ok(())
}

/// Writes the licenses of the libraries that the compilers link: Rust's library with its
/// dependencies, and LLVM's unwinder.
pub fn license_linked(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let licenses = prefix.join("share/rushmem/licenses");
    let sysroot = capture(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(&workspace.root),
    )?;
    let rust = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    installation::copy_file(&rust, &licenses.join("rust-library.html"))?;

    let script = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
    let zig = capture(Command::new("python3").args(["-c", script]))?;
    let unwinder = Path::new(zig.trim()).join("lib/libunwind/LICENSE.TXT");
    installation::copy_file(&unwinder, &licenses.join("llvm-libunwind.txt"))
}

/// Returns the directory of a package, relative to the root of the repository.
fn dir(workspace: &Workspace, package: &str) -> Result<PathBuf> {
    let id = capture(workspace.cargo().args(["pkgid", "-p", package]))?;
    let path = id
        .split_once("file://")
        .and_then(|(_, rest)| rest.split('#').next());
    let path = Path::new(path.context("cargo names no directory")?.trim());
    Ok(path.strip_prefix(&workspace.root)?.to_owned())
}
