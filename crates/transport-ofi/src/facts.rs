//! The demands and the offers of a provider of libfabric, as plain data.

use libfabric_sys as fi;

/// The facts of a `fi_info` that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InfoFacts {
    /// The provider, as libfabric composes its name.
    pub(crate) provider: String,
    pub(crate) domain: String,
    pub(crate) fabric: String,
    /// The demands of the provider on registrations: `FI_MR_*`.
    pub(crate) mr_mode: u64,
    pub(crate) key_bytes: usize,
    /// The number of registrations there that may be; 0 if the provider does not say.
    pub(crate) registrations: usize,
    /// Transfers up to this long may be injected.
    pub(crate) inject: usize,
    /// Operations that an endpoint may have in flight.
    pub(crate) depth: usize,
    /// Receives that an endpoint may wait for.
    pub(crate) receives: usize,
    pub(crate) max_message: usize,
    /// Ranges of memory that one message can be sent from.
    pub(crate) ranges: usize,
    /// A message of many kilobytes is sent in one piece.
    pub(crate) sends_whole: bool,
    /// Writes of an endpoint to one address, and sends after them, arrive in order.
    pub(crate) ordered: bool,
    /// A read comes after the writes before it, so that its completion shows that they have
    /// arrived.
    pub(crate) reads_follow: bool,
    /// A write can complete when it is visible at the target.
    pub(crate) delivery: bool,
    /// Two endpoints are connected before they exchange data; most providers for NICs need no
    /// connections.
    pub(crate) connects: bool,
    /// Addresses are those of sockets.
    pub(crate) sockets: bool,
    /// The address is one that only this machine reaches.
    pub(crate) loopback: bool,
    /// The NIC behind it, where libfabric says.
    pub(crate) nic: Option<FabricNic>,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FabricNic {
    pub(crate) on_pci: bool,
    /// The device's name, as the kernel has it.
    pub(crate) name: String,
}

impl InfoFacts {
    pub(crate) fn asks(&self, mode: u64) -> bool {
        self.mr_mode & mode != 0
    }

    /// It reaches any number of peers without connections, and no kernel's datagrams carry it.
    pub(crate) fn scales(&self) -> bool {
        let datagrams = ["udp", "ofi_rxd", "shm"];
        !self.connects && !self.provider.split(';').any(|part| datagrams.contains(&part))
    }

    /// A registration is in use only after it was enabled.
    pub(crate) fn enables(&self) -> bool {
        self.asks(fi::FI_MR_ENDPOINT | fi::FI_MR_RMA_EVENT)
    }

    /// A NIC reads and writes registered memory by itself, whose pages must be there for that.
    pub(crate) fn locks_memory(&self) -> bool {
        self.asks(fi::FI_MR_ALLOCATED) && self.nic.is_some()
    }

    /// The heap is registered in blocks, since what is registered may be locked. A provider that
    /// does not ask for pages to be there locks none, and all of a heap costs as much as a part.
    pub(crate) fn heap_in_blocks(&self) -> bool {
        self.asks(fi::FI_MR_ALLOCATED)
    }

    /// CPUs move the data: libfabric names no device on a bus.
    pub(crate) fn copies(&self) -> bool {
        self.nic.as_ref().is_none_or(|nic| !nic.on_pci)
    }

    /// A message of any length costs little more than a short one, and is sent from where its parts
    /// are: a stream carries it, and no memory need be registered.
    pub(crate) fn streams(&self) -> bool {
        self.sockets && self.takes_data() && self.ranges >= 2
    }

    /// Data of more than a few words come with their signal in one message.
    pub(crate) fn takes_data(&self) -> bool {
        self.copies() && self.sends_whole && !self.asks(fi::FI_MR_LOCAL)
    }

    /// The longest message, and so the length of buffers for them: what is gathered fits a page
    /// where CPUs move the data, and elsewhere a signal with a word of data. Over streams, longer
    /// data come with their signal, too.
    pub(crate) fn longest_message(&self) -> usize {
        match (self.streams(), self.copies()) {
            (true, _) => 64 << 10,
            (false, true) => 4096,
            (false, false) => 128,
        }
    }

    /// Registrations name their keys, and peers that guess one have 64 bits to guess.
    pub(crate) fn secret_keys(&self) -> bool {
        self.sockets && self.key_bytes >= 8 && !self.asks(fi::FI_MR_PROV_KEY)
    }
}

/// Orders that make a fence between writes, and between a write and a message, needless.
pub(crate) const ORDERS: u64 = fi::FI_ORDER_WAW | fi::FI_ORDER_SAW;
/// Orders of which one makes a read's completion show that writes have arrived.
pub(crate) const READS: u64 = fi::FI_ORDER_RAW | fi::FI_ORDER_RMA_RAW;
