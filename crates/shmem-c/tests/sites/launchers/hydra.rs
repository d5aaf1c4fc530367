//! Programs under Hydra, the launcher of MPICH.

use super::*;
use crate::namespaces::Hosts;

/// The variable that names the directory of another MPICH.
const OTHER_DIR: &str = "RUSHMEM_HYDRA_DIR";

fn hydra() -> Launcher {
    Launcher::needed(HYDRA)
}

/// Returns the launcher of the system and that of [`OTHER_DIR`], as far as they exist.
fn hydras() -> Vec<Launcher> {
    let mut launchers = Vec::from_iter(Launcher::find(HYDRA));
    if let Ok(dir) = std::env::var(OTHER_DIR) {
        launchers.push(Launcher::in_dir(&dir, HYDRA));
    }
    require_any(launchers)
}

pub fn over_an_inherited_socket() {
    for launcher in hydras() {
        runs_programs(&launcher);
        shares_static_data(&launcher, program!("statics.c", "-static"));
        runs_programs(&launcher.env("SHMEM_BOOTSTRAP", "pmi2"));
    }
}

pub fn over_a_port() {
    for mut launcher in hydras() {
        launcher.words.push("-pmi-port".to_owned());
        runs_programs(&launcher);
    }

    let mut launcher = hydra();
    launcher.words.push("-pmi-port".to_owned());
    let program = mpi_program("mpich");
    launcher.job(&program, 2).arg("shmem").run().assert_ok(2);

    let outcome = launcher.job(&program, 2).arg("mpi").run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(
        outcome.stderr.contains("call shmem_init before MPI_Init"),
        "{outcome}"
    );
}

/// Under other launchers, each PE reads the file itself, and a mistake in it is reported once.
pub fn with_a_file_of_settings() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hydra.conf");
    std::fs::write(&file, "SHMEM_SYMMETRIC_SIZE=2m\nSHMEM_NOSUCH=1\n").expect("a file");

    // The test is ignored without Hydra.
    drop(hydra());
    let outcome = Job::direct(scenario!("heap_size.c"))
        .wrap(HYDRA.iter().copied())
        .wrap(["-n", "3"])
        .args([1 << 20, 8 << 20])
        .env("SHMEM_CONFIG", file.display())
        .run();
    outcome.assert_ok(3);

    let said = outcome
        .stderr
        .matches("hydra.conf:2: there is no setting SHMEM_NOSUCH")
        .count();
    assert_eq!(said, 1, "{outcome}");
}

pub fn a_job_ends_as_a_whole() {
    for launcher in hydras() {
        ends_with_its_pes(&launcher);
        warns_of_pes_without_finalize(&launcher);
        joins_messages_before_init(&launcher);
        assert_eq!(launcher.death("finalize5").code(), 5);

        for launcher in [launcher.clone(), launcher.env("SHMEM_BOOTSTRAP", "pmi2")] {
            exits_as_a_whole(&launcher, 7);
            assert_eq!(launcher.death("global_exit0").code(), 0);
        }
    }
}

pub fn a_job_ends_with_its_proxy() {
    for launcher in hydras() {
        ends_with_its_manager(&launcher);
        ends_with_its_manager(&launcher.env("SHMEM_BOOTSTRAP", "pmi2"));
    }
}

pub fn among_attackers() {
    let launcher = hydra();
    starts_among_attackers(&launcher);
    starts_among_attackers(&launcher.env("SHMEM_BOOTSTRAP", "pmi2"));
}

pub fn how_pes_join_is_reported() {
    let outcome = hydra()
        .job(program!("rma.c"), 2)
        .env("SHMEM_DEBUG", "bootstrap=trace")
        .run();

    for pe in 0..2 {
        let of_pe = format!("for PE {pe} of 2");
        let words = "the environment shows PMI over descriptor ";
        assert_reports(&outcome, words, &of_pe);

        for words in [
            "the process manager answers",
            "all processes of the job have called shmem_init",
            "the PEs of the node have met",
            "has the records of all PEs",
        ] {
            assert_reports(&outcome, words, &format!("pe={pe}"));
        }
    }
    outcome.assert_ok(2);
}

