//! Creates requests for origins from client requests.

use crate::cache::Stored;
use crate::core::View;
use crate::upstream::{Origin, RequestBody, UpstreamRequest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{
    Headers, Method, RequestHead, ResponseHead, accepts_trailers, expects_continue,
    strip_hop_by_hop, upgrade_protocol,
};
use foxy_rules::coding::uncoded_tags;
use foxy_rules::partial::strong_validator;
use foxy_rules::range::range_value;
use foxy_rules::{RangeSpec, Span, UpstreamRange, Validators, upstream_range};

/// Creates the request that forwards the client's request to the origin.
pub(crate) fn forwarded(
    worker: &Worker,
    head: &RequestHead,
    origin: Origin,
    body: RequestBody,
) -> UpstreamRequest {
    let mut headers = end_to_end(worker, head);
    if head.method == Method::Get {
        bound_range(&mut headers);
    }
    if !worker.settings().compression.is_off() {
        restore_tags(&head.method, &mut headers);
    }
    if !expects_continue(head) {
        headers.remove("expect");
    }
    if let Some(protocol) = upgrade_protocol(head.version, &head.headers) {
        headers.append("Connection", "upgrade");
        headers.append("Upgrade", protocol);
    } else if accepts_trailers(&head.headers) {
        headers.append("Connection", "TE");
        headers.append("TE", "trailers");
    }
    if let Some(left) = head.hops_left() {
        headers.set("Max-Forwards", left.saturating_sub(1).to_string());
    }
    UpstreamRequest { origin, method: head.method.clone(), target: target(head), headers, body }
}

/// Creates a GET whose response can be stored. Leaves out the client's conditions and ranges. Adds
/// the validators of the stored response `stale`, if there is one.
pub(crate) fn for_cache(
    worker: &Worker,
    head: &RequestHead,
    origin: Origin,
    stale: Option<&Stored>,
) -> UpstreamRequest {
    let mut headers = end_to_end(worker, head);
    headers.remove_all(["expect", "if-none-match", "if-modified-since", "if-range", "range"]);
    if let Some(stale) = stale {
        let view = View(&stale.head.headers);
        let validators = Validators::of(&view);
        for (name, value) in
            [("If-None-Match", validators.etag), ("If-Modified-Since", validators.last_modified)]
        {
            if let Some(value) = value {
                headers.append(name, value);
            }
        }
    }
    UpstreamRequest {
        origin,
        method: Method::Get,
        target: target(head),
        headers,
        body: RequestBody::none(),
    }
}

/// Creates a GET for the bytes `span`, to store them. If the stored head `of` has a strong
/// validator, adds If-Range. The origin then sends only these bytes if it still has the same
/// response.
pub(crate) fn for_range(
    worker: &Worker,
    head: &RequestHead,
    origin: Origin,
    span: Span,
    of: Option<&ResponseHead>,
) -> UpstreamRequest {
    let mut request = for_cache(worker, head, origin, None);
    request.headers.append("Range", range_value(RangeSpec::Span(span)));
    if let Some(validator) =
        of.and_then(|of| strong_validator(&View(&of.headers)).map(<[u8]>::to_vec))
    {
        request.headers.append("If-Range", validator);
    }
    request
}

/// Creates a GET for the bytes `span`, to store them. The request also validates the stored
/// response.
pub(crate) fn for_validated_range(
    worker: &Worker,
    head: &RequestHead,
    origin: Origin,
    span: Span,
    stored: &Stored,
) -> UpstreamRequest {
    let mut request = for_cache(worker, head, origin, Some(stored));
    request.headers.append("Range", range_value(RangeSpec::Span(span)));
    request
}

/// Returns the range that the proxy requests from the origin, if the client sent a Range field.
pub(crate) fn asked_range(headers: &Headers) -> Option<UpstreamRange> {
    let mut lines = headers.get_all("range");
    let range = lines.next()?;
    Some(if lines.next().is_none() { upstream_range(range) } else { UpstreamRange::Whole })
}

/// Replaces the ETags of compressed responses in If-Match and If-None-Match by the origin's ETags.
/// For GET and HEAD, leaves If-None-Match unchanged. Otherwise the origin's 304 would have another
/// ETag than the client's response.
fn restore_tags(method: &Method, headers: &mut Headers) {
    let is_safe = matches!(method, Method::Get | Method::Head);
    for name in ["If-Match", "If-None-Match"] {
        let tags: Vec<Vec<u8>> = headers.get_all(name).map(uncoded_tags).collect();
        if tags.is_empty() || (is_safe && name == "If-None-Match") {
            continue;
        }
        headers.remove(name);
        tags.iter().for_each(|tags| headers.append(name, tags));
    }
}

/// Rewrites the client's Range field in a standard form. Removes the field if the origin should
/// send the whole body.
fn bound_range(headers: &mut Headers) {
    match asked_range(headers) {
        None | Some(UpstreamRange::Unknown) => {}
        Some(UpstreamRange::One(spec)) => headers.set("Range", range_value(spec)),
        Some(UpstreamRange::Several(value)) => headers.set("Range", value),
        Some(UpstreamRange::Whole) => {
            headers.remove("range");
            headers.remove("if-range");
        }
    }
}

fn end_to_end(worker: &Worker, head: &RequestHead) -> Headers {
    let mut headers = head.headers.clone();
    strip_hop_by_hop(&mut headers);
    if !headers.contains("host")
        && let Some(authority) = head.authority()
    {
        headers.append("Host", authority);
    }
    worker.add_via(head.version, &mut headers);
    if let Some(link) = &worker.settings().upstream.fleet {
        headers.append("CDN-Loop", link.fleet.own().loop_id());
    }
    headers
}

/// Returns the target of a request in origin form.
pub(crate) fn target(head: &RequestHead) -> Bytes {
    head.origin_form()
        .map_or_else(|| Bytes::from_static(b"/"), |target| Bytes::copy_from_slice(&target))
}
