//! The strided blocks of a put are sent in few requests, outside sessions, too.
#![allow(unsafe_code)]

use conformance::{Case, LIMIT, Member};
use rushmem_transport::{
    EndpointUser, Error, Open, Pe, RemoteAddr, Segment, SourceBuf, StridedBlocks, Transport,
};
use rushmem_transport_tcp::PROVIDER;

const BLOCKS: usize = 500;
const ROUNDS: usize = 20;

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

/// PE 0 puts to every second word of PE 1, and has at most two requests in flight.
fn few_requests(member: &Member) {
    if member.me() == 0 {
        let mut endpoint = member
            .transport()
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        for round in 0..ROUNDS {
            let source = [round as u64 + 1; BLOCKS];
            let blocks = StridedBlocks {
                remote: RemoteAddr {
                    segment: Segment::Heap,
                    offset: 0,
                },
                // SAFETY: the array is valid during the call, which waits for the operation.
                local: unsafe { SourceBuf::new(source.as_ptr().cast(), size_of_val(&source)) },
                nbytes: 8,
                remote_stride: 16,
                local_stride: 8,
                n: BLOCKS,
            };

            endpoint.put_strided(Pe(1), blocks).expect("no loss");

            let in_flight = endpoint.in_flight().expect("no loss");
            assert!(in_flight.iter().all(|(_, n)| *n <= 2), "{in_flight:?}");
            endpoint.quiet().expect("no loss");
        }
    }
    member.barrier();

    if member.me() == 1 {
        for block in 0..BLOCKS {
            assert_eq!(member.fetch::<u64>(16 * block), ROUNDS as u64);
        }
    }
    member.barrier();
}

#[test]
fn strided_blocks_of_a_put_are_few_requests() {
    let name = "strided::strided_blocks_of_a_put_are_few_requests";
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: few_requests,
    };
    conformance::run(name, usual, case);
}
