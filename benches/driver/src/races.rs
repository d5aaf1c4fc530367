//! `cargo xtask bench-races`: how much the race detector slows down programs that compute, and how
//! much memory it uses.
//!
//! The programs of benches/kernels print the time of their main loop and the memory of a PE. Each
//! runs in four forms: without the detector; with only its remote operations checked; with all of
//! its accesses checked; and, for comparison, under the compiler's ThreadSanitizer, which sees only
//! one process. The forms run in turn, and the table has ratios to the first form. A race that the
//! detector reports fails the task, since the programs have none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use shmem_perf::statistics::Spread;
use task_support::process;
use task_support::workspace::Workspace;

use crate::program;

const KERNELS: &[&str] = &["integer_sort", "block_tridiagonal"];
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(300);

/// A way to compile and run a kernel.
struct Form {
    name: &'static str,
    flags: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
    /// Words before the program's name.
    words: &'static [&'static str],
}

const FORMS: &[Form] = &[
    Form {
        name: "without",
        flags: &[],
        variables: &[],
        words: &[],
    },
    Form {
        name: "SHMEM_CHECK=races",
        flags: &[],
        variables: &[("SHMEM_CHECK", "races")],
        words: &[],
    },
    Form {
        name: "oshcc --race",
        flags: &["--race"],
        variables: &[],
        words: &[],
    },
    Form {
        name: "ThreadSanitizer",
        flags: &["-g", "-fsanitize=thread"],
        // ThreadSanitizer does not know the accesses of other processes and their order, so its
        // reports would be wrong.
        variables: &[("TSAN_OPTIONS", "report_bugs=0")],
        // Without random addresses: older ThreadSanitizers accept few layouts of the address space.
        words: &["setarch", "-R"],
    },
];

/// Flags of the task.
#[derive(clap::Args)]
pub struct RacesFlags {
    /// PEs of each job, a divisor of 24
    #[arg(long, value_name = "N", default_value_t = 2)]
    pes: u32,
    /// Launches of each form
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Runs the task.
pub fn run(RacesFlags { pes, runs, ours }: RacesFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-races");
    let bin = program::installed(ours, &workspace, &dir)?;
    println!("| program | form | time | ratio | memory of a PE | ratio |");
    println!("|---|---|---|---|---|---|");
    for kernel in KERNELS {
        let source = workspace
            .root
            .join("benches/kernels")
            .join(kernel)
            .with_extension("c");
        let mut programs = Vec::new();
        for (number, form) in FORMS.iter().enumerate() {
            let name = format!("{kernel}_{number}");
            programs.push(program::build(&bin, &source, form.flags, (&dir, &name))?);
        }
        let mut measured = vec![(Vec::new(), Vec::new()); FORMS.len()];
        for _ in 0..runs {
            for ((form, program), (times, memory)) in FORMS.iter().zip(&programs).zip(&mut measured)
            {
                let printed = capture(&bin, pes, form, program)?;
                times.push(program::value(&printed, "time")? / 1e6);
                memory.push(program::value(&printed, "memory")? / f64::from(1 << 20));
            }
        }
        let mut first = None;
        for (form, (times, memory)) in FORMS.iter().zip(&measured) {
            let (times, memory) = (Spread::of(times), Spread::of(memory).median);
            let (time_before, memory_before) = *first.get_or_insert((times.median, memory));
            println!(
                "| {kernel} | {} | {:.1} ({:.1}-{:.1}) ms | {:.2} | {memory:.0} MiB | {:.1} |",
                form.name,
                times.median,
                times.low,
                times.high,
                times.median / time_before,
                memory / memory_before
            );
        }
    }
    Ok(())
}

fn capture(bin: &Path, pes: u32, form: &Form, program: &Path) -> Result<String> {
    let mut job: Command = process::limited(LIMIT, bin.join("oshrun"));
    job.args(["-n", &pes.to_string()])
        .args(form.words)
        .arg(program);
    process::capture(job.envs(form.variables.iter().copied()))
}
