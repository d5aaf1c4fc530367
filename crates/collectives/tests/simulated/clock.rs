//! Vector clocks: the causes of each action.

/// An action of a member.
#[derive(Clone, Copy, Default)]
pub struct Event {
    pub member: u32,
    pub time: u32,
}

/// For each member, how many of its actions came before. Empty in a run without clocks: then
/// everything that has happened counts as known.
#[derive(Clone)]
pub struct Clock(Vec<u32>);

impl Clock {
    pub fn new(n: u32, kept: bool) -> Self {
        Self(vec![0; if kept { n as usize } else { 0 }])
    }

    /// `me`, whose clock this is, acts.
    pub fn tick(&mut self, me: u32) -> Event {
        let member = me;
        let time = self.0.get_mut(me as usize).map_or(0, |time| {
            *time += 1;
            *time
        });
        Event { member, time }
    }

    /// Returns true if an event comes before the owner's next one in every schedule.
    pub fn knows(&self, event: Event) -> bool {
        let known = self.0.get(event.member as usize);
        known.is_none_or(|&known| known >= event.time)
    }

    /// A message with this clock was taken.
    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}
