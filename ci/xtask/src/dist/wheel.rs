//! The prefix as a Python wheel: `pip install` copies its directories into those of the
//! environment, so that `oshrun` and `oshcc` are on PATH, and packages that are built there find
//! the library. Beside the prefix it has the Python package, `crates/shmem-python`, which needs no
//! compiler at the installation, so one wheel serves all Pythons.
//!
//! A wheel cannot contain links. Instead of a link to a library it has a linker script, instead of
//! a link to a man page of a routine a page that includes the other one, and instead of other links
//! a copy.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use task_support::installation::copy_file;
use task_support::process::run;

use task_support::workspace::Workspace;

use super::release::{self, GLIBC, VERSION, empty_dir, with_path};

/// The description of the Python package, which has what pip asks for.
const PYPROJECT: &str = include_str!("../../../../crates/shmem-python/pyproject.toml");

/// The plugin of pytest that the Python package is.
const ENTRY_POINTS: &str = "[pytest11]\nrushmem = rushmem.testing\n";

/// Makes the wheel of a prefix in `output`. Returns its path.
pub fn pack_prefix(
    workspace: &Workspace,
    prefix: &Path,
    output: &Path,
    arch: &str,
    epoch: &str,
) -> Result<PathBuf> {
    let tag = format!("py3-none-manylinux_{}_{arch}", GLIBC.replace('.', "_"));
    let work = output.join("wheel");
    empty_dir(&work)?;
    let dir = work.join("files");
    copy_dir(prefix, &dir.join(format!("rushmem-{VERSION}.data/data")))?;

    let package = dir.join("rushmem");
    with_path(std::fs::create_dir(&package), &package)?;
    let sources = workspace.root.join("crates/shmem-python/rushmem");
    for entry in with_path(sources.read_dir(), &sources)? {
        let path = entry?.path();
        // The other entries are what Python has compiled.
        if path.is_file() {
            copy_file(&path, &package.join(path.file_name().unwrap_or_default()))?;
        }
    }

    let info = dir.join(format!("rushmem-{VERSION}.dist-info"));
    with_path(std::fs::create_dir_all(&info), &info)?;
    for (name, text) in [
        ("METADATA", metadata()),
        ("WHEEL", wheel(&tag)),
        ("entry_points.txt", ENTRY_POINTS.to_owned()),
    ] {
        let file = info.join(name);
        with_path(std::fs::write(&file, text), &file)?;
    }
    release::permit_all(&dir)?;

    let built = work.join("built");
    with_path(std::fs::create_dir(&built), &built)?;
    let mut pack = Command::new("python3");
    pack.args(["-m", "wheel", "pack", "--dest-dir"])
        .arg(&built)
        .arg(&dir);
    run(pack.env("SOURCE_DATE_EPOCH", epoch))?;
    release::place(&built.join(format!("rushmem-{VERSION}-{tag}.whl")), output)
}

/// Copies a directory with all of its contents, and replaces links.
fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    with_path(std::fs::create_dir_all(to), to)?;
    for entry in with_path(std::fs::read_dir(from), from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_dir(&path, &target)?;
        } else if let Some(text) = in_place_of_link(&path)? {
            with_path(std::fs::write(&target, text), &target)?;
        } else {
            copy_file(&with_path(path.canonicalize(), &path)?, &target)?;
        }
    }
    Ok(())
}

/// Returns the text of the file that replaces a link; `None` if a copy does.
fn in_place_of_link(path: &Path) -> Result<Option<String>> {
    if !path.is_symlink() {
        return Ok(None);
    }
    let points_at = with_path(std::fs::read_link(path), path)?;
    let points_at = points_at.display();
    let end = path.extension().unwrap_or_default();
    if end == "so" || end == "a" {
        Ok(Some(format!("INPUT(-l:{points_at})\n")))
    } else if end == "3" {
        Ok(Some(format!(".so man3/{points_at}\n")))
    } else {
        Ok(None)
    }
}

fn metadata() -> String {
    format!(
        "Metadata-Version: 2.1\n\
         Name: rushmem\n\
         Version: {VERSION}\n\
         Summary: OpenSHMEM 1.6 runtime: library, compiler wrappers, launcher and Python package\n\
         License: MIT OR Apache-2.0\n\
         Requires-Python: {}\n\
         Requires-Dist: {}\n\
         Description-Content-Type: text/plain\n\
         \n\
         Programs in C, C++, Fortran and Python that access each other's memory. After the installation `oshcc`\n\
         compiles and `oshrun -n 4 PROGRAM` runs them; Python programs `import rushmem`, and\n\
         `python -m rushmem -n 4 PROGRAM.py` runs them.\n",
        field("requires-python = \""),
        field("dependencies = [\"")
    )
}

/// Returns the text in the description of the package from `start` to the next quotation mark.
fn field(start: &str) -> &'static str {
    let (_, text) = PYPROJECT
        .split_once(start)
        .expect("a field of pyproject.toml");
    text.split('"').next().unwrap_or_default()
}

fn wheel(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_is_told_what_the_package_needs() {
        let metadata = metadata();
        assert!(
            metadata.contains("\nRequires-Python: >=3.9\n"),
            "{metadata}"
        );
        assert!(
            metadata.contains("\nRequires-Dist: numpy>=1.24\n"),
            "{metadata}"
        );
    }
}
