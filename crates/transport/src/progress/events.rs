//! Wakes threads of this PE that sleep until data arrive, if another thread has received the data:
//! then the kernel does not wake them.
//!
//! One of these threads watches the descriptors of the network. The others follow it, unless they
//! watch descriptors of their own: they sleep until a thread wakes them that has received data or
//! that no longer watches. A thread that names the words for which it waits is woken for data only
//! if one of these words has changed, so that most events wake few threads.

use super::backoff::SLEEP_AMONG_THREADS;
use super::timer::timespec;
use rushmem_system::descriptors::made_by;
use rushmem_system::lock::lock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::thread::futex;
use std::cell::Cell;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

thread_local! {
    /// The number of events when this thread last returned from a sleep, after which it checks
    /// what it waits for.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// A word of this PE whose change a thread awaits.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedWord {
    word: &'static AtomicU64,
    /// The value that the thread has seen.
    seen: u64,
}

impl AwaitedWord {
    /// Returns a word with its value. The caller then checks whether its wait is over.
    pub fn new(word: &'static AtomicU64) -> AwaitedWord {
        AwaitedWord {
            word,
            // Acquire: what was written before the value is visible to the check that follows. A
            // change after this load is found by `has_changed`.
            seen: word.load(Ordering::Acquire),
        }
    }

    /// Returns true if the word has another value now. The load has its place in the total order
    /// that [`Events::wake_concerned`] relies on.
    fn has_changed(self) -> bool {
        self.word.load(Ordering::SeqCst) != self.seen
    }
}

/// The descriptors on which a thread sleeps.
#[derive(Clone, Copy, Debug)]
pub enum SleepOn<'a> {
    /// Those of the network, which all threads share: other threads follow one that watches them.
    Shared(&'a [BorrowedFd<'a>]),
    /// Those of the network and some of the thread's own.
    Own(&'a [BorrowedFd<'a>]),
}

/// A thread that sleeps.
#[derive(Clone)]
struct Sleeper {
    awaited: Vec<AwaitedWord>,
    /// The number of events that it has seen.
    seen: u64,
    /// The futex of a thread that follows: 1 when it is to wake. It is no thread-local variable,
    /// since an exit handler may sleep after the destructors of such variables have run.
    woken: Arc<AtomicU32>,
}

impl Sleeper {
    /// Returns true if the thread's wait may be over, now that there are `count` events.
    fn is_concerned(&self, count: u64) -> bool {
        match &*self.awaited {
            [] => self.seen != count,
            awaited => awaited.iter().any(|word| word.has_changed()),
        }
    }

    fn wake(&self) {
        // Relaxed: the kernel compares the futex, and the thread that wakes takes the lock of the
        // sleepers, which the caller holds, before it looks for changes.
        self.woken.store(1, Ordering::Relaxed);
        // This fails only for an invalid address. Without a thread that waits, it does nothing.
        let _ = futex::wake(&self.woken, futex::Flags::PRIVATE, 1);
    }
}

/// The threads that sleep.
#[derive(Default)]
struct Sleepers {
    /// The thread that watches the descriptors; `None` if none does.
    watcher: Option<Sleeper>,
    /// That thread was woken, and has not returned from its sleep yet.
    is_watcher_woken: bool,
    followers: Vec<Sleeper>,
}

/// The events that threads of this PE recorded, and the threads that sleep until there is one.
///
/// A thread that records a change and a thread that begins to sleep each write first and then read
/// what the other one writes: the change and `n_sleepers`. At least one of them sees the other's
/// write (Dekker), since all of these accesses are sequentially consistent, or separated by such a
/// fence where the write is not ours: see [`wake_concerned`](Events::wake_concerned).
pub(super) struct Events {
    /// The number of events, which are the changes for threads that await no words.
    count: AtomicU64,
    /// The number of threads that sleep, or are about to.
    n_sleepers: AtomicUsize,
    sleepers: Mutex<Sleepers>,
    /// Readable when the watcher is to wake.
    wakes_watcher: OwnedFd,
}

