//! `cargo xtask counts`: how many instructions the paths on a node and to a network take, against
//! the pinned numbers.
//!
//! Times depend on the machine and its day; instruction counts do not, so that they can be checked
//! on every change. callgrind counts inside the routine alone, trampoline included: the program
//! that calls it, and the compiler that built that, do not matter. A Rust program has the library
//! in itself; what is counted there are functions of one operation each.
//!
//! Only what is counted is built as for a release, with the optimization across crates that takes
//! minutes. The wrapper and the launcher are those of the prefix of the tests.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::needs::{self, LIBFABRIC, VALGRIND};
use task_support::process;
use task_support::workspace::Workspace;

use crate::install::{self, LIBRARY, Release, TEST_PREFIX};
use crate::libraries;

mod network;

/// The routines that are counted on a node, which benches/counts.c knows how to call, and the same
/// operations of the Rust interface, which take at most two more (benches/counts).
const ROUTINES: &[(&str, &str)] = &[
    ("shmem_putmem", "rust_put"),
    ("shmem_getmem", "rust_get"),
    ("shmem_long_p", "rust_p"),
    ("shmem_long_g", "rust_g"),
    ("shmem_long_atomic_fetch_add", "rust_fetch_add"),
];
/// A call that may wait, of a job of one PE; it checks more in Rust.
const BARRIER: &str = "shmem_barrier_all";
const SOURCE: &str = "benches/counts.c";
/// The library, and what else is built with its optimization.
const PACKAGES: [&str; 3] = [LIBRARY, "counts", "strict-fabric"];
/// Bytes of a small Rust program with the whole library in it, stripped. The explanations of hangs,
/// the writer of traces and JSON take about 500,000 of them.
const LARGEST: u64 = 3_400_000;
const PINNED: &str = "benches/counts.txt";
const CALLS: u64 = 10_000;
const LIMIT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct CountsFlags {
    /// Write the numbers into benches/counts.txt
    #[arg(long)]
    pin: bool,
}

pub fn run(CountsFlags { pin }: CountsFlags) -> Result<()> {
    needs::ensure(&[&needs::C_COMPILER, &VALGRIND])?;
    let workspace = Workspace::open()?;
    let prefix = workspace.target.join(TEST_PREFIX);
    install::quickly_into(&workspace, &prefix)?;
    if pin {
        let counts = counted(&workspace, &prefix)?;
        let file = workspace.root.join(PINNED);
        fs::write(&file, pinned_anew(&fs::read_to_string(&file)?, &counts))?;
        println!("Written to {PINNED}");
        return Ok(());
    }
    check(&workspace, &prefix)
}

/// Counts the instructions of the release, with the wrapper and the launcher of a prefix; an error
/// when a routine takes more than is pinned.
pub fn check(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let counts = counted(workspace, prefix)?;
    let pinned = fs::read_to_string(workspace.root.join(PINNED))?;
    let mut complaints = decided(&pinned, &counts)?;
    complaints.extend(slower_in_rust(&counts));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("; "))
}

/// Builds the library as for a release, and returns the instructions of one call of each routine.
fn counted(workspace: &Workspace, of_tests: &Path) -> Result<Vec<(String, u64)>> {
    let release = Release::build_packages(workspace, &["build", "--release"], &PACKAGES)?;
    let prefix = workspace.target.join("counts-prefix");
    install::copy_tree(of_tests, &prefix)?;
    libraries::link(release.file("librushmem.a")?, &prefix.join("lib/librushmem.so.1"), "cc")?;
    let program = workspace.target.join("counts");
    process::run(
        Command::new(prefix.join("bin/oshcc"))
            .arg("-O2")
            .arg(workspace.root.join(SOURCE))
            .arg("-o")
            .arg(&program),
    )?;
    let rust = rust_program(workspace, release.file("counts")?)?;
    let mut counts = Vec::new();
    for (in_c, in_rust) in ROUTINES {
        counts.push(on_node(workspace, &program, in_c)?);
        counts.push(on_node(workspace, &rust, in_rust)?);
    }
    counts.push(on_node(workspace, &program, BARRIER)?);
    if process::on_path(LIBFABRIC.program).is_some() {
        let provider = network::provider(workspace, release.file("libstrict_fabric.so")?)?;
        for routine in network::ROUTINES {
            counts.push(network::counted(workspace, (&prefix, &provider), &program, routine)?);
        }
    }
    for (routine, each) in &counts {
        println!("{routine:40} {each:4} instructions");
    }
    Ok(counts)
}

/// Returns the program that calls operations of the Rust interface, small when stripped.
fn rust_program(workspace: &Workspace, built: &Path) -> Result<PathBuf> {
    let program = workspace.target.join("counts-in-rust");
    let stripped = workspace.target.join("counts-in-rust.stripped");
    fs::copy(built, &program)?;
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(&program))?;
    let bytes = fs::metadata(&stripped)?.len();
    println!("A small Rust program has {bytes} bytes when it is stripped");
    if bytes > LARGEST {
        bail!("a small Rust program has {bytes} bytes when it is stripped, more than {LARGEST}");
    }
    Ok(program)
}

