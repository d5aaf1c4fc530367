//! Random operations against a model for a while. The memory of every PE must not grow.

use conformance::{Case, Member, soak};
use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_tcp::{PROVIDER, Tuning, open};
use std::time::Duration;

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    pages * 4096
}

fn flat_for(member: &Member, time: Duration) {
    // After this, all buffers have their final size.
    soak(member, time / 4, |_| {});
    let before = resident();

    let mut most = before;
    let done = soak(member, time, |_| most = most.max(resident()));
    most = most.max(resident());

    // The second soak has a model of its own, a mebibyte per PE, and batches are allocated and
    // freed.
    let allowed = before + (24 << 20);
    assert!(
        most < allowed,
        "from {before} to {most} bytes in {} batches",
        done.batches
    );
}

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

fn tiny(with: &Open) -> Result<Box<dyn Transport>, Error> {
    open(with, Tuning::tiny())
}

fn seconds(member: &Member) {
    flat_for(member, Duration::from_secs(4));
}

fn minutes(member: &Member) {
    flat_for(member, Duration::from_secs(600));
}

fn case(sizes: &'static [u32], limit: u64, body: fn(&Member)) -> Case {
    Case {
        sizes,
        heap_bytes: 8 << 20,
        limit: Duration::from_secs(limit),
        body,
    }
}

#[test]
fn five_seconds() {
    conformance::run("soak::five_seconds", usual, case(&[3], 60, seconds));
}

#[test]
fn five_seconds_with_tiny_queues() {
    conformance::run(
        "soak::five_seconds_with_tiny_queues",
        tiny,
        case(&[2], 60, seconds),
    );
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn ten_minutes() {
    conformance::run("soak::ten_minutes", usual, case(&[4], 900, minutes));
}
