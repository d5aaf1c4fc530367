//! The environment of started PEs, and the messages if they cannot be started.

use crate::support::{TestJob, executable, needs, oshrun, pe};
use testkit::absent;

const SIZES: [u32; 6] = [1, 2, 3, 4, 8, 12];

fn pes_know_who_they_are_and_exchange() {
    for n_pes in SIZES {
        let steps = [
            "init",
            "who",
            "exchange:20",
            "barrier",
            "finalize",
            "resume",
            "barrier",
            "finalize",
        ];
        let outcome = TestJob::steps(n_pes, &steps).run().expect(0, "");

        let mut expected: Vec<_> = (0..n_pes)
            .map(|pe| format!("PE {pe} of {n_pes}, {pe} of its node"))
            .collect();
        expected.sort_unstable();
        assert_eq!(outcome.sorted(), expected);
    }
}

fn the_node_memory_is_one_for_all() {
    for n_pes in SIZES {
        TestJob::steps(n_pes, &["init", "memory", "finalize"])
            .run()
            .expect(0, "");
    }
}

fn np_has_its_customary_spelling() {
    for words in [["-n", "2"], ["-np", "2"], ["--np", "2"]] {
        let outcome = TestJob::new(&[&words[..], &[&pe(), "init", "who", "finalize"]].concat())
            .run()
            .expect(0, "");
        assert_eq!(
            outcome.sorted(),
            ["PE 0 of 2, 0 of its node", "PE 1 of 2, 1 of its node"]
        );
    }

    let outcome = TestJob::new(&[&pe(), "init", "who", "finalize"])
        .run()
        .expect(0, "");
    assert_eq!(outcome.stdout, "PE 0 of 1, 0 of its node\n");
}

fn variables_are_set_for_the_pes() {
    let script = "echo $SHMEM_LOCAL_ID $A $B";
    let job = TestJob::new(&["-n", "2", "-x", "A=x=y", "-x", "B", "sh", "-c", script])
        .env("B", "outside");

    assert_eq!(
        job.run().expect(0, "").sorted(),
        ["0 x=y outside", "1 x=y outside"]
    );
}

fn a_program_started_by_a_pe_is_a_job_of_its_own() {
    // The program inherits values that were read from files, and the variable that names them.
    let program = format!(
        "run:env | grep RUSHMEM | grep -v ^RUSHMEM_CONFIG_READ; echo $SHMEM_LOCAL_ID; {} init who finalize",
        pe()
    );
    let outcome = TestJob::steps(2, &["init", &program, "finalize"])
        .run()
        .expect(0, "");
    assert_eq!(
        outcome.sorted(),
        [
            "0",
            "1",
            "PE 0 of 1, 0 of its node",
            "PE 0 of 1, 0 of its node"
        ]
    );

    let nested = format!(
        "run:{} -n 2 {} init who exchange:3 finalize",
        oshrun(),
        pe()
    );
    let outcome = TestJob::steps(2, &["init", &nested, "finalize"])
        .run()
        .expect(0, "");
    let one = ["PE 0 of 2, 0 of its node", "PE 1 of 2, 1 of its node"];
    assert_eq!(outcome.sorted(), [one[0], one[0], one[1], one[1]]);
}

fn pes_hold_no_descriptors_but_their_own() {
    // Descriptors that this test itself has inherited do not count.
    let outer = TestJob::by(&pe(), &["descriptors"]).run().stdout;
    let outer: Vec<&str> = outer
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();

    let outcome = TestJob::steps(3, &["init", "descriptors", "finalize"])
        .run()
        .expect(0, "");

    let mut own = Vec::new();
    for line in outcome.stdout.lines() {
        let [_, number, target] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };

        let kind = target.split([':', '[']).next().expect("a kind");
        match (number.parse().expect("a number"), kind) {
            (0, "/dev/null") | (1 | 2, "pipe") => own.push(kind),
            _ if outer.contains(&number) => {}
            (100.., "socket" | "/memfd" | "pipe") => own.push(kind),
            _ => panic!("{line}"),
        }
    }

    own.sort_unstable();
    let each = |kind, count: usize| std::iter::repeat_n(kind, 3 * count);
    let expected: Vec<&str> = each("/dev/null", 1)
        .chain(each("/memfd", 1))
        .chain(each("pipe", 3))
        .chain(each("socket", 1))
        .collect();
    assert_eq!(own, expected);
}

