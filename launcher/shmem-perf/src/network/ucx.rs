//! The floors of UCX: `ucp_put_nbx` with a flush of the endpoint, and `ucp_get_nbx` with its
//! completion.
//!
//! The transports and devices are those of `UCX_TLS` and `UCX_NET_DEVICES`, or else of Rushmem's
//! `SHMEM_UCX_TLS` and `SHMEM_NIC`, or else UCX chooses them.
#![allow(unsafe_code)]

use std::env;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use ucx_sys as sys;

use super::route::{Contact, NetworkRoute, Preference, TransferMemory};

/// A worker, and its endpoint to the other PE. Neither is closed.
pub struct UcxRoute {
    ucp: &'static sys::Ucp,
    memory: TransferMemory,
    context: sys::ucp_context_h,
    worker: sys::ucp_worker_h,
    registration: sys::ucp_mem_h,
    endpoint: sys::ucp_ep_h,
    key: sys::ucp_rkey_h,
    /// The remote address of the start of the other PE's memory.
    base: u64,
    /// The requests of reads since the last `complete`.
    reads: Vec<sys::ucs_status_ptr_t>,
    /// True if there were writes since the last flush.
    has_written: bool,
    spins: bool,
    path: String,
}

impl UcxRoute {
    /// Opens UCX, creates a worker and registers the memory.
    pub fn open(
        memory: TransferMemory,
        preference: &Preference,
        spins: bool,
    ) -> Result<Self, String> {
        let ucp = sys::open()?;
        let devices = env::var("UCX_NET_DEVICES")
            .ok()
            .or_else(|| preference.port.clone());
        let context = context(ucp, devices.as_deref())?;
        let path = match devices {
            Some(devices) => format!("the devices {devices}"),
            None => "the devices that UCX chooses".to_owned(),
        };

        let params = sys::ucp_worker_params_t {
            field_mask: sys::UCP_WORKER_PARAM_FIELD_THREAD_MODE.into(),
            thread_mode: sys::UCS_THREAD_MODE_SINGLE,
            ..Default::default()
        };
        let mut worker = null_mut();
        // SAFETY: `context` is live; UCX writes a handle to `worker` if it succeeds.
        let status = unsafe { ucp.ucp_worker_create(context, &raw const params, &raw mut worker) };
        check_status(ucp, status)?;

        let mask = sys::UCP_MEM_MAP_PARAM_FIELD_ADDRESS | sys::UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        let params = sys::ucp_mem_map_params_t {
            field_mask: mask.into(),
            address: memory.base().cast(),
            length: memory.nbytes(),
            ..Default::default()
        };
        let mut registration = null_mut();
        // SAFETY: `context` is live, and the memory of `params` is valid as long as the process.
        let status = unsafe { ucp.ucp_mem_map(context, &raw const params, &raw mut registration) };
        check_status(ucp, status)?;

        Ok(Self {
            ucp,
            memory,
            context,
            worker,
            registration,
            endpoint: null_mut(),
            key: null_mut(),
            base: 0,
            reads: Vec::new(),
            has_written: false,
            spins,
            path,
        })
    }

    /// Waits until a request is complete.
    fn wait(&mut self, request: sys::ucs_status_ptr_t) -> Result<(), String> {
        let Some(request) = pending(self.ucp, request)? else {
            return Ok(());
        };

        loop {
            // SAFETY: `request` has not been freed.
            match unsafe { self.ucp.ucp_request_check_status(request) } {
                sys::UCS_INPROGRESS => self.progress()?,
                status => {
                    // SAFETY: `request` has not been freed, and is complete.
                    unsafe { self.ucp.ucp_request_free(request) };
                    return check_status(self.ucp, status);
                }
            }
        }
    }
}

