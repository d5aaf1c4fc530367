//! The traits that a provider fills.
//!
//! Required verbs are few and take bytes; strided forms are loops of the runtime. What a provider
//! can do it says in [`Caps`], and it never claims what it did not probe.

use crate::{AmoOp, AmoWidth, Error, Key, Pe, RemoteAddr, Segment};

/// How the runtime learns of a provider: one entry in `providers::ALL`.
pub struct Provider {
    /// Name as in `SHMEM_TRANSPORT`.
    pub name: &'static str,
    /// Whether this machine has what the provider needs. Cheap and without side effects.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub available: fn() -> Result<(), Error>,
    /// Make the provider's transport for this process.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub open: fn() -> Result<Box<dyn Transport>, Error>,
}

/// What a transport can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Its atomic operations are carried out by the target's CPU, or coherently with it, so that they
    /// compose with the on-node ones on one word.
    pub amos_compose_with_cpu: bool,
    /// Puts of one endpoint to one PE arrive in the order of their calls.
    pub ordered_puts: bool,
}

/// What a context asks of its endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Only one thread at a time uses it, so it needs no lock.
    pub serialized: bool,
}

/// A network as one process sees it.
pub trait Transport: Send + Sync {
    /// What it can do.
    fn caps(&self) -> Caps;

    /// Make a segment of this PE reachable; the key goes to every peer that connects.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes until the transport is dropped.
    ///
    /// # Errors
    /// When the network refuses the memory.
    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error>;

    /// This PE's address, to be given to the peers.
    fn address(&self) -> Vec<u8>;

    /// Learn how to reach `pe`. Does not wait for it.
    ///
    /// # Errors
    /// When there is no way to it.
    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error>;

    /// A new endpoint, one per context.
    ///
    /// # Errors
    /// When the network has no more; the caller then shares one.
    fn endpoint(&self, options: EndpointOptions) -> Result<Box<dyn Endpoint>, Error>;
}

/// One context's way to every connected PE.
///
/// Local buffers are `(pointer, nbytes)`, valid until the verb returns or, for the `_nbi` forms,
/// until the next [`quiet`](Endpoint::quiet).
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
    /// zero-extended; operations that return nothing may return early with zero.
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
        self.amo(pe, signal_addr, AmoWidth::Eight, op, signal, 0).map(|_| ())
    }

    /// Order what was issued before ahead of what follows, towards each PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn fence(&mut self) -> Result<(), Error>;

    /// Complete everything that was issued, here and at the targets.
    ///
    /// # Errors
    /// When a PE was lost.
    fn quiet(&mut self) -> Result<(), Error>;

    /// Let the network work; never blocks.
    ///
    /// # Errors
    /// When a PE was lost.
    fn progress(&mut self) -> Result<(), Error>;
}
