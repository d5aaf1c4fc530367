//! The requirements on an endpoint of libfabric, in the terms of its hints, as plain data.
#![allow(unsafe_code)]

use crate::wish::Wish;
use libfabric_sys as fi;
use rushmem_transport::Amos;
use std::ffi::{CStr, CString, c_char};

/// The requirements on an endpoint, or the offer of an entry. The fields are those of `fi_info` and
/// its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) caps: u64,
    pub(crate) mode: u64,
    pub(crate) type_: fi::fi_ep_type,
    pub(crate) threading: fi::fi_threading,
    pub(crate) control_progress: fi::fi_progress,
    pub(crate) data_progress: fi::fi_progress,
    pub(crate) resource_mgmt: fi::fi_resource_mgmt,
    pub(crate) mr_mode: u64,
    pub(crate) op_flags: u64,
    pub(crate) domain: Option<String>,
    pub(crate) fabric: Option<String>,
    pub(crate) provider: Option<String>,
}

/// All that a provider can ask of registrations.
pub(crate) const ANY_REGISTRATION: u64 = fi::FI_MR_LOCAL
    | fi::FI_MR_RAW
    | fi::FI_MR_VIRT_ADDR
    | fi::FI_MR_ALLOCATED
    | fi::FI_MR_PROV_KEY
    | fi::FI_MR_MMU_NOTIFY
    | fi::FI_MR_RMA_EVENT
    | fi::FI_MR_ENDPOINT
    | fi::FI_MR_HMEM
    | fi::FI_MR_COLLECTIVE;

impl Hints {
    /// Nothing is required.
    pub(crate) fn none() -> Hints {
        Hints { mode: u64::MAX, mr_mode: ANY_REGISTRATION, ..Hints::default() }
    }

    /// Returns what a job requires, with completions that cover the target's memory if `delivery`.
    pub(crate) fn of(wish: &Wish, delivery: bool) -> Hints {
        let mut caps = fi::FI_MSG | fi::FI_RMA;
        if wish.amos == Amos::Network {
            caps |= fi::FI_ATOMIC;
        }
        if !wish.one_machine {
            caps |= fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;
        }
        Hints {
            caps,
            mode: fi::FI_CONTEXT | fi::FI_CONTEXT2,
            type_: fi::FI_EP_RDM,
            threading: fi::FI_THREAD_SAFE,
            // A thread that waits polls, and the service thread does while no thread waits: no
            // thread of the provider's own need compete with them.
            control_progress: fi::FI_PROGRESS_MANUAL,
            data_progress: fi::FI_PROGRESS_MANUAL,
            resource_mgmt: fi::FI_RM_ENABLED,
            mr_mode: fi::FI_MR_LOCAL
                | fi::FI_MR_VIRT_ADDR
                | fi::FI_MR_ALLOCATED
                | fi::FI_MR_PROV_KEY
                | fi::FI_MR_RAW
                | fi::FI_MR_ENDPOINT
                | fi::FI_MR_RMA_EVENT,
            op_flags: if delivery { fi::FI_DELIVERY_COMPLETE } else { 0 },
            domain: wish.domain.clone(),
            fabric: wish.fabric.clone(),
            provider: wish.provider.clone(),
        }
    }

    /// Returns what an entry offers.
    pub(crate) fn of_entry(info: &fi::fi_info) -> Hints {
        // SAFETY: entries that libfabric returns have all parts.
        let tx = unsafe { &*info.tx_attr };
        // SAFETY: an entry has this part.
        let endpoint = unsafe { &*info.ep_attr };
        // SAFETY: an entry has this part.
        let domain = unsafe { &*info.domain_attr };
        // SAFETY: an entry has this part.
        let fabric = unsafe { &*info.fabric_attr };
        Hints {
            caps: info.caps,
            mode: info.mode,
            type_: endpoint.type_,
            threading: domain.threading,
            control_progress: domain.control_progress,
            data_progress: domain.data_progress,
            resource_mgmt: domain.resource_mgmt,
            mr_mode: u64::from(domain.mr_mode.cast_unsigned()),
            op_flags: tx.op_flags,
            domain: Some(text(domain.name)),
            fabric: Some(text(fabric.name)),
            provider: Some(text(fabric.prov_name)),
        }
    }

    /// Writes them into an empty `fi_info` of libfabric's, which has all parts.
    ///
    /// # Errors
    /// When a name cannot be one of libfabric's.
    pub(crate) fn fill(&self, info: &mut fi::fi_info) -> Result<(), String> {
        (info.caps, info.mode) = (self.caps, self.mode);
        // SAFETY: a part of an entry that libfabric made.
        unsafe { &mut *info.ep_attr }.type_ = self.type_;
        // SAFETY: a part of an entry that libfabric made.
        let domain = unsafe { &mut *info.domain_attr };
        domain.threading = self.threading;
        domain.control_progress = self.control_progress;
        domain.data_progress = self.data_progress;
        domain.resource_mgmt = self.resource_mgmt;
        domain.mr_mode = self.mr_mode as i32;
        domain.name = copy(self.domain.as_deref())?;
        // SAFETY: a part of an entry that libfabric made.
        let fabric = unsafe { &mut *info.fabric_attr };
        fabric.name = copy(self.fabric.as_deref())?;
        fabric.prov_name = copy(self.provider.as_deref())?;
        // SAFETY: a part of an entry that libfabric made.
        unsafe { &mut *info.tx_attr }.op_flags = self.op_flags;
        Ok(())
    }
}

/// A string that libfabric will free.
fn copy(text: Option<&str>) -> Result<*mut c_char, String> {
    let Some(text) = text else { return Ok(std::ptr::null_mut()) };
    let text = CString::new(text).map_err(|_| format!("{text:?} names nothing of libfabric's"))?;
    // SAFETY: a string that ends with a zero.
    Ok(unsafe { libc::strdup(text.as_ptr()) })
}

/// A string of libfabric's, which may be none.
pub(crate) fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: libfabric's strings end with zeros and live as long as the entry.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}
