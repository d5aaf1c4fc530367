//! `cargo xtask`: everything that is done with this repository beyond compiling it.
//!
//! One file per task, but for virtual machines (ci/verbs) and benchmarks (benches/driver), which
//! are crates of their own. A task drives programs (cargo, compilers, oshrun) and reports; it must
//! never know how the library works inside, so that it is no second place to change when the
//! library does.
#![forbid(unsafe_code)]

mod archive;
mod bindings;
mod codegen;
mod counts;
mod demo;
mod install;
mod symbols;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "demo",
        about: "build, install under target/demo, compile and run two examples",
        run: demo::run,
    },
    Task {
        name: "test",
        about: "everything that must hold: [--providers | --full] [--only STEP]... [--list]",
        run: test::run,
    },
    Task {
        name: "verbs",
        about: "the networks over verbs, in virtual machines: [--only START]... [--list]",
        run: |args| verbs::run(args, install::into),
    },
    Task {
        name: "install",
        about: "build the release and install it: --prefix DIR",
        run: install::run,
    },
    Task {
        name: "codegen",
        about: "write the headers, the diagram of the crates and docs/waiting.md: [--check]",
        run: codegen::run,
    },
    Task {
        name: "bindings",
        about: "write the bindings of C libraries from their headers: [--check]",
        run: bindings::run,
    },
    Task {
        name: "symbols",
        about: "compare what librushmem exports with the standard: LIBRARY...",
        run: symbols::run,
    },
    Task { name: "tidy", about: "check the structure of the repository", run: tidy::run },
    Task {
        name: "counts",
        about: "instruction counts of the on-node path against the pinned ones: [--pin]",
        run: counts::run,
    },
    Task {
        name: "bench-peer",
        about: "compare with another OpenSHMEM: [--suite NAME] [--runs N] [--peer DIR]... [--ours DIR]",
        run: |args| bench_driver::peer::run(args, install::into),
    },
    Task {
        name: "bench-size",
        about: "time and memory of jobs of many PEs: [--pes N]... [--runs N] [--transport NAME] [--ours DIR]",
        run: |args| bench_driver::size::run(args, install::into),
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = args.first() else {
        print!("{}", usage());
        return ExitCode::FAILURE;
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("xtask: there is no task `{name}`\n\n{}", usage());
        return ExitCode::FAILURE;
    };
    match (task.run)(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = String::from("Usage: cargo xtask TASK [OPTION]...\n\n");
    for task in TASKS {
        text += &format!("  {:12} {}\n", task.name, task.about);
    }
    text
}
