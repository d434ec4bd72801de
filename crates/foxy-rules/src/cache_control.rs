//! Parses Cache-Control (RFC 9111 §5.2), Pragma (§5.4) and CDN-Cache-Control (RFC 9213). Ignores
//! unknown directives. If a field is malformed, chooses the meaning with which less is cached.

use crate::fields::{Fields, is_token, members};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// Largest value of a time in seconds (delta-seconds). Larger values count as this value (RFC 9111
/// §1.2.2).
pub const LONGEST: u64 = 1 << 31;

struct Directive<'a> {
    name: &'a [u8],
    argument: Option<Vec<u8>>,
}

impl Directive<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Returns the argument as a number of seconds, whether quoted or not. An invalid or missing
    /// argument counts as 0, so that the response is stale (RFC 9111 §4.2.1).
    fn seconds(&self) -> u64 {
        self.argument.as_deref().and_then(parse_seconds).unwrap_or(0)
    }
}

/// Parses delta-seconds (RFC 9111 §1.2.2): only digits. A value above [`LONGEST`] counts as
/// [`LONGEST`].
pub(crate) fn parse_seconds(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text
        .iter()
        .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(number.min(LONGEST))
}

/// Returns whether a list member has the syntax of a directive (RFC 9111 §5.2): a token, optionally
/// with `=` and a token or quoted string. White space beside `=` is accepted.
fn is_directive(member: &[u8]) -> bool {
    match member.iter().position(|&byte| byte == b'=') {
        None => is_token(member),
        Some(at) => {
            let (name, argument) = (member[..at].trim_ascii(), member[at + 1..].trim_ascii());
            is_token(name) && (is_token(argument) || is_quoted(argument))
        }
    }
}

/// Returns whether the whole text is one quoted string (RFC 9110 §5.6.4).
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

/// Notes the seconds of a directive. If the directive is repeated, keeps the smaller number (RFC
/// 9111 §4.2.1).
fn keep_least(seen: &mut Option<u64>, seconds: u64) {
    *seen = Some(seen.map_or(seconds, |earlier| earlier.min(seconds)));
}

/// The role of the cache (RFC 9110 §3.7). Only a gateway reads `CDN-Cache-Control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A proxy: works for its clients, and fetches from any origin.
    #[default]
    Proxy,
    /// A gateway (reverse proxy): works for its origins, and serves any client (RFC 9213 §3).
    Gateway,
}

/// The Cache-Control of a request (RFC 9111 §5.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// Largest age in seconds that the client accepts.
    pub max_age: Option<u64>,
    /// Staleness in seconds that the client accepts. `u64::MAX` stands for any staleness.
    pub max_stale: Option<u64>,
    /// Remaining freshness in seconds that the client requires.
    pub min_fresh: Option<u64>,
    /// The client requires validation. `Pragma: no-cache` sets this field if the request has no
    /// Cache-Control.
    pub no_cache: bool,
    /// The client forbids the cache to store the request or its response.
    pub no_store: bool,
    /// The client wants only a stored response, so the cache must not ask the origin.
    pub only_if_cached: bool,
    /// Staleness in seconds that the client accepts if the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
}

