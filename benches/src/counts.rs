//! `cargo xtask counts`: compares the number of instructions of short routines, on a node and over
//! a network, with the pinned numbers.
//!
//! Times depend on the machine and its load. Numbers of instructions do not, so every change can be
//! checked. callgrind counts only within the routine, including the jump from `shmem_x` to
//! `pshmem_x`: the calling program and the compiler that built it do not matter. A Rust program
//! contains the library; there, functions that make one operation each are counted.
//!
//! Only the counted code is built as for a release, with optimization across crates, which takes
//! minutes. The wrapper and the launcher are those of the prefix for tests.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::installation::{self, LIBRARY, Release, TEST_PREFIX, libraries};
use task_support::needs::{self, LIBFABRIC, VALGRIND};
use task_support::process;
use task_support::task::Absent;
use task_support::workspace::Workspace;

mod network;

use crate::program;
use network::CountedJob;

/// A routine that is counted on a node.
struct Routine {
    /// Its name, which benches/counts.c takes.
    in_c: &'static str,
    /// The functions of benches/src/bin/counts.rs for the same purpose through the Rust interface.
    in_rust: &'static [&'static str],
}

/// Routines whose Rust forms do the same: on a peer that is made of a number, and on one that was
/// stored.
const COMPARED: [Routine; 5] = [
    Routine {
        in_c: "shmem_putmem",
        in_rust: &["rust_put", "rust_put_stored"],
    },
    Routine {
        in_c: "shmem_getmem",
        in_rust: &["rust_get"],
    },
    Routine {
        in_c: "shmem_long_p",
        in_rust: &["rust_p", "rust_p_stored"],
    },
    Routine {
        in_c: "shmem_long_g",
        in_rust: &["rust_g"],
    },
    Routine {
        in_c: "shmem_long_atomic_fetch_add",
        in_rust: &["rust_fetch_add", "rust_fetch_add_stored"],
    },
];
/// Routines that may wait, one of teams, and the compare-and-swap, by which Rust also makes
/// operations that the standard lacks, counted in a job of one PE. Their Rust forms differ in what
/// they do and check.
const NOT_COMPARED: [Routine; 8] = [
    Routine {
        in_c: "shmem_barrier_all",
        in_rust: &["rust_barrier_all"],
    },
    Routine {
        in_c: "shmem_long_sum_reduce",
        in_rust: &["rust_all_reduce"],
    },
    Routine {
        in_c: "shmem_long_broadcast",
        in_rust: &["rust_broadcast"],
    },
    Routine {
        in_c: "shmem_long_fcollect",
        in_rust: &["rust_all_gather", "rust_all_gather_slice"],
    },
    Routine {
        in_c: "shmem_long_wait_until",
        in_rust: &["rust_wait"],
    },
    Routine {
        in_c: "shmem_team_my_pe",
        in_rust: &[],
    },
    Routine {
        in_c: "shmem_set_lock",
        in_rust: &[],
    },
    Routine {
        in_c: "shmem_long_atomic_compare_swap",
        in_rust: &["rust_compare_exchange", "rust_fetch_max"],
    },
];
const SOURCE: &str = "benches/counts.c";
/// The program that makes operations through the Rust interface.
const IN_RUST: &str = "counts";
/// The packages whose libraries, and that program, are built with the optimization of a release.
const PACKAGES: [&str; 2] = [LIBRARY, "benches"];
/// Maximum number of bytes of a small stripped Rust program, which contains the whole library. The
/// explanations of hangs, the writer of traces and JSON take about 500,000 of them; the readers of
/// symbol tables and debug information, with their demanglers and decompressors, take more. The end
/// of registered buffers, at the next init, is in every program.
const LARGEST: u64 = 4_300_000;
const PINNED: &str = "benches/counts.txt";
/// The number of calls of which the average is taken: enough that what the first ones do more
/// disappears in rounding.
const CALLS: u64 = 10_000;
/// The time limit of a program under callgrind.
const LIMIT: Duration = Duration::from_secs(60);

/// The number of instructions of a call.
struct Count {
    /// The name of the routine among the pinned numbers.
    routine: String,
    instructions: u64,
}

