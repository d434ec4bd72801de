//! Computes the freshness lifetime and the age of a response (RFC 9111 §4.2), in seconds.

use crate::cache_control::{LONGEST, ResponseControl, Role, parse_seconds};
use crate::date;
use crate::fields::Fields;
use crate::package::{is_named_by_digest, is_package};
use foxy_base::WallTime;

const MAX_HEURISTIC_SECONDS: u64 = 86_400;

/// The operator's settings where the RFCs leave a choice. The operator's rules can change these
/// settings for single responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The role of the cache, which decides whether `CDN-Cache-Control` is read.
    pub role: Role,
    /// Lifetime in seconds of a negative response (such as 404) that gives no lifetime itself, as
    /// RFC 9111 §4.2.2 allows. 0 means no lifetime.
    pub negative_lifetime: u64,
    /// Whether a rule of the operator forbids storing the response.
    pub never_store: bool,
    /// Whether a rule allows (true) or forbids (false) storing a response with Set-Cookie. `None`
    /// means that no rule decides.
    pub store_set_cookie: Option<bool>,
    /// Shortest lifetime in seconds, set by a rule. Directives that forbid storing or demand
    /// validation still apply.
    pub fresh_at_least: Option<u64>,
    /// Longest lifetime in seconds, set by a rule.
    pub fresh_at_most: Option<u64>,
    /// How a rule computes the lifetime of a response that gives no lifetime itself. `None` means
    /// that no rule decides.
    pub heuristic: Option<Heuristic>,
    /// Time in seconds for which a rule permits stale responses during validation (RFC 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// Time in seconds for which a rule permits stale responses if the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
}

/// A rule's lifetime for responses that give no lifetime, like `refresh_pattern` of Squid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heuristic {
    /// Lifetime in seconds of a response without a modification time.
    pub at_least: u64,
    /// Lifetime as a percentage of the time between the last modification and the response's Date.
    /// `None` means that every response has the lifetime `at_least`.
    pub percent: Option<u32>,
    /// Longest lifetime in seconds that this rule gives.
    pub at_most: u64,
}

impl Heuristic {
    /// Returns the lifetime of a response. `unchanged` is the number of seconds from its last
    /// modification to its date.
    fn lifetime(self, unchanged: Option<u64>) -> Lifetime {
        let seconds = match unchanged.zip(self.percent) {
            Some((unchanged @ 1.., percent)) => unchanged.saturating_mul(percent.into()) / 100,
            _ => self.at_least,
        };
        match seconds.min(self.at_most) {
            0 => Lifetime::None,
            seconds => Lifetime::Heuristic(seconds),
        }
    }
}

impl From<Role> for Policy {
    fn from(role: Role) -> Self {
        Self { role, ..Self::default() }
    }
}

impl Policy {
    /// Reads the Cache-Control directives of a response. If the operator's rules give times for
    /// stale responses, these times replace the times in the response. Directives that forbid stale
    /// responses still apply.
    pub fn control(self, response: &(impl Fields + ?Sized)) -> ResponseControl {
        let mut control = ResponseControl::for_role(response, self.role);
        control.stale_while_revalidate =
            self.stale_while_revalidate.or(control.stale_while_revalidate);
        control.stale_if_error = self.stale_if_error.or(control.stale_if_error);
        control
    }
}

/// Returns whether the status is a negative response, such as 404, that a cache may keep without an
/// explicit lifetime (heuristically cacheable, RFC 9110 §15.1).
const fn is_negative(status: u16) -> bool {
    matches!(status, 404 | 405 | 410 | 414 | 501)
}

