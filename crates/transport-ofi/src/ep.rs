//! An endpoint of libfabric with its queue, and the operations that are in flight on it.
//!
//! Every operation has a cell: a context that the provider may use until it completes, and memory for
//! short transfers, so that their source is free at once. Who uses an ep has its lock.
#![allow(unsafe_code)]

mod atomic;

use crate::block::Block;
use crate::fabric::{Cq, Fabric};
use crate::fid::Fid;
use crate::message::NBYTES;
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use rushmem_transport::mem;
use std::mem::ManuallyDrop;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

/// Completions taken at once.
const ENTRIES: usize = 32;

/// Where a transfer goes, as libfabric has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    pub(crate) pe: u32,
    pub(crate) at: fi::fi_addr_t,
    pub(crate) address: u64,
    pub(crate) key: u64,
}

/// What an operation does with memory when it completes.
enum Use {
    /// Nothing: the memory is the caller's, or nobody wants it.
    Plain,
    /// The memory is the caller's and was registered for this operation alone.
    Registered { _mr: Fid<fi::fid_mr> },
    /// What came into the cell goes there.
    Landing(LocalBuf),
    /// A message came into the cell.
    Receive,
}

struct Op {
    pe: u32,
    use_: Use,
}

/// What went wrong, and with whom if that is known.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) pe: Option<u32>,
    pub(crate) why: String,
}

/// What became of an attempt to start something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Post {
    Started,
    /// There is no room for now.
    Later,
}

/// One endpoint. Registrations are closed before what they belong to, and memory is freed after it was closed.
pub(crate) struct FiEndpoint {
    ops: Vec<Op>,
    staging_mr: Option<Fid<fi::fid_mr>>,
    endpoint: ManuallyDrop<Fid<fi::fid_ep>>,
    cq: Arc<Cq>,
    contexts: ManuallyDrop<Block>,
    staging: ManuallyDrop<Block>,
    free: Vec<u32>,
    /// Per PE, operations in flight, and their sum.
    pending: Vec<u32>,
    in_flight: u32,
    /// Receives that wait for a message.
    receiving: usize,
    copy_up_to: usize,
    /// The provider takes short writes that it tells the completion of.
    injects: bool,
    fabric: Arc<Fabric>,
}

impl FiEndpoint {
    /// An ep for so many operations, with cells for so many bytes.
    ///
    /// # Errors
    /// libfabric's number.
    pub(crate) fn open(
        fabric: Arc<Fabric>,
        n_pes: usize,
        depth: usize,
        copy_up_to: usize,
        sleep: bool,
    ) -> Result<FiEndpoint, i32> {
        let cq = Arc::new(fabric.cq(depth + ENTRIES, sleep)?);
        let endpoint = fabric.endpoint(&cq)?;
        let staging = Block::new(depth, copy_up_to.max(NBYTES));
        let staging_mr = match fabric.facts.asks(fi::FI_MR_LOCAL) {
            false => None,
            true => {
                let access = fi::FI_READ | fi::FI_WRITE | fi::FI_SEND | fi::FI_RECV;
                let LocalBuf { base, nbytes } = staging.whole();
                // SAFETY: the block is dropped after the registration.
                Some(unsafe { fabric.register(base, nbytes, access, &endpoint) }?)
            }
        };
        Ok(FiEndpoint {
            ops: (0..depth).map(|_| Op { pe: 0, use_: Use::Plain }).collect(),
            staging_mr,
            endpoint: ManuallyDrop::new(endpoint),
            cq,
            contexts: ManuallyDrop::new(Block::new(depth, size_of::<fi::fi_context2>())),
            staging: ManuallyDrop::new(staging),
            free: (0..depth as u32).rev().collect(),
            pending: vec![0; n_pes],
            in_flight: 0,
            receiving: 0,
            copy_up_to,
            injects: true,
            fabric,
        })
    }

    pub(crate) fn endpoint(&self) -> &Fid<fi::fid_ep> {
        &self.endpoint
    }

    pub(crate) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(crate) fn cq(&self) -> &Arc<Cq> {
        &self.cq
    }

    /// Operations in flight, receives not counted.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Receives that wait for a message.
    pub(crate) fn receiving(&self) -> usize {
        self.receiving
    }

    /// Operations in flight towards a PE.
    pub(crate) fn pending(&self, pe: u32) -> u32 {
        self.pending[pe as usize]
    }

    fn context(&self, op: u32) -> *mut core::ffi::c_void {
        self.contexts.cell(op).base.cast()
    }

    /// The descriptor of the cells.
    fn staging_desc(&self) -> *mut core::ffi::c_void {
        desc(self.staging_mr.as_ref())
    }

