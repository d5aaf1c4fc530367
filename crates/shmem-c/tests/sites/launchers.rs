//! Programs under other launchers: Hydra, Open MPI's mpirun, PRRTE. `slurm` has the tests of Slurm.
//!
//! If a launcher is missing, its tests are ignored; `cargo xtask test` installs those of the
//! system's packages. `RUSHMEM_HYDRA_DIR` and `RUSHMEM_PRRTE_DIR` name directories with further
//! launchers, such as newer versions.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::attackers::Attackers;
use crate::mpi::{
    prints_what_openshmem_prints, runs_its_page, sees_a_loaded_mpi, warns_under_oshrun,
};
use crate::namespaces::Hosts;
use testkit::{Job, Outcome, absent, program, scenario};

/// A launcher with its options.
#[derive(Clone)]
pub struct Launcher {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// Words before the program's name, of a command that starts it; none without such a command.
    before: &'static [&'static str],
}

impl Launcher {
    /// Returns the launcher if it is on the search path.
    fn find(words: &[&str]) -> Option<Launcher> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let here = std::env::split_paths(&path).any(|dir| dir.join(words[0]).exists());
        here.then(|| Launcher::of(words))
    }

    /// Returns the launcher on the search path. Ignores the test if there is none.
    pub fn needed(words: &[&str]) -> Launcher {
        Launcher::find(words).unwrap_or_else(|| absent(format!("{} is not here", words[0])))
    }

    pub fn of(words: &[&str]) -> Launcher {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Launcher {
            words,
            environment: Vec::new(),
            before: &[],
        }
    }

    /// Returns the launcher in the directory that a variable names, and the directory; `None` if
    /// the variable is not set.
    fn from_dir(variable: &str, words: &[&str]) -> Option<(Launcher, String)> {
        let dir = std::env::var(variable).ok()?;
        let program = format!("{dir}/bin/{}", words[0]);
        assert!(
            Path::new(&program).exists(),
            "{variable} names a directory without {program}"
        );

        Some((
            Launcher::of(&[&[program.as_str()], &words[1..]].concat()),
            dir,
        ))
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Launcher {
        self.environment.push((name, value.into()));
        self
    }

    /// Returns a job of `n` processes of a program.
    pub fn job(&self, program: impl AsRef<Path>, n: usize) -> Job {
        let words = self.words.iter().map(String::as_str);
        let n = n.to_string();

        let job = Job::direct(program)
            .wrap(words)
            .wrap(["-n", &n])
            .wrap(self.before.iter().copied());
        let job = job.env("SHMEM_SYMMETRIC_SIZE", "64m");
        self.environment
            .iter()
            .fold(job, |job, (name, value)| job.env(name, value))
    }

    fn death(&self, how: &str) -> Outcome {
        let outcome = self.job(scenario!("death.c"), 3).arg(how).run();
        assert!(
            !outcome.stdout.contains("a barrier ended"),
            "a barrier without PE 1\n{outcome}"
        );

        outcome
    }
}

pub const HYDRA: &[&str] = &["mpiexec.hydra"];
/// Open MPI's mpirun by Debian's name, since MPICH may also have an mpirun.
pub const MPIRUN: &[&str] = &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"];
const PRTERUN: &[&str] = &[
    "prterun",
    "--allow-run-as-root",
    "--map-by",
    ":oversubscribe",
];

fn hydra() -> Launcher {
    Launcher::needed(HYDRA)
}

/// Returns the launcher of the system and that of `RUSHMEM_HYDRA_DIR`, as far as they exist.
fn hydras() -> Vec<Launcher> {
    let other = Launcher::from_dir("RUSHMEM_HYDRA_DIR", HYDRA).map(|(launcher, _)| launcher);
    require_any(Launcher::find(HYDRA).into_iter().chain(other))
}

/// Returns all launchers. Ignores the test if there is none.
fn require_any(launchers: impl Iterator<Item = Launcher>) -> Vec<Launcher> {
    let launchers: Vec<Launcher> = launchers.collect();
    if launchers.is_empty() {
        absent("neither the system nor a directory has this launcher");
    }

    launchers
}

