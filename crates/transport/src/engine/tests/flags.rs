//! Unit tests of the signals that set flags of the library.

use super::super::wire::StreamOrder;
use super::{Called, PEER, TestWire, origin, put, signal_after_all};
use crate::engine::Origin;
use crate::{AmoOp, AmoRequest, Completion, RemoteAddr, Segment, SignalOrder};

#[test]
fn a_flag_is_a_write_where_the_wire_keeps_the_order_of_everything() {
    let signal = |segment, op| AmoRequest::of_word(RemoteAddr { segment, offset: 0 }, op, 1);
    let flag = signal(Segment::Internal, AmoOp::Set);
    let counter = signal(Segment::Internal, AmoOp::Add);
    let of_program = signal(Segment::Heap, AmoOp::Set);

    let ordered = StreamOrder::Everything;
    let partly_ordered = StreamOrder::WritesBeforeMessages;
    for (order, signal, nbytes, calls) in [
        (ordered, flag, 0, &[Called::Write][..]),
        (ordered, flag, 8, &[Called::Write, Called::Write]),
        (ordered, counter, 8, &[Called::Send]),
        (ordered, of_program, 8, &[Called::Send]),
        (partly_ordered, flag, 8, &[Called::Send]),
    ] {
        let mut origin = origin();
        origin.caps.order = order;
        let mut put = put(nbytes, Completion::Now);
        let done = origin.put_signal(PEER, &mut put, &signal, SignalOrder::AfterAll);
        assert_eq!(done, Ok(()));

        origin.wire.calls.retain(|call| *call != Called::Poll);
        assert_eq!(origin.wire.calls, calls, "{order:?}, {signal:?}");
    }
}

/// Sets a flag of the library with a put of `nbytes` bytes before it.
fn set_flag(origin: &mut Origin<TestWire>, nbytes: usize, order: SignalOrder) {
    let flag = RemoteAddr {
        segment: Segment::Internal,
        offset: 0,
    };
    let signal = AmoRequest::of_word(flag, AmoOp::Set, 1);
    let mut put = put(nbytes, Completion::Now);
    let done = origin.put_signal(PEER, &mut put, &signal, order);
    assert_eq!(done, Ok(()));
    origin.wire.calls.retain(|call| *call != Called::Poll);
}

/// A write would wait for a request that the target's CPU has not carried out.
#[test]
fn the_next_value_of_a_lone_flag_is_a_write_unless_a_request_precedes_it() {
    use SignalOrder::{AfterAll, AfterAllNext};
    for (nbytes, order, follows_request, call) in [
        (0, AfterAllNext, false, Called::Write),
        (0, AfterAll, false, Called::Send),
        (8, AfterAllNext, false, Called::Send),
        (0, AfterAllNext, true, Called::Send),
    ] {
        let mut origin = origin();
        origin.caps.lone_flags_are_writes = true;
        origin.wire.acknowledges = true;
        if follows_request {
            signal_after_all(&mut origin);
        }

        set_flag(&mut origin, nbytes, order);
        let last = origin.wire.calls.last();
        assert_eq!(
            last,
            Some(&call),
            "{nbytes} bytes, {order:?}, {follows_request}"
        );
    }
}

#[test]
fn a_flag_after_a_batch_is_not_written() {
    let mut origin = origin();
    origin.caps.lone_flags_are_writes = true;
    origin.wire.acknowledges = true;
    origin.batches = true;
    origin.batcher.session(true);
    let done = origin.transfer(PEER, &mut put(8, Completion::AtQuiet));
    assert_eq!(done, Ok(()));
    assert!(origin.batcher.has_any(PEER));

    set_flag(&mut origin, 0, SignalOrder::AfterAllNext);
    assert_eq!(origin.wire.calls, [Called::Send]);
}

/// A reader that waits for a value at least as large must see none before all of it has come.
#[test]
fn a_lone_flag_is_no_larger_than_before_until_its_last_byte_is_written() {
    for value in [1, 2, 255, 256, 511, 65_536, (5 << 36) + 256, 1 << 36] {
        let mut origin = origin();
        origin.caps.lone_flags_are_writes = true;
        let flag = RemoteAddr {
            segment: Segment::Internal,
            offset: 40,
        };
        let signal = AmoRequest::of_word(flag, AmoOp::Set, value);
        let mut nothing = put(0, Completion::Now);
        let done = origin.put_signal(PEER, &mut nothing, &signal, SignalOrder::AfterAllNext);
        assert_eq!(done, Ok(()));

        let mut bytes = (value - 1).to_le_bytes();
        let mut seen = Vec::new();
        for (to, byte) in &origin.wire.written {
            assert_eq!(to.segment, flag.segment);
            bytes[(to.offset - flag.offset) as usize] = *byte;
            seen.push(u64::from_le_bytes(bytes));
        }
        assert_eq!(seen.pop(), Some(value));
        assert!(seen.iter().all(|seen| *seen < value), "{value}: {seen:?}");
    }
}

/// Later puts may be batched, which writes before a fence would prevent.
#[test]
fn a_lone_flag_orders_no_later_operation() {
    let mut origin = origin();
    origin.caps.lone_flags_are_writes = true;
    origin.caps.order = StreamOrder::WritesByFence;
    let done = origin.transfer(PEER, &mut put(64, Completion::AtQuiet));
    assert_eq!(done, Ok(()));

    set_flag(&mut origin, 0, SignalOrder::AfterAllNext);
    assert_eq!(origin.wire.calls, [Called::Write, Called::Write]);
    assert!(!origin.routes[PEER].has_writes_before);
}
