//! The coded form (such as gzip) of a stored response: its head and key, and the decision whether
//! it answers a request. The functions do no IO.

use crate::cache::stored::text_for_client;
use crate::cache::{CacheKey, Stored, StoredBody};
use crate::core::View;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::coding::{
    Acceptance, Coding, Compression, FIELDS_OF_UNCODED, NotCoded, REVISION, acceptance, coded_tag,
    forbids_transform, varies_by_coding,
};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// A content coding (such as gzip) that the proxy may apply to the answer of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenCoding {
    pub(crate) coding: Coding,
    /// Whether the client also accepts the response without coding.
    pub(crate) uncoded: bool,
}

/// Decides whether the coded form (such as gzip) of a stored response answers a request. `is_range`
/// is true if the request asks for a range, which comes from the response without coding if the
/// client accepts it.
pub(crate) fn chosen(
    compression: &Compression,
    request: &Headers,
    stored: &Stored,
    is_range: bool,
) -> Result<ChosenCoding, NotCoded> {
    let Acceptance { coding, uncoded } = acceptance(&View(request), &compression.codings);
    let coding = coding.ok_or(NotCoded::NotAccepted)?;
    if forbids_transform(&View(request)) {
        return Err(NotCoded::NoTransform);
    }
    let ResponseHead { status, headers, .. } = &*stored.head;
    if let Some(why) = compression.why_never(*status, &View(headers), Some(stored.length)) {
        return Err(why);
    }
    if uncoded && is_range {
        return Err(NotCoded::Range);
    }
    Ok(ChosenCoding { coding, uncoded })
}

/// Returns the head of the coded form (such as gzip) of a response with the head `head`.
pub(crate) fn coded_head(head: &ResponseHead, coding: Coding) -> ResponseHead {
    let tag = Some(&head.headers).filter(|headers| headers.get_all("etag").count() == 1);
    let tag = tag.and_then(|headers| coded_tag(headers.get("etag")?, coding));
    let mut head = head.clone();
    head.headers.remove_all(FIELDS_OF_UNCODED);
    head.headers.append("Content-Encoding", coding.name());
    if !varies_by_coding(&View(&head.headers)) {
        head.headers.append("Vary", "Accept-Encoding");
    }
    // Without a strong tag, the client could use Last-Modified in If-Range. But the response
    // without coding has the same Last-Modified and other bytes. So the coded form has no
    // Last-Modified.
    if !tag.as_ref().is_some_and(|tag| tag.starts_with(b"\"")) {
        head.headers.remove("last-modified");
    }
    if let Some(tag) = tag {
        head.headers.append("ETag", tag);
    }
    head
}

/// The suffix of a coded form's cache key (such as that of a gzip form) begins with this text.
const CODED: &str = "\ncoded ";

/// Returns whether a cache key is that of a coded form (such as gzip).
pub(crate) fn is_coded(key: &[u8]) -> bool {
    key.windows(CODED.len()).any(|part| part == CODED.as_bytes())
}

/// Returns the key of the coded form (such as gzip) of a stored response. The key depends on the
/// body, so a coded form is never found for another body.
pub(crate) fn coded_key(stored: &Stored, coding: Coding) -> CacheKey {
    let body = match &stored.body {
        StoredBody::Whole(body) => format!("{:032x}", xxh3_128(body)),
        StoredBody::Parts { fill } => format!("in parts {fill:016x}"),
    };
    let name = format!("{CODED}{} {body} {coding} {REVISION}", stored.length);
    CacheKey::new([&stored.key[..], name.as_bytes()].concat())
}

/// Returns the coded form (such as gzip) of a stored response. The head, key and body of the coded
/// form are the arguments, and `length` is the length of this body in bytes. All other values come
/// from the stored response.
pub(crate) fn coded_form(
    stored: &Stored,
    head: &ResponseHead,
    key: Bytes,
    body: StoredBody,
    length: u64,
) -> Stored {
    let (wire, head) = head.written();
    let wire = text_for_client(&head).unwrap_or(wire);
    Stored { key, head: Arc::new(head), wire, length, body, ..stored.clone() }
}