fn mpirun() -> Launcher {
    Launcher::needed(MPIRUN)
}

/// Returns the launcher of the system and that of `RUSHMEM_PRRTE_DIR`, as far as they exist.
fn prteruns() -> Vec<Launcher> {
    let other = Launcher::from_dir("RUSHMEM_PRRTE_DIR", PRTERUN).map(|(launcher, dir)| {
        let libraries = format!("{dir}/lib/openmpi:{dir}/lib");
        let launcher = ["OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX"]
            .into_iter()
            .fold(launcher, |launcher, name| launcher.env(name, &dir));

        // The program must not use the launcher's own libraries.
        Launcher {
            before: &["env", "-u", "LD_LIBRARY_PATH"],
            ..launcher
        }
        .env("LD_LIBRARY_PATH", libraries)
    });

    require_any(Launcher::find(PRTERUN).into_iter().chain(other))
}

/// Runs the programs that any launcher must start: init and finalize in every order, RMA,
/// collectives, the old start-up.
pub fn runs_programs(launcher: &Launcher) {
    for (source, n) in [
        ("init_finalize.c", 1),
        ("init_finalize.c", 4),
        ("rma.c", 2),
        ("rma.c", 3),
        ("collectives_team.c", 4),
        ("start_pes.c", 3),
    ] {
        launcher.job(program!(source), n).run().assert_ok(n);
    }

    launcher
        .job(scenario!("child_exits.c"), 2)
        .run()
        .assert_ok(2);

    shares_static_data(launcher, program!("statics.c"));
}

/// PEs map each other's static data, so that no transport is needed.
fn shares_static_data(launcher: &Launcher, program: PathBuf) {
    let outcome = launcher.job(program, 3).env("SHMEM_DEBUG", "2").run();
    outcome.assert_ok(3);

    assert_eq!(
        outcome
            .stderr
            .matches("static_data=\"like the heap\"")
            .count(),
        3,
        "{outcome}"
    );
}

/// Checks that the job ends with a status other than 0 if one PE ends, for whatever reason.
pub fn ends_with_its_pes(launcher: &Launcher) {
    for how in ["kill", "segv", "exit3", "_exit3"] {
        assert_ne!(launcher.death(how).code(), 0, "{how}");
    }

    for how in ["exit0", "exit3"] {
        let outcome = launcher.death(how);
        let words = format!(
            "PE 1: exited with status {} without shmem_finalize",
            &how[4..]
        );

        assert!(outcome.stderr.contains(&words), "{how}\n{outcome}");
        assert_ne!(outcome.code(), 0, "{how}\n{outcome}");
    }

    let outcome = launcher
        .job(scenario!("leaves_early.c"), 4)
        .arg("barrier")
        .run();
    let words = "PE 0 in shmem_barrier_all; PEs 1-3 in shmem_finalize";
    assert!(outcome.stderr.contains(words), "{outcome}");
    assert_ne!(outcome.code(), 0, "{outcome}");

    // A PE ends with its own last thread, although the library and the manager's library have
    // threads.
    let outcome = launcher
        .job(scenario!("first_thread.c"), 3)
        .arg("alone")
        .run();
    let words = "PE 1: exited with status 0 without shmem_finalize";
    assert!(outcome.stderr.contains(words), "{outcome}");

    let outcome = launcher.job(scenario!("misuse.c"), 2).arg("put_pe_n").run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(
        outcome.stderr.contains("PE "),
        "no word of the PE\n{outcome}"
    );
}

/// Checks that a job whose PEs all exit with status 0 and without finalize succeeds with a warning.
pub fn warns_of_pes_without_finalize(launcher: &Launcher) {
    for how in ["all_exit0", "late_exit0"] {
        let outcome = launcher.death(how);
        assert_eq!(outcome.code(), 0, "{how}\n{outcome}");

        let warning = "warning: no PE called shmem_finalize";
        assert_eq!(
            outcome.stderr.matches(warning).count(),
            1,
            "{how}\n{outcome}"
        );
    }
}

