//! Futures whose tasks the library wakes: a pending one takes no CPU, its task is woken once, and a
//! drop neither blocks nor loses anything.

use rustix::time::{ClockId, clock_gettime};
use shmem::{Signal, Sum};
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
fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

/// Works as [`run`], and checks that the future takes almost no CPU.
fn run_idly<F: Future>(future: F) -> F::Output {
    let before = cpu_time();
    let output = run(future);
    let taken = cpu_time() - before;
    assert!(
        taken < ALLOWED,
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
    run_idly(world.start_sync());
    shmem.barrier_all();
});

shmem::test!(
    the_last_task_of_a_collective_is_woken_once,
    pes = 2,
    |shmem| {
        let (world, polled) = (shmem.world(), shmem.zeroed::<Signal>());
        let [first, last] = [Arc::<Count>::default(), Arc::default()];
        if shmem.my_pe() == 1 {
            shmem.wait(polled.eq(1));
        }
        let mut request = pin!(world.start_sync());
        if shmem.my_pe() == 0 {
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
        assert_eq!(
            (first.get(), last.get()),
            (0, usize::from(shmem.my_pe() == 0))
        );
    }
);

shmem::test!(a_collective_that_is_dropped_goes_on, pes = 2, |shmem| {
    let (world, dropped) = (shmem.world(), shmem.zeroed::<Signal>());
    let (own, sums) = (shmem.array::<u64>(1000), shmem.array::<u64>(1000));
    own.fill(shmem.my_pe() as u64 + 1);
    if shmem.my_pe() == 1 {
        shmem.wait(dropped.eq(1));
    }
    // PE 1 begins only after PE 0 has dropped its request.
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
