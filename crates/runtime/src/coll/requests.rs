//! The requests of non-blocking collectives (an extension), and the threads of the library that
//! carry them out. What a request does is a closure (`nonblocking`).
//!
//! Each team that has requests has one of these threads, which takes them in the order of the
//! calls. So requests of one team follow each other on all members, and those of different teams
//! never wait for each other, in whatever order PEs make them. A blocking collective first waits
//! for the requests of its team. A thread ends with its team, or if it was idle for a while.
//!
//! Several collectives of a PE are then in progress at once, as with `SHMEM_THREAD_MULTIPLE`: those
//! of requests use no buffer that teams share. They communicate by the library's own endpoint,
//! which has a lock at every thread level.
use crate::call::thread;
use crate::call::warning::warning;
use crate::call::{Call, fail};
use crate::coll::executor::CollectiveCall;
use crate::job::caller;
use crate::job::handle::{RequestHandle, TeamHandle};
use crate::job::{self, Job};
use crate::memory::primitive::{AtomicU32, Ordering};
use crate::net::flags;
use crate::observers::{Action, ObservedCall};
use crate::process::lock;
use crate::sync::backoff;
use crate::sync::team_signals::OngoingCollective;
use crate::teams::registry::HeldTeam;
use crate::teams::team::Team;
use rushmem_transport::thread::{refused, spawn_service};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// The time for which a thread without requests stays for the next one.
const IDLE: Duration = Duration::from_secs(1);

/// A collective that was called and not yet waited for.
struct Request {
    call: Call,
    team: HeldTeam,
    /// Which one of this PE on the team it is.
    nth: u64,
    /// The addresses of `dest` and `source`.
    vectors: [usize; 2],
    /// 1 once it is done.
    done: AtomicU32,
    /// The value that the blocking routine returned.
    result: AtomicUsize,
    /// Until a test or wait has found it done.
    observed: Mutex<ObservedCall>,
}

/// A request, and what a thread does for it: a collective on its team, which returns the result.
struct Task {
    request: Arc<Request>,
    collective: Box<dyn FnOnce() -> usize + Send>,
}

#[derive(Default)]
struct Requests {
    /// The requests that no test or wait has found done.
    held: BTreeMap<usize, Arc<Request>>,
    /// The number of requests made so far.
    count: usize,
    /// The teams that have a thread.
    by_team: HashMap<TeamHandle, TeamQueue>,
}

struct TeamQueue {
    tasks: Sender<Task>,
    last: Arc<Request>,
}

static REQUESTS: LazyLock<Mutex<Requests>> = LazyLock::new(Mutex::default);

/// Queues a collective on a team, and starts a thread for it if the team has none.
pub(crate) fn queue(
    call: Call,
    team: HeldTeam,
    vectors: [usize; 2],
    collective: Box<dyn FnOnce() -> usize + Send>,
) -> RequestHandle {
    let handle = team.handle();
    let mut requests = lock(&REQUESTS);
    let queue = requests.by_team.get(&handle);
    // After the last request is done, blocking collectives may have been entered.
    let nth = 1 + match queue.filter(|queue| !queue.last.is_done()) {
        Some(queue) => queue.last.nth,
        None => entered(call, &team),
    };
    team.has_requests.store(true, Ordering::Relaxed);
    let (done, result) = (AtomicU32::new(0), AtomicUsize::new(0));
    let observed =
        CollectiveCall { call, team: &team, nth, in_request: true }.observe(Action::Request);
    let observed = Mutex::new(observed);
    let request = Arc::new(Request { call, team, nth, vectors, done, result, observed });
    requests.count += 1;
    let number = requests.count;
    requests.held.insert(number, request.clone());
    let queue = requests.by_team.entry(handle).or_insert_with(|| {
        let (tasks, queued) = channel();
        if let Err(error) = spawn_service("rushmem-request", move || serve(handle, &queued)) {
            fail!(call, "non-blocking collectives need a thread, but {}", refused(&error));
        }
        TeamQueue { tasks, last: request.clone() }
    });
    queue.last = request.clone();
    thread::add_request();
    let task = Task { request, collective };
    queue.tasks.send(task).expect("the thread leaves the map before it ends");
    RequestHandle(number)
}

/// Returns how many collectives this PE has entered on a team without unfinished requests.
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