    /// A descriptor for memory of the caller's, and its registration where there must be one.
    ///
    /// # Safety
    /// The range is valid for reads and writes until the registration is dropped.
    unsafe fn describe(
        &self,
        range: LocalBuf,
        known: Option<usize>,
        access: u64,
    ) -> Result<(*mut core::ffi::c_void, Use), i32> {
        if !self.fabric.facts.asks(fi::FI_MR_LOCAL) {
            return Ok((null_mut(), Use::Plain));
        }
        if let Some(known) = known.filter(|_| !self.fabric.facts.asks(fi::FI_MR_ENDPOINT)) {
            return Ok((without_provenance_mut(known), Use::Plain));
        }
        // SAFETY: by contract.
        let mr = unsafe { self.fabric.register(range.base, range.nbytes, access, &self.endpoint) }?;
        Ok((desc(Some(&mr)), Use::Registered { _mr: mr }))
    }

    /// Start a write of at most `copy_up_to` bytes, whose source is free at once.
    ///
    /// # Safety
    /// The range is valid for reads.
    pub(crate) unsafe fn write_copy(&mut self, to: Remote, from: LocalBuf) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let flags = self.completion();
        if self.injects && from.nbytes <= self.fabric.facts.inject {
            // SAFETY: valid by contract, and injected memory is free when the call returns.
            let code =
                unsafe { self.write_message(op, to, from, null_mut(), flags | fi::FI_INJECT) };
            match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
                0 => return Ok(self.started(op, to.pe, Use::Plain)),
                code if code == -fi::FI_EAGAIN => return Ok(Post::Later),
                code if is_refusal(code) => self.injects = false,
                code => return Err(code),
            }
        }
        let cell = self.staging.cell(op).skip(0).first(from.nbytes);
        // SAFETY: the source is valid by contract, and a cell has as many bytes.
        unsafe { mem::copy_bytes(cell.base, from.base, from.nbytes) };
        // SAFETY: the cell is this operation's until it completes.
        let code = unsafe { self.write_message(op, to, cell, self.staging_desc(), flags) };
        self.decide(code, op, to.pe, Use::Plain)
    }

    /// Start a write. `known` is the descriptor of the segment that the source is in, if it is in one.
    ///
    /// # Safety
    /// The range is valid for reads until the operation completes or the ep is dropped.
    pub(crate) unsafe fn write(
        &mut self,
        to: Remote,
        from: LocalBuf,
        known: Option<usize>,
    ) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        // SAFETY: valid until the operation completes, by contract.
        let (desc, use_) = unsafe { self.describe(from, known, fi::FI_WRITE) }?;
        // SAFETY: by contract.
        let code = unsafe { self.write_message(op, to, from, desc, self.completion()) };
        self.decide(code, op, to.pe, use_)
    }

    /// What a write's completion tells.
    fn completion(&self) -> u64 {
        match self.fabric.facts.delivery {
            true => fi::FI_COMPLETION | fi::FI_DELIVERY_COMPLETE,
            false => fi::FI_COMPLETION | fi::FI_TRANSMIT_COMPLETE,
        }
    }

    /// # Safety
    /// The range is valid for reads: with `FI_INJECT` during the call, else until completion.
    unsafe fn write_message(
        &self,
        op: u32,
        to: Remote,
        from: LocalBuf,
        desc: *mut core::ffi::c_void,
        flags: u64,
    ) -> isize {
        let iov = fi::iovec { iov_base: from.base.cast(), iov_len: from.nbytes };
        let mut desc = [desc];
        let rma = fi::fi_rma_iov { addr: to.address, len: from.nbytes, key: to.key };
        let message = fi::fi_msg_rma {
            msg_iov: &raw const iov,
            desc: desc.as_mut_ptr(),
            iov_count: 1,
            addr: to.at,
            rma_iov: &raw const rma,
            rma_iov_count: 1,
            context: self.context(op),
            data: 0,
        };
        // SAFETY: an open endpoint, a context that is free, and vectors that live during the call.
        unsafe { fi::fi_writemsg(self.endpoint.raw(), &message, flags) }
    }

    /// Start a read into a cell; `dest`, of at most `copy_up_to` bytes, is written when it completes.
    ///
    /// # Safety
    /// `dest` is valid for writes until the operation completes or the ep is dropped.
    pub(crate) unsafe fn read_copy(&mut self, from: Remote, dest: LocalBuf) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let cell = self.staging.cell(op).skip(0).first(dest.nbytes);
        // SAFETY: the cell is this operation's until it completes.
        let code = unsafe { self.read_into(op, from, cell, self.staging_desc()) };
        self.decide(code, op, from.pe, Use::Landing(dest))
    }

    /// Start a read of a byte that nobody wants.
    pub(crate) fn read_and_forget(&mut self, from: Remote) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let cell = self.staging.cell(op).skip(0).first(1);
        // SAFETY: the cell is this operation's until it completes.
        let code = unsafe { self.read_into(op, from, cell, self.staging_desc()) };
        self.decide(code, op, from.pe, Use::Plain)
    }

    /// Start a read.
    ///
    /// # Safety
    /// `dest` is valid for writes until the operation completes or the ep is dropped.
    pub(crate) unsafe fn read(
        &mut self,
        from: Remote,
        dest: LocalBuf,
        known: Option<usize>,
    ) -> Result<Post, i32> {
        if self.staging_mr.is_some() && known.is_none() && dest.nbytes <= self.copy_up_to {
            // SAFETY: the same contract.
            return unsafe { self.read_copy(from, dest) };
        }
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        // SAFETY: valid until the operation completes, by contract.
        let (desc, use_) = unsafe { self.describe(dest, known, fi::FI_READ) }?;
        // SAFETY: by contract.
        let code = unsafe { self.read_into(op, from, dest, desc) };
        self.decide(code, op, from.pe, use_)
    }

    /// # Safety
    /// The range is valid for writes until completion.
    unsafe fn read_into(
        &self,
        op: u32,
        from: Remote,
        to: LocalBuf,
        desc: *mut core::ffi::c_void,
    ) -> isize {
        let (endpoint, context) = (self.endpoint.raw(), self.context(op));
        let (Remote { at, address, key, .. }, LocalBuf { base, nbytes }) = (from, to);
        // SAFETY: an open endpoint, a context that is free, and memory that is valid by contract.
        unsafe { fi::fi_read(endpoint, base.cast(), nbytes, desc, at, address, key, context) }
    }

    /// Start a message.
    pub(crate) fn send(
        &mut self,
        pe: u32,
        to: fi::fi_addr_t,
        message: &[u8; NBYTES],
    ) -> Result<Post, i32> {
        let endpoint = self.endpoint.raw();
        if NBYTES <= self.fabric.facts.inject {
            let from = message.as_ptr().cast();
            // SAFETY: an open endpoint and a message that lives during the call.
            return match unsafe { fi::fi_inject(endpoint, from, NBYTES, to) } {
                0 => Ok(Post::Started),
                code if code == -(fi::FI_EAGAIN as isize) => Ok(Post::Later),
                code => Err(i32::try_from(code).unwrap_or(-fi::FI_EIO)),
            };
        }
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let cell = self.staging.cell(op);
        // SAFETY: a cell has at least as many bytes.
        unsafe { mem::copy_bytes(cell.base, message.as_ptr(), NBYTES) };
        let (desc, context) = (self.staging_desc(), self.context(op));
        // SAFETY: an open endpoint, a context that is free, and a cell that is this operation's.
        let code = unsafe { fi::fi_send(endpoint, cell.base.cast(), NBYTES, desc, to, context) };
        self.decide(code, op, pe, Use::Plain)
    }

    /// Wait for one more message.
    pub(crate) fn receive(&mut self) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let (endpoint, desc, context) =
            (self.endpoint.raw(), self.staging_desc(), self.context(op));
        let to = self.staging.cell(op).base.cast();
        // SAFETY: an open endpoint, a context that is free, and a cell that is this operation's.
        match unsafe { fi::fi_recv(endpoint, to, NBYTES, desc, context) } {
            0 => {
                self.free.pop();
                self.ops[op as usize].use_ = Use::Receive;
                self.receiving += 1;
                Ok(Post::Started)
            }
            code if code == -(fi::FI_EAGAIN as isize) => Ok(Post::Later),
            code => Err(i32::try_from(code).unwrap_or(-fi::FI_EIO)),
        }
    }

    fn decide(&mut self, code: isize, op: u32, pe: u32, use_: Use) -> Result<Post, i32> {
        match i32::try_from(code).unwrap_or(-fi::FI_EIO) {
            0 => Ok(self.started(op, pe, use_)),
            code if code == -fi::FI_EAGAIN => Ok(Post::Later),
            code => Err(code),
        }
    }

    fn started(&mut self, op: u32, pe: u32, use_: Use) -> Post {
        self.free.pop();
        self.ops[op as usize] = Op { pe, use_ };
        self.pending[pe as usize] += 1;
        self.in_flight += 1;
        Post::Started
    }

    /// Let the provider work and take completions; `arrived` gets each message. Returns how many
    /// completions there were.
    ///
    /// # Errors
    /// What the provider says of an operation that failed.
    pub(crate) fn poll(&mut self, mut arrived: impl FnMut([u8; NBYTES])) -> Result<usize, Failure> {
        let mut taken = 0;
        loop {
            let mut entries = [fi::fi_cq_entry { op_context: null_mut() }; ENTRIES];
            let (cq, to) = (self.cq.cq.raw(), entries.as_mut_ptr().cast());
            // SAFETY: an open queue whose entries are of this kind, and room for as many as are told.
            let n = unsafe { fi::fi_cq_read(cq, to, ENTRIES) };
            match n {
                1.. => {
                    let n = (n as usize).min(ENTRIES);
                    for entry in &entries[..n] {
                        self.complete(entry.op_context.cast(), &mut arrived);
                    }
                    taken += n;
                    if n < ENTRIES {
                        return Ok(taken);
                    }
                }
                n if n == -(fi::FI_EAVAIL as isize) => self.failed()?,
                0 => return Ok(taken),
                n if n == -(fi::FI_EAGAIN as isize) => return Ok(taken),
                n => return Err(Failure { pe: None, why: self.strerror(n as i32) }),
            }
        }
    }

    fn complete(&mut self, context: *const u8, arrived: &mut impl FnMut([u8; NBYTES])) {
        let Some(op) = self.contexts.index(context) else { return };
        let done = &mut self.ops[op as usize];
        match std::mem::replace(&mut done.use_, Use::Plain) {
            Use::Receive => {
                let mut message = [0; NBYTES];
                let from = self.staging.cell(op).base;
                // SAFETY: a cell has at least as many bytes, and its operation is over.
                unsafe { mem::copy_bytes(message.as_mut_ptr(), from, NBYTES) };
                self.free.push(op);
                self.receiving -= 1;
                return arrived(message);
            }
            Use::Landing(to) => {
                let from = self.staging.cell(op).base;
                // SAFETY: valid until now by the contract of `read_copy`; a cell has as many bytes.
                unsafe { mem::copy_bytes(to.base, from, to.nbytes) };
            }
            Use::Plain | Use::Registered { .. } => {}
        }
        self.pending[done.pe as usize] -= 1;
        self.in_flight -= 1;
        self.free.push(op);
    }

    /// An operation failed: say which and why. A message that does not fit is a stranger's.
    fn failed(&mut self) -> Result<(), Failure> {
        // SAFETY: a C struct of numbers and pointers, for which zeros mean none.
        let mut entry: fi::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue.
        let n = unsafe { fi::fi_cq_readerr(self.cq.cq.raw(), &mut entry) };
        if n <= 0 {
            return Ok(());
        }
        let op = self.contexts.index(entry.op_context.cast());
        if let Some(op) = op
            && matches!(self.ops[op as usize].use_, Use::Receive)
        {
            self.ops[op as usize].use_ = Use::Plain;
            self.free.push(op);
            self.receiving -= 1;
            return Ok(());
        }
        let mut text = [0; 256];
        // SAFETY: an open queue, its entry, and room for as many bytes as are told.
        let said =
            unsafe { fi::fi_cq_strerror(self.cq.cq.raw(), &entry, text.as_mut_ptr(), text.len()) };
        let mut why = self.strerror(entry.err);
        if !said.is_null() {
            // SAFETY: a string that ends with a zero, libfabric's own or the one above.
            let said = unsafe { std::ffi::CStr::from_ptr(said) }.to_string_lossy();
            if !said.is_empty() && *said != *why {
                why += &format!(" ({said})");
            }
        }
        Err(Failure { pe: op.map(|op| self.ops[op as usize].pe), why })
    }

    pub(crate) fn strerror(&self, code: i32) -> String {
        self.fabric.library.strerror(code)
    }
}

impl Drop for FiEndpoint {
    fn drop(&mut self) {
        self.ops.clear();
        self.staging_mr = None;
        // SAFETY: it is not used afterwards.
        let endpoint = unsafe { ManuallyDrop::take(&mut self.endpoint) };
        // Where it cannot be closed libfabric may go on using the memory of its operations, which is kept.
        if endpoint.close() {
            // SAFETY: it is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.contexts) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut self.staging) };
        }
    }
}

/// A registration's descriptor, null for none.
fn desc(mr: Option<&Fid<fi::fid_mr>>) -> *mut core::ffi::c_void {
    // SAFETY: an open registration.
    mr.map_or(null_mut(), |mr| unsafe { (*mr.raw()).mem_desc })
}

/// The provider does not do this at all.
fn is_refusal(code: i32) -> bool {
    let flags = fi::FI_EBADFLAGS as i32;
    [fi::FI_EINVAL, fi::FI_ENOSYS, fi::FI_EOPNOTSUPP, fi::FI_EMSGSIZE, flags].contains(&-code)
}
