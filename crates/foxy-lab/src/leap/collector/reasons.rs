//! The reasons why the Collector refuses a request. Each reason has a name, an HTTP status and a
//! text.

use crate::named::named;
use crate::wire::tls::entrance::TunnelRefusal;

named! {
    /// The reason why the Collector does not send a request to an origin. The Collector does not
    /// store refusals.
    pub enum Refusal {
        TooManyConnections = "too_many_connections":
            "too many connections are open; start with a higher --most-connections",
        TooManyProxies = "too_many_proxies":
            "more than 64 proxies have asked; only so many can be told apart",
        Stranger = "stranger": "only this machine and private networks may ask",
        TooManyFetches = "too_many_fetches":
            "too many exchanges with origins are under way; start with a higher --most-fetches",
        RateLimited = "rate_limited":
            "live origins would be asked more often than --live-rate allows",
        MethodNotAllowed = "method_not_allowed":
            "live origins are asked for GET only; start with --any-method to send others",
        NotHttp = "not_http": "this is not an HTTP/1 request that is accepted",
        OtherScheme = "other_scheme":
            "only http and https URLs can be asked for, and a host must be named",
        NoAuthority = "no_authority":
            "TLS is ended here only with an authority; start with --ca-dir and a folder of foxy \
             ca init",
        NotVouched = "not_vouched":
            "the authority of --ca-dir may not vouch for the host; make one for it with foxy ca \
             init --allow",
        TunnelWithin = "tunnel_within": "a tunnel within TLS is not opened; open it without",
        Misdirected = "misdirected": "a tunnel to one server carries no requests for another",
        BodyTooLarge = "body_too_large":
            "the request's body is larger than 1 MiB, which is what is held of one",
        Loop = "loop": "this request has been here already; a Collector must not be its own parent",
        OptionsHere = "options_here":
            "OPTIONS may not be passed on and ends here; every method is passed on",
        TraceHere = "trace_here": "TRACE may not be passed on; it ends here and is not answered",
    }
}

impl Refusal {
    /// Returns the HTTP status of the refusal.
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

    /// Returns the body of the refusal. LEAP recognises a Collector by the prefix `foxy
    /// collector:`.
    pub fn text(self) -> String {
        format!("foxy collector: {}\n", self.description())
    }
}

impl From<TunnelRefusal> for Refusal {
    fn from(reason: TunnelRefusal) -> Self {
        match reason {
            TunnelRefusal::Within => Self::TunnelWithin,
            TunnelRefusal::NoHost => Self::NotHttp,
            TunnelRefusal::NoAuthority => Self::NoAuthority,
            TunnelRefusal::NotVouched => Self::NotVouched,
        }
    }
}
