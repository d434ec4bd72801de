//! What the operator decides where the RFCs leave a choice: for whom the cache speaks, and how long
//! an answer that says "there is nothing" is good when nothing is said of that.

/// For whom a cache speaks (RFC 9110 §3.7), which decides whether a targeted field is meant for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// For clients, to any origin. `CDN-Cache-Control` is not for it.
    #[default]
    Proxy,
    /// For an origin, to any client: the caches `CDN-Cache-Control` is meant for (RFC 9213 §3).
    Gateway,
}

/// The choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// For whom the cache speaks.
    pub role: Role,
    /// Seconds for which a [negative](is_negative) response is fresh when it says nothing of that
    /// (RFC 9111 §4.2.2 leaves the guess to the cache). 0 guesses nothing.
    pub negative_lifetime: u64,
}

impl From<Role> for Policy {
    fn from(role: Role) -> Self {
        Self { role, negative_lifetime: 0 }
    }
}

/// Whether a status says that there is nothing to be had, and may be given a lifetime by guess (RFC
/// 9110 §15.1).
pub const fn is_negative(status: u16) -> bool {
    matches!(status, 404 | 405 | 410 | 414 | 501)
}
