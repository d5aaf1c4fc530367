//! Jobs on several hosts, all of which are this machine: the agent ignores the name of the host.

use std::io::BufRead;

use crate::support::{TestAgent, TestJob, eventually_nothing_left, tempfile};
use testkit::eventually;

/// Lists of hosts with their slots, and the number of PEs on each host. Names of this machine are
/// one host.
const HOSTS: [(&str, &[u32]); 5] = [
    ("a:2,b:2", &[2, 2]),
    ("a,b,c,d", &[1, 1, 1, 1]),
    ("a:1,b:3,c:2,d:1", &[1, 3, 2, 1]),
    ("a:3,localhost:1,b:1,127.0.0.1:1", &[3, 2, 1]),
    ("a:5,localhost:4", &[5, 4]),
];

fn agent() -> TestAgent {
    TestAgent::new("")
}

#[test]
fn pes_know_their_place_and_exchange_on_any_hosts() {
    let agent = agent();
    for (hosts, sizes) in HOSTS {
        let steps = [
            "init",
            "who",
            "exchange:10",
            "memory",
            "finalize",
            "resume",
            "finalize",
        ];

        let outcome = agent.steps(hosts, "", &steps).run().expect(0, "");
        let n_pes: u32 = sizes.iter().sum();

        let local = sizes.iter().flat_map(|size| 0..*size);
        let mut expected: Vec<_> = (0..n_pes)
            .zip(local)
            .map(|(pe, local)| format!("PE {pe} of {n_pes}, {local} of its node"))
            .collect();

        expected.sort_unstable();
        assert_eq!(outcome.sorted(), expected, "{hosts}");
    }
}

#[test]
fn lines_stay_whole_and_name_pe_and_host() {
    let agent = agent();

    let outcome = agent
        .steps("a:1,b:2,c:1", "--tag-output", &["lines:1500"])
        .run()
        .expect(0, "");

    let mut next = [0; 4];
    // The step `lines` prints the number that a PE has on its host.
    let places = ["[0@a] <0:", "[1@b] <0:", "[2@b] <1:", "[3@c] <0:"];
    for line in outcome.stdout.lines() {
        let pe = places
            .iter()
            .position(|place| line.starts_with(place))
            .expect(line);

        let rest = &line[places[pe].len()..];
        let number: usize = rest
            .split(':')
            .next()
            .and_then(|n| n.parse().ok())
            .expect(line);
        assert_eq!(number, next[pe], "{line}");

        let body = format!(
            "{number}:{}>",
            format!("{number:05}-").repeat(1 + (number * 7) % 40)
        );
        assert_eq!(rest, body);

        next[pe] += 1;
    }
    assert_eq!(next, [1500; 4]);

    let outcome = agent.steps("a,b", "--tag-output", &["complain:oops"]).run();
    let mut lines: Vec<&str> = outcome.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0@a] oops", "[1@b] oops"]);
}

#[test]
fn giant_lines_stay_whole() {
    let agent = agent();
    let outcome = agent
        .steps("a:2,b:1,c:1", "", &["giant:500000"])
        .run()
        .expect(0, "");

    let mut lines = outcome.sorted();
    let line = |pe: u32| format!("<{}>", pe.to_string().repeat(500_000));
    assert_eq!(lines.pop(), Some(line(1).as_str()));
    assert_eq!(lines, [line(0), line(0), line(0)]);
}

#[test]
fn environment_and_directory_are_carried_but_not_the_session() {
    // The hosts' logins have variables of their own.
    let agent = TestAgent::new("export SSH_CONNECTION=theirs B=theirs D=$1; cd /");
    let program = [
        "sh",
        "-c",
        "echo $A,$B,$C,$SSH_CONNECTION,$D,$(pwd),$SHMEM_LOCAL_ID",
    ];

    let job = agent.job("a:1,b:2", "-x A=1 -x E", &program);
    let outcome = job
        .env("B", "ours")
        .env("C", "c")
        .env("E", "")
        .env("SSH_CONNECTION", "ours")
        .run();
    let outcome = outcome.expect(0, "");

    let here = std::env::current_dir()
        .expect("a directory")
        .display()
        .to_string();

    let line = |host: &str, local| format!("1,ours,c,theirs,{host},{here},{local}");
    assert_eq!(outcome.sorted(), [line("a", 0), line("b", 0), line("b", 1)]);
}

