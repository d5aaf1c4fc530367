//! Recognizes children of `fork`. They have the memory and the descriptors of a PE, but are not the
//! PE: their messages to the launcher or a peer would look like messages of the PE, and no thread
//! of a transport runs in them.
//!
//! Therefore the library is not initialized in a child, whatever its state in the parent. The check
//! uses state that every call reads anyway, so it makes no call slower.
#![allow(unsafe_code)]

use super::error::StartError;
use rushmem_communication::net::network;
use rushmem_pe::memory::address;
use rushmem_pe::memory::statics;
use rushmem_pe::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Recognizes children that are forked from now on.
///
/// # Errors
/// If there is no memory for that.
pub(super) fn recognize_from_now_on() -> Result<(), StartError> {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    // Relaxed: inits come one at a time, under a mutex.
    if WATCHING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }

    // SAFETY: the handler exists as long as the process, since the library is never unloaded.
    if unsafe { libc::pthread_atfork(None, None, Some(in_child)) } != 0 {
        return Err(StartError::NoForkHandler);
    }
    Ok(())
}

/// Records that this process is a child of the PE. Makes only stores: other threads of the parent
/// may have held any lock.
extern "C" fn in_child() {
    // The variables of the library may be static data of the program. Then the child has a copy of
    // them by now, since the handler that makes the copy was registered first. If it has none, the
    // stores below would change the parent.
    if statics::are_shared() {
        return;
    }
    process::become_child();
    address::close();
    network::of_process().refuse_calls();
}
