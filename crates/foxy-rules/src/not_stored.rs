//! Why a response is not stored: the reasons by name, in words, and where each rule is written.
//! `storable` decides.

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStoredReason {
    /// Only answers to GET are stored, and those to POST that say they are what a GET would give.
    Method,
    /// Partial content (206) is no answer to other requests. What of it may be kept as a part is
    /// decided as for its whole.
    Partial,
    /// The status is not a final one, or says nothing of the resource (304).
    Status,
    /// `must-understand`, and the status is not one we know.
    NotUnderstood,
    /// The response's Cache-Control cannot be read: it may have meant `no-store`.
    Unreadable,
    /// The response says `no-store`.
    ResponseNoStore,
    /// The request says `no-store`.
    RequestNoStore,
    /// The response says `private`.
    Private,
    /// The request carried Authorization and the response does not allow sharing (§3.5).
    Authorization,
    /// `Vary: *`: it matches no other request.
    VaryStar,
    /// Vary names more fields than we compare.
    VaryTooLong,
    /// It sets a cookie, and nothing in it says that others may have it.
    SetCookie,
    /// No lifetime, no validator: it could never be reused (§3: no explicit freshness, no
    /// heuristic).
    NoFreshness,
}

impl NotStoredReason {
    /// A stable name for `Cache-Status` details, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Partial => "partial",
            Self::Status => "status",
            Self::NotUnderstood => "not-understood",
            Self::Unreadable => "unreadable-cache-control",
            Self::ResponseNoStore => "response-no-store",
            Self::RequestNoStore => "request-no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::VaryStar => "vary-star",
            Self::VaryTooLong => "vary-too-long",
            Self::SetCookie => "set-cookie",
            Self::NoFreshness => "no-freshness",
        }
    }

    /// Where the rule is written.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Method | Self::Status | Self::NoFreshness => "RFC 9111 §3",
            Self::Partial => "RFC 9111 §3.3",
            Self::NotUnderstood => "RFC 9111 §5.2.2.3",
            Self::Unreadable => "RFC 9111 §5.2",
            Self::ResponseNoStore => "RFC 9111 §5.2.2.5",
            Self::RequestNoStore => "RFC 9111 §5.2.1.5",
            Self::Private => "RFC 9111 §5.2.2.7",
            Self::Authorization => "RFC 9111 §3.5",
            Self::VaryStar | Self::VaryTooLong => "RFC 9111 §4.1",
            Self::SetCookie => "RFC 9111 §7.3",
        }
    }

    /// The rule in words, about the response.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Method => "its request's method is not one whose answers are stored",
            Self::Partial => "it is partial content",
            Self::Status => "its status says nothing that a later request could be answered with",
            Self::NotUnderstood => "it says must-understand, and its status is not one foxy knows",
            Self::Unreadable => "its Cache-Control cannot be read, and may have meant no-store",
            Self::ResponseNoStore => "it says no-store",
            Self::RequestNoStore => "its request said no-store",
            Self::Private => "it says private",
            Self::Authorization => {
                "its request carried Authorization, and it says neither public, must-revalidate nor s-maxage"
            }
            Self::VaryStar => "it says Vary: *, so no other request can have it",
            Self::VaryTooLong => "its Vary names more fields than are compared",
            Self::SetCookie => "it sets a cookie, and nothing in it says that others may have it",
            Self::NoFreshness => {
                "nothing says how long it is fresh, and there is nothing to validate it by"
            }
        }
    }
}
