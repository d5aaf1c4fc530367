//! The arguments that a write passes to libfabric by address. They are allocated once for an ep, so
//! that a write stores only the values that may differ from those of the write before.
#![allow(unsafe_code)]

use core::ffi::c_void;
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

/// An address in a peer's memory, as libfabric's RMA calls take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RmaAddress {
    pub(crate) pe: u32,
    pub(crate) fi_addr: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
}

/// The arguments of a write of one range to one range.
pub(super) struct WriteArguments {
    message: fi::fi_msg_rma,
    lists: NonNull<Lists>,
}

/// The lists to which the message points, of one element each. They are in a box, so that the
/// pointers stay valid when the owner is moved.
struct Lists {
    iov: Cell<fi::iovec>,
    desc: Cell<*mut c_void>,
    rma: Cell<fi::fi_rma_iov>,
}

// SAFETY: a `WriteArguments` owns the lists to which `lists` and `message` point. No method
// accesses memory through the addresses in the lists.
unsafe impl Send for WriteArguments {}

impl WriteArguments {
    pub(super) fn new() -> WriteArguments {
        let lists = NonNull::from(Box::leak(Box::new(Lists {
            iov: Cell::new(fi::iovec {
                iov_base: null_mut(),
                iov_len: 0,
            }),
            desc: Cell::new(null_mut()),
            rma: Cell::new(fi::fi_rma_iov {
                addr: 0,
                len: 0,
                key: 0,
            }),
        })));

        // SAFETY: `lists` points to the box that was leaked above, to which nothing else has a
        // pointer.
        let Lists { iov, desc, rma } = unsafe { lists.as_ref() };

        let message = fi::fi_msg_rma {
            msg_iov: iov.as_ptr(),
            desc: desc.as_ptr(),
            iov_count: 1,
            addr: 0,
            rma_iov: rma.as_ptr(),
            rma_iov_count: 1,
            context: null_mut(),
            data: 0,
        };

        WriteArguments { message, lists }
    }

    /// Returns the arguments of a write of `from`, whose descriptor is `desc`, with `context` for
    /// its completion. They are valid until the next call.
    #[inline(always)]
    pub(super) fn of(
        &mut self,
        to: RmaAddress,
        from: LocalBuf,
        desc: *mut c_void,
        context: *mut c_void,
    ) -> &fi::fi_msg_rma {
        // SAFETY: `lists` points to the box that `new` has leaked, and that only the drop of `self`
        // frees. Its fields change through cells only, so shared references to it may exist.
        let lists = unsafe { self.lists.as_ref() };

        lists.iov.set(fi::iovec {
            iov_base: from.base.cast(),
            iov_len: from.nbytes,
        });
        lists.desc.set(desc);

        lists.rma.set(fi::fi_rma_iov {
            addr: to.address,
            len: from.nbytes,
            key: to.key,
        });

        self.message.addr = to.fi_addr;
        self.message.context = context;
        &self.message
    }
}

impl Drop for WriteArguments {
    fn drop(&mut self) {
        // SAFETY: `lists` is the box that `new` has leaked, and only this drop frees it. The
        // results of `of` borrow `self`, so none is left that points to it.
        drop(unsafe { Box::from_raw(self.lists.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_finds_all_of_its_arguments_wherever_they_were_moved() {
        let mut moved = Box::new(WriteArguments::new());
        for nbytes in [8, 9] {
            let from = LocalBuf {
                base: std::ptr::without_provenance_mut(64),
                nbytes,
            };
            let to = RmaAddress {
                pe: 1,
                fi_addr: 2,
                address: 3,
                key: 4,
            };
            let message = moved.of(to, from, null_mut(), null_mut());

            // SAFETY: `msg_iov` points into the lists of `moved`, which lives.
            let iov = unsafe { *message.msg_iov };
            // SAFETY: `rma_iov` points into the lists of `moved`, which lives.
            let rma = unsafe { *message.rma_iov };
            assert_eq!((iov.iov_base.addr(), iov.iov_len), (64, nbytes));
            assert_eq!(
                (message.addr, rma.addr, rma.len, rma.key),
                (2, 3, nbytes, 4)
            );
            assert_eq!(
                (message.iov_count, message.rma_iov_count, message.data),
                (1, 1, 0)
            );
        }
    }
}