impl Events {
    pub(super) fn new() -> io::Result<Events> {
        let wakes_watcher = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Events {
            count: AtomicU64::new(0),
            n_sleepers: AtomicUsize::new(0),
            sleepers: Mutex::default(),
            wakes_watcher: made_by("eventfd2", wakes_watcher)?,
        })
    }

    /// Records that the calling thread received something for which another one may wait.
    pub(super) fn record(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.wake_concerned();
    }

    /// Wakes the threads whose awaited words have changed, and those without words if there was an
    /// event since they began to sleep.
    pub(super) fn wake_concerned(&self) {
        // The change that the caller makes visible comes before the fence. A thread that begins to
        // sleep counts itself before it reads its words. So either the caller finds that thread
        // counted, or that thread sees the change and does not sleep.
        fence(Ordering::SeqCst);
        if !self.any_sleeping() {
            return;
        }

        let mut sleepers = lock(&self.sleepers);
        let count = self.count.load(Ordering::SeqCst);

        let wakes_watcher = !sleepers.is_watcher_woken
            && sleepers
                .watcher
                .as_ref()
                .is_some_and(|watcher| watcher.is_concerned(count));
        if wakes_watcher {
            sleepers.is_watcher_woken = true;
            // This fails only if the counter is full, and then the descriptor is readable already.
            let _ = rustix::io::write(&self.wakes_watcher, &1u64.to_ne_bytes());
        }

        sleepers.followers.retain(|follower| {
            let is_concerned = follower.is_concerned(count);
            if is_concerned {
                follower.wake();
            }
            !is_concerned
        });
    }

    /// Returns true if threads sleep, or are about to.
    pub(super) fn any_sleeping(&self) -> bool {
        self.n_sleepers.load(Ordering::SeqCst) > 0
    }

    /// Lets another thread watch the descriptors if none does: the calling thread waits no longer.
    pub(super) fn hand_over(&self) {
        // A follower that this misses finds no watcher when it takes the lock, and watches itself:
        // the calling thread has ended its own watch under that lock.
        if !self.any_sleeping() {
            return;
        }

        let mut sleepers = lock(&self.sleepers);
        if sleepers.watcher.is_none()
            && let Some(follower) = sleepers.followers.pop()
        {
            follower.wake();
        }
    }

    /// Sleeps for `at_most` at the longest, until a descriptor is ready or one of the `awaited`
    /// words has changed. Without such words, any event ends the sleep, also one since this thread
    /// last returned from this function. Returns true if a descriptor is ready.
    pub(super) fn sleep(
        &self,
        on: SleepOn<'_>,
        awaited: &[AwaitedWord],
        at_most: Duration,
    ) -> bool {
        // The thread may have checked what it waits for before an event that came since it last
        // returned from here, so such an event ends the sleep at once.
        let seen = SEEN.replace(self.count.load(Ordering::SeqCst));
        let sleeper = Sleeper {
            awaited: awaited.to_vec(),
            seen,
            woken: Arc::default(),
        };

        // Counted before `sleep_until` checks for changes: see `wake_concerned`.
        self.n_sleepers.fetch_add(1, Ordering::SeqCst);
        let is_ready = self.sleep_until(Instant::now() + at_most, on, &sleeper);
        self.n_sleepers.fetch_sub(1, Ordering::SeqCst);

        SEEN.set(self.count.load(Ordering::SeqCst));
        is_ready
    }

    /// Sleeps until this time, as the watcher if there is none, otherwise as a follower or on
    /// descriptors of the thread's own. `sleeper` is the calling thread. Returns true if a
    /// descriptor is ready.
    fn sleep_until(&self, end: Instant, on: SleepOn<'_>, sleeper: &Sleeper) -> bool {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut sleepers = lock(&self.sleepers);
            // Checked under the lock, under which other threads wake sleepers: a thread that makes
            // a change after this check finds this thread among the sleepers.
            if left.is_zero() || sleeper.is_concerned(self.count.load(Ordering::SeqCst)) {
                return false;
            }

            match on {
                SleepOn::Shared(fds) | SleepOn::Own(fds) if sleepers.watcher.is_none() => {
                    sleepers.watcher = Some(sleeper.clone());
                    drop(sleepers);
                    return self.watch(fds, left);
                }
                SleepOn::Own(fds) => {
                    drop(sleepers);
                    // No event that a thread records ends this sleep.
                    return sleep_on(fds, None, left.min(SLEEP_AMONG_THREADS));
                }
                SleepOn::Shared(_) => {
                    // Relaxed: only a thread that finds this one in the list, under the lock, wakes
                    // it.
                    sleeper.woken.store(0, Ordering::Relaxed);
                    sleepers.followers.push(sleeper.clone());
                    drop(sleepers);
                    self.follow(sleeper, left);
                }
            }
        }
    }

    /// Sleeps until a descriptor is ready or another thread wakes the watcher, which is the calling
    /// thread. Returns true if a descriptor is ready.
    fn watch(&self, fds: &[BorrowedFd<'_>], at_most: Duration) -> bool {
        let is_ready = sleep_on(fds, Some(&self.wakes_watcher), at_most);

        let mut sleepers = lock(&self.sleepers);
        sleepers.watcher = None;
        if std::mem::take(&mut sleepers.is_watcher_woken) {
            // Read under the lock, so that the descriptor does not wake the next watcher, too. It
            // was written under the lock, so the read cannot fail.
            let _ = rustix::io::read(&self.wakes_watcher, &mut [0; 8]);
        }
        is_ready
    }

    /// Sleeps until another thread wakes this follower. May return before.
    fn follow(&self, follower: &Sleeper, at_most: Duration) {
        // An error says that the sleep has ended early or did not begin, since the follower was
        // woken. The caller checks anyway.
        let _ = futex::wait(
            &follower.woken,
            futex::Flags::PRIVATE,
            0,
            Some(&timespec(at_most)),
        );

        // A thread that has woken this one has also removed it from the list. After a timeout or a
        // signal it is still there.
        lock(&self.sleepers)
            .followers
            .retain(|other| !Arc::ptr_eq(&other.woken, &follower.woken));
    }
}

