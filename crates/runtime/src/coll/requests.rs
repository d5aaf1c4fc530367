//! The requests of non-blocking collectives (an extension), and the threads of the library that
//! carry them out. The work of a request is a closure that `nonblocking` makes.
//!
//! Each team with requests has a thread, which carries them out in the order of the calls. So the
//! requests of one team have the same order on all members, and requests of different teams never
//! wait for each other, whatever the order of the calls on each PE. A blocking collective first
//! waits for the requests of its team. A thread ends with its team, or when it has been idle for
//! `IDLE`.
//!
//! Several collectives of a PE can be in progress at once, as with `SHMEM_THREAD_MULTIPLE`. So a
//! non-blocking collective uses no buffer that teams share, and communicates over the library's own
//! endpoint, which is locked at every thread level.

use crate::coll::executor::CollectiveCall;
use crate::teams::registry::HeldTeam;
use crate::teams::team::Team;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags;
use rushmem_communication::observers::{Action, FollowedMembers, ObservedCall};
use rushmem_communication::sync::team_signals::OngoingCollective;
use rushmem_communication::sync::waits;
use rushmem_pe::call::thread;
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use rushmem_system::lock::lock;
use rushmem_system::thread::refused;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

/// The time after which a thread without requests ends. A program that starts one request after the
/// other does not start a thread for each.
const IDLE: Duration = Duration::from_secs(1);

/// A non-blocking collective that the program has called.
pub(crate) struct Request {
    requests: &'static Requests,
    /// Its number in [`RequestState::held`].
    number: usize,
    call: Call,
    team: HeldTeam,
    /// Its number among the collectives of this PE on the team.
    nth: u64,
    /// The addresses of `dest` and `source`.
    vectors: [usize; 2],
    /// 1 once the collective is complete. Stored with release order after `result` and all that the
    /// collective has written, and read with acquire order before these are used.
    done: AtomicU32,
    /// The value that the blocking routine has returned. Relaxed: `done` orders it.
    result: AtomicUsize,
    holder: Mutex<Holder>,
    /// The event for observers, which ends when the program or the library has found the collective
    /// complete and forgets the request.
    observed: Mutex<ObservedCall>,
}

/// What the program does with a request.
enum Holder {
    /// It tests the request or waits for it.
    Program,
    /// It has a task that is woken when the collective is complete.
    Task(Waker),
    /// It has dropped the request, which is forgotten when the collective is complete.
    Nobody,
}

/// A request, and the closure that carries it out and returns its result.
struct Task {
    request: Arc<Request>,
    collective: Box<dyn FnOnce() -> usize + Send>,
}

/// The requests of a PE.
pub(crate) struct Requests {
    links: &'static Links,
    state: Mutex<RequestState>,
}

#[derive(Default)]
struct RequestState {
    /// The requests that no test or wait has found complete, by number.
    held: BTreeMap<usize, Arc<Request>>,
    /// The number of the last request.
    count: usize,
    /// The queues of the teams that have a thread.
    by_team: HashMap<TeamHandle, TeamQueue>,
}

struct TeamQueue {
    tasks: Sender<Task>,
    last: Arc<Request>,
}

impl Requests {
    /// Returns the requests of a PE that has made none.
    pub(crate) fn new(links: &'static Links) -> Requests {
        Requests {
            links,
            state: Mutex::default(),
        }
    }

    /// Queues a collective on a team, and starts a thread for it if the team has none. `follows` is
    /// what `set_followed` takes, if the result depends not on the arrays of all members.
    pub(crate) fn queue(
        &'static self,
        call: Call,
        team: HeldTeam,
        vectors: [usize; 2],
        follows: Option<(FollowedMembers, u32)>,
        collective: Box<dyn FnOnce() -> usize + Send>,
    ) -> RequestHandle {
        let handle = team.handle();
        let mut state = lock(&self.state);

        // Blocking collectives may have followed the last request if that is complete.
        let last_nth = match state.by_team.get(&handle) {
            Some(queue) if !queue.last.is_done() => queue.last.nth,
            _ => entered(call, &team),
        };
        let nth = last_nth + 1;
        team.has_requests.store(true, Ordering::Relaxed);

        let mut observed = CollectiveCall {
            call,
            team: &team,
            nth,
            in_request: true,
        }
        .observe(Action::Request);
        if let Some(observed) = &mut observed
            && let Some((members, member)) = follows
        {
            observed.set_followed(members, member);
        }

        state.count += 1;
        let number = state.count;
        let request = Arc::new(Request {
            requests: self,
            number,
            call,
            team,
            nth,
            vectors,
            done: AtomicU32::new(0),
            result: AtomicUsize::new(0),
            holder: Mutex::new(Holder::Program),
            observed: Mutex::new(observed),
        });
        state.held.insert(number, request.clone());

        let queue = state
            .by_team
            .entry(handle)
            .or_insert_with(|| TeamQueue::start(self, call, handle, request.clone()));
        queue.last = request.clone();

        thread::add_request();
        let task = Task {
            request,
            collective,
        };
        queue
            .tasks
            .send(task)
            .expect("the thread leaves the map before it ends");
        RequestHandle(number)
    }

