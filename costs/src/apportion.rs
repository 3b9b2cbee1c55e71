//! Whole parts of a whole amount, by weight.

/// Splits an amount by these weights into whole parts that come to exactly the amount: each is its exact share rounded down, and what is left over goes,
/// one by one, to those that lost most by it, of equal ones to the first. All parts are zero where no weight is above zero; the amount must be zero then.
#[must_use]
pub fn apportion(amount: u64, weights: &[u128]) -> Vec<u64> {
    let Some(weights) = fitting(amount, weights) else { return vec![0; weights.len()] };
    let total: u128 = weights.iter().sum();
    let exact = |weight: &u128| u128::from(amount) * weight;
    let mut parts: Vec<u64> = weights.iter().map(|weight| narrow(exact(weight) / total)).collect();
    let missing = amount - parts.iter().sum::<u64>();
    let mut by_loss: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] > 0).collect();
    by_loss.sort_by_key(|at| (std::cmp::Reverse(exact(&weights[*at]) % total), *at));
    for at in by_loss.into_iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        parts[at] += 1;
    }
    parts
}

/// The weights, coarser where their products would not fit; `None` where all are zero.
fn fitting(amount: u64, weights: &[u128]) -> Option<Vec<u128>> {
    let mut weights = weights.to_vec();
    if weights.iter().all(|weight| *weight == 0) {
        return None;
    }
    let fits = |weights: &[u128]| {
        let total = weights.iter().try_fold(0_u128, |total, weight| total.checked_add(*weight));
        total.and_then(|total| total.checked_mul(u128::from(amount.max(1)))).is_some()
    };
    while !fits(&weights) {
        weights.iter_mut().for_each(|weight| *weight /= 2);
    }
    Some(weights)
}

fn narrow(part: u128) -> u64 {
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::apportion;
    use proptest::prelude::*;

    #[test]
    fn what_rounding_leaves_over_goes_to_those_that_lost_most() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(10, &[1, 2, 3]), [2, 3, 5]);
        assert_eq!(apportion(1, &[0, 1, 3]), [0, 0, 1]);
        assert_eq!(apportion(7, &[0, 5]), [0, 7]);
        assert_eq!(apportion(0, &[0, 0]), [0, 0]);
        assert_eq!(apportion(0, &[]), [0_u64; 0]);
        assert_eq!(apportion(u64::MAX, &[u128::MAX, u128::MAX]), [u64::MAX / 2 + 1, u64::MAX / 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn parts_come_to_the_amount_and_none_is_off_by_one(
            amount in 0..u64::MAX / 2,
            weights in proptest::collection::vec(0..1_u128 << 60, 1..40).prop_filter("some weight", |all| all.iter().any(|one| *one > 0)),
        ) {
            let parts = apportion(amount, &weights);
            let total: u128 = weights.iter().sum();
            prop_assert_eq!(parts.iter().map(|part| u128::from(*part)).sum::<u128>(), u128::from(amount));
            for (part, weight) in parts.iter().zip(&weights) {
                let exact = u128::from(amount) * weight / total;
                prop_assert!(u128::from(*part) == exact || u128::from(*part) == exact + 1);
                prop_assert!(*weight > 0 || *part == 0);
            }
        }
    }
}
