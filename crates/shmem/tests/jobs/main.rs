//! Tests of the Rust interface, most of which are jobs of this program, and of what the compiler
//! rejects.

mod attempts;
mod collectives;
mod compile_fail;
mod events;
mod leaks;
mod mistakes;
mod nonblocking;
mod operations;
mod over_tcp;
mod testing;
mod threads;
mod unique_id;
