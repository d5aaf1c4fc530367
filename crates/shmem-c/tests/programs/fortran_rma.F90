! Puts and gets of every type and size, contiguous, nonblocking and strided. SHMEM_PUT8 is 8 bytes here.
program fortran_rma
  implicit none
  include "shmem.fh"
  integer, parameter :: count = 7
  integer :: me, n, failures
  call check_begin()
  call characters()
  call complexes()
  call doubles()
  call integers()
  call logicals()
  call reals()
  call bytes_4()
  call bytes_8()
  call bits_32()
  call bits_64()
  call bits_128()
  call memory()
  call no_elements()
  call check_end()
contains
  include "fortran_check.inc"

  ! Nothing is moved, whatever the address.
  subroutine no_elements()
    integer :: nothing(1)
    call shmem_put4(nothing, nothing, 0, me)
    call shmem_get8(nothing, nothing, 0, me)
  end subroutine

#define TEST characters
#define PUT SHMEM_CHARACTER_PUT
#define GET SHMEM_CHARACTER_GET
#define IPUT SHMEM_CHARACTER_IPUT
#define IGET SHMEM_CHARACTER_IGET
#define PUT_NBI SHMEM_CHARACTER_PUT_NBI
#define GET_NBI SHMEM_CHARACTER_GET_NBI
#define TYPE_OF character(len=1)
#define VALUE(pe, i) char(33 + mod(7 * (pe) + (i), 90))
#define SAME(a, b) ((a) == (b))
#define STRANGE " "
#include "fortran_rma_of.inc"

#define TEST complexes
#define PUT SHMEM_COMPLEX_PUT
#define GET SHMEM_COMPLEX_GET
#define IPUT SHMEM_COMPLEX_IPUT
#define IGET SHMEM_COMPLEX_IGET
#define PUT_NBI SHMEM_COMPLEX_PUT_NBI
#define GET_NBI SHMEM_COMPLEX_GET_NBI
#define TYPE_OF complex
#define VALUE(pe, i) cmplx(pe, i)
#define SAME(a, b) ((a) == (b))
#define STRANGE (-1.0, -1.0)
#include "fortran_rma_of.inc"

#define TEST doubles
#define PUT SHMEM_DOUBLE_PUT
#define GET SHMEM_DOUBLE_GET
#define IPUT SHMEM_DOUBLE_IPUT
#define IGET SHMEM_DOUBLE_IGET
#define PUT_NBI SHMEM_DOUBLE_PUT_NBI
#define GET_NBI SHMEM_DOUBLE_GET_NBI
#define TYPE_OF double precision
#define VALUE(pe, i) (1d3 * (pe) + (i) + 1d-9)
#define SAME(a, b) ((a) == (b))
#define STRANGE -1d0
#include "fortran_rma_of.inc"

#define TEST integers
#define PUT SHMEM_INTEGER_PUT
#define GET SHMEM_INTEGER_GET
#define IPUT SHMEM_INTEGER_IPUT
#define IGET SHMEM_INTEGER_IGET
#define PUT_NBI SHMEM_INTEGER_PUT_NBI
#define GET_NBI SHMEM_INTEGER_GET_NBI
#define TYPE_OF integer
#define VALUE(pe, i) (1000 * (pe) + (i))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1
#include "fortran_rma_of.inc"

#define TEST logicals
#define PUT SHMEM_LOGICAL_PUT
#define GET SHMEM_LOGICAL_GET
#define IPUT SHMEM_LOGICAL_IPUT
#define IGET SHMEM_LOGICAL_IGET
#define PUT_NBI SHMEM_LOGICAL_PUT_NBI
#define GET_NBI SHMEM_LOGICAL_GET_NBI
#define TYPE_OF integer
#define VALUE(pe, i) (2 * (pe) + mod(i, 2))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1
#include "fortran_rma_of.inc"

#define TEST reals
#define PUT SHMEM_REAL_PUT
#define GET SHMEM_REAL_GET
#define IPUT SHMEM_REAL_IPUT
#define IGET SHMEM_REAL_IGET
#define PUT_NBI SHMEM_REAL_PUT_NBI
#define GET_NBI SHMEM_REAL_GET_NBI
#define TYPE_OF real
#define VALUE(pe, i) (1000.0 * (pe) + (i))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1.0
#include "fortran_rma_of.inc"

#define TEST bytes_4
#define PUT SHMEM_PUT4
#define GET SHMEM_GET4
#define IPUT SHMEM_IPUT4
#define IGET SHMEM_IGET4
#define PUT_NBI SHMEM_PUT4_NBI
#define GET_NBI SHMEM_GET4_NBI
#define TYPE_OF integer(kind=4)
#define VALUE(pe, i) (1000 * (pe) + (i))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1
#include "fortran_rma_of.inc"

#define TEST bytes_8
#define PUT SHMEM_PUT8
#define GET SHMEM_GET8
#define IPUT SHMEM_IPUT8
#define IGET SHMEM_IGET8
#define PUT_NBI SHMEM_PUT8_NBI
#define GET_NBI SHMEM_GET8_NBI
#define TYPE_OF complex(kind=4)
#define VALUE(pe, i) cmplx(pe, i)
#define SAME(a, b) ((a) == (b))
#define STRANGE (-1.0, -1.0)
#include "fortran_rma_of.inc"

#define TEST bits_32
#define PUT SHMEM_PUT32
#define GET SHMEM_GET32
#define IPUT SHMEM_IPUT32
#define IGET SHMEM_IGET32
#define PUT_NBI SHMEM_PUT32_NBI
#define GET_NBI SHMEM_GET32_NBI
#define TYPE_OF real(kind=4)
#define VALUE(pe, i) (1000.0 * (pe) + (i))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1.0
#include "fortran_rma_of.inc"

#define TEST bits_64
#define PUT SHMEM_PUT64
#define GET SHMEM_GET64
#define IPUT SHMEM_IPUT64
#define IGET SHMEM_IGET64
#define PUT_NBI SHMEM_PUT64_NBI
#define GET_NBI SHMEM_GET64_NBI
#define TYPE_OF integer(kind=8)
#define VALUE(pe, i) (10_8**12 * (pe) + (i))
#define SAME(a, b) ((a) == (b))
#define STRANGE -1_8
#include "fortran_rma_of.inc"

#define TEST bits_128
#define PUT SHMEM_PUT128
#define GET SHMEM_GET128
#define IPUT SHMEM_IPUT128
#define IGET SHMEM_IGET128
#define PUT_NBI SHMEM_PUT128_NBI
#define GET_NBI SHMEM_GET128_NBI
#define TYPE_OF complex(kind=8)
#define VALUE(pe, i) cmplx(pe, i, kind=8)
#define SAME(a, b) ((a) == (b))
#define STRANGE (-1d0, -1d0)
#include "fortran_rma_of.inc"

#define TEST memory
#define PUT SHMEM_PUTMEM
#define GET SHMEM_GETMEM
#define IPUT SHMEM_IPUTMEM
#define IGET SHMEM_IGETMEM
#define PUT_NBI SHMEM_PUTMEM_NBI
#define GET_NBI SHMEM_GETMEM_NBI
#define TYPE_OF integer(kind=1)
#define VALUE(pe, i) int(mod(3 * (pe) + (i), 100), 1)
#define SAME(a, b) ((a) == (b))
#define STRANGE -1_1
#include "fortran_rma_of.inc"

end program
