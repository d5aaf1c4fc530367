//! OpenSHMEM for Rust programs: N processing elements (PEs) put, get and update each other's
//! symmetric memory, split into teams and reduce over them.
//!
//! ```no_run
//! fn main() -> shmem::JobStatus {
//!     shmem::launch(4, |shmem| {
//!         let inbox = shmem.boxed(0);                     // exists on every PE
//!         inbox.on(shmem.next()).write(shmem.my_pe());    // writes to the next PE
//!         shmem.barrier_all();
//!         println!("PE {} heard from PE {}", shmem.my_pe(), inbox.load());
//!     })
//! }
//! ```
//!
//! It prints, in any order:
//!
//! ```text
//! PE 3 heard from PE 2
//! PE 1 heard from PE 0
//! PE 0 heard from PE 3
//! PE 2 heard from PE 1
//! ```
//!
//! [`launch`] starts the program again as four PEs. A program that calls [`init`] instead is a PE
//! of the job that `oshrun`, `srun` or `mpirun` starts. Both give it a [`Shmem`], the handle of the
//! library. After its drop, the exit finalizes the library. All else borrows it: symmetric objects
//! ([`SymBox`], [`SymArray`], [`SymStatic`]), teams ([`Team`]), contexts ([`Context`]) and peers
//! ([`Peer`]).
//!
//! # Operations
//!
//! An operation names elements, a peer and a verb: `x.on(peer).verb(value)`.
//!
//! - **Elements** are those of an array, of a part of it (`array[2..5]`), or one (`array[3]`, a
//!   [`SymBox`]). What a PE does with its own needs no peer: `array[3].load()`, `array.to_vec()`.
//! - **A peer** is a PE to which operations go. The job, a team or a context makes it of a number:
//!   `shmem.pe(3)`, `shmem.next()`, `team.pe(3)`, `context.pe(3)`. The number is checked then, and
//!   not again. A peer is a value to copy and to store.
//! - **Which verbs** there are depends on the elements: plain data are put and got
//!   (`put`, `get`, `read`, `write`), an [`Atomic`] is updated (`fetch_add`, `compare_exchange`),
//!   a [`Signal`] is set and added to. [`Remote`] has the table.
//!
//! A PE waits for a condition of one of its own elements, `shmem.wait(flag.ge(3))`.
//!
//! An object has all its elements on every PE. The module [`dist`] has arrays each element of which
//! is on one PE.
//!
//! # Memory that others change
//!
//! Peers may read and write symmetric memory at any time, so a program has no `&T` or `&mut T` to
//! it. A [`Sym`] is to an element what a [`Cell`](std::cell::Cell) is to a thread's variable: a
//! reference to it says where it is, and values are copied in and out. A [`SymSlice`] is to a
//! [`SymArray`] what `[T]` is to a `Vec<T>`.
//!
//! If PEs do not synchronize, a copy may have an old value or a new one. Elements of 1, 2, 4 or 8
//! bytes that are aligned to their size are never torn, others may be. That is not undefined
//! behavior, because an element is [`bytemuck::Pod`]: any bytes are a value of it. Only an
//! [epoch](SymArray::epoch), in which no other PE can access the elements, lends them as a
//! `&mut [T]`.
//!
//! **Why this is sound.** A `Sym` is an `UnsafeCell` that hides its cell, has no constructor, and
//! is accessed by the runtime's local functions alone: by atomic operations, and by copies that are
//! opaque to the compiler. Of a reference to an `UnsafeCell` the compiler assumes its address and
//! nothing of the bytes, as of a `&AtomicU64` in memory that processes share. Operations of other
//! PEs, and of the threads of the library that carry them out, are accesses of the same kind. All
//! PEs of a job must be the same program, or trust each other to be right: a process that writes
//! anything anywhere is not excluded by types.
//!
//! # Operations that complete later
//!
//! Within a [scope](Context::scope) the same verbs borrow their buffers until its end, which
//! completes them: `shmem.scope(|s| x.on(s.pe(3)).put(&data))`. Others own a vector and return a
//! future of it ([`put_owned`](Remote::put_owned), [`get_owned`](Remote::get_owned)). Waits are
//! futures, too ([`Shmem::until`]). [`block_on`] waits for a future without an executor.
//!
//! # Collectives
//!
//! Collectives are methods of [`Team`]: on values that are passed and returned
//! ([`Team::all_reduce`], [`Team::gather`], [`Team::all_to_all_varying`]), and on symmetric memory
//! as in C ([`Team::all_reduce_into`], [`Team::all_to_all_into`]), source before destination. An
//! [`Operator`] is a type, so that a sum of pointers does not compile; [`Team::all_reduce_with`]
//! takes any type of plain data, and any associative function.
//!
//! # Threads
//!
//! [`init`] makes a handle that stays on its thread. The one of [`init_shared`] is [`Sync`], and so
//! are its teams and peers; each thread makes a context of its own by [`Team::context`]. The
//! parameter of the types says so: [`Local`], which is the default, [`Movable`] or [`Shared`].
//!
//! # Errors
//!
//! - A failure that a program can handle is a [`Result`], which is the same on all members of a
//!   collective, so `?` leaves no PE waiting.
//! - A wrong argument that the types cannot exclude (a PE that does not exist, a range out of
//!   bounds, other lengths) panics at the line of the call, with a message that names the call, the
//!   argument and the remedy.
//! - A mistake that no argument shows ends the job with one message: a PE is lost, or PEs allocate
//!   or drop different objects.
//! - PEs that disagree in another collective, or in the lengths that they pass to it, are found
//!   with `SHMEM_CHECK=1` in the environment. Without it they may wait forever, or get wrong
//!   values.
//!
//! [`init`] sets a panic hook, which names the PE and calls the hook that was set before. If PEs of
//! one node make the same mistake, one of them prints the message. A panic that drops a symmetric
//! object or the [`Shmem`] ends the job, since the other PEs would wait for this one forever.
//!
//! # Versions
//!
//! The crate follows Semantic Versioning: what a program of version 1.0 uses stays until 2.0, and
//! version 0.1 may change with any minor version. Traits are sealed, and options are builders, so
//! that a later standard only adds. `bytemuck` 1 is the only other crate in the interface.
//!
//! The crate needs the Rust version that `Cargo.toml` names, which is at least six months old; a
//! newer one is asked for in a minor version only. The `oshrun` that starts a program has the same
//! version as the crate.
//!
//! This crate only forwards calls; the runtime carries them out.
#![deny(missing_debug_implementations)]

