//! Chooses the next actor at random, from a seed.
//!
//! To provoke faults, the choice is not uniform. A random share of the members and channels is
//! starved: they act only when no other one can. And often the actor that was added last continues.

#[derive(Clone, Copy, Debug)]
pub enum Actor {
    Member(u32),
    Channel(usize),
}

pub struct Schedule {
    random: Random,
    /// Decides, with the number of an actor, whether the actor is starved.
    salt: u64,
    /// The share of the actors that are starved, in parts of 256.
    starved_of_256: u64,
    /// The probability that the actor that was added last acts next, in parts of 256.
    run_on_of_256: u64,
    /// The actors that can act and are not starved.
    favored: Vec<Actor>,
    /// The actors that can act and are starved.
    starved: Vec<Actor>,
}

impl Schedule {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        Self {
            salt: random.next(),
            starved_of_256: random.one_of([0, 16, 128, 240]),
            run_on_of_256: random.one_of([0, 128, 250]),
            random,
            favored: Vec::new(),
            starved: Vec::new(),
        }
    }

    /// Adds an actor that can act and is not in the schedule yet.
    pub fn add(&mut self, actor: Actor) {
        let id = match actor {
            Actor::Member(index) => u64::from(index) * 2,
            Actor::Channel(index) => index as u64 * 2 + 1,
        };
        if Random(self.salt ^ id).next() % 256 < self.starved_of_256 {
            self.starved.push(actor);
        } else {
            self.favored.push(actor);
        }
    }

    /// Removes the next actor from the schedule and returns it.
    pub fn take(&mut self) -> Option<Actor> {
        let ready = if self.favored.is_empty() {
            &mut self.starved
        } else {
            &mut self.favored
        };
        if ready.is_empty() || self.random.next() % 256 < self.run_on_of_256 {
            ready.pop()
        } else {
            let index = self.random.next() % ready.len() as u64;
            Some(ready.swap_remove(index as usize))
        }
    }
}

/// A generator of pseudorandom numbers: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_of<const K: usize>(&mut self, choices: [u64; K]) -> u64 {
        choices[(self.next() % K as u64) as usize]
    }
}
