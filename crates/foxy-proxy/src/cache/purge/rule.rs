//! Purge orders and rules. A rule contains hashes instead of names, so that all rules have the same
//! size. If two names have the same hash, a purge of one name also affects the responses of the
//! other name.

use crate::cache::stored::{CacheKey, Stored};
use crate::core::tags::names;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{Authority, Headers, Method, Target, TargetForm};
use foxy_rules::cache_key;
use foxy_store::{Key, Site};
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Length in bytes of the longest URL prefix or tag that a purge accepts.
pub const MAX_NAME_BYTES: usize = 4096;

/// The stored responses that a purge affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The responses of one URL, with all its variants.
    Url {
        /// The URL's cache key.
        key: Key,
        /// The URL's site: its scheme, host and port.
        site: Site,
    },
    /// Responses with a certain tag in `Surrogate-Key` or `Cache-Tag`.
    Tag(u128),
    /// Responses of URLs that begin with a certain prefix.
    Prefix {
        /// The prefix's length in bytes.
        length: u16,
        /// The prefix's hash.
        hash: u128,
        /// The prefix's site: its scheme, host and port.
        site: Site,
    },
    /// Responses of URLs with a certain scheme and host, at a certain port or at all ports.
    Site(Site),
    /// Every response.
    All,
}

/// The effect of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strength {
    /// The response becomes stale. It stays in the cache, but is validated before it is served
    /// again.
    #[default]
    Soft,
    /// The response is removed.
    Hard,
    /// The response stays, but the proxy must validate it before it answers a request with it. No
    /// exception for stale responses applies. Only a node of a fleet that may have missed purges
    /// uses this effect.
    Doubt,
}

impl Strength {
    /// Returns the name of this effect in messages and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Hard => "hard",
            Self::Doubt => "doubt",
        }
    }
}

/// A purge as the client requested it. It has no number yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The purged responses.
    pub scope: Scope,
    /// Whether the purge is soft (responses become stale) or hard (responses are removed).
    pub strength: Strength,
    /// Time of the purge request. A softly purged response is stale from this time on.
    pub at: WallTime,
}

/// A purge in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The purge as the client requested it.
    pub order: Order,
    /// The number of this purge, counted from 1. The rule applies to responses whose fetch began
    /// before the purge.
    pub moment: u64,
}

/// The kinds of names that a purge request can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A whole URL.
    Url,
    /// A surrogate key or cache tag.
    Tag,
    /// The beginning of one or more URLs.
    Prefix,
    /// A host, optionally with a scheme and a port. Without a port, it stands for all ports of the
    /// host.
    Site,
}

/// The reason why the name in a purge request is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    NotAUrl,
    NotASite,
    /// The tag is empty, contains blanks or commas, or is too long.
    NotATag,
    TooLong,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAUrl => {
                "must begin with http://HOST or https://HOST, as in \
                 http://example.com/style.css"
            }
            Self::NotASite => {
                "a site is a host with or without scheme and port, as in example.com or \
                 http://example.com:8080"
            }
            Self::NotATag => "a tag is one word without blanks and commas",
            Self::TooLong => "a prefix or tag has at most 4096 bytes",
        })
    }
}

impl Named {
    /// Returns the scopes that a name in a purge request stands for. A site without a scheme has
    /// two scopes: `http` and `https`.
    pub fn scopes(self, name: &str) -> Result<Vec<Scope>, BadName> {
        let name = name.trim();
        match self {
            Self::Url => {
                Ok(vec![Scope::url(&CacheKey::new(key_of(name).ok_or(BadName::NotAUrl)?))])
            }
            Self::Prefix => {
                Scope::prefix(&key_of(name).ok_or(BadName::NotAUrl)?).map(|scope| vec![scope])
            }
            Self::Tag => {
                let one_word =
                    !name.is_empty() && !name.contains(|c: char| c == ',' || c.is_whitespace());
                match name.len() {
                    _ if !one_word => Err(BadName::NotATag),
                    0..=MAX_NAME_BYTES => Ok(vec![Scope::tag(name.as_bytes())]),
                    _ => Err(BadName::TooLong),
                }
            }
            Self::Site => sites(name).ok_or(BadName::NotASite),
        }
    }
}

/// Returns the cache key of a URL in a purge request. Returns `None` if the URL is invalid, or if
/// its scheme is neither `http` nor `https`.
pub fn key_of(url: &str) -> Option<Vec<u8>> {
    let url = url.split('#').next().unwrap_or(url);
    let target = Target::parse(&Method::Get, Bytes::copy_from_slice(url.as_bytes())).ok()?;
    match target.form() {
        TargetForm::Absolute { scheme, authority, path } => {
            let scheme = std::str::from_utf8(scheme).ok()?.to_ascii_lowercase();
            matches!(&*scheme, "http" | "https").then(|| cache_key(&scheme, authority, path))
        }
        _ => None,
    }
}

fn sites(name: &str) -> Option<Vec<Scope>> {
    let (schemes, authority) = match name.split_once("://") {
        Some((scheme, rest)) => (vec![scheme.to_ascii_lowercase()], rest),
        None => (vec!["http".to_owned(), "https".to_owned()], name),
    };
    let authority = authority.strip_suffix('/').unwrap_or(authority).as_bytes();
    let has_port = Authority::parse(authority)?.port.is_some();
    let known = schemes.iter().all(|scheme| matches!(&**scheme, "http" | "https"));
    let of = if has_port { site_of } else { host_of };
    let site = |scheme: &String| Scope::Site(of(&cache_key(scheme, authority, b"")));
    known.then(|| schemes.iter().map(site).collect())
}

