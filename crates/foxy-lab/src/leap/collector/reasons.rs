//! The reasons why the Collector (common parent proxy) refuses a request. Each reason has a name,
//! an HTTP status and a text.

use crate::named::named;
use crate::wire::tls::entrance::TunnelRefusal;

named! {
    /// The reason why the Collector (common parent proxy) refuses a request, without asking an
    /// origin. The Collector does not store refusals.
    pub enum Refusal {
        TooManyConnections = "too_many_connections":
            "too many connections are open; raise --most-connections",
        TooManyProxies = "too_many_proxies":
            "more than 64 proxies sent requests; the Collector can distinguish at most 64",
        Stranger = "stranger": "the client is neither on this machine nor in a private network",
        TooManyFetches = "too_many_fetches":
            "too many exchanges with origins are in progress; raise --most-fetches",
        RateLimited = "rate_limited":
            "the request exceeds --live-rate, the limit on requests to live origins",
        MethodNotAllowed = "method_not_allowed":
            "live origins get only GET; --any-method also forwards other methods",
        NotHttp = "not_http": "the request is not valid HTTP/1",
        OtherScheme = "other_scheme":
            "the URL is not an http or https URL with a host",
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
        BodyTooLarge = "body_too_large":
            "the request's body is larger than the limit of 1 MiB",
        Loop = "loop": "the request came back to this Collector, which must not be its own parent",
        OptionsHere = "options_here":
            "OPTIONS with Max-Forwards: 0 ends here; foxy forwards every method",
        TraceHere = "trace_here": "TRACE with Max-Forwards: 0 ends here, and foxy does not answer \
                                   it",
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

    /// Returns the text of the refusal, which is the body of its answer. LEAP recognises a
    /// Collector (common parent proxy) by the whole text of [`Self::OptionsHere`].
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
