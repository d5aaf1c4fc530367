//! Meetings among other users: a process that listens where PE 0 should, one that passes on what
//! others send, the next job at the same address; and meetings of many PEs with few descriptors.
//!
//! Other users are threads of these tests, in the network namespace of a host.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Uid;
use testkit::{Job, patient, program, scenario};

use crate::namespaces::Hosts;

/// The limit of a job that fails.
const SOON: Duration = Duration::from_secs(60);

/// The place of all meetings here.
const PLACE: &str = "10.77.0.1:5000";

/// The user that is none of the job.
const OTHER_UID: u32 = 65534;

/// Calls `work` on a host as another user, in a thread.
fn as_another_user<T: Send>(hosts: &Hosts, host: u32, work: impl FnOnce() -> T + Send) -> T {
    hosts.on(host, || {
        rustix::thread::set_thread_uid(Uid::from_raw(OTHER_UID)).expect("root may");
        work()
    })
}

/// Returns a job on host 0 whose processes run this script, with the program as `$0`.
fn script(hosts: &Hosts, script: &str, program: &Path) -> Job {
    let host = hosts.host(0);
    Job::direct(program)
        .wrap(["ip", "netns", "exec", &host, "sh", "-c", script])
        .env("SHMEM_JOB", PLACE)
        .env("SHMEM_JOB_SECRET", "told to nobody")
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .timeout(patient(SOON))
}

/// Starts a program once for each of 3 ranks, with one output for all, and waits for them.
const THREE: &str = "exec 2>&1; s=0; p=; for r in 0 1 2; do SHMEM_SIZE=3 SHMEM_RANK=$r \"$0\" & p=\"$p $!\"; done; \
    for i in $p; do wait $i || s=$?; done; exit $s";

fn a_place_of_another_user_is_refused() {
    let hosts = Hosts::new("h", 1);
    let held = as_another_user(&hosts, 0, || TcpListener::bind(PLACE).expect("it is free"));

    let job = script(&hosts, THREE, &scenario!("slow_after_finalize.c"));

    let outcome = job.clone().env("SHMEM_JOIN_LIMIT", "2s").run();
    assert!(!outcome.status.success(), "{outcome}");
    let words = format!("a process of uid {OTHER_UID} listens at {PLACE} already, and has for 2");
    assert!(outcome.stdout.contains(&words), "{outcome}");

    // A job whose place is freed while it waits goes on.
    let mut waits = job.env("SHMEM_JOIN_LIMIT", "10s").start();
    waits.wait_for(|lines| {
        if lines.iter().any(|line| line.contains("tries again until")) {
            Some(())
        } else {
            None
        }
    });
    drop(held);
    waits.finish().assert_ok(3);
}

/// What a relay does to a piece that it has received.
#[derive(Clone, Copy)]
enum Deed {
    Pass,
    /// Changes a bit.
    Change,
    /// Leaves the piece out.
    Drop,
    /// Sends the piece after the next one.
    Delay,
    /// Passes on neither this piece nor any later one, and keeps the connections.
    Hold,
    /// Closes both connections.
    Cut,
}

/// A piece on its way through a relay.
#[derive(Clone, Copy, PartialEq)]
struct Piece {
    is_of_pe_0: bool,
    /// Its number among those of one direction of a connection.
    number: usize,
}

/// PE 0 on host 0 and others on host 1, where another user listens at an address of the name
/// of PE 0's host.
struct Relayed {
    hosts: Hosts,
    /// All that has passed the relay.
    copy: Arc<Mutex<Vec<u8>>>,
}

impl Relayed {
    const NAME: &str = "pe0.example";

    /// Starts the relay, which does to each piece what `deed` returns.
    fn new(test: &str, deed: impl Fn(Piece) -> Deed + Send + Sync + 'static) -> Relayed {
        let hosts = Hosts::new(test, 2);
        for (number, address) in [(0, "10.77.0.1"), (1, "127.0.0.1")] {
            // ip-netns(8) shows such a file as /etc/hosts to what it executes.
            let directory = Relayed::files(&hosts, number);
            std::fs::create_dir_all(&directory).expect("root may");
            let names = format!("127.0.0.1 localhost\n{address} {}\n", Relayed::NAME);
            std::fs::write(directory.join("hosts"), names).expect("root may");
        }

        let copy = Arc::new(Mutex::new(Vec::new()));
        let relay = Relay {
            copy: copy.clone(),
            deed: Arc::new(deed),
        };
        as_another_user(&hosts, 1, || {
            let listener = TcpListener::bind("127.0.0.1:5000").expect("it is free");
            thread::spawn(move || relay.serve(&listener));
        });

        Relayed { hosts, copy }
    }

