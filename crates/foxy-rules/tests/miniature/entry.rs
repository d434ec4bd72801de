//! A stored response of the miniature cache. It answers requests with its whole body, with a part
//! of the body, or with 304.

use super::message::{Lines, Request, Response};
use super::{Answer, Source};
use foxy_base::WallTime;
use foxy_rules::freshness::lifetime;
use foxy_rules::reuse::Stored;
use foxy_rules::{
    Conditional, Part, Policy, RangeAnswer, ResponseControl, Span, StoredTimes, Validators, Vary,
    evaluate, merges_into_stored, requested_range,
};

/// The stored fields that the cache includes in a 304.
const IN_A_304: [&str; 8] = [
    "age",
    "cache-control",
    "content-location",
    "date",
    "etag",
    "expires",
    "vary",
    "last-modified",
];

/// A stored response of the miniature cache.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The request that fetched or last confirmed the response.
    pub request: Request,
    /// The header lines of the response, without Age and Content-Length.
    pub fields: Lines,
    pub control: ResponseControl,
    pub lifetime: u64,
    pub times: StoredTimes,
    pub body: Vec<u8>,
    pub status: u16,
    vary: Vary,
}

impl Entry {
    /// Creates the entry for a response. `request` fetched or confirmed the response.
    pub fn new(request: &Request, response: Response, times: StoredTimes, policy: Policy) -> Self {
        let Response { status, mut fields, body } = response;
        fields.remove(&["age", "content-length"]);
        let control = ResponseControl::for_role(&fields, policy.role);
        let lifetime =
            lifetime(status, &fields, &control, &policy, times.received, &request.key()).seconds();
        let vary = Vary::of(&fields).unwrap_or_default();
        Self { request: request.clone(), fields, control, lifetime, times, body, status, vary }
    }

    /// Returns the facts that the rules for reuse need.
    pub fn facts(&self) -> Stored<'_> {
        Stored { control: &self.control, lifetime: self.lifetime, times: self.times }
    }

    /// Returns whether a request with these fields selects this response among the variants of its
    /// URL.
    pub fn fits(&self, request: &Lines) -> bool {
        self.vary.key(request) == self.vary.key(&self.request.fields)
    }

    /// Returns whether the response has a validator, so that the origin can confirm it.
    pub fn can_be_validated(&self) -> bool {
        self.status == 200 && !Validators::of(&self.fields).is_empty()
    }

    /// Returns a copy of the entry, updated with the fields of a 304 or HEAD response that confirms
    /// it (RFC 9111 §3.2).
    pub fn freshened(
        &self,
        request: &Request,
        answer: &Lines,
        times: StoredTimes,
        policy: Policy,
    ) -> Self {
        let merged = answer.0.iter().filter(|(name, _)| merges_into_stored(name, answer));
        let merged: Vec<_> = merged.cloned().collect();
        let mut fields = self.fields.clone();
        fields.remove(&merged.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        fields.0.extend(merged);
        Self::new(
            request,
            Response { status: self.status, fields, body: self.body.clone() },
            times,
            policy,
        )
    }

    /// Answers a matching request with 304, one range, or the whole body.
    pub fn answer(&self, request: &Request, now: WallTime, source: Source) -> Answer {
        let ranged = self.status == 200 && request.method == "GET";
        let range = match requested_range(&request.fields, &self.fields, self.body.len() as u64) {
            range if ranged => range,
            _ => RangeAnswer::Whole,
        };
        self.answer_range(request, range, now, source)
    }

    /// Answers a request for a range from a stored part. Returns `None` if the part does not
    /// contain the range.
    pub fn answer_within(
        &self,
        request: &Request,
        now: WallTime,
        source: Source,
    ) -> Option<Answer> {
        let part = Part::of(&self.fields)?;
        let range = requested_range(&request.fields, &self.fields, part.complete);
        let held = matches!(range, RangeAnswer::Part(span) if part.holds(span.first, span.last));
        held.then(|| self.answer_range(request, range, now, source))
    }

    /// Answers the request that fetched the response, with 304 or the whole body.
    pub fn pass_on(&self, request: &Request) -> Answer {
        self.answer_range(request, RangeAnswer::Whole, self.times.received, Source::Origin)
    }

    fn answer_range(
        &self,
        request: &Request,
        range: RangeAnswer,
        now: WallTime,
        source: Source,
    ) -> Answer {
        let Self { status, mut fields, mut body, .. } = self.clone();
        fields.add("Age", self.times.age(now).to_string());
        let held = evaluate(&request.fields, status, &fields, self.times.received);
        if held == Conditional::NotModified {
            fields
                .0
                .retain(|(name, _)| IN_A_304.iter().any(|kept| kept.eq_ignore_ascii_case(name)));
            return Answer { source, response: Response { status: 304, fields, body: Vec::new() } };
        }
        let part = if status == 206 { Part::of(&fields) } else { None };
        let (begin, complete) =
            part.map_or((0, body.len() as u64), |part| (part.first, part.complete));
        let status = match range {
            RangeAnswer::Whole | RangeAnswer::Several(_) => status,
            RangeAnswer::Part(Span { first, last }) => {
                fields.remove(&["content-range"]);
                fields.add("Content-Range", format!("bytes {first}-{last}/{complete}"));
                let place = |at: u64| usize::try_from(at - begin).expect("within a body");
                body = body[place(first)..=place(last)].to_vec();
                206
            }
            RangeAnswer::Unsatisfiable => {
                fields = Lines(vec![("Content-Range".to_owned(), format!("bytes */{complete}"))]);
                body.clear();
                416
            }
        };
        if status != 204 {
            fields.add("Content-Length", body.len().to_string());
        }
        if request.method == "HEAD" {
            body.clear();
        }
        Answer { source, response: Response { status, fields, body } }
    }
}
