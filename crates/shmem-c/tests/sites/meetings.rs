//! Meetings among other users: a process that listens where PE 0 should, one that passes on what
//! others send, the next job at the same address; and meetings of many PEs with few descriptors.
//!
//! Other users are threads of these tests, in the network namespace of a host.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Uid;
use testkit::{Job, patient, program};

use crate::namespaces::Hosts;

/// The limit of a job that fails.
const SOON: Duration = Duration::from_secs(60);

/// The place of all meetings here, and that of a relay.
const PLACE: &str = "10.77.0.1:5000";
const RELAY: &str = "10.77.0.1:6000";

/// The user that is none of the job.
const OTHER_UID: u32 = 65534;

/// Calls `work` on host 0 as another user, in a thread.
fn as_another_user<T: Send>(hosts: &Hosts, work: impl FnOnce() -> T + Send) -> T {
    hosts.on(0, || {
        rustix::thread::set_thread_uid(Uid::from_raw(OTHER_UID)).expect("root may");
        work()
    })
}

/// Returns a job on host 0 whose processes run this script, with the program as `$0`.
fn script(hosts: &Hosts, script: &str, program: &Path) -> Job {
    let host = hosts.host(0);
    let job = Job::direct(program).wrap(["ip", "netns", "exec", &host, "sh", "-c", script]);
    job.env("SHMEM_JOB", PLACE)
        .env("SHMEM_JOB_SECRET", "told to nobody")
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .timeout(patient(SOON))
}

/// Starts a program once for each of 3 ranks, with one output for all, and waits for them.
const THREE: &str = "exec 2>&1; s=0; p=; for r in 0 1 2; do SHMEM_SIZE=3 SHMEM_RANK=$r \"$0\" & p=\"$p $!\"; done; \
    for i in $p; do wait $i || s=$?; done; exit $s";

fn a_place_of_another_user_is_refused() {
    let hosts = Hosts::new("h", 1);
    let held = as_another_user(&hosts, || TcpListener::bind(PLACE).expect("it is free"));
    let job = |limit| {
        let job = script(&hosts, THREE, &program!("slow_after_finalize.c"));
        job.env("SHMEM_JOIN_LIMIT", limit)
    };
    let outcome = job("2s").run();
    assert!(!outcome.status.success(), "{outcome}");
    let words = format!("a process of uid {OTHER_UID} listens at {PLACE} already, and has for 2 s");
    assert!(outcome.stdout.contains(&words), "{outcome}");
    // A job whose place is freed while it waits goes on.
    let mut waits = job("10s").start();
    waits.wait_for(|lines| {
        let mut lines = lines.iter();
        lines.find_map(|line| line.contains("tries again until").then_some(()))
    });
    drop(held);
    waits.finish().assert_ok(3);
}

/// Passes on what arrives at [`RELAY`] to [`PLACE`], and keeps a copy of all of it.
fn relay(listener: &TcpListener, copy: &Mutex<Vec<u8>>) {
    thread::scope(|scope| {
        loop {
            let (mut here, _) = listener.accept().expect("a connection");
            let place: SocketAddr = PLACE.parse().expect("an address");
            // If PE 0 does not listen yet, the other PEs try again.
            let Ok(mut there) = TcpStream::connect(place) else {
                continue;
            };
            let (mut back, mut forth) = (
                here.try_clone().expect("one"),
                there.try_clone().expect("one"),
            );
            scope.spawn(move || pass(&mut here, &mut there, copy));
            scope.spawn(move || pass(&mut forth, &mut back, copy));
        }
    });
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, copy: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(nbytes @ 1..) = from.read(&mut bytes) {
        copy.lock().expect("no panic").extend(&bytes[..nbytes]);
        if to.write_all(&bytes[..nbytes]).is_err() {
            break;
        }
    }
    // The other end may have closed the connection.
    let _ = to.shutdown(Shutdown::Write);
}

/// PEs 1 and 2 reach PE 0 through a process of another user, which learns nothing.
fn a_relay_sees_no_record() {
    const THROUGH: &str = "export SHMEM_SIZE=3; SHMEM_RANK=0 \"$0\" & a=$!; export SHMEM_JOB=10.77.0.1:6000; \
        SHMEM_RANK=1 \"$0\" & b=$!; SHMEM_RANK=2 \"$0\" || exit; wait $b && wait $a";
    let hosts = Hosts::new("y", 1);
    let copy = Arc::new(Mutex::new(Vec::new()));
    as_another_user(&hosts, || {
        let (listener, copy) = (TcpListener::bind(RELAY).expect("it is free"), copy.clone());
        thread::spawn(move || relay(&listener, &copy));
    });
    let job = script(&hosts, THROUGH, &program!("statics.c"));
    let job = job.env("SHMEM_ONNODE", "off").env("SHMEM_TRANSPORT", "tcp");
    job.run().assert_ok(3);
    let seen = copy.lock().expect("no panic");
    assert!(seen.len() > 500, "{} bytes", seen.len());
    // The name under which PE 0 passes on the secret of the sockets of the node.
    let word = b"rushmem-secret";
    assert!(!seen.windows(word.len()).any(|bytes| bytes == word));
}

/// The processes of the second job start while PE 0 of the first still works after its last call.
fn the_next_job_may_have_the_same_place() {
    const TWICE: &str = "export SHMEM_SIZE=3; SHMEM_RANK=0 \"$0\" & a=$!; SHMEM_RANK=1 \"$0\" & b=$!; \
        SHMEM_RANK=2 \"$0\" && wait $b || exit; SHMEM_RANK=0 \"$0\" & c=$!; SHMEM_RANK=1 \"$0\" & d=$!; \
        SHMEM_RANK=2 \"$0\" && wait $a && wait $d && wait $c";
    let hosts = Hosts::new("a", 1);
    let outcome = script(&hosts, TWICE, &program!("slow_after_finalize.c")).run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.stdout.matches("PASS").count(), 2, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");
}

/// Returns a job of a program that serves meetings within a limit of descriptors.
fn limited(limit: &str, program: &Path) -> Job {
    let limits = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    let job = Job::direct(program).wrap(["sh", "-c", &limits]);
    job.env("SHMEM_SYMMETRIC_SIZE", "16m")
        .timeout(patient(SOON))
}

fn more_pes_than_descriptors_meet() {
    let job = limited("-Sn 64", &program!("serves_many.c"));
    let outcome = job.arg(1).arg(75).run();
    assert!(outcome.status.success(), "{outcome}");
}

fn too_few_descriptors_are_named() {
    let job = limited("-n 32", &program!("by_id.c"));
    let outcome = job.arg(75).arg("driver").run();
    assert!(!outcome.status.success(), "{outcome}");
    let words = "may have 32 files open, but needs one for each of the 75 PEs";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

fn a_driver_of_many_jobs_keeps_no_descriptor() {
    let job = limited("-n 64", &program!("serves_many.c"));
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
    let mut said: VecDeque<&str> = outcome.stderr.lines().collect();
    said.retain(|line| line.contains("PE 3 has not joined within 2 s"));
    assert_eq!(said.len(), 2, "{outcome}");
}

testkit::module_tests! {
    a_place_of_another_user_is_refused,
    a_relay_sees_no_record,
    the_next_job_may_have_the_same_place,
    more_pes_than_descriptors_meet,
    too_few_descriptors_are_named,
    a_driver_of_many_jobs_keeps_no_descriptor,
    a_mistaken_number_of_pes_takes_no_memory,
    each_host_says_why_the_job_ended,
}
