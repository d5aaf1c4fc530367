//! Futures whose tasks the library wakes: a pending one takes no CPU, its task is woken once, and a
//! drop neither blocks nor loses anything.

use rustix::process::{Pid, Signal as KillSignal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use shmem::{Shmem, Signal, Sum, SymArray};
use std::fs;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

/// The time for which a future is pending.
const PENDING: Duration = Duration::from_secs(3);
/// The CPU time that all threads of the PE may take meanwhile, if they need CPU only to begin and
/// to end.
const ALLOWED: Duration = Duration::from_millis(100);

/// Returns the CPU time that all threads of this process have taken.
fn cpu_time() -> Duration {
    let taken = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(taken.tv_sec as u64, taken.tv_nsec as u32)
}

/// Runs a future by an executor that polls it only when its waker was called.
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(future)
}

/// Works as [`run`], and checks that the PE takes less CPU time than `allowed` meanwhile.
fn run_within<F: Future>(allowed: Duration, future: F) -> F::Output {
    let before = cpu_time();
    let output = run(future);
    let taken = cpu_time() - before;
    assert!(
        taken < allowed,
        "{taken:?} of CPU while a future was pending"
    );
    output
}

/// A waker that counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

shmem::test!(a_pending_collective_takes_no_cpu, pes = 2, |shmem| {
    let world = shmem.world();
    // The first request starts the thread that carries requests out.
    world.start_sync().wait();

    if shmem.my_pe() == 1 {
        thread::sleep(PENDING);
    }
    run_within(ALLOWED, world.start_sync());
    shmem.barrier_all();
});

shmem::test!(
    the_last_task_of_a_collective_is_woken_once,
    pes = 2,
    |shmem| {
        let world = shmem.world();
        let polled = shmem.zeroed::<Signal>();
        let [first, last] = [Arc::<Count>::default(), Arc::default()];
        if shmem.my_pe() == 1 {
            shmem.wait(polled.eq(1));
        }

        let mut request = pin!(world.start_sync());
        if shmem.my_pe() == 0 {
            // PE 1 starts its part only when it is told, so the request is pending until then.
            for count in [&first, &last, &last] {
                let waker = Waker::from(Arc::clone(count));
                let poll = request.as_mut().poll(&mut Context::from_waker(&waker));
                assert_eq!(poll, Poll::Pending);
            }
            assert_eq!((first.get(), last.get()), (0, 0));

            polled.on(shmem.next()).set(1);
            while last.get() == 0 {
                thread::yield_now();
            }
            let mut context = Context::from_waker(Waker::noop());
            assert_eq!(request.as_mut().poll(&mut context), Poll::Ready(()));
        } else {
            run(request);
        }

        shmem.barrier_all();
        let n_last = if shmem.my_pe() == 0 { 1 } else { 0 };
        assert_eq!((first.get(), last.get()), (0, n_last));
    }
);

shmem::test!(a_collective_that_is_dropped_goes_on, pes = 2, |shmem| {
    let world = shmem.world();
    let dropped = shmem.zeroed::<Signal>();
    let own = shmem.array::<u64>(1000);
    let sums = shmem.array::<u64>(1000);
    own.fill(shmem.my_pe() as u64 + 1);

    // PE 1 begins only after PE 0 has dropped its request.
    if shmem.my_pe() == 1 {
        shmem.wait(dropped.eq(1));
    }
    drop(world.start_all_reduce_into(&own, &sums, Sum));
    dropped.on(shmem.next()).set(1);

    shmem.barrier_all();
    assert_eq!(sums.to_vec(), [3; 1000]);
});

#[test]
fn collectives_over_networks() {
    crate::over_tcp::passes_over_all("futures::a_pending_collective_takes_no_cpu");
    crate::over_tcp::passes("futures::the_last_task_of_a_collective_is_woken_once");
    crate::over_tcp::passes("futures::a_collective_that_is_dropped_goes_on");
}

shmem::test!(a_collective_is_pending_for_seconds, pes = 2, |shmem| {
    let me = shmem.my_pe();
    let world = shmem.world();
    if me == 1 {
        thread::sleep(Duration::from_secs(2));
    }

    let request = world.start_sync();
    eprintln!("PE {me} awaits it");
    run(request);
    eprintln!("PE {me} has awaited it");
    shmem.barrier_all();
});

