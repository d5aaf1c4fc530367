//! The events that the library reports of its own work, for programs that collect them.

/// From now on the library gives its events to the program's subscriber of
/// [`tracing`](https://docs.rs/tracing), which is the default of the process or of the thread where
/// an event happens, whether or not `SHMEM_DEBUG` prints them. Their targets begin with `rushmem_`,
/// and each has the field `pe`. Called before [`init`](crate::init), it also gives the events of
/// the start.
///
/// Without this call the library gives a program no event, and never sets a default subscriber.
pub fn give_events_to_program() {
    rushmem_log::give_to_program();
}
