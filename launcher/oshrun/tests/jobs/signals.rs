//! Signals to oshrun reach the job, a terminal controls it, and waiting costs nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{
    Running, TestAgent, TestJob, eventually_nothing_left, oshrun, pe, pids, state,
};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use testkit::eventually;

/// Starts a job whose PEs have run `shell`, printed their process IDs, and sleep.
fn sleeping(n_pes: u32, shell: &str) -> (Running, Vec<u32>) {
    let mut job =
        TestJob::steps_after(n_pes, shell, &["init", "pid", "barrier", "sleep:600000"]).start();
    let pids = pids(&mut job.stdout(), n_pes as usize);
    (job, pids)
}

#[test]
fn a_signal_that_ends_the_job_blames_no_pe() {
    for (signal, name, status) in [
        (Signal::INT, "SIGINT", 130),
        (Signal::TERM, "SIGTERM", 143),
        (Signal::HUP, "SIGHUP", 129),
    ] {
        let (job, _) = sleeping(3, ":");
        job.signal(signal);
        job.wait()
            .expect(status, &format!("oshrun: the job was ended by {name}\n"));
    }
}

#[test]
fn other_signals_are_passed_on() {
    for (signal, name) in [
        (Signal::USR2, "SIGUSR2"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::POWER, "SIGPWR"),
        (Signal::IO, "SIGIO"),
        (Signal::STKFLT, "SIGSTKFLT"),
    ] {
        let number = signal.as_raw();
        let ignoring = format!("ulimit -c 0; [ $SHMEM_LOCAL_ID = 1 ] || trap '' {number}");
        let (job, _) = sleeping(2, &ignoring);

        job.signal(signal);
        let message = format!("oshrun: PE 1 (pid PID, host HOST) was killed by {name}\n");
        job.wait().expect(128 + number, &message);
    }
}

#[test]
fn output_beyond_the_limit_of_a_file_ends_the_job_with_a_message() {
    let file = std::env::temp_dir().join(format!("oshrun-limited-{}", std::process::id()));
    let script = format!(
        "ulimit -f 1; exec {} -n 1 sh -c 'yes | head -n 100000' > {}",
        oshrun(),
        file.display()
    );

    let outcome = TestJob::by("sh", &["-c", &script]).run();
    std::fs::remove_file(file).expect("own file");

    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("File too large"), "{outcome:?}");
}

#[test]
fn a_second_interrupt_kills() {
    // The shell reports the end of what SIGTERM ends besides it.
    let script = "exec 2>/dev/null; trap 'echo caught' INT TERM; echo ready; while :; do sleep 600 & wait $!; done";
    for (signal, name, status) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let mut job = TestJob::new(&["-n", "2", "sh", "-c", script]).start();
        let mut stdout = job.stdout();

        let mut expect_of_both = |expected: &str| {
            for _ in 0..2 {
                let mut line = String::new();
                stdout.read_line(&mut line).expect("stdout");
                assert_eq!(line.trim_end(), expected);
            }
        };

        expect_of_both("ready");
        job.signal(signal);
        expect_of_both("caught");

        // The second one counts as the same one, if it comes too early.
        thread::sleep(Duration::from_millis(250));
        job.signal(signal);
        let message = format!("oshrun: the job was killed by a second {name}\n");
        job.wait().expect(status, &message);
    }
}

#[test]
fn pes_may_outlive_an_interrupt() {
    let steps = ["init", "pid", "barrier", "sleep:500", "finalize"];
    let mut job = TestJob::steps_after(2, "trap '' INT", &steps).start();
    pids(&mut job.stdout(), 2);
    job.signal(Signal::INT);
    job.wait().expect(0, "");
}

#[test]
fn stop_and_continue_reach_all() {
    let (job, pids) = sleeping(3, ":");
    let oshrun = job.pid().as_raw_nonzero().get() as u32;
    for _ in 0..3 {
        job.signal(Signal::TSTP);
        eventually("all have stopped", || {
            pids.iter().chain([&oshrun]).all(|&pid| state(pid) == 'T')
        });
        job.signal(Signal::CONT);
        eventually("all go on", || {
            pids.iter().chain([&oshrun]).all(|&pid| state(pid) == 'S')
        });
    }

    job.signal(Signal::TERM);
    job.wait()
        .expect(143, "oshrun: the job was ended by SIGTERM\n");
}