#[test]
fn no_line_is_searched_of_a_collective_that_the_library_carries_out() {
    let test = "futures::a_collective_is_pending_for_seconds";
    // With these settings the line of a wait that has lasted for a second is searched, and an event
    // says so.
    let outcome = crate::over_tcp::job(test, 2, "tcp")
        .env("SHMEM_STATS", "1")
        .env("SHMEM_DEBUG", "debug")
        .run();
    assert!(outcome.status.success(), "{outcome}");

    let (_, after) = outcome
        .stderr
        .split_once("PE 0 awaits it")
        .expect("it begins");
    let (meanwhile, _) = after.split_once("PE 0 has awaited it").expect("it ends");
    let searches = meanwhile
        .lines()
        .filter(|line| line.contains("pe=0"))
        .filter(|line| line.contains("searches for the place of a call"));
    assert_eq!(searches.count(), 0, "{outcome}");
}

/// Returns true if the PEs of this job reach each other over a network only.
pub fn is_over_network() -> bool {
    std::env::var("SHMEM_ONNODE").is_ok_and(|value| value == "off")
}

/// The process of another PE, which is stopped and answers nothing until this is dropped.
pub struct Stopped(Pid);

impl Stopped {
    pub fn new(pid: u32) -> Stopped {
        let pid = Pid::from_raw(pid as i32).expect("a process number");
        kill_process(pid, KillSignal::STOP).expect("a process of this user");

        // The signal arrives at each thread later than the call returns.
        while !are_all_threads_stopped(pid) {
            thread::yield_now();
        }
        Stopped(pid)
    }
}

fn are_all_threads_stopped(pid: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    for thread in threads.expect("a process of this node") {
        let Ok(thread) = thread else {
            return false;
        };

        // A thread may have ended since it was listed.
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();

        // The state follows the name of the thread, which is in parentheses and may contain some.
        let state = stat.rsplit(')').next().unwrap_or_default();
        if !state.starts_with(" T") {
            return false;
        }
    }
    true
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, KillSignal::CONT).expect("a process of this user");
    }
}

/// The number of elements of the arrays of transfers.
pub const LEN: usize = 1000;

/// What a test of transfers has: an array whose elements are the number of their PE, and the
/// processes of both PEs.
pub struct Arrays<'s> {
    pub numbers: SymArray<'s, u64>,
    pub pids: Vec<u32>,
}

pub fn arrays(shmem: &Shmem) -> Arrays<'_> {
    let numbers = shmem.array::<u64>(LEN);
    numbers.fill(shmem.my_pe() as u64);
    let pids = shmem.world().all_gather(std::process::id());

    // Connects the PEs, since a PE that is stopped does not answer a request for a connection.
    numbers[0].on(shmem.next()).read();
    shmem.barrier_all();
    Arrays { numbers, pids }
}

shmem::test!(a_pending_transfer_takes_no_cpu, pes = 2, |shmem| {
    let Arrays { numbers, pids } = arrays(&shmem);
    if shmem.my_pe() == 0 && is_over_network() {
        let stopped = Stopped::new(pids[1]);
        let waker = thread::spawn(move || {
            thread::sleep(PENDING);
            drop(stopped);
        });

        // Over libfabric a thread polls while operations are in flight: at first every 200 us,
        // later every 5 ms.
        let polls = std::env::var("SHMEM_TRANSPORT").is_ok_and(|transport| transport == "ofi");
        let allowed = if polls { 2 * ALLOWED } else { ALLOWED };

        let got = run_within(allowed, numbers.on(shmem.next()).get_owned(vec![9; LEN]));
        waker.join().expect("it does not panic");
        assert_eq!(got, [1; LEN]);
    }
    shmem.barrier_all();
});

shmem::test!(the_task_of_a_transfer_is_woken_once, pes = 2, |shmem| {
    let Arrays { numbers, pids } = arrays(&shmem);
    if shmem.my_pe() == 0 {
        let count = Arc::<Count>::default();
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);

        let stopped = is_over_network().then(|| Stopped::new(pids[1]));
        let mut transfer = pin!(numbers.on(shmem.next()).get_owned(vec![9; LEN]));
        if let Some(stopped) = stopped {
            let mut quiet = pin!(shmem.until_quiet());
            for _ in 0..3 {
                assert_eq!(transfer.as_mut().poll(&mut context), Poll::Pending);
                assert_eq!(quiet.as_mut().poll(&mut context), Poll::Pending);
            }
            assert_eq!(count.get(), 0);

            drop(stopped);
            while count.get() == 0 {
                thread::yield_now();
            }
            assert_eq!(quiet.as_mut().poll(&mut context), Poll::Ready(()));
        }

        // On the node the transfer is complete when it has started.
        let poll = transfer.as_mut().poll(&mut context);
        assert_eq!(poll, Poll::Ready(vec![1; LEN]));
        assert_eq!(count.get(), usize::from(is_over_network()));
    }
    shmem.barrier_all();
});