/// Checks that a mistake that all PEs of a node make before they share memory is reported by few of
/// them, usually by one. A PE that starts late on a slow machine may print its own line.
fn joins_messages_before_init(launcher: &Launcher) {
    let outcome = launcher
        .job(scenario!("misuse.c"), 4)
        .arg("before_init")
        .run();

    assert_ne!(outcome.code(), 0, "{outcome}");
    let lines = outcome.stderr.matches("called before shmem_init").count();
    assert!((1..4).contains(&lines), "{outcome}");
}

/// Checks that PEs end if their process manager is killed, and so cannot end them. The manager is
/// the parent of the PEs, or of the shells that start them. The limit is far longer than PEs need.
fn ends_with_its_manager(launcher: &Launcher) {
    const N: usize = 3;
    let program = scenario!("soak.c").display().to_string();

    for script in ["exec \"$0\" forever", "\"$0\" forever; exit $?"] {
        let job = launcher
            .job("/bin/sh", N)
            .arg("-c")
            .arg(format!("echo shell $$; {script}"));
        let mut running = job.arg(&program).start();

        let numbers = |lines: &[&str], what: &str| -> Vec<i32> {
            let number = |line: &&str| line.rsplit_once(what)?.1.parse().ok();
            lines.iter().filter_map(number).collect()
        };
        let (shells, pes) = running.wait_for(|lines| {
            let pes = numbers(lines, " pid ");
            (pes.len() == N).then(|| (numbers(lines, "shell "), pes))
        });

        testkit::kill(status_of(shells[0]).expect("it runs").1);

        let start = Instant::now();
        let within = testkit::patient(Duration::from_secs(15));
        let runs = |pe: &i32| status_of(*pe).is_some_and(|(state, _)| state != 'Z');

        while pes.iter().any(runs) {
            assert!(
                start.elapsed() < within,
                "PEs outlive their process manager"
            );
            sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the state and the parent of a process.
fn status_of(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Checks that `shmem_global_exit(7)` ends the job with `status`, which depends on the launcher,
/// and that no output is lost.
pub fn exits_as_a_whole(launcher: &Launcher, status: i32) {
    let outcome = launcher.death("global_exit7");
    assert_eq!(outcome.code(), status, "{outcome}");
    assert!(
        outcome.stdout.contains("last words"),
        "what was printed is lost\n{outcome}"
    );
}

/// Checks that a job starts while another user keeps the queues of its sockets full. One PE starts
/// late, so that the attackers have time to fill the sockets that the others have opened by then.
fn starts_among_attackers(launcher: &Launcher) {
    const N: usize = 4;
    const SCRIPT: &str = "echo pid $$; \
                          case ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} in \
                          2) while ! [ -e \"$GO\" ]; do sleep 0.02; done;; \
                          esac; exec \"$0\"";

    let dir = tempfile::tempdir().expect("a directory");
    let go = dir.path().join("go");

    let job = launcher
        .job("/bin/sh", N)
        .arg("-c")
        .arg(SCRIPT)
        .arg(program!("rma.c").display());
    let mut running = job.env("GO", go.display()).start();

    let pids = running.wait_for(|lines| {
        let pids = lines
            .iter()
            .filter_map(|line| line.strip_prefix("pid ")?.parse().ok());
        Some(pids.collect::<Vec<i32>>()).filter(|pids| pids.len() == N)
    });

    let attackers = Attackers::start(pids);
    // The PEs may have nothing that can be attacked, so the wait is short.
    let end = Instant::now() + Duration::from_secs(3);
    while attackers.n_filled() < N - 1 && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }

    std::fs::write(&go, "").expect("a file");
    running.finish().assert_ok(N);
}

/// Compiles the program of MPI and OpenSHMEM for the MPI with this name in pkg-config.
pub fn mpi_program(mpi: &str) -> PathBuf {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", mpi])
        .output();
    let Ok(Output { status, stdout, .. }) = flags else {
        absent("pkg-config is not here")
    };
    if !status.success() {
        absent(format!("pkg-config knows no {mpi}"));
    }

    let flags = String::from_utf8(stdout).expect("plain flags");
    mpi_program_with(&flags)
}

/// Compiles the program of MPI and OpenSHMEM for the MPI in this directory.
fn mpi_program_of(dir: &str) -> PathBuf {
    let run_path = ["lib", "lib/openmpi", "lib/mpich"].map(|lib| format!("-Wl,-rpath,{dir}/{lib}"));
    mpi_program_with(&format!(
        "-I{dir}/include {dir}/lib/libmpi.so {}",
        run_path.join(" ")
    ))
}

fn mpi_program_with(flags: &str) -> PathBuf {
    let flags: Vec<&str> = std::iter::once("-Wl,--no-as-needed")
        .chain(flags.split_whitespace())
        .collect();

    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/mpi.c");
    testkit::compile(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &flags)
}

const FIRST: [&str; 2] = ["mpi", "shmem"];

/// Checks that MPI and OpenSHMEM can be initialized and finalized in any order.
pub fn runs_beside_mpi(launcher: &Launcher, program: &Path) {
    for (first, ends_first) in FIRST
        .iter()
        .flat_map(|first| FIRST.map(|ends| (first, ends)))
    {
        let outcome = launcher.job(program, 3).arg(first).arg(ends_first).run();
        outcome.assert_ok(3);
        assert!(!outcome.stderr.contains("MPI_COMM_WORLD"), "{outcome}");
    }
}

mod hydra {
    use super::*;

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

        let program = scenario!("heap_size.c");
        let job = Job::direct(&program)
            .wrap(HYDRA.iter().copied())
            .wrap(["-n", "3"]);
        drop(hydra());

        let outcome = job
            .arg(1 << 20)
            .arg(8 << 20)
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
        let job = hydra()
            .job(program!("rma.c"), 2)
            .env("SHMEM_DEBUG", "bootstrap=trace");
        let outcome = job.run();

        let has = |words: &str, pe: &str| {
            let holds = |line: &str| line.contains(words) && line.contains(pe);
            assert!(
                outcome.stderr.lines().any(holds),
                "{words} {pe} in\n{outcome}"
            );
        };

        for pe in 0..2 {
            has(
                "the environment shows PMI over descriptor ",
                &format!("for PE {pe} of 2"),
            );

            for words in [
                "the process manager answers",
                "all processes of the job have called shmem_init",
                "the PEs of the node have met",
                "has the records of all PEs",
            ] {
                has(words, &format!("pe={pe}"));
            }
        }

        outcome.assert_ok(2);
    }

    /// The first PE of a node needs two descriptors for each other PE. It raises its soft limit; if
    /// the hard limit is too low, only this PE reports it.
    pub fn with_few_descriptors() {
        let launcher = hydra();
        let limited = |limit: &str| {
            let script = format!("ulimit {limit} 40 && exec \"$0\"");
            let job = launcher.job("/bin/sh", 24).arg("-c").arg(script);
            job.arg(program!("init_finalize.c").display()).run()
        };

        limited("-Sn").assert_ok(24);

        let outcome = limited("-n");
        assert_ne!(outcome.code(), 0, "{outcome}");
        assert!(
            outcome.stderr.contains("PE 0") && outcome.stderr.contains("ulimit -n"),
            "{outcome}"
        );
        assert!(!outcome.stderr.contains("it has ended"), "{outcome}");
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
        let Some((launcher, dir)) = Launcher::from_dir("RUSHMEM_HYDRA_DIR", HYDRA) else {
            absent("RUSHMEM_HYDRA_DIR names no other MPICH");
        };

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
                    let job = launcher.job("/bin/sh", n).arg("-c").arg(&enter);
                    let job = job
                        .arg(program!(source).display())
                        .env("SHMEM_BOOTSTRAP", protocol);
                    job.env("HOSTS", hosts.prefix())
                        .env("PES", n)
                        .run()
                        .assert_ok(n);
                }
            }
        }
    }
}

