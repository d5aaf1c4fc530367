//! Unit tests of `null`.
#![allow(unsafe_code)]

use super::*;
use crate::{
    AmoOp, Amos, Completion, Follows, Host, LocalBuf, Open, PeRecord, RemoteAddr, SignalUpdate,
};
use std::sync::Arc;

struct Nobody;

impl Host for Nobody {}

#[test]
fn reaches_nobody() {
    (PROVIDER.available)(&Nobody).expect("the template is always available");
    let open = Open {
        pe: Pe(0),
        n_pes: 2,
        secret: [0; 32],
        one_machine: true,
        cpus_per_pe: 1,
        amos: Amos::Software,
        part: None,
        host: Arc::new(Nobody),
    };
    let mut transport = (PROVIDER.open)(&open).expect("the template always opens");
    let directory =
        Arc::new(Directory::new(Directory::encode([PeRecord::default(); 2].into_iter())));
    assert!(matches!(transport.connect(directory), Err(Error::Unavailable(_))));
    let mut endpoint = transport.endpoint().expect("an endpoint");
    let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
    let put = Put { dest: at, source: LocalBuf::EMPTY, completion: Completion::Now };
    // SAFETY: nothing is read for zero bytes.
    assert_eq!(unsafe { endpoint.put(Pe(1), put) }, Err(Error::Unreachable(Pe(1))));
    let signal = SignalUpdate { dest: at, op: AmoOp::Set, value: 1, follows: Follows::All };
    // SAFETY: nothing is read for zero bytes.
    let with_signal = unsafe { endpoint.put_signal(Pe(1), put, signal) };
    assert_eq!(with_signal, Err(Error::Unreachable(Pe(1))));
    assert_eq!(endpoint.quiet(), Ok(()));
}

#[test]
fn endpoints_end() {
    let transport = with_endpoints(1);
    assert!(transport.endpoint().is_ok());
    assert!(transport.endpoint().is_err());
}