shmem::test!(a_transfer_that_is_dropped_goes_on, pes = 2, |shmem| {
    let Arrays { numbers, pids } = arrays(&shmem);
    let dest = shmem.array::<u64>(LEN);
    if shmem.my_pe() == 0 {
        let next = shmem.next();
        // If the drop waited, PE 1 would be stopped for ever.
        let stopped = is_over_network().then(|| Stopped::new(pids[1]));
        drop(numbers.on(next).get_owned(vec![9; LEN]));
        drop(dest.on(next).put_owned(vec![5; LEN]));

        // These vectors may have the memory of the transfers if that was freed.
        let others = [(); 8].map(|()| vec![7u64; LEN]);
        drop(stopped);
        shmem.quiet();
        assert!(others.iter().all(|other| *other == [7; LEN]));
    }

    shmem.barrier_all();
    assert_eq!(dest.to_vec(), [5 * shmem.my_pe() as u64; LEN]);
    shmem.barrier_all();
});

#[test]
fn transfers_over_networks() {
    crate::over_tcp::passes_over_all("futures::a_pending_transfer_takes_no_cpu");
    crate::over_tcp::passes_over_all("futures::the_task_of_a_transfer_is_woken_once");
    crate::over_tcp::passes_over_all("futures::a_transfer_that_is_dropped_goes_on");
}

shmem::test!(a_pending_wait_takes_no_cpu, pes = 2, |shmem| {
    let signal = shmem.zeroed::<Signal>();
    let word = shmem.boxed(0u64);
    signal.on(shmem.next()).add(1);
    run(shmem.until(signal.ne(0)));
    shmem.barrier_all();

    if shmem.my_pe() == 1 {
        thread::sleep(PENDING);
        signal.on(shmem.next()).add(1);
        shmem.wait(signal.eq(2));
        thread::sleep(PENDING);
        word.on(shmem.next()).write(7);
    } else {
        // A thread of the library looks at the words every two milliseconds.
        assert_eq!(run_within(2 * ALLOWED, shmem.until(signal.eq(2))), 2);
        signal.on(shmem.next()).add(1);
        assert_eq!(run_within(2 * ALLOWED, shmem.until(word.eq(7))), 7);
    }
    shmem.barrier_all();
});

shmem::test!(the_last_task_of_a_wait_is_woken_once, pes = 2, |shmem| {
    let signals = [(); 2].map(|()| shmem.zeroed::<Signal>());
    let words = [(); 2].map(|()| shmem.boxed(0u32));
    let counts = [(); 4].map(|()| Arc::<Count>::default());
    let [first, of_signal, of_word, dropped] = counts.each_ref().map(|it| Waker::from(it.clone()));
    let n_woken = || counts.each_ref().map(|count| count.get());

    if shmem.my_pe() == 0 {
        let mut by_signal = pin!(shmem.until(signals[0].eq(3)));
        let mut by_word = pin!(shmem.until(words[0].eq(3)));
        for waker in [&first, &of_signal] {
            let mut context = Context::from_waker(waker);
            assert_eq!(by_signal.as_mut().poll(&mut context), Poll::Pending);
        }
        let mut context = Context::from_waker(&of_word);
        assert_eq!(by_word.as_mut().poll(&mut context), Poll::Pending);
        // The task of a wait that was dropped is not woken.
        {
            let mut context = Context::from_waker(&dropped);
            let short = pin!(shmem.until(words[1].eq(3)));
            assert_eq!(short.poll(&mut context), Poll::Pending);
        }
        assert_eq!(n_woken(), [0; 4]);

        signals[1].on(shmem.next()).set(1);
        while n_woken() != [0, 1, 1, 0] {
            thread::yield_now();
        }
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(by_signal.as_mut().poll(&mut context), Poll::Ready(3));
        assert_eq!(by_word.as_mut().poll(&mut context), Poll::Ready(3));
    } else {
        shmem.wait(signals[1].eq(1));
        words[1].on(shmem.next()).write(3);
        words[0].on(shmem.next()).write(3);
        signals[0].on(shmem.next()).set(3);
    }

    shmem.barrier_all();
    drop([first, of_signal, of_word, dropped]);
    assert!(counts.iter().all(|count| Arc::strong_count(count) == 1));
    let expected = if shmem.my_pe() == 0 {
        [0, 1, 1, 0]
    } else {
        [0; 4]
    };
    assert_eq!(n_woken(), expected);
});

#[test]
fn waits_over_networks() {
    crate::over_tcp::passes_over_all("futures::a_pending_wait_takes_no_cpu");
    crate::over_tcp::passes_over_all("futures::the_last_task_of_a_wait_is_woken_once");
    crate::over_tcp::passes_over_all("nonblocking::waits_are_futures");
}
