//! OpenSHMEM for Rust programs: N processing elements (PEs) put, get and update each other's
//! symmetric memory, split into teams and reduce over them.
//!
//! ```standalone_crate
//! let shmem = shmem::init();
//! let inbox = shmem.array::<u64>(1);
//! let next = (shmem.my_pe() + 1) % shmem.n_pes();
//! shmem.put(&inbox, &[u64::from(shmem.my_pe())], next);
//! shmem.barrier_all();
//! println!("PE {} heard from PE {}", shmem.my_pe(), inbox.load(0));
//! ```
//!
//! [`init`] gives a [`Shmem`], whose drop finalizes the library. Everything else borrows it:
//! symmetric objects ([`SymBox`], [`SymArray`], [`SymStatic`]), teams ([`Team`]) and contexts
//! ([`Context`]). A `Shmem` is also the default context, so operations are its methods.
//!
//! # Memory that others change
//!
//! Peers may read and write symmetric memory at any time, so no reference ever points there. A
//! program names it by a [`SymSlice`] or a [`SymRef`], copies elements in and out, and gets a value
//! that some PE wrote, or bytes of several of them when it did not synchronize: elements of 1, 2, 4
//! or 8 bytes are never torn, larger ones may be. Whatever peers do, this is not undefined
//! behavior, because an element is [`bytemuck::Pod`]: all of its bit patterns are values. Only in
//! an [epoch](SymArray::epoch), in which no PE can reach the array, is there a `&mut [T]`.
//!
//! This holds for threads of one PE, too, and for the library's own threads that carry out puts of
//! peers over a network: symmetric memory is only accessed by atomic operations, and by a copy that
//! is foreign to the compiler and defined as such.
//!
//! # Operations that complete later
//!
//! Non-blocking operations are issued in a [scope](Context::scope), whose end completes them; until
//! then they borrow their buffers. Or they own a vector, and are a future of it
//! ([`Context::put_owned`], [`Context::get_owned`]). Waits are futures, too ([`Context::until`]).
//! [`block_on`] waits for a future without an executor.
//!
//! # Collectives
//!
//! Collectives are methods of [`Team`]: on symmetric memory as in C ([`Team::reduce`],
//! [`Team::alltoall`]), and on values that are passed and returned ([`Team::reduce_value`],
//! [`Team::exscan_value`]). An [`Operator`] is a type, so that a sum of pointers does not compile.
//!
//! # Threads
//!
//! [`init`] makes a handle that stays on its thread. With [`init_thread`] and [`Multiple`] it is
//! [`Sync`], and so are teams and shared contexts; a [`Private`] context never leaves its thread.
//!
//! # Errors
//!
//! What a program can handle is a [`Result`]. A wrong argument that the types cannot exclude (a PE
//! that does not exist, a range out of bounds) ends the job with one message that names the PE, the
//! call and the remedy, as in C. A panic while symmetric objects exist ends the job, too, since the
//! others would wait for this PE for ever.
//!
//! Nothing here knows how a call is carried out: that is the runtime's.

// C code in the program finds its functions there.
#[cfg(feature = "c")]
extern crate rushmem_c as _;

/// The programs of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
mod guide {}

mod agreement;
mod amo;
mod atomics;
mod collectives;
mod context;
mod element;
mod job;
mod lock;
mod operator;
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
mod values;
mod wait;
mod wait_set;
mod waiting;

/// The crate that says which types are [`Pod`](bytemuck::Pod), and so elements. Its derives find it
/// here by an attribute:
///
/// ```standalone_crate
/// use shmem::bytemuck::{Pod, Zeroable};
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[bytemuck(crate = "shmem::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     mass: f64,
/// }
///
/// let shmem = shmem::init();
/// let particles = shmem.array::<Particle>(100);
/// particles.store(0, Particle { place: [1.0, 2.0, 3.0], mass: 4.0 });
/// ```
pub use bytemuck;
pub use collectives::Blocks;
pub use context::{
    Context, ContextConfig, DefaultContext, Kind, Private, Serialized, Session, SessionConfig,
    Shared,
};
pub use element::{Atomic, AtomicInteger, AtomicValue, Comparable, Signal, Symmetric};
pub use job::{NAME, Shmem, ThreadLevelError, VERSION, init, init_thread};
pub use lock::{Lock, LockGuard};
pub use operator::{And, Max, Min, Operator, Or, Prod, Sum, Xor};
pub use rma::{Destination, Source};
pub use rushmem_runtime::combine::{Arithmetic, Complex};
pub use scope::Scope;
pub use signal::SignalOp;
pub use split::SplitError;
pub use strided::Strides;
pub use symmetric::array::{OutOfMemory, SymArray};
pub use symmetric::boxed::SymBox;
pub use symmetric::statics::SymStatic;
pub use symmetric::view::{SymRef, SymSlice};
pub use team::{Team, TeamConfig, TooManyContexts};
pub use thread_level::{Funneled, Multiple, Single, ThreadLevel};
pub use transfer::Transfer;
pub use wait::{Awaited, Cmp};
pub use wait_set::Values;
pub use waiting::block_on;
