//! The network of PEs under test: the provider of TCP over loopback. The PEs exchange by a mutex
//! what `start::connect` exchanges by the launcher.
#![allow(unsafe_code)]

use super::{CALL, TestPe};
use rushmem_communication::links::Links;
use rushmem_system::lock::lock;
use rushmem_transport::{Amos, Directory, EndpointUser, Host, Open, PeRecord, Segment};
use rushmem_transport_tcp::PROVIDER;
use std::sync::{Arc, Barrier, Mutex};

/// What a PE announces of its transport: the address, and the key of each segment.
type Announced = (Vec<u8>, [Vec<u8>; Segment::COUNT]);

/// Where the PEs of a job meet.
pub(super) struct Meeting {
    announced: Mutex<Vec<Option<Announced>>>,
    all: Barrier,
}

/// The host of the transport of a PE.
struct TestHost(TestPe);

impl Host for TestHost {
    fn arrived(&self, place: u8) {
        assert_eq!(place, 0, "there are no proxies");
        self.0.area().ring(self.0.job().me);
    }
}

impl Meeting {
    pub(super) fn of(n_pes: u32) -> Meeting {
        Meeting {
            announced: Mutex::new(vec![None; n_pes as usize]),
            all: Barrier::new(n_pes as usize),
        }
    }

    /// Opens the transport of a PE and connects it to those of all others, which call this, too.
    pub(super) fn connect(&self, pe: TestPe) {
        let job = pe.job();
        let open = Open {
            pe: job.me,
            n_pes: job.n_pes,
            secret: job.secret,
            one_machine: true,
            cpus_per_pe: 0,
            amos: Amos::Software,
            part: None,
            host: Arc::new(TestHost(pe)),
        };
        let mut transport = (PROVIDER.open)(&open).expect("loopback works");

        let (memory, layout) = (job.memory, job.memory.layout());
        let mut keys: [Vec<u8>; Segment::COUNT] = Default::default();
        for (segment, base, nbytes) in [
            (Segment::Heap, memory.heap(), layout.heap_bytes()),
            (
                Segment::Internal,
                memory.internal(),
                layout.internal_bytes(),
            ),
        ] {
            // SAFETY: the memory is mapped until the transport is closed.
            let key = unsafe { transport.register(segment, base, nbytes) };
            keys[segment as usize] = key.expect("TCP registers all").0;
        }
        lock(&self.announced)[pe.me()] = Some((transport.address(), keys));
        self.all.wait();

        let announced = lock(&self.announced).clone();
        let all: Vec<&Announced> = announced.iter().flatten().collect();
        let records = all.iter().map(|(address, keys)| PeRecord {
            address,
            keys: keys.each_ref().map(Vec::as_slice),
        });
        let directory = Arc::new(Directory::new(Directory::encode(records)));
        transport.connect(directory).expect("loopback works");

        let endpoint = transport.endpoint(EndpointUser::Runtime);
        let Links {
            endpoints, network, ..
        } = pe.links();
        endpoints.set_of_library(endpoint.expect("there is one"));
        network.open(transport);
        self.all.wait();
    }

    /// Closes the transport of a PE once all PEs have completed their operations.
    pub(super) fn close(&self, pe: TestPe) {
        pe.links().endpoints.complete(CALL);
        self.all.wait();
        pe.links().close_network();
    }
}
