//! Finds out from a node's answer whether the response came from the node's cache or from the
//! origin.

use foxy_http::ResponseHead;

/// The source of the owner's answer, from the owner's part of `Cache-Status` (RFC 9211 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OwnersState {
    /// The owner has fetched or validated the response.
    #[default]
    Fetched,
    /// The owner had a fresh response.
    Fresh,
    /// The owner had a stale response, or a response that a purge has made stale.
    Stale,
}

impl OwnersState {
    pub(crate) fn of(head: &ResponseHead) -> Self {
        head.headers.tokens("cache-status").last().map(Self::of_member).unwrap_or_default()
    }

    fn of_member(member: &[u8]) -> Self {
        let parameters = || member.split(|byte| *byte == b';').skip(1).map(<[u8]>::trim_ascii);
        let is_stale = parameters().any(|it| it.starts_with(b"ttl=-") || it == b"ttl=0");
        match parameters().any(|parameter| parameter == b"hit") {
            true if is_stale => Self::Stale,
            true => Self::Fresh,
            false if is_stale => Self::Stale,
            false => Self::Fetched,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owners_part_of_the_answer_tells_its_state() {
        for (member, expected) in [
            ("foxy-b; hit; ttl=5", OwnersState::Fresh),
            ("foxy-b;hit", OwnersState::Fresh),
            ("foxy-b; hit; ttl=-5; detail=max-stale", OwnersState::Stale),
            ("foxy-b; hit; ttl=0", OwnersState::Stale),
            ("foxy-b; fwd=stale; ttl=-5", OwnersState::Stale),
            ("foxy-b; fwd=stale; fwd-status=304; ttl=9", OwnersState::Fetched),
            ("foxy-b; fwd=uri-miss; detail=hit", OwnersState::Fetched),
            ("hit; fwd=stale", OwnersState::Fetched),
        ] {
            assert_eq!(OwnersState::of_member(member.as_bytes()), expected, "{member}");
        }
    }
}
