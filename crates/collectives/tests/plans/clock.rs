//! Vector clocks: they tell which actions precede an action in every schedule.

/// An action of a member.
#[derive(Clone, Copy, Default)]
pub struct Event {
    pub member: u32,
    pub time: u32,
}

/// The number of actions of each member that precede the owner's next action. Empty in a run
/// without clocks, in which all actions so far count as preceding.
#[derive(Clone)]
pub struct Clock(Vec<u32>);

impl Clock {
    pub fn new(n: u32, kept: bool) -> Self {
        Self(vec![0; if kept { n as usize } else { 0 }])
    }

    /// Counts an action of the owner of the clock, `me`.
    pub fn tick(&mut self, me: u32) -> Event {
        let mut time = 0;
        if let Some(own) = self.0.get_mut(me as usize) {
            *own += 1;
            time = *own;
        }
        Event { member: me, time }
    }

    /// Returns true if an event precedes the owner's next action in every schedule.
    pub fn knows(&self, event: Event) -> bool {
        let known = self.0.get(event.member as usize);
        known.is_none_or(|&known| known >= event.time)
    }

    /// Adds the clock of a message that the owner has received.
    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}
