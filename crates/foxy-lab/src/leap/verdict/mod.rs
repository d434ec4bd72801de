//! Compares a proxy's answer with the reference, the answer that counts as correct, and gives a
//! verdict (requirement R112 of `foxy figure requirements`). The module uses no socket and no
//! clock.

pub mod fields;
pub(crate) mod judging;
pub(crate) mod leeway;
pub(crate) mod noise;
pub(crate) mod reference;

use super::exchange::body;
use super::exchange::body::Decoding;
use super::{Answer, Framing, PathFailure};
use crate::named::named;
use fields::Difference;
use foxy_http::DecodeError;
use reference::Reference;
use std::fmt;

named! {
    /// The verdict on an answer. The log of the LEAP paper uses these names (Figure 3 of paper 002
    /// in docs/figures.md), except for three that the paper lacks.
    pub enum Verdict {
        /// The answer matches the reference answer.
        Ok = "OK",
        /// The status code differs from the reference answer.
        StatusCodeMismatch = "STATUS_CODE_MISMATCH",
        /// A field is missing or differs, or a field that controls caches was added. Or the header
        /// fields leave doubt where the answer ends.
        HeaderMismatch = "HEADER_MISMATCH",
        /// The body differs from the reference answer.
        BodyMismatch = "BODY_MISMATCH",
        /// The proxy gave no complete HTTP answer. There was no connection, the answer was
        /// truncated, or the bytes are not HTTP.
        Incomplete = "INCOMPLETE",
        /// The answer was not complete within the time limit.
        Timeout = "TIMEOUT",
        /// The answer equals the reference answer of an earlier request for the same URL, or is
        /// older than the reference answer.
        Stale = "STALE",
    }
}

impl Verdict {
    /// Returns the verdict with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

/// The status and the body digest. Together they represent the answer as a user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The status code.
    pub status: u16,
    /// The digest of the decoded body.
    pub digest: u128,
}

/// The fingerprint (status and body digest) and the validators of an answer. Together they identify
/// a version of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The status and the body digest.
    pub print: Fingerprint,
    /// The digest of the validators (`ETag`, `Last-Modified`). `None` if the server changes them in
    /// every answer.
    pub validators: Option<u64>,
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Verdict about the proxy's answer, or about its failure to answer.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub detail: Detail,
}

/// Judges a proxy's answer or failure by comparison with the reference. Returns an error if no
/// verdict is possible. Values of fields for which `ignored` returns true may differ. If an answer
/// has several faults, the first in this order decides: stale, status, body, fields.
pub fn judge(
    outcome: &Result<Answer, PathFailure>,
    reference: Result<&Reference<'_>, Unjudged>,
    ignored: &dyn Fn(&str) -> bool,
) -> Result<Finding, Unjudged> {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(failure) => {
            let verdict = if *failure == PathFailure::Timeout {
                Verdict::Timeout
            } else {
                Verdict::Incomplete
            };
            return Ok(Finding { verdict, detail: Detail::Failed(*failure) });
        }
    };
    let reference = reference?;
    let right = reference.answer;
    let found = |verdict, detail| Ok(Finding { verdict, detail });
    let (own, expected) = (answer.fingerprint(), right.fingerprint());
    if own != expected && leeway::may_differ(reference.asked, right, answer) {
        return Err(Unjudged::MayDiffer);
    }
    if own != expected && reference.earlier.iter().any(|earlier| earlier.print == own) {
        return found(Verdict::Stale, Detail::SeenBefore);
    }
    if own.digest != expected.digest && own.status == expected.status && is_older(answer, right) {
        return found(Verdict::Stale, Detail::OlderThanReference);
    }
    if own.status != expected.status {
        return found(Verdict::StatusCodeMismatch, Detail::Status(expected.status, own.status));
    }
    if answer.decoding == Decoding::Broken && right.decoding != Decoding::Broken {
        return found(Verdict::BodyMismatch, Detail::BrokenCoding);
    }
    if own.digest != expected.digest {
        return found(Verdict::BodyMismatch, Detail::Body(right.length, answer.length));
    }
    if answer.framing == Framing::Ambiguous && right.framing == Framing::Plain {
        return found(Verdict::HeaderMismatch, Detail::AmbiguousFraming);
    }
    if let Some(difference) = body::coding_difference(answer, right) {
        return found(Verdict::HeaderMismatch, Detail::Field(difference));
    }
    let reduced = (right.status == 304).then(|| fields::of_304(&right.headers, &answer.headers));
    let (expected, own) = reduced
        .as_ref()
        .map_or((&right.headers, &answer.headers), |(expected, own)| (expected, own));
    match fields::difference(expected, reference.source, own, ignored).filter(|_| reference.fields)
    {
        Some(_)
            if fields::versions_differ(&right.headers, &answer.headers, ignored)
                && reference.earlier.contains(&answer.version()) =>
        {
            found(Verdict::Stale, Detail::SeenBefore)
        }
        Some(difference) => found(Verdict::HeaderMismatch, Detail::Field(difference)),
        None => found(Verdict::Ok, Detail::None),
    }
}

