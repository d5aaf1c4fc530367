//! Tests that every machine can run: jobs of the programs in `tests/programs`, and checks of the
//! installed files.

mod algorithms;
mod buffers;
mod checking;
mod children;
mod configuration;
mod core_files;
mod death;
mod environment;
mod guide;
mod headers;
mod linking;
mod longdouble;
mod manual;
mod misuse;
mod overlap;
mod pages;
mod points;
mod requests;
mod results;
mod soak;
mod starts;
mod statistics;
mod trace;
mod verify;
mod watchdog;
