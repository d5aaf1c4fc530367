//! Who ends a wait wakes the PE that sleeps in it. Without that the wait ends, too, since each
//! sleep has a limit, but milliseconds later, which no other test would notice.
//!
//! Each test lets PE 0 act once all others sleep, and looks at their doorbells. A doorbell counts
//! only while a thread sleeps on it, which it does but for moments: one of several turns suffices.
#![allow(unsafe_code)]

use super::kit::{CALL, Shape, TestPe, WORLD, job};
use super::locks;
use crate::coll::collectives::{self, ElementCount};
use rushmem_communication::sync::mailbox::message_wait;
use rushmem_communication::sync::waits;
use rushmem_explain::status_slot;
use rushmem_pe::memory::areas::MESSAGE;
use rushmem_transport::Pe;
use std::thread::sleep;
use std::time::Duration;

/// The number of times that PE 0 acts.
const TURNS: u64 = 6;

/// Returns true if a PE of this node shows a wait in its status, in which it sleeps.
fn is_waiting(pe: TestPe, other: Pe) -> bool {
    let area = pe.area();
    let slot = area.areas().status();
    let status = status_slot::read(|nbytes| Some(area.bytes_of(other, slot, nbytes)));
    status.is_some_and(|status| !status.waits.is_empty())
}

/// Returns how often threads of a PE were woken.
fn rings(pe: TestPe, other: Pe) -> u64 {
    // The doorbell is the first word of an area.
    pe.area().flag_of(other, 0) & u64::from(u32::MAX)
}

/// Lets PE 0 `act` once all others, which `wait`, sleep. Both get the number of the turn, from 1.
///
/// # Panics
/// If one of the others was never woken.
fn wakes(shape: &Shape, wait: fn(TestPe, u64), act: fn(TestPe, u64)) {
    wakes_after(shape, |_| {}, wait, act);
}

/// Makes the same test, in which all PEs `prepare` before each turn.
fn wakes_after(shape: &Shape, prepare: fn(TestPe), wait: fn(TestPe, u64), act: fn(TestPe, u64)) {
    let n_woken = job(shape, move |pe| {
        let others: Vec<Pe> = (1..pe.job().n_pes).map(Pe).collect();
        let mut n_woken = vec![0; others.len()];
        for turn in 1..=TURNS {
            prepare(pe);
            pe.sync_all();
            if pe.me() > 0 {
                wait(pe, turn);
            } else {
                while !others.iter().all(|&other| is_waiting(pe, other)) {
                    sleep(Duration::from_millis(1));
                }
                let before: Vec<u64> = others.iter().map(|&other| rings(pe, other)).collect();
                act(pe, turn);
                for (i, &other) in others.iter().enumerate() {
                    n_woken[i] += u32::from(rings(pe, other) != before[i]);
                }
            }
            pe.sync_all();
        }
        n_woken
    });
    assert!(n_woken[0].iter().all(|&n| n > 0), "{:?}", n_woken[0]);
}

fn broadcast(pe: TestPe, turn: u64) {
    let [dest, source] = [1024, 0].map(|offset| pe.at(offset + 8 * turn as usize));
    // SAFETY: the words are in the heaps, and each turn has others.
    unsafe { collectives::broadcast(pe, WORLD, dest, source, ElementCount::of::<u64>(1), 0) };
}

/// The root of a broadcast signals two PEs, and returns.
#[test]
fn each_signal_of_a_collective_does() {
    let shape = Shape::of(&[3]).rows("broadcast 0+ any any any any binomial");
    wakes(&shape, broadcast, broadcast);
}

/// The last PE signals another one, whose own signal has arrived before.
#[test]
fn a_signal_before_a_wait_does() {
    for n in [2, 3] {
        let shape = Shape::of(&[n]).rows("sync 0+ any any any any dissemination");
        wakes(&shape, |pe, _| pe.sync_all(), |pe, _| pe.sync_all());
    }
}

#[test]
fn the_last_to_arrive_does() {
    let shape = Shape::of(&[4]).rows("sync 0+ any any any any central");
    wakes(&shape, |pe, _| pe.sync_all(), |pe, _| pe.sync_all());
}

#[test]
fn a_message_does() {
    let wait = |pe: TestPe, turn| {
        let received = pe.links().receive_message(&message_wait(CALL), Pe(0), turn);
        assert!(received.is_some());
    };
    let act = |pe: TestPe, turn| {
        pe.links()
            .send_message(&message_wait(CALL), Pe(1), turn, &[0; MESSAGE]);
    };
    wakes(&Shape::of(&[2]), wait, act);
}

#[test]
fn a_count_does() {
    let wait = |pe: TestPe, turn| {
        let counted = pe.area().areas().exits().by_cpu;
        let is_over = || pe.area().flag(counted) >= turn;
        waits::until_rung(pe.links(), &[], || message_wait(CALL)(Pe(0)), is_over);
    };
    let act = |pe: TestPe, _| pe.area().count(Pe(1), pe.area().areas().exits());
    wakes(&Shape::of(&[2]), wait, act);
}

#[test]
fn a_lock_that_is_passed_on_does() {
    let wait = |pe: TestPe, _| {
        locks::set(pe, 0);
        locks::clear(pe, 0);
    };
    // PE 1 is behind it.
    let act = |pe: TestPe, _| locks::clear(pe, 0);
    let shape = Shape::of(&[2]);
    let prepare = |pe: TestPe| {
        if pe.me() == 0 {
            locks::set(pe, 0);
        }
    };
    wakes_after(&shape, prepare, wait, act);
}
