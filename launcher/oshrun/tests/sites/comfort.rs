//! Options for observing a job: output files, timings, debuggers, dry runs.

use std::path::PathBuf;

use crate::support::{TestAgent, TestJob, oshrun, pe};
use testkit::absent;

/// A temporary directory; removed when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        Dir(std::env::temp_dir().join(format!("oshrun-{name}-{}", std::process::id())))
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).expect(file)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn each_pe_prints_into_files_of_its_own() {
    let agent = TestAgent::new("");
    let dir = Dir::new("files");
    let name = dir.0.join("below").display().to_string();
    let options = format!("--output-files {name}");
    let steps = ["0?print:first", "1?complain:oops", "1?giant:100000"];

    let outcome = agent.steps("a:1,b:2", &options, &steps).run().expect(0, "");
    assert_eq!(outcome.stdout, "");

    // `0?` and `1?` select PEs by the number that they have on their host.
    assert_eq!(
        (dir.text("below/0.out"), dir.text("below/1.out")),
        ("first\n".into(), "first\n".into())
    );
    assert_eq!(
        (dir.text("below/2.err"), dir.text("below/2.out").len()),
        ("oops\n".into(), 100_003)
    );

    let outcome = TestJob::new(&["--output-files", "/proc/no", &pe()])
        .run()
        .expect_nothing_left();
    assert!(
        outcome
            .stderr
            .starts_with("oshrun: cannot create the directory /proc/no for output: "),
        "{outcome:?}"
    );
}

fn files_that_cannot_be_made_are_named_before_a_pe_starts() {
    let agent = TestAgent::new("");
    let dir = Dir::new("no-files");
    std::fs::create_dir_all(&dir.0).expect("a directory");
    std::os::unix::fs::symlink("/nowhere/1.out", dir.0.join("1.out")).expect("a link");

    let name = dir.0.display();
    let options = format!("--output-files {name}");
    for (hosts, whose) in [("localhost:2", ""), ("localhost,b", "host b: ")] {
        let message = format!(
            "oshrun: {whose}cannot create the file {name}/1.out for output: No such file or directory; give \
             --output-files a directory in which you may create files\n"
        );
        agent
            .steps(hosts, &options, &["1?complain:started"])
            .run()
            .expect(1, &message);
    }
    assert_eq!(dir.text("0.err"), "");
}

fn phases_are_timed_on_request() {
    for hosts in ["localhost:3", "a:1,b:2"] {
        let agent = TestAgent::new("");
        let outcome = agent
            .steps(hosts, "--timings", &["init", "barrier", "finalize"])
            .run();

        let phase = |line: &str| {
            let (seconds, phase) = line.strip_prefix("oshrun: ")?.split_once(" s  ")?;
            let seconds: f64 = seconds.trim().parse().ok()?;
            Some((seconds, phase.to_string()))
        };

        let phases: Vec<_> = outcome
            .stderr
            .lines()
            .map(|line| phase(line).expect(line))
            .collect();

        assert!(phases.is_sorted_by(|a, b| a.0 <= b.0), "{outcome:?}");
        let names: Vec<&str> = phases.iter().map(|(_, phase)| phase.as_str()).collect();

        let hosts = hosts
            .split(',')
            .map(|host| host.split(':').next().expect("a name"));
        let hosts: Vec<&str> = hosts.collect();

        for phase in [
            "last PE started",
            "last shmem_init entered",
            "last PE ended",
        ] {
            let name = names
                .iter()
                .find(|name| name.starts_with(phase))
                .expect(phase);
            assert!(
                hosts
                    .iter()
                    .any(|host| name.ends_with(&format!(", on host {host}"))),
                "{name}"
            );
        }

        assert!(names.contains(&"exchange 2 complete"), "{names:?}");
        assert_eq!(names.last(), Some(&"nothing left"));

        outcome.expect_nothing_left();
    }
}

/// The agent of host b waits for the line, so that the job ends well only if the line appears.
fn a_terminal_shows_which_host_is_behind() {
    if std::process::Command::new("script")
        .arg("--version")
        .output()
        .is_err()
    {
        absent("script is not here");
    }

    let dir = Dir::new("terminal");
    std::fs::create_dir(&dir.0).expect("a directory");
    let log = dir.0.join("log").display().to_string();
    let line = "oshrun: 1 of 3 PEs have started; host b has not answered yet";
    let waits = format!("test $1 = a || until grep -q '{line}' {log}; do sleep 0.1; done");
    let agent = TestAgent::new(&waits);

    let words = [
        oshrun(),
        "--launch-agent",
        agent.path(),
        "-H",
        "a:1,b:2",
        &pe(),
    ];
    let command = format!("{} init finalize", words.join(" "));

    // A dumb terminal would get no such line.
    let job = TestJob::by("script", &["-qefc", &command, &log]).env("TERM", "xterm");
    let outcome = job.run();

    assert_eq!(outcome.status, 0, "{outcome:?}");
    let shown = dir.text("log");
    assert!(shown.contains(line), "{shown}");
    assert!(shown.contains("\r\x1b[K"), "{shown}");

    outcome.expect_nothing_left();
}

