//! Opens and closes an ep, and registers memory for its operations where the provider requires
//! that.
//!
//! After a failure the owner drops the ep, so that libfabric accesses no memory of its operations
//! any more.
#![allow(unsafe_code)]

use super::arguments::WriteArguments;
use super::connecting::Connections;
use super::poll::ENTRIES;
use super::{BufferSizes, BufferUse, EpOwner, FiEndpoint, Op};
use crate::block::CellBlock;
use crate::fabric::{Fabric, Fid};
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use std::mem::ManuallyDrop;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::time::Duration;

/// Room for receives of an ep that receives nothing. Some providers open no endpoint without any
/// room.
const NO_RECEIVES: usize = 16;

impl FiEndpoint {
    /// Opens an ep for `depth` operations, with a cell for each. Refused attempts to connect to a
    /// PE are repeated for `connect_limit`.
    pub(crate) fn open(
        fabric: Arc<Fabric>,
        n_pes: usize,
        depth: usize,
        BufferSizes {
            cell,
            copy_up_to,
            longest_message,
        }: BufferSizes,
        connect_limit: Duration,
        owner: EpOwner,
    ) -> Result<FiEndpoint, i32> {
        // Each operation has one completion at most, so a queue of `depth` entries cannot overrun.
        // The further ones are a margin.
        let cq = fabric.open_cq(depth + ENTRIES, owner == EpOwner::Service)?;
        let cq = Arc::new(cq);

        let receives = match owner {
            EpOwner::Service => depth,
            EpOwner::Origin => NO_RECEIVES,
        };
        let endpoint = fabric.open_endpoint(&cq, receives)?;

        let ops = (0..depth)
            .map(|_| Op {
                pe: 0,
                use_: BufferUse::None,
            })
            .collect();
        let contexts = CellBlock::new(depth, size_of::<fi::fi_context2>());
        let staging = CellBlock::new(depth, cell);
        let staging_mr = if fabric.info.asks(fi::FI_MR_LOCAL) {
            let access = fi::FI_READ | fi::FI_WRITE | fi::FI_SEND | fi::FI_RECV;
            let LocalBuf { base, nbytes } = staging.whole();
            // SAFETY: `base` points to `nbytes` bytes of `staging`, which are valid for reads and
            // writes until the block is dropped. The drop of the ep closes the registration first.
            Some(unsafe { fabric.register(base, nbytes, access, &endpoint) }?)
        } else {
            None
        };

        let completion = if fabric.info.delivery {
            fi::FI_COMPLETION | fi::FI_DELIVERY_COMPLETE
        } else {
            fi::FI_COMPLETION | fi::FI_TRANSMIT_COMPLETE
        };

        Ok(FiEndpoint {
            ops,
            staging_mr,
            endpoint: ManuallyDrop::new(endpoint),
            cq,
            contexts: ManuallyDrop::new(contexts),
            staging: ManuallyDrop::new(staging),
            free: (0..depth as u32).rev().collect(),
            room: vec![0; n_pes],
            connections: Connections::new(
                fabric.info.connects,
                connect_limit,
                Arc::clone(&fabric.permits),
            ),
            receiving: 0,
            copy_up_to,
            cell,
            longest_message,
            inject_up_to: fabric.info.inject,
            untracked: match owner {
                EpOwner::Origin if fabric.info.flushes_by_read() => Some(vec![0; n_pes]),
                _ => None,
            },
            write_arguments: WriteArguments::new(),
            completion,
            fabric,
        })
    }

    /// Returns the descriptor of the cells; null if the provider needs none.
    pub(super) fn staging_desc(&self) -> *mut core::ffi::c_void {
        desc(self.staging_mr.as_ref())
    }

    /// Returns a descriptor for memory of the caller, null if the provider needs none, and the
    /// operation's use of that memory. Registers the memory if no descriptor is `known`, or if
    /// registrations belong to endpoints, since the known one belongs to another endpoint.
    ///
    /// # Safety
    /// The range is valid for the accesses of `access` until the registration is dropped.
    #[inline]
    pub(super) unsafe fn describe(
        &self,
        range: LocalBuf,
        known: Option<usize>,
        access: u64,
    ) -> Result<(*mut core::ffi::c_void, BufferUse), i32> {
        if self.staging_mr.is_none() {
            return Ok((null_mut(), BufferUse::Plain));
        }
        if let Some(known) = known
            && !self.fabric.info.asks(fi::FI_MR_ENDPOINT)
        {
            return Ok((without_provenance_mut(known), BufferUse::Plain));
        }

        // SAFETY: by contract, `range` is valid for the accesses of `access` until the registration
        // is dropped.
        let mr = unsafe {
            self.fabric
                .register(range.base, range.nbytes, access, &self.endpoint)
        }?;
        Ok((desc(Some(&mr)), BufferUse::Registered { _mr: mr }))
    }
}

impl Drop for FiEndpoint {
    fn drop(&mut self) {
        // Registrations that belong to an endpoint must be closed before it.
        if self.fabric.info.asks(fi::FI_MR_ENDPOINT) {
            self.ops.clear();
            self.staging_mr = None;
        }

        // SAFETY: `endpoint` is taken once, since drop runs once, and not used afterwards.
        let endpoint = unsafe { ManuallyDrop::take(&mut self.endpoint) };
        let is_closed = endpoint.close();

        // Other registrations are closed after it, when no operation uses them any more, and before
        // the memory of the cells is freed.
        self.ops.clear();
        self.staging_mr = None;

        // If the endpoint cannot be closed, libfabric may still access the memory of its
        // operations, so this memory is leaked.
        if is_closed {
            // SAFETY: `contexts` is dropped once, since drop runs once, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.contexts) };
            // SAFETY: `staging` is dropped once, since drop runs once, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.staging) };
        }
    }
}

/// Returns a registration's descriptor, null for none.
fn desc(mr: Option<&Fid<fi::fid_mr>>) -> *mut core::ffi::c_void {
    // SAFETY: `mr` is open, so `raw` points to its structure, in which libfabric has stored the
    // descriptor.
    mr.map_or(null_mut(), |mr| unsafe { (*mr.raw()).mem_desc })
}
