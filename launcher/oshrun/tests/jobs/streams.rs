//! Output stays whole and complete, and stdin reaches PE 0.

use std::io::{BufRead, Read};
use std::process::Stdio;

use crate::support::{TestAgent, TestJob, oshrun, pe};
use testkit::eventually;

/// Asserts that the lines of the step `lines:COUNT` are all there, whole, and in order for each PE.
fn assert_whole<'a>(lines: impl Iterator<Item = &'a str>, n_pes: usize, count: usize) {
    let mut next = vec![0; n_pes];
    for line in lines {
        let fields: Vec<&str> = line
            .strip_prefix('<')
            .and_then(|line| line.strip_suffix('>'))
            .expect(line)
            .split(':')
            .collect();

        let [pe, number, body] = fields[..] else {
            panic!("{line}")
        };
        let pe: usize = pe.parse().expect("a PE");
        let number: usize = number.parse().expect("a line");
        assert_eq!(number, next[pe], "{line}");
        assert_eq!(
            body,
            format!("{number:05}-").repeat(1 + (number * 7) % 40),
            "{line}"
        );

        next[pe] += 1;
    }

    assert_eq!(next, vec![count; n_pes]);
}

#[test]
fn lines_of_many_pes_stay_whole() {
    let outcome = TestJob::steps(8, &["init", "barrier", "lines:5000", "finalize"])
        .run()
        .expect(0, "");
    assert_whole(outcome.stdout.lines(), 8, 5000);
}

#[test]
fn lines_stay_whole_where_both_streams_are_one() {
    let run = format!(
        "exec {} -n 4 sh -c '{} lines:2000; {} lines:2000 >&2' 2>&1",
        oshrun(),
        pe(),
        pe()
    );
    let outcome = TestJob::by("sh", &["-c", &run]).run().expect(0, "");

    // Each PE writes the same lines twice, once to each stream; both go to one pipe.
    let mut lines = outcome.sorted();
    assert_eq!(lines.len(), 4 * 2 * 2000);
    lines.dedup();

    lines.sort_by_key(|line| {
        line.split(':')
            .nth(1)
            .and_then(|number| number.parse::<u32>().ok())
    });

    assert_whole(lines.into_iter(), 4, 2000);
}

#[test]
fn tags_name_the_pe_of_each_line() {
    let outcome = TestJob::new(&["-n", "3", "--tag-output", &pe(), "lines:300"])
        .run()
        .expect(0, "");

    let lines = outcome.stdout.lines().map(|line| {
        let (tag, line) = line.split_once(' ').expect("a tag");
        assert_eq!(tag, format!("[{}]", &line[1..2]));
        line
    });

    assert_whole(lines, 3, 300);

    let outcome = TestJob::new(&["-n", "2", "--tag-output", &pe(), "complain:oops"]).run();
    let mut lines: Vec<&str> = outcome.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] oops", "[1] oops"]);
}

#[test]
fn giant_lines_stay_whole_while_they_keep_coming() {
    let outcome = TestJob::steps(3, &["init", "barrier", "giant:500000", "finalize"])
        .run()
        .expect(0, "");
    let expected: Vec<String> = (0..3)
        .map(|pe| format!("<{}>", pe.to_string().repeat(500_000)))
        .collect();
    assert_eq!(outcome.sorted(), expected);
}

#[test]
fn a_giant_line_without_end_does_not_stop_the_others() {
    // PE 0 never ends its line and waits for PE 1, which prints more than its pipe holds.
    let giant = format!("0?text:{}", "0".repeat(100_000));
    let outcome = TestJob::steps(
        2,
        &[
            "init",
            &giant,
            "1?sleep:200",
            "1?lines:2000",
            "barrier",
            "finalize",
        ],
    )
    .run()
    .expect(0, "");

    let lines: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| line.starts_with('<'))
        .collect();
    assert_eq!(lines.len(), 2000);
    assert_eq!(
        outcome.stdout.matches('0').count() - lines.concat().matches('0').count(),
        100_000
    );
}

#[test]
fn a_last_line_without_newline_is_not_lost() {
    assert_eq!(
        TestJob::steps(1, &["text:no newline"])
            .run()
            .expect(0, "")
            .stdout,
        "no newline"
    );

    let outcome = TestJob::steps(3, &["text:no newline"]).run().expect(0, "");
    assert_eq!(outcome.stdout, "no newline\nno newline\nno newline");
}

