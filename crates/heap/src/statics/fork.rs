//! Gives a child process static data of its own.
//!
//! Memory that is shared with peers is shared with children too, so a child of `fork` would write
//! to the variables of this PE. Therefore the process makes a copy (`copy`) when it forks, and the
//! child maps the copy in place of the shared pages before it runs code of the program. Programs
//! that are executed, and children of `vfork` and `posix_spawn`, do not need this.
#![allow(unsafe_code)]

use super::copy::{CopySource, StaticsCopy};
use super::program::Statics;
use crate::kept_file::KeptFile;
use rushmem_system::signals::SignalMask;
use rustix::io::Errno;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the handlers of `fork` need to give a child its own copy of the shared static data.
struct ForkState {
    statics: Statics,
    /// The file that contains the static data. Its holes show which pages are not in use.
    memory: KeptFile,
    /// The offset of the static data in the file.
    offset: u64,
}

unsafe extern "C" {
    /// Registers handlers as `pthread_atfork` does, but at the right moment in a static program
    /// that was linked with `fork.c`, which defines it.
    fn rushmem_at_fork(
        is_static: bool,
        before: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
    ) -> libc::c_int;
}

static SHARED: OnceLock<ForkState> = OnceLock::new();
/// True while the static data of this process are shared memory: after they were remapped, but not
/// in a child. Stored with release order after `SHARED` is set and the data are remapped, and in
/// the child once these are its own, before signal handlers run; read with acquire order.
static ARMED: AtomicBool = AtomicBool::new(false);

/// The preparations of this thread for the fork that it is in.
struct Forking {
    /// The copy for the child, if there is memory for one.
    copy: Option<StaticsCopy>,
    /// The signal mask to restore. Signals are blocked, since a handler that runs in the child
    /// before the child has its copy would write to the parent's variables.
    signals: SignalMask,
}

thread_local! {
    /// The preparations of the calling thread, during a fork. The variable has no destructor: to
    /// register one would allocate memory, which is not allowed after the copy is made, or while
    /// the C library holds its locks.
    static FORKING: Cell<Option<ManuallyDrop<Forking>>> = const { Cell::new(None) };
}

/// Returns true if the static data of this process are shared memory: not in a child of the one
/// that remapped them.
pub fn are_shared() -> bool {
    ARMED.load(Ordering::Acquire)
}

/// The registered handlers, which do nothing before they are armed.
pub(super) struct ForkHandlers;

impl ForkHandlers {
    /// Arms the handlers: the static data are shared memory from now on.
    pub(super) fn arm(self) {
        ARMED.store(true, Ordering::Release);
    }
}

/// Registers the handlers. This allocates memory, so it is called before the static data are
/// shared. The handlers keep `memory`, the file in which the static data will be from this offset
/// on.
pub(super) fn prepare(
    statics: &Statics,
    memory: OwnedFd,
    offset: u64,
) -> Result<ForkHandlers, Errno> {
    let shared = ForkState {
        statics: statics.clone(),
        memory: KeptFile::new(memory)?,
        offset,
    };
    if SHARED.set(shared).is_err() {
        return Err(Errno::ALREADY);
    }

    let is_static = statics.of_static_program();
    // SAFETY: the functions exist as long as the process, since the library is never unloaded.
    let errno = unsafe { rushmem_at_fork(is_static, before, in_parent, in_child) };
    if errno != 0 {
        return Err(Errno::from_raw_os_error(errno));
    }
    Ok(ForkHandlers)
}

extern "C" fn before() {
    let Some(shared) = SHARED.get() else { return };
    if !are_shared() {
        return;
    }

    let signals = SignalMask::block();
    let source = CopySource {
        statics: &shared.statics,
        memory: shared.memory.descriptor(),
        offset: shared.offset,
    };
    // Without memory for a copy the fork goes on: the parent must not fail, and the child ends with
    // a message.
    let copy = StaticsCopy::of(&source).ok();
    FORKING.set(Some(ManuallyDrop::new(Forking { copy, signals })));
}

extern "C" fn in_parent() {
    let Some(forking) = FORKING.take() else {
        return;
    };
    let Forking { copy, signals } = ManuallyDrop::into_inner(forking);
    drop(copy);
    // Last, since a handler may run at once, and may fork.
    signals.restore();
}

extern "C" fn in_child() {
    let Some(shared) = SHARED.get() else { return };
    if !are_shared() {
        return;
    }
    let Some(forking) = FORKING.take() else {
        end_child();
    };

    let Forking { copy, signals } = ManuallyDrop::into_inner(forking);
    let has_own = copy.is_some_and(|copy| copy.take_the_place_of(&shared.statics).is_ok());
    if !has_own {
        end_child();
    }

    ARMED.store(false, Ordering::Release);
    // Only now may handlers run: they write to variables.
    signals.restore();
}

/// Ends a child that would write to the variables of its parent.
fn end_child() -> ! {
    const WORDS: &str = "rushmem: no memory for a child process's copy of the static data\n";
    // The child ends even if this fails, and nobody can be told.
    let _ = rustix::io::write(rustix::stdio::stderr(), WORDS.as_bytes());
    // SAFETY: `_exit` has no preconditions; it ends the child at once.
    unsafe { libc::_exit(127) }
}
