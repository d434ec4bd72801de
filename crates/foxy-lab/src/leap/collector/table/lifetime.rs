//! Computes how long the Collector (common parent proxy) stores an answer: as long as the origin
//! allows, but at least three minutes. So all proxies receive the same answer, even if the origin
//! forbids storing it.

use super::condition::has_validator;
use foxy_http::{Headers, Method, RequestHead, ResponseHead};
use std::time::{Duration, SystemTime};

/// The shortest time for which the Collector (common parent proxy) stores an answer, even if the
/// answer forbids storing (LEAP paper, paper 002 in docs/figures.md, §2.3).
pub const AT_LEAST: Duration = Duration::from_secs(180);
const AT_MOST: Duration = Duration::from_secs(7 * 86_400);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub fresh: Duration,
    /// Whether to ask the origin again after the time `fresh`. If false, the Collector (common
    /// parent proxy) deletes the answer then.
    pub validated: bool,
}

pub fn of(request: &RequestHead, answer: &ResponseHead) -> Lifetime {
    if !is_cachable(request, answer) {
        return Lifetime { fresh: AT_LEAST, validated: false };
    }
    let allowed = allowed(&answer.headers).unwrap_or(Duration::ZERO);
    let validated = answer.status == 200 && has_validator(&answer.headers);
    Lifetime { fresh: allowed.clamp(AT_LEAST, AT_MOST), validated }
}

fn is_cachable(request: &RequestHead, answer: &ResponseHead) -> bool {
    let private = ["no-store", "no-cache", "private"];
    matches!(request.method, Method::Get | Method::Head)
        && answer.status < 500
        && !request.headers.contains("cookie")
        && !request.headers.contains("authorization")
        && !answer.headers.contains("set-cookie")
        && !private
            .iter()
            .any(|name| answer.headers.tokens("cache-control").any(|token| is_named(token, name)))
}

/// Whether a `Cache-Control` directive has this name. The directive may have an argument, as in
/// `private="x"`.
fn is_named(token: &[u8], name: &str) -> bool {
    let end = token.iter().position(|&byte| byte == b'=').unwrap_or(token.len());
    token[..end].eq_ignore_ascii_case(name.as_bytes())
}

/// Returns how long a cache may still use the answer: its freshness lifetime minus its current age
/// (RFC 9111 §4.2.1). Returns `None` if the answer states no lifetime.
fn allowed(headers: &Headers) -> Option<Duration> {
    let seconds = |name: &str| {
        let token = headers.tokens("cache-control").find(|token| is_named(token, name))?;
        let value = std::str::from_utf8(token).ok()?.split_once('=')?.1;
        value.trim_matches('"').parse().ok().map(Duration::from_secs)
    };
    let time = |name: &str| httpdate::parse_http_date(headers.get_str(name)?).ok();
    let until = || {
        let (expires, date): (SystemTime, SystemTime) = (time("expires")?, time("date")?);
        Some(expires.duration_since(date).unwrap_or_default())
    };
    let lifetime = seconds("s-maxage").or_else(|| seconds("max-age")).or_else(until)?;
    let age = headers
        .get_str("age")
        .and_then(|age| age.parse().ok())
        .map_or(Duration::ZERO, Duration::from_secs);
    Some(lifetime.saturating_sub(age))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::key::tests::head;

    const GET: &str = "GET http://a.test/x HTTP/1.1\nHost: a.test";

    fn check(request: &str, status: u16, fields: &[(&str, &str)], seconds: u64, validated: bool) {
        let headers = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let answer = ResponseHead { headers, ..ResponseHead::new(status) };
        let expected = Lifetime { fresh: Duration::from_secs(seconds), validated };
        assert_eq!(of(&head(request), &answer), expected, "{request} {status} {fields:?}");
    }

    #[test]
    fn a_cachable_answer_lives_as_the_origin_says_and_at_least_three_minutes() {
        let tag = ("ETag", "\"1\"");
        check(GET, 200, &[("Cache-Control", "max-age=3600"), tag], 3600, true);
        check(
            GET,
            200,
            &[("Cache-Control", "max-age=3600, s-maxage=900"), ("Age", "100"), tag],
            800,
            true,
        );
        check(GET, 200, &[("Cache-Control", "max-age=5")], 180, false);
        check(GET, 200, &[tag], 180, true);
        check(GET, 404, &[("Cache-Control", "max-age=900")], 900, false);
        let (date, expires) = ("Wed, 23 Jun 2004 20:52:01 GMT", "Wed, 23 Jun 2004 21:52:01 GMT");
        check(GET, 200, &[("Date", date), ("Expires", expires)], 3600, false);
        check(GET, 200, &[("Date", expires), ("Expires", date)], 180, false);
        check(GET, 200, &[("Cache-Control", "max-age=99999999999")], 604_800, false);
    }

    #[test]
    fn an_uncachable_answer_lives_three_minutes_and_is_forgotten() {
        let tag = ("ETag", "\"1\"");
        let long = ("Cache-Control", "max-age=3600");
        for refused in
            ["no-store, max-age=3600", "private=\"x\", max-age=3600", "no-cache", "PRIVATE"]
        {
            check(GET, 200, &[("Cache-Control", refused), tag], 180, false);
        }
        check("POST http://a.test/x HTTP/1.1\nHost: a.test", 200, &[long, tag], 180, false);
        check(&format!("{GET}\nCookie: s=1"), 200, &[long, tag], 180, false);
        check(&format!("{GET}\nAuthorization: Basic QTpC"), 200, &[long, tag], 180, false);
        check(GET, 200, &[("Set-Cookie", "s=1"), long, tag], 180, false);
        check(GET, 503, &[long], 180, false);
    }
}
