//! A stored response: what the rules need of it, the head as it goes out, and the body or where its parts are.
//! Also its form as a record's head, which is read back with suspicion.

use crate::fields::View;
use crate::purge::{Cleared, Stamp};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foxy_base::WallTime;
use foxy_http::{Headers, ResponseHead, encode};
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::reuse::Stored as Facts;
use foxy_rules::{Policy, ResponseControl, Role, Vary};
use foxy_store::Key;
use xxhash_rust::xxh3::xxh3_128;

/// First byte of a record's head that describes a response; changes with the form.
const RESPONSE: u8 = 4;
/// First byte of one that lists the Vary names of a URL.
const VARIES: u8 = 2;
/// As [`RESPONSE`], for one that its targeted field governs.
const TARGETED_RESPONSE: u8 = 5;

/// What the key of what is known of a URL's response but for the whole ends in.
const PART_NAME: &[u8] = b"\npart";

/// A cache key: the text that is compared, and the hash that finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// `scheme://authority/path?query`, and for a variant its secondary key after a line end.
    pub text: Bytes,
    /// Its name in memory and store.
    pub hash: Key,
}

impl CacheKey {
    /// The key of a text.
    #[must_use]
    pub fn new(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let hash = Key(xxh3_128(&text).to_le_bytes());
        Self { text, hash }
    }

    /// The key of a part of the response under this one. No variant's key is like it: they are longer.
    #[must_use]
    pub fn part(&self) -> Self {
        Self::new([&self.text[..], PART_NAME].concat())
    }

    /// The list a variant's key was made with, given the names it chose by.
    #[must_use]
    pub fn list_of(&self, variant: &Self, vary: Vary) -> Option<VaryList> {
        let mut rest = variant.text.strip_prefix(&self.text[..])?.strip_prefix(b"\n")?;
        Some(VaryList { vary, salt: rest.try_get_u64().ok()? })
    }

    /// The key of one variant under this one.
    #[must_use]
    pub fn variant(&self, list: &VaryList, secondary: &[u8]) -> Self {
        let mut text = BytesMut::from(&self.text[..]);
        text.put_u8(b'\n');
        text.put_u64(list.salt);
        text.put_slice(secondary);
        Self::new(text.freeze())
    }
}

/// The request headers that chose among the responses of a URL. What is stored under another salt is out of reach: a
/// list that was invalidated takes its variants with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryList {
    /// The names.
    pub vary: Vary,
    /// Random, drawn when the list was first made.
    pub salt: u64,
}

/// The body of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// All of it.
    Whole(Bytes),
    /// In the store, as parts of one fill.
    Parts {
        /// The fill's random number.
        fill: u64,
    },
}

/// A stored response.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The whole key text.
    pub key: Bytes,
    /// The response's head, without hop-by-hop fields, Age and framing.
    pub head: ResponseHead,
    /// Status line and header lines as they go out, without Age, Cache-Status, framing and the end of the head.
    pub wire: Bytes,
    /// When it was received.
    pub times: StoredTimes,
    /// Freshness lifetime in seconds.
    pub lifetime: u64,
    /// What its Cache-Control says, or its targeted field.
    pub control: ResponseControl,
    /// Body length in bytes.
    pub length: u64,
    /// The body.
    pub body: StoredBody,
    /// When its fetch began, among the purges.
    pub begun: Stamp,
    /// Up to which purge it is known to be untouched.
    pub cleared: Cleared,
}

impl Stored {
    /// A stored response from a head without hop-by-hop fields, Age and framing. Every purge is about it until it is
    /// said when its fetch began.
    #[must_use]
    pub fn new(
        key: Bytes,
        head: ResponseHead,
        policy: Policy,
        times: StoredTimes,
        length: u64,
        body: StoredBody,
    ) -> Self {
        let view = View(&head.headers);
        let control = ResponseControl::for_role(&view, policy.role);
        let mut wire = BytesMut::with_capacity(head.headers.wire_length() + 64);
        encode::status_line(head.status, &head.reason, &mut wire);
        encode::header_lines(&head.headers, &mut wire);
        Self {
            lifetime: lifetime(head.status, &view, &control, policy.negative_lifetime, times.received, &key)
                .seconds(),
            control,
            wire: wire.freeze(),
            key,
            head,
            times,
            length,
            body,
            begun: Stamp::default(),
            cleared: Cleared::default(),
        }
    }