#[test]
fn what_was_ignored_stays_ignored() {
    let script = format!(
        "trap '' HUP; exec {} -n 2 {} init pid '0?cat' finalize",
        oshrun(),
        pe()
    );

    let mut job = TestJob::by("sh", &["-c", &script]).input_later().start();
    let pids = pids(&mut job.stdout(), 2);

    job.signal(Signal::HUP);
    for pid in pids {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");

        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:\t"))
            .expect("SigIgn");
        assert_eq!(
            u64::from_str_radix(ignored, 16).expect("a mask") & 1,
            1,
            "{ignored}"
        );
    }

    job.end_input();
    job.wait().expect(0, "");
}

#[test]
fn what_was_blocked_is_listened_to() {
    let words = [
        "--block-signal",
        oshrun(),
        "-n",
        "2",
        &pe(),
        "init",
        "pid",
        "barrier",
        "sleep:600000",
    ];

    let mut job = TestJob::by("env", &words).start();
    pids(&mut job.stdout(), 2);
    job.signal(Signal::TERM);
    job.wait()
        .expect(143, "oshrun: the job was ended by SIGTERM\n");
}

#[test]
fn a_waiting_oshrun_sleeps() {
    let (job, _) = sleeping(4, ":");
    let switches = || {
        let pid = job.pid().as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t"));
        line.expect("a count").parse::<u64>().expect("a number")
    };

    // After the start has settled, oshrun does not wake up.
    eventually("nothing happens for half a second", || {
        let before = switches();
        thread::sleep(Duration::from_millis(500));
        switches() == before
    });

    job.signal(Signal::TERM);
    job.wait()
        .expect(143, "oshrun: the job was ended by SIGTERM\n");
}

/// Starts a job of `oshrun WORDS` whose stdin, stdout and stderr are a new terminal. `setsid` opens
/// a session with the terminal and then executes oshrun; `changes` are arguments of env(1), which
/// starts it. Returns the job, and the keyboard and the screen of the terminal.
fn at_terminal(changes: &[&str], words: &[&str]) -> (Running, File, BufReader<File>) {
    let keyboard =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&keyboard).expect("own terminal");
    unlockpt(&keyboard).expect("own terminal");

    let screen = ioctl_tiocgptpeer(
        &keyboard,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    );
    let screen = screen.expect("its other side");

    let side = || Stdio::from(screen.try_clone().expect("a descriptor"));

    let words = [changes, &["setsid", "--ctty", oshrun()], words].concat();
    let job = TestJob::by("env", &words).start_with(side(), side(), side());

    let keyboard = File::from(keyboard);
    let screen = BufReader::new(keyboard.try_clone().expect("a descriptor"));
    (job, keyboard, screen)
}

/// Reads lines of the screen up to the one that contains `text`.
fn read_to(screen: &mut BufReader<File>, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(
            screen.read_line(&mut line).expect("the screen") > 0,
            "the screen ended before {text:?}"
        );
    }
    line
}

#[test]
fn a_terminal_controls_the_job() {
    let words = [
        "-n",
        "2",
        &pe(),
        "init",
        "pid",
        "barrier",
        "0?cat",
        "0?print:has read",
        "sleep:600000",
    ];
    let (job, mut keyboard, mut screen) = at_terminal(&[], &words);
    let pids = pids(&mut screen, 2);

    keyboard.write_all(b"typed\n\x04").expect("the keyboard");
    read_to(&mut screen, "typed");
    read_to(&mut screen, "has read");

    let oshrun = job.pid().as_raw_nonzero().get() as u32;
    keyboard.write_all(b"\x1a").expect("Ctrl-Z");
    eventually("all have stopped", || {
        pids.iter().chain([&oshrun]).all(|&pid| state(pid) == 'T')
    });
    job.signal(Signal::CONT);
    eventually("all go on", || {
        pids.iter().chain([&oshrun]).all(|&pid| state(pid) == 'S')
    });

    keyboard.write_all(b"\x1c").expect("Ctrl-\\");
    read_to(&mut screen, "All PEs are in shmem_init");

    keyboard.write_all(b"\x03").expect("Ctrl-C");
    read_to(&mut screen, "oshrun: the job was ended by SIGINT");
    assert_eq!(job.wait().expect_nothing_left().status, 130);
}

