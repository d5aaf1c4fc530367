//! librushmem-race.so: the functions by which the runtime, and programs that were compiled for it,
//! call the race detector.
//!
//! The runtime opens it for `SHMEM_CHECK=races`. `oshcc --race` links it with a program that it
//! compiles with `-fsanitize=thread`: the library provides what such a program calls, instead of
//! the compiler's own ThreadSanitizer, and asks for `SHMEM_CHECK=races` itself.

mod libgomp;
mod memory_calls;
mod next;
mod ompt;
mod pipes;
mod runtime;
mod synchronization;
mod teams;
mod threads;
mod tsan;
mod wide_atomics;