    /// For whom it was stored, as far as that makes a difference.
    #[must_use]
    pub const fn role(&self) -> Role {
        if self.control.targeted { Role::Gateway } else { Role::Proxy }
    }

    /// The name its body's parts are stored under: its own, or that of the URL whose slices it knows.
    #[must_use]
    pub fn object(&self) -> Key {
        let url = self.key.strip_suffix(PART_NAME).filter(|url| !url.contains(&b'\n'));
        Key(xxh3_128(url.unwrap_or(&self.key)).to_le_bytes())
    }

    /// Whether it is what is known of an object by slices: any of its parts may be absent.
    #[must_use]
    pub fn is_of_slices(&self) -> bool {
        self.head.status == 200
            && self.key.ends_with(PART_NAME)
            && matches!(self.body, StoredBody::Parts { .. })
    }

    /// What the rules ask for.
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        Facts { control: &self.control, lifetime: self.lifetime, times: self.times }
    }

    /// Bytes it takes in memory, about.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let body = match &self.body {
            StoredBody::Whole(body) => body.len(),
            StoredBody::Parts { .. } => 0,
        };
        (self.key.len() + 2 * self.wire.len() + body + 512) as u64
    }
}

/// Removes what is not stored: the previous caches' Age, and the framing, which is made anew for each answer.
pub(crate) fn strip(headers: &mut Headers) {
    headers.remove("age");
    headers.remove("content-length");
}

/// What is found under a key.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A response.
    Response(Box<Stored>),
    /// The names that choose among several.
    Varies(Bytes, VaryList),
}

/// The record's head for a response.
#[must_use]
pub fn encode_response(stored: &Stored) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.key.len() + stored.wire.len() + 64);
    out.put_u8(if stored.control.targeted { TARGETED_RESPONSE } else { RESPONSE });
    put_bytes(&mut out, &stored.key);
    out.put_u64(stored.times.received.0);
    out.put_u64(stored.times.initial_age);
    out.put_u64(stored.begun.era);
    out.put_u64(stored.begun.moment);
    out.put_u64(stored.length);
    out.put_u64(match stored.body {
        StoredBody::Whole(_) => 0,
        StoredBody::Parts { fill } => fill.max(1),
    });
    out.put_u16(stored.head.status);
    put_bytes(&mut out, &stored.head.reason);
    for (name, value) in stored.head.headers.iter() {
        put_bytes(&mut out, name.as_bytes());
        put_bytes(&mut out, value);
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

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

/// Reads a record back, of a response with the lifetime that `negative_lifetime` gives it. `None` when it is not of this
/// form, or belongs to another key: a doubt is a miss.
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
    let received = WallTime(head.try_get_u64().ok()?);
    let initial_age = head.try_get_u64().ok()?;
    let begun = Stamp { era: head.try_get_u64().ok()?, moment: head.try_get_u64().ok()? };
    let length = head.try_get_u64().ok()?;
    let fill = head.try_get_u64().ok()?;
    let status = head.try_get_u16().ok().filter(|status| (200..600).contains(status))?;
    let mut response = ResponseHead::new(status);
    response.reason =
        take_bytes(&mut head).filter(|reason| !reason.iter().any(|byte| matches!(byte, b'\r' | b'\n')))?;
    while head.has_remaining() {
        let name = take_bytes(&mut head)?;
        let value = take_bytes(&mut head)?;
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

fn take_bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(from.try_get_u32().ok()?).ok()?;
    (length <= from.len()).then(|| from.split_to(length))
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
