//! The checks of `SHMEM_CHECK` that events need. The remote bytes of an access must be within one
//! block of the heap or one static variable, its local bytes must be accessible, and its signal
//! must not be within its data. Accesses, collectives and waits must be called by a process and a
//! thread that may call the library ([`permission`]). [`results`] checks the results of
//! collectives.

use super::event::{AccessEvent, AccessKind, Action, Argument, ByteBlocks, Effect, Event};
use super::results::{self, CollectiveResult};
use core::ffi::c_int;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job;
use rushmem_pe::job::permission;
use rushmem_pe::memory::accessible::LocalAccess;
use rushmem_pe::memory::{checks, constants};
use rushmem_transport::LocalBuf;

/// Checks an event at its begin. Ends the job with an error if there is a mistake.
pub(super) fn begin(event: &Event) {
    let Event {
        call,
        action,
        pe,
        remote,
        ..
    } = *event;
    match action {
        Action::Access(access) => {
            note_received(access.kind);
            if access.signal != 0 {
                check_signal(call, access.signal, remote, pe);
            }
            check_access(event, access);
        }
        Action::Collective(_) => permission::check(call, job::require(call)),
        Action::Wait => {
            permission::check(call, job::require(call));
            results::receive();
        }
        // This PE has seen what other PEs have written, as after a wait.
        Action::Seen { .. } | Action::Lock | Action::LockHeld(_) | Action::Block { .. } => {
            results::receive();
        }
        Action::Quiet { .. }
        | Action::QuietOfPes
        | Action::PeQuiet
        | Action::QuietOfAll
        | Action::QuietTest => results::quiet(),
        _ => {}
    }
}

/// Records the end of an event. `result` is that of a collective.
pub(super) fn end(event: &Event, result: Option<&CollectiveResult>) {
    match event.action {
        Action::Collective(membership) => results::leave(event.call, membership, result),
        Action::Request(_) => results::receive(),
        _ => {}
    }
}

/// Records what this PE gets from others.
fn note_received(kind: AccessKind) {
    use AccessKind::*;
    match kind {
        Get | G | GetStrided | AmoFetch => results::receive(),
        GetNbi | AmoFetchNbi => results::start_fetching(),
        Put | PutNbi | P | PutStrided | PutSignal | PutSignalNbi | Amo | Collective => {}
    }
}

fn check_signal(call: Call, signal: usize, remote: ByteBlocks, pe: c_int) {
    checks::require_bytes(call, "sig_addr", signal, 8, pe);
    if signal.wrapping_sub(remote.addr) < remote.nbytes {
        fail!(
            call,
            "argument sig_addr: the signal at {:#x} lies in the {} bytes of dest at {:#x}; use a word \
             that is not part of the data",
            signal,
            remote.nbytes,
            remote.addr
        );
    }
}

/// Checks the bytes of an access, and the caller.
fn check_access(event: &Event, access: AccessEvent) {
    let Event {
        call,
        pe,
        remote,
        local,
        ..
    } = *event;
    let is_own = job::require(call).me.0 as c_int == pe;
    // A copy of an array to itself changes nothing.
    if is_own && local != remote && local.overlaps(remote) {
        fail_overlapping(call, access, remote, local);
    }

    // An access that reads the target writes the local buffer.
    let local_access = match access.effect {
        Effect::Reads => LocalAccess::Write,
        _ => LocalAccess::Read,
    };

    // A non-blocking fetch stores its result later, so the buffer of the result is not checked
    // here.
    let nbytes = if access.kind == AccessKind::AmoFetchNbi {
        0
    } else {
        local.span()
    };
    let local = LocalBuf {
        base: std::ptr::without_provenance_mut(local.addr),
        nbytes,
    };

    permission::check_access(call);

    // In a loop, an earlier iteration has usually checked both ranges.
    if !(checks::is_known_object(remote.addr, remote.span())
        && checks::is_known_local(local_access, local))
    {
        check_unknown(event, access.argument, local_access, local);
    }
}

/// Ends the job: an access to this PE reads bytes that it writes.
#[cold]
#[inline(never)]
fn fail_overlapping(call: Call, access: AccessEvent, remote: ByteBlocks, local: ByteBlocks) -> ! {
    let (source, dest) = match access.argument {
        Argument::Source => (remote, local),
        Argument::Dest | Argument::SigAddr => (local, remote),
    };
    let shown = |bytes: ByteBlocks| {
        let span = bytes.span();
        format!(
            "{span} bytes from {:#x} to {:#x}",
            bytes.addr,
            bytes.addr + span
        )
    };
    fail!(
        call,
        "the arguments source and dest overlap: source is {}, dest is {}; use arrays that have no byte in common",
        shown(source),
        shown(dest)
    )
}

/// Checks the bytes of an access that no earlier access has shown to be correct.
#[cold]
#[inline(never)]
fn check_unknown(event: &Event, argument: Argument, local_access: LocalAccess, local: LocalBuf) {
    let Event {
        call, pe, remote, ..
    } = *event;
    if local.nbytes > 0 {
        checks::check_local(call, local_access, local);
    }

    let argument = argument.name();
    let addr = remote.addr;
    let nbytes = remote.span();
    // Without bytes there is nothing to check; the access itself checks the PE.
    if nbytes > 0
        && !checks::is_known_object(addr, nbytes)
        && !constants::can_read(call, argument, addr, nbytes, pe)
    {
        checks::require_bytes(call, argument, addr, nbytes, pe);
    }
}