/// A freshness lifetime in seconds, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The lifetime in seconds, from `s-maxage`, `max-age` or Expires.
    Explicit(u64),
    /// The lifetime in seconds, from a heuristic (RFC 9111 §4.2.2). If a rule of the operator has a
    /// [`Heuristic`], it decides. Otherwise the lifetime is a tenth of the time from Last-Modified
    /// to Date, at most a day.
    Heuristic(u64),
    /// The lifetime in seconds of a file whose URL says that its content never changes: a package,
    /// or a URL with a digest of the content (RFC 9111 §4.2.2).
    Named(u64),
    /// The operator's lifetime for negative responses, in seconds (RFC 9111 §4.2.2).
    Negative(u64),
    /// The shortest or longest lifetime that a rule of the operator sets. It replaced a lifetime
    /// outside of these bounds.
    Rule(u64),
    /// There is no source, so the response is never fresh.
    None,
}

impl Lifetime {
    /// Returns the lifetime in seconds, 0 if there is none.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Explicit(seconds)
            | Self::Heuristic(seconds)
            | Self::Named(seconds)
            | Self::Negative(seconds)
            | Self::Rule(seconds) => seconds,
            Self::None => 0,
        }
    }
}

/// Returns whether responses with this status may have a heuristic lifetime (RFC 9110 §15.1).
pub(crate) const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Computes the freshness lifetime for a shared cache (RFC 9111 §4.2.1). The first of these sources
/// counts: s-maxage, max-age, Expires minus Date, the operator's lifetime for negative responses,
/// heuristic. CDN-Cache-Control overrides Expires (RFC 9213 §2.2). Bounds in `policy` then apply.
/// `target` is the cache key.
pub fn lifetime(
    status: u16,
    response: &(impl Fields + ?Sized),
    control: &ResponseControl,
    policy: &Policy,
    received: WallTime,
    target: &[u8],
) -> Lifetime {
    let given = given_lifetime(status, response, control, policy, received, target);
    let seconds = given.seconds();
    // A rule's shortest lifetime does not apply to a response that has no lifetime and a status
    // that is not heuristically cacheable (RFC 9110 §15.1).
    let has_floor = given != Lifetime::None || is_heuristically_cacheable(status);
    let floor = policy.fresh_at_least.filter(|_| has_floor).unwrap_or(0);
    let bounded = seconds.max(floor).min(policy.fresh_at_most.unwrap_or(u64::MAX)).min(LONGEST);
    if bounded == seconds { given } else { Lifetime::Rule(bounded) }
}

/// Computes the lifetime without the bounds in `policy`.
pub(crate) fn given_lifetime(
    status: u16,
    response: &(impl Fields + ?Sized),
    control: &ResponseControl,
    policy: &Policy,
    received: WallTime,
    target: &[u8],
) -> Lifetime {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Lifetime::Explicit(seconds);
    }
    let dated = date_of(response, received);
    if response.has("expires") && !control.targeted {
        // Repeated Expires lines and invalid dates count as a date in the past (RFC 9111 §5.3).
        let expires = response.single("expires").and_then(|text| date::parse(text, received));
        let seconds =
            expires.map_or(0, |expires| expires.seconds().saturating_sub(dated.seconds()));
        return Lifetime::Explicit(seconds.min(LONGEST));
    }
    let modified = response.single("last-modified").and_then(|text| date::parse(text, received));
    let unchanged = modified.map(|modified| dated.seconds().saturating_sub(modified.seconds()));
    let may_have_heuristic = is_heuristically_cacheable(status) || control.public;
    let negative = policy.negative_lifetime;
    match unchanged {
        None if is_negative(status) && negative > 0 => Lifetime::Negative(negative),
        _ if policy.heuristic.is_some() => {
            let is_covered = may_have_heuristic && !(unchanged.is_none() && is_negative(status));
            let rule = policy.heuristic.filter(|_| is_covered);
            rule.map_or(Lifetime::None, |rule| rule.lifetime(unchanged))
        }
        _ if status == 200 && is_named_by_digest(target) && !is_page(response) => {
            Lifetime::Named(MAX_HEURISTIC_SECONDS)
        }
        Some(unchanged) if may_have_heuristic => {
            Lifetime::Heuristic((unchanged / 10).min(MAX_HEURISTIC_SECONDS))
        }
        None if status == 200 && is_package(target) && !is_page(response) => {
            Lifetime::Named(MAX_HEURISTIC_SECONDS)
        }
        _ => Lifetime::None,
    }
}

