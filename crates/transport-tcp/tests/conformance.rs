//! The suite that every provider must pass, with the usual and with tiny queues.

use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_tcp::{PROVIDER, Tuning, open};
use std::process::ExitCode;

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

fn tiny(with: &Open) -> Result<Box<dyn Transport>, Error> {
    open(with, Tuning::tiny())
}

fn main() -> ExitCode {
    testkit::run(conformance::suite("", usual, tiny, || ()))
}
