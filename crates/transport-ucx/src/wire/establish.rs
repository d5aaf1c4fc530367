//! Connects a wire to a PE. When a connection of UCX fails, all operations on it are lost. So an
//! endpoint is flushed before its first use, which connects it; if that fails, another one is made.
#![allow(unsafe_code)]

use super::{Connecting, OpenRoute, PendingAttempt, UcxWire};
use crate::callbacks::{ConnectionState, broken};
use crate::connect;
use crate::shared::SharedState;
use crate::ucp::status_string;
use rushmem_connect::Attempts;
use rushmem_transport::{Error, Pe};
use std::rc::Rc;
use std::time::Instant;

/// The result of an attempt to connect.
enum Attempted {
    Connected(OpenRoute),
    Pending(PendingAttempt),
    Failed(String),
}

impl UcxWire {
    /// Starts or continues to connect to a PE, without waiting. A failed attempt is repeated, for
    /// at most the connect limit. Returns true once the PE is connected.
    #[cold]
    pub(super) fn connect(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        let made = self.routes[pe].connecting.take();
        let mut connecting = made.unwrap_or_else(|| Connecting {
            attempts: Attempts::new(Instant::now()),
            pending: None,
        });

        let attempted = match connecting.pending.take() {
            Some(pending) => self.check_attempt(pending),
            None if Instant::now() < connecting.attempts.next() => {
                self.routes[pe].connecting = Some(connecting);
                return Ok(false);
            }
            None => self.attempt(shared, pe)?,
        };

        match attempted {
            Attempted::Connected(open) => {
                // Only for the log; a PE whose host is unknown has none there.
                let host = shared.peers.host_of(pe).unwrap_or_default();
                rushmem_system::log::debug!(peer = pe.0, host, "made an endpoint to it");
                self.routes[pe].open = Some(open);
                // Frees the ended requests of failed attempts.
                self.free_ended();
                return Ok(true);
            }
            Attempted::Pending(pending) => connecting.pending = Some(pending),
            Attempted::Failed(why) => {
                let attempts = &mut connecting.attempts;
                if !attempts.record_refusal(Instant::now(), shared.tuning.connect_limit) {
                    let tried = attempts.tried(shared.local.me);
                    let ways = shared.ways();
                    let why =
                        format!("{why}; {tried} {ways}, or set SHMEM_HOST_LIMIT to a longer time");
                    return Err(shared.lose_peer(pe, &why));
                }
                rushmem_system::log::debug!(peer = pe.0, "{why}: connects once more");
            }
        }

        self.routes[pe].connecting = Some(connecting);
        Ok(false)
    }

    /// Starts an attempt to connect: makes an endpoint and flushes it.
    fn attempt(&mut self, shared: &SharedState, pe: Pe) -> Result<Attempted, Error> {
        let address = shared.peers.address(pe)?;
        let worker = connect::decode_address(pe, &address.of_provider)?;

        let open = match self.open_endpoint(&worker) {
            Ok(open) => open,
            Err(why) => return Ok(Attempted::Failed(why)),
        };
        if !self.worker.context.notices_failures {
            // UCX would not report a failure, so there is nothing to wait for.
            return Ok(Attempted::Connected(open));
        }

        Ok(match open.endpoint.flush(self.ucp()) {
            Ok(Some(flush)) => self.check_attempt(PendingAttempt { open, flush }),
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
        // SAFETY: `address` is what a PE of the job has published of its service worker, in a
        // record whose version was checked. `broken` takes a `ConnectionState`, to which `arg`
        // points; a route or `closed` keeps it until the worker was dropped.
        let endpoint = unsafe { self.worker.connect(address, Some(broken), arg) }?;
        Ok(OpenRoute {
            endpoint,
            connection,
        })
    }

    /// Returns the result of an attempt to connect, from the first flush of its endpoint. Closes
    /// the endpoint if the attempt has failed.
    fn check_attempt(&mut self, pending: PendingAttempt) -> Attempted {
        let ucp = self.ucp();
        let Some(status) = pending.flush.status(ucp) else {
            return Attempted::Pending(pending);
        };

        let PendingAttempt { open, flush } = pending;
        flush.free(ucp);

        // If the flush was canceled, the connection has the cause, which UCX passed to its handler.
        match open.connection.broken().or(status.err()) {
            None => Attempted::Connected(open),
            Some(status) => {
                self.close(open);
                Attempted::Failed(status_string(ucp, status))
            }
        }
    }
}
