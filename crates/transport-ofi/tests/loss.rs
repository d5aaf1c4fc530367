//! A PE that dies, or whose request cannot be carried out: each PE that uses it gets an error, and
//! none hangs. libfabric does not report the death of a PE that is not used; the launcher does.

use conformance::loss::{LossCase, Recorder, one_dies};
use conformance::{Case, LIMIT};
use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_ofi::{PROVIDER, Tuning, open};
use std::sync::Arc;

const HOST: Recorder = Recorder(&[("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")]);

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let with = Open {
        host: Arc::new(HOST),
        ..with.clone()
    };
    open(&with, Tuning::default())
}

fn needs() {
    if let Err(error) = (PROVIDER.available)(&HOST) {
        testkit::absent(error);
    }
}

fn a_pe_that_dies_is_noticed_by_those_who_use_it() {
    let body = |member: &_| one_dies(member, &[LossCase::Puts, LossCase::Fetches]);
    let case = Case {
        sizes: &[3],
        heap_bytes: 2 << 20,
        limit: LIMIT,
        body,
    };
    let test = "a_pe_that_dies_is_noticed_by_those_who_use_it";
    conformance::run_where(needs, test, recording, case);
}

fn a_request_that_cannot_be_carried_out_ends_the_wait_for_it() {
    let body = conformance::malformed::target_ends;
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body,
    };
    let test = "a_request_that_cannot_be_carried_out_ends_the_wait_for_it";
    conformance::run_where(needs, test, recording, case);
}

testkit::tests! {
    a_pe_that_dies_is_noticed_by_those_who_use_it,
    a_request_that_cannot_be_carried_out_ends_the_wait_for_it,
}
