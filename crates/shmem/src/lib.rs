//! OpenSHMEM for Rust programs: N processing elements (PEs) put, get and update each other's
//! symmetric memory, split into teams and reduce over them.
//!
//! ```standalone_crate
//! let shmem = shmem::init();
//! let inbox = shmem.array::<u64>(1);
//! let next = (shmem.my_pe() + 1) % shmem.n_pes();
//! shmem.put(&inbox, &[shmem.my_pe() as u64], next);
//! shmem.barrier_all();
//! println!("PE {} heard from PE {}", shmem.my_pe(), inbox.load(0));
//! ```
//!
//! [`init`] returns a [`Shmem`]. After its drop, the exit finalizes the library. All else borrows it:
//! symmetric objects ([`SymBox`], [`SymArray`], [`SymStatic`]), teams ([`Team`]) and contexts
//! ([`Context`]). A `Shmem` is also the default context, so operations are its methods.
//!
//! # Memory that others change
//!
//! Peers may read and write symmetric memory at any time, so a program has no reference to it. It
//! names elements by a [`SymSlice`] or a [`SymRef`], and copies their values. If PEs do not
//! synchronize, a copy may have an old value or a new one. Elements of 1, 2, 4 or 8 bytes that are
//! aligned to their size are never torn, others may be. That is not undefined behavior, because an
//! element is [`bytemuck::Pod`]: any bytes are a value of it. Only an [epoch](SymArray::epoch), in
//! which no other PE can access the elements, lends them as a `&mut [T]`.
//!
//! The same holds for the threads of one PE, and for threads of the library that carry out puts of
//! peers: symmetric memory is accessed only by atomic operations, and by a copy that is opaque to
//! the compiler.
//!
//! # Operations that complete later
//!
//! Non-blocking operations borrow their buffers until the end of a [scope](Context::scope), which
//! completes them. Others own a vector and return a future of it ([`Context::put_owned`],
//! [`Context::get_owned`]). Waits are futures, too ([`Context::until`]). [`block_on`] waits for a
//! future without an executor.
//!
//! # Collectives
//!
//! Collectives are methods of [`Team`]: on values that are passed and returned
//! ([`Team::all_reduce`], [`Team::all_gather`], [`Team::exclusive_scan`]), and on symmetric memory as
//! in C ([`Team::all_reduce_into`], [`Team::all_to_all_into`]), source before destination. An [`Operator`] is a
//! type, so that a sum of pointers does not compile.
//!
//! # Threads
//!
//! [`init`] makes a handle that stays on its thread. With [`init_thread`] and [`Multiple`] it is
//! [`Sync`], and so are teams and shared contexts; a [`Private`] context never leaves its thread.
//!
//! # Errors
//!
//! - A failure that a program can handle is a [`Result`], which is the same on all members of a
//!   collective, so `?` leaves no PE waiting.
//! - A wrong argument that the types cannot exclude (a PE that does not exist, a range out of bounds,
//!   other lengths) panics at the line of the call, with a message that names the call, the argument
//!   and the remedy.
//! - What is nobody's argument ends the job with one message: a PE that is lost, PEs that disagree
//!   in a collective.
//!
//! [`init`] sets a panic hook, which names the PE and calls the hook that was set before. If PEs of
//! one node make the same mistake, one of them prints the message. A panic that drops a symmetric
//! object or the [`Shmem`] ends the job, since the other PEs would wait for this one forever.
//!
//! This crate only forwards calls; the runtime carries them out.

// Provides the functions of OpenSHMEM's C interface for C code in the program.
#[cfg(feature = "c")]
extern crate rushmem_c as _;

/// The programs of the guide and the reference, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/rust-reference.md")]
mod guide {}

/// Makes the `Call` of a function from its name.
macro_rules! call {
    ($name:expr) => {
        rushmem_runtime::call!(unsigned $name)
    };
}

mod agreement;
mod amo;
mod atomics;
mod collectives;
mod context;
mod element;
mod job;
mod launch;
mod lock;
mod operator;
mod panics;
mod request;
mod rma;
mod scope;
mod signal;
mod split;
mod strided;
mod symmetric;
mod team;
pub mod testing;
mod thread_level;
mod transfer;
mod unique_id;
mod values;
mod wait;
mod wait_set;
mod waiting;

/// The crate of [`Pod`](bytemuck::Pod), the trait of plain data, which symmetric elements are. Its
/// derive macros need an attribute that names this path:
///
/// ```standalone_crate
/// use shmem::bytemuck::{Pod, Zeroable};
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[bytemuck(crate = "shmem::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     mass: f64,
/// }
///
/// let shmem = shmem::init();
/// let particles = shmem.array::<Particle>(100);
/// particles.store(0, Particle { position: [1.0, 2.0, 3.0], mass: 4.0 });
/// ```
pub use bytemuck;
pub use collectives::Blocks;
pub use context::{
    Context, ContextKind, ContextOptions, CreatedKind, DefaultContext, Private, Serialized,
    Session, SessionOptions, Shared,
};
pub use element::{
    Atomic, AtomicInteger, AtomicNumber, AtomicValue, Comparable, Element, PlainData, Signal,
};
pub use job::{
    HeapInfo, NAME, Shmem, ThreadLevelError, VERSION, forward_events, init, init_thread,
};
pub use launch::{JobStatus, launch};
pub use lock::{Lock, LockGuard};
pub use operator::{And, Max, Min, Operator, Or, Prod, Sum, Xor};
pub use request::CollectiveRequest;
pub use rma::{Destination, Source};
pub use rushmem_runtime::combine::Complex;
pub use scope::Scope;
pub use signal::SignalOp;
pub use split::SplitError;
pub use strided::Strides;
pub use symmetric::array::{OutOfMemory, SymArray};
pub use symmetric::boxed::SymBox;
pub use symmetric::statics::SymStatic;
pub use symmetric::view::{AsElement, AsElements, SymRef, SymSlice};
pub use team::{Team, TeamOptions, TooManyContexts};
pub use thread_level::{Funneled, Multiple, Single, ThreadLevel};
pub use transfer::Transfer;
pub use unique_id::{UniqueId, UniqueIdError, UniqueIdJob};
pub use values::ReducedValues;
pub use wait::{Awaited, Cmp};
pub use wait_set::Values;
pub use waiting::block_on;
