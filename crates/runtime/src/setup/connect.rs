//! The choice of a transport, and the way to the PEs that it reaches.

use crate::call::{Call, fail};
use crate::job::Job;
use crate::network::{self, Process};
use crate::statics;
use rushmem_transport::{Error, Key, Open, Pe, Provider, Segment, Transport};
use std::sync::Arc;

/// The segments that peers reach, in the order in which their keys are exchanged.
const SEGMENTS: [Segment; Segment::COUNT] = [Segment::Heap, Segment::Internal, Segment::Static];

/// Connect this PE with all whose memory it does not share; nothing where there are none.
pub(super) fn connect(call: Call, job: &'static Job, providers: &[Provider]) {
    let providers = || possible(providers);
    let names = || providers().map(|provider| provider.name);
    if let Some(asked) = job.settings.transport.as_deref()
        && !names().any(|name| name == asked)
    {
        let names = names().collect::<Vec<_>>().join(", ");
        let whose = match statics::own().of_static_program() {
            true => "a statically linked program",
            false => "this build",
        };
        fail!(call, "SHMEM_TRANSPORT is {asked}, but {whose} has: auto, {names}");
    }
    if job.nodes.n_nodes() == 1 && !job.has_neighbours {
        return;
    }
    let (provider, transport) = open(call, job, providers());
    let connected = reach(call, job, provider, transport).and_then(network::open);
    if let Err(error) = connected {
        fail!(call, "the transport {}: {error}", provider.name);
    }
    tracing::debug!(pe = job.me.0, transport = provider.name, "connected");
}

/// Those that this program can have.
fn possible(providers: &[Provider]) -> impl Iterator<Item = &Provider> {
    let is_static = statics::own().of_static_program();
    providers.iter().filter(move |provider| !(is_static && provider.opens_libraries))
}

/// The provider that was asked for, or the first that this machine has.
fn open<'a>(
    call: Call,
    job: &Job,
    providers: impl Iterator<Item = &'a Provider>,
) -> (&'a Provider, Box<dyn Transport>) {
    let asked = job.settings.transport.as_deref();
    let mut refusals = String::new();
    for provider in providers.filter(|p| asked.is_none_or(|name| name == p.name)) {
        let with = Open {
            pe: job.me,
            n_pes: job.n_pes,
            secret: job.secret,
            one_machine: job.one_stack,
            crowded: job.crowded,
            host: Arc::new(Process),
        };
        match (provider.available)().and_then(|()| (provider.open)(&with)) {
            Ok(transport) => return (provider, transport),
            Err(error) => refusals += &format!("; {} cannot be had: {error}", provider.name),
        }
    }
    fail!(call, "PEs that share no memory need a transport{refusals}")
}

/// Register the segments, exchange addresses and keys, and learn the way to every peer.
fn reach(
    call: Call,
    job: &Job,
    provider: &Provider,
    mut transport: Box<dyn Transport>,
) -> Result<Box<dyn Transport>, Error> {
    let layout = job.memory.layout();
    let statics = statics::own();
    let ranges = [
        (job.memory.heap(), layout.heap_bytes),
        (job.memory.internal(), layout.internal_bytes),
        (std::ptr::with_exposed_provenance_mut(statics.start()), statics.nbytes()),
    ];
    let mut keys = Vec::new();
    for (segment, (base, nbytes)) in SEGMENTS.into_iter().zip(ranges) {
        // SAFETY: mapped for the life of the process. Where the static data have holes no peer asks
        // for them, as it has the same ones.
        keys.push(unsafe { transport.register(segment, base, nbytes) }?.0);
    }
    let mut parts = vec![provider.name.as_bytes().to_vec(), transport.address()];
    parts.append(&mut keys);
    let records = match job.session().exchange(&encode(&parts)) {
        Ok(records) => records,
        Err(error) => fail!(call, "{error}"),
    };
    let node = job.nodes.node_of(job.me.0);
    let unmapped =
        |&pe: &u32| pe != job.me.0 && (job.has_neighbours || job.nodes.node_of(pe) != node);
    for pe in (0..job.n_pes).filter(unmapped) {
        let Some([name, address, heap, internal, statics]) = decode(&records[pe as usize]) else {
            fail!(call, "PE {pe} sent an address that means nothing here");
        };
        if name != provider.name.as_bytes() {
            let other = String::from_utf8_lossy(&name);
            fail!(call, "PE {pe} chose the transport {other}, this PE {}", provider.name);
        }
        let keys = [heap, internal, statics].map(Key);
        let keys: Vec<_> = SEGMENTS.into_iter().zip(keys).collect();
        transport.connect(Pe(pe), &address, &keys)?;
    }
    Ok(transport)
}

/// Byte strings, each after its length.
fn encode(parts: &[Vec<u8>]) -> Vec<u8> {
    let length = |part: &Vec<u8>| (part.len() as u32).to_le_bytes();
    parts.iter().flat_map(|part| length(part).into_iter().chain(part.iter().copied())).collect()
}

fn decode<const N: usize>(mut bytes: &[u8]) -> Option<[Vec<u8>; N]> {
    let mut parts = Vec::new();
    for _ in 0..N {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        parts.push(part.to_vec());
        bytes = rest;
    }
    if bytes.is_empty() { parts.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_survive_the_way() {
        let parts = [b"tcp".to_vec(), Vec::new(), vec![7; 300]];
        let bytes = encode(&parts);
        assert_eq!(decode::<3>(&bytes), Some(parts));
        assert_eq!(decode::<3>(&bytes[..bytes.len() - 1]), None);
        assert_eq!(decode::<2>(&bytes), None);
    }
}
