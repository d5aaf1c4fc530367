//! A transfer of every kind to a node peer, whose outcome decides whether a transport works.
//!
//! It goes to a line of the peer's internal area that this PE alone writes. How long it may take is the
//! transport's to say, who knows when a peer is lost.
#![allow(unsafe_code)]

use crate::memory::areas::Areas;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, Endpoint, Error, Get, LocalBuf, OldValue, Pe, Put,
    RemoteAddr, Segment,
};

/// Words that are put and read back.
const WORDS: usize = 4;

/// Put, get, an atomic operation and what completes them, between this PE and `pe`.
///
/// # Errors
/// What failed, in words.
pub(super) fn transfer(
    endpoint: &mut dyn Endpoint,
    areas: &Areas,
    me: Pe,
    pe: Pe,
) -> Result<(), String> {
    let failed = |what: &'static str| {
        move |error: Error| format!("a {what} to PE {pe} to try it out failed: {error}")
    };
    let at = |word: usize| {
        let offset = (areas.probe(me) + word * 8) as u64;
        RemoteAddr { segment: Segment::Internal, offset }
    };
    // Other numbers for each pair, so that no other's are taken for them.
    let seed = (u64::from(me.0) << 32 | u64::from(pe.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let sent: [u64; WORDS] = std::array::from_fn(|i| seed ^ (i as u64 + 1));
    let mut found = [0u64; WORDS];
    let completion = Completion::Now;
    let source = LocalBuf::source(sent.as_ptr().cast(), size_of_val(&sent));
    let put = Put { dest: at(0), source, completion };
    // SAFETY: a local array.
    unsafe { endpoint.put(pe, put) }.map_err(failed("put"))?;
    endpoint.quiet().map_err(failed("put"))?;
    let dest = LocalBuf { base: found.as_mut_ptr().cast(), nbytes: size_of_val(&found) };
    // SAFETY: a local array.
    unsafe { endpoint.get(pe, Get { dest, source: at(0), completion }) }.map_err(failed("get"))?;
    if found != sent {
        return Err(format!("PE {pe} does not hold what was put there to try it out"));
    }
    let mut amo = |op, operand| {
        let (dest, width, old) = (at(WORDS), AmoWidth::Eight, OldValue::Returned);
        let request = AmoRequest { dest, width, op, operand, condition: 0, old };
        // SAFETY: the old value is returned.
        unsafe { endpoint.amo(pe, request) }.map_err(failed("atomic operation"))
    };
    amo(AmoOp::Swap, seed)?;
    let (added, last) = (amo(AmoOp::Add, 1)?, amo(AmoOp::Fetch, 0)?);
    if (added, last) != (seed, seed.wrapping_add(1)) {
        return Err(format!("an atomic operation on PE {pe} to try it out fetched a wrong value"));
    }
    endpoint.quiet().map_err(failed("quiet"))
}
