/* Objects with constructors: on every PE they have been constructed before main, and their members
 * are symmetric. */
#include "check.h"
#include <array>
#include <atomic>
#include <map>
#include <string>

namespace {

struct Counted {
    explicit Counted(int first) : value(first), self(this) { count++; }
    ~Counted() { count--; }
    int value;
    Counted *self;
    static int count;
};

int Counted::count = 0;
Counted early(41), later(early.value + 1);
std::map<std::string, int> names = {{"one", 1}, {"two", 2}};
std::array<double, 1000> numbers = [] {
    std::array<double, 1000> made{};
    for (size_t i = 0; i < made.size(); i++)
        made[i] = 0.5 * (double)i;
    return made;
}();
std::atomic<long> total{0};

template <typename T> struct Of {
    static T shared;
};
template <typename T> T Of<T>::shared = 3;

} // namespace

int main() {
    static Counted inside(later.value + 1);
    check_begin();
    const int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    CHECK(Counted::count == 3 && early.self == &early && inside.value == 43, 0, "constructors ran %d times", Counted::count);
    CHECK(names.at("two") == 2 && numbers[999] == 499.5, 0, "what constructors made is lost");
    shmem_barrier_all();
    shmem_int_p(&later.value, 100 + check_me, right);
    shmem_long_p(&Of<long>::shared, 200 + check_me, right);
    shmem_double_p(&numbers[512], check_me, right);
    shmem_long_atomic_add(reinterpret_cast<long *>(&total), check_me, 0);
    shmem_barrier_all();
    CHECK(later.value == 100 + left && Of<long>::shared == 200 + left && numbers[512] == left, 31, "what came is %d, %ld, %f",
          later.value, Of<long>::shared, numbers[512]);
    CHECK(shmem_int_g(&inside.value, right) == 43, 31, "g of a function's object");
    CHECK(check_me != 0 || total == (long)check_n * (check_n - 1) / 2, 35, "the sum is %ld", total.load());
    names["three"] = 3;
    CHECK(names.size() == 3, 0, "a map is broken");
    return check_end();
}