#[test]
fn a_question_is_shown_before_it_is_answered() {
    let words = ["-n", "2", &pe(), "0?text:name? ", "0?cat"];
    let (job, mut keyboard, mut screen) = at_terminal(&[], &words);

    let mut question = Vec::new();
    screen.read_until(b'?', &mut question).expect("the screen");
    // If the start takes some time, the progress line appears first.
    assert!(question.ends_with(b"name?"), "{question:?}");

    keyboard.write_all(b"me\n\x04").expect("the keyboard");
    job.wait().expect(0, "");
}

/// A window is closed, or an ssh connection ends: the hang-up ends the job. If it is ignored, as
/// under nohup, the job goes on: PE 0 reads the end of its input, and the output is lost.
#[test]
fn a_closed_terminal_ends_the_job_unless_the_hang_up_is_ignored() {
    let agent = TestAgent::new("");
    let here = ["-n", "2"];
    let elsewhere = ["-H", "a:1,b:1", "--launch-agent", agent.path()];

    for hosts in [&here[..], &elsewhere] {
        let pe = pe();
        let steps = [&pe, "init", "pid", "barrier", "0?cat", "print:lost"];
        for (change, last, status) in [
            ("--default-signal=HUP", "sleep:600000", 129),
            ("--ignore-signal=HUP", "finalize", 0),
        ] {
            let words = [hosts, &steps, &[last]].concat();
            let (job, keyboard, mut screen) = at_terminal(&[change], &words);
            pids(&mut screen, 2);
            let mark = job.mark();

            drop((keyboard, screen));
            assert_eq!(job.wait().status, status, "{change} {hosts:?}");
            eventually_nothing_left(&mark);
        }
    }
}

/// The launch agent of host b waits for a file, so that the signal is sent before its daemon
/// starts.
#[test]
fn an_interrupt_ends_a_job_whose_hosts_have_not_all_answered() {
    let name = format!("oshrun-interrupted-{}", std::process::id());
    let called = std::env::temp_dir().join(format!("{name}-called"));
    let go = std::env::temp_dir().join(format!("{name}-go"));

    let script = format!(
        "if [ $1 = b ]; then : > {}; while ! [ -e {} ]; do sleep 0.05; done; fi",
        called.display(),
        go.display()
    );

    let agent = TestAgent::new(&script);
    for hosts in ["a,b", "b,a", "a:2,b,c", "localhost:2,b"] {
        for goes_on in [false, true] {
            let job = agent
                .steps(hosts, "", &["init", "barrier", "sleep:600000"])
                .start();

            let mark = job.mark();
            eventually("host b is called", || called.exists());

            job.signal(Signal::INT);
            if goes_on {
                std::fs::write(&go, "").expect("a file");
            }

            let outcome = job.wait();
            let message = "oshrun: the job was ended by SIGINT\n";
            assert_eq!(
                (outcome.status, outcome.stderr.as_str()),
                (130, message),
                "{hosts}"
            );

            eventually_nothing_left(&mark);
            for file in [&called, &go] {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

#[test]
fn an_interrupt_ends_a_job_from_the_first_instruction_on() {
    let agent = TestAgent::new("");
    for n_processes in 0..8 {
        let steps = ["init", "barrier", "sleep:600000"];
        let mut job = agent.steps("a:1,b:2", "", &steps).start();

        let mark = job.mark();
        eventually("processes start", || {
            job.processes().len() >= n_processes || job.has_ended()
        });

        job.signal(Signal::INT);
        let outcome = job.wait();
        // Before oshrun installs its handler, the signal has the default action.
        assert_eq!(outcome.status, 130, "{outcome:?}");
        assert!(["", "oshrun: the job was ended by SIGINT\n"].contains(&outcome.stderr.as_str()));

        eventually_nothing_left(&mark);
    }
}
