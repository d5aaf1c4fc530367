//! A process manager that speaks PMIx, by the library libpmix: PRRTE, Open MPI's mpirun, Slurm.
//!
//! The library is opened at run time and stays open. It counts initializations, so MPI may
//! initialize it, too; Open MPI 5 must do so before this module (`mpi::must_precede_pmix`).
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use pmix_sys::{
    LIBRARY, PMIX_BOOL, PMIX_BYTE_OBJECT, PMIX_COLLECT_DATA, PMIX_ERR_LOST_CONNECTION,
    PMIX_ERR_LOST_CONNECTION_TO_SERVER, PMIX_GLOBAL, PMIX_JOB_SIZE, PMIX_SUCCESS, PMIX_UINT32,
    Pmix as Library, RANK_WILDCARD, pmix_byte_object, pmix_event_notification_cbfunc_fn_t,
    pmix_info_t, pmix_proc_t, pmix_status_t, pmix_value_t,
};

use crate::error::Error;
use crate::process_manager::{Ender, ProcessManager};
use crate::time_limit::TimeLeft;
use crate::watch::end_without_manager;
use rushmem_system::signals::without_signals;

/// Opens the library at the first call, which fails if it lacks a function that is called here, and
/// returns it. It is never closed, since it has threads of its own.
pub(super) fn library() -> Result<&'static Library, Error> {
    static OPEN: OnceLock<Result<Library, String>> = OnceLock::new();
    let open = OPEN.get_or_init(|| {
        // SAFETY: the initializers of libpmix have no preconditions.
        unsafe { Library::new(LIBRARY) }.map_err(|error| reason(&error))
    });
    open.as_ref().map_err(|cause| Error::PmixMissing {
        cause: cause.clone(),
    })
}

/// Returns the message of the dynamic loader, which is the source of the error, or the error itself
/// if it has no source.
fn reason(error: &pmix_sys::OpenError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The connection of this process to its PMIx server.
pub(crate) struct PmixConnection {
    library: &'static Library,
    me: pmix_proc_t,
    n_pes: u32,
    ender: Arc<Abort>,
}

impl fmt::Debug for PmixConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PmixConnection")
            .field("pe", &self.me.rank)
            .finish()
    }
}

impl PmixConnection {
    /// Returns the connection of this process to its server.
    pub(super) fn new(initialized: Initialized) -> Result<PmixConnection, Error> {
        let Initialized { library, me } = initialized;
        let ender = Arc::new(Abort {
            library,
            left: AtomicBool::new(false),
        });
        // Before the number of processes is asked for: the server may end before it answers.
        end_with_server(library, me.rank, &ender);

        let mut pmix = PmixConnection {
            library,
            me,
            n_pes: 0,
            ender,
        };
        let size = pmix.value(RANK_WILDCARD, PMIX_JOB_SIZE)?;
        if u32::from(size.content.type_) != PMIX_UINT32 {
            return Err(Error::Unexpected("a job size that is not a number"));
        }
        // SAFETY: the type of the value states that this field of the union was written.
        pmix.n_pes = unsafe { size.content.data.uint32 };
        Ok(pmix)
    }

    /// Returns the value that process `rank` has put under `key`.
    fn value(&self, rank: u32, key: &CStr) -> Result<Value, Error> {
        let from = pmix_proc_t { rank, ..self.me };
        let mut value: *mut pmix_value_t = null_mut();
        // SAFETY: `from`, `key` and `value` live through the call. The array of further information
        // may be null, since its length is 0.
        let status = unsafe {
            self.library
                .PMIx_Get(&from, key.as_ptr(), null(), 0, &mut value)
        };
        check(self.library, "PMIx_Get", status)?;
        if value.is_null() {
            return Err(Error::Unexpected("a value that nobody put"));
        }
        Ok(Value {
            // SAFETY: the library has returned a value, which belongs to the caller.
            content: unsafe { value.read() },
            allocation: value,
        })
    }
}

/// The library after PMIx_Init has succeeded. Only [`init`] returns one.
pub(super) struct Initialized {
    library: &'static Library,
    /// This process.
    me: pmix_proc_t,
}