    /// Returns the held request of a handle, if there is one.
    pub(crate) fn find(&self, handle: RequestHandle) -> Option<Arc<Request>> {
        lock(&self.state).held.get(&handle.0).cloned()
    }

    /// Completes all requests, of any team, with an array that begins in this range of addresses.
    /// Afterwards no request uses the object there, even if the program has lost the handles. A
    /// handle that it has not lost can still be waited for.
    pub(crate) fn complete_on(&self, object: Range<usize>) {
        let mut on_object = Vec::new();
        for request in lock(&self.state).held.values() {
            if request.vectors.iter().any(|vector| object.contains(vector)) {
                on_object.push(Arc::clone(request));
            }
        }

        // Without the lock: the thread that completes a request which was dropped takes it.
        for request in on_object {
            request.wait();
        }
    }

    /// Waits until all requests of a team are complete.
    #[cold]
    #[inline(never)]
    pub(crate) fn complete(&self, team: &Team) {
        team.has_requests.store(false, Ordering::Relaxed);
        let last = lock(&self.state)
            .by_team
            .get(&team.handle())
            .map(|queue| queue.last.clone());
        if let Some(last) = last {
            last.wait();
        }
    }

    /// Waits until all requests of a team are complete, and ends the thread of the team.
    pub(crate) fn end(&self, team: &Team) {
        self.complete(team);
        lock(&self.state).by_team.remove(&team.handle());
    }

    /// Completes and forgets the requests of all teams. With `SHMEM_CHECK`, warns if there are
    /// requests that no test or wait has found complete.
    pub(crate) fn complete_all(&self, call: Call) {
        let held = std::mem::take(&mut lock(&self.state).held);
        for request in held.values() {
            request.wait();
        }
        if !self.links.job.settings.checks() {
            return;
        }

        let untested: Vec<Call> = held
            .values()
            .filter(|request| !request.is_dropped())
            .map(|request| request.call)
            .collect();
        if let Some(first) = untested.first() {
            let n = untested.len();
            warning!(
                each: "{call}: neither a wait nor a test has found {n} non-blocking collectives done; the first is {first}; \
                 {} for each",
                call.words("call shmemx_req_wait", "call wait or poll the future")
            );
        }
    }
}

#[cfg(test)]
impl Requests {
    /// Returns the number of requests that are not forgotten.
    pub(crate) fn n_held(&self) -> usize {
        lock(&self.state).held.len()
    }

    /// Ends the threads of all teams, whose requests are complete.
    pub(crate) fn end_all(&self) {
        lock(&self.state).by_team.clear();
    }
}

impl TeamQueue {
    /// Starts a thread for the requests of a team, of which `last` is queued next. Ends the job
    /// with an error if the kernel refuses the thread.
    fn start(
        requests: &'static Requests,
        call: Call,
        handle: TeamHandle,
        last: Arc<Request>,
    ) -> TeamQueue {
        let (tasks, queued) = channel();
        let serve = move || serve(requests, handle, &queued);
        if let Err(error) = requests.links.spawn_service("rushmem-request", serve) {
            fail!(
                call,
                "non-blocking collectives need a thread, but {}",
                refused(&error)
            );
        }
        TeamQueue { tasks, last }
    }
}

/// Returns the number of collectives that this PE has entered on a team, all of whose requests are
/// complete. Ends the job with an error if another thread is in one of them.
fn entered(call: Call, team: &Team) -> u64 {
    match team.signals.try_lock() {
        Ok(signals) => signals.entered(),
        Err(_) => fail!(
            call,
            "another thread of this PE is in a collective on the same team; threads that call collectives at once need a \
             team each"
        ),
    }
}

