//! Unit tests of `answers`: an origin and a target between which messages overtake each other.

use super::*;
use std::collections::VecDeque;

const HERE: Pe = Pe(0);
const THERE: Pe = Pe(1);

/// Numbers that look random.
fn next(random: &mut u64) -> usize {
    *random =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize
}

struct Wire {
    asked: Asked,
    told: Arc<ToldCounts>,
    origin: u32,
    fences: u32,
    window: u32,
    carried: Carried<(Place, u32)>,
    /// On its way, with the number of fences before it.
    requests: VecDeque<(Place, u32)>,
    answers: VecDeque<u32>,
    /// Fences before the requests that were carried out.
    done: Vec<u32>,
    /// Answers that were asked for, which are messages of their own.
    told_alone: usize,
}

impl Wire {
    fn new(answers: &Answers, start: u32, window: u32) -> Wire {
        let (origin, told) = answers.origin();
        told.by_pe.get_or_default(THERE).expect("a PE").store(start, Ordering::Relaxed);
        let carried = Carried { count: start, ..Carried::default() };
        Wire {
            asked: Asked::after(start),
            told,
            origin,
            fences: 0,
            window,
            carried,
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            done: Vec::new(),
            told_alone: 0,
        }
    }

    fn told(&self) -> u32 {
        self.told.by(THERE)
    }

    fn ask(&mut self, ordered: bool, asks: bool) {
        let place = self.asked.place(self.fences, self.told(), self.window, (ordered, asks));
        self.requests.push_back((place, self.fences));
    }

    fn arrives(&mut self, (place, fences): (Place, u32)) {
        match self.carried.turn(place) {
            Turn::Now => self.carry_out(place, fences),
            Turn::Later => self.carried.keep(place, (place, fences)),
            Turn::Never => panic!("{place:?} at {}", self.carried.count()),
        }
        while let Some((place, fences)) = self.carried.take_early() {
            self.carry_out(place, fences);
        }
    }

    fn carry_out(&mut self, place: Place, fences: u32) {
        self.carried.carried_out(place.number);
        self.done.push(fences);
        if place.asks {
            assert!(
                has_reached(self.carried.count(), place.number),
                "an answer is about all before"
            );
            self.answers.push_back(self.carried.count());
            self.told_alone += 1;
        }
    }

    /// Some message arrives, whichever.
    fn deliver(&mut self, random: &mut u64) {
        if next(random).is_multiple_of(2) && !self.answers.is_empty() {
            let which = next(random) % self.answers.len();
            if let Some(count) = self.answers.remove(which) {
                self.told.tell(THERE, count);
            }
        } else if !self.requests.is_empty() {
            let which = next(random) % self.requests.len();
            if let Some(request) = self.requests.remove(which) {
                self.arrives(request);
            }
        }
    }
}

#[test]
fn whatever_overtakes_fences_hold_and_every_wait_ends() {
    for start in [0, u32::MAX - 100] {
        for window in [1, 2, 3, 64] {
            let (answers, mut random) = (Answers::new(2), u64::from(window));
            let mut wire = Wire::new(&answers, start, window);
            for _ in 0..3000 {
                while wire.asked.unanswered(wire.told()) >= window {
                    assert!(
                        !wire.requests.is_empty() || !wire.answers.is_empty(),
                        "it waits for ever"
                    );
                    wire.deliver(&mut random);
                }
                if next(&mut random).is_multiple_of(3) {
                    wire.fences += 1;
                }
                wire.ask(next(&mut random).is_multiple_of(5), false);
                if next(&mut random).is_multiple_of(2) {
                    wire.deliver(&mut random);
                }
            }
            // A quiet.
            if wire.asked.must_ask(wire.told()) {
                wire.ask(true, true);
            }
            assert!(!wire.asked.must_ask(wire.told()));
            while wire.asked.unanswered(wire.told()) > 0 {
                assert!(!wire.requests.is_empty() || !wire.answers.is_empty(), "it waits for ever");
                wire.deliver(&mut random);
            }
            assert!(wire.requests.is_empty() && wire.done.len() >= 3000);
            assert!(
                wire.done.is_sorted(),
                "what followed a fence was carried out before what came ahead of it"
            );
        }
    }
}

#[test]
fn a_window_takes_two_answers() {
    let answers = Answers::new(2);
    let mut wire = Wire::new(&answers, 0, 64);
    for _ in 0..640 {
        wire.ask(true, false);
        let request = wire.requests.pop_front().expect("just asked");
        wire.arrives(request);
        wire.answers.drain(..).for_each(|count| wire.told.tell(THERE, count));
    }
    assert_eq!(wire.told_alone, 20);
}

#[test]
fn counts_that_ride_on_messages_need_no_answers() {
    let (here, there) = (Answers::new(2), Answers::new(2));
    let (mut to, mut back) = (Wire::new(&here, 0, 64), Wire::new(&there, 0, 64));
    // What `there` asks goes to PE 0, of which `back` has the counts under the same number.
    back.told.tell(THERE, 0);
    for _ in 0..1000 {
        to.ask(true, false);
        let request = to.requests.pop_front().expect("just asked");
        to.arrives(request);
        there.carried_out(Stream { pe: HERE, origin: to.origin }, to.carried.count());
        // The message back.
        let news = there.for_message_to(HERE).expect("news");
        here.tell(THERE, news);
        back.ask(true, false);
        let request = back.requests.pop_front().expect("just asked");
        back.arrives(request);
        back.told.tell(THERE, back.carried.count());
        assert_eq!(to.asked.unanswered(to.told()), 0);
        assert_eq!(there.for_message_to(HERE), None, "it is told once");
    }
    assert_eq!(to.told_alone + back.told_alone, 0);
}

#[test]
fn what_no_origin_sent_is_refused() {
    let mut carried = Carried::default();
    let place = |number, after| Place { number, after, asks: false };
    assert_eq!(carried.turn(place(0, 0)), Turn::Never);
    assert_eq!(carried.turn(place(MOST + 1, 0)), Turn::Never);
    assert_eq!(carried.turn(place(2, 2)), Turn::Never, "after itself");
    assert_eq!(carried.turn(place(2, 1)), Turn::Later);
    carried.keep(place(2, 1), 'a');
    carried.keep(place(2, 1), 'b');
    assert_eq!(carried.turn(place(3, 0)), Turn::Now);
    carried.carried_out(3);
    assert_eq!(carried.turn(place(3, 0)), Turn::Never, "it was carried out");
    carried.carried_out(1);
    assert_eq!((carried.take_early(), carried.take_early()), (Some('a'), None));
    carried.carried_out(2);
    assert_eq!((carried.count(), carried.turn(place(1, 0))), (3, Turn::Never));
    // Counts of no origin and no PE.
    let answers = Answers::new(1);
    answers.tell(Pe(0), Answer { origin: 0, count: 1 });
    answers.carried_out(Stream { pe: Pe(7000), origin: 0 }, 1);
    let (_, told) = answers.origin();
    answers.tell(Pe(7000), Answer { origin: 0, count: 1 });
    assert_eq!((told.by(Pe(0)), told.by(Pe(7000))), (0, 0));
    told.tell(Pe(0), 9);
    told.tell(Pe(0), 8);
    assert_eq!((told.by(Pe(0)), told.all()), (9, 9), "an older count changes nothing");
}
