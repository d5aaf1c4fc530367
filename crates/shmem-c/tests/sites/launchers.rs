//! Programs under other launchers: Hydra, Open MPI's mpirun, PRRTE. `slurm` has the tests of Slurm.
//!
//! If a launcher is missing, its tests are ignored; `cargo xtask test` installs those of the
//! system's packages. `RUSHMEM_HYDRA_DIR` and `RUSHMEM_PRRTE_DIR` name directories with further
//! launchers, such as newer versions.

mod hydra;
mod mpirun;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::attackers::Attackers;
use crate::mpi::{
    prints_what_openshmem_prints, runs_its_page, sees_a_loaded_mpi, warns_under_oshrun,
};
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
        let mut dirs = std::env::split_paths(&path);
        if dirs.any(|dir| dir.join(words[0]).exists()) {
            Some(Launcher::of(words))
        } else {
            None
        }
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

    /// Returns the launcher in a directory, which a variable names.
    fn in_dir(dir: &str, words: &[&str]) -> Launcher {
        let program = format!("{dir}/bin/{}", words[0]);
        assert!(
            Path::new(&program).exists(),
            "a variable names a directory without {program}"
        );

        Launcher::of(&[&[program.as_str()], &words[1..]].concat())
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Launcher {
        self.environment.push((name, value.into()));
        self
    }

    /// Returns a job of `n` processes of a program.
    pub fn job(&self, program: impl AsRef<Path>, n: usize) -> Job {
        let words = self.words.iter().map(String::as_str);
        let n = n.to_string();

        let mut job = Job::direct(program)
            .wrap(words)
            .wrap(["-n", &n])
            .wrap(self.before.iter().copied())
            .env("SHMEM_SYMMETRIC_SIZE", "64m");
        for (name, value) in &self.environment {
            job = job.env(name, value);
        }
        job
    }

    fn death(&self, how: &str) -> Outcome {
        let outcome = self.job(scenario!("death.c"), 3).arg(how).run();
        let has_ended = outcome.stdout.contains("a barrier ended");
        assert!(!has_ended, "a barrier without PE 1\n{outcome}");
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

/// Returns all launchers. Ignores the test if there is none.
fn require_any(launchers: Vec<Launcher>) -> Vec<Launcher> {
    if launchers.is_empty() {
        absent("neither the system nor a directory has this launcher");
    }
    launchers
}

/// Returns the launcher of the system and then that of `RUSHMEM_PRRTE_DIR`, as far as they exist.
fn prteruns() -> Vec<Launcher> {
    let mut launchers = Vec::from_iter(Launcher::find(PRTERUN));
    if let Ok(dir) = std::env::var("RUSHMEM_PRRTE_DIR") {
        let mut launcher = Launcher::in_dir(&dir, PRTERUN)
            .env("OPAL_PREFIX", &dir)
            .env("PRTE_PREFIX", &dir)
            .env("PMIX_PREFIX", &dir)
            .env("LD_LIBRARY_PATH", format!("{dir}/lib/openmpi:{dir}/lib"));
        // The program must not use the launcher's own libraries.
        launcher.before = &["env", "-u", "LD_LIBRARY_PATH"];
        launchers.push(launcher);
    }

    require_any(launchers)
}

/// Runs the programs that any launcher must start: init and finalize in every order, RMA,
/// collectives, the old start-up, releases, waits with a limit.
pub fn runs_programs(launcher: &Launcher) {
    for (source, n) in [
        ("init_finalize.c", 1),
        ("init_finalize.c", 4),
        ("rma.c", 2),
        ("rma.c", 3),
        ("collectives_team.c", 4),
        ("start_pes.c", 3),
        ("release.c", 3),
        ("waits_timed.c", 3),
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

    let is_shared = "static_data=\"like the heap\"";
    let n_shared = outcome.stderr.matches(is_shared).count();
    assert_eq!(n_shared, 3, "{outcome}");
}

/// Checks that the job fails if one PE ends without shmem_finalize, calls another routine than the
/// others or misuses one, and that messages say which PE does so.
pub fn ends_with_its_pes(launcher: &Launcher) {
    for how in ["kill", "segv", "exit3", "_exit3"] {
        assert_ne!(launcher.death(how).code(), 0, "{how}");
    }

    for status in [0, 3] {
        let outcome = launcher.death(&format!("exit{status}"));
        let words = format!("PE 1: exited with status {status} without shmem_finalize");
        assert!(outcome.stderr.contains(&words), "{outcome}");
        assert_ne!(outcome.code(), 0, "{outcome}");
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
    let names_pe = outcome.stderr.contains("PE ");
    assert!(names_pe, "no word of the PE\n{outcome}");
}

/// Checks that a job whose PEs all exit with status 0 and without finalize succeeds with a warning.
pub fn warns_of_pes_without_finalize(launcher: &Launcher) {
    for how in ["all_exit0", "late_exit0"] {
        let outcome = launcher.death(how);
        assert_eq!(outcome.code(), 0, "{how}\n{outcome}");

        let warning = "warning: no PE called shmem_finalize";
        let n_warnings = outcome.stderr.matches(warning).count();
        assert_eq!(n_warnings, 1, "{how}\n{outcome}");
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
        let mut running = launcher
            .job("/bin/sh", N)
            .arg("-c")
            .arg(format!("echo shell $$; {script}"))
            .arg(&program)
            .start();

        let pes = running.wait_for(|lines| {
            let pes = numbers_after(" pid ", lines);
            if pes.len() == N { Some(pes) } else { None }
        });
        let shells = running.wait_for(|lines| Some(numbers_after("shell ", lines)));

        let manager = ProcessStatus::of(shells[0]).expect("it runs").parent;
        testkit::kill(manager);

        let start = Instant::now();
        let limit = testkit::patient(Duration::from_secs(15));
        while pes.iter().any(|&pe| is_running(pe)) {
            let is_late = start.elapsed() >= limit;
            assert!(!is_late, "PEs outlive their process manager");
            sleep(Duration::from_millis(10));
        }
    }
}

/// Returns true unless the process has ended. One that has ended may wait for its parent.
fn is_running(pid: i32) -> bool {
    ProcessStatus::of(pid).is_some_and(|status| status.state != 'Z')
}

/// Returns the numbers at the ends of lines, after this word.
fn numbers_after(word: &str, lines: &[&str]) -> Vec<i32> {
    let mut numbers = Vec::new();
    for line in lines {
        if let Some((_, number)) = line.rsplit_once(word)
            && let Ok(number) = number.parse()
        {
            numbers.push(number);
        }
    }
    numbers
}

/// A process as the kernel shows it.
struct ProcessStatus {
    /// The letter of its state: `Z` for one that has ended.
    state: char,
    parent: i32,
}

impl ProcessStatus {
    fn of(pid: i32) -> Option<ProcessStatus> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program, which comes first, may contain spaces.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        Some(ProcessStatus {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

/// Checks that `shmem_global_exit(7)` ends the job with `status`, which depends on the launcher,
/// and that no output is lost.
pub fn exits_as_a_whole(launcher: &Launcher, status: i32) {
    let outcome = launcher.death("global_exit7");
    assert_eq!(outcome.code(), status, "{outcome}");
    let is_kept = outcome.stdout.contains("last words");
    assert!(is_kept, "what was printed is lost\n{outcome}");
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

    let mut running = launcher
        .job("/bin/sh", N)
        .arg("-c")
        .arg(SCRIPT)
        .arg(program!("rma.c").display())
        .env("GO", go.display())
        .start();

    let pids = running.wait_for(|lines| {
        let pids = numbers_after("pid ", lines);
        if pids.len() == N { Some(pids) } else { None }
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
    let mut flags = format!("-I{dir}/include {dir}/lib/libmpi.so");
    for lib in ["lib", "lib/openmpi", "lib/mpich"] {
        flags += &format!(" -Wl,-rpath,{dir}/{lib}");
    }
    mpi_program_with(&flags)
}

fn mpi_program_with(flags: &str) -> PathBuf {
    let mut all = vec!["-Wl,--no-as-needed"];
    all.extend(flags.split_whitespace());

    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/mpi.c");
    testkit::compile(&source, Path::new(env!("CARGO_TARGET_TMPDIR")), &all)
}

/// Checks that MPI and OpenSHMEM can be initialized and finalized in any order.
pub fn runs_beside_mpi(launcher: &Launcher, program: &Path) {
    for begins in ["mpi", "shmem"] {
        for ends in ["mpi", "shmem"] {
            let outcome = launcher.job(program, 3).args([begins, ends]).run();
            outcome.assert_ok(3);
            assert!(!outcome.stderr.contains("MPI_COMM_WORLD"), "{outcome}");
        }
    }
}

/// Checks the message of a process that has the variables of a PMIx launcher, if no server answers
/// at `uri`.
fn names_a_lost_server(uri: &str, cause: &str) {
    let outcome = Job::direct(program!("rma.c"))
        .timeout(Duration::from_secs(180))
        .env("PMIX_NAMESPACE", "a")
        .env("PMIX_RANK", "3")
        .env("PMIX_SERVER_URI41", uri)
        .run();
    outcome.assert_fails(&[
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
    // Without libpmix, which comes with it, there is nothing to test.
    mpirun::mpirun();

    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("a.0;tcp4://{}", silent.local_addr().expect("an address"));
    names_a_lost_server(&uri, "no answer");
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

    for ends_first in ["shmem", "mpi"] {
        let outcome = launcher.job(&program, 3).args(["mpi", ends_first]).run();
        outcome.assert_ok(3);
    }

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
        let outcome = Job::direct(program!("rma.c")).envs(environment).run();
        outcome.assert_fails(words);
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
