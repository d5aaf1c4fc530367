/* A thread puts an array that another one has filled, after a condition variable of C++ or without waiting.
 * PEs: 2 */
#include "suite.h"
#include <condition_variable>
#include <mutex>
#include <thread>

static long x[8], from;
static std::mutex mutex __attribute__((unused));
static std::condition_variable condition;
static bool is_ready;

static void run(int me, int) {
    if (me != 0)
        return;
    std::thread thread([] {
        ORDER(std::unique_lock<std::mutex> lock(mutex));
        ORDER(condition.wait(lock, [] { return is_ready; }));
        shmem_long_put(x, &from, 1, 1); /* RACE */
    });
    {
        ORDER(std::lock_guard<std::mutex> lock(mutex));
        from = 2; /* RACE */
        is_ready = true;
    }
    condition.notify_one();
    thread.join();
}