/// Returns whether a response is a page or an answer of a program, and not a file. An origin that
/// ignores the end of a path may answer `/account/x.zip` with the page of a user.
fn is_page(response: &(impl Fields + ?Sized)) -> bool {
    /// Manifests of container registries, which also have digests in their URLs.
    const MANIFESTS: [&[u8]; 2] = [b"application/vnd.oci.", b"application/vnd.docker."];
    const PAGES: [&[u8]; 5] = [b"/html", b"/json", b"/xml", b"+json", b"+xml"];
    response.values("content-type").any(|line| {
        let media_type = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let media_type = media_type.trim_ascii().to_ascii_lowercase();
        let is_manifest = MANIFESTS.iter().any(|start| media_type.starts_with(start));
        !is_manifest && PAGES.iter().any(|end| media_type.ends_with(end))
    })
}

/// Returns the Date of a response. Returns `received` if Date is missing or invalid (RFC 9110
/// §6.6.1).
pub(crate) fn date_of(response: &(impl Fields + ?Sized), received: WallTime) -> WallTime {
    response.single("date").and_then(|text| date::parse(text, received)).unwrap_or(received)
}

/// Returns the first member of the first Age line, in seconds. An invalid member counts as 0 (RFC
/// 9111 §5.1).
fn age_value(response: &(impl Fields + ?Sized)) -> u64 {
    let first = response.values("age").next();
    let member = first.and_then(|line| line.split(|&byte| byte == b',').next());
    member.and_then(parse_seconds).unwrap_or(0)
}

/// The times from which the cache computes the age of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredTimes {
    /// The time at which the response was received.
    pub received: WallTime,
    /// Corrected initial age in seconds at the time `received` (RFC 9111 §4.2.3).
    pub initial_age: u64,
}

impl StoredTimes {
    /// Computes the times of a response. `requested` is the time at which the request was sent.
    /// `received` is the time at which the response head arrived.
    pub fn new(response: &(impl Fields + ?Sized), requested: WallTime, received: WallTime) -> Self {
        let apparent = received.seconds().saturating_sub(date_of(response, received).seconds());
        let delay = received.since(requested).as_secs();
        let corrected = age_value(response).saturating_add(delay);
        Self { received, initial_age: apparent.max(corrected).min(LONGEST) }
    }

    /// Returns the age in seconds for decisions on reuse. If the response was received after `now`,
    /// the clock was set back and the age is unknown. The result is then [`LONGEST`], so the
    /// response is stale.
    pub(crate) const fn known_age(self, now: WallTime) -> u64 {
        /// Clock differences up to this number of milliseconds are ignored, because two threads may
        /// read the clock at slightly different times.
        const SLACK_MILLIS: u64 = 1000;
        if self.received.0 > now.0.saturating_add(SLACK_MILLIS) { LONGEST } else { self.age(now) }
    }

