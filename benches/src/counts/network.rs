//! Counts the instructions of the library in an operation over a network, from the call until
//! libfabric's provider is called first: a NIC cannot start before that.
//!
//! The provider is `strict` (ci/strict-fabric), whose domain `copy` completes every operation
//! before its call returns. So no call waits, and each takes the same number of instructions unless
//! the service thread polls at the same time. The median of several calls is therefore
//! reproducible. No operation is in flight when a call begins.

use super::Count;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::Workspace;

/// The routines that are counted, which benches/counts.c calls.
pub const ROUTINES: &[&str] = &[
    "shmem_putmem",
    "shmem_getmem",
    "shmem_long_atomic_fetch_add",
];

/// The prefix of a routine's name among the pinned numbers.
pub const PREFIX: &str = "until-provider:";
/// The pattern of the names of the provider's functions, for callgrind.
const PROVIDER: &str = "strict_fi_*";

const LIBRARY: &str = "/librushmem.so.1";
/// The number of calls of which the median is taken. It is odd, so that a call has the median.
const CALLS: usize = 21;
/// The time limit of a job under callgrind.
const LIMIT: Duration = Duration::from_secs(120);

/// Copies the built provider into a directory for libfabric. Returns the directory.
pub fn copy_provider(workspace: &Workspace, built: &Path) -> Result<PathBuf> {
    let dir = workspace.target.join("strict-fabric");
    fs::create_dir_all(&dir)?;
    fs::copy(built, dir.join("libstrict-fi.so")).context("the provider for tests")?;
    Ok(dir)
}

/// Returns for each call the number of instructions until the first call of the provider; for a
/// call that does not call the provider, all of its instructions.
fn until_provider(parts: &[CallgrindPart]) -> Vec<u64> {
    let mut calls = Vec::new();
    // Of the present call: the instructions so far, and those until the first call of the provider.
    let mut so_far = 0;
    let mut until_provider = None;
    for part in parts {
        so_far += part.own;
        // Between two calls of the routine, nothing is collected, but other calls of the provider
        // end parts, too.
        if so_far == 0 {
            continue;
        }

        if part.is_before_provider {
            until_provider.get_or_insert(so_far);
        } else {
            calls.push(until_provider.take().unwrap_or(so_far));
            so_far = 0;
        }
    }
    calls
}

/// A job of two PEs, the first of which calls a routine.
pub struct CountedJob<'a> {
    /// The installation whose launcher is used.
    pub prefix: &'a Path,
    /// The directory of the provider.
    pub provider: &'a Path,
    /// The program, which accesses the other PE.
    pub program: &'a Path,
    pub routine: &'a str,
}

/// The counts of callgrind from one dump to the next.
struct CallgrindPart {
    /// The position among all parts of the process.
    number: u64,
    /// True if the part ends at a call of the provider, false if it ends where the routine returns.
    is_before_provider: bool,
    /// The number of instructions of the library.
    own: u64,
}

impl CountedJob<'_> {
    /// Counts the instructions of one call of the routine until the provider is called first.
    pub fn count(&self, workspace: &Workspace) -> Result<Count> {
        let routine = self.routine;
        let counts = until_provider(&self.run(workspace)?);
        Ok(Count {
            routine: format!("{PREFIX}{routine}"),
            instructions: median(routine, counts)?,
        })
    }

    /// Runs the job. Returns the parts of the first PE in their order.
    fn run(&self, workspace: &Workspace) -> Result<Vec<CallgrindPart>> {
        let CountedJob {
            prefix,
            provider,
            program,
            routine,
        } = *self;
        let dir = workspace.target.join("counts-parts");
        // There is none before the first run.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir)?;

        // valgrind replaces `%q{NAME}` by the value of a variable, so each PE has its own files.
        let into = |name: &str| format!("{}/{name}.%q{{SHMEM_LOCAL_ID}}", dir.display());
        let mut job = process::limited(LIMIT, prefix.join("bin/oshrun"));
        job.args([
            "-n",
            "2",
            "valgrind",
            "--tool=callgrind",
            "--compress-strings=no",
        ])
        .arg(format!("--toggle-collect={routine}"))
        .arg(format!("--dump-after={routine}"))
        // All options of `routine` come before this one: callgrind 3.19 ignores options of a
        // function that follow those of another function.
        .arg(format!("--dump-before={PROVIDER}"))
        .arg(format!("--callgrind-out-file={}", into("out")))
        .arg(format!("--log-file={}", into("log")))
        .arg(program)
        .args([routine, &CALLS.to_string()]);
        job.env("FI_PROVIDER_PATH", provider).envs([
            ("SHMEM_TRANSPORT", "ofi"),
            ("SHMEM_OFI_PROVIDER", "strict"),
            ("SHMEM_OFI_DOMAIN", "copy"),
            ("SHMEM_AMOS", "network"),
            ("SHMEM_ONNODE", "off"),
            ("SHMEM_SYMMETRIC_SIZE", "1m"),
        ]);
        process::run(&mut job)?;
        read_parts(&dir)
    }
}

/// Reads the parts of PE 0 from a directory of callgrind's output.
fn read_parts(dir: &Path) -> Result<Vec<CallgrindPart>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(number) = name.strip_prefix("out.0.") else {
            continue;
        };

        let text = fs::read_to_string(entry.path())?;
        parts.push(CallgrindPart {
            number: number
                .parse()
                .with_context(|| format!("callgrind's file {name}"))?,
            is_before_provider: text.contains("\ndesc: Trigger: --dump-before="),
            own: own(&text),
        });
    }
    parts.sort_by_key(|part| part.number);
    Ok(parts)
}

fn median(routine: &str, mut counts: Vec<u64>) -> Result<u64> {
    counts.sort_unstable();
    if counts.len() < CALLS {
        bail!(
            "callgrind saw {} calls of {routine} instead of {CALLS}",
            counts.len()
        );
    }
    Ok(counts[counts.len() / 2])
}

/// Returns the number of instructions of the library in a part of callgrind's output. The line
/// after `calls=` is skipped: it has the instructions of the callee, which are counted at the
/// callee, if it is in the library.
fn own(part: &str) -> u64 {
    let mut object = "";
    let mut is_of_callee = false;
    let mut instructions = 0;
    for line in part.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            is_of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // A source line, absolute or relative, and its cost.
            let cost = line.split_whitespace().nth(1);
            if !is_of_callee && object.ends_with(LIBRARY) {
                instructions += cost.and_then(|cost| cost.parse().ok()).unwrap_or(0);
            }
            is_of_callee = false;
        }
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_where_the_routine_returns() {
        let part = |is_before_provider, own| CallgrindPart {
            number: 0,
            is_before_provider,
            own,
        };
        // The second call calls the provider twice, the third one never. Calls of other routines
        // call it in between.
        let parts = [
            part(true, 0),
            part(true, 9),
            part(false, 2),
            part(true, 0),
            part(true, 8),
            part(true, 1),
            part(false, 3),
            part(false, 5),
            part(false, 0),
        ];
        assert_eq!(until_provider(&parts), [9, 8, 5]);
    }

    #[test]
    fn what_the_provider_takes_does_not_count() {
        let part = "summary: 18\n\nob=/lib/librushmem.so.1\nfn=shmem_putmem\n16 7\n+3 2\ncob=/x/libstrict-fi.so\n\
            cfn=strict_fi_writemsg\ncalls=1 0 \n* 5\n-1 4\n\nob=/x/libstrict-fi.so\nfn=strict_fi_writemsg\n0 5\n";
        assert_eq!(own(part), 13);
        assert_eq!(own("summary: 0\n"), 0);
    }
}
