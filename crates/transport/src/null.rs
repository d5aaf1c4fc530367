//! A provider for the tests of those that choose and open one: it can be opened, and reaches no PE.
//!
//! It has no wire, so it is no model for a provider; `engine/wire.rs` names those. `providers::ALL`
//! never contains it.
#![allow(unsafe_code)]

use crate::progress::events::AwaitedWord;
use crate::{
    AmoRequest, Caps, Dest, Directory, Endpoint, EndpointUser, Error, Found, Get, Key,
    NetworkActivity, OldValue, Pe, Provider, Put, Segment, SignalOrder, Source, StridedBlocks,
    Transport,
};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use std::time::Duration;

/// Its entry for a list of providers, of which tests change what they need.
pub const PROVIDER: Provider = Provider {
    name: "null",
    sources: crate::SOURCES,
    settings: &[],
    opens_libraries: false,
    without_rdma: false,
    network_amos: false,
    available: |_| {
        Ok(Found {
            rdma: false,
            hardware_amos: false,
            description: "nothing".to_owned(),
        })
    },
    parts: None,
    diagnose: |_| Vec::new(),
    open: |_| Ok(with_endpoints(usize::MAX)),
};

/// Returns a transport that has at most `most` endpoints.
pub fn with_endpoints(most: usize) -> Box<dyn Transport> {
    Box::new(Null {
        endpoints: AtomicUsize::new(most),
    })
}

struct Null {
    /// The number of endpoints that can still be opened.
    endpoints: AtomicUsize,
}

/// An endpoint that reaches no PE.
struct Nowhere;

impl Transport for Null {
    fn caps(&self) -> Caps {
        Caps::default()
    }

    unsafe fn register(&mut self, _: Segment, _: *mut u8, _: usize) -> Result<Key, Error> {
        Ok(Key(Vec::new()))
    }

    fn address(&self) -> Vec<u8> {
        Vec::new()
    }

    fn connect(&mut self, _: Arc<Directory>) -> Result<(), Error> {
        Err(Error::Unavailable("the network reaches nobody".into()))
    }

    fn extend_heap(
        &self,
        _: usize,
        _: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn endpoint(&self, _: EndpointUser) -> Result<Box<dyn Endpoint>, Error> {
        // Relaxed: the number orders nothing else.
        let left = self
            .endpoints
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if left.is_err() {
            let why = "the network has no more endpoints";
            return Err(Error::Unavailable(why.to_owned()));
        }

        Ok(Box::new(Nowhere))
    }

    fn progress(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn wait(
        &self,
        at_most: Duration,
        _: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        if !is_over() {
            std::thread::sleep(at_most);
        }
        Ok(false)
    }

    fn end_wait(&self) {}

    fn activity(&self) -> NetworkActivity {
        NetworkActivity::default()
    }

    fn stop_polling(&self) {}

    fn lose(&self, _: Pe, _: &str) {}
}

impl Endpoint for Nowhere {
    fn put(&mut self, pe: Pe, _: Put) -> Result<(), Error> {
        Err(Error::Unreachable(pe))
    }

    fn get(&mut self, pe: Pe, _: Get) -> Result<(), Error> {
        Err(Error::Unreachable(pe))
    }

    fn put_strided(&mut self, pe: Pe, _: StridedBlocks<Source>) -> Result<(), Error> {
        Err(Error::Unreachable(pe))
    }

    fn get_strided_nbi(&mut self, pe: Pe, _: StridedBlocks<Dest>) -> Result<(), Error> {
        Err(Error::Unreachable(pe))
    }

    fn amo(&mut self, pe: Pe, _: AmoRequest, _: OldValue) -> Result<u64, Error> {
        Err(Error::Unreachable(pe))
    }

    fn put_signal(&mut self, pe: Pe, _: Put, _: AmoRequest, _: SignalOrder) -> Result<(), Error> {
        Err(Error::Unreachable(pe))
    }

    fn session(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn free_sources(&mut self, _: Option<Pe>) -> Result<(), Error> {
        Ok(())
    }

    fn pe_quiet(&mut self, _: Pe) -> Result<(), Error> {
        Ok(())
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    fn when_quiet(&mut self, _: &Waker) -> Result<bool, Error> {
        Ok(true)
    }

    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AmoOp, Completion, Open, PeRecord, RemoteAddr, SourceBuf};

    #[test]
    fn reaches_nobody() {
        let open = Open::for_tests();
        (PROVIDER.available)(&*open.host).expect("it is always available");
        let mut transport = (PROVIDER.open)(&open).expect("it always opens");

        let records = [PeRecord::default(); 2];
        let directory = Directory::new(Directory::encode(records.into_iter()));
        let connected = transport.connect(Arc::new(directory));
        assert!(matches!(connected, Err(Error::Unavailable(_))));

        let mut endpoint = transport
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        let unreachable = Err(Error::Unreachable(Pe(1)));
        let dest = RemoteAddr {
            segment: Segment::Heap,
            offset: 0,
        };
        let put = || Put {
            remote: dest,
            local: SourceBuf::EMPTY,
            completion: Completion::Now,
        };
        assert_eq!(endpoint.put(Pe(1), put()), unreachable);

        let signal = AmoRequest::of_word(dest, AmoOp::Set, 1);
        let with_signal = endpoint.put_signal(Pe(1), put(), signal, SignalOrder::AfterAll);
        assert_eq!(with_signal, unreachable);
        assert_eq!(endpoint.quiet(), Ok(()));
    }

    #[test]
    fn endpoints_end() {
        let transport = with_endpoints(1);
        assert!(transport.endpoint(EndpointUser::Context).is_ok());
        assert!(transport.endpoint(EndpointUser::Context).is_err());
    }
}
