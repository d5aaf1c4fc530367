//! Programs under Open MPI's mpirun.

use super::*;

pub(super) fn mpirun() -> Launcher {
    Launcher::needed(MPIRUN)
}

pub fn a_job_ends_with_it() {
    ends_with_its_manager(&mpirun());
}

pub fn over_pmix() {
    let launcher = mpirun();
    runs_programs(&launcher);
}

pub fn a_job_ends_as_a_whole() {
    let launcher = mpirun();
    ends_with_its_pes(&launcher);
    warns_of_pes_without_finalize(&launcher);
    joins_messages_before_init(&launcher);

    exits_as_a_whole(&launcher, 7);
    assert_eq!(launcher.death("global_exit0").code(), 0);
}

pub fn among_attackers() {
    let launcher = mpirun();
    starts_among_attackers(&launcher);
}

pub fn a_server_that_is_gone_is_named() {
    mpirun();
    names_a_lost_server("a.0;tcp4://127.0.0.1:1", "UNREACHABLE");
}

/// A static program cannot load libpmix: it would load a second C library and crash.
pub fn a_static_program_is_refused() {
    let launcher = mpirun();
    let outcome = launcher.job(program!("rma.c", "-static"), 2).run();

    // mpirun may end the second process before it prints the same.
    assert_eq!(outcome.code(), 1, "{outcome}");
    for word in ["PMIx", "statically linked", "link it dynamically", "oshrun"] {
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    }

    launcher
        .job(program!("init_finalize.c", "-static"), 1)
        .run()
        .assert_ok(1);
}

pub fn beside_open_mpi() {
    let launcher = mpirun();
    runs_beside_mpi(&launcher, &mpi_program("ompi-c"));
    warns_under_oshrun(&mpi_program("ompi-c"));
    sees_a_loaded_mpi(&mpi_program("ompi-c"), |program, n| {
        launcher.job(program, n)
    });

    let mpirun = "mpirun.openmpi --allow-run-as-root --oversubscribe";
    runs_its_page("mpicc.openmpi", mpirun);
    prints_what_openshmem_prints("mpicc.openmpi", mpirun);
}
