// Calls the functions of C++ in the header, in the way that argv[1] names: messages name the lines of this file.
#include <cstring>
#include <iostream>
#include <shmem.h>
#include <string>

namespace ns {
static long flag;
static long dest;

template <class T> struct Sender {
    void send(const T *source, int pe) {
        shmem_put(&dest, source, 1, pe);
    }
};
} // namespace ns

static void wait_for(long value) {
    shmem_wait_until(&ns::flag, SHMEM_CMP_EQ, value);
}

int main(int, char **argv) {
    const std::string how = argv[1];
    shmem_init();
    shmem_barrier_all();
    const long one = 1;
    if (shmem_my_pe() == 1) {
        if (how == "wrong_pe")
            ns::Sender<long>().send(&one, 77);
        else if (how == "null_source")
            ns::Sender<long>().send(nullptr, 0);
        else if (how == "wait")
            wait_for(3);
    }
    shmem_barrier_all();
    std::cout << "a barrier ended that one PE never reached\n";
    shmem_finalize();
}
