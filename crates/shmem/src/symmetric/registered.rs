//! Memory of the program that is symmetric for the time of a call (`shmemx_buffer_register`).
//!
//! Nobody has a reference to registered memory, to which peers may write: the call has borrowed it
//! exclusively, and lends cells instead. A guard, whose drop would end the registration, could be
//! leaked, so that the borrow would end before it. The memory is pinned, so a registration within
//! another one, or by another thread, moves nothing that operations in flight access.
#![allow(unsafe_code)]

use crate::agreement::{AgreementStep, EnteredStep};
use crate::element::PlainData;
use crate::job::Shmem;
use crate::panics::EndIfPanicking;
use crate::symmetric::block::{complete, digest_of_type};
use crate::symmetric::view::SymSlice;
use crate::threads::Threads;
use rushmem_runtime::{extension_constants, register_buffer, unregister_buffer};
use std::fmt;

/// What the message says of another PE that is not in the same registration.
const REGISTERS_ELSE: &str = "registers something else, or is in another call; all PEs register \
    memory of the same type and length, in the same order";
/// What the message says of another PE that does not end the same registration.
const ENDS_ELSE: &str = "does something else than to return from the same closure; all PEs make \
    the same collective calls there";

/// The error of [`Shmem::with_registered`]: the memory of a PE cannot be registered, or the heap
/// has no room for its pages. It is the same on all PEs. A warning says why, and names the PE whose
/// memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRegistered;

impl fmt::Display for NotRegistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory of a PE cannot be registered; a warning says why")
    }
}

impl std::error::Error for NotRegistered {}

impl<C: Threads> Shmem<C> {
    /// Calls `f` with the elements of `memory`, which are symmetric until it returns, and keep
    /// their values (`shmemx_buffer_register`, an extension). All PEs pass the same number of
    /// elements. Collective, also its end, which waits until all PEs have returned from their `f`
    /// and completes the operations that this PE has issued.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let mut field = vec![0.5; 1000];
    /// shmem.with_registered(&mut field, |field| field[0].on(shmem.next()).write(17.0))?;
    /// assert_eq!(field[..2], [17.0, 0.5]);
    /// # Ok::<(), shmem::NotRegistered>(())
    /// ```
    ///
    /// To register memory takes as long as to copy it a few times. The heap needs room for its
    /// pages. Accesses are as fast as those of an array if the memory begins at the same byte of a
    /// page on all PEs, as a large vector does.
    ///
    /// A panic in `f` ends the job, as in an [epoch](crate::SymArray::epoch), since the other PEs
    /// wait at the end. The job ends with a message if another PE registers or allocates something
    /// else, or finalizes.
    ///
    /// # Errors
    /// If the memory of a PE is on a stack, symmetric already, shared with other processes, or
    /// aligned otherwise than on the other PEs (modulo 16 bytes); if the heap has no room for it,
    /// or consists of reserved huge pages; or if the kernel refuses. Memory that shares a page with
    /// memory that is registered meanwhile may be refused, too, since that must not move: register
    /// two parts of one vector as one instead. The call then has had no effect.
    #[doc(alias = "shmemx_buffer_register")]
    #[doc(alias = "shmemx_buffer_unregister")]
    pub fn with_registered<T: PlainData, R>(
        &self,
        memory: &mut [T],
        f: impl FnOnce(&SymSlice<T>) -> R,
    ) -> Result<R, NotRegistered> {
        let call = call!("with_registered");
        let len = memory.len();
        let nbytes = size_of_val(memory);
        let start = memory.as_mut_ptr();
        let digest = digest_of_type::<T>(len);
        EnteredStep::new(call).compare(
            AgreementStep::Register { digest },
            REGISTERS_ELSE,
            REGISTERS_ELSE,
        );

        let mut elements = start;
        if nbytes > 0 {
            let pinned = extension_constants::SHMEMX_BUFFER_PINNED;
            // SAFETY: `memory` is borrowed exclusively until this call ends, so no thread uses its
            // bytes. All memory that Rust registers is pinned, so nothing in use moves.
            let symmetric = unsafe { register_buffer(call, start.cast(), nbytes, pinned) };
            if symmetric.is_null() {
                return Err(NotRegistered);
            }
            elements = symmetric.cast();
        }

        let result = {
            let _end = EndIfPanicking;
            // SAFETY: `len` aligned elements, of which any bytes are values. They are registered
            // until `f` has returned on all PEs, and `f` cannot keep the reference.
            f(unsafe { SymSlice::new(elements, len) })
        };

        complete(call, elements.addr()..elements.addr() + nbytes);
        EnteredStep::new(call).compare(AgreementStep::Unregister { digest }, ENDS_ELSE, ENDS_ELSE);
        if nbytes > 0 {
            // SAFETY: this PE has completed what it has issued. The call begins with a barrier,
            // which a PE enters only after it has done the same. So no PE uses the memory any more.
            let ended = unsafe { unregister_buffer(call, start.cast()) };
            assert_eq!(ended, 0, "this call has registered it");
        }
        Ok(result)
    }
}
