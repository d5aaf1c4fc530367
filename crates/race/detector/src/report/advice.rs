//! Advice on how to order two accesses.

use super::Side;
use crate::access::ShadowKind;
use crate::actors::ActorRole;
use crate::areas::Memory;
use crate::private;

/// Returns the sentences of a report that say what would order two accesses, or which operations to
/// use instead.
pub(super) fn of(sides: &[Side; 2], memory: Memory) -> String {
    let [first, second] = sides;
    if first.kind.is_atomic() && second.kind.is_atomic() {
        return on_atomics(sides);
    }

    // The PE whose symmetric memory the race is on.
    let target = match memory {
        Memory::Symmetric(place) => Some(place.pe),
        Memory::Private(_) => None,
    };
    if first.actor.pe == second.actor.pe {
        return on_one_pe(sides, target);
    }
    if let Some(advice) = on_word(sides, target) {
        return advice;
    }

    let (operation, other) = if first.in_flight {
        (first, second)
    } else {
        (second, first)
    };
    if !operation.in_flight {
        return "Nothing orders the two. shmem_barrier_all between them would.".to_owned();
    }
    if operation.actor.on_context {
        return format!(
            "Nothing orders the two. {} on PE {} and shmem_barrier_all after it, between them, \
             would: shmem_barrier_all completes the default context alone.",
            quiet(operation),
            operation.actor.pe
        );
    }
    on_flight(operation, other, target)
}

/// Returns the name of the quiet that completes an operation in flight.
fn quiet(side: &Side) -> &'static str {
    if side.actor.on_context {
        "shmem_ctx_quiet of its context"
    } else {
        "shmem_quiet"
    }
}

/// Returns the advice for two atomic operations, which do not exclude each other.
fn on_atomics([first, second]: &[Side; 2]) -> String {
    let why = if first.kind.is_of_signal() != second.kind.is_of_signal() {
        "signal operations and atomic operations do not exclude each other"
    } else {
        "they have other types, or contexts of other atomicity domains"
    };
    format!(
        "Both are atomic, but {why} (OpenSHMEM 1.6, \"Atomicity Guarantees\"). Use one kind, or order \
         them by a barrier."
    )
}

/// Returns the advice for an atomic operation and another PE's get or put of its word, which could
/// be atomic, too. `None` for other accesses.
fn on_word([first, second]: &[Side; 2], target: Option<u32>) -> Option<String> {
    let (atomic, plain) = if first.kind.is_atomic() {
        (first, second)
    } else {
        (second, first)
    };

    let is_of_library = atomic.kind.is_of_library() && plain.kind.is_of_library();
    let is_remote = target.is_some_and(|target| target != plain.actor.pe);
    let is_word = atomic.kind.is_atomic() && !atomic.kind.is_of_signal();
    if !is_of_library || !is_remote || !is_word || plain.nbytes != atomic.nbytes {
        return None;
    }

    let routine = if plain.kind.writes() {
        "shmem_atomic_set"
    } else {
        "shmem_atomic_fetch"
    };
    Some(format!(
        "Nothing orders the two. {routine} in place of {} would make both atomic; else \
         shmem_barrier_all between the two would order them.",
        plain.what
    ))
}

/// Returns the advice for two accesses of one PE.
fn on_one_pe([first, second]: &[Side; 2], target: Option<u32>) -> String {
    if !first.in_flight {
        return "Nothing orders the two. A barrier or a lock between the threads would.".to_owned();
    }

    if !second.in_flight {
        let of_thread = if private::has_threads() {
            " If another thread has completed it, order the two threads: by a lock, a barrier, or \
             atomic operations with release and acquire order."
        } else {
            ""
        };
        return format!(
            "Nothing completes {}. {} before the second access would.{of_thread}",
            first.what,
            quiet(first)
        );
    }

    if !is_fenced(first, target) || !is_fenced(second, target) {
        return format!(
            "Nothing orders the two. {} between them would; shmem_fence orders puts and atomic \
             operations alone, to the same PE.",
            quiet(first)
        );
    }
    match (first.actor.on_context, second.actor.on_context) {
        (false, false) => "Nothing orders the two. shmem_fence between them would.".to_owned(),
        (true, true) => {
            "Nothing orders the two. If they are of one context, shmem_ctx_fence of it between \
             them would, else shmem_ctx_quiet of the first one's."
                .to_owned()
        }
        _ => format!(
            "Nothing orders the two, which are of two contexts. {} between them would.",
            quiet(first)
        ),
    }
}

/// Returns true if a fence orders an operation in flight before later ones to the PE whose memory
/// the race is on.
fn is_fenced(side: &Side, target: Option<u32>) -> bool {
    target.is_some_and(|target| side.actor.role == ActorRole::InFlight(target))
        && (side.kind.writes() || side.kind.is_atomic())
}

/// Returns the advice for an operation in flight on the default context and an access by another
/// PE.
fn on_flight(operation: &Side, other: &Side, target: Option<u32>) -> String {
    if operation.kind.writes() && is_word_of_library(operation) && is_word_of_library(other) {
        return "Nothing orders the two. If both PEs change the value, let them do it by an atomic \
                operation such as shmem_atomic_add, or between shmem_set_lock and \
                shmem_clear_lock; else shmem_barrier_all between the two would order them."
            .to_owned();
    }

    if other.kind == ShadowKind::STORE && operation.kind.writes() {
        return format!(
            "Nothing orders the two. shmem_barrier_all between them would: after the store, if it \
             prepares the memory for {0}; after {0}, if the store is to change what has arrived.",
            operation.what
        );
    }

    // What follows is about data for a PE that reads it.
    let is_for_reader = target.is_some_and(|target| target == other.actor.pe);
    if !is_for_reader || !operation.kind.writes() || other.kind.writes() {
        return "Nothing orders the two. shmem_barrier_all between them would.".to_owned();
    }

    let pe = other.actor.pe;
    let has_signal = operation.what.contains("_signal");
    match (operation.kind.is_atomic(), has_signal) {
        (true, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until or shmem_signal_fetch on PE {pe} \
             reads a signal."
        ),
        (true, false) => format!(
            "Nothing orders the two. shmem_barrier_all between them would, or a wait such as \
             shmem_wait_until on PE {pe}; shmem_atomic_fetch reads a word that others change."
        ),
        (false, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until for its signal before the access of \
             PE {pe} would, or shmem_barrier_all between them; puts that count up one signal need \
             shmem_fence between them."
        ),
        (false, false) => {
            let put = match operation.sources.first() {
                Some(source) => source.to_string(),
                None => "the first".to_owned(),
            };
            format!(
                "Nothing orders the two. shmem_barrier_all between them would, or a put with a \
                 signal at {put} and shmem_signal_wait_until on PE {pe}; a flag that follows the \
                 put needs shmem_fence before it."
            )
        }
    }
}

/// Returns true for an access of the library to at most eight bytes that is not atomic.
fn is_word_of_library(side: &Side) -> bool {
    side.kind.is_of_library() && !side.kind.is_atomic() && side.nbytes <= 8
}
