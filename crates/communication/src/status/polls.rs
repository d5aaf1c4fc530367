//! Publishes in the status a call that the program repeats, and its place in the program.

use crate::net::polls::PolledCall;
use crate::status;
use rushmem_explain::status::Poll;
use rushmem_pe::call::location::{self, CapturedCall};
use rushmem_pe::job;
use rushmem_pe::memory::symmetric_location;
use rushmem_pe::process::time::nanoseconds;

/// Publishes a call that is repeated. Another thread adds its place in the program.
pub(crate) fn publish(PolledCall { call, word, of }: PolledCall) {
    let Some(job) = job::known() else { return };
    let captured = CapturedCall::capture();
    let at = nanoseconds();
    let address = std::ptr::with_exposed_provenance::<u8>(word);
    let poll = Poll {
        call: call.to_string(),
        called_at: None,
        is_searched: false,
        at,
        word: symmetric_location::of_word(job, address, 1).0,
        of,
    };
    status::set_poll(poll);
    location::in_other_thread(move || {
        let place = captured.locate().map(|place| place.to_string());
        status::add_place_of_poll(at, place);
    });
}
