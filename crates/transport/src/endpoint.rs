//! The verbs that a provider fills for each context.
//!
//! Required verbs are few and take bytes; strided forms are loops of the runtime. Verbs with a default
//! body are those that a network may do better than by the others.

use crate::{AmoOp, AmoWidth, Error, Pe, RemoteAddr};

/// One context's way to every connected PE.
///
/// Local buffers are `(pointer, nbytes)`, valid until the verb returns or, for the `_nbi` forms,
/// until the next [`quiet`](Endpoint::quiet). Addresses lie within the peer's segment and words are
/// aligned to their width. After an error local buffers are not used any more. Dropping an endpoint
/// completes what it issued.
pub trait Endpoint: Send {
    /// Copy to `dest` of `pe`; `source` is reusable on return.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes during the call.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    unsafe fn put(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
    ) -> Result<(), Error>;

    /// Start a [`put`](Endpoint::put) that is complete at the next quiet.
    ///
    /// # Safety
    /// As `put`, but until the next quiet returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    unsafe fn put_nbi(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
    ) -> Result<(), Error>;

    /// Copy from `source` of `pe`; `dest` holds the data on return.
    ///
    /// # Safety
    /// `dest` is valid for writes of `nbytes` bytes during the call.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    unsafe fn get(
        &mut self,
        pe: Pe,
        dest: *mut u8,
        source: RemoteAddr,
        nbytes: usize,
    ) -> Result<(), Error>;

    /// Start a [`get`](Endpoint::get) that is complete at the next quiet.
    ///
    /// # Safety
    /// As `get`, but until the next quiet returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    unsafe fn get_nbi(
        &mut self,
        pe: Pe,
        dest: *mut u8,
        source: RemoteAddr,
        nbytes: usize,
    ) -> Result<(), Error>;

    /// Carry out an atomic operation on the word at `dest` of `pe` and return its old value,
    /// zero-extended.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn amo(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> Result<u64, Error>;

    /// Start an [`amo`](Endpoint::amo) whose old value is at `fetched`, `width` bytes long, after the
    /// next quiet.
    ///
    /// # Safety
    /// `fetched` is valid for writes of `width` bytes until the next quiet returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    #[expect(clippy::too_many_arguments, reason = "the arguments of shmem_atomic_compare_swap_nbi")]
    unsafe fn amo_nbi(
        &mut self,
        fetched: *mut u8,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
        condition: u64,
    ) -> Result<(), Error> {
        let old = self.amo(pe, dest, width, op, operand, condition)?;
        // SAFETY: valid for a word of this width by contract.
        unsafe { width.write(fetched, old) };
        Ok(())
    }

    /// An [`amo`](Endpoint::amo) whose old value nobody asks for; complete at the next quiet.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn update(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        width: AmoWidth,
        op: AmoOp,
        operand: u64,
    ) -> Result<(), Error> {
        self.amo(pe, dest, width, op, operand, 0).map(|_| ())
    }

    /// Put, then apply `op` (`Set` or `Add`) with `signal` to the 8-byte word at `signal_addr`, which
    /// never shows the update before the data.
    ///
    /// # Safety
    /// As [`put`](Endpoint::put).
    ///
    /// # Errors
    /// When the PE cannot be reached.
    #[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal")]
    unsafe fn put_signal(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
        signal_addr: RemoteAddr,
        signal: u64,
        op: AmoOp,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise for `source` is that of `put`.
        unsafe { self.put(pe, dest, source, nbytes) }?;
        self.fence()?;
        self.update(pe, signal_addr, AmoWidth::Eight, op, signal)
    }

    /// Start a [`put_signal`](Endpoint::put_signal) that is complete at the next quiet.
    ///
    /// # Safety
    /// As [`put_nbi`](Endpoint::put_nbi).
    ///
    /// # Errors
    /// When the PE cannot be reached.
    #[expect(clippy::too_many_arguments, reason = "the arguments of shmem_put_signal_nbi")]
    unsafe fn put_signal_nbi(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: *const u8,
        nbytes: usize,
        signal_addr: RemoteAddr,
        signal: u64,
        op: AmoOp,
    ) -> Result<(), Error> {
        // SAFETY: valid until the next quiet by contract, so during this call.
        unsafe { self.put_signal(pe, dest, source, nbytes, signal_addr, signal, op) }
    }

    /// Order the puts, AMOs and signals that were issued before ahead of those that follow, towards
    /// each PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn fence(&mut self) -> Result<(), Error>;

    /// Complete everything that was issued, here and at the targets.
    ///
    /// # Errors
    /// When a PE was lost.
    fn quiet(&mut self) -> Result<(), Error>;

    /// Whether everything that was issued is complete, here and at the targets, as after a
    /// [`quiet`](Endpoint::quiet). One that cannot tell completes it.
    ///
    /// # Errors
    /// When a PE was lost.
    fn is_quiet(&mut self) -> Result<bool, Error> {
        self.quiet().map(|()| true)
    }

    /// Complete everything that was issued towards `pe`.
    ///
    /// # Errors
    /// When a PE was lost.
    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        let _ = pe;
        self.quiet()
    }

    /// Let the network work for this endpoint; never blocks.
    ///
    /// # Errors
    /// When a PE was lost.
    fn progress(&mut self) -> Result<(), Error>;
}
