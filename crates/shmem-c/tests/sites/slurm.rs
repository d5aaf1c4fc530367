//! Programs under a private Slurm on this machine.
//!
//! The tests are ignored if Slurm is missing or the user is not root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::launchers::{
    Launcher, ends_with_its_pes, exits_as_a_whole, mpi_program, runs_beside_mpi, runs_programs,
    warns_of_pes_without_finalize,
};
use crate::recipes::{self, assert_rings};
use crate::verify;
use testkit::{Job, absent, prefix, program, scenario};

/// A private Slurm with two hosts and two nodes on each, until it is dropped.
struct Slurm {
    dir: PathBuf,
}

impl Slurm {
    /// Starts Slurm. Ignores the test if Slurm is missing or the user is not root.
    fn up() -> Slurm {
        for program in ["munged", "slurmctld", "slurmd", "srun"] {
            Launcher::needed(&[program]);
        }
        if !rustix::process::geteuid().is_root() {
            absent("a private Slurm needs root");
        }

        let dir = format!("rm{}", std::process::id());
        let slurm = Slurm {
            dir: std::env::temp_dir().join(dir),
        };
        assert!(slurm.script("up"), "see {}", slurm.dir.display());
        slurm
    }

    fn script(&self, action: &str) -> bool {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/scripts/slurm.sh");
        let status = Command::new("timeout")
            .args(["-k", "5", "60"])
            .arg(script)
            .arg(action)
            .arg(&self.dir)
            // A daemon must not keep the test's output open.
            .stdout(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn launcher(&self, options: &[&str]) -> Launcher {
        let srun = self.dir.join("srun").display().to_string();
        Launcher::of(&[&[srun.as_str()], options].concat())
    }

    /// Returns a job that oshrun starts, with these options, in an allocation of four nodes.
    fn allocated(&self, program: PathBuf, options: &[&str]) -> Job {
        let salloc = self.dir.join("salloc").display().to_string();
        let oshrun = prefix().join("bin/oshrun").display().to_string();
        Job::direct(program)
            .wrap([salloc.as_str(), "-Q", "-N4", &oshrun])
            .wrap(options.iter().copied())
            .env("SHMEM_SYMMETRIC_SIZE", "64m")
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.script("down");
    }
}

fn over_each_of_its_protocols() {
    let slurm = Slurm::up();
    for (protocol, status) in [("--mpi=pmi2", 137), ("--mpi=pmix", 7)] {
        // One node; PEs in blocks on four nodes, which are two machines; PEs in turn on them.
        let one = slurm.launcher(&[protocol, "-N1", "--overcommit"]);
        let four = slurm.launcher(&[protocol, "-N4", "--overcommit"]);
        let turns = slurm.launcher(&[protocol, "-N4", "--overcommit", "-m", "cyclic"]);

        runs_programs(&one);

        four.job(program!("rma.c"), 4).run().assert_ok(4);
        four.job(program!("split_2d.c"), 6).run().assert_ok(6);
        four.job(program!("init_finalize.c"), 4).run().assert_ok(4);
        turns.job(program!("rma.c"), 6).run().assert_ok(6);

        ends_with_its_pes(&one);
        warns_of_pes_without_finalize(&one);
        warns_of_pes_without_finalize(&four);
        exits_as_a_whole(&one, status);
    }

    let two = slurm
        .launcher(&["--mpi=pmi2", "-N4"])
        .env("SHMEM_BOOTSTRAP", "pmi2");
    two.job(program!("rma.c"), 4).run().assert_ok(4);

    // On both machines.
    let launcher = slurm.launcher(&["--mpi=pmix", "-N3", "--overcommit"]);
    runs_beside_mpi(&launcher, &mpi_program("ompi-c"));

    let outcome = slurm.launcher(&["-N2"]).job(program!("rma.c"), 2).run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.contains("srun --mpi=pmix"), "{outcome}");

    let four = slurm.launcher(&["--mpi=pmix", "-N4", "--overcommit"]);
    verify::is_right(four.job(prefix().join("bin/shmem-verify"), 4), "tcp");

    oshrun_in_an_allocation(&slurm);
    recipes_in_an_allocation(&slurm);

    // Last, since MPICH may be absent.
    let program = mpi_program("mpich");
    let launcher = slurm.launcher(&["--mpi=pmi2", "-N1"]);
    launcher.job(&program, 3).arg("mpi").run().assert_ok(3);

    let outcome = launcher.job(&program, 3).arg("shmem").run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(
        outcome.stderr.contains("call MPI_Init before shmem_init"),
        "{outcome}"
    );
}

/// oshrun starts its daemons by srun on the nodes of the allocation.
fn oshrun_in_an_allocation(slurm: &Slurm) {
    let rma = slurm.allocated(program!("rma.c"), &[]);
    rma.run().assert_ok(4);
    let split = slurm.allocated(program!("split_2d.c"), &["-n", "8"]);
    split.run().assert_ok(8);
    let collectives = slurm.allocated(program!("collectives_team.c"), &["--ppn", "2"]);
    collectives.run().assert_ok(8);

    let death = slurm.allocated(scenario!("death.c"), &["-n", "3"]);
    let outcome = death.arg("kill").run();
    outcome.assert_fails(&["PE 1 (pid ", "host n2", "SIGKILL"]);
}

/// Stands for `apptainer exec image.sif PROGRAM`, by a container without a file system of its own.
const APPTAINER: &str =
    "[ \"$1 $2\" = 'exec image.sif' ] || exit 2; shift 2; exec unshare -rm \"$@\"";

/// Runs the commands of docs/unlaunched.md that need an allocation of Slurm.
fn recipes_in_an_allocation(slurm: &Slurm) {
    let page = recipes::page("slurm");
    page.stand_in("apptainer", APPTAINER);
    page.shell(&page.block("sh", "> ~/secret"));

    for words in ["srun --mpi=none", "apptainer"] {
        page.write("block.sh", &page.block("sh", words));
        let salloc = slurm.dir.join("salloc");
        let salloc = salloc.display();
        let command = format!("{salloc} -Q -N4 -n8 bash -euo pipefail block.sh");
        assert_rings(&page.shell(&command), 8);
    }

    page.end();
}

testkit::module_tests! {
    ; ignored "part of `cargo xtask test --full`" =>
    over_each_of_its_protocols,
}
