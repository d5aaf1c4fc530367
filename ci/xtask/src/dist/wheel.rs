//! The prefix as a Python wheel: `pip install` copies its directories into those of the
//! environment, so that `oshrun` and `oshcc` are on PATH, and packages that are built there find
//! the library.
//!
//! A wheel cannot contain links. Instead of a link to a library it has a linker script, instead of
//! a link to a man page of a routine a page that includes the other one, and instead of other links
//! a copy.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use task_support::installation::copy_file;
use task_support::process::run;

use super::release::{self, GLIBC, VERSION, empty_dir, with_path};

/// Makes the wheel of a prefix in `output`. Returns its path.
pub fn pack_prefix(prefix: &Path, output: &Path, arch: &str, epoch: &str) -> Result<PathBuf> {
    let tag = format!("py3-none-manylinux_{}_{arch}", GLIBC.replace('.', "_"));
    let work = output.join("wheel");
    empty_dir(&work)?;
    let dir = work.join("files");
    copy_dir(prefix, &dir.join(format!("rushmem-{VERSION}.data/data")))?;

    let info = dir.join(format!("rushmem-{VERSION}.dist-info"));
    with_path(std::fs::create_dir_all(&info), &info)?;
    for (name, text) in [("METADATA", metadata()), ("WHEEL", wheel(&tag))] {
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
         Summary: OpenSHMEM 1.6 runtime: library, compiler wrappers and launcher\n\
         License: MIT OR Apache-2.0\n\
         Requires-Python: >=3.6\n\
         Description-Content-Type: text/plain\n\
         \n\
         Programs in C, C++ and Fortran, and Python programs through shmem4py, that access each other's memory. After\n\
         the installation `oshcc` compiles and `oshrun -n 4 PROGRAM` runs them.\n"
    )
}

fn wheel(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}