#[test]
fn input_reaches_the_first_pe_wherever_it_is() {
    let text: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
    let agent = agent();
    for hosts in ["a,b", "a,b,c", "localhost,a"] {
        let file = tempfile(&text);
        let mut job = agent
            .steps(hosts, "", &["init", "0?cat", "finalize"])
            .start_with(
                file.into(),
                std::process::Stdio::piped(),
                std::process::Stdio::piped(),
            );

        let lines: Vec<String> = job
            .stdout()
            .lines()
            .map(|line| line.expect("text"))
            .collect();

        assert!(
            lines.iter().map(String::as_str).eq(text.lines()),
            "{hosts}: {}",
            lines.len()
        );
        job.wait().expect(0, "");
    }

    // Endless input without a reader.
    let endless = agent.job("a,b", "", &["true"]);
    let zero = std::fs::File::open("/dev/zero").expect("a device");
    let piped = std::process::Stdio::piped;
    endless
        .start_with(zero.into(), piped(), piped())
        .wait()
        .expect(0, "");
}

#[test]
fn pes_that_fail_are_named_with_their_host() {
    let agent = agent();
    let kill = ["init", "barrier", "1?kill:11", "barrier"];
    let outcome = agent.steps("a:1,b:2,c:1", "", &kill).run();
    let message = "oshrun: PE 2 (pid PID, host b) was killed by SIGSEGV\n";
    outcome.expect(139, message);

    let exit = ["init", "barrier", "2?exit:3", "barrier"];
    let message = "oshrun: PE 4 (pid PID, host b) exited with status 3 before shmem_finalize\n";
    agent.steps("a:2,b:3", "", &exit).run().expect(3, message);

    agent
        .steps("a:1,b:2", "", &["init", "1?abort:6:no heap", "barrier"])
        .run()
        .expect(6, "PE 2: no heap\n");

    agent
        .steps("a:1,b:2", "", &["init", "1?global_exit:4", "barrier"])
        .run()
        .expect(4, "");

    let message =
        "oshrun: PE 3 (pid PID, host b) exited with status 7 without calling shmem_init\n";
    agent
        .steps("a:1,b:3", "", &["2?exit:7"])
        .run()
        .expect(7, message);
}

#[test]
fn a_reader_that_stops_makes_pes_wait_and_no_more() {
    let agent = agent();
    // `yes` prints more than all windows and pipes hold, so the PEs wait. Then a PE fails, and the
    // message about that must be printed.
    let script = "if read line; then kill -9 $$; fi; yes";
    let mut job = agent
        .job("a:2,b:2", "", &["sh", "-c", script])
        .input_later()
        .start();

    let reader = job.stdout();
    let waiting = || rustix::io::ioctl_fionread(reader.get_ref()).expect("a pipe");
    eventually("the pipe is nearly full", || waiting() > 32 * 1024);

    job.input("go\n");
    let mut errors = std::io::BufReader::new(job.stderr());
    let mut line = String::new();
    errors.read_line(&mut line).expect("stderr");
    assert!(line.starts_with("oshrun: PE 0 (pid "), "{line}");

    assert!(reader.lines().count() > 1);
    assert_eq!(job.wait().expect_nothing_left().status, 137);
}

#[test]
fn a_reader_that_leaves_ends_the_writers() {
    let agent = agent();
    let mut job = agent.job("a,b", "", &["yes"]).start();
    let mut reader = job.stdout();
    reader.read_line(&mut String::new()).expect("stdout");
    drop(reader);

    let outcome = job.wait().expect_nothing_left();
    assert_eq!(outcome.status, 141, "{outcome:?}");
    assert!(
        outcome.stderr.ends_with("was killed by SIGPIPE\n"),
        "{outcome:?}"
    );
}