#[test]
fn what_was_written_before_a_crash_is_there() {
    let outcome = TestJob::steps(
        4,
        &["init", "lines:500", "barrier", "2?kill:11", "sleep:600000"],
    )
    .run();

    assert_eq!(outcome.status, 139);
    assert_whole(outcome.stdout.lines(), 4, 500);
}

#[test]
fn a_stray_process_that_keeps_a_pipe_open_delays_nothing() {
    // setsid leaves the process group.
    let run = "background:exec setsid sleep 600";
    let outcome = TestJob::steps(2, &["print:before", run, "print:after"]).run();
    assert_eq!(outcome.sorted(), ["after", "after", "before", "before"]);
}

#[test]
fn stdin_goes_to_pe_0() {
    let outcome = TestJob::new(&["-n", "3", "--tag-output", &pe(), "cat"])
        .input("one\ntwo\n")
        .run()
        .expect(0, "");
    assert_eq!(outcome.stdout, "[0] one\n[0] two\n");

    let outcome = TestJob::steps(2, &["cat"]).run().expect(0, "");
    assert_eq!(outcome.stdout, "");
}

#[test]
fn output_comes_while_the_job_runs() {
    let mut job = TestJob::steps(2, &["1?print:early", "cat"])
        .input("")
        .start();
    let mut line = String::new();
    job.stdout().read_line(&mut line).expect("stdout");

    assert_eq!(line, "early\n");
    job.wait().expect(0, "");
}

#[test]
fn a_reader_that_leaves_ends_the_writers() {
    let mut job = TestJob::new(&["-n", "2", "yes"]).start();
    let mut reader = job.stdout();
    reader.read_exact(&mut [0; 1000]).expect("stdout");

    drop(reader);
    let outcome = job.wait().expect_nothing_left();
    assert_eq!(outcome.status, 141);
    assert!(
        outcome.stderr.ends_with("was killed by SIGPIPE\n"),
        "{outcome:?}"
    );
}

/// Returns a device that is always full.
fn full() -> Stdio {
    std::fs::File::create("/dev/full")
        .expect("Linux has it")
        .into()
}

const LOST: &str = "oshrun: cannot write to standard output: No space left on device\n";

#[test]
fn output_that_cannot_be_written_fails_the_job() {
    let agent = TestAgent::new("");
    let jobs = || {
        [
            TestJob::steps(2, &["init", "print:result", "finalize"]),
            agent.steps("localhost,b", "", &["init", "print:result", "finalize"]),
            // Only the loss of its output ends this one.
            TestJob::new(&["-n", "2", "yes"]),
        ]
    };

    for job in jobs() {
        job.start_with(Stdio::null(), full(), Stdio::piped())
            .wait()
            .expect(1, LOST);
    }

    // There is no place for the message.
    for job in jobs() {
        job.start_with(Stdio::null(), full(), full())
            .wait()
            .expect(1, "");
    }

    let job = TestJob::steps(2, &["print:result", "complain:oops"]);
    let outcome = job
        .start_with(Stdio::null(), Stdio::piped(), full())
        .wait()
        .expect(1, "");
    assert!(!outcome.stdout.contains("oops"), "{outcome:?}");

    TestJob::new(&["--no-such-option"])
        .start_with(Stdio::null(), Stdio::piped(), full())
        .wait()
        .expect(2, "");
}

