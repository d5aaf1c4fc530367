//! A transport whose endpoints are in a session, to run the suite over: a session changes neither
//! order nor completion.
#![allow(unsafe_code)]

use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{
    Caps, Directory, Endpoint, EndpointUser, Error, Key, NetworkActivity, Pe, Segment, Transport,
};
use std::sync::Arc;
use std::time::Duration;

struct InSessions(Box<dyn Transport>);

/// Wraps a transport so that all operations on its endpoints, except those of the runtime, are in a
/// session.
pub fn in_sessions(transport: Box<dyn Transport>) -> Box<dyn Transport> {
    Box::new(InSessions(transport))
}

impl Transport for InSessions {
    fn caps(&self) -> Caps {
        self.0.caps()
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        // SAFETY: the same contract.
        unsafe { self.0.register(segment, base, nbytes) }
    }

    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.0.extend_heap(nbytes, prepare)
    }

    fn address(&self) -> Vec<u8> {
        self.0.address()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        self.0.connect(directory)
    }

    fn endpoint(&self, user: EndpointUser) -> Result<Box<dyn Endpoint>, Error> {
        let mut endpoint = self.0.endpoint(user)?;
        if user == EndpointUser::Context {
            endpoint.session(true)?;
        }
        Ok(endpoint)
    }

    fn progress(&self) -> Result<bool, Error> {
        self.0.progress()
    }

    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        self.0.wait(at_most, awaited, is_over)
    }

    fn end_wait(&self) {
        self.0.end_wait();
    }

    fn activity(&self) -> NetworkActivity {
        self.0.activity()
    }

    fn stop_polling(&self) {
        self.0.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.0.lose(pe, why);
    }
}