/// Initializes the library, or returns why the server has not accepted this process within `limit`.
/// PMIx_Init waits without a limit for the server that its variables name, so another thread calls
/// it; if no server answers, that thread remains.
pub(super) fn init(library: &'static Library, limit: Duration) -> Result<Initialized, String> {
    let (answer, answers) = mpsc::channel();
    without_signals(|| {
        thread::Builder::new()
            .name("rushmem-pmix".into())
            .spawn(move || {
                // This fails if the receiver has stopped waiting, after its limit.
                let _ = answer.send(call_init(library));
            })
    })
    .map_err(|error| error.to_string())?;

    let mut left = TimeLeft::new(limit);
    loop {
        match left.spend(|slice| answers.recv_timeout(slice)) {
            None => return Err(format!("no answer within {} s", limit.as_secs())),
            Some(Err(mpsc::RecvTimeoutError::Timeout)) => {}
            Some(Err(mpsc::RecvTimeoutError::Disconnected)) => {
                return Err("its thread has ended".to_owned());
            }
            Some(Ok(result)) => return result,
        }
    }
}

fn call_init(library: &'static Library) -> Result<Initialized, String> {
    let mut me = pmix_proc_t {
        nspace: [0; 256],
        rank: 0,
    };
    // SAFETY: `me` is writable. The array of further information may be null, since its length is
    // 0.
    let status = unsafe { library.PMIx_Init(&mut me, null_mut(), 0) };
    explain(library, status)?;
    Ok(Initialized { library, me })
}

static CLIENT: OnceLock<Client> = OnceLock::new();

/// This process as a client of the server, for [`server_lost`].
struct Client {
    rank: u32,
    /// The handle that ends the job.
    ender: Arc<Abort>,
}

/// Returns true once this process has connected to a server, also after it has left.
pub(super) fn is_initialized() -> bool {
    CLIENT.get().is_some()
}

/// The events of a lost server: the one of PMIx 4 and later, and the one of earlier versions.
static SERVER_LOST: [pmix_status_t; 2] =
    [PMIX_ERR_LOST_CONNECTION, PMIX_ERR_LOST_CONNECTION_TO_SERVER];

/// Makes this process end when the connection to its server is lost. A manager that is killed does
/// not end its PEs.
fn end_with_server(library: &Library, rank: u32, ender: &Arc<Abort>) {
    // If this is not the first connection, the handler is registered already.
    let client = Client {
        rank,
        ender: ender.clone(),
    };
    if CLIENT.set(client).is_err() {
        return;
    }

    // If the server refuses the registration, only the launcher ends the process.
    // SAFETY: the library only reads the events, which are static. It calls the handler, a static
    // function, in its own thread. Without a callback the call returns when the handler is
    // registered.
    let _ = unsafe {
        library.PMIx_Register_event_handler(
            SERVER_LOST.as_ptr().cast_mut(),
            SERVER_LOST.len(),
            null_mut(),
            0,
            Some(server_lost),
            None,
            null_mut(),
        )
    };
}

/// Handles the loss of the server. If it returns, it must call `done`: the library waits for that
/// before it calls other handlers, such as those of MPI.
unsafe extern "C" fn server_lost(
    _: usize,
    _: pmix_status_t,
    _: *const pmix_proc_t,
    _: *mut pmix_info_t,
    _: usize,
    _: *mut pmix_info_t,
    _: usize,
    done: pmix_event_notification_cbfunc_fn_t,
    data: *mut c_void,
) {
    if let Some(client) = CLIENT.get()
        && !client.ender.left.load(Ordering::Relaxed)
    {
        end_without_manager(
            client.rank,
            "the connection to the PMIx server of the launcher was lost; all PEs of that server end",
        )
    }

    if let Some(done) = done {
        let status = PMIX_SUCCESS as pmix_status_t;
        // SAFETY: the library passes this function with its data, for one call, which may pass no
        // results.
        unsafe { done(status, null_mut(), 0, None, null_mut(), data) };
    }
}

/// A value that the library has allocated for this process.
struct Value {
    content: pmix_value_t,
    /// The allocation that the content was read from, which is freed with it.
    allocation: *mut pmix_value_t,
}

impl Drop for Value {
    fn drop(&mut self) {
        if u32::from(self.content.type_) == PMIX_BYTE_OBJECT {
            // SAFETY: the type of the value states that this field of the union was written.
            let bytes = unsafe { self.content.data.bo.bytes };
            // SAFETY: the library has allocated it with malloc for the caller to free; the macros
            // of its header do the same.
            unsafe { libc::free(bytes.cast()) };
        }
        // SAFETY: the library has allocated it with malloc for the caller to free.
        unsafe { libc::free(self.allocation.cast()) };
    }
}

