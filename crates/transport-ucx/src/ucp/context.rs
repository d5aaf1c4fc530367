//! UCX's context, which holds its configuration and transports, and registered memory.
#![allow(unsafe_code)]

use super::request::{check_status, printed};
use crate::settings::library;
use rushmem_system::setting;
use rushmem_system::setting::environment;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use ucx_sys::{
    UCP_ATTR_FIELD_THREAD_MODE, UCP_FEATURE_AM, UCP_FEATURE_AMO32, UCP_FEATURE_AMO64,
    UCP_FEATURE_RMA, UCP_FEATURE_WAKEUP, UCP_MEM_MAP_PARAM_FIELD_ADDRESS,
    UCP_MEM_MAP_PARAM_FIELD_LENGTH, UCP_PARAM_FIELD_ESTIMATED_NUM_EPS, UCP_PARAM_FIELD_FEATURES,
    UCP_PARAM_FIELD_MT_WORKERS_SHARED, UCS_THREAD_MODE_MULTI, Ucp, ucp_config_t,
    ucp_context_attr_t, ucp_context_h, ucp_mem_h, ucp_mem_map_params_t, ucp_params_t,
};

/// The sizes of UCX's segments over sockets. UCX cuts a transfer into segments, and the target
/// answers each segment of a put, so longer segments mean fewer answers. A worker has few buffers
/// of this size, and only their used parts become resident.
const SEGMENT_SIZES: [&CStr; 2] = [c"UCX_TCP_TX_SEG_SIZE=256k", c"UCX_TCP_RX_SEG_SIZE=256k"];
/// The longest put that fits one such segment with its headers. UCX cuts a longer one within words,
/// and a target that waits for a word would see half of it.
const PIECE: usize = (256 << 10) - 512;
/// The number of buffers that UCX allocates at a time over shared memory. By default each worker
/// allocates and writes 512 for each of two transports, which takes 4 MiB. PEs that share memory
/// hardly use them.
const SHARED_MEMORY: &CStr = c"UCX_MM_RX_BUFS_GROW=32";

/// An initialized context, and the properties of its transports that the rest of the crate uses.
pub(crate) struct UcpContext {
    pub(crate) ucp: &'static Ucp,
    pub(super) handle: ucp_context_h,
    /// UCX reports the failure of a peer, and can close an endpoint by force. False if shared
    /// memory is the only transport: old versions of UCX refuse endpoints with this feature then.
    pub(crate) notices_failures: bool,
    /// The variables that each worker reads for its transports, as `NAME=value`.
    pub(super) worker_variables: Vec<&'static CStr>,
    /// CPUs move the data, also at the target. No NIC does, so registration locks no memory.
    pub(crate) copies: bool,
    /// Maximum number of bytes of a put that arrives in one segment, if CPUs move the data over
    /// sockets; unlimited otherwise.
    pub(crate) longest_put: usize,
    /// UCX's fence orders puts without waiting for them: see [`FENCE_WAITS`] and [`SHOWS_ORDER`].
    pub(crate) orders: bool,
}

/// From this version of UCX on, its fence waits for all puts, as seen with 1.20 and 1.22.
const FENCE_WAITS: (u32, u32, u32) = (1, 16, 0);

/// True if the target sees the data of two puts in the order of the puts where CPUs move the data.
/// The target's CPU stores the data of both without a memory barrier in between, so this is true
/// only for processors that do not reorder stores.
const SHOWS_ORDER: bool = cfg!(target_arch = "x86_64");

/// UCX's transport over sockets.
const SOCKETS: &str = "tcp";

/// UCX's transports within a node.
const INSIDE_A_NODE: &[&str] = &["self", "posix", "sysv", "cma", "knem", "xpmem"];

/// A transport of UCX with a device over which it works, such as `rc_mlx5` and `mlx5_0:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UcpResource {
    pub(crate) transport: String,
    pub(crate) device: String,
}

impl UcpResource {
    /// Reads a resource as UCX prints it: `rc_mlx5/mlx5_0:1`. Returns `None` if there is no slash.
    pub(super) fn parse(printed: &str) -> Option<UcpResource> {
        let (transport, device) = printed.split_once('/')?;
        Some(UcpResource {
            transport: transport.to_owned(),
            device: device.to_owned(),
        })
    }

    /// Returns true if the transport only reaches processes of this node.
    fn is_inside_a_node(&self) -> bool {
        INSIDE_A_NODE.contains(&&*self.transport)
    }
}

/// Returns the resources from what UCX prints of a context, in lines that end as
/// `resource 1  :  md 1  dev 1  flags -- tcp/lo`.
fn resources_of(printed: &str) -> Vec<UcpResource> {
    let mut resources = Vec::new();
    for line in printed.lines().filter(|line| line.contains(" resource ")) {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        resources.extend(UcpResource::parse(last));
    }
    resources
}

/// A change of UCX's configuration, such as of `NET_DEVICES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigChange {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

