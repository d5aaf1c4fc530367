//! Every format that crosses between processes, with its version. A change of a format raises
//! its version.

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The name of the format, for messages.
    pub name: &'static str,
    /// The version that this build uses.
    pub version: u8,
}

const fn format(name: &'static str, version: u8) -> Format {
    Format { name, version }
}

/// Frames between PEs, daemons and `oshrun`.
pub const JOB: Format = format("job protocol", 12);
/// The record that each PE sends to all others when it joins the job.
pub const RECORD: Format = format("record of a PE", 13);
/// The activity of a PE, for processes that explain why a job hangs.
pub const STATUS: Format = format("status of a PE", 10);
/// What a PE has found of each transport, before one is selected.
pub const OFFER: Format = format("offer of transports", 3);
/// The parts of a transport that fit on a PE.
pub const PARTS: Format = format("list of the parts of a transport", 1);
/// The result of a step of opening a transport on a PE.
pub const STEP: Format = format("step of opening a transport", 4);
/// The address and keys of a PE, sent to the first PE of each node.
pub const ANNOUNCED: Format = format("record of the address and keys of a PE", 2);
/// The host of a PE, and its address over a transport.
pub const PEER_ADDRESS: Format = format("address of a PE", 1);
/// The extent of a segment of a PE, and its key over a transport.
pub const SEGMENT_KEY: Format = format("key of a segment", 1);
/// The counters of a PE, sent to PE 0.
pub const STATISTICS: Format = format("record of the statistics of a PE", 2);
/// The greeting of a connection over TCP, and the messages between PEs.
pub const TCP_HANDSHAKE: Format = format("handshake over TCP", 8);
/// The address on which a PE listens.
pub const TCP_ADDRESS: Format = format("address of a PE over TCP", 3);
/// The address of a PE over UCX, and the messages between PEs.
pub const UCX_ADDRESS: Format = format("address of a PE over UCX", 9);
/// The key of a segment of a PE over UCX.
pub const UCX_KEY: Format = format("key of a segment over UCX", 4);
/// The address of a PE over libfabric, and the messages between PEs.
pub const OFI_ADDRESS: Format = format("address of a PE over libfabric", 10);
/// The key of a segment of a PE over libfabric.
pub const OFI_KEY: Format = format("key of a segment over libfabric", 5);