/// Checks that a line on standard error has these words and names the PE.
#[track_caller]
fn assert_reports(outcome: &Outcome, words: &str, pe: &str) {
    let mut lines = outcome.stderr.lines();
    let has_line = lines.any(|line| line.contains(words) && line.contains(pe));
    assert!(has_line, "{words} {pe} in\n{outcome}");
}

/// The first PE of a node needs two descriptors for each other PE. It raises its soft limit; if
/// the hard limit is too low, only this PE reports it.
pub fn with_few_descriptors() {
    limited("-Sn").assert_ok(24);

    let outcome = limited("-n");
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.contains("PE 0"), "{outcome}");
    assert!(outcome.stderr.contains("ulimit -n"), "{outcome}");
    assert!(!outcome.stderr.contains("it has ended"), "{outcome}");
}

/// Runs 24 PEs with 40 descriptors each, by an option of `ulimit`.
fn limited(option: &str) -> Outcome {
    let script = format!("ulimit {option} 40 && exec \"$0\"");
    hydra()
        .job("/bin/sh", 24)
        .arg("-c")
        .arg(script)
        .arg(program!("init_finalize.c").display())
        .run()
}

/// Each PE is in a PID namespace of its own, where it sees no other process.
pub fn in_pid_namespaces() {
    const ENTER: &[&str] = &["unshare", "-rpf"];

    let namespaces = Command::new(ENTER[0])
        .args(&ENTER[1..])
        .arg("true")
        .output();
    if !namespaces.is_ok_and(|made| made.status.success()) {
        absent("there are no PID namespaces");
    }

    for launcher in hydras() {
        let launcher = Launcher {
            before: ENTER,
            ..launcher
        };

        runs_programs(&launcher);
        let outcome = launcher.death("exit3");
        assert_ne!(outcome.code(), 0, "{outcome}");
    }
}

/// Newer MPICHs finalize PMI in an exit handler.
pub fn beside_another_mpich() {
    let Ok(dir) = std::env::var(OTHER_DIR) else {
        absent("RUSHMEM_HYDRA_DIR names no other MPICH");
    };

    let launcher = Launcher::in_dir(&dir, HYDRA);
    runs_beside_mpi(&launcher, &mpi_program_of(&dir));
}

pub fn beside_mpich() {
    let launcher = hydra();
    runs_beside_mpi(&launcher, &mpi_program("mpich"));
    warns_under_oshrun(&mpi_program("mpich"));
    sees_a_loaded_mpi(&mpi_program("mpich"), |program, n| launcher.job(program, n));

    runs_its_page("mpicc.mpich", "mpiexec.hydra");
    prints_what_openshmem_prints("mpicc.mpich", "mpiexec.hydra");
}

/// Each host has either consecutive PEs or every second PE. The records of the PEs are longer
/// than one value of the manager.
pub fn on_two_hosts() {
    let hosts = Hosts::new("y", 2);

    // Both protocols are tested at the start; later messages do not depend on the protocol.
    let jobs = [
        ("pmi1", "rma.c"),
        ("pmi1", "split_2d.c"),
        ("pmi2", "split_2d.c"),
        ("pmi1", "init_finalize.c"),
        ("pmi2", "init_finalize.c"),
    ];

    // The hosts share processors without knowing it. With fewer PEs than this, PEs would poll
    // without yielding on processors that their peers need.
    let n = 6;

    for launcher in hydras() {
        for place in ["PMI_RANK * 2 / PES", "PMI_RANK % 2"] {
            let enter = format!("exec ip netns exec \"$HOSTS$(({place}))\" \"$0\" \"$@\"");

            for (protocol, source) in jobs {
                launcher
                    .job("/bin/sh", n)
                    .arg("-c")
                    .arg(&enter)
                    .arg(program!(source).display())
                    .env("SHMEM_BOOTSTRAP", protocol)
                    .env("HOSTS", hosts.prefix())
                    .env("PES", n)
                    .run()
                    .assert_ok(n);
            }
        }
    }
}
