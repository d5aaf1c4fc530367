//! The events that the library reports of its own work, for programs that collect them.

/// Sends the library's events from now on to the program's subscriber of
/// [`tracing`](https://docs.rs/tracing): the default one of the process, or of the thread in which
/// an event happens. This does not depend on whether `SHMEM_DEBUG` prints them. The targets of the
/// events begin with `rushmem_`, and each event has the field `pe`. A call before
/// [`init`](crate::init) includes the events of the initialization.
///
/// Without this call a subscriber receives no events of the library. The library never sets a
/// default subscriber.
pub fn give_events_to_program() {
    rushmem_log::give_to_program();
}
