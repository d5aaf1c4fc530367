//! What several crates take from the system itself: threads that leave all signals to the program,
//! and the mappings of this process.

pub mod maps;
pub mod signals;
