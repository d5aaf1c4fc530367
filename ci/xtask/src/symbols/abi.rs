//! Compares the binary interface of the installed headers with the one that the repository promises
//! (crates/shmem-c/spec/abi-1.txt): the prototypes of all C functions, the values of constants, and
//! the sizes of types.
//!
//! A compiler that reads the headers reports all of these. The tables from which the headers were
//! made are not used.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use task_support::process::{capture, run};
use task_support::workspace::Workspace;

/// The file with the interface of librushmem.so.1.
const PROMISED: &str = "crates/shmem-c/spec/abi-1.txt";
/// The types whose sizes are promised.
const TYPES: [&str; 9] = [
    "shmem_team_t",
    "shmem_ctx_t",
    "shmem_team_config_t",
    "shmem_ctx_session_config_t",
    "shmemx_req_t",
    "shmemx_pcntr_t",
    "shmemx_heap_info_t",
    "shmemx_uniqueid_t",
    "shmemx_init_attr_t",
];
const HEADERS: &str = "#include <shmem.h>\n#include <shmemx.h>\n#include <stdio.h>\n";

/// Compares the headers of a prefix with the promise, or with `accept` writes their interface as
/// the new promise.
pub fn check(workspace: &Workspace, prefix: &Path, accept: bool) -> Result<()> {
    let path = workspace.root.join(PROMISED);
    let found = read(&prefix.join("include"), &workspace.target.join("abi"))?;
    if accept {
        return std::fs::write(&path, found.join("\n") + "\n")
            .with_context(|| format!("could not write {}", path.display()));
    }

    let promised = std::fs::read_to_string(&path)
        .with_context(|| format!("could not read {}", path.display()))?;
    let promised: Vec<String> = promised.lines().map(str::to_owned).collect();

    let mut changes = Vec::new();
    for line in &promised {
        if !found.contains(line) {
            changes.push(format!("- {line}"));
        }
    }
    for line in &found {
        if !promised.contains(line) {
            changes.push(format!("+ {line}"));
        }
    }

    if changes.is_empty() {
        println!(
            "The headers keep the {} lines of {PROMISED}.",
            promised.len()
        );
        return Ok(());
    }
    bail!(
        "the binary interface has changed:\n  {}\nA line with + alone is an addition: `cargo xtask symbols \
         --accept` writes it. One with - breaks programs that are linked already, and needs a new soname and symbol version.",
        changes.join("\n  ")
    )
}

/// Returns the interface of the headers in the directory `include`, as sorted lines. The programs
/// that read it are made in `dir`.
fn read(include: &Path, dir: &Path) -> Result<Vec<String>> {
    std::fs::create_dir_all(dir).with_context(|| format!("could not make {}", dir.display()))?;
    let source = dir.join("abi.c");
    let gcc = || {
        let mut gcc = Command::new("gcc");
        gcc.arg("-std=c11").arg("-I").arg(include);
        gcc
    };

    // gcc lists the prototypes, and defines the macros, of a program that only has the headers.
    let listed = dir.join("prototypes");
    std::fs::write(&source, HEADERS).context("could not write a program")?;
    run(gcc()
        .arg("-fsyntax-only")
        .arg("-aux-info")
        .arg(&listed)
        .arg(&source))?;
    let prototypes = std::fs::read_to_string(&listed).context("gcc wrote no prototypes")?;
    let mut lines: Vec<String> = prototypes.lines().filter_map(prototype).collect();
    let macros = capture(gcc().args(["-dM", "-E"]).arg(&source))?;

    // Another program prints the values of the constants, and the sizes.
    let mut body = String::new();
    for name in macros.lines().filter_map(constant) {
        body += &print("constant", name, name);
    }
    for name in TYPES {
        body += &print("size", name, &format!("sizeof({name})"));
    }

    let text = format!("{HEADERS}int main(void) {{\n{body}return 0;\n}}\n");
    std::fs::write(&source, text).context("could not write a program")?;
    let program = dir.join("abi");
    run(gcc().arg("-w").arg(&source).arg("-o").arg(&program))?;
    let printed = capture(&mut Command::new(&program))?;
    lines.extend(printed.lines().map(str::to_owned));

    lines.sort();
    Ok(lines)
}

/// Returns a statement in C that prints a line about a number.
fn print(kind: &str, name: &str, value: &str) -> String {
    format!("printf(\"{kind} {name} = %lld\\n\", (long long)({value}));\n")
}

/// Returns the prototype in a line of gcc's `-aux-info` that is about a header of the library, such
/// as `/* shmem.h:9:NC */ extern void shmem_init (void);`.
fn prototype(line: &str) -> Option<String> {
    let (place, text) = line.split_once("*/ extern ")?;
    if !place.contains("shmem") {
        return None;
    }
    Some(text.trim_end_matches(';').to_owned())
}

/// Returns the name of the constant that a line such as `#define SHMEM_CMP_EQ 1` defines.
fn constant(line: &str) -> Option<&str> {
    let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
    let is_number = !value.is_empty() && !value.starts_with(['"', '{']);
    let takes_arguments = name.contains('(');
    // The version of the standard may grow.
    let is_version = name.ends_with("_VERSION");

    if name.starts_with("SHMEM") && is_number && !takes_arguments && !is_version {
        Some(name)
    } else {
        None
    }
}
