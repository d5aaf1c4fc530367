//! A PE that dies, or whose request cannot be carried out: each PE that uses it gets an error, and
//! none hangs. A PE that leaves is no loss.

use conformance::loss::{LossCase, Recorder, one_dies, one_leaves, open_beside};
use conformance::{Case, LIMIT, Member};
use rushmem_transport::{Error, Open, Transport};
use rushmem_transport_ucx::{Tuning, open};
use std::sync::Arc;

const HOST: Recorder = Recorder(&[("SHMEM_UCX_TLS", "tcp,self")]);

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let with = Open {
        host: Arc::new(HOST),
        ..with.clone()
    };
    open(&with, Tuning::default())
}

/// Ignores the test unless there is a UCX that survives the loss of a peer.
fn needs() {
    let why = match ucx_sys::open() {
        Err(why) => why,
        // Seen with 1.13.1: tcp_ep.c, "Assertion `!(ep->flags & UCT_TCP_EP_FLAG_CTX_TYPE_TX)'
        // failed".
        Ok(ucp) if ucx_sys::version(ucp) < (1, 20, 0) => {
            "UCX before 1.20 may abort by an assertion of its own when a peer is gone".to_owned()
        }
        Ok(_) => return,
    };
    testkit::absent(why);
}

fn a_pe_that_dies_is_noticed_by_those_who_use_it() {
    let body = |member: &_| one_dies(member, &[LossCase::Puts, LossCase::Gets, LossCase::PutsNbi]);
    let case = Case {
        sizes: &[4],
        heap_bytes: 2 << 20,
        limit: LIMIT,
        body,
    };
    let test = "a_pe_that_dies_is_noticed_by_those_who_use_it";
    conformance::run_where(needs, test, recording, case);
}

fn leaves(member: &Member) {
    let mut heap = vec![0u64; 512];
    let transport = open_beside(member, &mut heap, Arc::new(HOST), recording);
    one_leaves(member, transport);
}

fn a_pe_that_leaves_is_no_loss() {
    let case = Case {
        sizes: &[2, 3],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: leaves,
    };
    conformance::run_where(needs, "a_pe_that_leaves_is_no_loss", recording, case);
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
    a_pe_that_leaves_is_no_loss,
}
