//! A *transaction*: a GET or HEAD request in progress, with the methods that answer it from stored
//! responses. An *epoch* is a number that orders the events of a URL: look-ups, fetches and writes.
//! A *watch* is a note that a look-up or fetch of a URL is in progress. While a watch exists, the
//! cache records all writes to the URL.

use crate::answer;
use crate::answer::stored_body::{SMALL_BODY_BYTES, StoredBodySource};
use crate::cache::{CacheKey, Epoch, Stored, StoredBody, Watch};
use crate::client::Sender;
use crate::core::View;
use crate::request::{
    Aborted, Answered, CacheStatus, ErrorReason, Framing, MediaType, Opening, SendFailure,
    SentResponse, UnsentRest, Wanted,
};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::{Multipart, Part, RequestControl, Span};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) enum Selection {
    Whole,
    Range(Span),
    Ranges(Multipart),
}

pub(crate) struct Transaction<'a, 'client> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) sender: &'a mut Sender<'client>,
    pub(crate) wanted: &'a Wanted<'a>,
    pub(crate) control: RequestControl,
    /// Time of the request's arrival, as an epoch: a number that orders the events of the URL.
    pub(crate) came: Epoch,
    /// Start of the current look-up in the cache, as an epoch (a number that orders the URL's
    /// events).
    pub(crate) looked: Epoch,
    /// A watch on the URL: the cache records all writes to the URL since the current look-up began.
    /// `None` if this look-up did not read the store.
    pub(crate) store_watch: Option<Watch>,
}

impl<'a, 'client> Transaction<'a, 'client> {
    pub(crate) fn begin(
        worker: &'a Rc<Worker>,
        sender: &'a mut Sender<'client>,
        wanted: &'a Wanted<'a>,
    ) -> Self {
        let control = RequestControl::of(&View(&wanted.head.headers));
        let came = worker.shared.cache.epoch(&wanted.key);
        Self { worker, sender, wanted, control, came, looked: came, store_watch: None }
    }

    /// Begins another look-up in the cache for the same request.
    pub(crate) fn look_again(&mut self) {
        self.store_watch = None;
        self.looked = self.worker.shared.cache.epoch(&self.wanted.key);
    }

    /// Returns a watch on the URL: the cache records all writes to the URL since the current
    /// look-up began.
    pub(crate) fn watch(&self) -> Watch {
        let begin = || self.worker.shared.cache.watch_since(&self.wanted.key, self.looked);
        self.store_watch.clone().unwrap_or_else(begin)
    }

    /// Notes the operator's rules that apply to the response with which this request is answered.
    /// `length` is the length of the whole body in bytes, if known.
    pub(crate) fn note_rules(&self, head: &ResponseHead, length: Option<u64>) {
        let rules = &self.worker.settings().rules;
        let response = (&*self.wanted.key.text, head, length);
        self.sender.with_rules(|applied| rules.note_response(response, true, applied));
    }

    /// Returns true if the client accepts neither a stored response nor the response of a flight
    /// (shared fetch) that began before this request.
    pub(crate) fn wants_anew(&self) -> bool {
        self.control.no_cache || self.control.max_age == Some(0)
    }

    pub(crate) async fn error(&mut self, reason: ErrorReason) -> Result<Answered, Aborted> {
        answer::error(self.worker, self.sender, self.wanted.options, reason).await
    }

    /// Tells another node that this node has no stored response.
    pub(crate) async fn no_stored_response(&mut self) -> Result<Answered, Aborted> {
        let outcome = CacheStatus::Local { detail: "not-stored" };
        let head = ResponseHead::new(504);
        answer::local(self.sender, self.wanted.options, head, outcome, Bytes::new()).await
    }

