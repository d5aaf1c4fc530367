//! Transports that a test opens and drops while that of the case stays.
#![allow(unsafe_code)]

use conformance::Member;
use rushmem_transport::{Amos, Directory, Host, Open, Pe, PeRecord, Segment, Transport};
use rushmem_transport_tcp::{Tuning, open};
use std::sync::Arc;

/// A transport beside the case's own, since a member keeps that to the end.
pub(crate) fn open_beside(
    member: &Member,
    tuning: Tuning,
    heap: &mut [u64],
    host: Arc<dyn Host>,
) -> Box<dyn Transport> {
    let with = Open {
        pe: Pe(member.me() as u32),
        n_pes: member.n_pes() as u32,
        secret: [3; 32],
        one_machine: true,
        oversubscribed: true,
        amos: Amos::Software,
        host,
    };
    let mut transport = open(&with, tuning).expect("sockets");
    // SAFETY: dropped after the transport, and used by nobody else meanwhile.
    let key =
        unsafe { transport.register(Segment::Heap, heap.as_mut_ptr().cast(), 8 * heap.len()) };
    let keys = member.exchange(&key.expect("memory").0);
    let addresses = member.exchange(&transport.address());
    let records = addresses.iter().zip(&keys);
    let records = records.map(|(address, heap)| PeRecord { address, keys: [heap, &[], &[]] });
    let directory = Directory::new(Directory::encode(records));
    transport.connect(Arc::new(directory)).expect("addresses");
    member.barrier();
    transport
}