/// Instructions of one call of a routine by `program`, which is a job of one.
fn on_node(workspace: &Workspace, program: &Path, routine: &str) -> Result<(String, u64)> {
    let log = workspace.target.join("counts.log");
    process::run(
        process::limited(LIMIT, "valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(format!("--toggle-collect={routine}"))
            .arg(format!("--log-file={}", log.display()))
            .arg(program)
            .args([routine, CALLS.to_string().as_str()])
            .env("SHMEM_SYMMETRIC_SIZE", "1m"),
    )?;
    let log = fs::read_to_string(log)?;
    let all = collected(&log).with_context(|| format!("callgrind counted nothing: {log}"))?;
    let each = (all + CALLS / 2) / CALLS;
    if each == 0 {
        bail!("callgrind saw no call of {routine}");
    }
    Ok((routine.to_owned(), each))
}

/// Returns the number of instructions in callgrind's report.
fn collected(log: &str) -> Option<u64> {
    let (_, number) = log.lines().find_map(|line| line.split_once("Collected : "))?;
    number.trim().parse().ok()
}

/// Returns the errors of `counts`, one sentence each.
fn decided(pinned: &str, counts: &[(String, u64)]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (routine, now) in counts {
        let now = *now;
        match pin_of(pinned, routine)? {
            None => complaints.push(format!(
                "{routine} is not pinned for {} in {PINNED}: cargo xtask counts --pin",
                std::env::consts::ARCH
            )),
            Some(then) if now > then + tolerated(routine, then) => complaints
                .push(format!("{routine} takes {now} instructions, {then} are pinned in {PINNED}")),
            Some(then) if now + tolerated(routine, then) < then => println!(
                "{routine} takes {now} instructions, fewer than the pinned {then}: cargo xtask counts --pin"
            ),
            Some(_) => {}
        }
    }
    Ok(complaints)
}

/// Returns by how many instructions a routine may exceed its pinned number: 2 % on a node, by which
/// compilers differ, and 15 % to a network, where an operation takes a microsecond.
fn tolerated(routine: &str, pinned: u64) -> u64 {
    let percent = if routine.starts_with(network::PREFIX) { 15 } else { 2 };
    pinned * percent / 100
}

/// The instructions that an operation in Rust may take beyond the one in C: a comparison of the
/// lengths of the source and the destination, and a jump.
const LENGTHS: u64 = 2;

/// Operations that take more instructions in Rust than they may beside C, one sentence each.
fn slower_in_rust(counts: &[(String, u64)]) -> Vec<String> {
    let count = |name: &str| counts.iter().find(|(counted, _)| counted == name);
    ROUTINES
        .iter()
        .filter_map(|(c, rust)| Some((count(c)?, count(rust)?)))
        .filter(|(c, rust)| rust.1 > c.1 + LENGTHS)
        .map(|(c, rust)| format!("{} takes {} instructions, {} only {}", rust.0, rust.1, c.0, c.1))
        .collect()
}

/// Returns the pinned number of `routine` on this kind of processor.
fn pin_of(pinned: &str, routine: &str) -> Result<Option<u64>> {
    for line in pinned.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [arch, name, number] = words[..]
            && arch == std::env::consts::ARCH
            && name == routine
        {
            let number = number.parse().with_context(|| format!("{PINNED}: {line}"))?;
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns the text of the file with this processor's numbers replaced; its comments and other
/// lines stay.
fn pinned_anew(pinned: &str, counts: &[(String, u64)]) -> String {
    let arch = std::env::consts::ARCH;
    let mut text = String::new();
    for line in pinned.lines() {
        if line.split_whitespace().next() != Some(arch) {
            text += line;
            text.push('\n');
        }
    }
    for (routine, number) in counts {
        let _ = writeln!(text, "{arch} {routine} {number}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(routine: &str, number: u64) -> (String, u64) {
        (routine.to_owned(), number)
    }

    #[test]
    fn the_report_of_callgrind_is_read() {
        let log = "==1== Events    : Ir\n==1== Collected : 50000\n==1==\n==1== I   refs:  50,000\n";
        assert_eq!(collected(log), Some(50_000));
        assert_eq!(collected("==1== Events : Ir"), None);
    }

    #[test]
    fn only_a_larger_or_unknown_count_is_a_complaint() {
        let pinned = [count("shmem_p", 5), count("shmem_g", 49), count("shmem_put", 150)];
        let pinned = pinned_anew("# note\nother shmem_g 1\n", &pinned);
        let complaints = |routine, now| decided(&pinned, &[count(routine, now)]).unwrap().len();
        assert_eq!([4, 5, 6].map(|now| complaints("shmem_p", now)), [0, 0, 1]);
        assert_eq!([49, 50].map(|now| complaints("shmem_g", now)), [0, 1]);
        assert_eq!([147, 153, 154].map(|now| complaints("shmem_put", now)), [0, 0, 1]);
        assert_eq!(complaints("shmem_get", 1), 1);
        let pinned = pinned_anew("", &[count("until-provider:shmem_put", 200)]);
        let now = |now| decided(&pinned, &[count("until-provider:shmem_put", now)]).unwrap().len();
        assert_eq!([230, 231].map(now), [0, 1]);
    }

    #[test]
    fn an_operation_may_take_little_more_in_rust() {
        let counts = [count("shmem_long_p", 5), count("rust_p", 5), count("shmem_long_g", 5)];
        assert!(slower_in_rust(&counts).is_empty());
        assert_eq!(
            slower_in_rust(&[count("shmem_long_p", 5), count("rust_p", 6 + LENGTHS)]).len(),
            1
        );
    }

    #[test]
    fn pinning_replaces_the_own_numbers_alone() {
        let first = pinned_anew("# note\nother shmem_p 1\n", &[count("shmem_p", 5)]);
        let second = pinned_anew(&first, &[count("shmem_p", 4)]);
        assert!(second.starts_with("# note\nother shmem_p 1\n"));
        assert_eq!(second.lines().count(), 3);
        assert_eq!(pin_of(&second, "shmem_p").unwrap(), Some(4));
    }
}