fn check(library: &Library, call: &'static str, status: pmix_status_t) -> Result<(), Error> {
    explain(library, status).map_err(|cause| Error::Pmix { call, cause })
}

/// Converts a status to a result, with the text of the library as the error.
fn explain(library: &Library, status: pmix_status_t) -> Result<(), String> {
    if status == PMIX_SUCCESS as pmix_status_t {
        return Ok(());
    }

    // SAFETY: any number is allowed; the result is a constant string or null.
    let text = unsafe { library.PMIx_Error_string(status) };
    let name = if text.is_null() {
        String::new()
    } else {
        // SAFETY: a constant string with a null character at its end.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    };
    Err(format!("{name} ({status})"))
}

/// Converts a key, which has no null byte, to a C string.
fn c_key(key: &str) -> CString {
    CString::new(key).expect("keys are plain words")
}

impl ProcessManager for PmixConnection {
    fn pe(&self) -> u32 {
        self.me.rank
    }

    fn n_pes(&self) -> u32 {
        self.n_pes
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        // SAFETY: plain numbers and pointers, all of which may be zero.
        let mut object: pmix_value_t = unsafe { std::mem::zeroed() };
        object.type_ = PMIX_BYTE_OBJECT as u16;
        object.data.bo = pmix_byte_object {
            bytes: value.as_ptr().cast_mut().cast::<c_char>(),
            size: value.len(),
        };

        let key = c_key(key);
        // SAFETY: key and bytes live through the call, which copies them.
        let status = unsafe {
            self.library
                .PMIx_Put(PMIX_GLOBAL as u8, key.as_ptr(), &mut object)
        };
        check(self.library, "PMIx_Put", status)
    }

    fn fence(&mut self) -> Result<(), Error> {
        // SAFETY: the function has no arguments, and the library is initialized.
        let status = unsafe { self.library.PMIx_Commit() };
        check(self.library, "PMIx_Commit", status)?;

        // SAFETY: plain numbers and pointers, all of which may be zero.
        let mut collect: pmix_info_t = unsafe { std::mem::zeroed() };
        // With this key, the fence also brings the values that the processes have put. Otherwise
        // each get would ask the server of another node.
        for (character, byte) in collect.key.iter_mut().zip(PMIX_COLLECT_DATA.to_bytes()) {
            *character = *byte as c_char;
        }
        collect.value.type_ = PMIX_BOOL as u16;
        collect.value.data.flag = true;

        // SAFETY: a null list of processes denotes all of the job; `collect` lives through the
        // call.
        let status = unsafe { self.library.PMIx_Fence(null(), 0, &collect, 1) };
        check(self.library, "PMIx_Fence", status)
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error> {
        let value = self.value(from, &c_key(key))?;
        if u32::from(value.content.type_) != PMIX_BYTE_OBJECT {
            return Err(Error::Unexpected("a value that nobody put"));
        }
        // SAFETY: the type of the value states that this field of the union was written.
        let object = unsafe { value.content.data.bo };
        if object.bytes.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the library has returned that many bytes, which are valid until `value` is
        // dropped.
        Ok(unsafe { std::slice::from_raw_parts(object.bytes.cast::<u8>(), object.size) }.to_vec())
    }

    fn ender(&self) -> Arc<dyn Ender> {
        self.ender.clone()
    }

    fn leave(&mut self) {
        self.ender.left.store(true, Ordering::Relaxed);
        // A failure changes nothing: the process exits next.
        // SAFETY: the library is initialized, and null with length 0 passes no information.
        unsafe { self.library.PMIx_Finalize(null(), 0) };
    }
}

/// Ends the job by the library, which any thread may call.
struct Abort {
    library: &'static Library,
    /// True once this process leaves the library. Relaxed: it publishes no other data, and is
    /// stored before the call that makes the library lose its server.
    left: AtomicBool,
}

impl fmt::Debug for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Abort").field("left", &self.left).finish()
    }
}

impl Ender for Abort {
    fn request_end(&self, status: i32) -> bool {
        if self.left.load(Ordering::Relaxed) {
            return false;
        }

        let message = c"ended by OpenSHMEM";
        // SAFETY: the message is constant; a null list of processes denotes all of the job.
        let status = unsafe {
            self.library
                .PMIx_Abort(status, message.as_ptr(), null_mut(), 0)
        };
        status == PMIX_SUCCESS as pmix_status_t
    }
}