#[test]
fn hosts_are_read_from_a_file_and_pes_distributed() {
    let agent = agent();
    let file = std::env::temp_dir().join(format!("oshrun-hosts-{}", std::process::id()));
    std::fs::write(&file, "# hosts\na:2\nb slots=2\nc\n").expect("a file");

    let name = file.to_str().expect("plain names");
    let run = |options: &str| {
        let words = [
            "--launch-agent",
            agent.path(),
            "--hostfile",
            name,
            "--tag-output",
        ];
        let options: Vec<&str> = options.split_whitespace().collect();
        let program = ["echo", "x"];
        TestJob::new(&[&words[..], &options, &program].concat()).run()
    };

    for (options, expected) in [
        ("", "[0@a] x,[1@a] x,[2@b] x,[3@b] x,[4@c] x"),
        ("-n 3", "[0@a] x,[1@a] x,[2@b] x"),
        ("-ppn 1", "[0@a] x,[1@b] x,[2@c] x"),
        ("--ppn 1 -n 2", "[0@a] x,[1@b] x"),
    ] {
        assert_eq!(
            run(options).expect(0, "").sorted().join(","),
            expected,
            "{options}"
        );
    }

    let few = "oshrun: 6 PEs do not fit the 5 slots of the hosts; give the hosts more slots, or start fewer PEs\n";
    run("-n 6").expect(2, few);

    std::fs::remove_file(&file).expect("own file");
    let gone = format!("oshrun: cannot read the list of hosts {name}: No such file or directory\n");
    run("").expect(1, &gone);
}

#[test]
fn what_cannot_be_started_is_named_once_with_its_host() {
    let agent = agent();
    let missing = "oshrun: host a: the program no-such-program was not found in PATH\n";
    agent
        .job("a", "", &["no-such-program"])
        .run()
        .expect(127, missing);

    let outcome = agent
        .job("a,b,c", "", &["no-such-program"])
        .run()
        .expect_nothing_left();
    assert_eq!(
        (outcome.status, outcome.stderr.lines().count()),
        (127, 1),
        "{outcome:?}"
    );

    for (script, status) in [
        ("exit 255", "exited with status 255"),
        (
            "echo no route to it >&2; exit 1",
            "exited with status 1: no route to it",
        ),
        ("kill -9 $$", "was killed by SIGKILL"),
    ] {
        let failing = TestAgent::new(&format!("if [ $1 = b ]; then {script}; fi"));
        let outcome = failing
            .steps("a:1,b:2", "", &["init", "barrier"])
            .run()
            .expect_nothing_left();

        let file = failing.path().rsplit('/').next().expect("a name");
        let message = format!("oshrun: cannot start the PEs of host b: {file} {status}\n");
        assert_eq!((outcome.status, outcome.stderr), (1, message), "{script}");
    }

    let outcome = agent
        .job("a", "--prefix /no/such", &["true"])
        .run()
        .expect_nothing_left();
    let message = &outcome.stderr;
    assert!(
        message.starts_with("oshrun: cannot start the PEs of host a: "),
        "{outcome:?}"
    );
    assert!(message.ends_with(
        "/no/such/bin/oshrun must exist there: install it, or name its directory with --prefix\n"
    ));

    let other = TestAgent::new("printf '\\noshrun-daemon 0.0.1/0\\n'; cat > /dev/null; exit");
    let outcome = other.job("a", "", &["true"]).run().expect_nothing_left();
    let message =
        "oshrun: cannot start the PEs of host a: its oshrun has version 0.0.1/0 and this one ";
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");

    let words = ["--launch-agent", "/no/such/agent", "-H", "a", "true"];
    let message = "oshrun: cannot start agent for host a: No such file or directory; name another command with --launch-agent\n";
    TestJob::new(&words).run().expect(1, message);
}

