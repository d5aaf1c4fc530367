"""Diffusion of heat in a plate: the neighbors' rows come by puts with signals, without a barrier."""

import rushmem as rm

me, n = rm.my_pe(), rm.n_pes()
ROWS, COLUMNS, STEPS = 16, 64, 200
plate = rm.array((2, ROWS + 2, COLUMNS))  # now and next, each with a row of either neighbor
arrived = rm.array(2, "u8")  # the steps whose rows have come from above and below
plate[:, :, 0] = 100  # the left edge is hot

for step in range(1, STEPS + 1):
    now, after = plate[step % 2], plate[(step + 1) % 2]
    if me > 0:
        rm.put_signal(now[-1], now[1], arrived[1:], step, me - 1)
        rm.wait_until(arrived, ">=", step, index=0)
    if me < n - 1:
        rm.put_signal(now[0], now[-2], arrived, step, me + 1)
        rm.wait_until(arrived, ">=", step, index=1)
    around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
    after[1:-1, 1:-1] = around / 4

heat, total = rm.array(1), rm.array(1)
heat[0] = after[1:-1].sum()
rm.all_reduce(total, heat)
if me == 0:
    print(f"total heat {total[0]:.1f}")