    /// Returns the age in seconds at the time `now`.
    pub const fn age(self, now: WallTime) -> u64 {
        let resident = now.since(self.received).as_secs();
        let age = self.initial_age.saturating_add(resident);
        if age > LONGEST { LONGEST } else { age }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_control::Role;

    const RECEIVED: WallTime = WallTime::from_seconds(784_111_777 + 100);
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn of(status: u16, fields: &[(&str, &str)]) -> Lifetime {
        let policy = Policy::default();
        lifetime(status, fields, &ResponseControl::of(fields), &policy, RECEIVED, b"http://a/x")
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
                &Policy::from(role),
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
            let (control, policy) = (ResponseControl::of(fields), Policy::default());
            lifetime(200, fields, &control, &policy, RECEIVED, target.as_bytes())
        };
        assert_eq!(of("http://a/pool/x_1.0_amd64.deb", &[]), Lifetime::Named(86_400));
        for page in ["text/html", "Text/HTML; charset=utf-8", "application/problem+json"] {
            let page = [("Content-Type", page)];
            assert_eq!(of("http://a/account/x.zip", &page), Lifetime::None, "{page:?}");
        }
        let file = [("Content-Type", "application/zip")];
        assert_eq!(of("http://a/account/x.zip", &file), Lifetime::Named(86_400));
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
            let (control, policy) = (ResponseControl::of(fields), Policy::default());
            lifetime(status, fields, &control, &policy, RECEIVED, target.as_bytes())
        };
        let new = [("Date", DATE), ("Last-Modified", DATE)];
        assert_eq!(of(200, &new), Lifetime::Named(86_400));
        assert_eq!(of(200, &[]), Lifetime::Named(86_400));
        assert_eq!(of(200, &[("Cache-Control", "max-age=5")]), Lifetime::Explicit(5));
        assert_eq!(of(404, &[]), Lifetime::None);
    }

    #[test]
    fn an_answer_that_says_there_is_nothing_is_good_as_long_as_the_operator_says() {
        let of = |status: u16, fields: &[(&str, &str)]| {
            let policy = Policy { negative_lifetime: 30, ..Policy::default() };
            lifetime(status, fields, &ResponseControl::of(fields), &policy, RECEIVED, b"http://a/x")
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

    #[test]
    fn a_rule_computes_the_lifetime_of_a_response_that_gives_none() {
        let of = |status: u16, fields: &[(&str, &str)]| {
            let heuristic = Heuristic { at_least: 60, percent: Some(20), at_most: 150 };
            let policy = Policy { heuristic: Some(heuristic), ..Policy::default() };
            let control = ResponseControl::of(fields);
            lifetime(status, fields, &control, &policy, RECEIVED, b"http://a/pool/x.deb")
        };
        let modified = |text| [("Date", DATE), ("Last-Modified", text)];
        assert_eq!(
            of(200, &modified("Sun, 06 Nov 1994 08:41:17 GMT")),
            Lifetime::Heuristic(100),
            "20 % of 500 s"
        );
        let old = modified("Tue, 01 Jan 1980 00:00:00 GMT");
        assert_eq!(of(200, &old), Lifetime::Heuristic(150));
        assert_eq!(of(302, &old), Lifetime::None);
        assert_eq!(of(200, &modified(DATE)), Lifetime::Heuristic(60));
        assert_eq!(of(200, &[]), Lifetime::Heuristic(60));
        assert_eq!(of(404, &[]), Lifetime::None);
        assert_eq!(of(200, &[("Cache-Control", "max-age=5")]), Lifetime::Explicit(5));
    }

    #[test]
    fn a_rule_bounds_the_lifetime_on_both_sides() {
        let of = |status: u16, fields: &[(&str, &str)], floor, ceiling| {
            let policy =
                Policy { fresh_at_least: floor, fresh_at_most: ceiling, ..Policy::default() };
            lifetime(status, fields, &ResponseControl::of(fields), &policy, RECEIVED, b"http://a/x")
        };
        let five = [("Cache-Control", "max-age=5")];
        assert_eq!(of(200, &five, Some(60), None), Lifetime::Rule(60));
        assert_eq!(of(200, &five, Some(3), Some(9)), Lifetime::Explicit(5));
        assert_eq!(of(200, &five, None, Some(2)), Lifetime::Rule(2));
        assert_eq!(of(200, &[], Some(60), None), Lifetime::Rule(60));
        assert_eq!(of(302, &[], Some(60), None), Lifetime::None, "not cacheable by default");
        assert_eq!(of(302, &five, Some(60), None), Lifetime::Rule(60));
    }
}