    /// Returns the directory with the files that replace those of /etc on a host.
    fn files(hosts: &Hosts, number: u32) -> PathBuf {
        Path::new("/etc/netns").join(hosts.host(number))
    }

    /// Returns a job of 3 PEs, of which 1 and 2 reach PE 0 through the relay.
    fn job(&self, program: &Path) -> Job {
        const THROUGH: &str = "export SHMEM_SIZE=3; SHMEM_RANK=0 ip netns exec $HOST0 \"$0\" & a=$!; \
            for r in 1 2; do SHMEM_RANK=$r ip netns exec $HOST1 \"$0\" & p=\"$p $!\"; done; \
            s=0; for i in $a $p; do wait $i || s=$?; done; exit $s";

        let [host0, host1] = [0, 1].map(|number| self.hosts.host(number));
        Job::direct(program)
            .wrap(["sh", "-c", THROUGH])
            .env("HOST0", host0)
            .env("HOST1", host1)
            .env("SHMEM_JOB", format!("{}:5000", Relayed::NAME))
            .env("SHMEM_JOB_SECRET", "told to nobody")
            .env("SHMEM_SYMMETRIC_SIZE", "16m")
            .timeout(patient(SOON))
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        for number in 0..2 {
            // A directory that is left names a host that no longer exists.
            let _ = std::fs::remove_dir_all(Relayed::files(&self.hosts, number));
        }
    }
}

/// What another user runs to pass on to PE 0 what arrives at a socket, and to return the answers.
#[derive(Clone)]
struct Relay {
    /// All that has passed.
    copy: Arc<Mutex<Vec<u8>>>,
    /// Returns what the relay does to a piece.
    deed: Arc<dyn Fn(Piece) -> Deed + Send + Sync>,
}

impl Relay {
    fn serve(&self, listener: &TcpListener) {
        loop {
            let (client, _) = listener.accept().expect("a connection");
            let place: SocketAddr = PLACE.parse().expect("an address");
            // If PE 0 does not listen yet, the other PEs try again.
            let Ok(pe_0) = TcpStream::connect(place) else {
                continue;
            };

            self.start_passing(&client, &pe_0, false);
            self.start_passing(&pe_0, &client, true);
        }
    }

    /// Starts a thread for one direction of a connection.
    fn start_passing(&self, from: &TcpStream, to: &TcpStream, is_of_pe_0: bool) {
        let from = from.try_clone().expect("a descriptor");
        let to = to.try_clone().expect("a descriptor");
        let relay = self.clone();
        thread::spawn(move || {
            // The processes may have ended.
            let _ = relay.pass(&from, &to, is_of_pe_0);
            let _ = to.shutdown(Shutdown::Write);
        });
    }

    fn pass(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        is_of_pe_0: bool,
    ) -> io::Result<()> {
        // The end that connects waits for the first part.
        let mut left = HANDSHAKE;
        while left > 0 {
            let mut bytes = [0; HANDSHAKE];
            let nbytes = from.read(&mut bytes[..left])?;
            if nbytes == 0 {
                return Ok(());
            }

            self.keep(&bytes[..nbytes]);
            to.write_all(&bytes[..nbytes])?;
            left -= nbytes;
        }

        let mut delayed = Vec::new();
        for number in 0.. {
            let mut size = [0; 4];
            from.read_exact(&mut size)?;
            let mut sealed = vec![0; u32::from_le_bytes(size) as usize];
            from.read_exact(&mut sealed)?;
            self.keep(&sealed);
            let mut piece = [&size[..], &sealed].concat();

            match (self.deed)(Piece { is_of_pe_0, number }) {
                Deed::Pass => {
                    piece.append(&mut delayed);
                    to.write_all(&piece)?;
                }
                Deed::Change => {
                    // The first byte after the size.
                    piece[4] ^= 1;
                    to.write_all(&piece)?;
                }
                Deed::Drop => {}
                Deed::Delay => delayed = piece,
                Deed::Hold => loop {
                    thread::park();
                },
                Deed::Cut => {
                    from.shutdown(Shutdown::Both)?;
                    return to.shutdown(Shutdown::Both);
                }
            }
        }
        Ok(())
    }

    fn keep(&self, bytes: &[u8]) {
        self.copy.lock().expect("no panic").extend(bytes);
    }
}

/// The bytes of a handshake from either end, which precede the pieces.
const HANDSHAKE: usize = 72;

/// PEs 1 and 2 reach PE 0 through a relay of another user, which learns nothing.
fn a_relay_sees_no_record() {
    let relayed = Relayed::new("y", |_| Deed::Pass);
    relayed
        .job(&program!("statics.c"))
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .run()
        .assert_ok(3);

    let seen = relayed.copy.lock().expect("no panic");
    // More than the handshakes, so records have passed.
    assert!(seen.len() > 500, "{} bytes", seen.len());
    // The name under which PE 0 passes on the secret of the sockets of the node.
    let word = b"rushmem-secret";
    assert!(!seen.windows(word.len()).any(|bytes| bytes == word));
}

