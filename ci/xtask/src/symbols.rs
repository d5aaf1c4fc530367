//! `cargo xtask symbols PREFIX`: compares the exports of an installed library with the tables of
//! the standard (crates/shmem-c/spec/symbols-1.6.csv), of the extensions (shmemx.csv) and of
//! Fortran (fortran.csv).
//!
//! The library must export each function and its twin for profiling tools, and no other symbol.
//! [`abi`] compares the headers with the promised interface. The tests of crates/shmem-c check the
//! signatures.

mod abi;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use spec::Exports;
use task_support::installation::libraries::{VERSION as ABI, WRAPPED};
use task_support::process::capture;
use task_support::workspace::Workspace;

#[derive(clap::Args)]
pub struct SymbolsFlags {
    /// Prefix of the installed library
    pub prefix: PathBuf,
    /// Write the interface of the installed headers to crates/shmem-c/spec/abi-1.txt
    #[arg(long)]
    accept: bool,
}

/// Letters with which nm(1) marks kinds of symbols.
const GLOBAL: &str = "T";
const WEAK: &str = "W";
const ABSOLUTE: &str = "A";

pub fn run(SymbolsFlags { prefix, accept }: SymbolsFlags) -> Result<()> {
    check(&Workspace::open()?, &prefix, accept)
}

/// Checks lib/librushmem.so, lib/librushmem.a and the headers of a prefix. With `accept`, writes
/// the interface of the headers as the new promise.
pub fn check(workspace: &Workspace, prefix: &Path, accept: bool) -> Result<()> {
    let lib = prefix.join("lib");
    let table = Exports::read();
    check_shared(&table, &lib.join("librushmem.so"))?;
    check_archive(&table, &lib.join("librushmem.a"))?;
    println!(
        "librushmem.so and librushmem.a export the {} names of the tables.",
        table.all().len()
    );
    abi::check(workspace, prefix, accept)
}

/// Checks that the shared library exports the names of the table, global and of one version, and
/// has the right soname.
fn check_shared(table: &Exports, library: &Path) -> Result<()> {
    let mut expected = BTreeMap::new();
    for name in table.all() {
        expected.insert(format!("{name}@@{ABI}"), GLOBAL.to_owned());
    }
    // The version itself.
    expected.insert(ABI.to_owned(), ABSOLUTE.to_owned());

    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only"]).arg(library);
    compare(library, &expected, &symbols(&capture(&mut nm)?))?;

    let header = capture(Command::new("readelf").arg("--dynamic").arg(library))?;
    if !header.contains("[librushmem.so.1]") {
        bail!("{} has not the soname librushmem.so.1", library.display());
    }
    Ok(())
}

/// Checks that the names of the table are weak in the static library, so that a tool can define
/// them, that the profiling names are not, and that programs get no executable stack.
fn check_archive(table: &Exports, library: &Path) -> Result<()> {
    let mut expected = BTreeMap::new();
    for name in &table.names {
        expected.insert(name.clone(), WEAK.to_owned());
    }
    for name in table.profiling_names() {
        expected.insert(name, GLOBAL.to_owned());
    }
    expected.insert(WRAPPED.to_owned(), GLOBAL.to_owned());

    let mut nm = Command::new("nm");
    nm.args(["--extern-only", "--defined-only"]).arg(library);
    compare(library, &expected, &symbols(&capture(&mut nm)?))?;

    let sections = capture(
        Command::new("readelf")
            .args(["--sections", "--wide"])
            .arg(library),
    )?;
    if executable_stack(&sections) {
        bail!(
            "{} asks for an executable stack in every program",
            library.display()
        );
    }
    Ok(())
}

/// Returns true if the note on the stack is missing, or has flag X, in the output of readelf.
fn executable_stack(sections: &str) -> bool {
    let mut lines = sections.lines();
    match lines.find(|line| line.contains(".note.GNU-stack")) {
        Some(note) => note.split_whitespace().any(|field| field == "X"),
        None => true,
    }
}

/// Returns the names of symbols and the letters of their kinds, from the output of nm.
fn symbols(listing: &str) -> BTreeMap<String, String> {
    let mut symbols = BTreeMap::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Other lines name the files of an archive.
        if let [_address, kind, name] = fields[..] {
            symbols.insert(name.to_owned(), kind.to_owned());
        }
    }
    symbols
}

fn compare(
    library: &Path,
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Result<()> {
    let mut faults = Vec::new();
    for (name, kind) in expected {
        match found.get(name) {
            None => faults.push(format!("{name} is missing")),
            Some(other) if other != kind => faults.push(format!("{name} is {other}, not {kind}")),
            Some(_) => {}
        }
    }
    for name in found.keys() {
        if !expected.contains_key(name) {
            faults.push(format!("{name} is in no table"));
        }
    }

    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: {} faults:\n  {}",
        library.display(),
        faults.len(),
        faults.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()))
            .collect()
    }

    #[test]
    fn nm_is_understood() {
        let listing =
            "librushmem.o:\n0000000000000010 T pshmem_init\n0000000000000020 W shmem_init\n";
        assert_eq!(
            symbols(listing),
            map(&[("pshmem_init", "T"), ("shmem_init", "W")])
        );
    }

    #[test]
    fn an_executable_stack_is_seen() {
        let plain =
            "  [ 7] .note.GNU-stack PROGBITS 0000000000000000 0851c0 000000 00      0   0  1";
        let with =
            "  [ 7] .note.GNU-stack PROGBITS 0000000000000000 0851c0 000000 00   X  0   0  1";
        assert!(!executable_stack(plain));
        assert!(executable_stack(with));
        assert!(executable_stack(""));
    }

    #[test]
    fn every_difference_is_a_fault() {
        let expected = map(&[("a", "T"), ("b", "T"), ("c", "W")]);
        let found = map(&[("a", "T"), ("c", "T"), ("d", "T")]);
        let error = compare(Path::new("x.so"), &expected, &found)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "x.so: 3 faults:\n  b is missing\n  c is T, not W\n  d is in no table"
        );
        assert!(compare(Path::new("x.so"), &expected, &expected).is_ok());
    }
}
