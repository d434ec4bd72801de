//! Freshness lifetime and age (RFC 9111 §4.2). All values in whole seconds.

use crate::cache_control::{LONGEST, ResponseControl, parse_seconds};
use crate::date;
use crate::fields::Fields;
use crate::package::{is_named_by_digest, is_package};
use crate::policy::is_negative;
use foxy_base::WallTime;

/// The longest heuristic lifetime: one day.
const HEURISTIC_LIMIT: u64 = 86_400;

/// How long a response is fresh, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// `s-maxage`, `max-age` or Expires said so.
    Explicit(u64),
    /// A tenth of the time since Last-Modified, at most a day; a day for a package file of which
    /// nothing is said, and for what is named by its digest (§4.2.2).
    Heuristic(u64),
    /// What the operator grants an answer that says there is nothing, of which nothing else is said
    /// (§4.2.2).
    Negative(u64),
    /// Nothing says anything: never fresh.
    None,
}

impl Lifetime {
    /// Seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Explicit(seconds) | Self::Heuristic(seconds) | Self::Negative(seconds) => seconds,
            Self::None => 0,
        }
    }
}

/// Statuses that may be given a heuristic lifetime (RFC 9110 §15.1).
pub const fn heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The freshness lifetime for a shared cache (§4.2.1): the first of s-maxage, max-age, Expires −
/// Date, heuristic. `control` is what governs the response; where that is a targeted field, Expires
/// says nothing (RFC 9213 §2.2). A negative response of which nothing is said gets `negative`
/// seconds.
pub fn lifetime(
    status: u16,
    response: &(impl Fields + ?Sized),
    control: &ResponseControl,
    negative: u64,
    received: WallTime,
    target: &[u8],
) -> Lifetime {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Lifetime::Explicit(seconds);
    }
    let dated = date_of(response, received);
    if response.has("expires") && !control.targeted {
        // Of several Expires lines none is trusted, and an invalid date is one in the past (§5.3).
        let expires = response.single("expires").and_then(|text| date::parse(text, received));
        let seconds =
            expires.map_or(0, |expires| expires.seconds().saturating_sub(dated.seconds()));
        return Lifetime::Explicit(seconds.min(LONGEST));
    }
    let modified = response.single("last-modified").and_then(|text| date::parse(text, received));
    match modified {
        _ if status == 200 && is_named_by_digest(target) => Lifetime::Heuristic(HEURISTIC_LIMIT),
        Some(modified) if heuristically_cacheable(status) || control.public => {
            let unchanged = dated.seconds().saturating_sub(modified.seconds());
            Lifetime::Heuristic((unchanged / 10).min(HEURISTIC_LIMIT))
        }
        None if status == 200 && is_package(target) => Lifetime::Heuristic(HEURISTIC_LIMIT),
        None if is_negative(status) && negative > 0 => Lifetime::Negative(negative),
        _ => Lifetime::None,
    }
}

/// The Date of a response, or when it was received if it has none that can be read (RFC 9110
/// §6.6.1).
pub fn date_of(response: &(impl Fields + ?Sized), received: WallTime) -> WallTime {
    response.single("date").and_then(|text| date::parse(text, received)).unwrap_or(received)
}

/// The Age a response arrived with: the first member of its first line, 0 when it cannot be read
/// (§5.1).
fn age_value(response: &(impl Fields + ?Sized)) -> u64 {
    let first = response.values("age").next();
    let member = first.and_then(|line| line.split(|&byte| byte == b',').next());
    member.and_then(parse_seconds).unwrap_or(0)
}

/// When a stored response was asked for and received, and how old it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredTimes {
    /// When the response was received.
    pub received: WallTime,
    /// Its corrected initial age at that time (§4.2.3), in seconds.
    pub initial_age: u64,
}

impl StoredTimes {
    /// The times of a response that was asked for at `requested` and whose head came at `received`.
    pub fn new(response: &(impl Fields + ?Sized), requested: WallTime, received: WallTime) -> Self {
        let apparent = received.seconds().saturating_sub(date_of(response, received).seconds());
        let delay = received.since(requested).as_secs();
        let corrected = age_value(response).saturating_add(delay);
        Self { received, initial_age: apparent.max(corrected).min(LONGEST) }
    }

    /// Its age now, in seconds, for the question whether it may answer. One that was received later
    /// than now was stored before a clock was set back: how old it is is not known, so it is as old
    /// as can be.
    pub const fn known_age(self, now: WallTime) -> u64 {
        /// What two readings of one clock may differ by.
        const SLACK: u64 = 1000;
        if self.received.0 > now.0.saturating_add(SLACK) { LONGEST } else { self.age(now) }
    }

