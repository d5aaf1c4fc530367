//! librushmem-race.so: the functions by which the runtime, and programs that were compiled for it,
//! call the race detector.
//!
//! The runtime opens it for `SHMEM_CHECK=races`. `oshcc --race` compiles a program with
//! `-fsanitize=thread` and links it with this library, which has the functions that such a program
//! calls, in place of those of ThreadSanitizer. The library then sets `SHMEM_CHECK=races` itself if
//! the variable is not set.

mod atomic_operation;
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