#[test]
fn files_of_output_that_cannot_be_written_fail_the_job() {
    let agent = TestAgent::new("");
    let dir = std::env::temp_dir().join(format!("oshrun-full-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");

    let link = |name| std::os::unix::fs::symlink("/dev/full", dir.join(name)).expect("a link");
    link("1.out");
    let option = format!("--output-files {}", dir.display());

    for (hosts, whose) in [("localhost:2", ""), ("localhost,b", "host b: ")] {
        let steps = ["init", "text:result", "finalize"];
        agent.steps(hosts, &option, &steps).run().expect(
            1,
            &format!(
                "oshrun: {whose}cannot write to the file {}/1.out: No space left on device\n",
                dir.display()
            ),
        );

        let kept = std::fs::read_to_string(dir.join("0.out")).expect("a file");
        assert_eq!(kept, "result");
    }

    // The loss occurs when the job ends: the background process keeps the unfinished line pending.
    let script = "printf result; sleep 600 & test $SHMEM_LOCAL_ID = 0 || exit 3";
    link("2.out");
    for _ in 0..20 {
        let outcome = agent
            .job("localhost,b,c", &option, &["sh", "-c", script])
            .run();

        let first = outcome.stderr.lines().next().unwrap_or_default();
        assert!(first.ends_with(": No space left on device"), "{outcome:?}");
        assert_eq!(outcome.status, 1);
        outcome.expect_nothing_left();
    }

    for hosts in ["localhost:2", "localhost,b:2"] {
        let outcome = agent
            .job(hosts, &option, &["sh", "-c", script])
            .run()
            .expect_nothing_left();
        assert!(
            outcome.stderr.ends_with(": No space left on device\n"),
            "{outcome:?}"
        );
        assert_eq!(
            outcome.status, 3,
            "that of the PE that has failed: {outcome:?}"
        );
    }

    let script = format!(
        "ulimit -f 1; exec {} -n 1 {option} {} lines:200",
        oshrun(),
        pe()
    );
    let message = format!("the file {}/0.out: File too large\n", dir.display());

    let outcome = TestJob::by("sh", &["-c", &script])
        .run()
        .expect_nothing_left();
    assert!(
        outcome.stderr.ends_with(&message) && outcome.status == 1,
        "{outcome:?}"
    );

    std::fs::remove_dir_all(dir).expect("own directory");
}

#[test]
fn bytes_of_one_pe_pass_unchanged() {
    let dir = std::env::temp_dir().join(format!("oshrun-bytes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let mut state = 1_u32;
    let mut byte = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };

    // The last line is longer than oshrun holds back, and has no newline.
    let mut bytes: Vec<u8> = (0..500_000).map(&mut byte).collect();
    bytes.extend([b'x'; 200_000]);

    let file = |name: &str| dir.join(name);
    std::fs::write(file("sent"), &bytes).expect("a file");
    let send = format!("cat {}", file("sent").display());

    let from_one = format!("test $SHMEM_LOCAL_ID != 1 || {send}");
    let received = std::fs::File::create(file("received")).expect("a file");
    let job = TestJob::new(&["-n", "3", "sh", "-c", &from_one]);
    job.start_with(Stdio::null(), received.into(), Stdio::piped())
        .wait()
        .expect(0, "");
    assert!(
        std::fs::read(file("received")).expect("a file") == bytes,
        "damaged"
    );

    let to_files = file("files").display().to_string();
    TestJob::new(&["-n", "2", "--output-files", &to_files, "sh", "-c", &send])
        .run()
        .expect(0, "");
    for pe in 0..2 {
        let received = std::fs::read(file(&format!("files/{pe}.out"))).expect("a file");
        assert!(received == bytes, "those of PE {pe} are damaged");
    }
    std::fs::remove_dir_all(dir).expect("own directory");
}

/// Returns how many bytes a process has written; 0 if it has ended.
fn written(pid: u32) -> u64 {
    let counters = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let nbytes = counters
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "));
    nbytes.map_or(0, |nbytes| nbytes.parse().expect("a number"))
}

#[test]
fn a_reader_that_stops_does_not_keep_a_failed_job_alive() {
    let mut job = TestJob::steps(
        2,
        &[
            "init",
            "print:there",
            "1?lines:20000",
            "1?sleep:600000",
            "0?cat",
            "0?exit:3",
        ],
    )
    .input_later()
    .start();

    let mut reader = job.stdout();
    let mut line = String::new();
    reader.read_line(&mut line).expect("stdout");

    // Without a reader, oshrun cannot pass on its output, but only oshrun itself is left.
    let oshrun = job.pid().as_raw_nonzero().get() as u32;
    eventually(
        "PE 1 has written more than the pipe of the reader holds",
        || {
            job.processes()
                .iter()
                .any(|pid| *pid != oshrun && written(*pid) > 96 * 1024)
        },
    );

    job.end_input();
    eventually("only oshrun is left", || job.processes() == [oshrun]);

    let rest = reader.lines().count();
    assert!(rest > 1, "{rest} lines");

    job.wait().expect(
        3,
        "oshrun: PE 0 (pid PID, host HOST) exited with status 3 before shmem_finalize\n",
    );
}

#[test]
fn a_time_limit_counts_for_a_reader_that_stops_too() {
    let mut job = TestJob::new(&["-n", "2", "--timeout", "0.5", &pe(), "lines:20000"]).start();
    let reader = job.stdout();
    // The stdout of oshrun is a full pipe, whose reader waits here for oshrun to end.
    assert_eq!(job.wait().expect_nothing_left().status, 124);
    drop(reader);
}