/// Sleeps until one of `fds` or `also` is ready, for `at_most` at the longest. Returns true if one
/// of `fds` is ready.
fn sleep_on(fds: &[BorrowedFd<'_>], also: Option<&OwnedFd>, at_most: Duration) -> bool {
    let mut all: Vec<PollFd<'_>> = Vec::with_capacity(fds.len() + 1);
    for &fd in fds {
        all.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }
    if let Some(also) = also {
        all.push(PollFd::new(also, PollFlags::IN));
    }

    // A signal also ends the sleep; then nothing is ready.
    if poll(&mut all, Some(&timespec(at_most))).is_err() {
        return false;
    }
    all[..fds.len()].iter().any(|fd| !fd.revents().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// So long that a test seems to hang if a sleep lasts to its end.
    const LONG: Duration = Duration::from_secs(60);

    fn n_followers(events: &Events) -> usize {
        lock(&events.sleepers).followers.len()
    }

    fn is_watched(events: &Events) -> bool {
        lock(&events.sleepers).watcher.is_some()
    }

    fn n_sleeping(events: &Events) -> usize {
        n_followers(events) + usize::from(is_watched(events))
    }

    fn wait_until(mut ready: impl FnMut() -> bool) {
        while !ready() {
            thread::yield_now();
        }
    }

    #[test]
    fn an_event_wakes_the_thread_that_watches_and_those_that_follow() {
        let events = Events::new().expect("a descriptor");
        let (silent, _peer) = UnixStream::pair().expect("sockets");

        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    while events.count.load(Ordering::SeqCst) == 0 {
                        events.sleep(SleepOn::Shared(&[silent.as_fd()]), &[], LONG);
                    }
                });
            }
            wait_until(|| is_watched(&events) && n_followers(&events) == 4);
            events.record();
        });

        assert!(!is_watched(&events));
        assert_eq!(n_followers(&events), 0);
    }

    #[test]
    fn a_thread_is_woken_for_its_words_alone_and_watches_when_no_other_does() {
        static WORDS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
        let events = &Events::new().expect("a descriptor");
        let (silent, peer) = UnixStream::pair().expect("sockets");
        let fd = silent.as_fd();

        thread::scope(|scope| {
            // The first one watches, since each sleeps before the next one begins.
            let [first, second, third] = WORDS.each_ref().map(|word| {
                let n_before = n_sleeping(events);
                let sleeper = scope.spawn(move || {
                    let awaited = [AwaitedWord::new(word)];
                    let is_ready = events.sleep(SleepOn::Shared(&[fd]), &awaited, LONG);
                    events.hand_over();
                    is_ready
                });
                wait_until(|| n_sleeping(events) > n_before);
                sleeper
            });

            WORDS[1].store(1, Ordering::Relaxed);
            events.record();
            assert!(!second.join().expect("it follows"));
            assert!(is_watched(events));
            assert_eq!(n_followers(events), 1);

            WORDS[0].store(1, Ordering::Relaxed);
            events.record();
            assert!(!first.join().expect("it has watched"));
            wait_until(|| is_watched(events));

            drop(peer);
            assert!(third.join().expect("it watches now"), "the end of its peer");
        });
    }

    #[test]
    fn an_event_prevents_the_next_sleep_and_no_further_one() {
        let events = Events::new().expect("a descriptor");
        let (silent, peer) = UnixStream::pair().expect("sockets");
        let fds = [silent.as_fd()];
        let on = SleepOn::Shared(&fds);

        events.record();
        assert!(!events.sleep(on, &[], LONG), "there was an event");

        let at_most = Duration::from_millis(20);
        let before = Instant::now();
        assert!(!events.sleep(on, &[], at_most), "nothing has arrived");
        assert!(before.elapsed() >= at_most, "there was no event since");

        drop(peer);
        assert!(events.sleep(on, &[], LONG), "the end of its peer");
    }
}
