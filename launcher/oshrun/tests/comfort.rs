//! What oshrun offers to whoever watches a job: files of output, a table of phases, debuggers.

mod support;

use std::path::PathBuf;

use support::{Agent, Job, pe};
use testkit::absent;

/// A folder of this test's own, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("oshrun-{name}-{}", std::process::id())))
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).expect(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn each_pe_prints_into_files_of_its_own() {
    let (agent, folder) = (Agent::new(""), Folder::new("files"));
    let name = folder.0.join("below").display().to_string();
    let options = format!("--output-files {name}");
    let steps = ["0?print:first", "1?complain:oops", "1?giant:100000"];
    let outcome = agent.steps("a:1,b:2", &options, &steps).run().expect(0, "");
    assert_eq!(outcome.stdout, "");
    // The steps name PEs by their number on their host.
    assert_eq!(
        (folder.text("below/0.out"), folder.text("below/1.out")),
        ("first\n".into(), "first\n".into())
    );
    assert_eq!(
        (folder.text("below/2.err"), folder.text("below/2.out").len()),
        ("oops\n".into(), 100_003)
    );
    let outcome = Job::new(&["--output-files", "/proc/no", &pe()]).run().expect_nothing_left();
    assert!(
        outcome.stderr.starts_with("oshrun: cannot create the folder /proc/no for output: "),
        "{outcome:?}"
    );
}

fn files_that_cannot_be_made_are_named_before_a_pe_starts() {
    let (agent, folder) = (Agent::new(""), Folder::new("no-files"));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::os::unix::fs::symlink("/nowhere/1.out", folder.0.join("1.out")).expect("a link");
    let name = folder.0.display();
    let options = format!("--output-files {name}");
    for (hosts, whose) in [("localhost:2", ""), ("localhost,b", "host b: ")] {
        let message = format!(
            "oshrun: {whose}cannot create the file {name}/1.out for output: No such file or directory; give \
             --output-files a folder in which you may create files\n"
        );
        agent.steps(hosts, &options, &["1?complain:started"]).run().expect(1, &message);
    }
    assert_eq!(folder.text("0.err"), "");
}

fn phases_are_timed_on_request() {
    for hosts in ["localhost:3", "a:1,b:2"] {
        let agent = Agent::new("");
        let outcome = agent.steps(hosts, "--timings", &["init", "barrier", "finalize"]).run();
        let phase = |line: &str| {
            let (seconds, phase) = line.strip_prefix("oshrun: ")?.split_once(" s  ")?;
            let seconds: f64 = seconds.trim().parse().ok()?;
            Some((seconds, phase.to_string()))
        };
        let phases: Vec<_> = outcome.stderr.lines().map(|line| phase(line).expect(line)).collect();
        assert!(phases.is_sorted_by(|a, b| a.0 <= b.0), "{outcome:?}");
        let names: Vec<&str> = phases.iter().map(|(_, phase)| phase.as_str()).collect();
        for name in
            ["last PE started", "last shmem_init entered", "exchange 2 complete", "last PE ended"]
        {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert_eq!(names.last(), Some(&"nothing left"));
        outcome.expect_nothing_left();
    }
}

fn a_debugger_without_anybody_at_it_prints_where_a_signal_came() {
    let is_here = std::process::Command::new("gdb").arg("--version").output().is_ok();
    if !is_here {
        absent("gdb is not here");
    }
    let run = |options: &[&str], script: &str| {
        let words = [options, &["sh", "-c", script]].concat();
        Job::new(&words).env("DISPLAY", "").run().expect_nothing_left()
    };
    let script = "test $SHMEM_LOCAL_ID = 0 || kill -SEGV $$";
    let outcome = run(&["--tag-output", "-n", "2", "--gdb=1"], script);
    assert!(outcome.stdout.contains("[1] Program received signal SIGSEGV"), "{outcome:?}");
    assert!(outcome.stdout.contains("[1] #0 "), "{outcome:?}");
    assert_eq!(outcome.status, 1);
    let outcome = run(&["-n", "2", "--gdb"], "echo there");
    assert_eq!(outcome.stdout.lines().filter(|line| *line == "there").count(), 2, "{outcome:?}");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(run(&["--gdb=0"], "exit 7").status, 7);
    // It has its connection to oshrun there, too.
    let steps = [pe().as_str(), "init", "exchange:1", "finalize"].join(" ");
    assert_eq!(run(&["--gdb"], &format!("exec {steps}")).status, 0);
}

testkit::tests! {
    each_pe_prints_into_files_of_its_own,
    files_that_cannot_be_made_are_named_before_a_pe_starts,
    phases_are_timed_on_request,
    a_debugger_without_anybody_at_it_prints_where_a_signal_came,
}
