//! Peers that are not used take hardly any memory, however many PEs the job has.
#![allow(unsafe_code)]

use super::member::Member;
use super::verbs;
use rushmem_transport::{Directory, EndpointUser, Pe, PeRecord, RemoteAddr, Segment, Transport};
use std::sync::Arc;

/// PEs of a small job and of a large one.
const FEW: u32 = 1 << 10;
const MANY: u32 = 1 << 18;
/// The memory in bytes that an unused peer may take. It should take none, but libraries sometimes
/// allocate a megabyte.
const BYTES_PER_PEER: u64 = 8;

/// Compares the memory of a PE in a small job with that in a large one, of which only the first two
/// PEs exist. They use each other, so both jobs should take about the same.
pub(crate) fn peers(member: &Member) {
    without_huge_pages();
    let mut used = [0u64; 8];
    let (few, few_taken) = opened(member, FEW, &mut used);
    let (many, many_taken) = opened(member, MANY, &mut used);
    member.barrier();
    drop((few, many));
    let most = few_taken + u64::from(MANY) * BYTES_PER_PEER;
    assert!(
        many_taken <= most,
        "{FEW} PEs take {few_taken} bytes, {MANY} {many_taken}"
    );
}

/// Returns a transport of a job of `n_pes` PEs that has used one of them, and the bytes of memory
/// that it takes.
fn opened(member: &Member, n_pes: u32, heap: &mut [u64; 8]) -> (Box<dyn Transport>, u64) {
    let before = private_bytes();
    let mut transport = member.open_beside(n_pes);
    let key = {
        let base = heap.as_mut_ptr().cast();
        // SAFETY: the caller drops the transport before the memory.
        unsafe { transport.register(Segment::Heap, base, size_of_val(heap)) }
    };
    let key = key.expect("the memory is accepted").0;
    let opened = private_bytes().saturating_sub(before);
    // The directory is not counted, since the PEs of a node share it in a job.
    let (addresses, keys) = (member.exchange(&transport.address()), member.exchange(&key));
    let record = |pe: usize| PeRecord {
        address: &addresses[pe],
        keys: [&keys[pe], &[], &[]],
    };
    let records = (0..n_pes as usize).map(|pe| record(pe.min(1)));
    let directory = Arc::new(Directory::new(Directory::encode(records)));
    member.barrier();
    let before = private_bytes();
    transport.connect(directory).expect("a way to every PE");
    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let at = RemoteAddr {
        segment: Segment::Heap,
        offset: 8,
    };
    let other = Pe(member.right() as u32);
    verbs::put(&mut *endpoint, other, at, &7u64.to_ne_bytes()).expect("a PE that is there");
    endpoint.quiet().expect("a PE that is there");
    drop(endpoint);
    (transport, opened + private_bytes().saturating_sub(before))
}

/// Makes the kernel give this process small pages from now on. With huge pages, the one peer that
/// is used would make 2 MiB of each table resident, which would hide what the others take.
fn without_huge_pages() {
    // SAFETY: takes numbers.
    let code = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(code, 0, "the kernel lets a process do without huge pages");
}

/// Returns the number of bytes that this process has written and shares with no other one.
fn private_bytes() -> u64 {
    let map = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel has it");
    let line = map
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .map(str::parse::<u64>);
    kib.expect("a line of it").expect("a number") << 10
}