fn many_pes_fit_the_usual_descriptor_limit() {
    let run = format!(
        "ulimit -n 1024; exec {} -n 128 {} init exchange:2 finalize",
        oshrun(),
        pe()
    );
    TestJob::by("sh", &["-c", &run]).run().expect(0, "");
}

fn a_low_soft_limit_is_raised_and_given_back() {
    let run = format!("ulimit -Sn 64; exec {} -n 30 sh -c 'ulimit -Sn'", oshrun());

    let outcome = TestJob::by("sh", &["-c", &run]).run().expect(0, "");
    assert_eq!(outcome.stdout, "64\n".repeat(30));
}

fn too_few_descriptors_are_named_with_the_pes_that_fit() {
    let run = |n_pes: u32| format!("ulimit -n 256; exec {} -n {n_pes} true", oshrun());
    TestJob::by("sh", &["-c", &run(74)]).run().expect(0, "");

    let run = run(128);
    let sentence = "oshrun: a job of 128 PEs needs 416 descriptors and the limit is 256, which suffices for 74; raise it \
                    with ulimit -n 416\n";
    TestJob::by("sh", &["-c", &run]).run().expect(1, sentence);
}

fn a_limit_below_what_the_event_loop_needs_is_named_too() {
    let sentence = "oshrun: any job needs 132 descriptors and the limit is LIMIT; raise it with ulimit -n 132\n";
    for limit in ["6", "8", "20"] {
        let run = format!("ulimit -n {limit}; exec {} -n 2 true", oshrun());
        TestJob::by("sh", &["-c", &run])
            .run()
            .expect(1, &sentence.replace("LIMIT", limit));
    }

    let hosts: Vec<String> = (0..60).map(|number| format!("host{number}")).collect();
    let hosts = hosts.join(",");
    let run = format!("ulimit -n 150; exec {} -H {hosts} true", oshrun());
    let sentence = "oshrun: a job on 60 other hosts needs 212 descriptors and the limit is 150, which suffices for 39 hosts; \
                    raise it with ulimit -n 212\n";
    TestJob::by("sh", &["-c", &run]).run().expect(1, sentence);

    let run = format!("ulimit -Sn 8; exec {} -n 2 sh -c 'ulimit -Sn'", oshrun());
    assert_eq!(
        TestJob::by("sh", &["-c", &run]).run().expect(0, "").stdout,
        "8\n8\n"
    );
}

fn oshrun_can_be_run_by_valgrind() {
    if std::process::Command::new("valgrind")
        .arg("--version")
        .output()
        .is_err()
    {
        absent("valgrind is not here");
    }

    let words = [
        "-q",
        oshrun(),
        "-n",
        "2",
        &pe(),
        "init",
        "barrier",
        "print:there",
        "finalize",
    ];

    let outcome = TestJob::by("valgrind", &words).run().expect_nothing_left();
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (0, "there\nthere\n"),
        "{outcome:?}"
    );
}

fn what_cannot_be_started_is_named_once() {
    let missing = "oshrun: the program no-such-program was not found in PATH\n";
    TestJob::new(&["-n", "3", "no-such-program"])
        .run()
        .expect(127, missing);

    TestJob::new(&["/no/such"]).run().expect(
        127,
        "oshrun: cannot run /no/such: No such file or directory\n",
    );

    TestJob::new(&["/etc"])
        .run()
        .expect(126, "oshrun: /etc is a directory, not a program\n");

    let plain =
        "oshrun: /etc/os-release is not executable; chmod +x /etc/os-release if it is a program\n";
    TestJob::new(&["-n", "3", "/etc/os-release"])
        .run()
        .expect(126, plain);

    let script = std::env::temp_dir().join(format!("oshrun-no-interpreter-{}", std::process::id()));
    executable(&script, "#!/no/such/interpreter\n");
    let name = script.to_str().expect("plain names");
    let sentence = format!(
        "oshrun: cannot start {name} as PE 0: No such file or directory (of its interpreter or loader)\n"
    );
    TestJob::new(&["-n", "3", name])
        .run()
        .expect(127, &sentence);
    std::fs::remove_file(script).expect("own file");
}