impl RequestControl {
    /// Parses Cache-Control and Pragma of a request.
    pub fn of(request: &(impl Fields + ?Sized)) -> Self {
        let mut control = Self::default();
        for directive in directives(request.values("cache-control")) {
            match directive {
                d if d.is("max-age") => keep_least(&mut control.max_age, d.seconds()),
                d if d.is("min-fresh") => {
                    let seconds = d.argument.as_deref().and_then(parse_seconds).unwrap_or(LONGEST);
                    control.min_fresh = control.min_fresh.max(Some(seconds));
                }
                d if d.is("max-stale") => {
                    let seconds = if d.argument.is_none() { u64::MAX } else { d.seconds() };
                    keep_least(&mut control.max_stale, seconds);
                }
                d if d.is("no-cache") => control.no_cache = true,
                d if d.is("no-store") => control.no_store = true,
                d if d.is("only-if-cached") => control.only_if_cached = true,
                d if d.is("stale-if-error") => keep_least(&mut control.stale_if_error, d.seconds()),
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

/// The Cache-Control of a response (RFC 9111 §5.2.2). `no-cache="FIELD"` and `private="FIELD"` are
/// treated as `no-cache` and `private`, which §5.2.2.4 and §5.2.2.7 allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// Freshness lifetime of the response in seconds.
    pub max_age: Option<u64>,
    /// Freshness lifetime of the response in seconds for shared caches, such as this cache.
    pub s_maxage: Option<u64>,
    /// The response must be validated before each reuse.
    pub no_cache: bool,
    /// The response must not be stored.
    pub no_store: bool,
    /// Shared caches, such as this cache, must not store the response.
    pub private: bool,
    /// The response may be stored even if another rule forbids storing by default, such as the rule
    /// for Authorization.
    pub public: bool,
    /// The response must not be served stale.
    pub must_revalidate: bool,
    /// Shared caches, such as this cache, must not serve the response stale.
    pub proxy_revalidate: bool,
    /// Only a cache that understands the status code may store the response. If it does understand
    /// the code, it ignores `no-store`.
    pub must_understand: bool,
    /// The response does not change while it is fresh (RFC 8246).
    pub immutable: bool,
    /// Staleness in seconds that is allowed during a validation (RFC 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// Staleness in seconds that is allowed if the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
    /// Cache-Control is malformed. The origin may have meant `no-store` or `private`.
    pub unreadable: bool,
    /// The values come from CDN-Cache-Control, which overrides Cache-Control and Expires (RFC 9213
    /// §2.2).
    pub targeted: bool,
}

impl ResponseControl {
    /// Parses the Cache-Control of a response.
    pub fn of(response: &(impl Fields + ?Sized)) -> Self {
        let mut control = Self::default();
        for directive in directives(response.values("cache-control")) {
            control.apply(directive.name, || directive.seconds());
        }
        control.unreadable = !members(response.values("cache-control")).all(is_directive);
        control.no_cache |= control.unreadable;
        control
    }

    /// Parses the field that applies to a cache in this role. For a gateway this is a valid
    /// CDN-Cache-Control, if present. Otherwise it is Cache-Control.
    pub fn for_role(response: &(impl Fields + ?Sized), role: Role) -> Self {
        let targeted = (role == Role::Gateway).then(|| targeted(response)).flatten();
        targeted.unwrap_or_else(|| Self::of(response))
    }

    fn apply(&mut self, name: &[u8], seconds: impl FnOnce() -> u64) {
        let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
        match () {
            () if is("max-age") => keep_least(&mut self.max_age, seconds()),
            () if is("s-maxage") => keep_least(&mut self.s_maxage, seconds()),
            () if is("no-cache") => self.no_cache = true,
            () if is("no-store") => self.no_store = true,
            () if is("private") => self.private = true,
            () if is("public") => self.public = true,
            () if is("must-revalidate") => self.must_revalidate = true,
            () if is("proxy-revalidate") => self.proxy_revalidate = true,
            () if is("must-understand") => self.must_understand = true,
            () if is("immutable") => self.immutable = true,
            () if is("stale-while-revalidate") => {
                keep_least(&mut self.stale_while_revalidate, seconds())
            }
            () if is("stale-if-error") => keep_least(&mut self.stale_if_error, seconds()),
            () => {}
        }
    }

    /// Returns whether a shared cache must never serve the response stale (RFC 9111 §4.2.4,
    /// §5.2.2.2, §5.2.2.8, §5.2.2.10).
    pub const fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }
}

const TARGETED_FIELD: &str = "cdn-cache-control";

/// Parses `CDN-Cache-Control` as a Dictionary Structured Field (RFC 9651 §3.2). Returns `None` for
/// an absent, empty or malformed field, which has no effect (RFC 9213 §2.2).
fn targeted(response: &(impl Fields + ?Sized)) -> Option<ResponseControl> {
    if !response.has(TARGETED_FIELD) {
        return None;
    }
    let text = response.values(TARGETED_FIELD).collect::<Vec<_>>().join(&b", "[..]);
    let members =
        Parser::new(&text).parse::<Dictionary>().ok().filter(|members| !members.is_empty())?;
    let mut control = ResponseControl { targeted: true, ..ResponseControl::default() };
    for (name, value) in &members {
        if let ListEntry::Item(item) = value
            && item.bare_item == BareItem::Boolean(false)
        {
            continue;
        }
        control.apply(name.as_str().as_bytes(), || integer_seconds(value));
    }
    Some(control)
}

/// Returns the number of seconds in a value of type Integer. A value of another type counts as 0,
/// so that the response is stale.
fn integer_seconds(value: &ListEntry) -> u64 {
    let ListEntry::Item(item) = value else { return 0 };
    let BareItem::Integer(number) = item.bare_item else { return 0 };
    u64::try_from(i64::from(number)).unwrap_or(0).min(LONGEST)
}

#[cfg(test)]
#[path = "cache_control_tests.rs"]
mod tests;