/// Whether both answers have a `Last-Modified` date, and that of `answer` is earlier than that of
/// `right`.
fn is_older(answer: &Answer, right: &Answer) -> bool {
    let changed = |answer: &Answer| {
        answer
            .headers
            .get_str("last-modified")
            .and_then(|date| httpdate::parse_http_date(date).ok())
    };
    matches!((changed(answer), changed(right)), (Some(own), Some(other)) if own < other)
}

named! {
    /// The reason why an answer receives no verdict.
    pub enum Unjudged {
        /// There is nothing to compare with: the origin sent no complete answer. Or the run has no
        /// direct path, and no majority of proxies agrees.
        NoReference = "no_reference",
        /// Both the proxy and the origin failed.
        OriginFailed = "origin_failed",
        /// The origin gave different answers to two equal requests, so the proxy's answer may be
        /// right.
        OriginVaries = "origin_varies",
        /// Another proxy gave the same answer, so both proxies may have it from the origin.
        SeenElsewhere = "seen_elsewhere",
        /// The method is unsafe, so each copy of the request may change the origin. The answers may
        /// differ for this reason.
        NotRepeated = "not_repeated",
        /// A correct cache may answer differently from the origin, because of a condition, a range
        /// or `only-if-cached`.
        MayDiffer = "may_differ",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    None,
    Failed(PathFailure),
    NotHttp(DecodeError),
    /// The status of the reference answer, then the status of the judged answer.
    Status(u16, u16),
    Field(Difference),
    /// The body length of the reference answer, then the body length of the judged answer.
    Body(u64, u64),
    /// The body belongs to another URL. The value is the key (method, URL, fields and body) of that
    /// request.
    BodyOf(String),
    BrokenCoding,
    AmbiguousFraming,
    /// The answer equals the reference (the answer that counted as correct) of an earlier request
    /// for the same URL.
    SeenBefore,
    OlderThanReference,
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Failed(failure) => f.write_str(failure.name()),
            Self::NotHttp(error) => {
                write!(f, "{}: {}", PathFailure::NotHttp.name(), error.description())
            }
            Self::Status(expected, found) => write!(f, "status {found} instead of {expected}"),
            Self::Field(difference) => difference.fmt(f),
            Self::Body(expected, found) if expected == found => {
                write!(f, "the length is right ({found} bytes), but the content differs")
            }
            Self::Body(expected, found) => write!(f, "{found} bytes instead of {expected}"),
            Self::BodyOf(url) => write!(f, "the body of {url}"),
            Self::BrokenCoding => f.write_str("the content coding is broken"),
            Self::AmbiguousFraming => f.write_str("Content-Length beside Transfer-Encoding"),
            Self::SeenBefore => f.write_str("the answer that was right for an earlier request"),
            Self::OlderThanReference => f.write_str("Last-Modified is older than the reference's"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fields::ReferenceSource;
    use super::*;
    use crate::leap::Message;
    use crate::leap::tests::answer;

    fn reference<'a>(
        asked: &'a Message,
        answer: &'a Answer,
        earlier: &'a [Version],
    ) -> Reference<'a> {
        let (source, fields) = (ReferenceSource::Origin, true);
        Reference { asked, path: 0, answer, source, fields, steady: false, earlier }
    }

    fn check(own: &Answer, right: &Answer, earlier: &[Version], expected: Verdict) {
        let asked = Message::default();
        let reference = reference(&asked, right, earlier);
        let finding = judge(&Ok(own.clone()), Ok(&reference), &|_| false).expect("judged");
        assert_eq!(finding.verdict, expected, "{}", finding.detail);
    }

    #[test]
    fn of_several_faults_the_gravest_is_named() {
        let right = answer(200, b"new", &[("ETag", "\"2\"")]);
        let old = answer(200, b"old", &[("ETag", "\"1\"")]);
        check(&right, &right, &[], Verdict::Ok);
        check(&old, &right, &[], Verdict::BodyMismatch);
        check(&old, &right, &[old.version()], Verdict::Stale);
        check(&answer(200, b"new", &[]), &right, &[], Verdict::HeaderMismatch);
        check(&answer(404, b"gone", &[]), &right, &[], Verdict::StatusCodeMismatch);
        check(&right, &right, &[right.version()], Verdict::Ok);
    }

    #[test]
    fn the_same_body_with_the_validators_of_an_earlier_reference_is_stale() {
        let tagged = |tag: &str| answer(200, b"same", &[("Cache-Control", tag), ("ETag", tag)]);
        let (old, new) = (tagged("W/\"1\""), tagged("\"2\""));
        check(&old, &new, &[old.version(), new.version()], Verdict::Stale);
        check(&old, &new, &[new.version()], Verdict::HeaderMismatch);
        let lost = answer(200, b"same", &[("ETag", "\"2\"")]);
        check(&lost, &new, &[lost.version()], Verdict::HeaderMismatch);
        let earlier = &[old.version()];
        let asked = Message::default();
        let reference = reference(&asked, &new, earlier);
        let judged = judge(&Ok(old), Ok(&reference), &|name| name == "etag");
        assert_eq!(
            judged.map(|finding| finding.verdict),
            Ok(Verdict::HeaderMismatch),
            "its tags are noise"
        );
    }

    #[test]
    fn content_codings_may_differ_where_both_are_undone() {
        let coded = |coding: &str, decoding| Answer {
            decoding,
            ..answer(200, b"a", &[("Content-Encoding", coding)][..usize::from(!coding.is_empty())])
        };
        let plain = coded("", Decoding::Undone);
        let (gzip, br) = (coded("gzip", Decoding::Undone), coded("br", Decoding::Kept));
        let many = coded("gzip, gzip", Decoding::Kept);
        check(&gzip, &plain, &[], Verdict::Ok);
        check(&coded("BR ,", Decoding::Kept), &br, &[], Verdict::Ok);
        for (own, right) in [(&br, &plain), (&plain, &br), (&many, &gzip), (&many, &br)] {
            check(own, right, &[], Verdict::HeaderMismatch);
        }
        let broken = coded("gzip", Decoding::Broken);
        check(&broken, &plain, &[], Verdict::BodyMismatch);
        check(&broken, &broken, &[], Verdict::Ok);
        check(&plain, &broken, &[], Verdict::HeaderMismatch);
    }

    #[test]
    fn another_body_that_says_it_is_older_is_stale() {
        let dated = |body: &[u8], day| {
            answer(200, body, &[("Last-Modified", &format!("Tue, 0{day} Nov 1994 08:49:37 GMT"))])
        };
        check(&dated(b"a", 1), &dated(b"b", 8), &[], Verdict::Stale);
        check(&dated(b"b", 8), &dated(b"a", 1), &[], Verdict::BodyMismatch);
    }

    #[test]
    fn a_failure_needs_no_reference_and_an_answer_does() {
        let none = Err(Unjudged::NoReference);
        let verdict =
            |failure| judge(&Err(failure), none, &|_| false).map(|finding| finding.verdict);
        assert_eq!(verdict(PathFailure::Timeout), Ok(Verdict::Timeout));
        assert_eq!(verdict(PathFailure::Closed), Ok(Verdict::Incomplete));
        assert_eq!(judge(&Ok(answer(200, b"", &[])), none, &|_| false), Err(Unjudged::NoReference));
    }

    #[test]
    fn an_answer_that_a_cache_may_give_by_itself_is_not_judged() {
        let fields = [("Cache-Control", "only-if-cached".as_bytes())].into_iter().collect();
        let asked = &Message { fields, ..Message::default() };
        let right = answer(200, b"", &[]);
        let reference = reference(asked, &right, &[]);
        let judged = judge(&Ok(answer(504, b"none", &[])), Ok(&reference), &|_| false);
        assert_eq!(judged, Err(Unjudged::MayDiffer));
    }

    #[test]
    fn a_304_of_a_caches_own_need_not_repeat_all_of_the_origins() {
        let origins = answer(304, b"", &[("ETag", "\"1\""), ("Content-Type", "text/plain")]);
        check(&answer(304, b"", &[("ETag", "\"1\"")]), &origins, &[], Verdict::Ok);
        check(&answer(304, b"", &[]), &origins, &[], Verdict::HeaderMismatch);
    }

    #[test]
    fn names_read_back() {
        for (index, verdict) in Verdict::ALL.into_iter().enumerate() {
            assert_eq!((verdict as usize, Verdict::named(verdict.name())), (index, Some(verdict)));
        }
    }
}
