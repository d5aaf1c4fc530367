//! With `SHMEM_WATCHDOG`, a call that waits for long is explained on standard error.

use std::fs::{File, remove_file};
use std::path::PathBuf;
use std::time::Duration;

use testkit::{Job, scenario};

/// A job in which PE 0 waits in a call until a file exists.
struct Waiting {
    job: Job,
    file: PathBuf,
}

impl Waiting {
    /// Describes a job of `n` PEs. `name` tells jobs with the same call apart.
    fn new(n: usize, how: &str, name: &str) -> Waiting {
        let name = format!("released-{how}-{name}-{}", std::process::id());
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = remove_file(&file);

        let job = Job::new(scenario!("long_waits.c"))
            .n(n)
            .arg(how)
            .arg(file.display())
            // The test reads standard output while the job runs, so standard error goes there, too.
            .wrap(["sh", "-c", "exec \"$@\" 2>&1", "sh"]);
        Waiting { job, file }
    }

    /// Runs the job with the watchdog until its explanation has all `words`, and then lets it go
    /// on. Returns the output.
    #[track_caller]
    fn explanation(mut self, words: &[&str]) -> String {
        self.job = self.job.env("SHMEM_WATCHDOG", "1s");
        self.released_by(|text| {
            let Some((_, explanation)) = text.split_once("SHMEM_WATCHDOG") else {
                return false;
            };
            words.iter().all(|word| explanation.contains(word))
        })
    }

    /// Runs the job until `is_enough` returns true for its output, and then lets it go on. Returns
    /// the output.
    #[track_caller]
    fn released_by(self, is_enough: impl Fn(&str) -> bool) -> String {
        let Waiting { job, file } = self;
        let mut running = job.start();
        running.wait_for(|lines| {
            if is_enough(&lines.join("\n")) {
                Some(())
            } else {
                None
            }
        });

        File::create(&file).expect("a file");
        let outcome = running.finish();
        let _ = remove_file(file);
        assert_eq!(outcome.code(), 0, "{outcome}");
        outcome.stdout
    }
}

/// The line is printed once for a node, although several of its PEs wait.
#[test]
#[ignore = "takes a minute"]
fn a_long_wait_names_the_means_to_explain_it() {
    let mut waiting = Waiting::new(4, "barrier_all", "long");
    waiting.job = waiting.job.timeout(Duration::from_secs(120));

    let line = "has waited 60 s in shmem_barrier_all; press Ctrl-\\ in oshrun";
    let text = waiting.released_by(|text| text.contains(line));
    assert_eq!(text.matches("has waited 60 s").count(), 1, "{text}");
}

/// The calls in which a PE can wait over any transport: the argument of the program, and the
/// routine.
const CALLS: &[(&str, &str)] = &[
    ("barrier_all", "shmem_barrier_all"),
    ("team_sync", "shmem_team_sync"),
    ("active_set", "shmem_barrier"),
    ("reduce", "shmem_int_sum_reduce"),
    ("malloc", "shmem_malloc"),
    ("split", "shmem_team_split_strided"),
    ("wait_until", "shmem_int_wait_until"),
    ("wait_until_all", "shmem_int_wait_until_all"),
    ("signal", "shmem_signal_wait_until"),
    ("set_lock", "shmem_set_lock"),
    ("finalize", "shmem_finalize"),
];

#[test]
fn each_call_that_waits_on_a_node_is_explained() {
    for (how, call) in CALLS {
        Waiting::new(2, how, "on").explanation(&[call, "PE 0", "PE 1"]);
    }
}

#[test]
fn each_call_that_waits_over_tcp_is_explained() {
    // On a node, these do not wait for another PE.
    let over_networks = [("get", "shmem_int_g"), ("quiet", "shmem_quiet")];
    for (how, call) in CALLS.iter().chain(&over_networks) {
        let mut waiting = Waiting::new(2, how, "off");
        waiting.job = waiting
            .job
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", "tcp");
        waiting.explanation(&[call, "PE 0", "PE 1"]);
    }
}

#[test]
fn a_pe_of_another_virtual_node_is_explained() {
    for (how, call) in [("barrier_all", "shmem_barrier_all"), ("get", "shmem_int_g")] {
        let mut waiting = Waiting::new(2, how, "virtual");
        waiting.job = waiting.job.env("SHMEM_VIRTUAL_NODES", "2");
        waiting.explanation(&[call, "PE 0", "PE 1"]);
    }
}

#[test]
fn a_pe_that_computes_is_no_deadlock() {
    let text = Waiting::new(2, "computes", "on").explanation(&["shmem_barrier_all", "PE 1"]);
    assert!(!text.contains("eadlock"), "{text}");
    assert_eq!(text.matches("SHMEM_WATCHDOG").count(), 1, "{text}");
}

#[test]
fn variables_are_named() {
    Waiting::new(2, "wait_until", "named").explanation(&["shmem_int_wait_until", "flags[2]"]);
}

#[test]
fn nothing_is_printed_without_the_setting() {
    let Waiting { job, file } = Waiting::new(2, "barrier_all", "unset");
    File::create(&file).expect("a file");
    let outcome = job.env("SHMEM_WATCHDOG", "off").run();
    let _ = remove_file(&file);

    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
}

#[test]
fn a_value_that_is_no_time_is_refused() {
    let outcome = Job::new(scenario!("long_waits.c"))
        .n(2)
        .args(["finalize", "/dev/null"])
        .env("SHMEM_WATCHDOG", "soon")
        .run();
    outcome.assert_fails(&["SHMEM_WATCHDOG", "soon", "30s"]);
}
