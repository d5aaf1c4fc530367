//! Small puts that nobody waits for, held back to travel together: where UCX moves data by the processors,
//! one message costs as much as a hundred of them.
//!
//! They leave when they fill a message, ahead of anything else to their PE, with a fence or a quiet, and
//! when the service thread comes by.
#![allow(unsafe_code)]

use super::Origin;
use crate::pending::noted;
use crate::proto::{REPLY, batch};
use crate::shared::Shared;
use crate::target::PUTS_KIND;
use crate::ucp::started;
use rushmem_transport::{AmoWidth, Error, LocalBuf, Pe, RemoteAddr, mem};
use std::ptr::null_mut;
use ucx_sys::{UCP_AM_SEND_FLAG_EAGER, UCP_AM_SEND_FLAG_REPLY, UCP_OP_ATTR_FIELD_FLAGS};

/// Bytes of a message from which on it leaves: with its headers it fits one piece of UCX's.
const FULL: usize = 4096;

impl Origin {
    /// Whether a put that nobody waits for is held back.
    pub(super) fn may_hold(&self, nbytes: usize) -> bool {
        nbytes <= batch::MAX_NBYTES && self.worker.copies()
    }

    /// Something is held back.
    pub(crate) fn holds(&self) -> bool {
        self.touched.iter().any(|&pe| !self.routes[pe as usize].held.is_empty())
    }

    /// Holds a put back.
    ///
    /// # Safety
    /// The local memory is valid for reads.
    pub(super) unsafe fn hold(
        &mut self,
        shared: &Shared,
        pe: Pe,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        let held = &mut self.routes[pe.index()].held;
        let copy = batch::append(held, at, local.nbytes).as_mut_ptr();
        // SAFETY: as many bytes, valid by contract and just made.
        unsafe { mem::copy_bytes(copy, local.base.cast_const(), local.nbytes) };
        match held.len() < FULL {
            true => Ok(()),
            false => self.send_held(shared, pe),
        }
    }

    /// Sends what is held back for a PE.
    #[inline]
    pub(super) fn send_held(&mut self, shared: &Shared, pe: Pe) -> Result<(), Error> {
        match self.routes[pe.index()].held.is_empty() {
            true => Ok(()),
            false => self.send_batch(shared, pe),
        }
    }

    fn send_batch(&mut self, shared: &Shared, pe: Pe) -> Result<(), Error> {
        let (endpoint, connection) = self.connection(shared, pe)?;
        self.room(shared)?;
        let slot = self.pending.slot(&connection, null_mut(), AmoWidth::Eight);
        let held = &mut self.routes[pe.index()].held;
        let (header, data, nbytes) = slot.keep_data(held);
        let mut params = noted(&connection);
        params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
        // SAFETY: a live endpoint, and a header and data that are kept until the reply.
        let begun = unsafe {
            let (ucp, params) = (self.ucp(), &raw const params);
            ucp.ucp_am_send_nbx(endpoint, PUTS_KIND, header, REPLY, data, nbytes, params)
        };
        match started(begun) {
            Ok(_) => connection.asked(&slot),
            Err(_) => slot.give_back(&self.pending),
        }
        connection.began(begun).map_err(self.fails(shared, pe))
    }
}
