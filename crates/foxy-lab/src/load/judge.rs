//! Judges whether an answer in a load run is correct, and whether a cache sent it. The judgement
//! depends only on the request and the answer.

use crate::load::outcome::Answered;
use crate::load::outcome::ErrorCause;
use foxy_base::WallTime;
use foxy_workload::polymix::requests::Manner;
use foxy_workload::{Content, Request};

/// The number of seconds by which a timestamp in whole seconds may differ from the true time.
const GRAIN: u64 = 1;

/// Returns whether the answer to request `number` came from a cache. Returns the error if the
/// answer is wrong. `begun` is the time at which the client sent the request.
pub fn judge(
    request: &Request,
    number: u64,
    answer: &Answered,
    begun: WallTime,
) -> Result<bool, ErrorCause> {
    let hit = answer.reply_to.is_some_and(|id| id != number);
    match (answer.status, request.manner) {
        (200, _) | (304, Manner::SinceThen) => {}
        (304, Manner::SinceBefore) if has_just_changed(request, begun) => {}
        _ => return Err(ErrorCause::Status),
    }
    let (key, size) = match request.content {
        Content::Object(object, _) => (object.id, object.size),
        Content::Document(document) => (document.key(), document.nature().size),
    };
    let version = match (answer.object, request.content) {
        (Some((other, _)), _) if other != key => return Err(ErrorCause::Foreign),
        (Some((_, version)), _) => version,
        (None, Content::Object(object, _)) => object.version,
        // The cache made this 304 itself, without the header fields that foxy's own origin adds
        // (RFC 9110 §15.4.5). It does not count as a hit.
        (None, Content::Document(_)) if answer.status == 304 => return Ok(false),
        (None, Content::Document(_)) => return Err(ErrorCause::Foreign),
    };
    let expected = if request.manner == Manner::Head || answer.status == 304 { 0 } else { size };
    if answer.length != expected {
        return Err(ErrorCause::Length);
    }
    if answer.wrong_bytes > 0 {
        return Err(ErrorCause::BodyMismatch);
    }
    match (request.content, request.manner) {
        _ if !hit => Ok(false),
        (_, Manner::Reload) => Err(ErrorCause::HitOnReload),
        _ if !request.is_cachable() => Err(ErrorCause::HitOnUncachable),
        (Content::Document(document), _) => {
            let ended = document.nature().life.changed(version + 1);
            if ended + GRAIN < begun.seconds() { Err(ErrorCause::Stale) } else { Ok(true) }
        }
        (Content::Object(object, _), _) if object.version != version => Err(ErrorCause::Stale),
        (Content::Object(..), _) => Ok(true),
    }
}

/// Whether the object changed so shortly before the request that timestamps in whole seconds may
/// not show the change.
fn has_just_changed(request: &Request, begun: WallTime) -> bool {
    let Content::Document(document) = request.content else { return false };
    let life = document.nature().life;
    life.changed(life.version(begun.seconds())) + GRAIN >= begun.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::origin::documents::tests::document;
    use foxy_workload::polymix::content::Document;

    const NOW: u64 = 1_795_000_000;

    fn asked(document: Document, manner: Manner) -> Request {
        Request { content: Content::Document(document), server: 0, manner, repeat: true }
    }

    /// Returns the correct answer for a document. The answer has the request number `reply_to`.
    fn answer(document: Document, reply_to: u64) -> Answered {
        let nature = document.nature();
        let version = nature.life.version(NOW);
        let object = Some((document.key(), version));
        Answered {
            status: 200,
            length: nature.size,
            wrong_bytes: 0,
            reply_to: Some(reply_to),
            object,
        }
    }

    #[test]
    fn an_answer_to_another_request_is_a_hit_where_hits_are_allowed() {
        let (kept, not_kept) = (document(true), document(false));
        let check = |document, manner, reply_to, expected| {
            let found = judge(
                &asked(document, manner),
                7,
                &answer(document, reply_to),
                WallTime::from_seconds(NOW),
            );
            assert_eq!(found, expected, "{document} {manner:?} {reply_to}");
        };
        check(kept, Manner::Basic, 7, Ok(false));
        check(kept, Manner::Basic, 6, Ok(true));
        check(kept, Manner::SinceBefore, 6, Ok(true));
        check(kept, Manner::Reload, 7, Ok(false));
        check(kept, Manner::Reload, 6, Err(ErrorCause::HitOnReload));
        check(kept, Manner::Post, 6, Err(ErrorCause::HitOnUncachable));
        check(not_kept, Manner::Basic, 7, Ok(false));
        check(not_kept, Manner::Basic, 6, Err(ErrorCause::HitOnUncachable));
    }

    #[test]
    fn each_thing_that_can_be_wrong_has_its_cause() {
        let document = document(true);
        let right = answer(document, 6);
        let (key, version) = right.object.expect("set");
        let ended = document.nature().life.changed(version + 1);
        let check = |answer: Answered, now, expected| {
            let found =
                judge(&asked(document, Manner::Basic), 7, &answer, WallTime::from_seconds(now));
            assert_eq!(found, Err(expected), "{answer:?}");
        };
        check(Answered { status: 304, length: 0, ..right }, NOW, ErrorCause::Status);
        check(Answered { object: Some((key + 1, version)), ..right }, NOW, ErrorCause::Foreign);
        check(Answered { object: None, ..right }, NOW, ErrorCause::Foreign);
        check(Answered { length: right.length - 1, ..right }, NOW, ErrorCause::Length);
        check(Answered { wrong_bytes: 1, ..right }, NOW, ErrorCause::BodyMismatch);
        check(right, ended + GRAIN + 1, ErrorCause::Stale);
        assert_eq!(
            judge(&asked(document, Manner::Basic), 7, &right, WallTime::from_seconds(ended)),
            Ok(true)
        );
    }

    #[test]
    fn an_unchanged_document_needs_no_body() {
        let document = document(true);
        let unchanged = Answered { status: 304, length: 0, ..answer(document, 7) };
        let begun = WallTime::from_seconds(NOW);
        assert_eq!(judge(&asked(document, Manner::SinceThen), 7, &unchanged, begun), Ok(false));
        let by_cache = Answered { object: None, reply_to: None, ..unchanged };
        assert_eq!(judge(&asked(document, Manner::SinceThen), 7, &by_cache, begun), Ok(false));
        assert_eq!(
            judge(&asked(document, Manner::SinceBefore), 7, &unchanged, begun),
            Err(ErrorCause::Status)
        );
        assert_eq!(
            judge(&asked(document, Manner::SinceThen), 7, &answer(document, 6), begun),
            Ok(true)
        );
    }
    #[test]
    fn the_version_before_may_be_unchanged_while_the_clock_has_not_moved_on() {
        let document = document(true);
        let life = document.nature().life;
        let changed = life.changed(life.version(NOW) + 1);
        let before = Answered { status: 304, length: 0, ..answer(document, 6) };
        for (later, expected) in
            [(0, Ok(true)), (GRAIN, Ok(true)), (GRAIN + 1, Err(ErrorCause::Status))]
        {
            let begun = WallTime::from_seconds(changed + later);
            assert_eq!(
                judge(&asked(document, Manner::SinceBefore), 7, &before, begun),
                expected,
                "{later}"
            );
        }
    }
}