/// Checks the message of a process that has the variables of a PMIx launcher, if no server answers
/// at `uri`.
fn names_a_lost_server(uri: &str, cause: &str) {
    let job = Job::direct(program!("rma.c")).timeout(Duration::from_secs(180));
    let job = job
        .env("PMIX_NAMESPACE", "a")
        .env("PMIX_RANK", "3")
        .env("PMIX_SERVER_URI41", uri);

    job.run().assert_fails(&[
        "PE 3",
        "PMIX_NAMESPACE=a PMIX_RANK=3",
        "no process manager answers",
        cause,
        "start the program with",
        "unset",
        "SHMEM_BOOTSTRAP",
    ]);
}

fn a_silent_pmix_server_is_named() {
    mpirun();

    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("a.0;tcp4://{}", silent.local_addr().expect("an address"));
    names_a_lost_server(&uri, "no answer");
}

mod mpirun {
    use super::*;

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
}

/// Open MPI 5 cannot be initialized if PMIx has been initialized by another library.
fn another_open_mpi_starts_first_or_says_so() {
    let Ok(dir) = std::env::var("RUSHMEM_PRRTE_DIR") else {
        absent("RUSHMEM_PRRTE_DIR names no other Open MPI");
    };

    let launcher = prteruns().pop().expect("that of the directory is the last");
    let launcher = Launcher {
        before: &[],
        ..launcher
    };
    let program = mpi_program_of(&dir);

    launcher
        .job(&program, 3)
        .arg("mpi")
        .arg("shmem")
        .run()
        .assert_ok(3);
    launcher
        .job(&program, 3)
        .arg("mpi")
        .arg("mpi")
        .run()
        .assert_ok(3);

    let outcome = launcher.job(&program, 3).arg("shmem").run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    let warning = "warning: this program has Open MPI 5, whose MPI_Init fails after shmem_init";
    assert_eq!(outcome.stderr.matches(warning).count(), 1, "{outcome}");
}

