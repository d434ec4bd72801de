//! Encodes a stored response as the head of a record of the store. In small records the head is the
//! largest part, so the encoding is compact. Numbers have variable length, well-known names take
//! one byte, and dates are stored as seconds. If the decoder finds anything unexpected, the record
//! counts as a cache miss.

use crate::cache::part_keys::PartKeys;
use crate::cache::purge::{PurgeBook, Stamp};
use crate::cache::stored::{CacheKey, Entry, Stored, StoredBody, VaryList};
use crate::core::rules::Policies;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_base::WallTime;
use foxy_http::{HeadText, OwnName, ResponseHead, reason_phrase};
use foxy_rules::freshness::StoredTimes;
use foxy_rules::{Role, Vary, date};
use foxy_store::Key;
use std::sync::Arc;

/// First byte of a record head that contains a response. A change of the encoding must change the
/// values of `RESPONSE`, `TARGETED_RESPONSE` and `VARIES`. A change of [`NAMES`] changes the
/// encoding. The decoder ignores records with any other first byte.
const RESPONSE: u8 = 6;
/// First byte of the record head if a targeted field (RFC 9213), such as CDN-Cache-Control,
/// controls the caching of the response.
const TARGETED_RESPONSE: u8 = 7;
const VARIES: u8 = 8;

/// Header names that are encoded as an index of this list. The header must be written exactly like
/// this or in lower case.
const NAMES: [&str; 44] = [
    "Date",
    "Content-Type",
    "Cache-Control",
    "ETag",
    "Last-Modified",
    "Expires",
    "Via",
    "Server",
    "Vary",
    "Content-Encoding",
    "Content-Language",
    "Content-Location",
    "Content-Disposition",
    "Content-Security-Policy",
    "Accept-Ranges",
    "Access-Control-Allow-Origin",
    "Access-Control-Allow-Headers",
    "Access-Control-Allow-Methods",
    "Access-Control-Allow-Credentials",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    "Alt-Svc",
    "CDN-Cache-Control",
    "Cache-Status",
    "Cross-Origin-Embedder-Policy",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Digest",
    "Link",
    "Location",
    "Permissions-Policy",
    "Pragma",
    "Referrer-Policy",
    "Report-To",
    "NEL",
    "Server-Timing",
    "Set-Cookie",
    "Strict-Transport-Security",
    "Surrogate-Control",
    "Timing-Allow-Origin",
    "X-Cache",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-Powered-By",
];

const OWN_NAMES: [OwnName; NAMES.len()] = {
    let (mut names, mut place) = ([OwnName::new(NAMES[0]); NAMES.len()], 0);
    while place < NAMES.len() {
        names[place] = OwnName::new(NAMES[place]);
        place += 1;
    }
    names
};

/// The last second of the year 9999, in seconds since 1970. An HTTP date cannot express later
/// times.
const LAST_DATE_SECONDS: u64 = 253_402_300_799;

/// Number of bytes of HTTP text that the decoder reserves for each byte of a record head. The text
/// is longer than the record head, which has short codes for names and dates.
const TEXT_BYTES_PER_RECORD_BYTE: usize = 3;

pub fn encode_response(stored: &Stored) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.key.len() + stored.wire.len() + 64);
    out.put_u8(if stored.control.targeted { TARGETED_RESPONSE } else { RESPONSE });
    put_bytes(&mut out, &stored.key);
    put_number(&mut out, stored.times.received.0);
    put_number(&mut out, stored.times.initial_age);
    out.put_u64(stored.begun.era);
    put_number(&mut out, stored.begun.moment);
    put_number(&mut out, stored.length);
    put_number(
        &mut out,
        match stored.body {
            StoredBody::Whole(_) => 0,
            StoredBody::Parts { fill } => fill.max(1),
        },
    );
    put_number(&mut out, stored.head.status.into());
    if stored.head.reason == reason_phrase(stored.head.status) {
        put_number(&mut out, 0);
    } else {
        put_number(&mut out, stored.head.reason.len() as u64 + 1);
        out.put_slice(&stored.head.reason);
    }
    for (name, value) in stored.head.headers.raw() {
        put_name(&mut out, name);
        put_value(&mut out, value);
    }
    out.freeze()
}

pub fn encode_varies(key: &CacheKey, list: &VaryList) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(VARIES);
    put_bytes(&mut out, &key.text);
    out.put_u64(list.salt);
    for name in list.vary.names() {
        put_bytes(&mut out, name.as_bytes());
    }
    out.freeze()
}

