//! What vendors add to the standard, as `shmemx.h` declares it; ci/spec/extensions.csv says where each
//! comes from, ci/spec/shmemx.csv which of them are here.

mod team;
