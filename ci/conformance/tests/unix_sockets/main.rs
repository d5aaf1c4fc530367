//! The smallest provider that reaches a PE, as an example: a wire over Unix sockets, of which each
//! origin has one to each PE that it uses. The suite shows that it has every verb, although it only
//! writes, reads and sends: `rushmem_transport::origin` does the rest.

mod frames;
mod transport;
mod wire;

use conformance::loss::{LossCase, Recorder, one_dies};
use conformance::{Case, LIMIT};
use rushmem_transport::{Error, Open, Transport};
use std::process::ExitCode;
use std::sync::Arc;
use testkit::Test;

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    transport::open(with, 1 << 20)
}

/// Few bytes wait to be sent.
fn tiny(with: &Open) -> Result<Box<dyn Transport>, Error> {
    transport::open(with, 2000)
}

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    usual(&Open { host: Arc::new(Recorder(&[])), ..with.clone() })
}

fn a_pe_that_dies_is_noticed() {
    let body = |member: &_| one_dies(member, &[LossCase::Puts, LossCase::Gets, LossCase::Fetches]);
    let case = Case { sizes: &[4], heap_bytes: 2 << 20, limit: LIMIT, body };
    conformance::run("a_pe_that_dies_is_noticed", recording, case);
}

fn main() -> ExitCode {
    let mut tests = conformance::suite("", usual, tiny, || ());
    tests.push(Test::new("a_pe_that_dies_is_noticed", a_pe_that_dies_is_noticed));
    testkit::run(tests)
}