fn a_program_on_a_file_system_without_execution_is_named() {
    needs(&["unshare", "-rm", "true"]);
    let script = "d=$(mktemp -d) && mount -t tmpfs -o noexec none \"$d\" && cp /bin/true \"$d\" && \
                  cd \"$d\" && exec \"$0\" ./true";

    let sentence = "oshrun: ./true cannot be executed: its file system is mounted with noexec; copy it to another one\n";
    TestJob::by("unshare", &["-rm", "sh", "-c", script, oshrun()])
        .run()
        .expect(126, sentence);
}

/// The filters of old container runtimes refuse a system call that they do not know in this way.
fn a_refused_system_call_is_named_with_a_remedy() {
    needs(&["strace", "-f", "-o", "/dev/null", "true"]);
    for (call, what, status) in [
        ("clone3", "start a thread", 1),
        ("memfd_create", "make the shared memory of the job", 1),
        ("eventfd2", "wait for events", 1),
        ("epoll_create1", "wait for events", 1),
        ("socketpair", "make a pair of sockets", 1),
        ("epoll_ctl", "wait for events", 1),
        ("fcntl", "wait for events", 1),
        ("ioctl", "start ", 126),
        ("prctl", "start ", 126),
        ("readlink", "find its own file", 1),
        ("recvfrom", "start processes", 1),
    ] {
        let refused = format!("inject={call}:error=EPERM");
        let words = [
            "-f",
            "-o",
            "/dev/null",
            "-e",
            &refused,
            oshrun(),
            "-n",
            "1",
            "true",
        ];

        let outcome = TestJob::by("strace", &words).run();
        assert_eq!(outcome.status, status, "{outcome:?}");
        let said = format!("oshrun: cannot {what}");
        assert!(outcome.stderr.starts_with(&said), "{outcome:?}");
        let permit = format!("permit {call} in its filter");
        for words in [": Operation not permitted (a sandbox or container", &permit] {
            assert!(outcome.stderr.contains(words), "{outcome:?}");
        }
    }
}

fn bad_arguments_are_one_sentence() {
    let help = "; oshrun --help lists the options\n";
    let zero = format!("oshrun: invalid value '0' for '--np <N>': it must be at least 1{help}");
    TestJob::new(&["-n", "0", "true"]).run().expect(2, &zero);

    TestJob::new(&["-n", "2"]).run().expect(
        2,
        "oshrun: no program is given; for example: oshrun -n 2 ./program\n",
    );

    let unset =
        "oshrun: -x OSHRUN_UNSET: OSHRUN_UNSET is not set; set it or give -x OSHRUN_UNSET=VALUE\n";
    TestJob::new(&["-x", "OSHRUN_UNSET", "true"])
        .run()
        .expect(2, unset);
}

fn help_and_version_are_printed() {
    let help = TestJob::new(&["--help"]).run().expect(0, "");
    assert!(
        ["-n", "-np", "-x", "--tag-output", "--timeout"]
            .iter()
            .all(|word| help.stdout.contains(word)),
        "{help:?}"
    );

    let version = TestJob::new(&["--version"]).run().expect(0, "");
    assert_eq!(
        version.stdout,
        format!("oshrun {}\n", env!("CARGO_PKG_VERSION"))
    );
}

fn a_program_without_a_launcher_is_a_job_of_one_pe() {
    let outcome = TestJob::by(&pe(), &["init", "who", "exchange:2", "finalize"])
        .run()
        .expect(0, "");
    assert_eq!(outcome.stdout, "PE 0 of 1, 0 of its node\n");

    TestJob::by(&pe(), &["init", "abort:3:no launcher prints this"])
        .run()
        .expect(3, "no launcher prints this\n");

    TestJob::by(&pe(), &["init", "global_exit:4"])
        .run()
        .expect(4, "");
}

fn other_launchers_are_refused_and_ours_comes_first() {
    let outcome = TestJob::by(&pe(), &["init"]).env("PMI_SIZE", "4").run();

    assert_eq!(outcome.status, 9);
    assert!(
        outcome.stderr.contains("PMI_SIZE=4") && outcome.stderr.contains("oshrun"),
        "{outcome:?}"
    );

    TestJob::steps(2, &["init", "finalize"])
        .env("PMI_SIZE", "4")
        .run()
        .expect(0, "");
}