/// Decodes a record. Returns `None` if the record has another encoding or belongs to another key.
/// `policies` determines the lifetime of the response.
pub fn decode(key: &CacheKey, head: &[u8], body: Bytes, policies: &Policies) -> Option<Entry> {
    let mut head = head;
    let kind = head.try_get_u8().ok()?;
    if take_bytes(&mut head)? != key.text {
        return None;
    }
    match kind {
        RESPONSE | TARGETED_RESPONSE => {
            let role = if kind == RESPONSE { Role::Proxy } else { Role::Gateway };
            let body_of = |fill, length| match fill {
                0 => (body.len() as u64 == length).then_some(StoredBody::Whole(body)),
                fill => Some(StoredBody::Parts { fill }),
            };
            decode_response(key.text.clone(), (role, policies), head, body_of)
                .map(|stored| Entry::Response(Box::new(stored)))
        }
        VARIES => {
            let salt = head.try_get_u64().ok()?;
            let mut names = Vec::new();
            while head.has_remaining() {
                names.push(String::from_utf8(take_bytes(&mut head)?.to_vec()).ok()?);
            }
            Some(Entry::Varies(key.text.clone(), VaryList { vary: Vary::from_names(names), salt }))
        }
        _ => None,
    }
}

/// Decodes a response. `body_of` returns the body, or `None` if it is missing. Its arguments are
/// the random number of the fetch (0 for a body that is not in parts) and the body's length.
fn decode_response(
    key: Bytes,
    (role, policies): (Role, &Policies),
    mut head: &[u8],
    body_of: impl FnOnce(u64, u64) -> Option<StoredBody>,
) -> Option<Stored> {
    let received = WallTime(take_number(&mut head)?);
    let initial_age = take_number(&mut head)?;
    let begun = Stamp { era: head.try_get_u64().ok()?, moment: take_number(&mut head)? };
    let length = take_number(&mut head)?;
    let fill = take_number(&mut head)?;
    let status = take_number(&mut head).filter(|status| (200..600).contains(status))?;
    let mut response = ResponseHead::new(u16::try_from(status).ok()?);
    if let Some(length) = take_number(&mut head)?.checked_sub(1) {
        let reason = take(&mut head, length)?;
        let is_one_line = !reason.iter().any(|byte| matches!(byte, b'\r' | b'\n'));
        response.reason = is_one_line.then(|| Bytes::copy_from_slice(reason))?;
    }
    let mut text = HeadText::new(
        response.status,
        &response.reason,
        TEXT_BYTES_PER_RECORD_BYTE * head.len() + 64,
    );
    while head.has_remaining() {
        take_line(&mut head, &mut text)?;
    }
    let (wire, headers) = text.finish().ok()?;
    response.headers = headers;
    let body = body_of(fill, length)?;
    let times = StoredTimes { received, initial_age };
    let policy = policies.of(role, &key, &response, Some(length));
    Some(Stored::written(key, response, wire, policy, times, length, body).begun(begun))
}

/// The content of a record of the store, described for messages to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordDescription {
    /// The URL. `None` if the record is a part of a large response, because such a record does not
    /// contain its URL.
    pub url: Option<String>,
    /// True if the record is one of several variants of the URL, or the list of the header fields
    /// that distinguish these variants.
    pub is_variant: bool,
    /// Status of the response, or `None` if the record is not a response.
    pub status: Option<u16>,
    /// Length of the response's body in bytes, with all parts.
    pub length: u64,
    /// Time when the response was received.
    pub received: Option<WallTime>,
    /// Time from which on the response is no longer fresh.
    pub expires: Option<WallTime>,
    /// Number of records that contain the body.
    pub parts: u64,
    /// The keys of the records that contain the body. `None` if this record contains it.
    pub part_keys: Option<PartKeys>,
    /// True if the cache may have only some parts of the body.
    pub is_partial: bool,
    /// Effect of the purges in force on the response. `None` if no purge affects it.
    pub purge: Option<PurgeEffect>,
}

impl RecordDescription {
    /// Returns the number of body bytes that the store still has. `has` tells whether the store has
    /// a record.
    pub fn stored_bytes(&self, has: impl Fn(Key) -> bool) -> u64 {
        self.part_keys.map_or(self.length, |keys| keys.stored_bytes(has))
    }
}

/// Effect of a purge on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeEffect {
    /// A hard purge: the proxy does not use the response, although the store still has it.
    Removed,
    /// A soft purge: the response is stale.
    Stale,
    /// This node of a fleet may have missed a purge, so it validates the response before use.
    Unconfirmed,
}

