//! Unit tests of `poll`: the errors that a queue reports.
#![allow(unsafe_code)]

use super::*;
use crate::transport::tests::with_ep;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

/// An error that a queue reports.
#[derive(Clone, Copy)]
enum QueueReport {
    /// An operation with this context failed by this error.
    Failed(*mut c_void, i32),
    /// There is an error, and reading it returns this code.
    Unreadable(isize),
}

thread_local! {
    static NEXT: RefCell<Vec<QueueReport>> = const { RefCell::new(Vec::new()) };
    static READS_OF_ERRORS: Cell<u32> = const { Cell::new(0) };
}

unsafe extern "C" fn read(_: *mut fi::fid_cq, _: *mut c_void, _: usize) -> isize {
    let is_empty = NEXT.with_borrow(Vec::is_empty);
    -(if is_empty {
        fi::FI_EAGAIN as isize
    } else {
        fi::FI_EAVAIL as isize
    })
}

unsafe extern "C" fn readerr(_: *mut fi::fid_cq, to: *mut fi::fi_cq_err_entry, _: u64) -> isize {
    READS_OF_ERRORS.set(READS_OF_ERRORS.get() + 1);
    match NEXT.with_borrow(|next| next[0]) {
        QueueReport::Unreadable(code) => code,
        QueueReport::Failed(context, error) => {
            NEXT.with_borrow_mut(|next| next.remove(0));
            // SAFETY: `to` is valid for writes, by the contract of libfabric.
            let to = unsafe { &mut *to };
            to.op_context = context;
            to.err = error;
            to.len = 100;
            to.olen = 20;
            1
        }
    }
}

/// Polls an ep whose queue reports these errors.
fn poll(
    ep: &mut FiEndpoint,
    reports: &[QueueReport],
    arrived: impl FnMut(ReceiveOutcome<'_>),
) -> Result<usize, EpFailure> {
    NEXT.set(reports.to_vec());
    READS_OF_ERRORS.set(0);

    let cq = ep.cq.cq.raw();
    // SAFETY: `cq` is open, and only this thread uses it.
    let real = unsafe { (*cq).ops };
    // SAFETY: `real` points to the functions of the open queue.
    let mut ops = fi::fi_ops_cq {
        read: Some(read),
        readerr: Some(readerr),
        ..unsafe { *real }
    };
    // SAFETY: `cq` is open, and `ops` lives until it is replaced below.
    unsafe { (*cq).ops = &raw mut ops };

    let polled = ep.poll(arrived);
    // SAFETY: `cq` is open, and `real` points to its own functions.
    unsafe { (*cq).ops = real };
    polled
}

#[test]
fn an_error_that_cannot_be_read_ends_the_poll() {
    with_ep(|ep| {
        let again = -(fi::FI_EAGAIN as isize);
        let other = -(fi::FI_EIO as isize);
        for (code, reads) in [(0, READS + 1), (again, READS + 1), (other, 1)] {
            let polled = poll(ep, &[QueueReport::Unreadable(code)], |_| ());
            let failure = polled.expect_err("an error");
            assert_eq!((failure.pe, READS_OF_ERRORS.get()), (None, reads), "{code}");
            assert!(
                failure.why.ends_with("where its queue reports an error"),
                "{}",
                failure.why
            );
        }
    });
}

#[test]
fn a_receive_that_fails_is_reported_unless_it_was_canceled() {
    with_ep(|ep| {
        let mut what_comes_of = |error| {
            let op = *ep.free.last().expect("a free cell");
            ep.free.pop();
            ep.ops[op as usize].use_ = BufferUse::Receive;
            ep.receiving = 1;

            let context = ep.context(op);
            let mut came = Vec::new();
            let polled = poll(ep, &[QueueReport::Failed(context, error)], |end| {
                came.push(match end {
                    ReceiveOutcome::Whole(_) => "a message".to_owned(),
                    ReceiveOutcome::Truncated { start, nbytes } => {
                        format!("{} of {nbytes} bytes", start.len())
                    }
                    ReceiveOutcome::Failed { why, .. } => why,
                });
            });

            assert_eq!(polled.ok(), Some(0));
            assert_eq!(ep.receiving, 0, "the buffer is free again");
            came
        };

        assert_eq!(what_comes_of(libc::ECANCELED), [""; 0]);
        assert_eq!(
            what_comes_of(fi::FI_ETRUNC as i32),
            [format!("{HEAD} of 120 bytes")]
        );

        let failed = what_comes_of(libc::ECONNRESET);
        assert!(
            failed.len() == 1 && failed[0].ends_with(", of a message"),
            "{failed:?}"
        );
    });
}