    /// Its age now, in seconds.
    pub const fn age(self, now: WallTime) -> u64 {
        let resident = now.since(self.received).as_secs();
        let age = self.initial_age.saturating_add(resident);
        if age > LONGEST { LONGEST } else { age }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Role;

    const RECEIVED: WallTime = WallTime::from_seconds(784_111_777 + 100);
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn of(status: u16, fields: &[(&str, &str)]) -> Lifetime {
        lifetime(status, fields, &ResponseControl::of(fields), 0, RECEIVED, b"http://a/x")
    }

    #[test]
    fn explicit_lifetimes_in_their_order() {
        let cases: [(&[(&str, &str)], u64); 6] = [
            (&[("Cache-Control", "max-age=5, s-maxage=9"), ("Expires", DATE)], 9),
            (&[("Cache-Control", "max-age=5"), ("Expires", DATE)], 5),
            (&[("Date", DATE), ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT")], 60),
            (&[("Date", DATE), ("Expires", "0")], 0),
            (&[("Date", DATE), ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT"), ("Expires", "0")], 0),
            (&[("Expires", DATE)], 0),
        ];
        for (fields, seconds) in cases {
            assert_eq!(of(200, fields), Lifetime::Explicit(seconds), "{fields:?}");
        }
    }

    #[test]
    fn a_targeted_field_leaves_expires_without_a_say() {
        let fields =
            [("CDN-Cache-Control", "max-age=7"), ("Cache-Control", "max-age=9"), ("Expires", "0")];
        let of = |fields: &[(&str, &str)], role| {
            lifetime(
                200,
                fields,
                &ResponseControl::for_role(fields, role),
                0,
                RECEIVED,
                b"http://a/x",
            )
        };
        assert_eq!(of(&fields, Role::Gateway), Lifetime::Explicit(7));
        assert_eq!(of(&fields, Role::Proxy), Lifetime::Explicit(9));
        assert_eq!(
            of(&[("CDN-Cache-Control", "x"), ("Expires", "0")], Role::Gateway),
            Lifetime::None
        );
    }

    #[test]
    fn a_tenth_of_the_time_unchanged_is_the_heuristic_up_to_a_day() {
        let fields = [("Date", DATE), ("Last-Modified", "Sun, 06 Nov 1994 08:32:57 GMT")];
        assert_eq!(of(200, &fields), Lifetime::Heuristic(100));
        assert_eq!(of(302, &fields), Lifetime::None);
        assert_eq!(
            of(200, &[("Date", DATE), ("Last-Modified", "Tue, 01 Jan 1980 00:00:00 GMT")]),
            Lifetime::Heuristic(86_400)
        );
        assert_eq!(of(200, &[("Date", DATE)]), Lifetime::None);
    }

    #[test]
    fn a_package_of_which_nothing_is_said_is_good_for_a_day() {
        let of = |target: &str, fields: &[(&str, &str)]| {
            lifetime(200, fields, &ResponseControl::of(fields), 0, RECEIVED, target.as_bytes())
        };
        assert_eq!(of("http://a/pool/x_1.0_amd64.deb", &[]), Lifetime::Heuristic(86_400));
        assert_eq!(
            of("http://a/pool/x.deb", &[("Cache-Control", "max-age=5")]),
            Lifetime::Explicit(5)
        );
        assert_eq!(of("http://a/pool/x.deb", &[("Expires", "0")]), Lifetime::Explicit(0));
        assert_eq!(of("http://a/Packages", &[]), Lifetime::None);
    }

    #[test]
    fn what_is_named_by_its_digest_is_good_for_a_day_however_new_it_is() {
        let digest = "0123456789abcdef".repeat(4);
        let target = format!("http://a/dists/sid/main/binary-amd64/by-hash/SHA256/{digest}");
        let of = |status: u16, fields: &[(&str, &str)]| {
            lifetime(status, fields, &ResponseControl::of(fields), 0, RECEIVED, target.as_bytes())
        };
        let new = [("Date", DATE), ("Last-Modified", DATE)];
        assert_eq!(of(200, &new), Lifetime::Heuristic(86_400));
        assert_eq!(of(200, &[]), Lifetime::Heuristic(86_400));
        assert_eq!(of(200, &[("Cache-Control", "max-age=5")]), Lifetime::Explicit(5));
        assert_eq!(of(404, &[]), Lifetime::None);
    }

    #[test]
    fn an_answer_that_says_there_is_nothing_is_good_as_long_as_the_operator_says() {
        let of = |status: u16, fields: &[(&str, &str)]| {
            lifetime(status, fields, &ResponseControl::of(fields), 30, RECEIVED, b"http://a/x")
        };
        for status in [404, 405, 410, 414, 501] {
            assert_eq!(of(status, &[]), Lifetime::Negative(30), "{status}");
        }
        assert_eq!(of(404, &[("Cache-Control", "max-age=5")]), Lifetime::Explicit(5));
        assert_eq!(of(404, &[("Expires", "0")]), Lifetime::Explicit(0));
        for status in [200, 302, 400, 403, 500, 503] {
            assert_eq!(of(status, &[]), Lifetime::None, "{status}");
        }
    }

    #[test]
    fn age_is_the_larger_of_apparent_and_said_and_grows_with_time() {
        let times = |fields: &[(&str, &str)], delay: u64| {
            StoredTimes::new(fields, WallTime::from_seconds(RECEIVED.seconds() - delay), RECEIVED)
        };
        assert_eq!(times(&[("Date", DATE)], 0).initial_age, 100);
        assert_eq!(times(&[("Date", DATE), ("Age", "500")], 3).initial_age, 503);
        assert_eq!(times(&[("Age", "7, 9")], 0).initial_age, 7);
        assert_eq!(times(&[("Age", "-7")], 0).initial_age, 0);
        assert_eq!(times(&[("Age", "1.5")], 2).initial_age, 2);
        let later = WallTime::from_seconds(RECEIVED.seconds() + 30);
        assert_eq!(times(&[("Date", DATE)], 0).age(later), 130);
    }
}
