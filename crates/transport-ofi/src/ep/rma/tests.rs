//! Unit tests of `rma`: which writes are tracked, and how the others are flushed.
#![allow(unsafe_code)]

use super::*;
use crate::settings::Tuning;
use crate::transport::tests::{
    Ofi, STREAMS, TestEndpoint, in_flight, job, new_endpoint, start, with, word_of,
};
use crate::wire::OfiWire;
use rushmem_transport::engine::{PostOutcome, Wire, WriteEnd, WriteSent, keys};
use rushmem_transport::{Pe, RemoteAddr, Segment};
use testkit::eventually;

/// Starts a read of a word of PE 1, which connects the endpoint with it, and returns the word.
fn start_read(ofi: &Ofi, endpoint: &TestEndpoint) -> RmaAddress {
    ofi.network()
        .inserted(Pe(1))
        .expect("it has published its address");
    let word = word_of(ofi, Pe(1)).expect("memory of this PE");
    start(ofi, endpoint, |ep| ep.read_and_forget(word));
    word
}

fn await_read(ofi: &Ofi, endpoint: &TestEndpoint) {
    eventually("the read is over", || {
        ofi.progress().poll().expect("no loss");
        let polled = with(endpoint, |wire| wire.ep().map(|ep| ep.poll(|_| ())));
        polled.is_some_and(|polled| polled.is_ok()) && in_flight(endpoint) == Some(0)
    });
}

/// libfabric keeps what a PE does not take, so only a limited number of writes is untracked until a
/// completion shows that the PE takes them.
#[test]
fn after_a_number_of_untracked_writes_one_is_tracked() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let endpoint = new_endpoint(&ofi).expect("the first");
    let to = start_read(&ofi, &endpoint);

    let word = 7u64;
    // SAFETY: `word` lives until all writes below have started, and they are injected.
    let source = unsafe { SourceBuf::new((&raw const word).cast(), 8) };
    let write = || {
        with(&endpoint, |wire| {
            wire.ep().map(|ep| ep.write_untracked(to, &source))
        })
    };
    await_read(&ofi, &endpoint);
    for round in 0..2 {
        for n_before in 0..MAX_UNTRACKED {
            if n_before == MAX_UNTRACKED / 2 {
                start(&ofi, &endpoint, |ep| ep.read_and_forget(to));
            }
            let started = Some(Some(Ok(PostStatus::Started)));
            assert_eq!(write(), started, "round {round}, after {n_before}");
        }
        assert_eq!(write(), Some(None), "round {round}");
        await_read(&ofi, &endpoint);
    }
    assert_eq!(
        in_flight(&endpoint),
        Some(0),
        "an untracked write has a cell"
    );
}

/// Writes a word to PE 1 over the wire of an endpoint. Returns true if the write was not tracked.
fn is_untracked(ofi: &Ofi, wire: &mut OfiWire) -> bool {
    let start = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };
    let to = keys::find(ofi.network(), Pe(1), start, 8).expect("memory of this PE");
    let end = WriteEnd {
        awaited: true,
        source_free: false,
        sent: WriteSent::Now,
    };
    let word = 7u64;
    // SAFETY: `word` lives during the write, which is injected.
    let mut source = unsafe { SourceBuf::new((&raw const word).cast(), 8) };

    wire.unflushed.clear();
    let posted = wire.write(ofi.network(), to, &mut source, end);
    assert_eq!(posted, Ok(PostOutcome::Done));
    wire.unflushed.contains(&Pe(1))
}

/// The read may be carried out before the write.
#[test]
fn a_read_does_not_flush_a_write_that_was_issued_after_it() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let endpoint = new_endpoint(&ofi).expect("the first");
    start_read(&ofi, &endpoint);
    await_read(&ofi, &endpoint);

    let is_flushed = |wire: &mut OfiWire| wire.is_flushed(ofi.network(), Pe(1));
    with(&endpoint, |wire| {
        assert!(is_untracked(&ofi, wire));
        assert_eq!(is_flushed(wire), Ok(false), "a read is sent");
        assert!(!is_untracked(&ofi, wire), "a flush was awaited");
        assert!(is_untracked(&ofi, wire));
    });
    for n_reads in 1..=2 {
        await_read(&ofi, &endpoint);
        let over = n_reads == 2;
        assert_eq!(
            with(&endpoint, is_flushed),
            Ok(over),
            "after {n_reads} reads"
        );
    }
}

/// In a loop of a write and a flush, each flush would otherwise send a read.
#[test]
fn the_write_after_a_flush_is_tracked() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let endpoint = new_endpoint(&ofi).expect("the first");
    start_read(&ofi, &endpoint);
    await_read(&ofi, &endpoint);

    with(&endpoint, |wire| {
        assert!(is_untracked(&ofi, wire));
        assert!(is_untracked(&ofi, wire), "nothing was flushed");
        assert_eq!(
            wire.is_flushed(ofi.network(), Pe(1)),
            Ok(false),
            "a read is sent"
        );
    });
    await_read(&ofi, &endpoint);

    with(&endpoint, |wire| {
        assert!(!is_untracked(&ofi, wire), "a flush was awaited");
        assert_eq!(wire.in_flight(), 1);
    });
}
