//! Why a client's request goes to no proxy: named, counted, and said to whoever asked.

/// The reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More connections than allowed are open.
    TooManyConnections,
    /// More requests than allowed are under way.
    TooManyRequests,
    /// The run is over.
    Over,
    /// Who asks is neither on this machine nor in a private network.
    Stranger,
    /// Live origins may not be asked for more now.
    RateLimited,
    /// Live origins are asked for GET only.
    MethodNotAllowed,
    /// The host is out in the network, and the run is not live.
    FarHost,
    /// What came is not a request that we accept.
    NotHttp,
    /// The request names no host.
    NoHost,
    /// A tunnel.
    Tunnel,
    /// A scheme other than `http`, or `OPTIONS *`.
    NotPlainHttp,
    /// The request's body is larger than what is held.
    BodyTooLarge,
    /// The request has been here already.
    Loop,
}

impl Refusal {
    /// Every reason, in the order of a report's counts.
    pub const ALL: [Self; 13] = [
        Self::TooManyConnections,
        Self::TooManyRequests,
        Self::Over,
        Self::Stranger,
        Self::RateLimited,
        Self::MethodNotAllowed,
        Self::FarHost,
        Self::NotHttp,
        Self::NoHost,
        Self::Tunnel,
        Self::NotPlainHttp,
        Self::BodyTooLarge,
        Self::Loop,
    ];

    /// Its name in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyConnections => "too_many_connections",
            Self::TooManyRequests => "too_many_requests",
            Self::Over => "over",
            Self::Stranger => "stranger",
            Self::RateLimited => "rate_limited",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::FarHost => "far_host",
            Self::NotHttp => "not_http",
            Self::NoHost => "no_host",
            Self::Tunnel => "tunnel",
            Self::NotPlainHttp => "not_plain_http",
            Self::BodyTooLarge => "body_too_large",
            Self::Loop => "loop",
        }
    }

    /// The status that says it.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::TooManyConnections | Self::TooManyRequests | Self::Over => 503,
            Self::RateLimited => 429,
            Self::Stranger | Self::MethodNotAllowed | Self::FarHost => 403,
            Self::NotHttp | Self::NoHost => 400,
            Self::Tunnel | Self::NotPlainHttp => 501,
            Self::BodyTooLarge => 413,
            Self::Loop => 508,
        }
    }

    /// One line for people: what was wrong, and what would be right.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::TooManyConnections => {
                "too many connections are open; start with a higher --most-connections"
            }
            Self::TooManyRequests => "too many requests are under way; start with a higher --most-in-flight",
            Self::Over => "the run is over",
            Self::Stranger => "only this machine and private networks may ask",
            Self::RateLimited => "live origins would be asked more often than --rate allows",
            Self::MethodNotAllowed => "live origins are asked for GET only",
            Self::FarHost => {
                "only loopback and private addresses and localhost are asked for, unless started with --live, --reverse or --collector"
            }
            Self::NotHttp => "this is not an HTTP/1 request that is accepted",
            Self::NoHost => "the request names no host",
            Self::Tunnel => {
                "there are no tunnels here: answers that cannot be read cannot be judged; ask for http URLs"
            }
            Self::NotPlainHttp => "only http URLs can be asked for",
            Self::BodyTooLarge => "the request's body is larger than 1 MiB, which is what is held of one",
            Self::Loop => "this request has been here already, or is for this address itself",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place_and_a_name_of_its_own() {
        assert!(Refusal::ALL.iter().enumerate().all(|(at, &reason)| reason as usize == at));
        let names: std::collections::BTreeSet<_> = Refusal::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