impl NetworkRoute for UcxRoute {
    fn contact(&self) -> Result<Contact, String> {
        let ucp = self.ucp;
        let mut nbytes = 0;

        let mut address = null_mut();
        // SAFETY: `worker` is live; UCX writes an address and its size if it succeeds.
        let status =
            unsafe { ucp.ucp_worker_get_address(self.worker, &raw mut address, &raw mut nbytes) };
        check_status(ucp, status)?;
        // SAFETY: `address` has `nbytes` bytes, as UCX wrote, and is never released.
        let name = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), nbytes) }.to_vec();

        let mut key = null_mut();
        // SAFETY: `context` and `registration` are live; UCX writes a buffer and its size if it
        // succeeds.
        let status = unsafe {
            ucp.ucp_rkey_pack(
                self.context,
                self.registration,
                &raw mut key,
                &raw mut nbytes,
            )
        };
        check_status(ucp, status)?;
        // SAFETY: `key` has `nbytes` bytes, as UCX wrote, and is never released.
        let key = unsafe { std::slice::from_raw_parts(key.cast::<u8>(), nbytes) }.to_vec();

        Ok(Contact {
            name,
            base: self.memory.base().addr() as u64,
            key,
        })
    }

    fn connect(&mut self, contact: &Contact) -> Result<(), String> {
        let params = sys::ucp_ep_params_t {
            field_mask: sys::UCP_EP_PARAM_FIELD_REMOTE_ADDRESS.into(),
            address: contact.name.as_ptr().cast(),
            ..Default::default()
        };
        let endpoint = &raw mut self.endpoint;
        // SAFETY: `worker` is live, and the address of `params` is one that UCX made; UCX writes a
        // handle to `endpoint` if it succeeds.
        let status = unsafe {
            self.ucp
                .ucp_ep_create(self.worker, &raw const params, endpoint)
        };
        check_status(self.ucp, status)?;

        let packed = contact.key.as_ptr().cast();
        let key = &raw mut self.key;
        // SAFETY: `endpoint` is live, and UCX packed the key; UCX writes a handle to `key` if it
        // succeeds.
        let status = unsafe { self.ucp.ucp_ep_rkey_unpack(self.endpoint, packed, key) };
        check_status(self.ucp, status)?;

        self.base = contact.base;
        Ok(())
    }

    fn put(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        let params = plain();
        let from = self.memory.base().wrapping_add(from).cast();
        let to = self.base + to as u64;
        // SAFETY: `endpoint` is connected, and the memory of both PEs stays registered.
        let request = unsafe {
            self.ucp
                .ucp_put_nbx(self.endpoint, from, nbytes, to, self.key, &raw const params)
        };
        self.has_written = true;
        if let Some(request) = pending(self.ucp, request)? {
            // SAFETY: `request` has not been freed. UCX allows this before its completion, for
            // which the flush waits.
            unsafe { self.ucp.ucp_request_free(request) };
        }
        Ok(())
    }

    fn get(&mut self, from: usize, to: usize, nbytes: usize) -> Result<(), String> {
        let params = plain();
        let from = self.base + from as u64;
        let to = self.memory.base().wrapping_add(to).cast();
        // SAFETY: `endpoint` is connected, and the memory of both PEs stays registered.
        let request = unsafe {
            self.ucp
                .ucp_get_nbx(self.endpoint, to, nbytes, from, self.key, &raw const params)
        };
        self.reads.push(request);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), String> {
        while let Some(request) = self.reads.pop() {
            self.wait(request)?;
        }
        // A read is complete at this PE, but a write only after a flush.
        if std::mem::take(&mut self.has_written) {
            let params = plain();
            // SAFETY: `endpoint` is connected.
            let request = unsafe { self.ucp.ucp_ep_flush_nbx(self.endpoint, &raw const params) };
            self.wait(request)?;
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<(), String> {
        // SAFETY: `worker` is live, and no callback of UCX calls this method.
        if unsafe { self.ucp.ucp_worker_progress(self.worker) } == 0 && !self.spins {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn path(&self) -> String {
        self.path.clone()
    }
}

/// Creates a context with the transports that the environment names, and with these devices.
fn context(ucp: &'static sys::Ucp, devices: Option<&str>) -> Result<sys::ucp_context_h, String> {
    let mut config = null_mut();
    // SAFETY: null means no prefix, and no file; UCX writes a handle to `config` if it succeeds.
    let status = unsafe { ucp.ucp_config_read(null(), null(), &raw mut config) };
    check_status(ucp, status)?;

    let transports = env::var("UCX_TLS").or_else(|_| env::var("SHMEM_UCX_TLS"));
    if let Ok(transports) = transports {
        modify(ucp, config, c"TLS", &transports)?;
    }
    if let Some(devices) = devices {
        modify(ucp, config, c"NET_DEVICES", devices)?;
    }

    let params = sys::ucp_params_t {
        field_mask: sys::UCP_PARAM_FIELD_FEATURES.into(),
        features: sys::UCP_FEATURE_RMA.into(),
        ..Default::default()
    };
    let (major, minor) = sys::OLDEST;

    let mut context = null_mut();
    // SAFETY: `params` and `config` live; UCX writes a handle to `context` if it succeeds.
    let status =
        unsafe { ucp.ucp_init_version(major, minor, &raw const params, config, &raw mut context) };
    // SAFETY: `config` was read above, and is released only here.
    unsafe { ucp.ucp_config_release(config) };
    check_status(ucp, status)?;

    Ok(context)
}

/// Sets a field of a configuration that [`context`] has read.
fn modify(
    ucp: &sys::Ucp,
    config: *mut sys::ucp_config_t,
    name: &CStr,
    value: &str,
) -> Result<(), String> {
    let value = CString::new(value).map_err(|error| error.to_string())?;
    // SAFETY: `config` is live, and `name` and `value` are C strings.
    let status = unsafe { ucp.ucp_config_modify(config, name.as_ptr(), value.as_ptr()) };
    check_status(ucp, status)
}

/// Returns request parameters with no field set.
fn plain() -> sys::ucp_request_param_t {
    sys::ucp_request_param_t {
        user_data: null_mut(),
        ..Default::default()
    }
}

/// Returns the request of a call that started an operation; `None` if the operation is complete
/// already.
fn pending(
    ucp: &sys::Ucp,
    request: sys::ucs_status_ptr_t,
) -> Result<Option<sys::ucs_status_ptr_t>, String> {
    if request.is_null() {
        return Ok(None);
    }
    // UCX returns errors as addresses at the end of the address space.
    let error = request.addr() as isize;
    if (isize::from(sys::UCS_ERR_LAST)..0).contains(&error) {
        check_status(ucp, error as sys::ucs_status_t)?;
    }
    Ok(Some(request))
}

fn check_status(ucp: &sys::Ucp, status: sys::ucs_status_t) -> Result<(), String> {
    if status == sys::UCS_OK {
        return Ok(());
    }
    // SAFETY: `ucs_status_string` takes any number.
    let text = unsafe { ucp.ucs_status_string(status) };
    // SAFETY: `text` points to a C string of UCX, which is never freed.
    let text = unsafe { CStr::from_ptr(text) };
    Err(text.to_string_lossy().into_owned())
}