#[derive(clap::Args)]
pub struct CountsFlags {
    /// Write the numbers into benches/counts.txt
    #[arg(long)]
    pin: bool,
    /// An installation whose wrapper and launcher are used, instead of a fresh one
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

/// Counts the instructions of the release, and compares the numbers with the pinned ones, or pins
/// them.
///
/// # Errors
/// If a routine takes more instructions than are pinned and tolerated, or has no pinned number; if
/// an operation in Rust takes many more than in C, or a Rust program is too large.
pub fn run(CountsFlags { pin, prefix }: CountsFlags) -> Result<()> {
    needs::ensure(&[&needs::C_COMPILER, &VALGRIND])
        .map_err(|error| Absent(format!("{error:#}")))?;
    let workspace = Workspace::open()?;
    let prefix = match prefix {
        Some(prefix) => prefix,
        None => {
            let prefix = workspace.target.join(TEST_PREFIX);
            installation::quickly_into(&workspace, &prefix)?;
            prefix
        }
    };

    let counts = count_all(&workspace, &prefix)?;
    let file = workspace.root.join(PINNED);
    let pinned = fs::read_to_string(&file)?;
    if pin {
        fs::write(&file, pinned_anew(&pinned, &counts))?;
        println!("Written to {PINNED}");
        return Ok(());
    }

    let mut complaints = compare(&pinned, &counts)?;
    complaints.extend(slower_in_rust(&counts));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("; "))
}

/// Builds the library as for a release, counts all routines and prints the counts: on a node the
/// instructions of a call, over a network (only where libfabric is) those until its provider is
/// first called.
fn count_all(workspace: &Workspace, test_prefix: &Path) -> Result<Vec<Count>> {
    let build = [
        "build",
        "--release",
        "--lib",
        "--bin",
        IN_RUST,
        "--no-default-features",
    ];
    let release = Release::build_packages(workspace, &build, &PACKAGES)?;

    // The prefix for tests, with the library of the release.
    let prefix = workspace.target.join("counts-prefix");
    installation::copy_tree(test_prefix, &prefix)?;
    libraries::link(
        release.file("librushmem.a")?,
        &prefix.join("lib/librushmem.so.1"),
        "cc",
    )?;

    let c = program::build(
        &prefix.join("bin"),
        &workspace.root.join(SOURCE),
        &[],
        workspace.target.join("counts"),
    )?;
    let rust = rust_program(workspace, release.file(IN_RUST)?)?;

    let mut counts = Vec::new();
    for routine in COMPARED.iter().chain(&NOT_COMPARED) {
        counts.push(count_on_node(workspace, &c, routine.in_c)?);
        for operation in routine.in_rust {
            counts.push(count_on_node(workspace, &rust, operation)?);
        }
    }

    if process::on_path(LIBFABRIC.program).is_some() {
        // Nothing in the provider is counted, so it is the one of the tests.
        let tests = Release::build_packages(workspace, &["build", "--lib"], &["strict-fabric"])?;
        let provider = network::copy_provider(workspace, tests.file("libstrict_fabric.so")?)?;
        for routine in network::ROUTINES {
            let job = CountedJob {
                prefix: &prefix,
                provider: &provider,
                program: &c,
                routine,
            };
            counts.push(job.count(workspace)?);
        }
    }

    for count in &counts {
        println!("{:40} {:4} instructions", count.routine, count.instructions);
    }
    Ok(counts)
}

/// Copies the built program that calls operations of the Rust interface. Returns the path of the
/// copy. Fails if the program has more than [`LARGEST`] bytes when it is stripped.
fn rust_program(workspace: &Workspace, built: &Path) -> Result<PathBuf> {
    let program = workspace.target.join("counts-in-rust");
    fs::copy(built, &program)?;

    let stripped = workspace.target.join("counts-in-rust.stripped");
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(&program))?;
    let nbytes = fs::metadata(&stripped)?.len();
    println!("A small Rust program has {nbytes} bytes when it is stripped");
    if nbytes > LARGEST {
        bail!("a small Rust program has {nbytes} bytes when it is stripped, more than {LARGEST}");
    }
    Ok(program)
}

/// Counts the instructions of a call of a routine, on average, by `program`, which runs as a job of
/// one PE.
fn count_on_node(workspace: &Workspace, program: &Path, routine: &str) -> Result<Count> {
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
    let instructions = (all + CALLS / 2) / CALLS;
    if instructions == 0 {
        bail!("callgrind saw no call of {routine}");
    }
    Ok(Count {
        routine: routine.to_owned(),
        instructions,
    })
}

/// Returns the number of collected instructions in callgrind's report.
fn collected(log: &str) -> Option<u64> {
    let (_, number) = log
        .lines()
        .find_map(|line| line.split_once("Collected : "))?;
    number.trim().parse().ok()
}

