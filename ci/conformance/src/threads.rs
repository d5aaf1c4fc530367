//! Threads of one PE, each with an endpoint of its own.

use super::member::Member;
use super::random::{Mix, Room};
use std::thread;

const THREADS: usize = 4;
const ROOM: usize = 1 << 19;

pub(crate) fn own_endpoints(member: &Member) {
    let rooms = (0..THREADS).map(|i| {
        let number = member.me() * THREADS + i;
        Room::new(member, number * ROOM, ROOM, 400 + number as u64)
    });
    thread::scope(|scope| {
        for mut room in rooms {
            scope.spawn(move || {
                for _ in 0..15 {
                    room.batch(member, Mix::Usual);
                }
                room.check(member);
            });
        }
    });
}