fn variables_that_name_nothing_are_refused() {
    for (socket, memory) in [("77", "78"), ("0", "0"), ("-1", ""), ("no number", "")] {
        let outcome = TestJob::by(&pe(), &["init"])
            .env("RUSHMEM_SOCKET", socket)
            .env("RUSHMEM_MEMORY", memory)
            .run();
        assert_eq!(outcome.status, 9);

        let start = format!("RUSHMEM_SOCKET={socket} does not name a connected unix socket");
        assert!(outcome.stderr.starts_with(&start), "{outcome:?}");
    }
}

/// Python's subprocess closes descriptors unless it is told not to.
fn a_wrapper_that_closes_descriptors_is_told_how_not_to() {
    needs(&["python3", "-c", "import subprocess"]);
    let run = |options: &str| {
        let code = format!(
            "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]{options}).returncode)"
        );
        TestJob::new(&["-n", "2", "python3", "-c", &code, &pe(), "init", "finalize"]).run()
    };

    let closed = run("");
    assert_ne!(closed.status, 0, "{closed:?}");
    let remedy = "closed its descriptors, as Python's subprocess does without close_fds=False";
    assert!(closed.stderr.contains(remedy), "{closed:?}");

    run(", close_fds=False").expect(0, "");
}

/// A library with the soname of Open MPI's, and a program that is linked with it.
fn a_program_of_another_library_is_refused() {
    needs(&["gcc", "--version"]);
    let dir = format!("{}/another-library", env!("CARGO_TARGET_TMPDIR"));

    std::fs::create_dir_all(&dir).expect("a directory");
    let script = "cd \"$1\" && echo 'int shmem;' > lib.c && echo 'int main(void) { return 0; }' > main.c && \
                  gcc -shared -fPIC -Wl,-soname,liboshmem.so.40 -o liboshmem.so.40 lib.c && \
                  gcc -Wl,--no-as-needed -o program main.c liboshmem.so.40 -Wl,-rpath,\"$1\"";

    let made = std::process::Command::new("sh")
        .args(["-c", script, "sh", &dir])
        .status();
    assert!(made.expect("sh").success());

    let program = format!("{dir}/program");
    let sentence = format!(
        "oshrun: {program} is linked with liboshmem.so.40 of Open MPI, so that each PE would be a job of its own; \
         compile it with the oshcc beside this oshrun, or start it with the launcher of Open MPI\n"
    );
    TestJob::new(&["-n", "2", &program])
        .run()
        .expect(126, &sentence);
}

fn pes_run_in_the_directory_of_wdir() {
    let dir = format!("{}/wdir", env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&dir).expect("a directory");
    let dir = std::fs::canonicalize(dir).expect("it is there");
    executable(&dir.join("program"), "#!/bin/sh\necho \"$PWD\"; pwd -P\n");

    let shown = dir.to_str().expect("plain names");
    let outcome = TestJob::new(&["-n", "2", "-wdir", shown, "./program"]).run();
    assert_eq!(outcome.expect(0, "").sorted(), [shown; 4]);

    TestJob::new(&["--wdir", "/nowhere", "true"]).run().expect(
        1,
        "oshrun: cannot enter the directory /nowhere of --wdir: No such file or directory\n",
    );
}

testkit::module_tests! {
    a_wrapper_that_closes_descriptors_is_told_how_not_to,
    a_program_of_another_library_is_refused,
    pes_run_in_the_directory_of_wdir,
    pes_know_who_they_are_and_exchange,
    the_node_memory_is_one_for_all,
    np_has_its_customary_spelling,
    variables_are_set_for_the_pes,
    a_program_started_by_a_pe_is_a_job_of_its_own,
    pes_hold_no_descriptors_but_their_own,
    many_pes_fit_the_usual_descriptor_limit,
    a_low_soft_limit_is_raised_and_given_back,
    too_few_descriptors_are_named_with_the_pes_that_fit,
    a_limit_below_what_the_event_loop_needs_is_named_too,
    oshrun_can_be_run_by_valgrind,
    what_cannot_be_started_is_named_once,
    a_program_on_a_file_system_without_execution_is_named,
    a_refused_system_call_is_named_with_a_remedy,
    bad_arguments_are_one_sentence,
    help_and_version_are_printed,
    a_program_without_a_launcher_is_a_job_of_one_pe,
    other_launchers_are_refused_and_ours_comes_first,
    variables_that_name_nothing_are_refused,
}