// SAFETY: `open` checks that UCX was built with support for threads, so any thread may use the
// context.
unsafe impl Send for UcpContext {}
// SAFETY: `open` makes the context with `mt_workers_shared`, so several threads may use it at a
// time.
unsafe impl Sync for UcpContext {}

/// UCX's configuration, released when dropped.
struct UcpConfig {
    ucp: &'static Ucp,
    handle: *mut ucp_config_t,
}

impl UcpConfig {
    fn read(ucp: &'static Ucp) -> Result<UcpConfig, String> {
        let mut handle = null_mut();
        // SAFETY: null says that there is no prefix and no file. The call writes a handle when it
        // succeeds.
        let status = unsafe { ucp.ucp_config_read(null(), null(), &raw mut handle) };
        check_status(ucp, status).map_err(|why| format!("UCX cannot read its variables: {why}"))?;
        Ok(UcpConfig { ucp, handle })
    }

    fn apply(&self, ConfigChange { name, value }: &ConfigChange) -> Result<(), String> {
        let zero_byte = |_| "a zero byte in a variable".to_owned();
        let c_name = CString::new(*name).map_err(zero_byte)?;
        let c_value = CString::new(value.as_str()).map_err(zero_byte)?;
        // SAFETY: `handle` is live until this is dropped, and both texts are C strings.
        let status = unsafe {
            self.ucp
                .ucp_config_modify(self.handle, c_name.as_ptr(), c_value.as_ptr())
        };
        check_status(self.ucp, status).map_err(|why| format!("UCX refuses {name}={value}: {why}"))
    }
}

impl Drop for UcpConfig {
    fn drop(&mut self) {
        // SAFETY: `read` has made `handle`, and only this releases it, once.
        unsafe { self.ucp.ucp_config_release(self.handle) };
    }
}

impl UcpContext {
    /// Initializes UCX for a job of `n_pes` PEs, with these changes to its configuration.
    pub(crate) fn open(n_pes: u32, changes: &[ConfigChange]) -> Result<UcpContext, String> {
        let ucp = library()?;
        let config = UcpConfig::read(ucp)?;
        for change in changes {
            config.apply(change)?;
        }

        let handle = init(ucp, &config, n_pes)?;

        let mut context = UcpContext {
            ucp,
            handle,
            notices_failures: false,
            worker_variables: Vec::new(),
            copies: false,
            longest_put: usize::MAX,
            orders: false,
        };
        if !context.is_thread_safe() {
            let why = "this UCX was built without support for threads (--enable-mt)";
            return Err(why.to_owned());
        }

        let resources = context.resources();
        context.notices_failures = resources.iter().any(|one| !one.is_inside_a_node());
        context.copies = resources
            .iter()
            .all(|one| one.is_inside_a_node() || one.transport == SOCKETS);
        context.orders = ucx_sys::version(ucp) < FENCE_WAITS && (SHOWS_ORDER || !context.copies);

        context.worker_variables = worker_variables(&resources);
        setting::set_defaults(&context.worker_variables);
        if context.copies && context.worker_variables.contains(&SEGMENT_SIZES[0]) {
            context.longest_put = PIECE;
        }
        Ok(context)
    }

    /// Returns the resources that UCX may use here.
    pub(crate) fn resources(&self) -> Vec<UcpResource> {
        resources_of(&printed(|stream| {
            // SAFETY: `handle` is live, and `stream` is open during the call.
            unsafe { self.ucp.ucp_context_print_info(self.handle, stream.cast()) };
        }))
    }

    /// Returns true if UCX may use sockets here.
    pub(crate) fn uses_sockets(&self) -> bool {
        self.resources().iter().any(|one| one.transport == SOCKETS)
    }

    fn is_thread_safe(&self) -> bool {
        let mut attr = ucp_context_attr_t {
            field_mask: UCP_ATTR_FIELD_THREAD_MODE.into(),
            ..ucp_context_attr_t::default()
        };
        // SAFETY: `handle` is live. The call writes the field that `attr` requests.
        let status = unsafe { self.ucp.ucp_context_query(self.handle, &raw mut attr) };
        check_status(self.ucp, status).is_ok() && attr.thread_mode == UCS_THREAD_MODE_MULTI
    }
}

impl Drop for UcpContext {
    fn drop(&mut self) {
        // SAFETY: workers and registrations own a reference to the context, so none is left.
        unsafe { self.ucp.ucp_cleanup(self.handle) };
    }
}

