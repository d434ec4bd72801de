//! The reasons why the Multiplier (LEAP's request copier) refuses a client's request. Each reason
//! has a name, an HTTP status and a text.

use crate::named::named;
use crate::wire::tls::entrance::TunnelRefusal;

named! {
    /// The reason why the Multiplier (LEAP's request copier) refuses a client's request.
    pub enum FrontRefusal {
        TooManyConnections = "too_many_connections":
            "too many connections are open; raise --most-connections",
        TooManyRequests = "too_many_requests":
            "too many requests are in progress; raise --most-in-flight",
        Over = "over": "the run is over",
        Stranger = "stranger": "the client is neither on this machine nor in a private network",
        RateLimited = "rate_limited": "the request exceeds --rate, the limit on requests to live \
                                       origins",
        MethodNotAllowed = "method_not_allowed": "live origins get only GET",
        FarHost = "far_host":
            "the host is not on this machine or in a private network; such hosts need --live, \
             --reverse or --collector",
        NotHttp = "not_http": "the request is not valid HTTP/1",
        NoHost = "no_host": "the request names no host",
        NoAuthority = "no_authority":
            "foxy cannot read TLS without an authority; name a folder of `foxy ca init` with \
             --ca-dir",
        NotVouched = "not_vouched":
            "the authority of --ca-dir may not sign for the host; make an authority with `foxy ca \
             init --allow HOST`",
        TunnelWithin = "tunnel_within": "foxy accepts no CONNECT inside TLS; send CONNECT outside \
                                         TLS",
        Misdirected = "misdirected": "the request names another server than the CONNECT of its \
                                      tunnel",
        NotTheOrigin = "not_the_origin":
            "the request names another server than the origin of the direct path; name this \
             origin, or start with --collector, --live or --origin",
        OtherScheme = "other_scheme": "the URL is not an http or https URL",
        BodyTooLarge = "body_too_large":
            "the request's body is larger than the limit of 1 MiB",
        Loop = "loop": "the request came back to this address, or names it as the server",
        OptionsHere = "options_here":
            "OPTIONS with Max-Forwards: 0 ends here; foxy forwards every method",
        TraceHere = "trace_here": "TRACE with Max-Forwards: 0 ends here, and foxy does not answer \
                                   it",
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
