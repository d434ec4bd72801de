//! Decides when foxy asks for a certificate: pure functions of times.

use foxy_authority::acme::Validity;
use foxy_base::{Random, WallTime};
use std::time::Duration;

/// Time until the first repetition after a failure. Each further failure doubles this time.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// Longest time between two attempts after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);

/// Returns the time at which a certificate must be renewed: at two thirds of its life, or up to a
/// twentieth of its life earlier. The random part spreads the renewals of many names.
pub fn renewal(Validity { start, end }: Validity, random: &mut Random) -> WallTime {
    let life = end.since(start).as_millis();
    let life = u64::try_from(life).unwrap_or(u64::MAX);
    let earlier = random.below((life / 20).max(1));
    WallTime(start.0 + life / 3 * 2 - earlier.min(life / 3))
}

/// Returns the time of the next attempt after a success, where `renewal` is the time to renew the
/// new certificate. If `renewal` is in the past, the clock is wrong. foxy then waits, so that it
/// does not ask again and again.
pub fn after_success(renewal: WallTime, now: WallTime) -> WallTime {
    if now < renewal {
        renewal
    } else {
        WallTime::from_seconds(now.seconds() + LONGEST_PAUSE.as_secs())
    }
}

/// Returns whether the attempt planned for `next` after a failure is due. A time beyond the longest
/// pause is due, because the clock was ahead at the failure.
pub fn is_due_after_failure(next: WallTime, now: WallTime) -> bool {
    next <= now || next.since(now) > LONGEST_PAUSE
}

/// Returns the time to wait after this number of failures in a row. Half of the time is random.
pub fn pause(failures: u32, random: &mut Random) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    let whole = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
    whole / 2 + (whole / 2).mul_f64(random.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life_at_the_latest() {
        let random = &mut Random::new(27);
        let days = |days: u64| WallTime::from_seconds(days * 86_400);
        let validity = Validity { start: days(100), end: days(190) };
        let times: Vec<_> = (0..200).map(|_| renewal(validity, random)).collect();
        let earliest = WallTime(days(160).0 - 86_400_000 * 9 / 2);
        assert!(times.iter().all(|time| *time > earliest && *time <= days(160)));
        assert!(times.iter().any(|time| *time < days(157)), "the times are spread");
        let over = Validity { start: days(1), end: days(1) };
        assert_eq!(renewal(over, random), days(1));
    }

    #[test]
    fn a_wrong_clock_causes_neither_haste_nor_silence() {
        let at = WallTime::from_seconds;
        assert_eq!(after_success(at(1001), at(1000)), at(1001));
        assert_eq!(after_success(at(1000), at(1000)), at(22_600));
        for (next, expected) in [(999, true), (1000, true), (1001, false), (22_600, false)] {
            assert_eq!(is_due_after_failure(at(next), at(1000)), expected, "{next}");
        }
        assert!(is_due_after_failure(at(22_601), at(1000)), "the clock was ahead");
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let random = &mut Random::new(27);
        for (failures, most) in [(1, 60), (2, 120), (5, 960), (10, 21_600), (u32::MAX, 21_600)] {
            let most = Duration::from_secs(most);
            let pause = pause(failures, random);
            assert!((most / 2..=most).contains(&pause), "{failures}: {pause:?}");
        }
    }
}
