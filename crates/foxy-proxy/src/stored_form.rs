//! A stored response as a record's head: numbers as short as they are, well-known names as one byte, dates as seconds, since for a
//! small object the head is most of what is written. What is read back may be anything: a doubt is a miss.

use crate::purge::Stamp;
use crate::stored::{CacheKey, Entry, Stored, StoredBody, VaryList};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_base::WallTime;
use foxy_http::{ResponseHead, reason_phrase};
use foxy_rules::freshness::StoredTimes;
use foxy_rules::{Policy, Role, Vary, date};

/// First byte of a record's head that describes a response. It, those below and [`NAMES`] change together: what has another one is
/// not known.
const RESPONSE: u8 = 6;
/// As [`RESPONSE`], for one that its targeted field governs.
const TARGETED_RESPONSE: u8 = 7;
/// First byte of one that lists the Vary names of a URL.
const VARIES: u8 = 8;

/// Names that are written as their place here, as they stand or in lower case.
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

/// The end of the year 9999, in seconds: later ones have no such form.
const LAST_DATE: u64 = 253_402_300_799;

/// The record's head for a response.
#[must_use]
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

/// The record's head for a list of Vary names.
#[must_use]
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

/// Reads a record back, of a response with the lifetime that `negative_lifetime` gives it. `None` when it is not of this
/// form, or belongs to another key.
#[must_use]
pub fn decode(key: &CacheKey, mut head: Bytes, body: Bytes, negative_lifetime: u64) -> Option<Entry> {
    let kind = head.try_get_u8().ok()?;
    let text = take_bytes(&mut head)?;
    if text != key.text {
        return None;
    }
    match kind {
        RESPONSE | TARGETED_RESPONSE => {
            let role = if kind == RESPONSE { Role::Proxy } else { Role::Gateway };
            decode_response(text, Policy { role, negative_lifetime }, head, body)
                .map(|stored| Entry::Response(Box::new(stored)))
        }
        VARIES => {
            let salt = head.try_get_u64().ok()?;
            let mut names = Vec::new();
            while head.has_remaining() {
                names.push(String::from_utf8(take_bytes(&mut head)?.to_vec()).ok()?);
            }
            Some(Entry::Varies(text, VaryList { vary: Vary::from_names(names), salt }))
        }
        _ => None,
    }
}

fn decode_response(key: Bytes, policy: Policy, mut head: Bytes, body: Bytes) -> Option<Stored> {
    let received = WallTime(take_number(&mut head)?);
    let initial_age = take_number(&mut head)?;
    let begun = Stamp { era: head.try_get_u64().ok()?, moment: take_number(&mut head)? };
    let length = take_number(&mut head)?;
    let fill = take_number(&mut head)?;
    let status = take_number(&mut head).filter(|status| (200..600).contains(status))?;
    let mut response = ResponseHead::new(u16::try_from(status).ok()?);
    if let Some(length) = take_number(&mut head)?.checked_sub(1) {
        let reason = take(&mut head, length)?;
        response.reason = (!reason.iter().any(|byte| matches!(byte, b'\r' | b'\n'))).then_some(reason)?;
    }
    while head.has_remaining() {
        let name = take_name(&mut head)?;
        let value = take_value(&mut head)?;
        response.headers.try_append(std::str::from_utf8(&name).ok()?, &value).ok()?;
    }
    let body = match fill {
        0 if body.len() as u64 == length => StoredBody::Whole(body),
        0 => return None,
        fill => StoredBody::Parts { fill },
    };
    let times = StoredTimes { received, initial_age };
    Some(Stored::new(key, response, policy, times, length, body).begun(begun))
}

/// A name that is known is its place, from 1 on, doubled, and one less where it is in lower case; another one is 0 and then itself.
fn put_name(out: &mut BytesMut, name: &[u8]) {
    match known(name).map(|place| (NAMES[place].as_bytes(), place as u64 + 1)) {
        Some((known, place)) if known == name => put_number(out, 2 * place),
        Some((_, place)) if !name.iter().any(u8::is_ascii_uppercase) => put_number(out, 2 * place - 1),
        _ => {
            put_number(out, 0);
            put_bytes(out, name);
        }
    }
}

/// For each length the places of the names that have it, as bits.
const OF_LENGTH: [u64; 64] = {
    let (mut places, mut place) = ([0; 64], 0);
    while place < NAMES.len() {
        places[NAMES[place].len()] |= 1 << place;
        place += 1;
    }
    places
};

/// The place of a name, in any case.
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

fn take_name(from: &mut Bytes) -> Option<Bytes> {
    let Some(number) = take_number(from)?.checked_sub(1) else { return take_bytes(from) };
    let name = NAMES.get(usize::try_from(number / 2).ok()?)?;
    Some(if number % 2 == 0 { name.to_ascii_lowercase().into() } else { Bytes::from_static(name.as_bytes()) })
}

/// A date is its seconds, doubled, and one more; anything else its length, doubled, and then itself.
fn put_value(out: &mut BytesMut, value: &[u8]) {
    if let Some(time) = date::exact(value) {
        put_number(out, 2 * time.seconds() + 1);
    } else {
        put_number(out, 2 * value.len() as u64);
        out.put_slice(value);
    }
}

fn take_value(from: &mut Bytes) -> Option<Bytes> {
    let number = take_number(from)?;
    if number % 2 == 0 {
        return take(from, number / 2);
    }
    let date = || date::preferred(WallTime::from_seconds(number / 2));
    (number / 2 <= LAST_DATE).then(|| Bytes::copy_from_slice(&date()))
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.put_slice(bytes);
}

fn take_bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = take_number(from)?;
    take(from, length)
}

fn take(from: &mut Bytes, length: u64) -> Option<Bytes> {
    let length = usize::try_from(length).ok().filter(|&length| length <= from.len())?;
    Some(from.split_to(length))
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow (LEB128).
fn put_number(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.put_u8((number & 0x7f) as u8);
}

fn take_number(from: &mut Bytes) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = from.try_get_u8().ok()?;
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
