//! The connection of a wire to a PE. When a connection of UCX's fails, all that was to be sent over
//! it is lost; so an endpoint is flushed before its first use, and another one is made if that
//! fails.
#![allow(unsafe_code)]

use super::UcxWire;
use super::route::{Connecting, OpenRoute};
use crate::callbacks::{ConnectionState, broken};
use crate::connect;
use crate::shared::SharedState;
use crate::ucp::{UcpRequest, status_string};
use rushmem_transport::kit::attempts::Attempts;
use rushmem_transport::origin::WireNetwork;
use rushmem_transport::{Error, Pe};
use std::rc::Rc;
use std::time::Instant;

/// The result of an attempt to connect.
enum Attempted {
    Connected(OpenRoute),
    Pending(OpenRoute, UcpRequest),
    Failed(String),
}

impl UcxWire {
    /// Connects to a PE, as far as that is possible now; an attempt that fails is repeated for some
    /// time. Returns true once it is connected.
    #[cold]
    pub(super) fn connect(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        let made = self.routes[pe].connecting.take();
        let mut connecting = made
            .unwrap_or_else(|| Connecting { attempts: Attempts::new(Instant::now()), tried: None });
        let attempted = match connecting.tried.take() {
            Some((open, flush)) => self.established(open, flush),
            None if Instant::now() < connecting.attempts.next() => {
                self.routes[pe].connecting = Some(connecting);
                return Ok(false);
            }
            None => self.attempt(shared, pe)?,
        };
        match attempted {
            Attempted::Connected(open) => {
                let host = shared.host_of(pe).unwrap_or_default();
                rushmem_log::debug!(peer = pe.0, host, "made an endpoint to it");
                self.routes[pe].open = Some(open);
                // Frees the ended requests of failed attempts.
                self.unended();
                return Ok(true);
            }
            Attempted::Pending(open, flush) => connecting.tried = Some((open, flush)),
            Attempted::Failed(why) => {
                let attempts = &mut connecting.attempts;
                if !attempts.refused(Instant::now(), shared.tuning.connect_limit) {
                    let why = format!(
                        "{why}; PE {} has tried {} times within {:.1} s; if the PE still runs there, set \
                         SHMEM_HOST_LIMIT to a longer time",
                        shared.local.me,
                        attempts.n(),
                        attempts.elapsed().as_secs_f64()
                    );
                    return Err(shared.lose(pe, &why));
                }
                rushmem_log::debug!(peer = pe.0, "{why}: connects once more");
            }
        }
        self.routes[pe].connecting = Some(connecting);
        Ok(false)
    }

    /// Makes one attempt to connect.
    fn attempt(&mut self, shared: &SharedState, pe: Pe) -> Result<Attempted, Error> {
        let record = shared.peers.record(pe).ok_or(Error::Unreachable(pe))?;
        let address = connect::address(pe, record)?;
        let open = match self.open_endpoint(&address.worker) {
            Ok(open) => open,
            Err(why) => return Ok(Attempted::Failed(why)),
        };
        if !self.worker.closes_by_force() {
            // UCX would not say that it has failed.
            return Ok(Attempted::Connected(open));
        }
        Ok(match open.endpoint.flush(self.ucp()) {
            Ok(Some(flush)) => self.established(open, flush),
            Ok(None) => Attempted::Connected(open),
            Err(status) => {
                self.close(open);
                Attempted::Failed(status_string(self.ucp(), status))
            }
        })
    }

    /// Makes an endpoint to the worker with this address.
    fn open_endpoint(&self, address: &[u8]) -> Result<OpenRoute, String> {
        let connection = Rc::new(ConnectionState::new(self.ucp(), &self.callbacks));
        let arg = Rc::as_ptr(&connection).cast_mut().cast();
        // SAFETY: the handler takes a `ConnectionState`, which is dropped after the worker: a route
        // and `closed` keep it.
        let endpoint = unsafe { self.worker.connect(address, Some(broken), arg) }?;
        Ok(OpenRoute { endpoint, connection })
    }

    /// Returns what became of an endpoint by its first flush.
    fn established(&mut self, open: OpenRoute, flush: UcpRequest) -> Attempted {
        let ucp = self.ucp();
        let Some(status) = flush.status(ucp) else { return Attempted::Pending(open, flush) };
        flush.free(ucp);
        // The handler knows the cause of a flush that was canceled.
        match open.connection.broken().or(status.err()) {
            None => Attempted::Connected(open),
            Some(status) => {
                self.close(open);
                Attempted::Failed(status_string(ucp, status))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::{HEAP, PEER, TestPair, pair};
    use rushmem_transport::{Completion, Endpoint, Error, LocalBuf, Put};
    use rustix::net::{
        AddressFamily, SocketAddrAny, SocketType, bind, getsockname, socket, sockopt,
    };
    use std::collections::HashSet;
    use std::fs::read_dir;
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::time::Duration;

    /// Returns the addresses at which this process listens.
    fn listens_at() -> HashSet<SocketAddrAny> {
        let fds = read_dir("/proc/self/fd").expect("a process has one").flatten();
        let fds = fds.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let address = |fd| {
            // SAFETY: the kernel says of a descriptor that was closed meanwhile that it is none.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            sockopt::socket_acceptconn(fd).ok()?.then(|| getsockname(fd).ok())?
        };
        fds.filter_map(address).collect()
    }

    /// Takes an address, at which nobody listens then. `None` if it is taken.
    fn taken(address: &SocketAddrAny) -> Option<OwnedFd> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
        bind(&socket, address).ok().map(|()| socket)
    }

    #[test]
    fn a_peer_that_refuses_is_tried_again_and_the_message_says_how_often() {
        let Some(pair) = pair("tcp,self", Duration::from_secs(30)) else { return };
        let TestPair { mut endpoint, issuer: _issuer, progress: _progress, peer, .. } = pair;
        let before = listens_at();
        drop(peer);
        // Nobody listens at its address from now on, not even a process that gets a free port.
        let _taken: Vec<_> = before.difference(&listens_at()).map(taken).collect();
        let word = 7u64.to_ne_bytes();
        let source = LocalBuf::source(word.as_ptr(), word.len());
        let put = Put { dest: HEAP, source, completion: Completion::AtQuiet };
        // SAFETY: the word outlives the endpoint's use of it: there is no connection.
        let tried = unsafe { endpoint.put(PEER, put) };
        let Err(Error::Lost(PEER, why)) = tried else { panic!("{tried:?}") };
        let found = why.split_once("PE 0 has tried ").expect(&why).1;
        let n: u32 = found.split(' ').next().and_then(|n| n.parse().ok()).expect(&why);
        assert!(n > 1, "{why}");
        for words in ["from PE 0 on here to PE 1 on here", " times within 1.", "SHMEM_HOST_LIMIT"] {
            assert!(why.contains(words), "{words}: {why}");
        }
    }
}
