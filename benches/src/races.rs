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

/// Measures each kernel in each form, and prints the table.
pub fn run(RacesFlags { pes, runs, ours }: RacesFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-races");
    let bin = program::installed(ours, &workspace, &dir)?;
    println!("| program | form | time | ratio | memory of a PE | ratio |");
    println!("|---|---|---|---|---|---|");
    for kernel in KERNELS {
        let source = workspace.root.join("benches/kernels").join(kernel);
        let source = source.with_extension("c");
        let mut built = Vec::new();
        for (number, form) in FORMS.iter().enumerate() {
            let program = dir.join(format!("{kernel}_{number}"));
            built.push(BuiltForm {
                form,
                program: program::build(&bin, &source, form.flags, program)?,
                times: Vec::new(),
                memory: Vec::new(),
            });
        }

        for _ in 0..runs {
            for form in &mut built {
                form.measure(&bin, pes)?;
            }
        }
        print_rows(kernel, &built);
    }
    Ok(())
}

/// Prints a row for each form of a kernel, with the ratios to the first form.
fn print_rows(kernel: &str, built: &[BuiltForm]) {
    let first_time = Spread::of(&built[0].times).median;
    let first_memory = Spread::of(&built[0].memory).median;
    for one in built {
        let Spread { low, median, high } = Spread::of(&one.times);
        let memory = Spread::of(&one.memory).median;
        println!(
            "| {kernel} | {} | {median:.1} ({low:.1}-{high:.1}) ms | {:.2} | {memory:.0} MiB | {:.1} |",
            one.form.name,
            median / first_time,
            memory / first_memory
        );
    }
}

/// A kernel in one of its forms, and what was measured.
struct BuiltForm {
    form: &'static Form,
    program: PathBuf,
    /// Milliseconds of each run.
    times: Vec<f64>,
    /// MiB of a PE in each run.
    memory: Vec<f64>,
}

impl BuiltForm {
    fn measure(&mut self, bin: &Path, pes: u32) -> Result<()> {
        let printed = capture(bin, pes, self.form, &self.program)?;
        self.times.push(program::value(&printed, "time")? / 1e6);
        let nbytes = program::value(&printed, "memory")?;
        self.memory.push(nbytes / f64::from(1 << 20));
        Ok(())
    }
}

fn capture(bin: &Path, pes: u32, form: &Form, program: &Path) -> Result<String> {
    let mut job: Command = process::limited(LIMIT, bin.join("oshrun"));
    job.args(["-n", &pes.to_string()])
        .args(form.words)
        .arg(program);
    process::capture(job.envs(form.variables.iter().copied()))
}
