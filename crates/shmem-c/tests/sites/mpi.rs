//! Programs that use MPI and OpenSHMEM: the commands of their page, the programs of
//! docs/from-mpi.md, and the warning about launchers that do not start MPI. `launchers` calls these
//! functions with each MPI, and tests the orders of initialization.

use std::path::Path;
use std::process::Command;

use testkit::pages::Page;
use testkit::{Job, scenario};

/// Checks the warning under `oshrun`, which does not start MPI, so that MPI has one process on each
/// PE.
pub fn warns_under_oshrun(program: &Path) {
    for first in ["mpi", "shmem"] {
        let outcome = Job::new(program).n(3).arg(first).run();
        let warning = ": MPI_COMM_WORLD has one process, but the job has 3 PEs: this launcher";
        assert!(outcome.stderr.contains(warning), "{outcome}");
    }

    let outcome = Job::new(program).n(1).run();
    assert!(!outcome.stderr.contains("MPI_COMM_WORLD"), "{outcome}");
}

/// Checks that the library finds an MPI that the program has loaded with local symbols, as Python
/// does with modules: it warns under `oshrun`, and not under the launcher of that MPI. The MPI is
/// the one with which `linked` is linked. `launched` returns a job under its launcher.
pub fn sees_a_loaded_mpi(linked: &Path, launched: impl Fn(&Path, usize) -> Job) {
    let libraries = Command::new("ldd")
        .arg(linked)
        .output()
        .expect("ldd")
        .stdout;
    let libraries = String::from_utf8(libraries).expect("plain paths");
    // A line is such as `libmpi.so.40 => /lib/libmpi.so.40 (0x...)`.
    let path = libraries
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("libmpi"))
        .find_map(|line| line.split(' ').nth(2))
        .expect("a library of MPI");

    let program = scenario!("mpi_loaded.c", "-ldl");
    for first in ["mpi", "shmem"] {
        for (n, job) in [(1, Job::new(&program).n(1)), (3, launched(&program, 3))] {
            let outcome = job.arg(path).arg(first).run();
            outcome.assert_ok(n);
            let is_warned = outcome.stderr.contains("MPI_COMM_WORLD");
            assert!(!is_warned, "{first}\n{outcome}");
        }

        let outcome = Job::new(&program).n(3).arg(path).arg(first).run();
        outcome.assert_ok(3);
        let warning = ": MPI_COMM_WORLD has one process, but the job has 3 PEs: this launcher";
        assert!(outcome.stderr.contains(warning), "{first}\n{outcome}");
    }
}

/// Runs the commands of docs/mpi.md with the compiler and the launcher of an MPI.
pub fn runs_its_page(compiler: &str, launcher: &str) {
    let page = Page::open("mpi", env!("CARGO_TARGET_TMPDIR"));
    page.stand_in("mpicc", &format!("exec {compiler} \"$@\""));
    page.stand_in("mpirun", &format!("exec {launcher} \"$@\""));

    let [hybrid, by_id] = &page.blocks("c")[..] else {
        panic!("two programs")
    };
    page.write("hybrid.c", hybrid);
    page.write("by_id.c", by_id);

    for block in page.blocks("sh") {
        let output = page.shell(&block);
        if block.contains("mpirun") {
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed, "the ranks add up to 6\n");
        }
    }

    // A launcher may mix the lines of its processes, so each has a file.
    let output = page.shell(
        "OSHCC_CC=mpicc oshcc by_id.c -o by_id\n\
         mpirun -n 4 sh -c 'exec ./by_id >rank.$$'; cat rank.*",
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    for rank in 0..4 {
        let line = format!("rank {rank} of 4 is PE {rank} of 4\n");
        assert!(printed.contains(&line), "{output:?}");
    }

    let oshrun = page.shell("oshrun -n 4 ./hybrid");
    let said = String::from_utf8_lossy(&oshrun.stderr).into_owned();
    for line in page.blocks("text")[0].lines() {
        // PEs that print later have a line of their own.
        let words = line.trim_start_matches("warning: all 4 PEs: ");
        assert!(said.contains(words), "{words:?} is not in {said:?}");
    }

    if Command::new("cmake").arg("--version").output().is_ok() {
        let head = "cmake_minimum_required(VERSION 3.18)\nproject(hybrid C)\n\
                    add_executable(hybrid hybrid.c)\n";
        let library = &page.blocks("cmake")[0];
        page.write("CMakeLists.txt", &format!("{head}{library}"));
        page.shell(
            "cmake -B build -DMPI_C_COMPILER=$(command -v mpicc) -DCMAKE_PREFIX_PATH=$HOME/rushmem\n\
             cmake --build build\n\
             mpirun -n 2 build/hybrid",
        );
    }

    page.end();
}

/// Runs the programs for MPI of docs/from-mpi.md, and compares what they print with what the page
/// says of their forms for OpenSHMEM.
pub fn prints_what_openshmem_prints(compiler: &str, launcher: &str) {
    let dir = format!("{}/{compiler}", env!("CARGO_TARGET_TMPDIR"));
    let page = Page::open("from-mpi", &dir);

    let programs = page.blocks("c");
    let of_mpi = programs.iter().filter(|text| text.contains("<mpi.h>"));
    let said = page.blocks("sh").concat();
    assert_eq!(said.lines().count(), of_mpi.clone().count());

    for (program, line) in of_mpi.zip(said.lines()) {
        let (_, prints) = line.split_once('#').expect("what it prints");
        page.write("program.c", program);
        let build_and_run = format!("{compiler} program.c -o program && {launcher} -n 4 ./program");
        let output = page.shell(&build_and_run);

        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed.trim(), prints.trim());
    }

    page.end();
}