/// Another user listens at the place of one job, and passes on to PE 0 of another job with its
/// secret.
fn jobs_with_one_secret_are_not_led_into_each_other() {
    const LED: &str = "export SHMEM_SIZE=2; SHMEM_RANK=0 \"$0\" & a=$!; export SHMEM_JOB=10.77.0.1:6000; \
        SHMEM_RANK=1 \"$0\"; s=$?; wait $a; exit $s";

    let hosts = Hosts::new("l", 1);
    as_another_user(&hosts, 0, || {
        let listener = TcpListener::bind("10.77.0.1:6000").expect("it is free");
        let relay = Relay {
            copy: Arc::default(),
            deed: Arc::new(|_| Deed::Pass),
        };
        thread::spawn(move || relay.serve(&listener));
    });

    let job = script(&hosts, LED, &program!("statics.c")).env("SHMEM_JOIN_LIMIT", "3s");
    let outcome = job.run();
    assert!(!outcome.status.success(), "{outcome}");
    let words = "10.77.0.1:6000: it does not know the secret of this job";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

/// Runs a job for each of the first `n` pieces of each direction, in which a relay does this to the
/// piece. Each ends with one of the messages.
fn start_fails(test: &str, n: usize, deed: Deed, messages: &[&str]) {
    // The relays exist until the jobs have ended.
    let mut relays = Vec::new();
    let mut jobs = Vec::new();
    for is_of_pe_0 in [true, false] {
        for number in 0..n {
            let chosen = Piece { is_of_pe_0, number };
            let test = format!("{test}{}", relays.len());
            let relayed = Relayed::new(&test, move |piece| {
                if piece == chosen { deed } else { Deed::Pass }
            });

            let job = relayed.job(&program!("statics.c"));
            jobs.push(job.env("SHMEM_JOIN_LIMIT", "2s"));
            relays.push(relayed);
        }
    }

    for outcome in Job::run_sleepers(jobs) {
        assert!(!outcome.status.success(), "{outcome}");
        let is_named = messages.iter().any(|words| outcome.stderr.contains(words));
        assert!(is_named, "{outcome}");
    }
}

const HOLDS_BACK: &str = "or a process in between holds back what it sends";
const CHANGED: &str = "somebody has changed, left out or exchanged what was sent";
/// The first message of a PE is held back, or is refused for its late arrival.
const AWAITED: &str = "have not joined within 2 s";

fn a_relay_that_holds_back_does_not_delay_a_start_for_ever() {
    start_fails("u", 4, Deed::Hold, &[HOLDS_BACK, AWAITED]);
}

fn a_relay_that_leaves_out_a_piece_is_noticed() {
    start_fails("d", 3, Deed::Drop, &[CHANGED, HOLDS_BACK, AWAITED]);
}

fn a_relay_that_exchanges_pieces_is_noticed() {
    start_fails("x", 2, Deed::Delay, &[CHANGED, HOLDS_BACK, AWAITED]);
}

fn a_relay_that_changes_a_piece_is_noticed() {
    start_fails("c", 3, Deed::Change, &[CHANGED]);
}

/// PE 1 has not learnt yet who serves the meeting.
fn a_pe_that_loses_the_meeting_at_its_start_names_pe_0() {
    let cut = Piece {
        is_of_pe_0: true,
        number: 1,
    };
    let relayed = Relayed::new("z", move |piece| {
        if piece == cut { Deed::Cut } else { Deed::Pass }
    });

    let outcome = relayed.job(&program!("statics.c")).run();
    assert!(!outcome.status.success(), "{outcome}");
    let words = "PE 1: PE 0, whose process serves the meeting of this job, ended";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

/// The processes of the second job start while PE 0 of the first still works after its last call.
fn the_next_job_may_have_the_same_place() {
    const TWICE: &str = "export SHMEM_SIZE=3; SHMEM_RANK=0 \"$0\" & a=$!; SHMEM_RANK=1 \"$0\" & b=$!; \
        SHMEM_RANK=2 \"$0\" && wait $b || exit; SHMEM_RANK=0 \"$0\" & c=$!; SHMEM_RANK=1 \"$0\" & d=$!; \
        SHMEM_RANK=2 \"$0\" && wait $a && wait $d && wait $c";

    let hosts = Hosts::new("a", 1);
    let outcome = script(&hosts, TWICE, &scenario!("slow_after_finalize.c")).run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.stdout.matches("PASS").count(), 2, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
}

/// The processes of the second job, whose secret is another one or the same, start while the first
/// job runs, and wait until it ends.
fn the_next_job_waits_for_the_last_one() {
    const NEXT: &str = "log=$1; export SHMEM_SIZE=2; \
        for r in 0 1; do SHMEM_RANK=$r \"$0\" \"$log\" & a=\"$a $!\"; done; \
        until [ -e \"$log.begun\" ]; do sleep 0.1; done; touch \"$log\"; export SHMEM_JOB_SECRET=$2; \
        for r in 0 1; do SHMEM_RANK=$r \"$0\" \"$log\" 2>>\"$log\" & a=\"$a $!\"; done; \
        until grep -q '^PE 1 has waited' \"$log\"; do sleep 0.1; done; touch \"$log.end\"; \
        s=0; for i in $a; do wait $i || s=$?; done; cat \"$log\" >&2; exit $s";

    let hosts = Hosts::new("n", 1);
    for (secret, answer) in [
        ("another", "it does not know the secret of this job"),
        ("told to nobody", "a job with this SHMEM_JOB and secret runs there"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let outcome = script(&hosts, NEXT, &scenario!("ends_with_a_file.c"))
            .arg(dir.path().join("log").display())
            .arg(secret)
            .env("SHMEM_JOIN_LIMIT", "8s")
            .run();
        assert!(outcome.status.success(), "{outcome}");
        assert_eq!(outcome.stdout.matches("n_pes 2").count(), 2, "{outcome}");
        assert!(outcome.stderr.contains(answer), "{outcome}");
    }
}

/// Returns a job of a program that serves meetings within a limit of descriptors.
fn limited(limit: &str, program: &Path) -> Job {
    let limits = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    Job::direct(program)
        .wrap(["sh", "-c", &limits])
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .timeout(patient(SOON))
}

fn more_pes_than_descriptors_meet() {
    let job = limited("-Sn 64", &scenario!("serves_many.c"));
    let outcome = job.arg(1).arg(75).run();
    assert!(outcome.status.success(), "{outcome}");
}

fn too_few_descriptors_are_named() {
    let job = limited("-n 32", &scenario!("by_id.c"));
    let outcome = job.arg(75).arg("driver").run();

    assert!(!outcome.status.success(), "{outcome}");
    let words = "may have 32 files open, but needs one for each of the 75 PEs";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

fn a_driver_of_many_jobs_keeps_no_descriptor() {
    let job = limited("-n 64", &scenario!("serves_many.c"));
    let outcome = job.arg(30).arg(2).run();
    assert!(outcome.status.success(), "{outcome}");
}

fn a_mistaken_number_of_pes_takes_no_memory() {
    const ALONE: &str = "ulimit -v 4000000; SHMEM_RANK=0 SHMEM_SIZE=4294967295 exec \"$0\"";

    let hosts = Hosts::new("e", 1);
    let job = script(&hosts, ALONE, &program!("statics.c")).env("SHMEM_JOIN_LIMIT", "1s");
    let outcome = job.run();

    assert!(!outcome.status.success(), "{outcome}");
    let words = "PEs 1-10000 and 4294957294 more have not joined within 1 s";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

/// Each of two hosts has an output of its own, as pods have.
fn each_host_says_why_the_job_ended() {
    const TWO: &str = "export SHMEM_SIZE=4; for r in 0 1 2; do SHMEM_RANK=$r unshare --uts sh -c \
        'hostname host$((SHMEM_RANK / 2)) && exec \"$0\"' \"$0\" & done; wait; exit 1";

    let hosts = Hosts::new("o", 1);
    let job = script(&hosts, TWO, &program!("statics.c")).env("SHMEM_JOIN_LIMIT", "2s");
    let outcome = job.run();

    let reason = "PE 3 has not joined within 2 s";
    let lines = outcome.stderr.lines().filter(|line| line.contains(reason));
    assert_eq!(lines.count(), 2, "{outcome}");
}

testkit::module_tests! {
    a_place_of_another_user_is_refused,
    a_relay_sees_no_record,
    jobs_with_one_secret_are_not_led_into_each_other,
    a_relay_that_holds_back_does_not_delay_a_start_for_ever,
    a_relay_that_leaves_out_a_piece_is_noticed,
    a_relay_that_exchanges_pieces_is_noticed,
    a_relay_that_changes_a_piece_is_noticed,
    a_pe_that_loses_the_meeting_at_its_start_names_pe_0,
    the_next_job_may_have_the_same_place,
    the_next_job_waits_for_the_last_one,
    more_pes_than_descriptors_meet,
    too_few_descriptors_are_named,
    a_driver_of_many_jobs_keeps_no_descriptor,
    a_mistaken_number_of_pes_takes_no_memory,
    each_host_says_why_the_job_ended,
}
