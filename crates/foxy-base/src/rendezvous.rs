//! Weighted rendezvous hashing. For each key, every member has a score from a hash of key and
//! name. The member with the best score owns the key. If a member is lost, only its keys move, and
//! each to the member with the second-best score. All nodes with the same members agree.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Computes the scores of a fleet's members.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    members: Vec<Seat>,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    seed: u64,
    weight: f64,
}

impl Rendezvous {
    /// Prepares the members from their names and weights. The order of the list does not change
    /// the owner of a key.
    #[must_use]
    pub fn new<'a>(members: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let seat = |(name, weight): (&str, u32)| Seat {
            seed: xxh3_64_with_seed(name.as_bytes(), 0),
            weight: f64::from(weight),
        };
        Self { members: members.into_iter().map(seat).collect() }
    }

    /// Returns the positions of all members, from the owner of the key to the last substitute.
    pub fn order(&self, key: &[u8]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        let scores: Vec<_> = self.members.iter().map(|seat| seat.score(key)).collect();
        order.sort_by(|&one, &two| better(scores[one], scores[two]));
        order
    }

    /// Returns the best members for a key: the owner and the second. `part` returns how many
    /// thousandths of its weight a member has now. A member without any weight does not count.
    pub fn best_two(&self, key: &[u8], part: impl Fn(usize) -> u32) -> [Option<usize>; 2] {
        self.best_two_of(key, (0..self.members.len()).map(|number| (number, part(number))))
    }

    /// Returns the best two of some members, which have a position and a part of their weight.
    pub fn best_two_of(
        &self,
        key: &[u8],
        members: impl IntoIterator<Item = (usize, u32)>,
    ) -> [Option<usize>; 2] {
        let mut best: [Option<((f64, u64), usize)>; 2] = [None; 2];
        for (number, part) in members.into_iter().filter(|(_, part)| *part > 0) {
            let seat = self.members[number];
            let score = Seat { weight: seat.weight * f64::from(part), ..seat }.score(key);
            let beats = |other: Option<((f64, u64), usize)>| {
                other.is_none_or(|(other, _)| better(score, other).is_lt())
            };
            if beats(best[0]) {
                best = [Some((score, number)), best[0]];
            } else if beats(best[1]) {
                best[1] = Some((score, number));
            }
        }
        best.map(|found| found.map(|(_, number)| number))
    }
}

impl Seat {
    /// Returns the score for a key, and a number that decides between equal scores. The larger
    /// score wins. With `u` evenly spread between 0 and 1, the largest `-weight / ln(u)` falls to
    /// each member in proportion to its weight.
    fn score(self, key: &[u8]) -> (f64, u64) {
        const BITS: u32 = 53;
        let hash = xxh3_64_with_seed(key, self.seed) >> (u64::BITS - BITS);
        // Both conversions are exact. Adding 0.5 keeps the value above 0 and below 1.
        let even = (hash as f64 + 0.5) / (1_u64 << BITS) as f64;
        (-self.weight / even.ln(), self.seed)
    }
}

fn better(one: (f64, u64), two: (f64, u64)) -> std::cmp::Ordering {
    two.0.total_cmp(&one.0).then(two.1.cmp(&one.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(weights: &[u32]) -> Vec<(String, u32)> {
        let member = |(number, weight): (usize, &u32)| (format!("n{number}"), *weight);
        weights.iter().enumerate().map(member).collect()
    }

    fn prepared(members: &[(String, u32)]) -> Rendezvous {
        Rendezvous::new(members.iter().map(|(name, weight)| (name.as_str(), *weight)))
    }

    fn keys(count: usize) -> impl Iterator<Item = String> {
        (0..count).map(|number| format!("http://a.test/{number}"))
    }

    #[test]
    fn shares_are_in_proportion_to_the_weights() {
        const KEYS: usize = 40_000;
        for weights in [&[1, 1, 1][..], &[1, 2, 5], &[100, 300, 1, 99]] {
            let rendezvous = prepared(&members(weights));
            let mut owned = vec![0_usize; weights.len()];
            for key in keys(KEYS) {
                owned[rendezvous.order(key.as_bytes())[0]] += 1;
            }
            let total: u32 = weights.iter().sum();
            for (owned, weight) in owned.iter().zip(weights) {
                let expected = KEYS as f64 * f64::from(*weight) / f64::from(total);
                let off = (*owned as f64 - expected).abs();
                // Five standard deviations of a binomial distribution.
                assert!(off <= 5.0 * expected.sqrt(), "{owned} of {expected} ({weights:?})");
            }
        }
    }

    #[test]
    fn a_larger_weight_takes_keys_only_for_its_member() {
        let (before, after) = (prepared(&members(&[1, 1, 1])), prepared(&members(&[1, 2, 1])));
        for key in keys(2000) {
            let (old, new) = (before.order(key.as_bytes())[0], after.order(key.as_bytes())[0]);
            assert!(old == new || new == 1, "{key}: {old} to {new}");
        }
    }

    proptest! {
        #[test]
        fn a_lost_member_moves_only_its_keys_and_each_to_the_second(
            weights in prop::collection::vec(1_u32..100, 1..12),
            lost in any::<prop::sample::Index>(),
            key in any::<[u8; 16]>(),
        ) {
            let rendezvous = prepared(&members(&weights));
            let lost = lost.index(weights.len());
            let order = rendezvous.order(&key);
            let rest: Vec<_> = order.iter().copied().filter(|number| *number != lost).collect();
            let found = rendezvous.best_two(&key, |number| u32::from(number != lost));
            prop_assert_eq!(found, [rest.first().copied(), rest.get(1).copied()]);
        }

        #[test]
        fn the_order_of_the_list_does_not_matter(
            weights in prop::collection::vec(1_u32..100, 2..12),
            key in any::<[u8; 16]>(),
        ) {
            let all = members(&weights);
            let reversed: Vec<_> = all.iter().rev().cloned().collect();
            let last = all.len() - 1;
            let backwards = prepared(&reversed).order(&key);
            let backwards: Vec<_> = backwards.into_iter().map(|number| last - number).collect();
            prop_assert_eq!(prepared(&all).order(&key), backwards);
        }
    }
}
