//! Tests of the sockets whose PEs are processes of this program.

mod establishment;
mod loss;
mod proxies;
mod soak;
mod strided;
mod unauthenticated;
mod waits;