impl PurgeEffect {
    /// Returns the effect as one word, for `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Stale => "stale",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

/// Describes records of a store.
pub struct Describer {
    /// Determines the lifetime of a response.
    pub policies: Policies,
    /// The purges in force. `None` if they are unknown.
    pub purges: Option<Arc<PurgeBook>>,
}

impl Describer {
    /// Describes a record by its head. Returns `None` if the head has another encoding.
    pub fn describe(&self, mut head: &[u8]) -> Option<RecordDescription> {
        let Ok(kind) = head.try_get_u8() else { return Some(RecordDescription::default()) };
        let key = Bytes::copy_from_slice(take_bytes(&mut head)?);
        let role = match kind {
            RESPONSE => Role::Proxy,
            TARGETED_RESPONSE => Role::Gateway,
            VARIES => {
                let url = url_of(&key);
                return Some(RecordDescription { url, is_variant: true, ..Default::default() });
            }
            _ => return None,
        };
        let body_of = |fill, _| match fill {
            0 => Some(StoredBody::Whole(Bytes::new())),
            fill => Some(StoredBody::Parts { fill }),
        };
        let stored = decode_response(key, (role, &self.policies), head, body_of)?;
        Some(stored.described(self.purges.as_deref()))
    }
}

/// Returns the URL of a cache key.
pub fn url_of(key: &[u8]) -> Option<String> {
    let url = key.split(|byte| *byte == b'\n').next();
    url.map(|url| String::from_utf8_lossy(url).into_owned())
}

/// Encodes a header name. The position of a name in [`NAMES`] counts from 1. A name as written there
/// becomes 2 × position. The name in lower case becomes 2 × position - 1. Any other name becomes 0,
/// then the length of the name, then its bytes.
fn put_name(out: &mut BytesMut, name: &[u8]) {
    match known(name).map(|place| (NAMES[place].as_bytes(), place as u64 + 1)) {
        Some((known, place)) if known == name => put_number(out, 2 * place),
        Some((_, place)) if !name.iter().any(u8::is_ascii_uppercase) => {
            put_number(out, 2 * place - 1)
        }
        _ => {
            put_number(out, 0);
            put_bytes(out, name);
        }
    }
}

/// For each length in bytes, the set of the names in [`NAMES`] with this length. Bit `i` of a set
/// stands for `NAMES[i]`.
const OF_LENGTH: [u64; 64] = {
    let (mut places, mut place) = ([0; 64], 0);
    while place < NAMES.len() {
        places[NAMES[place].len()] |= 1 << place;
        place += 1;
    }
    places
};

fn known(name: &[u8]) -> Option<usize> {
    let mut places = *OF_LENGTH.get(name.len())?;
    while places != 0 {
        let place = places.trailing_zeros() as usize;
        if NAMES[place].as_bytes().eq_ignore_ascii_case(name) {
            return Some(place);
        }
        places &= places - 1;
    }
    None
}

fn take_line(from: &mut &[u8], text: &mut HeadText) -> Option<()> {
    let Some(number) = take_number(from)?.checked_sub(1) else {
        let name = take_bytes(from)?;
        return take_value(from, |value| text.line(name, value).ok())?;
    };
    let name = *OWN_NAMES.get(usize::try_from(number / 2).ok()?)?;
    take_value(from, |value| text.own_line(name, number % 2 == 0, value))
}

/// Encodes a header value. A date becomes twice its seconds since 1970, plus one. Any other value
/// becomes twice its length, followed by its bytes.
fn put_value(out: &mut BytesMut, value: &[u8]) {
    if let Some(time) = date::exact(value) {
        put_number(out, 2 * time.seconds() + 1);
    } else {
        put_number(out, 2 * value.len() as u64);
        out.put_slice(value);
    }
}

fn take_value<T>(from: &mut &[u8], use_it: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let number = take_number(from)?;
    if number % 2 == 0 {
        return take(from, number / 2).map(use_it);
    }
    (number / 2 <= LAST_DATE_SECONDS)
        .then(|| use_it(&date::preferred(WallTime::from_seconds(number / 2))))
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.put_slice(bytes);
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(from)?;
    take(from, length)
}

fn take<'a>(from: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    from.split_off(..usize::try_from(length).ok()?)
}

/// Encodes a number with seven bits per byte, the lowest bits first. The highest bit of a byte is
/// set if more bytes follow (LEB128).
fn put_number(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.put_u8((number & 0x7f) as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *from.split_off_first()?;
        let bits = u64::from(byte & 0x7f);
        number |= (bits << shift >> shift == bits).then_some(bits << shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
#[path = "stored_form_tests.rs"]
mod tests;
