//! What would order two accesses that race.

use crate::access::{AtomicityDomain, ShadowKind};
use crate::actors::ActorRole;
use crate::areas::ShadowPlace;
use crate::side::Side;
use crate::symbols::SourceLine;

/// Returns the sentences of a report that say what would order two accesses, or which operation
/// would replace them. The accesses are to symmetric memory at `place`, or to private memory.
pub fn of(sides: &[Side; 2], place: Option<ShadowPlace>) -> String {
    let [first, second] = sides;
    if first.kind.is_atomic() && second.kind.is_atomic() {
        return of_atomic_operations(sides);
    }
    if first.who.pe == second.who.pe {
        return of_one_pe(sides, place);
    }
    let pair = if first.in_flight { Some((first, second)) } else { Some((second, first)) };
    match pair.filter(|(operation, _)| operation.in_flight) {
        Some((operation, _)) if operation.who.on_context => format!(
            "Nothing orders the two. {} on PE {} and shmem_barrier_all after it, between them, would: \
             shmem_barrier_all completes the default context alone.",
            quiet(operation),
            operation.who.pe
        ),
        Some((operation, other)) => of_operation_in_flight(operation, other, place),
        None => "Nothing orders the two. shmem_barrier_all between them would.".to_owned(),
    }
}

fn quiet(side: &Side) -> &'static str {
    if side.who.on_context { "shmem_ctx_quiet of its context" } else { "shmem_quiet" }
}

fn is_of_signal(kind: ShadowKind) -> bool {
    kind == ShadowKind::atomic(AtomicityDomain::Signal, 8, false, kind.writes())
}

fn of_atomic_operations([first, second]: &[Side; 2]) -> String {
    let why = match is_of_signal(first.kind) != is_of_signal(second.kind) {
        true => "signal operations and atomic operations do not exclude each other",
        false => "they have other types, or contexts of other atomicity domains",
    };
    format!(
        "Both are atomic, but {why} (OpenSHMEM 1.6, \"Atomicity Guarantees\"). Use one kind, or order \
         them by a barrier."
    )
}

fn of_one_pe([first, second]: &[Side; 2], place: Option<ShadowPlace>) -> String {
    let goes_there = |side: &Side| {
        place.is_some_and(|place| side.who.role == ActorRole::InFlight(place.pe))
            && (side.kind.writes() || side.kind.is_atomic())
    };
    match (first.in_flight, second.in_flight) {
        (true, true) if goes_there(first) && goes_there(second) => {
            match (first.who.on_context, second.who.on_context) {
                (false, false) => "Nothing orders the two. shmem_fence between them would.".to_owned(),
                (true, true) => "Nothing orders the two. If they are of one context, shmem_ctx_fence of it between them \
                                 would, else shmem_ctx_quiet of the first one's."
                    .to_owned(),
                _ => format!(
                    "Nothing orders the two, which are of two contexts. {} between them would.",
                    quiet(first)
                ),
            }
        }
        (true, true) => format!(
            "Nothing orders the two. {} between them would; shmem_fence orders puts and atomic operations alone, to \
             the same PE.",
            quiet(first)
        ),
        (true, false) => format!(
            "Nothing completes {}. {} before the second access would.",
            first.what,
            quiet(first)
        ),
        _ => "Nothing orders the two. A barrier or a lock between the threads would.".to_owned(),
    }
}

/// Returns the advice for an operation in flight on the default context and an access by another
/// PE.
fn of_operation_in_flight(operation: &Side, other: &Side, place: Option<ShadowPlace>) -> String {
    let is_word_of_library =
        |side: &Side| side.kind.is_of_library() && !side.kind.is_atomic() && side.nbytes <= 8;
    if operation.kind.writes() && is_word_of_library(operation) && is_word_of_library(other) {
        return "Nothing orders the two. If both PEs change the value, let them do it by an atomic operation such as \
                shmem_atomic_add, or between shmem_set_lock and shmem_clear_lock; else shmem_barrier_all between \
                the two would order them."
            .to_owned();
    }
    if other.kind == ShadowKind::STORE && operation.kind.writes() {
        return format!(
            "Nothing orders the two. shmem_barrier_all between them would: after the store, if it prepares the memory \
             for {0}; after {0}, if the store is to change what has arrived.",
            operation.what
        );
    }
    let is_for_target = place.is_some_and(|place| place.pe == other.who.pe);
    if !is_for_target || !operation.kind.writes() || other.kind.writes() {
        return "Nothing orders the two. shmem_barrier_all between them would.".to_owned();
    }
    let pe = other.who.pe;
    match (operation.kind.is_atomic(), operation.what.contains("_signal")) {
        (true, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until or shmem_signal_fetch on PE {pe} reads a signal."
        ),
        (true, false) => format!(
            "Nothing orders the two. shmem_barrier_all between them would, or a wait such as shmem_wait_until on PE \
             {pe}; shmem_atomic_fetch reads a word that others change."
        ),
        (false, true) => format!(
            "Nothing orders the two. shmem_signal_wait_until for its signal before the access of PE {pe} would, or \
             shmem_barrier_all between them."
        ),
        (false, false) => format!(
            "Nothing orders the two. shmem_barrier_all between them would, or a put with a signal at {} and \
             shmem_signal_wait_until on PE {pe}; a flag that follows the put needs shmem_fence before it.",
            operation.sources.first().map_or_else(|| "the first".to_owned(), SourceLine::to_string),
        ),
    }
}