/// Carries out the requests of a team until the team ends or has had none for [`IDLE`].
fn serve(requests: &Requests, handle: TeamHandle, queued: &Receiver<Task>) {
    while let Some(Task {
        request,
        collective,
    }) = next_task(requests, handle, queued)
    {
        let result = thread::carry_out(request.call, collective);
        request.result.store(result, Ordering::Relaxed);
        request.done.store(1, Ordering::Release);
        flags::wake(&request.done);
        request.tell_holder();
    }
}

/// Waits for the next task of a team. Returns `None` if the thread is to end: the team has ended,
/// or there was no task for [`IDLE`].
fn next_task(requests: &Requests, handle: TeamHandle, queued: &Receiver<Task>) -> Option<Task> {
    match queued.recv_timeout(IDLE) {
        Ok(task) => return Some(task),
        Err(RecvTimeoutError::Disconnected) => return None,
        Err(RecvTimeoutError::Timeout) => {}
    }

    // Tasks are queued under this lock, so none is left to a thread that ends: the next request of
    // the team starts another one.
    let mut state = lock(&requests.state);
    let next = queued.try_recv();
    if matches!(next, Err(TryRecvError::Empty)) {
        state.by_team.remove(&handle);
    }
    next.ok()
}

impl Request {
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) != 0
    }

    /// Returns true if the collective is complete; otherwise wakes this task when it is.
    pub(crate) fn is_done_or_wakes(&self, waker: &Waker) -> bool {
        let mut holder = lock(&self.holder);
        // The thread that completes the collective sets `done` before it takes the lock. So it
        // finds the waker if `done` is not set here.
        if self.is_done() {
            return true;
        }

        let wakes_already = matches!(&*holder, Holder::Task(known) if known.will_wake(waker));
        if !wakes_already {
            let previous = std::mem::replace(&mut *holder, Holder::Task(waker.clone()));
            // The drop of a waker may call anything, so it is not under the lock.
            drop(holder);
            drop(previous);
        }
        false
    }

    /// Tells the holder that the collective is complete.
    fn tell_holder(&self) {
        let mut holder = lock(&self.holder);
        if matches!(*holder, Holder::Nobody) {
            drop(holder);
            self.forget();
            return;
        }

        // A waker may call anything, so it is called without the lock.
        let previous = std::mem::replace(&mut *holder, Holder::Program);
        drop(holder);
        if let Holder::Task(waker) = previous {
            waker.wake();
        }
    }

    /// Forgets the request, which is complete, and returns its result.
    pub(crate) fn finish(&self) -> usize {
        self.forget();
        self.result.load(Ordering::Relaxed)
    }

    /// Forgets the request, which is complete.
    pub(crate) fn forget(&self) {
        lock(&self.requests.state).held.remove(&self.number);
        self.end_event();
    }

    /// Records that the program gives up the request, which is forgotten when the collective is
    /// complete.
    pub(crate) fn detach(&self) {
        // Under the lock of the holder: if the collective is not complete here, the thread that
        // completes it finds that nobody holds the request, and forgets it.
        let mut holder = lock(&self.holder);
        let is_done = self.is_done();
        let previous = std::mem::replace(&mut *holder, Holder::Nobody);
        drop(holder);
        drop(previous);
        if is_done {
            self.forget();
        }
    }

    fn is_dropped(&self) -> bool {
        matches!(*lock(&self.holder), Holder::Nobody)
    }

    /// Ends the event of the request: the program knows that it is complete.
    fn end_event(&self) {
        drop(lock(&self.observed).take());
    }

    /// Waits until the collective is complete.
    pub(crate) fn wait(&self) {
        self.wait_within(None);
    }

    /// Waits until the collective is complete, for `limit` at the longest, if there is one. Returns
    /// false if it is not complete. The status of the waiting thread shows the same call as the
    /// status of the thread that carries the collective out, so that a hang report sees all members
    /// in one collective.
    pub(crate) fn wait_within(&self, limit: Option<Duration>) -> bool {
        let describe = || {
            let entry = CollectiveCall {
                call: self.call,
                team: &self.team,
                nth: self.nth,
                in_request: true,
            };
            entry.describe(None)
        };
        waits::until_set(self.requests.links, limit, &self.done, describe)
    }
}