fn prterun_over_pmix() {
    for launcher in prteruns() {
        runs_programs(&launcher);
        ends_with_its_pes(&launcher);
        warns_of_pes_without_finalize(&launcher);
    }
}

fn a_launcher_that_cannot_be_joined_is_named() {
    for (environment, words) in [
        (
            &[("PMI_SIZE", "4")][..],
            &["PMI_SIZE=4", "PMI_FD, which", "is not set"][..],
        ),
        (
            &[("PMI_SIZE", "4"), ("PMI_RANK", "1"), ("PMI_FD", "77")],
            &[
                "PE 1",
                "PMI_SIZE=4",
                "PMI_FD=77 is not a connected socket",
                "unset PMI_FD",
            ],
        ),
        (
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")],
            &["SLURM_NTASKS=2", "srun --mpi=pmix"],
        ),
        (
            &[("PMI_PORT", "127.0.0.1:1"), ("PMI_ID", "5")],
            &[
                "PMI_ID=5",
                "PMI_PORT=127.0.0.1:1",
                "no process manager",
                "refused",
                "unset",
            ],
        ),
        (
            &[("SHMEM_BOOTSTRAP", "pmi3")],
            &["SHMEM_BOOTSTRAP is pmi3", "pmix"],
        ),
        (&[("PMIX_RANK", "0")], &["PMIX_RANK=0", "oshrun"]),
    ] {
        let job = Job::direct(program!("rma.c"));
        let job = environment
            .iter()
            .fold(job, |job, (name, value)| job.env(name, value));
        job.run().assert_fails(words);
    }
}

testkit::module_tests! {
    a_launcher_that_cannot_be_joined_is_named,
    ; ignored "part of `cargo xtask test --providers`" =>
    hydra::over_an_inherited_socket,
    hydra::over_a_port,
    hydra::with_a_file_of_settings,
    hydra::how_pes_join_is_reported,
    hydra::a_job_ends_as_a_whole,
    hydra::a_job_ends_with_its_proxy,
    hydra::among_attackers,
    hydra::with_few_descriptors,
    hydra::in_pid_namespaces,
    hydra::beside_mpich,
    hydra::beside_another_mpich,
    hydra::on_two_hosts,
    mpirun::over_pmix,
    mpirun::a_job_ends_as_a_whole,
    mpirun::a_job_ends_with_it,
    mpirun::among_attackers,
    mpirun::a_server_that_is_gone_is_named,
    mpirun::a_static_program_is_refused,
    mpirun::beside_open_mpi,
    prterun_over_pmix,
    another_open_mpi_starts_first_or_says_so,
    ; ignored "a minute; part of `cargo xtask test --full`" =>
    a_silent_pmix_server_is_named,
}