    /// Sends a 304 with the header fields `fields`, because the client already has the response.
    pub(crate) async fn not_modified(
        &mut self,
        fields: &Headers,
        age: u64,
        outcome: CacheStatus,
    ) -> Result<Answered, Aborted> {
        const KEPT: [&str; 8] = [
            "cache-control",
            "content-location",
            "date",
            "etag",
            "expires",
            "vary",
            "via",
            "last-modified",
        ];
        let mut headers = fields.clone();
        headers.retain(|name, _| KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name)));
        let opening = Opening {
            status: 304,
            reason: b"Not Modified",
            headers: &headers,
            wire: None,
            age: Some(age),
            varies: self.worker.varies_by_coding(200, fields, None),
            outcome,
            framing: Framing::Empty,
        };
        let connection = self.sender.begin(self.wanted.options, opening);
        self.sender.finish(Bytes::new()).await?;
        let media_type = MediaType::default();
        let response = SentResponse { outcome, status: 304, body_bytes: 0, media_type };
        Ok(Answered { connection, response })
    }

    fn varies(&self, stored: &Stored) -> bool {
        let ResponseHead { status, headers, .. } = &*stored.head;
        self.worker.varies_by_coding(*status, headers, Some(stored.length))
    }

    /// Sends a 416, because the requested range is outside the stored response of `length` bytes.
    pub(crate) async fn unsatisfiable(
        &mut self,
        length: u64,
        outcome: CacheStatus,
    ) -> Result<Answered, Aborted> {
        let mut head = ResponseHead::new(416);
        head.headers.append("Content-Range", format!("bytes */{length}"));
        answer::local(self.sender, self.wanted.options, head, outcome, Bytes::new()).await
    }

    /// Begins an answer from a stored response: the whole body or one range. The caller must send
    /// the bytes. If the stored response is partial (a 206), it must contain the range.
    pub(crate) fn begin_stored(
        &mut self,
        stored: &Stored,
        range: Option<Span>,
        age: u64,
        outcome: CacheStatus,
    ) -> UnsentRest {
        let options = self.wanted.options;
        // `begin` is the position of the first stored byte in the whole body. `complete` is the
        // length of the whole body.
        let is_part = stored.head.status == 206;
        let part = is_part.then(|| Part::of(&View(&stored.head.headers))).flatten();
        let (begin, complete) = part.map_or((0, stored.length), |part| (part.first, part.complete));
        let (first, end) = range.map_or((0, stored.length), |span| (span.first, span.last + 1));
        let mut opening = Opening {
            status: stored.head.status,
            reason: &stored.head.reason,
            headers: &stored.head.headers,
            wire: Some(&stored.wire),
            age: Some(age),
            varies: self.varies(stored),
            outcome,
            framing: Framing::Length(end - first),
        };
        let of_range;
        if range.is_some() {
            let mut headers = without_content_range(&stored.head.headers);
            let content_range = format!("bytes {first}-{}/{complete}", end - 1);
            headers.append("Content-Range", content_range);
            of_range = headers;
            opening = Opening {
                status: 206,
                reason: b"Partial Content",
                headers: &of_range,
                wire: None,
                ..opening
            };
        }
        let is_empty = matches!(opening.status, 204 | 304);
        if is_empty {
            opening.framing = Framing::Empty;
        }
        let connection = self.sender.begin(options, opening);
        let body_bytes = if options.head_only || is_empty { 0 } else { end - first };
        let media_type = MediaType::of(stored.head.headers.get("content-type"));
        let response = SentResponse { outcome, status: opening.status, body_bytes, media_type };
        let answered = Answered { connection, response };
        UnsentRest { at: first - begin, end: end - begin, opened: false, answered }
    }

    /// Begins an answer with several ranges (`multipart/byteranges`, RFC 9110 §15.3.7.2).
    fn begin_ranges(
        &mut self,
        stored: &Stored,
        layout: &Multipart,
        age: u64,
        outcome: CacheStatus,
    ) -> UnsentRest {
        let mut headers = without_content_range(&stored.head.headers);
        headers.set("Content-Type", layout.content_type());
        let opening = Opening {
            status: 206,
            reason: b"Partial Content",
            headers: &headers,
            wire: None,
            age: Some(age),
            varies: self.varies(stored),
            outcome,
            framing: Framing::Length(layout.length()),
        };
        let connection = self.sender.begin(self.wanted.options, opening);
        let media_type = MediaType::of(headers.get("content-type"));
        let body_bytes = layout.length();
        let response = SentResponse { outcome, status: 206, body_bytes, media_type };
        let answered = Answered { connection, response };
        UnsentRest { at: 0, end: stored.length, opened: true, answered }
    }

    pub(crate) async fn stored(
        &mut self,
        stored: Arc<Stored>,
        selection: Selection,
        age: u64,
        outcome: CacheStatus,
    ) -> Result<Answered, SendFailure> {
        let rest = match &selection {
            Selection::Whole => self.begin_stored(&stored, None, age, outcome),
            Selection::Range(span) => self.begin_stored(&stored, Some(*span), age, outcome),
            Selection::Ranges(layout) => self.begin_ranges(&stored, layout, age, outcome),
        };
        if rest.answered.response.body_bytes == 0 {
            self.sender.finish(Bytes::new()).await?;
            return Ok(rest.answered);
        }
        match (&stored.body, &selection) {
            (StoredBody::Whole(body), Selection::Whole | Selection::Range(_))
                if body.len() <= SMALL_BODY_BYTES =>
            {
                let position = |at: u64| usize::try_from(at).unwrap_or(body.len());
                self.sender.finish(body.slice(position(rest.at)..position(rest.end))).await?;
                Ok(rest.answered)
            }
            _ => Box::pin(self.send_body(stored, selection, rest)).await,
        }
    }

    /// Sends the body of an answer whose head is already sent or buffered. The caller uses this
    /// function for large bodies and for answers with several ranges.
    async fn send_body(
        &mut self,
        stored: Arc<Stored>,
        selection: Selection,
        rest: UnsentRest,
    ) -> Result<Answered, SendFailure> {
        let key = CacheKey::new(stored.key.clone());
        let mut body = StoredBodySource::of(self.worker, stored);
        match selection {
            Selection::Ranges(layout) => {
                body.send_ranges(self.worker, self.sender, &key, &layout, rest.answered).await?;
            }
            Selection::Whole | Selection::Range(_) => {
                body.send(self.worker, self.sender, rest).await?;
            }
        }
        self.sender.end(&Headers::new()).await?;
        Ok(rest.answered)
    }
}

/// Removes Content-Range from a complete response, where the field has no meaning (RFC 9110 §14.4).
fn without_content_range(fields: &Headers) -> Headers {
    let mut headers = fields.clone();
    headers.remove("content-range");
    headers
}