/// Returns the URL at the beginning of the text of a cache key. In the key of a variant, more text
/// follows the URL.
pub(crate) fn url_of(key: &[u8]) -> &[u8] {
    key.split(|byte| *byte == b'\n').next().unwrap_or(key)
}

/// Returns the site of a cache key: the scheme and authority of its URL.
pub(crate) fn site_of(text: &[u8]) -> Site {
    Site(xxh3_64(site_text(text)))
}

/// Returns the site of a cache key for all ports: the scheme and host of its URL, without the port.
pub(crate) fn host_of(text: &[u8]) -> Site {
    let site = site_text(text);
    let port = site.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let end = port.filter(|&at| site[at] == b':' && site.get(at + 1) != Some(&b'/'));
    Site(xxh3_64(&[&site[..end.unwrap_or(site.len())], b":*"].concat()))
}

fn site_text(text: &[u8]) -> &[u8] {
    let slashes = text.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let end = slashes.map(|(at, _)| at).nth(2).unwrap_or(text.len());
    &text[..end]
}

impl Scope {
    /// Returns the scope of a purge that affects exactly this URL.
    pub fn url(key: &CacheKey) -> Self {
        Self::Url { key: key.hash, site: site_of(&key.text) }
    }

    /// Returns the scope of a purge that affects the URL to which a key belongs. `key` may be the
    /// key of a variant or of a partial response.
    pub(crate) fn url_of(key: &CacheKey) -> Self {
        let url = url_of(&key.text);
        if url.len() == key.text.len() {
            Self::url(key)
        } else {
            Self::url(&CacheKey::new(key.text.slice_ref(url)))
        }
    }

    /// Returns the scope of all responses with this tag. Tags are case-insensitive, because some
    /// origins write the same tag sometimes in upper case and sometimes in lower case.
    pub fn tag(tag: &[u8]) -> Self {
        Self::Tag(hash_of_tag(tag))
    }

    /// Returns whether a purge with this scope affects a response that was stored before the purge.
    pub(crate) fn covers(self, stored: &Stored) -> bool {
        let url = url_of(&stored.key);
        match self {
            Self::All => true,
            Self::Site(site) => [site_of(url), host_of(url)].contains(&site),
            Self::Url { key, .. } => Key::of(url) == key,
            Self::Tag(tag) => tags(&stored.head.headers).any(|found| found == tag),
            Self::Prefix { length, hash, .. } => {
                url.get(..usize::from(length)).is_some_and(|beginning| xxh3_128(beginning) == hash)
            }
        }
    }

    fn prefix(text: &[u8]) -> Result<Self, BadName> {
        match u16::try_from(text.len()) {
            Ok(length) if text.len() <= MAX_NAME_BYTES => {
                Ok(Self::Prefix { length, hash: xxh3_128(text), site: site_of(text) })
            }
            _ => Err(BadName::TooLong),
        }
    }
}

fn hash_of_tag(tag: &[u8]) -> u128 {
    xxh3_128(&tag.to_ascii_lowercase())
}

/// Returns the hashes of a response's tags.
pub(crate) fn tags(headers: &Headers) -> impl Iterator<Item = u128> {
    names(headers).map(hash_of_tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(named: Named, one: &str, other: &str, same: bool) {
        let (a, b) = (named.scopes(one), named.scopes(other));
        assert!(a.is_ok() && b.is_ok(), "{one}: {a:?}, {other}: {b:?}");
        assert_eq!(a == b, same, "{one} and {other}");
    }

    #[test]
    fn names_are_compared_as_cache_keys_are() {
        check(Named::Url, "HTTP://A.test:80/x", "http://a.test/x", true);
        check(Named::Url, "http://a.test/x#part", "http://a.test/x", true);
        check(Named::Url, "http://a.test/x", "http://a.test/X", false);
        check(Named::Url, "https://a.test/x", "http://a.test/x", false);
        check(Named::Prefix, "http://a.test", "http://a.test/", true);
        check(Named::Prefix, "http://a.test/x", "http://a.test/x/", false);
        check(Named::Url, "http://a.test./x", "http://a.test/x", true);
        check(Named::Site, "http://a.test", "http://A.test./", true);
        check(Named::Site, "http://a.test:80", "http://A.test.:80/", true);
        check(Named::Site, "http://a.test", "http://A.test:80/", false);
        check(Named::Site, "a.test:8080", "a.test", false);
        check(Named::Tag, "Shoes", "shoes ", true);
        check(Named::Tag, "shoes", "hats", false);
    }

    #[test]
    fn a_site_without_a_scheme_is_two() {
        let both = Named::Site.scopes("a.test").expect("a site");
        assert_eq!(both.len(), 2);
        assert_eq!(Named::Site.scopes("http://a.test").expect("a site"), both[..1]);
        assert_eq!(Named::Site.scopes("https://a.test.").expect("a site"), both[1..]);
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_would_be_right() {
        let long = "x".repeat(MAX_NAME_BYTES);
        let cases = [
            (Named::Url, "style.css", BadName::NotAUrl),
            (Named::Url, "ftp://a.test/", BadName::NotAUrl),
            (Named::Prefix, "/style", BadName::NotAUrl),
            (Named::Prefix, &format!("http://a.test/{long}"), BadName::TooLong),
            (Named::Site, "a.test/path", BadName::NotASite),
            (Named::Site, "gopher://a.test", BadName::NotASite),
            (Named::Site, "", BadName::NotASite),
            (Named::Tag, "", BadName::NotATag),
            (Named::Tag, "two words", BadName::NotATag),
            (Named::Tag, "a,b", BadName::NotATag),
            (Named::Tag, &format!("{long}x"), BadName::TooLong),
        ];
        for (named, name, expected) in cases {
            assert_eq!(named.scopes(name), Err(expected), "{named:?} {name:.20}");
        }
    }
}
