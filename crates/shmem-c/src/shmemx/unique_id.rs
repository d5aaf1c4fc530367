//! Initialization by a unique id, under the names of NVSHMEM and rocSHMEM.

use core::ffi::{c_int, c_uint};

use rushmem_providers::ALL;
use rushmem_runtime::extension_constants::SHMEMX_INIT_WITH_UNIQUEID;
use rushmem_runtime::start::{self, UNIQUE_ID_BYTES};

/// `shmemx_uniqueid_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId {
    text: [u8; UNIQUE_ID_BYTES],
}

/// `shmemx_init_attr_t`.
#[repr(C)]
pub struct InitAttributes {
    rank: c_int,
    nranks: c_int,
    requested: c_int,
    provided: c_int,
    uniqueid: UniqueId,
    reserved: [u64; 8],
}

export! {
    [shmemx_get_uniqueid](uniqueid: *mut UniqueId) -> c_int = |call| {
        let made = start::unique_id(call);
        let text = made.unwrap_or_else(|error| call.fail(format_args!("{error}")));
        uniqueid.write(UniqueId { text });
        0
    };
    [shmemx_set_attr_uniqueid_args](
        rank: c_int, nranks: c_int, uniqueid: *const UniqueId, attr: *mut InitAttributes,
    ) -> c_int = |_call| {
        (&raw mut (*attr).rank).write(rank);
        (&raw mut (*attr).nranks).write(nranks);
        (&raw mut (*attr).uniqueid).write(uniqueid.read());
        0
    };
    [shmemx_init_attr](flags: c_uint, attr: *mut InitAttributes) -> c_int = |call| {
        if flags != SHMEMX_INIT_WITH_UNIQUEID as c_uint {
            call.fail(format_args!(
                "argument flags is {flags:#x}; pass SHMEMX_INIT_WITH_UNIQUEID \
                 ({SHMEMX_INIT_WITH_UNIQUEID}), the only way that this library knows"
            ));
        }

        let InitAttributes { rank, nranks, requested, uniqueid, .. } = attr.read();
        match start::init_by_id(call, ALL, requested, rank, nranks, &uniqueid.text) {
            Some(level) => {
                (&raw mut (*attr).provided).write(level);
                0
            }
            None => 1,
        }
    };
}
