//! Defaults of libfabric that only its own variables set; those of the user prevail.
//!
//! libfabric reads most of its variables when it is opened and first queried, and some whenever it
//! opens an endpoint; nothing else sets these. Its layer above connections, rxm, takes buffers for
//! some 5,000 messages of 16 KiB for every endpoint, 85 MiB, whatever is requested; a message of
//! one operation has fewer than 128 bytes here, and puts wait in memory of their own. Over sockets,
//! rxm sends and receives longer messages in one piece and without buffers of its own, up to its
//! eager limit, which it reads for each endpoint and which must be the same everywhere. A library
//! below its provider psm takes the process's signals, so that one that crashes would end with
//! status 1 instead.
//!
//! Over sockets that are full, the provider tcp keeps the rest of a short message and calls it
//! sent. It would leave when the endpoint is polled next, which nothing then calls for: so it keeps
//! none.
//!
//! rxm looks for peers that connect every 10 ms, which delays each side of a first message: here it
//! looks every millisecond.
//!
//! rxm also makes each endpoint's ring of completions long enough for 1024 processes: 12 MiB, of
//! which every operation touches 48 bytes more, as if it left them behind. Over TCP a ring that is
//! full goes on in a list. A NIC's would be too short for its connections, and Slingshot makes more
//! of the same variable: where there is a NIC, nothing is said of it.

use rushmem_transport::device;
use rushmem_transport::kit::variables;
use std::ffi::CStr;

/// `NAME=value`, on machines with a NIC. Over verbs rxm opens no endpoint (`FI_ENODATA`, 1.17) with
/// buffers of 128 bytes.
const WITH_NIC: &[&CStr] = &[
    c"FI_OFI_RXM_BUFFER_SIZE=256",
    c"FI_OFI_RXM_EAGER_LIMIT=65536",
    c"FI_OFI_RXM_MSG_RX_SIZE=512",
    c"FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000",
    c"FI_TCP_STAGING_SBUF_SIZE=0",
    c"IPATH_NO_BACKTRACE=1",
];

/// The variables, as `NAME=value`, on machines without a NIC.
const WITHOUT_NIC: &[&CStr] = &[
    c"FI_OFI_RXM_BUFFER_SIZE=128",
    c"FI_OFI_RXM_EAGER_LIMIT=65536",
    c"FI_OFI_RXM_MSG_RX_SIZE=512",
    c"FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000",
    c"FI_TCP_STAGING_SBUF_SIZE=0",
    c"IPATH_NO_BACKTRACE=1",
    c"FI_UNIVERSE_SIZE=4",
];

/// Sets those that are missing.
pub(crate) fn set() {
    variables::set(if device::any() { WITH_NIC } else { WITHOUT_NIC });
}
