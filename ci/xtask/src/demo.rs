//! `cargo xtask demo`: builds the library and oshrun without optimization, and compiles and runs
//! two programs with them. It needs only Rust and a C compiler.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use task_support::workspace::Workspace;
use task_support::{installation, needs, process};

/// An example of crates/shmem-c/examples.
pub struct Example {
    /// The name of the file, without `.c`.
    pub name: &'static str,
    /// The number of PEs that run it.
    pub pes: u32,
}

/// The programs of the demonstration and of the step `ordinary-user`.
pub const EXAMPLES: &[Example] = &[
    Example {
        name: "split_3d",
        pes: 12,
    },
    Example {
        name: "max_to_all",
        pes: 8,
    },
];

/// The directory of the sources of the examples.
pub const SOURCES: &str = "crates/shmem-c/examples";

const LIMIT: Duration = Duration::from_secs(60);

pub fn run() -> Result<()> {
    needs::c_compiler()?;
    let workspace = Workspace::open()?;
    let prefix = workspace.target.join("demo");
    println!(
        "Building the library and oshrun, for {} ...",
        prefix.display()
    );
    installation::core_into(&workspace, &prefix)?;

    let programs = prefix.join("examples");
    fs::create_dir_all(&programs)?;
    for Example { name, pes } in EXAMPLES {
        let source = format!("{SOURCES}/{name}.c");
        let program = programs.join(name);
        println!("\n$ oshcc {source} -o {name}");
        process::run(
            Command::new(prefix.join("bin/oshcc"))
                .current_dir(&workspace.root)
                .arg(&source)
                .arg("-o")
                .arg(&program),
        )?;
        println!("$ oshrun -n {pes} ./{name}");
        process::run(
            process::limited(LIMIT, prefix.join("bin/oshrun"))
                .args(["-n", &pes.to_string()])
                .arg(&program),
        )?;
    }
    print!("{}", next_steps(&prefix));
    Ok(())
}

/// Returns the text that is printed at the end.
fn next_steps(prefix: &Path) -> String {
    let bin = prefix.join("bin");
    format!(
        r#"
It works. To run a program of your own with this build, which is not optimized:

  export PATH="{}:$PATH"
  oshcc program.c -o program && oshrun -n 4 ./program

To install all of it, with optimization:  cargo xtask install --prefix ~/rushmem
To test it on this machine:               cargo xtask test
Programs in C, C++, Fortran, Python and Rust, and what to do next:  docs/first-hour.md
"#,
        bin.display()
    )
}
