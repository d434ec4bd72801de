//! The interim responses with which a node tells the asking node that it waits for the origin. The
//! node repeats them, so that the asking node notices if the waiting node hangs.

use crate::upstream::fleet::FIELD;
use foxy_http::{Headers, ResponseHead};
use std::time::Duration;
use tokio::time::Instant;

/// Status of the interim response with which a node tells that it waits for the origin (RFC 2518
/// §10.1). Then the asking node asks no other node.
const WAITS_FOR_ORIGIN: u16 = 102;

/// The field's value in such an interim response if the node will repeat it.
const REPEATED: &str = "repeated";

/// The field's value in the last such interim response.
const LAST: &str = "last";

/// Time after which a waiting node repeats the interim response.
pub(crate) const SIGN_INTERVAL: Duration = Duration::from_millis(2500);

/// Number of repetitions for one request. Nodes of earlier versions accept only 32 interim
/// responses, and the origin may also send some.
pub(crate) const MOST_SIGNS: u32 = 24;

/// If a node neither answers nor sends an interim response within this time, the asking node asks
/// another node. Nodes send the first interim response after a look-up in their cache.
const FIRST_SILENCE: Duration = Duration::from_secs(5);

/// If a node has promised to repeat its interim response, but sends nothing within this time, the
/// asking node asks another node. The time has four intervals, because a busy node may be late.
const LATER_SILENCE: Duration = Duration::from_secs(10);

/// Returns the interim response with which this node tells that it waits for the origin. `left` is
/// the number of repetitions that will follow.
pub(crate) fn sign(left: u32) -> ResponseHead {
    let mut head = ResponseHead::new(WAITS_FOR_ORIGIN);
    head.headers.append(FIELD, if left > 0 { REPEATED } else { LAST });
    head
}

/// The interim responses that a node has sent for one request.
#[derive(Debug)]
pub(crate) struct HeardSigns {
    /// Time when the asking node sent the request, or last heard of the node.
    heard: Instant,
    is_waiting: bool,
    will_repeat: bool,
}

impl HeardSigns {
    /// Begins to wait for a node that was asked at the time `now`.
    pub(crate) const fn since(now: Instant) -> Self {
        Self { heard: now, is_waiting: false, will_repeat: false }
    }

    /// Notes an interim response. It may also be the origin's, which the node has passed on.
    pub(crate) fn hear(&mut self, fields: &Headers, now: Instant) {
        if fields.contains(FIELD) {
            self.will_repeat = fields.has_token(FIELD, REPEATED);
        }
        (self.heard, self.is_waiting) = (now, true);
    }

    /// Returns true if the node has told that it waits for the origin.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Returns true if the node was silent for too long. Nodes of earlier versions do not repeat
    /// their interim response, so they may be silent until the timeout of the request.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        let limit = match (self.is_waiting, self.will_repeat) {
            (false, _) => FIRST_SILENCE,
            (true, true) => LATER_SILENCE,
            (true, false) => return false,
        };
        now.saturating_duration_since(self.heard) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(fields: &[Headers]) -> (HeardSigns, Instant) {
        let begun = Instant::now();
        let mut signs = HeardSigns::since(begun);
        fields.iter().for_each(|fields| signs.hear(fields, begun));
        (signs, begun)
    }

    #[test]
    fn a_node_that_no_longer_repeats_its_sign_is_silent() {
        let (repeated, last) = (sign(1).headers, sign(0).headers);
        let none = Headers::new;
        for (fields, limit) in [
            (vec![], Some(FIRST_SILENCE)),
            (vec![repeated.clone()], Some(LATER_SILENCE)),
            (vec![repeated.clone(), none()], Some(LATER_SILENCE)),
            (vec![repeated.clone(), last], None),
            (vec![none()], None),
            (vec![none(), repeated], Some(LATER_SILENCE)),
        ] {
            let (signs, begun) = heard(&fields);
            let limit = limit.unwrap_or(Duration::from_secs(600));
            assert!(!signs.is_silent(begun + limit - Duration::from_millis(1)), "{fields:?}");
            let is_bounded = limit < Duration::from_secs(600);
            assert_eq!(signs.is_silent(begun + limit), is_bounded, "{fields:?}");
            assert_eq!(signs.is_waiting(), !fields.is_empty());
        }
    }

    #[test]
    fn a_busy_node_may_be_late_with_three_signs() {
        assert!(LATER_SILENCE >= 4 * SIGN_INTERVAL);
    }
}
