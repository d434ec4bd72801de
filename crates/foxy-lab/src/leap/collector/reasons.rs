//! Why the Collector refuses a request: named, counted, and said to whoever asked.

use crate::wire::tls::NotEntered;
use crate::wire::tls::entrance::NoTunnel;

/// Why a request is not sent to an origin. Refusals are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More connections than allowed are open.
    TooManyConnections,
    /// More proxies than can be told apart have asked.
    TooManyProxies,
    /// Who asks is neither on this machine nor in a private network.
    Stranger,
    /// More exchanges with origins than allowed are under way.
    TooManyFetches,
    /// Live origins may not be asked for more now.
    RateLimited,
    /// Live origins are asked for GET only.
    MethodNotAllowed,
    /// What came is not a request that we accept.
    NotHttp,
    /// A scheme other than `http` and `https`, or no host.
    OtherScheme,
    /// A tunnel or TLS, and there is no authority whose certificates could be shown.
    NoAuthority,
    /// A tunnel to a host that the authority may not vouch for.
    NotVouched,
    /// A tunnel within TLS.
    TunnelWithin,
    /// A request in a tunnel for another server than the tunnel's.
    Misdirected,
    /// The request's body is larger than what is held.
    BodyTooLarge,
    /// The request has been through this Collector already.
    Loop,
    /// An OPTIONS that may not be passed on (RFC 9110 §7.6.2).
    OptionsHere,
    /// A TRACE that may not be passed on.
    TraceHere,
}

impl Refusal {
    /// All refusals, in the order of the report's counts.
    pub const ALL: [Self; 16] = [
        Self::TooManyConnections,
        Self::TooManyProxies,
        Self::Stranger,
        Self::TooManyFetches,
        Self::RateLimited,
        Self::MethodNotAllowed,
        Self::NotHttp,
        Self::OtherScheme,
        Self::NoAuthority,
        Self::NotVouched,
        Self::TunnelWithin,
        Self::Misdirected,
        Self::BodyTooLarge,
        Self::Loop,
        Self::OptionsHere,
        Self::TraceHere,
    ];

    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooManyConnections => "too_many_connections",
            Self::TooManyProxies => "too_many_proxies",
            Self::Stranger => "stranger",
            Self::TooManyFetches => "too_many_fetches",
            Self::RateLimited => "rate_limited",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NotHttp => "not_http",
            Self::OtherScheme => "other_scheme",
            Self::NoAuthority => "no_authority",
            Self::NotVouched => "not_vouched",
            Self::TunnelWithin => "tunnel_within",
            Self::Misdirected => "misdirected",
            Self::BodyTooLarge => "body_too_large",
            Self::Loop => "loop",
            Self::OptionsHere => "options_here",
            Self::TraceHere => "trace_here",
        }
    }

    /// Status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooManyConnections | Self::TooManyProxies | Self::TooManyFetches => 503,
            Self::RateLimited => 429,
            Self::Stranger | Self::MethodNotAllowed | Self::NotVouched => 403,
            Self::NotHttp => 400,
            Self::OtherScheme | Self::NoAuthority | Self::TunnelWithin | Self::TraceHere => 501,
            Self::Misdirected => 421,
            Self::BodyTooLarge => 413,
            Self::Loop => 508,
            Self::OptionsHere => 200,
        }
    }

    /// Body of the answer. LEAP recognises a Collector by it.
    pub fn text(self) -> String {
        format!("foxy collector: {}\n", self.description())
    }

    /// One line for people: the fault, and the remedy.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TooManyConnections => {
                "too many connections are open; start with a higher --most-connections"
            }
            Self::TooManyProxies => {
                "more than 64 proxies have asked; only so many can be told apart"
            }
            Self::Stranger => "only this machine and private networks may ask",
            Self::TooManyFetches => {
                "too many exchanges with origins are under way; start with a higher --most-fetches"
            }
            Self::RateLimited => "live origins would be asked more often than --live-rate allows",
            Self::MethodNotAllowed => {
                "live origins are asked for GET only; start with --any-method to send others"
            }
            Self::NotHttp => "this is not an HTTP/1 request that is accepted",
            Self::OtherScheme => {
                "only http and https URLs can be asked for, and a host must be named"
            }
            Self::NoAuthority => {
                "TLS is ended here only with an authority; start with --ca-dir and a folder of foxy ca init"
            }
            Self::NotVouched => NotEntered::NotVouched.description(),
            Self::TunnelWithin => "a tunnel within TLS is not opened; open it without",
            Self::Misdirected => "a tunnel to one server carries no requests for another",
            Self::BodyTooLarge => {
                "the request's body is larger than 1 MiB, which is what is held of one"
            }
            Self::Loop => {
                "this request has been here already; a Collector must not be its own parent"
            }
            Self::OptionsHere => {
                "OPTIONS may not be passed on and ends here; every method is passed on"
            }
            Self::TraceHere => "TRACE may not be passed on; it ends here and is not answered",
        }
    }
}

impl From<NoTunnel> for Refusal {
    fn from(reason: NoTunnel) -> Self {
        match reason {
            NoTunnel::Within => Self::TunnelWithin,
            NoTunnel::NoHost => Self::NotHttp,
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
        assert!(Refusal::ALL.iter().enumerate().all(|(at, &reason)| reason as usize == at));
        let names: std::collections::BTreeSet<_> =
            Refusal::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Refusal::ALL.len());
    }
}