#[test]
fn logins_may_print_before_the_daemon_greets() {
    let agent = TestAgent::new("echo Welcome to $1; printf 'no newline'");
    let outcome = agent
        .steps("a,b", "", &["init", "print:x", "finalize"])
        .run()
        .expect(0, "");
    assert_eq!(outcome.stdout, "x\nx\n");
}

#[test]
fn nothing_listens() {
    let agent = agent();
    let steps = ["init", "barrier", "print:there", "0?cat", "finalize"];
    let mut job = agent
        .steps("a:2,b:1,localhost:2,c:1", "", &steps)
        .input("")
        .start();

    let mut stdout = job.stdout();
    stdout.read_line(&mut String::new()).expect("stdout");

    let listening = listening_sockets();
    for pid in job.processes() {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for entry in entries.flatten() {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            let inode = target.to_string_lossy();
            let inode = inode
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'));

            assert!(
                !inode.is_some_and(|inode| listening.contains(inode)),
                "{pid}: {target:?}"
            );
        }
    }
    job.wait().expect(0, "");
}

/// Returns the inodes of all listening sockets of this machine.
fn listening_sockets() -> std::collections::HashSet<String> {
    let read = |name| std::fs::read_to_string(name).unwrap_or_default();
    let mut inodes = std::collections::HashSet::new();

    for name in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = read(name);
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        inodes.extend(
            lines
                .filter(|words| words.get(3) == Some(&"0A"))
                .map(|words| words[9].to_string()),
        );
    }

    for line in read("/proc/net/unix").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // __SO_ACCEPTCON
        if words.get(3) == Some(&"00010000") {
            inodes.insert(words[6].to_string());
        }
    }

    inodes
}

#[test]
fn a_time_limit_ends_all_hosts() {
    let agent = agent();
    let job = agent
        .steps("a,b,c", "--timeout 1", &["init", "sleep:600000"])
        .start();
    let mark = job.mark();

    let outcome = job.wait();
    assert_eq!(outcome.status, 124);
    let sentence = "oshrun: the job did not end within 1 seconds (--timeout)\n";
    assert!(outcome.stderr.starts_with(sentence), "{outcome:?}");

    // If daemons are still starting, their guards end what they have started.
    eventually_nothing_left(&mark);
}

#[test]
fn background_processes_end_with_the_job() {
    let agent = agent();
    let job = agent.steps("a,b", "", &["init", "background:sleep 600", "finalize"]);
    job.run().expect(0, "");
}

/// Each batch system gives the hosts and slots of an allocation in its own way; here this machine
/// is the only host.
#[test]
fn the_slots_of_an_allocation_are_the_pes() {
    let file = |name: &str, text: &str| {
        let path = format!(
            "{}/{name}-{}",
            env!("CARGO_TARGET_TMPDIR"),
            std::process::id()
        );
        std::fs::write(&path, text).expect("a file");
        path
    };

    let nodes = file("nodes", "localhost\nlocalhost\nlocalhost\n");
    let queues = file("queues", "localhost 3 all.q@localhost UNDEFINED\n");

    for (name, value) in [
        ("PBS_NODEFILE", nodes.as_str()),
        ("LSB_DJOB_HOSTFILE", &nodes),
        ("LSB_MCPU_HOSTS", "localhost 3"),
        ("LSB_HOSTS", "localhost localhost localhost"),
        ("PE_HOSTFILE", &queues),
    ] {
        let outcome = TestJob::new(&["sh", "-c", "echo $SHMEM_LOCAL_ID"])
            .env(name, value)
            .run();
        assert_eq!(outcome.expect(0, "").sorted(), ["0", "1", "2"], "{name}");
    }

    let outcome = TestJob::new(&["true"])
        .env("PBS_NODEFILE", "/nowhere/nodes")
        .run();

    for words in [
        "/nowhere/nodes, which PBS_NODEFILE names",
        "unset PBS_NODEFILE outside of an allocation",
    ] {
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
}
