//! The suite that every provider must pass, with the usual and with tiny queues, and the same in
//! sessions.

use conformance::{in_sessions, suite};
use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_tcp::{PROVIDER, Tuning, open};
use std::process::ExitCode;

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

fn tiny(with: &Open) -> Result<Box<dyn Transport>, Error> {
    open(with, Tuning::tiny())
}

fn usual_in_sessions(with: &Open) -> Result<Box<dyn Transport>, Error> {
    usual(with).map(in_sessions)
}

fn tiny_in_sessions(with: &Open) -> Result<Box<dyn Transport>, Error> {
    tiny(with).map(in_sessions)
}

fn main() -> ExitCode {
    let mut tests = suite("", usual, tiny, || ());
    tests.extend(suite(
        "session_",
        usual_in_sessions,
        tiny_in_sessions,
        || (),
    ));
    testkit::run(tests)
}
