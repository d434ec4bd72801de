//! Why a client's request goes to no proxy: named, counted, and said to whoever asked.

use crate::wire::tls::NotEntered;
use crate::wire::tls::entrance::NoTunnel;

/// Why a client's request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontRefusal {
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
    /// A tunnel or TLS, and there is no authority whose certificates could be shown.
    NoAuthority,
    /// A tunnel to a host that the authority may not vouch for.
    NotVouched,
    /// A tunnel within TLS.
    TunnelWithin,
    /// A request in a tunnel for another server than the tunnel's.
    Misdirected,
    /// A server that the direct path does not lead to, so that its answer would be another
    /// server's.
    NotTheOrigin,
    /// A scheme other than `http` and `https`, or `OPTIONS *`.
    OtherScheme,
    /// The request's body is larger than what is held.
    BodyTooLarge,
    /// The request has been here already.
    Loop,
    /// An OPTIONS that may not be passed on (RFC 9110 §7.6.2).
    OptionsHere,
    /// A TRACE that may not be passed on.
    TraceHere,
}

impl FrontRefusal {
    /// All reasons, in the order of the report's counts.
    pub const ALL: [Self; 19] = [
        Self::TooManyConnections,
        Self::TooManyRequests,
        Self::Over,
        Self::Stranger,
        Self::RateLimited,
        Self::MethodNotAllowed,
        Self::FarHost,
        Self::NotHttp,
        Self::NoHost,
        Self::NoAuthority,
        Self::NotVouched,
        Self::TunnelWithin,
        Self::Misdirected,
        Self::NotTheOrigin,
        Self::OtherScheme,
        Self::BodyTooLarge,
        Self::Loop,
        Self::OptionsHere,
        Self::TraceHere,
    ];

    /// Name in tables and records.
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
            Self::NoAuthority => "no_authority",
            Self::NotVouched => "not_vouched",
            Self::TunnelWithin => "tunnel_within",
            Self::Misdirected => "misdirected",
            Self::NotTheOrigin => "not_the_origin",
            Self::OtherScheme => "other_scheme",
            Self::BodyTooLarge => "body_too_large",
            Self::Loop => "loop",
            Self::OptionsHere => "options_here",
            Self::TraceHere => "trace_here",
        }
    }

    /// Status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooManyConnections | Self::TooManyRequests | Self::Over => 503,
            Self::RateLimited => 429,
            Self::Stranger | Self::MethodNotAllowed | Self::FarHost | Self::NotVouched => 403,
            Self::NotHttp | Self::NoHost => 400,
            Self::NoAuthority | Self::TunnelWithin | Self::OtherScheme | Self::TraceHere => 501,
            Self::Misdirected | Self::NotTheOrigin => 421,
            Self::BodyTooLarge => 413,
            Self::Loop => 508,
            Self::OptionsHere => 200,
        }
    }

    /// One line for people: the fault, and the remedy.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TooManyConnections => {
                "too many connections are open; start with a higher --most-connections"
            }
            Self::TooManyRequests => {
                "too many requests are under way; start with a higher --most-in-flight"
            }
            Self::Over => "the run is over",
            Self::Stranger => "only this machine and private networks may ask",
            Self::RateLimited => "live origins would be asked more often than --rate allows",
            Self::MethodNotAllowed => "live origins are asked for GET only",
            Self::FarHost => {
                "only loopback and private addresses and localhost are asked for, unless started with --live, --reverse or --collector"
            }
            Self::NotHttp => "this is not an HTTP/1 request that is accepted",
            Self::NoHost => "the request names no host",
            Self::NoAuthority => {
                "what cannot be read cannot be judged: TLS is ended here, with --ca-dir and a folder of foxy ca init"
            }
            Self::NotVouched => NotEntered::NotVouched.description(),
            Self::TunnelWithin => "a tunnel within TLS is not opened; open it without",
            Self::Misdirected => "a tunnel to one server carries no requests for another",
            Self::NotTheOrigin => {
                "the direct path leads to the origin alone; name that, or start with --collector, --live or --origin"
            }
            Self::OtherScheme => "only http and https URLs can be asked for",
            Self::BodyTooLarge => {
                "the request's body is larger than 1 MiB, which is what is held of one"
            }
            Self::Loop => "this request has been here already, or is for this address itself",
            Self::OptionsHere => {
                "OPTIONS may not be passed on and ends here; every method is passed on"
            }
            Self::TraceHere => "TRACE may not be passed on; it ends here and is not answered",
        }
    }
}

impl From<NoTunnel> for FrontRefusal {
    fn from(reason: NoTunnel) -> Self {
        match reason {
            NoTunnel::Within => Self::TunnelWithin,
            NoTunnel::NoHost => Self::NoHost,
            NoTunnel::NoAuthority => Self::NoAuthority,
            NoTunnel::NotVouched => Self::NotVouched,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place_and_a_name_of_its_own() {
        assert!(FrontRefusal::ALL.iter().enumerate().all(|(at, &reason)| reason as usize == at));
        let names: std::collections::BTreeSet<_> =
            FrontRefusal::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), FrontRefusal::ALL.len());
    }
}
