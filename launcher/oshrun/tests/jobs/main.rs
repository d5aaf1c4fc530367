//! Tests that every machine can run: jobs of the program `pe`, and what is left of them.

mod cleanup;
mod ends;
mod explain;
mod hosts;
mod signals;
mod streams;
mod trouble;

#[path = "../support/mod.rs"]
mod support;
