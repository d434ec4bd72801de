//! Cache-Control (RFC 9111 §5.2) of requests and responses, and Pragma (§5.4). Unknown directives
//! are ignored; what cannot be understood is read in the direction that caches less.

use crate::fields::{Fields, is_token, members};
use crate::policy::Role;
use crate::targeted;

/// Delta-seconds above this are this (RFC 9111 §1.2.2).
pub const LONGEST: u64 = 1 << 31;

/// A directive and its argument, if any.
struct Directive<'a> {
    name: &'a [u8],
    argument: Option<Vec<u8>>,
}

impl Directive<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Its argument as delta-seconds, quoted or not; an invalid or missing one is 0, which is stale
    /// (§4.2.1).
    fn seconds(&self) -> u64 {
        self.argument.as_deref().and_then(parse_seconds).unwrap_or(0)
    }
}

/// Delta-seconds (§1.2.2): digits only; what overflows is [`LONGEST`].
pub fn parse_seconds(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text
        .iter()
        .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(number.min(LONGEST))
}

/// Whether a member is a directive: a token, perhaps with a token or a whole quoted string after
/// `=` (§5.2). White space beside `=` is let pass.
fn is_directive(member: &[u8]) -> bool {
    match member.iter().position(|&byte| byte == b'=') {
        None => is_token(member),
        Some(at) => {
            let (name, argument) = (member[..at].trim_ascii(), member[at + 1..].trim_ascii());
            is_token(name) && (is_token(argument) || is_quoted(argument))
        }
    }
}

/// Whether a text is one quoted string, and ends where its quotes do (RFC 9110 §5.6.4).
fn is_quoted(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return false;
    };
    let mut escaped = false;
    let closes_early = inner.iter().any(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    !closes_early && !escaped
}

fn directives<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = Directive<'a>> {
    members(lines).map(|member| match member.iter().position(|&byte| byte == b'=') {
        None => Directive { name: member, argument: None },
        Some(at) => Directive {
            name: member[..at].trim_ascii(),
            argument: Some(unquote(member[at + 1..].trim_ascii())),
        },
    })
}

fn unquote(text: &[u8]) -> Vec<u8> {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return text.to_vec();
    };
    let mut escaped = false;
    let keep = |byte: &&u8| {
        let drop = **byte == b'\\' && !escaped;
        escaped = drop;
        !drop
    };
    inner.iter().filter(keep).copied().collect()
}

/// Keeps the smaller of two lifetimes: of duplicates, the one that caches less counts (§4.2.1).
fn least(seen: &mut Option<u64>, seconds: u64) {
    *seen = Some(seen.map_or(seconds, |earlier| earlier.min(seconds)));
}

/// What a request's Cache-Control asks (§5.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// Nothing older than this, in seconds.
    pub max_age: Option<u64>,
    /// Stale by at most this many seconds is fine; `u64::MAX` for any staleness.
    pub max_stale: Option<u64>,
    /// Must stay fresh for that many seconds.
    pub min_fresh: Option<u64>,
    /// Not without validation. Also set by `Pragma: no-cache` where there is no Cache-Control.
    pub no_cache: bool,
    /// Not to be stored.
    pub no_store: bool,
    /// From the cache or not at all.
    pub only_if_cached: bool,
    /// Stale by at most this many seconds is fine when the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
}

impl RequestControl {
    /// Reads a request's fields.
    pub fn of(request: &(impl Fields + ?Sized)) -> Self {
        let mut control = Self::default();
        for directive in directives(request.values("cache-control")) {
            match directive {
                d if d.is("max-age") => least(&mut control.max_age, d.seconds()),
                d if d.is("min-fresh") => {
                    let seconds = d.argument.as_deref().and_then(parse_seconds).unwrap_or(LONGEST);
                    control.min_fresh = control.min_fresh.max(Some(seconds));
                }
                d if d.is("max-stale") => {
                    let seconds = if d.argument.is_none() { u64::MAX } else { d.seconds() };
                    least(&mut control.max_stale, seconds);
                }
                d if d.is("no-cache") => control.no_cache = true,
                d if d.is("no-store") => control.no_store = true,
                d if d.is("only-if-cached") => control.only_if_cached = true,
                d if d.is("stale-if-error") => least(&mut control.stale_if_error, d.seconds()),
                _ => {}
            }
        }
        if !request.has("cache-control") {
            control.no_cache =
                directives(request.values("pragma")).any(|directive| directive.is("no-cache"));
        }
        control
    }
}

/// What a response's Cache-Control says (§5.2.2). Qualified forms of `no-cache` and `private` (with
/// field names) are read as the unqualified ones, as §5.2.2.4 and §5.2.2.7 allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// Fresh for that many seconds.
    pub max_age: Option<u64>,
    /// The same, for shared caches.
    pub s_maxage: Option<u64>,
    /// Not to be reused without validation.
    pub no_cache: bool,
    /// Not to be stored.
    pub no_store: bool,
    /// Not for shared caches.
    pub private: bool,
    /// May be stored even where the default says no.
    pub public: bool,
    /// Never to be served stale.
    pub must_revalidate: bool,
    /// Never to be served stale by a shared cache.
    pub proxy_revalidate: bool,
    /// To be stored only by caches that know its status code (overrides `no-store` for them).
    pub must_understand: bool,
    /// Does not change while fresh (RFC 8246).
    pub immutable: bool,
    /// May be served stale for that many seconds while it is validated (RFC 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// May be served stale for that many seconds when the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
    /// A part of the field is no directive. What was meant is unknown: it may have been `no-store`
    /// or `private`.
    pub unreadable: bool,
    /// All this was said by a targeted field, so that neither Cache-Control nor Expires counts (RFC
    /// 9213 §2.2).
    pub targeted: bool,
}

impl ResponseControl {
    /// Reads a response's Cache-Control.
    pub fn of(response: &(impl Fields + ?Sized)) -> Self {
        let mut control = Self::default();
        for directive in directives(response.values("cache-control")) {
            control.apply(directive.name, || directive.seconds());
        }
        control.unreadable = !members(response.values("cache-control")).all(is_directive);
        control.no_cache |= control.unreadable;
        control
    }

    /// Reads what governs a response for a cache in that role: the targeted field if there is one
    /// that counts, else Cache-Control.
    pub fn for_role(response: &(impl Fields + ?Sized), role: Role) -> Self {
        let targeted = (role == Role::Gateway).then(|| targeted::read(response)).flatten();
        targeted.unwrap_or_else(|| Self::of(response))
    }

    /// Takes one directive; unknown names change nothing.
    pub(crate) fn apply(&mut self, name: &[u8], seconds: impl FnOnce() -> u64) {
        let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
        match () {
            () if is("max-age") => least(&mut self.max_age, seconds()),
            () if is("s-maxage") => least(&mut self.s_maxage, seconds()),
            () if is("no-cache") => self.no_cache = true,
            () if is("no-store") => self.no_store = true,
            () if is("private") => self.private = true,
            () if is("public") => self.public = true,
            () if is("must-revalidate") => self.must_revalidate = true,
            () if is("proxy-revalidate") => self.proxy_revalidate = true,
            () if is("must-understand") => self.must_understand = true,
            () if is("immutable") => self.immutable = true,
            () if is("stale-while-revalidate") => {
                least(&mut self.stale_while_revalidate, seconds())
            }
            () if is("stale-if-error") => least(&mut self.stale_if_error, seconds()),
            () => {}
        }
    }

    /// Whether a shared cache must never serve it stale (§4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10).
    pub const fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }
}

#[cfg(test)]
#[path = "cache_control_tests.rs"]
mod tests;
