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
    let mut heap = [0u64; 8];
    let few = open(member, FEW, &mut heap);
    let many = open(member, MANY, &mut heap);
    member.barrier();
    drop(few.transport);
    drop(many.transport);

    let most = few.nbytes + u64::from(MANY) * BYTES_PER_PEER;
    assert!(
        many.nbytes <= most,
        "{FEW} PEs take {} bytes, {MANY} {}",
        few.nbytes,
        many.nbytes
    );
}

/// A transport that has used one PE.
struct Opened {
    transport: Box<dyn Transport>,
    /// The bytes of memory that it takes.
    nbytes: u64,
}

/// Opens a transport of a job of `n_pes` PEs, and uses one of them.
fn open(member: &Member, n_pes: u32, heap: &mut [u64; 8]) -> Opened {
    let before = private_bytes();
    let mut transport = member.open_beside(n_pes);
    let base = heap.as_mut_ptr().cast();
    let heap_bytes = size_of_val(heap);
    // SAFETY: the caller drops the transport before the memory.
    let key = unsafe { transport.register(Segment::Heap, base, heap_bytes) };
    let key = key.expect("the memory is accepted").0;
    let opened_bytes = private_bytes().saturating_sub(before);

    // The directory is not counted, since the PEs of a node share it in a job. It gives all PEs but
    // the first the address of the second, which is the last that exists.
    let addresses = member.exchange(&transport.address());
    let keys = member.exchange(&key);
    let records = (0..n_pes as usize).map(|pe| {
        let existing = pe.min(1);
        PeRecord {
            address: &addresses[existing],
            keys: [&keys[existing], &[], &[]],
        }
    });
    let directory = Arc::new(Directory::new(Directory::encode(records)));
    member.barrier();

    let before = private_bytes();
    transport.connect(directory).expect("a way to every PE");
    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let word = RemoteAddr {
        segment: Segment::Heap,
        offset: 8,
    };
    let other = Pe(member.right() as u32);
    verbs::put(&mut *endpoint, other, word, &7u64.to_ne_bytes()).expect("a PE that is there");
    endpoint.quiet().expect("a PE that is there");
    drop(endpoint);
    let connected_bytes = private_bytes().saturating_sub(before);

    Opened {
        transport,
        nbytes: opened_bytes + connected_bytes,
    }
}

/// Makes the kernel give this process small pages from now on. With huge pages, the one peer that
/// is used would make 2 MiB of each table resident, which would hide what the others take.
fn without_huge_pages() {
    // SAFETY: this request of `prctl` takes only numbers.
    let code = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    assert_eq!(code, 0, "the kernel lets a process do without huge pages");
}

/// Returns the number of bytes that this process has written and shares with no other one.
fn private_bytes() -> u64 {
    let map = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel has it");
    let value = map
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"))
        .expect("the kernel counts them");
    let kib = value.trim().strip_suffix(" kB").expect("a unit");
    kib.parse::<u64>().expect("a number") << 10
}
