//! Runs random programs of collectives, of random team sizes, under random schedules.

use crate::call::Call::{self, *};
use crate::call::{Gathering, Reduction};
use crate::simulator::run;
use proptest::prelude::*;

fn logarithmic(n: u32) -> impl Strategy<Value = Call> {
    prop_oneof![
        Just(Dissemination),
        Just(GatherSync),
        (0..n).prop_map(|root| Broadcast { root }),
        (0..n).prop_map(|root| ReduceTo { root }),
        (0..n).prop_map(|root| DirectGatherTo { root }),
        (0..n).prop_map(|root| DirectScatter { root }),
        Just(AllReduce),
        Just(LongAllReduce),
        Just(Words),
        Just(InclusiveScan),
        Just(ExclusiveScan),
        Just(OwnInclusiveScan),
        Just(OwnExclusiveScan),
        Just(Bruck),
        (1..40_u32).prop_map(|parts| Call::reduce(Reduction::Rabenseifner, parts)),
        (1..40_u32).prop_map(|parts| Call::reduce_in_place(Reduction::Rabenseifner, parts)),
        (1..9_u32).prop_map(|p| TwoLevelSync { p }),
        (1..9_u32).prop_map(|p| TwoLevelShort { p }),
        (1..9_u32, any::<bool>())
            .prop_map(|(p, shared)| Call::reduce(Reduction::TwoLevelPiece { p, shared }, 1)),
        (1..9_u32, 1..9_u32, 1..40_u32, any::<bool>()).prop_map(|(p, lanes, parts, in_place)| {
            Call::Reduce {
                by: Reduction::TwoLevel { p, lanes },
                parts,
                in_place,
            }
        }),
    ]
}

fn central(n: u32) -> impl Strategy<Value = Call> {
    prop_oneof![
        (0..40_u32).prop_map(|parts| Call::reduce(Reduction::Central, parts)),
        (0..40_u32).prop_map(|parts| Call::reduce_in_place(Reduction::Central, parts)),
        (0..n, 0..40_u32).prop_map(|(root, parts)| CentralReduceTo { root, parts }),
        Just(CentralReduceScatter),
        (any::<bool>(), 0..40_u32, any::<bool>()).prop_map(|(exclusive, parts, in_place)| {
            CentralScan {
                exclusive,
                parts,
                in_place,
            }
        }),
        Just(Gather(Gathering::Central)),
        Just(CentralAllToAll),
    ]
}

fn any_call(n: u32) -> impl Strategy<Value = Call> {
    let long_broadcast = (0..n, 1..9_u32).prop_map(|(root, parts)| LongBroadcast { root, parts });
    prop_oneof![
        7 => logarithmic(n),
        1 => long_broadcast,
        1 => (0..n, 1..40_u32).prop_map(|(root, parts)| DirectReduceTo { root, parts }),
        1 => Just(DirectReduceScatter),
        5 => central(n),
        1 => (0..n).prop_map(|root| GatherTo { root }),
        1 => (0..n).prop_map(|root| Scatter { root }),
        1 => Just(Ring),
        1 => Just(AllToAll),
        1 => Just(Gather(Gathering::Pairwise)),
        1 => Just(BruckAllToAll),
        1 => Just(OwnBruckAllToAll),
    ]
}

fn program<S: Strategy<Value = Call>>(
    sizes: std::ops::Range<u32>,
    call: fn(u32) -> S,
) -> impl Strategy<Value = (u32, Vec<Call>)> {
    sizes.prop_flat_map(move |n| (Just(n), prop::collection::vec(call(n), 1..12)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_of_small_teams((n, program) in program(1..20, any_call), seed: u64) {
        let result = run(n, &program, true, seed);
        prop_assert!(result.is_ok(), "{:?}", result);
    }

    #[test]
    fn programs_of_larger_teams((n, program) in program(1..150, logarithmic), seed: u64) {
        let result = run(n, &program, false, seed);
        prop_assert!(result.is_ok(), "{:?}", result);
    }
}
