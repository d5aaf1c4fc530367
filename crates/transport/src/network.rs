//! The transport of one PE over any network: it publishes the PE's address, registers its memory,
//! checks its peers, makes endpoints and leaves the job, once for all providers.
#![allow(unsafe_code)]

use crate::engine::driver::{Driver, Progress, Woken};
use crate::engine::keys::check_record;
use crate::engine::service_thread::ServiceThread;
use crate::engine::{NetworkPe, Registered, WireLimit};
use crate::peers::{PeAddress, Published};
use crate::progress::events::AwaitedWord;
use crate::{
    Caps, Directory, Endpoint, EndpointUser, Error, Key, LocalBuf, NetworkActivity, Pe, Segment,
    Transport,
};
use rushmem_system::host::host_name;
use std::sync::Arc;
use std::time::Duration;

/// A network that a provider has opened for this PE.
pub struct OpenedNetwork<N> {
    /// The name of the service thread.
    pub name: &'static str,
    /// The network.
    pub network: N,
    /// The address of this PE, in the encoding of the provider.
    pub address: Vec<u8>,
    /// The capabilities of the transport.
    pub caps: Caps,
    /// The limit of the number of wires.
    pub wire_limit: WireLimit,
}

/// The transport of this PE. Fields are dropped in this order.
pub struct NetworkTransport<N: Driver> {
    thread: ServiceThread<N>,
    progress: Arc<Progress<N>>,
    address: Vec<u8>,
    caps: Caps,
}

impl<N: Driver> NetworkTransport<N> {
    /// Returns the transport of a network, whose service thread it starts.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(opened: OpenedNetwork<N>) -> Result<NetworkTransport<N>, Error> {
        let address = PeAddress {
            host: host_name(),
            of_provider: opened.address,
        };
        let progress = Arc::new(Progress::new(opened.network, opened.wire_limit));

        Ok(NetworkTransport {
            thread: ServiceThread::start(opened.name, &progress)?,
            progress,
            address: address.encode(),
            caps: opened.caps,
        })
    }

    /// Returns the network and its issuers.
    pub fn progress(&self) -> &Arc<Progress<N>> {
        &self.progress
    }

    /// Returns the network.
    pub fn network(&self) -> &N {
        self.progress.network()
    }
}

impl<N: Driver> Transport for NetworkTransport<N> {
    fn caps(&self) -> Caps {
        self.caps
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        if nbytes == 0 {
            return Ok(Key(Vec::new()));
        }

        let network = self.network();
        let local = network.local();
        let memory = LocalBuf { base, nbytes };

        // The network registers only the first block of a heap in blocks.
        let covered = if segment == Segment::Heap && self.caps.heap_in_blocks {
            local.own_heap.begin(nbytes)
        } else {
            nbytes
        };
        // SAFETY: the first `covered` bytes are a part of the memory, which is valid for reads and
        // writes by contract until this transport is dropped, and with it the network.
        let registered = unsafe { network.register(segment, memory.first(covered)) }?;
        let Registered { extra, key } = registered;

        // SAFETY: the memory is valid for reads and writes by contract until this transport is
        // dropped. Afterwards no thread serves peers, so none uses the table.
        unsafe { local.segments.register(segment, memory, extra) }?;

        let published = Published {
            nbytes: nbytes as u64,
            covered: covered as u64,
            key,
        };
        Ok(Key(published.encode()))
    }

    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let network = self.network();
        let NetworkPe {
            own_heap, segments, ..
        } = network.local();

        own_heap.extend(nbytes, segments, prepare, |block| {
            // SAFETY: `extend` passes parts of the registered heap alone, which is valid for reads
            // and writes until this transport is dropped, and with it the network.
            unsafe { network.register(Segment::Heap, block) }
        })
    }

    fn address(&self) -> Vec<u8> {
        self.address.clone()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        let peers = self.network().peers();
        for pe in (0..peers.n_pes() as u32).map(Pe) {
            check_record(self.network(), pe, directory.of(pe))?;
        }
        peers.connect(directory)
    }

    fn endpoint(&self, user: EndpointUser) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(self.progress.endpoint(user)?))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.progress.poll()
    }

    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        let network = self.network();
        match network.sleep_in_wait(at_most, awaited, is_over) {
            Woken::ByOthers => {
                network.local().loss.check()?;
                Ok(false)
            }
            Woken::ToPoll => self.progress.poll(),
            Woken::ByEvent => {
                self.progress.poll()?;
                // Also if the poll has found no work: the thread must not sleep at once again.
                Ok(true)
            }
        }
    }

    fn end_wait(&self) {
        self.network().local().state.stop_watching();
    }

    fn activity(&self) -> NetworkActivity {
        self.network().local().state.activity()
    }

    fn stop_polling(&self) {
        self.network().local().state.sleep_elsewhere();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.network().lose(pe, why);
    }
}

impl<N: Driver> Drop for NetworkTransport<N> {
    fn drop(&mut self) {
        // First: from now on, a peer that leaves, or a connection that ends, is no loss.
        self.network().local().loss.leave();
        // The service thread ends before the network is left, since it uses the network.
        self.thread.end();
        N::leave(&self.progress);
    }
}