// Provides the functions of OpenSHMEM's C interface for C code in the program.
#[cfg(feature = "c")]
extern crate rushmem_c as _;

/// The programs of the pages, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
#[doc = include_str!("../../../docs/rust-reference.md")]
#[doc = include_str!("../../../docs/unlaunched.md")]
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
mod complex;
mod context;
pub mod dist;
mod element;
mod init;
mod job;
mod launch;
mod lock;
mod numbering;
mod operator;
mod panics;
mod partial;
mod peer;
mod pending;
mod reduced;
mod remote;
mod request;
mod rma;
mod scope;
mod signal;
mod slices;
mod split;
mod strided;
mod symmetric;
mod team;
pub mod testing;
mod threads;
mod transfer;
mod unique_id;
mod values;
mod wait;
mod wait_set;
mod waiting;

/// The crate of [`Pod`](bytemuck::Pod), the trait of plain data, which symmetric elements are.
pub use bytemuck;
pub use collectives::Blocks;
pub use complex::Complex;
pub use context::{Context, ContextOptions, Session, SessionOptions, TooManyContexts};
pub use element::{
    Atomic, AtomicInteger, AtomicNumber, AtomicValue, Element, PlainData, PlainField, Signal,
};
pub use init::{Init, init, init_shared};
pub use job::{HeapInfo, NAME, Shmem, ThreadLevelError, VERSION, forward_events};
pub use launch::{JobStatus, launch};
pub use lock::{Lock, LockGuard};
pub use numbering::Peers;
pub use operator::{And, Max, MaxLoc, Min, MinLoc, Operator, Or, Prod, Sum, Xor};
pub use peer::{Peer, ScopePeer, Target};
pub use pending::Pending;
pub use reduced::ReducedValues;
pub use remote::Remote;
pub use rma::{Destination, Source};
pub use rushmem_derive::Element;
pub use scope::Scope;
pub use signal::SignalUpdate;
pub use split::SplitError;
pub use strided::Strides;
pub use symmetric::array::{OutOfMemory, SymArray};
pub use symmetric::boxed::SymBox;
pub use symmetric::parts::{Chunks, ChunksExact, Windows};
pub use symmetric::registered::NotRegistered;
pub use symmetric::statics::{SymStatic, SymStaticArray};
pub use symmetric::view::{AsSymSlice, Sym, SymIndex, SymSlice};
pub use team::{Team, TeamOptions};
pub use threads::{Local, Movable, Shared, Threads};
pub use unique_id::{UniqueId, UniqueIdError};
pub use wait::{Awaited, Cmp, Condition, TimedOut};
pub use wait_set::{Conditions, Values};
pub use waiting::{Until, block_on};