/// Carries out the requests of a team until there are none for a while, or the team ends.
fn serve(handle: TeamHandle, queued: &Receiver<Task>) {
    let next = || match queued.recv_timeout(IDLE) {
        Err(RecvTimeoutError::Timeout) => {
            let mut requests = lock(&REQUESTS);
            let next = queued.try_recv();
            if matches!(next, Err(TryRecvError::Empty)) {
                requests.by_team.remove(&handle);
            }
            next.ok()
        }
        next => next.ok(),
    };
    while let Some(Task { request, collective }) = next() {
        let result = thread::carrying_out(request.call, collective);
        request.result.store(result, Ordering::Relaxed);
        request.done.store(1, Ordering::Release);
        flags::wake(&request.done);
    }
}

impl Request {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire) != 0
    }

    /// Records that the program knows that it is done.
    fn is_found(&self) {
        drop(lock(&self.observed).take());
    }

    /// Waits until it is done. The status shows the collective, as the thread that carries it out
    /// does, so that the calls of PEs compare as equal.
    fn wait(&self) -> usize {
        let describe = || {
            let (call, nth) = (self.call, self.nth);
            let entry = CollectiveCall { call, team: &self.team, nth, in_request: true };
            entry.describe(None)
        };
        backoff::until_set(&self.done, describe);
        self.result.load(Ordering::Relaxed)
    }
}

/// Returns the request of a handle; `None` for that of no request.
fn find(call: Call, handle: RequestHandle) -> Option<Arc<Request>> {
    caller::check(call, job::require(call));
    if handle == RequestHandle::NULL {
        return None;
    }
    let request = lock(&REQUESTS).held.get(&handle.0).cloned();
    if request.is_none() {
        fail!(
            call,
            "argument req is not an unfinished request of this PE: was a copy of it waited for, or was it never \
             initialized? SHMEMX_REQ_NULL is no request"
        );
    }
    request
}

/// `shmemx_req_test`: the result of a request that is done, which is then forgotten.
pub fn test(call: Call, handle: RequestHandle) -> Option<usize> {
    let Some(request) = find(call, handle) else { return Some(0) };
    if !request.is_done() {
        // The thread of the request may need the CPU.
        std::thread::yield_now();
        return None;
    }
    lock(&REQUESTS).held.remove(&handle.0);
    request.is_found();
    Some(request.result.load(Ordering::Relaxed))
}

/// `shmemx_req_wait`: waits until a request is done, and returns its result.
pub fn wait(call: Call, handle: RequestHandle) -> usize {
    let Some(request) = find(call, handle) else { return 0 };
    let result = request.wait();
    lock(&REQUESTS).held.remove(&handle.0);
    request.is_found();
    result
}

/// Waits until the team has no unfinished request.
#[cold]
#[inline(never)]
pub(crate) fn complete(team: &Team) {
    team.has_requests.store(false, Ordering::Relaxed);
    let last = lock(&REQUESTS).by_team.get(&team.handle()).map(|queue| queue.last.clone());
    if let Some(last) = last {
        last.wait();
    }
}

/// Works as [`complete`], of a team that then ends.
pub(crate) fn end(team: &Team) {
    complete(team);
    lock(&REQUESTS).by_team.remove(&team.handle());
}

/// Waits until no request, of whatever team, has a vector that begins in an object at these
/// addresses, and forgets those that had one. So nothing that the program did with their handles
/// leaves the object in use.
pub fn complete_on(object: Range<usize>) {
    if !thread::has_requests() {
        return;
    }
    let is_on = |request: &Request| request.vectors.iter().any(|vector| object.contains(vector));
    let mut requests = lock(&REQUESTS);
    let (on_object, others): (BTreeMap<_, _>, _) =
        std::mem::take(&mut requests.held).into_iter().partition(|(_, request)| is_on(request));
    requests.held = others;
    drop(requests);
    for request in on_object.values() {
        request.wait();
        request.is_found();
    }
}

/// Waits until no team has an unfinished request, and forgets all requests. With `SHMEM_CHECK`,
/// warns of those that the program did not wait for.
pub(crate) fn complete_all(call: Call, job: &Job) {
    let held = std::mem::take(&mut lock(&REQUESTS).held);
    for request in held.values() {
        request.wait();
    }
    if let Some(first) = held.values().next().filter(|_| job.settings.checks()) {
        let (n, first) = (held.len(), first.call);
        warning!(
            each: "{call}: neither a wait nor a test has found {n} non-blocking collectives done; the first is {first}; \
             call shmemx_req_wait for each"
        );
    }
}