fn init(ucp: &'static Ucp, config: &UcpConfig, n_pes: u32) -> Result<ucp_context_h, String> {
    let mask = UCP_PARAM_FIELD_FEATURES
        | UCP_PARAM_FIELD_MT_WORKERS_SHARED
        | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    let features = UCP_FEATURE_RMA
        | UCP_FEATURE_AMO32
        | UCP_FEATURE_AMO64
        | UCP_FEATURE_AM
        | UCP_FEATURE_WAKEUP;
    let params = ucp_params_t {
        field_mask: mask.into(),
        features: features.into(),
        mt_workers_shared: 1,
        estimated_num_eps: n_pes as usize,
        ..ucp_params_t::default()
    };

    // The oldest version that has all features. A UCX older than the version passed here prints
    // a warning.
    let (major, minor) = ucx_sys::OLDEST;
    let mut handle = null_mut();
    // SAFETY: the parameters and the configuration live during the call, which writes a handle when
    // it succeeds.
    let status = unsafe {
        ucp.ucp_init_version(
            major,
            minor,
            &raw const params,
            config.handle,
            &raw mut handle,
        )
    };
    check_status(ucp, status).map_err(|why| format!("UCX cannot be initialized: {why}"))?;
    Ok(handle)
}

/// Registered memory, which is deregistered when this is dropped.
pub(crate) struct UcpMemory {
    context: Arc<UcpContext>,
    handle: ucp_mem_h,
}

// SAFETY: a `UcpMemory` is used only with its context, which any thread may use.
unsafe impl Send for UcpMemory {}
// SAFETY: several threads may use the context at a time: UCX locks it.
unsafe impl Sync for UcpMemory {}

impl UcpMemory {
    /// Registers memory with all transports of the context.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until the result is dropped.
    pub(crate) unsafe fn register(
        context: &Arc<UcpContext>,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<UcpMemory, String> {
        let mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        let params = ucp_mem_map_params_t {
            field_mask: mask.into(),
            address: base.cast::<c_void>(),
            length: nbytes,
            ..ucp_mem_map_params_t::default()
        };
        let ucp = context.ucp;
        let mut handle = null_mut();
        // SAFETY: the context is live, and by contract `base` is valid for reads and writes of
        // `nbytes` bytes until the registration ends. The call writes a handle when it succeeds.
        let status = unsafe { ucp.ucp_mem_map(context.handle, &raw const params, &raw mut handle) };
        check_status(ucp, status)?;
        Ok(UcpMemory {
            context: Arc::clone(context),
            handle,
        })
    }

    /// Returns the packed key, which a peer unpacks to access the memory.
    pub(crate) fn key(&self) -> Result<Vec<u8>, String> {
        let ucp = self.context.ucp;
        let mut buffer = null_mut();
        let mut nbytes = 0;
        // SAFETY: the handles of the context and the memory are live. The call writes a buffer and
        // its size when it succeeds.
        let status = unsafe {
            ucp.ucp_rkey_pack(
                self.context.handle,
                self.handle,
                &raw mut buffer,
                &raw mut nbytes,
            )
        };
        check_status(ucp, status)?;

        // SAFETY: the call has succeeded, so `buffer` points to `nbytes` bytes, until it is
        // released below.
        let key = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), nbytes) }.to_vec();
        // SAFETY: `ucp_rkey_pack` has made `buffer`, which is released once and not used any more.
        unsafe { ucp.ucp_rkey_buffer_release(buffer) };
        Ok(key)
    }
}

impl Drop for UcpMemory {
    fn drop(&mut self) {
        // If UCX returns an error, nothing can be done.
        // SAFETY: `register` has made `handle` in this context, and only this releases it, once.
        unsafe {
            self.context
                .ucp
                .ucp_mem_unmap(self.context.handle, self.handle)
        };
    }
}

/// Returns the variables that workers read for these transports, as `NAME=value`. Variables of
/// other transports are left out, since UCX prints a warning about them.
fn worker_variables(resources: &[UcpResource]) -> Vec<&'static CStr> {
    let has = |transport| resources.iter().any(|one| one.transport == transport);

    let mut variables = Vec::new();
    // Both sizes are set, or neither if the user has set one of them to another value.
    if has(SOCKETS) && SEGMENT_SIZES.into_iter().all(is_ours) {
        variables.extend(SEGMENT_SIZES);
    }
    if has("posix") || has("sysv") {
        variables.push(SHARED_MEMORY);
    }
    variables
}

/// Returns false if the environment sets a variable, given as `NAME=value`, to another value.
fn is_ours(variable: &CStr) -> bool {
    let text = variable.to_str().unwrap_or_default();
    match text.split_once('=') {
        Some((name, value)) => environment(name).is_none_or(|set| set == value),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_found_in_what_ucx_prints() {
        let printed = "#     component 1  :  tcp\n#\n\
            #      resource 0  :  md 0  dev 0  flags -- self/memory0\n\
            #      resource 1  :  md 1  dev 1  flags -- tcp/lo\n\
            #      resource 2  :  md 4  dev 2  flags -s rc_mlx5/mlx5_0:1\n# memory: 1.51MB\n";
        let expected = ["self/memory0", "tcp/lo", "rc_mlx5/mlx5_0:1"];
        let expected = expected.map(|text| UcpResource::parse(text).expect("a resource"));
        assert_eq!(resources_of(printed), expected);
        assert_eq!(expected[2].transport, "rc_mlx5");
        assert_eq!(expected[2].device, "mlx5_0:1");
        assert!(resources_of("").is_empty());
    }
}
