//! The offset of the clock of PE 0 from that of a PE, for the times in a trace.
//!
//! On each machine but that of PE 0, one PE asks PE 0 for its time, by words in the internal area
//! of PE 0.

use crate::coll::collectives::{barrier_all, gather_words};
use crate::own_pe::OwnPe;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::sync::waits::{self, Pauses};
use rushmem_pe::call::Call;
use rushmem_pe::memory::areas::MIN_RECEIVE_BUFFER;
use rushmem_pe::process::time::nanoseconds;
use rushmem_trace::layout::WORD;
use rushmem_transport::Pe;

/// The number of times that a PE asks PE 0 for its time. The fastest answer counts, so one question
/// that is not delayed suffices. The number was chosen without a measurement.
const QUESTIONS: u64 = 32;

// An asker has three words in the receive buffer of PE 0. These are their offsets in bytes.

/// The number of its last question.
const QUESTION: usize = 0;
/// The number of the last question that PE 0 has answered.
const ANSWERED: usize = WORD;
/// The answer to that question.
const ANSWER: usize = 2 * WORD;
/// The number of bytes of these words.
const ASKER_BYTES: usize = 3 * WORD;
/// Maximum number of PEs that ask at the same time.
const MAX_ASKERS: usize = MIN_RECEIVE_BUFFER / ASKER_BYTES;

/// Returns the number of nanoseconds to add to this PE's clock for the clock of PE 0: 0 on the
/// machine of PE 0. On each other machine the first PE asks PE 0 many times. The fastest exchange
/// is used, and PE 0 is assumed to have read its clock in the middle of it, so that the error is at
/// most half of its duration.
pub(super) fn clock_offset(pe: &'static OwnPe, call: Call) -> i64 {
    let job = pe.job();
    let machines = job.membership().nodes().clone();
    if machines.n_nodes() == 1 {
        return 0;
    }

    // The first PE of a machine asks for all PEs of the machine.
    let mut askers: Vec<u32> = Vec::new();
    for machine in 0..machines.n_nodes() {
        if machine != machines.node_of(0) {
            askers.extend(machines.members(machine).next());
        }
    }

    let area = &pe.links.area;
    // If there are more askers than the receive buffer has room for, they ask in several turns.
    let mut offset = 0;
    for askers in askers.chunks(MAX_ASKERS) {
        for place in 0..askers.len() {
            area.write_own(words_of_asker(area, place), &[0; ASKER_BYTES / WORD]);
        }
        // No PE asks before the words are cleared.
        barrier_all((pe, call));

        if job.me == Pe(0) {
            answer(pe.links, askers.len());
        } else if let Some(place) = askers.iter().position(|&pe| pe == job.me.0) {
            offset = ask(area, words_of_asker(area, place));
        }
        // The askers of the next turn use the same words.
        barrier_all((pe, call));
    }

    let offsets = gather_words(pe, call, pe.teams.world(), offset.cast_unsigned());
    match machines.members(machines.node_of(job.me.0)).next() {
        Some(asker) => offsets[asker as usize].cast_signed(),
        None => 0,
    }
}

/// Returns the offset in the internal area of the words of an asker, by its place in the turn. They
/// are in a receive buffer, which is only in use during collectives.
fn words_of_asker(area: &FlagArea, place: usize) -> usize {
    area.areas().packed(0) + place * ASKER_BYTES
}

/// Answers questions with the time of this PE, until each of the askers of this turn has asked its
/// last question.
fn answer(links: &Links, n_askers: usize) {
    let area = &links.area;
    let mut unfinished: Vec<usize> = (0..n_askers)
        .map(|place| words_of_asker(area, place))
        .collect();

    let mut answer_all = || {
        unfinished.retain(|&words| {
            let question = area.flag(words + QUESTION);
            if question != area.flag(words + ANSWERED) {
                // The asker reads the answer once it has seen the number.
                area.write_own(words + ANSWER, &[nanoseconds()]);
                area.raise(Pe(0), words + ANSWERED, question);
            }
            question < QUESTIONS
        });
        unfinished.is_empty()
    };
    while !waits::test(links, &mut answer_all) {}
}

/// Asks PE 0 for its time, by the words at this offset of its internal area. Returns the number of
/// nanoseconds to add to this PE's clock for the clock of PE 0.
fn ask(area: &FlagArea, words: usize) -> i64 {
    let mut fastest = u64::MAX;
    let mut ahead = 0;
    for question in 1..=QUESTIONS {
        let Exchange {
            before,
            after,
            answer,
        } = ask_once(area, words, question);

        let duration = after - before;
        if duration < fastest {
            fastest = duration;
            ahead = answer.wrapping_sub(before + duration / 2).cast_signed();
        }
    }
    ahead
}

/// A question for the time of PE 0. The times are in nanoseconds.
struct Exchange {
    /// The time of this PE before the question.
    before: u64,
    /// The time of this PE after the answer.
    after: u64,
    /// The time of PE 0 between them.
    answer: u64,
}

fn ask_once(area: &FlagArea, words: usize, question: u64) -> Exchange {
    // The first pauses are short beside an exchange. The later ones keep the first PEs of all nodes
    // from loading PE 0 with reads until it answers.
    let mut pauses = Pauses::begin();
    let before = nanoseconds();
    area.raise(Pe(0), words + QUESTION, question);

    loop {
        let answered = area.words_of(std::iter::once(Pe(0)), words + ANSWERED)[0];
        let after = nanoseconds();

        // PE 0 stores the answer before it raises the number. One get of both words might read
        // them in another order, so the answer is read after the number.
        if answered == question {
            let answer = area.words_of(std::iter::once(Pe(0)), words + ANSWER)[0];
            return Exchange {
                before,
                after,
                answer,
            };
        }
        pauses.pause();
    }
}
