/* A thread gets into a word, and another one stores to it, ordered by each means of the C++ library. PEs: 1 */
#include <shmem.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

static long x;
static volatile long word;
static volatile bool is_done;
static constexpr auto LONG = std::chrono::minutes(1);

static void get() {
    shmem_long_get(const_cast<long *>(&word), &x, 1, 0);
}

template <typename Mutex, typename Take> static void by_lock(Take take) {
    Mutex mutex;
    is_done = false;
    std::thread thread([&] {
        std::lock_guard<Mutex> lock(mutex);
        get();
        is_done = true;
    });
    for (bool sees = false; !sees;) {
        if (!take(mutex))
            continue;
        sees = is_done;
        if (sees)
            word = 1;
        mutex.unlock();
    }
    thread.join();
}

/* A thread takes the lock for writers, and another one, by one of the routines, the lock for readers. */
template <typename Take> static void by_shared_lock(Take take) {
    std::shared_timed_mutex mutex;
    is_done = false;
    std::thread thread([&] {
        std::lock_guard<std::shared_timed_mutex> lock(mutex);
        get();
        is_done = true;
    });
    for (bool sees = false; !sees;) {
        if (!take(mutex))
            continue;
        sees = is_done;
        if (sees)
            word = 1;
        mutex.unlock_shared();
    }
    thread.join();
}

template <typename Lock, typename Condition, typename Wait> static void by_condition(Wait wait) {
    std::mutex mutex;
    Condition condition;
    is_done = false;
    Lock lock(mutex);
    std::thread thread([&] {
        std::lock_guard<std::mutex> lock(mutex);
        get();
        is_done = true;
        condition.notify_one();
    });
    wait(condition, lock);
    word = 1;
    lock.unlock();
    thread.join();
}

static long initial() {
    get();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 4;
}

static void initialize() {
    static const long value = initial();
    word = value;
}

static std::once_flag once;

int main() {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);

    by_lock<std::mutex>([](auto &mutex) { return mutex.try_lock(); });
    by_lock<std::recursive_mutex>([](auto &mutex) { return mutex.try_lock(); });
    by_lock<std::timed_mutex>([](auto &mutex) { return mutex.try_lock(); });
    by_lock<std::timed_mutex>([](auto &mutex) { return mutex.try_lock_for(LONG); });
    by_lock<std::timed_mutex>([](auto &mutex) { return mutex.try_lock_until(std::chrono::system_clock::now() + LONG); });
    by_lock<std::recursive_timed_mutex>([](auto &mutex) { return mutex.try_lock_for(LONG); });
    by_lock<std::shared_mutex>([](auto &mutex) { return mutex.try_lock(); });
    by_lock<std::shared_timed_mutex>([](auto &mutex) { return mutex.try_lock_for(LONG); });
    by_lock<std::shared_timed_mutex>([](auto &mutex) { return mutex.try_lock_until(std::chrono::system_clock::now() + LONG); });
    by_shared_lock([](auto &mutex) { return mutex.try_lock_shared(); });
    by_shared_lock([](auto &mutex) { return mutex.try_lock_shared_for(LONG); });
    by_shared_lock([](auto &mutex) { return mutex.try_lock_shared_until(std::chrono::system_clock::now() + LONG); });

    using Lock = std::unique_lock<std::mutex>;
    auto sees = [] { return bool(is_done); };
    by_condition<Lock, std::condition_variable>([&](auto &condition, auto &lock) { condition.wait(lock, sees); });
    by_condition<Lock, std::condition_variable>([&](auto &condition, auto &lock) { condition.wait_for(lock, LONG, sees); });
    by_condition<Lock, std::condition_variable>([&](auto &condition, auto &lock) {
        condition.wait_until(lock, std::chrono::system_clock::now() + LONG, sees);
    });
    by_condition<Lock, std::condition_variable_any>([&](auto &condition, auto &lock) { condition.wait(lock, sees); });

    {
        std::thread thread(initialize);
        initialize();
        thread.join();
        word = 1;
    }
    {
        std::thread thread([] { std::call_once(once, initial); });
        std::call_once(once, initial);
        word = 1;
        thread.join();
    }
    {
        std::future<long> result = std::async(std::launch::async, initial);
        word = result.get();
    }
    {
        std::promise<void> promise;
        std::thread thread([&] {
            get();
            promise.set_value();
        });
        promise.get_future().wait();
        word = 1;
        thread.join();
    }
    {
        /* The destructor of a thread-local variable runs before the join. */
        struct Last {
            ~Last() { get(); }
            void use() {}
        };
        std::thread thread([] {
            static thread_local Last last;
            last.use();
            get();
        });
        thread.join();
        word = 1;
    }

    shmem_finalize();
    return 0;
}