/// Compares numbers of instructions with the pinned ones. Returns a sentence for each that is not
/// pinned, or is larger by more than is tolerated; prints one for each that is as much smaller.
fn compare(pinned: &str, counts: &[Count]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for count in counts {
        let routine = &count.routine;
        let now = count.instructions;
        match pin_of(pinned, routine)? {
            None => complaints.push(format!(
                "{routine} is not pinned for {} in {PINNED}: cargo xtask counts --pin",
                std::env::consts::ARCH
            )),
            Some(then) if now > then + tolerated(routine, then) => complaints.push(format!(
                "{routine} takes {now} instructions, {then} are pinned in {PINNED}"
            )),
            Some(then) if now + tolerated(routine, then) < then => println!(
                "{routine} takes {now} instructions, fewer than the pinned {then}: cargo xtask counts --pin"
            ),
            Some(_) => {}
        }
    }
    Ok(complaints)
}

/// Returns by how many instructions a routine may exceed its pinned number: by 2 % on a node, since
/// compilers differ, and by 15 % over a network, where an operation takes a microsecond anyway.
fn tolerated(routine: &str, pinned: u64) -> u64 {
    let percent = if routine.starts_with(network::PREFIX) {
        15
    } else {
        2
    };
    pinned * percent / 100
}

/// The number of instructions that an operation in Rust may take more than the one in C: two to
/// compare the lengths of the source and the destination, and two to align the stack for the call
/// that panics; in C, one more extends the number of the PE to the width of an address.
const CHECKS: u64 = 3;

/// Returns a sentence for each operation that takes over [`CHECKS`] more instructions in Rust than
/// in C.
fn slower_in_rust(counts: &[Count]) -> Vec<String> {
    let instructions_of = |name: &str| {
        let count = counts.iter().find(|count| count.routine == name)?;
        Some(count.instructions)
    };

    let mut complaints = Vec::new();
    for Routine { in_c, in_rust } in COMPARED {
        for operation in in_rust {
            if let Some(c) = instructions_of(in_c)
                && let Some(rust) = instructions_of(operation)
                && rust > c + CHECKS
            {
                complaints.push(format!(
                    "{operation} takes {rust} instructions, {in_c} only {c}"
                ));
            }
        }
    }
    complaints
}

/// Returns the pinned number of `routine` on this kind of processor.
fn pin_of(pinned: &str, routine: &str) -> Result<Option<u64>> {
    for line in pinned.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [arch, name, number] = words[..]
            && arch == std::env::consts::ARCH
            && name == routine
        {
            let number = number
                .parse()
                .with_context(|| format!("{PINNED}: {line}"))?;
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Returns the text of the file of pinned numbers with the numbers of this kind of processor
/// replaced; comments and other lines stay.
fn pinned_anew(pinned: &str, counts: &[Count]) -> String {
    let arch = std::env::consts::ARCH;
    let mut text = String::new();
    for line in pinned.lines() {
        if line.split_whitespace().next() != Some(arch) {
            text += line;
            text.push('\n');
        }
    }
    for count in counts {
        // A string takes any text.
        let _ = writeln!(text, "{arch} {} {}", count.routine, count.instructions);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(routine: &str, instructions: u64) -> Count {
        Count {
            routine: routine.to_owned(),
            instructions,
        }
    }

    #[test]
    fn the_report_of_callgrind_is_read() {
        let log = "==1== Events    : Ir\n==1== Collected : 50000\n==1==\n==1== I   refs:  50,000\n";
        assert_eq!(collected(log), Some(50_000));
        assert_eq!(collected("==1== Events : Ir"), None);
    }

    #[test]
    fn only_a_larger_or_unknown_count_is_a_complaint() {
        let pinned = [
            count("shmem_p", 5),
            count("shmem_g", 49),
            count("shmem_put", 150),
            count("until-provider:shmem_put", 200),
        ];
        let pinned = pinned_anew("# note\nother shmem_g 1\n", &pinned);
        let is_complaint = |routine, now| {
            let complaints = compare(&pinned, &[count(routine, now)]).expect("numbers");
            !complaints.is_empty()
        };

        for (routine, allowed, too_many) in [
            ("shmem_p", 5, 6),
            ("shmem_g", 49, 50),
            ("shmem_put", 153, 154),
            ("until-provider:shmem_put", 230, 231),
        ] {
            assert!(!is_complaint(routine, allowed), "{routine}");
            assert!(is_complaint(routine, too_many), "{routine}");
        }
        assert!(!is_complaint("shmem_p", 4), "fewer are no complaint");
        assert!(!is_complaint("shmem_put", 100), "fewer are no complaint");
        assert!(is_complaint("shmem_get", 1), "it is not pinned");
    }

    #[test]
    fn an_operation_may_take_little_more_in_rust() {
        let counts = [
            count("shmem_long_p", 5),
            count("rust_p", 5),
            count("shmem_long_g", 5),
        ];
        assert!(slower_in_rust(&counts).is_empty());

        let slower = [count("shmem_long_p", 5), count("rust_p", 6 + CHECKS)];
        assert_eq!(slower_in_rust(&slower).len(), 1);
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
