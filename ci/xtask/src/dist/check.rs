//! Checks which symbols and libraries the files of a release need.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::installation::Toolchain;
use task_support::process::capture;

/// Libraries that every machine has, and librushmem itself.
const LIBRARIES: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "librushmem.so.1",
];

/// Checks all programs and shared libraries in the directories bin and lib of a prefix.
///
/// # Errors
/// If one needs a symbol of a C library newer than `glibc` or a library that a machine may lack, or
/// looks for libraries in a directory of this machine.
pub fn check_prefix(prefix: &Path, glibc: &str, tools: &Toolchain) -> Result<()> {
    for dir in ["bin", "lib"] {
        for file in files(&prefix.join(dir))? {
            check_symbols(&file, glibc, tools)?;
            check_libraries(&file)?;
        }
    }
    Ok(())
}

/// Returns the programs and shared libraries of a directory.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        if path.is_symlink() || !path.is_file() {
            continue;
        }
        // Scripts, static libraries and object files need no symbols of their own.
        if std::fs::read(&path).is_ok_and(|bytes| is_linked(&bytes)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns true if these are the bytes of a program or a shared library, by the type in their ELF
/// header.
fn is_linked(bytes: &[u8]) -> bool {
    let object_file = 1_u16.to_le_bytes();
    bytes.starts_with(b"\x7fELF") && bytes.get(16..18).is_some_and(|kind| kind != object_file)
}

/// Checks that a file needs no symbol of a C library newer than `glibc`.
fn check_symbols(file: &Path, glibc: &str, tools: &Toolchain) -> Result<()> {
    let shown = file.display();
    let limit = version(glibc);
    let symbols = capture(tools.binutil("objdump").arg("-T").arg(file))?;
    // A symbol with a version is listed as, for instance, `GLIBC_2.2.5 memcpy`.
    for rest in symbols.split("GLIBC_").skip(1) {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let needed = rest.split(|c| !is_part(c)).next().unwrap_or_default();
        if version(needed) > limit {
            bail!("{shown} needs a symbol of glibc {needed}, newer than {glibc}");
        }
    }
    Ok(())
}

/// Checks that a file is linked only with [`LIBRARIES`], and looks for them only in directories
/// relative to its own.
fn check_libraries(file: &Path) -> Result<()> {
    let shown = file.display();
    let header = capture(Command::new("readelf").arg("--dynamic").arg(file))?;
    for line in header.lines() {
        // The value of an entry is in brackets.
        let Some(value) = line.split(['[', ']']).nth(1) else {
            continue;
        };
        if line.contains("(NEEDED)") && !LIBRARIES.contains(&value) {
            bail!("{shown} is linked with {value}, which a machine may not have");
        }
        // RPATH or RUNPATH.
        if line.contains("PATH)") {
            for dir in value.split(':') {
                if !dir.starts_with("$ORIGIN") {
                    bail!("{shown} looks for libraries in {dir}, a directory of this machine");
                }
            }
        }
    }
    Ok(())
}

/// Returns the numbers of a version, which compare as versions do.
fn version(text: &str) -> Vec<u32> {
    text.split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(version("2.9") < version("2.28"));
        assert!(version("2.2.5") < version("2.28"));
        assert!(version("2.34") > version("2.28"));
    }

    #[test]
    fn an_object_file_is_not_linked() {
        let program = std::env::current_exe().and_then(std::fs::read);
        let mut bytes = program.expect("the program of this test");
        assert!(is_linked(&bytes));

        bytes[16..18].copy_from_slice(&1_u16.to_le_bytes());
        assert!(!is_linked(&bytes));
    }
}
