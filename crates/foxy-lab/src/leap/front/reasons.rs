//! The reasons why the Multiplier refuses a client's request. Each reason has a name, an HTTP
//! status and a text.

use crate::named::named;
use crate::wire::tls::entrance::TunnelRefusal;

named! {
    /// The reason why the Multiplier refuses a client's request.
    pub enum FrontRefusal {
        TooManyConnections = "too_many_connections":
            "too many connections are open; start with a higher --most-connections",
        TooManyRequests = "too_many_requests":
            "too many requests are under way; start with a higher --most-in-flight",
        Over = "over": "the run is over",
        Stranger = "stranger": "only this machine and private networks may ask",
        RateLimited = "rate_limited": "live origins would be asked more often than --rate allows",
        MethodNotAllowed = "method_not_allowed": "live origins are asked for GET only",
        FarHost = "far_host":
            "only loopback and private addresses and localhost are asked for, unless started with \
             --live, --reverse or --collector",
        NotHttp = "not_http": "this is not an HTTP/1 request that is accepted",
        NoHost = "no_host": "the request names no host",
        NoAuthority = "no_authority":
            "what cannot be read cannot be judged: TLS is ended here, with --ca-dir and a folder \
             of foxy ca init",
        NotVouched = "not_vouched":
            "the authority of --ca-dir may not vouch for the host; make one for it with foxy ca \
             init --allow",
        TunnelWithin = "tunnel_within": "a tunnel within TLS is not opened; open it without",
        Misdirected = "misdirected": "a tunnel to one server carries no requests for another",
        NotTheOrigin = "not_the_origin":
            "the direct path leads to the origin alone; name that, or start with --collector, \
             --live or --origin",
        OtherScheme = "other_scheme": "only http and https URLs can be asked for",
        BodyTooLarge = "body_too_large":
            "the request's body is larger than 1 MiB, which is what is held of one",
        Loop = "loop": "this request has been here already, or is for this address itself",
        OptionsHere = "options_here":
            "OPTIONS may not be passed on and ends here; every method is passed on",
        TraceHere = "trace_here": "TRACE may not be passed on; it ends here and is not answered",
    }
}

impl FrontRefusal {
    /// Returns the HTTP status of the refusal.
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
}

impl From<TunnelRefusal> for FrontRefusal {
    fn from(reason: TunnelRefusal) -> Self {
        match reason {
            TunnelRefusal::Within => Self::TunnelWithin,
            TunnelRefusal::NoHost => Self::NoHost,
            TunnelRefusal::NoAuthority => Self::NoAuthority,
            TunnelRefusal::NotVouched => Self::NotVouched,
        }
    }
}