fn a_debugger_without_anybody_at_it_prints_where_a_signal_came() {
    let is_here = std::process::Command::new("gdb")
        .arg("--version")
        .output()
        .is_ok();
    if !is_here {
        absent("gdb is not here");
    }

    let run = |options: &[&str], script: &str| {
        let words = [options, &["sh", "-c", script]].concat();
        TestJob::new(&words)
            .env("DISPLAY", "")
            .run()
            .expect_nothing_left()
    };

    let script = "test $SHMEM_LOCAL_ID = 0 || kill -SEGV $$";
    let outcome = run(&["--tag-output", "-n", "2", "--gdb=1"], script);
    assert!(
        outcome
            .stdout
            .contains("[1] Program received signal SIGSEGV"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("[1] #0 "), "{outcome:?}");
    assert_eq!(outcome.status, 1);

    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(
        !all.contains("Quit anyway") && !all.contains("Python"),
        "{outcome:?}"
    );

    // If oshrun ends the PE, gdb prints no traceback of its Python commands.
    let outcome = run(&["--gdb", "--timeout", "5"], "exec sleep 600");
    assert_eq!(
        (outcome.status, outcome.stderr.contains("Traceback")),
        (124, false),
        "{outcome:?}"
    );

    let outcome = run(&["-n", "2", "--gdb"], "echo there");
    assert_eq!(
        outcome
            .stdout
            .lines()
            .filter(|line| *line == "there")
            .count(),
        2,
        "{outcome:?}"
    );
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(run(&["--gdb=0"], "exit 7").status, 7);

    // A PE under gdb inherits its connection to oshrun.
    let steps = [pe().as_str(), "init", "exchange:1", "finalize"].join(" ");
    assert_eq!(run(&["--gdb"], &format!("exec {steps}")).status, 0);
}

fn a_dry_run_shows_what_it_does_not_start() {
    let dir = Dir::new("dry");
    let called = dir.0.join("called");
    let agent = TestAgent::new(&format!(
        "mkdir -p {}; : > {}",
        dir.0.display(),
        called.display()
    ));

    let dir_option = format!("--output-files {}/below", dir.0.display());
    let secret = "-x SHMEM_JOB_SECRET=hush";
    let options = format!("--dry-run --report-bindings -x A=b {secret} {dir_option}");

    let job = agent.job("localhost:2,b:3,c:1", &options, &["sh", "-c", "exit 3"]);
    let outcome = job.run().expect(0, "");

    let lines: Vec<&str> = outcome.stdout.lines().collect();
    for expected in [
        "sh -c 'exit 3'",
        "variable: A=b",
        "variable: SHMEM_JOB_SECRET='a secret'",
        "host localhost: PE 0 to 1 (2 PEs), started by this oshrun",
        "  PE 0: not bound",
        "  PE 1: not bound",
    ] {
        let holds = |line: &&&str| line.contains(expected);
        assert_eq!(
            lines.iter().filter(holds).count(),
            1,
            "{expected} in {outcome:?}"
        );
    }

    let call = |host: &str| format!(" by {} {host} 'exec {} --daemon'", agent.path(), oshrun());
    let hosts = [
        format!("host b: PE 2 to 4 (3 PEs), started{}", call("b")),
        format!("host c: PE 5, started{}", call("c")),
    ];
    assert_eq!(lines[lines.len() - 2..], hosts);

    assert!(!dir.0.exists(), "something was started or made");
    assert!(!outcome.stdout.contains("hush"), "{outcome:?}");

    // Errors on this host are detected as for a real start.
    let missing = TestJob::new(&["--dry-run", "no-such-program"]).run();
    missing.expect(
        127,
        "oshrun: the program no-such-program was not found in PATH\n",
    );
}

testkit::module_tests! {
    a_dry_run_shows_what_it_does_not_start,
    each_pe_prints_into_files_of_its_own,
    files_that_cannot_be_made_are_named_before_a_pe_starts,
    phases_are_timed_on_request,
    a_terminal_shows_which_host_is_behind,
    a_debugger_without_anybody_at_it_prints_where_a_signal_came,
}
