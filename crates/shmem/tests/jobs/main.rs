//! Tests of the Rust interface, most of which run this program as a job, and of programs that the
//! compiler must reject.

mod attempts;
mod collectives;
mod compile_fail;
mod counterparts;
mod crashes;
mod dist;
mod elements;
mod events;
mod futures;
mod leaks;
mod mistakes;
mod nonblocking;
mod operations;
mod over_tcp;
mod panics;
mod registered;
mod select;
mod slices;
mod testing;
mod threads;
mod types;
mod unique_id;
